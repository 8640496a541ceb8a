"""The `fitcheck` command: its commands put together, and errors turned into exit codes."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from fitcheck.cli.common import report_error
from fitcheck.errors import ExitCode, FitcheckError, UsageError

COMMANDS = {
    "fit": "fit",
    "cost": "cost",
    "recommend": "recommend",
    "models": "records",
    "hardware": "records",
    "rates": "rates",
    "recipes": "records",
    "validate": "validate",
}
"""Commands in the order of the help, and the module of `fitcheck.cli` that each lives in as a function of its name."""


class LazyCommands(TyperGroup):
    """A group that imports a command's module when the command is asked for, so that starting one does not pay for the others."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is typer's
        """Every command, whether imported yet or not."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer does it, with the nearest names of all commands for one that does not exist."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from difflib import get_close_matches

            nearest = get_close_matches(args[0], COMMANDS, n=3, cutoff=0.5)
            raise UsageError(f"no command {args[0]!r}", hint="'fitcheck --help' lists them", nearest=tuple(nearest))
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, imported now; None where there is none."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module = import_module(f"fitcheck.cli.{COMMANDS[cmd_name]}")
            found = getattr(module, f"{cmd_name}_app", None)
            if found is None:
                found = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
                found.command(cmd_name, epilog=getattr(module, "EXAMPLES", None))(getattr(module, cmd_name))
            self.commands[cmd_name] = typer.main.get_command(found)
        return super().get_command(ctx, cmd_name)


CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="fitcheck",
    cls=LazyCommands,
    epilog="Exit codes: 0 answered, 2 usage, 3 unknown id, 4 data problem, 5 network, 10 does not fit, 11 tight (--strict), "
    "12 unknown, 20 the catalogue has errors.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=CONTEXT,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"fitcheck {version('fitcheck-advisor')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    """Which open-weight model fits which machines, at which context, for how many users, how fast; with sources."""


def main() -> None:
    """Run the command line. Every `FitcheckError` becomes one message on standard error and its exit code."""
    try:
        app()
    except FitcheckError as error:
        report_error(error)
        sys.exit(error.code)
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing is wrong, and nothing more can be said.
        sys.stderr.close()
        sys.exit(ExitCode.ANSWERED)
