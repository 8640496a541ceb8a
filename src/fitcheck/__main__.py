"""The process: `python -m fitcheck`, and the `fitcheck` script."""

import gc
import os


def main() -> None:
    """Run the command line in a process that answers once and ends."""
    # Collecting garbage in between would cost a tenth of the start-up and free nothing that matters.
    gc.disable()
    # pydantic would search every installed distribution for plugins, and a catalogue's records are not for plugins to change.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from fitcheck.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
