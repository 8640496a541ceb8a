"""What the option parser refuses, in our own words: what is wrong, and what to type instead."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, get_args

from fitcheck.errors import UsageError

_KINDS = {int: "a whole number", float: "a number", bool: "true or false"}
_TOO_MANY = re.compile(r"extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)
_EXAMPLE = re.compile(r"^\s*(fitcheck .*\S)\s*$", re.MULTILINE)


def refusal(error: Any, typed: list[str]) -> UsageError:
    """The `UsageError` that says what an exception of the option parser means; `typed` are the words after `fitcheck`."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    hint = _help_of(error, typed)
    if "NoSuchOption" in kinds:
        return _no_such_option(error, hint)
    if "MissingParameter" in kinds and error.param is not None:
        return UsageError(f"{_name(error.param)} is missing", hint=_example(error) or hint)
    if "BadParameter" in kinds and error.param is not None:
        return _bad_value(error, typed, hint)
    if "BadOptionUsage" in kinds:
        takes = "takes no value" if "does not take a value" in error.message else "needs a value after it"
        return UsageError(f"{error.option_name} {takes}", hint=hint)
    words = _TOO_MANY.search(error.message)
    if words:
        return UsageError(f"too many words: {words[1]!r}", hint=f"put a name with spaces in quotes; {hint}")
    return UsageError(error.format_message(), hint=hint)


def _no_such_option(error: Any, hint: str) -> UsageError:
    from difflib import get_close_matches

    known = [name for param in error.ctx.command.params for name in param.opts if name.startswith("--")] if error.ctx else []
    nearest = get_close_matches(error.option_name, known, n=3, cutoff=0.5)
    return UsageError(f"no option {error.option_name}", hint=hint, nearest=tuple(nearest))


def _bad_value(error: Any, typed: list[str], hint: str) -> UsageError:
    name = _name(error.param)
    descriptor = getattr(error.param, "type_descriptor", None)
    choices = [str(getattr(choice, "value", choice)) for choice in getattr(descriptor, "choices", None) or ()]
    annotation = getattr(descriptor, "annotation", None)
    kind = next((words for kind, words in _KINDS.items() if kind is annotation or kind in get_args(annotation)), None)
    wanted = f"takes one of {', '.join(choices)}" if choices else f"takes {kind}" if kind else None
    if wanted is None:
        return UsageError(f"{name}: {error.message}", hint=hint)
    given = _given(error.param.opts, typed)
    return UsageError(f"{name} {wanted}" + ("" if given is None else f", and {given!r} was given"), hint=hint)


def _given(names: list[str], typed: list[str]) -> str | None:
    """The last value that was typed for an option, which is the one that counts."""
    values = [after for word, after in pairwise(typed) if word in names]
    values += [word.partition("=")[2] for word in typed if "=" in word and word.partition("=")[0] in names]
    return values[-1] if values else None


def _name(param: Any) -> str:
    """An option as it is typed, an argument as the help calls it."""
    return str(max(param.opts, key=len)) if param.param_type_name == "option" else str(param.metavar or param.name).upper()


def _example(error: Any) -> str | None:
    """The command's first example."""
    examples = _EXAMPLE.findall(error.ctx.command.epilog or "") if error.ctx else []
    return next((f"write it as in: {line}" for line in examples if line.startswith(f"{error.ctx.command_path} ")), None)


def _help_of(error: Any, typed: list[str]) -> str:
    word = typed[0] if typed and not typed[0].startswith("-") else None
    path = error.ctx.command_path if error.ctx else " ".join(["fitcheck", *([word] if word else [])])
    return f"'{path} --help' shows what there is"
