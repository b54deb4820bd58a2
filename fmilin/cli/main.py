"""``fmilin``: the program. Each command is a module; none of them imports anything heavy before it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module

import click

from fmilin.cli.completion import VARIABLE, completion_option
from fmilin.cli.deadline import deadline_in, within
from fmilin.cli.job_runner import failure
from fmilin.cli.streams import open_missing, silence
from fmilin.ground.interrupts import forget
from fmilin.ground.version import __version__

COMMANDS = {
    "linearize": "A linear model at an operating point.",
    "info": "What is in a model.",
    "discover": "Constraints that a model does not declare.",
    "explain": "Why an input does not move an output.",
    "trim": "An equilibrium or a steady motion.",
    "floquet": "A motion that repeats, and its stability.",
    "sweep": "Linear models at many operating points.",
    "simulate": "Integrate on the manifold; beside a linear model.",
    "verify": "A linear model against the nonlinear one.",
    "plot": "Pictures of linear models, families and mechanisms.",
    "explore": "A page with sliders, in the browser.",
    "report": "A linear model or a family as one page.",
    "spectrum": "A few eigenvalues of a large constrained system.",
    "build": "A native description as an FMU.",
    "convert": "Between the formats of linear models.",
    "adapters": "Engines whose files can be read here.",
    "demo": "Build, linearize and draw a four-bar linkage.",
    "examples": "List the examples, and copy one.",
}
"""Each is the module of that name beside this one, with a click command ``command``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program, with the shell's arguments by default, and return its exit status."""
    open_missing()
    forget()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given and VARIABLE not in os.environ:
        with redirect_stdout(sys.stderr):
            program.main(["--help"], prog_name="fmilin", standalone_mode=False)
        return 2
    return within(deadline_in(given), lambda: _run(given))


def _run(given: list[str]) -> int:
    try:
        status = program.main(given, prog_name="fmilin", standalone_mode=False)
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        text = " ".join(error.format_message().split()).rstrip(".")
        sys.stderr.write(f"fmilin: {text}. See '{context.command_path if context else 'fmilin'} --help'.\n")
        return 2
    except click.Abort as error:  # what click makes of an interrupt, or of a deadline
        return failure(error.__cause__ or error, debug="--debug" in given)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - becomes one paragraph and an exit status
        if isinstance(error, OSError):
            silence(sys.stdout)
        return failure(error, debug="--debug" in given)
    return status if isinstance(status, int) else 0


class _Program(click.Group):
    """The commands, each imported when it is asked for: only the one that is called costs time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"fmilin.cli.{cmd_name}").command
        command.short_help = COMMANDS[cmd_name]
        return command


@click.group(
    cls=_Program,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    help="Correct linear models of constrained dynamic systems: FMUs and mechanisms with more states than degrees of "
    "freedom.",
    epilog="Exit status: 0 done; 2 the command line is wrong; 3 the model cannot be read or refused to initialize; "
    "4 the constraints are wrong; 5 numerical failure; 6 the model crashed, hung or was killed, or the "
    "--deadline passed.",
)
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version and end.")
def program() -> None:
    """Correct linear models of constrained dynamic systems."""


program.params.append(completion_option())
