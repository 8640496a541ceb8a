"""The `fitcheck` command: its commands put together, and errors turned into exit codes."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
import typer.main
from typer.core import TyperGroup

from fitcheck.cli.common import INVOCATION, epilog, format_asked, report_error, unanswered
from fitcheck.errors import DataError, ExitCode, FitcheckError, UsageError


class Home(NamedTuple):
    """Where a command lives, as a function of its name in a module of `fitcheck.cli`, and what the list of commands says of it."""

    module: str
    summary: str
    codes: str = ""


_VERDICTS = ", 5 network, 10 does not fit, 11 tight (--strict), 12 unknown"
COMMANDS = {
    "fit": Home("fit", "Does a model fit your machines, how far?", _VERDICTS),
    "cost": Home("cost", "Rent or own: what a month's work costs"),
    "recommend": Home("recommend", "Which models suit a cluster, best first"),
    "inspect": Home("inspect", "Read a model where it lies: hub, folder, file", ", 5 network"),
    "models": Home("records", "Models and their builds"),
    "hardware": Home("records", "Devices and named clusters"),
    "detect": Home("detect", "This machine's accelerators and memory"),
    "rates": Home("rates", "What providers charge per million tokens"),
    "recipes": Home("records", "Measured deployments, with their speeds"),
    "calibrate": Home("calibrate", "Prediction beside what an engine printed"),
    "validate": Home("validate", "Check catalogue files and overlays", ", 20 errors found"),
}
"""Commands in the order of the help."""

EXAMPLES = """
Examples:

  fitcheck fit glm-5.3-flash --cluster 2xspark

  fitcheck recommend --cluster rtx-4090

  fitcheck cost glm-5.3-flash --tokens 50M --cluster 2xspark

  fitcheck hardware spark
"""


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
            home = COMMANDS[cmd_name]
            module = import_module(f"fitcheck.cli.{home.module}")
            found = getattr(module, f"{cmd_name}_app", None)
            if found is None:
                found = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
                found.command(cmd_name)(getattr(module, cmd_name))
            command = typer.main.get_command(found)
            examples = getattr(module, f"{cmd_name.upper()}_EXAMPLES" if home.module == "records" else "EXAMPLES")
            command.epilog, command.short_help = epilog(examples, home.codes), home.summary
            self.commands[cmd_name] = command
        return super().get_command(ctx, cmd_name)


CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="fitcheck",
    cls=LazyCommands,
    epilog=epilog(EXAMPLES, ", 5 network, 10 does not fit, 11 tight (--strict), 12 unknown, 20 the catalogue has errors"),
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
    """Which open-weight language model fits your machines, at which context, for how many users, how fast; with sources."""


def main() -> None:
    """Run the command line. Every `FitcheckError` becomes one message on standard error and its exit code."""
    INVOCATION.format = format_asked(sys.argv[1:])
    try:
        code = _run()
    except FitcheckError as error:
        report_error(error)
        code = error.code
    sys.exit(code)


def _run() -> int:
    """Run the command; what the option parser or the system refuses becomes a `FitcheckError` too. The exit code of the answer."""
    if sys.stdout is None:
        raise DataError("cannot write the answer: standard output is closed")
    try:
        return int(app(prog_name="fitcheck", standalone_mode=False) or ExitCode.ANSWERED)
    except FitcheckError:
        raise
    except OSError as error:
        raise unanswered(error) from error
    except SystemExit as left:
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        # The reader (head, less) has gone, which typer ends with 1: nothing is wrong, and nothing more can be said.
        unanswered(left.__context__)
        return ExitCode.ANSWERED
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stderr.write(f"{error.format_message()}\n")
            return ExitCode.USAGE
        from fitcheck.cli.usage import refusal

        raise refusal(error, sys.argv[1:]) from None
