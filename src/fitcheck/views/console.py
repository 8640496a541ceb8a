"""The one rich console of the views: it writes to memory, and neither the environment nor rich's own guesses change what it writes."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console


def console_to(out: TextIO, *, colour: bool, width: int | None = None, redrawn: bool = False) -> Console:
    """A console that writes plain text, or with escape codes where `colour` is true; nothing in the text is read as markup.

    `redrawn` is for a line that is drawn again and again, which takes escape codes without colour too.
    """
    return Console(
        file=out,
        width=width,
        force_terminal=colour or redrawn,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
