"""``fmilin demo``: a real FMU, built, linearized and drawn, with what a naive Jacobian would have said."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TextIO

import click

from fmilin.cli.command import Command
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.linear_models import deliver, linear_model
from fmilin.cli.model_options import DEBUG, Debugging
from fmilin.cli.request import CommandRequest
from fmilin.errors import UsageError
from fmilin.options import Loading
from fmilin.support.files import check_writable

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel

FMU, MAT, PICTURE = "four_bar.fmu", "four_bar.mat", "eigenvalues.png"


@click.command(cls=Command, examples=["fmilin demo"])
@click.argument("directory", type=click.Path(path_type=Path), default="fmilin-demo")
@DEBUG
def command(directory: Path, debugging: Debugging) -> int:
    """Build a four-bar linkage as an FMU, linearize it, and compare with a naive Jacobian.

    Leaves four_bar.fmu, four_bar.mat and eigenvalues.png in DIRECTORY, fmilin-demo by default. Needs a C compiler.
    """
    _prepare(directory)
    return work(lambda runner: _demo(directory, runner), debug=debugging.debug)


def _prepare(directory: Path) -> None:
    """Make the folder, and make sure that the files can be written, before the work begins."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"Cannot make the folder '{directory}': {error.strerror}. Choose another name for the folder."
        ) from None
    for name in (FMU, MAT, PICTURE):
        check_writable(directory / name)


def _demo(directory: Path, runner: JobRunner) -> None:
    from fmilin.fmi.write import build_fmu
    from fmilin.report.linear_pictures import eigenvalue_figure
    from fmilin.report.table import show_linear
    from fmilin.systems import four_bar

    fmu, mat, picture = (directory / name for name in (FMU, MAT, PICTURE))
    say = runner.results.write
    say(f"A planar four-bar linkage in Cartesian coordinates becomes an FMU: {fmu}\n")
    build_fmu(four_bar(), fmu, fmi_version="2.0", directional_derivatives=True)
    say(f"The command 'fmilin linearize {_quote_path(fmu)} -o {_quote_path(mat)}' does this:\n\n")
    true, point = linear_model(CommandRequest(str(fmu)), runner)
    deliver(true, point, [mat], runner)
    runner.print_shown(show_linear, true, adjusted=point.adjusted)
    say("\n")
    naive, _ = linear_model(CommandRequest(str(fmu), Loading(constraints=[])), runner)
    _compare(true, naive, runner.results.styled)
    runner.draw(picture, eigenvalue_figure(true, naive), "true and false eigenvalues")
    say(
        f"\nIn {directory}: {FMU}, {MAT} and the picture {PICTURE}. Type next:\n\n"
        f"  fmilin info {_quote_path(fmu)}\n"
        f"  fmilin linearize {_quote_path(fmu)} --outputs 'phi,der(w)' --set phi=2.0\n"
        f"  fmilin convert {_quote_path(mat)} -o {_quote_path(mat.with_suffix('.json'))}\n"
    )


def _quote_path(path: Path) -> str:
    return quote(str(path))


def _compare(true: LinearModel, naive: LinearModel, stream: TextIO) -> None:
    """Print both spectra side by side, and what the difference means."""
    from fmilin.report.facts import print_fact
    from fmilin.report.linear_pictures import without
    from fmilin.report.numbers import eigenvalue_text
    from fmilin.report.terminal import open_terminal
    from fmilin.support.tables import build_table

    false = without(naive.eigenvalues(), true.eigenvalues())
    N = len(naive.states)
    heads = ("True eigenvalues [1/s]", f"Naive: Jacobian of all {N} states [1/s]")
    mine = [eigenvalue_text(m.eigenvalue, pair=m.is_oscillatory) for m in true.modes()]
    theirs = [eigenvalue_text(m.eigenvalue, pair=m.is_oscillatory) for m in reversed(naive.modes())]
    rows = [(mine[i] if i < len(mine) else "", text) for i, text in enumerate(theirs)]
    growing = int((false.real > 0).sum())
    verdict = (
        f"{len(false)} of the naive model's {N} eigenvalues are spurious: they are the differentiated constraints, "
        f"scattered around zero by rounding. {growing} of them have a positive real part, as if the linkage were "
        "unstable."
    )
    with open_terminal(stream) as terminal:
        terminal.print(build_table(heads, rows, columns="RR"))
        terminal.print()
        for word, text in (("Meaning", verdict), ("LQR, true", _regulator(true)), ("LQR, naive", _regulator(naive))):
            print_fact(terminal, word, text)


def _regulator(linear: LinearModel) -> str:
    """Design a linear-quadratic regulator with unit weights; return the gains, or why there are none."""
    import numpy as np
    from scipy.linalg import LinAlgError, solve_continuous_are

    P, nu = len(linear.states), len(linear.inputs)
    try:
        X = solve_continuous_are(linear.A, linear.B, np.eye(P), np.eye(nu))
    except (LinAlgError, ValueError):
        return (
            "no controller: the Riccati equation has no stabilizing solution, because the input cannot move the false "
            "eigenvalues and some of them do not decay."
        )
    K = linear.B.T @ X
    rightmost = float(np.linalg.eigvals(linear.A - linear.B @ K).real.max())
    gains = ", ".join(f"{gain:.5g}" for gain in K.ravel())
    return f"gains {gains}; the closed loop decays with real part {rightmost:.4g} 1/s or faster."
