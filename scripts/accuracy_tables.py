"""How docs/accuracy.md words figures."""

from __future__ import annotations

from collections.abc import Iterable

NOT_KNOWN = "address not known"


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; columns whose name ends in `>` are figures."""
    names = head.split("|")
    rule = "|".join("---:" if name.endswith(">") else "---" for name in names)
    lines = ["|".join(name.rstrip(">") for name in names), rule, *("|".join(cell.replace("|", "/") for cell in row) for row in rows)]
    return "\n".join(f"|{line}|" for line in lines)


def signed(error: float | None) -> str:
    """An error as people read it."""
    if error is None:
        return "unknown"
    percent = 100 * error
    text = f"{percent:+,.0f}" if abs(percent) >= 100 else f"{percent:+.1f}" if abs(percent) >= 1 else f"{percent:+.2f}"
    return ("0" if float(text.replace(",", "")) == 0 else text.replace("-", "\N{MINUS SIGN}")) + " %"


def share(value: float | None) -> str:
    """A share without a sign."""
    if value is None:
        return "unknown"
    if round(value, 5) == 0:
        return "0 %"
    return f"{100 * value:,.{0 if value >= 1 else 1 if value >= 0.01 else 3}f} %"


def link(name: str, source: str) -> str:
    """A name that leads to its source, where that has an address."""
    return f"[{name}]({source})" if source.startswith("https://") else f"{name} ({NOT_KNOWN})"
