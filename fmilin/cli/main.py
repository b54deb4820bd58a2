"""``fmilin``: the program. Each command is a module; none of them imports anything heavy before it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import Annotated

import typer

from fmilin.cli.job_runner import failure
from fmilin.errors import FmilinError
from fmilin.version import __version__

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "linearize": "A linear model at an operating point.",
    "info": "What is in a model.",
    "trim": "An equilibrium or a steady motion.",
    "simulate": "Integrate on the manifold; beside a linear model.",
    "verify": "A linear model against the nonlinear one.",
    "spectrum": "A few eigenvalues of a large constrained system.",
    "build": "A native description as an FMU.",
    "convert": "Between the formats of linear models.",
    "adapters": "Engines whose files can be read here.",
    "demo": "Build, linearize and draw a four-bar linkage.",
}
"""Each is the module of that name beside this one, with a function ``command``."""

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # nothing here has any; looking for them takes as long as numpy


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the program's name; from the shell by default.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        with redirect_stdout(sys.stderr):
            _app(COMMANDS)(args=["--help"], prog_name="fmilin", standalone_mode=False)
        return 2
    try:
        # An option or an unknown word needs to know them all: for the help, or for what may have been meant.
        app = _app([given[0]] if given[0] in COMMANDS else COMMANDS)
        status = app(args=given, prog_name="fmilin", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - becomes one paragraph and an exit status
        return _reported(error, debug="--debug" in given)
    return status if isinstance(status, int) else 0


def _reported(error: BaseException, *, debug: bool) -> int:
    """Print what went wrong outside of a job: the command line, mostly."""
    # Typer's own exceptions come from click or, in recent versions, from a private copy of it: known by what they do.
    described = getattr(error, "format_message", None)
    if described is None or isinstance(error, FmilinError):
        return failure(error, debug=debug)
    text = " ".join(described().replace("Value error, ", "").split())  # pydantic's words, in recent versions of Typer
    command = getattr(getattr(error, "ctx", None), "command_path", None) or "fmilin"
    sys.stderr.write(f"fmilin: {text.rstrip('.')}. See '{command} --help'.\n")
    return 2


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - Typer calls it
    if wanted:
        sys.stdout.write(f"fmilin {__version__}\n")
        raise typer.Exit


def program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Correct linear models of constrained dynamic systems."""


def _app(names: Iterable[str]) -> typer.Typer:
    """Return the program with these commands: only the one that is called costs time."""
    app = typer.Typer(
        name="fmilin",
        help="Correct linear models of constrained dynamic systems: FMUs and mechanisms with more states than degrees "
        "of freedom.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Exit status: 0 done; 2 the command line is wrong; 3 the model cannot be read or refused to initialize; "
        "4 the constraints are wrong; 5 numerical failure; 6 the model crashed, hung or was killed.",
    )
    app.callback()(program)
    for name in names:
        app.command(name, short_help=COMMANDS[name])(import_module(f"fmilin.cli.{name}").command)
    return app
