"""Write the JSON Schema of every command's answer to docs/schema, from the records themselves.

    python scripts/write_schema.py [--check]

With `--check` nothing is written, and the exit code is 1 where a committed schema differs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fitcheck.views.schema import schemas

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schema"


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for name, text in schemas().items():
        path = FOLDER / f"{name}.json"
        if check and (not path.is_file() or path.read_text(encoding="utf-8") != text):
            stale.append(path.name)
        if not check:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run python scripts/write_schema.py\n")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
