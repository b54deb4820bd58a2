"""``fmilin simulate MODEL``: integrate on the manifold; as CSV, as a picture, beside a linear model."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fmilin.cli.job_runner import JobRunner
from fmilin.cli.opening import open_model
from fmilin.cli.options import (
    MODEL,
    POINT,
    PROJECT,
    SETTINGS,
    Constraints,
    Renamed,
    Running,
    assignments,
    constraints_options,
    finite,
    names,
    one_of,
    outputs_option,
    path_option,
    running_options,
)
from fmilin.cli.progress import progress_bar
from fmilin.cli.request import Request
from fmilin.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.simulation.inputs import InputTable
    from fmilin.simulation.linear_response import Comparison
    from fmilin.simulation.method import Method
    from fmilin.simulation.stabilization import Stabilization
    from fmilin.simulation.trajectory import Trajectory

__all__ = ["Run", "command"]


@dataclass(frozen=True)
class Run:
    """How to integrate, as the command line says.

    Parameters
    ----------
    start, stop, step : float or None
        In seconds.
    stabilization, method : str
    tolerance, longest_step : float or None
    energy : str or None
        An expression or the name of a variable.
    keeps_energy : bool
    """

    stop: float
    start: float | None = None
    step: float | None = None
    stabilization: str = "projection"
    method: str = "DOP853"
    tolerance: float | None = None
    longest_step: float | None = None
    energy: str | None = None
    keeps_energy: bool = False

    def integrator(self) -> Method:
        """Return the method with its tolerances; RK4 steps from sample to sample when no step is given."""
        from fmilin.simulation.method import Method

        relative = Method().relative if self.tolerance is None else self.tolerance
        longest = self.longest_step
        if longest is None:
            longest = self.step if self.method == "RK4" and self.step is not None else float("inf")
        return Method(self.method, relative, relative / 100, longest)

    def on_manifold(self) -> Stabilization:
        """Return the stabilization."""
        from fmilin.simulation.stabilizations import Projection, stabilization_named

        return Projection(keeps_energy=True) if self.keeps_energy else stabilization_named(self.stabilization)


@click.command()
@MODEL
@click.option("--stop-time", metavar="T", type=float, required=True, help="In seconds.")
@click.option("--start-time", metavar="T", type=float, help="In seconds; the model's own start.")
@click.option("--step", metavar="H", type=float, help="Of the samples, in seconds; a 500th of the whole.")
@path_option("--input", "inputs", metavar="FILE.csv", help="Inputs over time: a column 'time', and one per input.")
@SETTINGS
@constraints_options("Integrate all states as they are, as other tools do.")
@POINT
@PROJECT
@outputs_option()
@click.option(
    "--stabilization",
    "--formulation",
    "stabilization",
    cls=Renamed,
    type=one_of("projection", "local", "baumgarte", "none"),
    default="projection",
    help="How the states are kept on the manifold.",
)
@click.option(
    "--method",
    type=one_of("DOP853", "RK45", "RK23", "Radau", "BDF", "RK4"),
    default="DOP853",
    help="Radau and BDF for stiff models.",
)
@click.option("--tolerance", metavar="R", type=float, help="Relative, of one step; 1e-9.")
@click.option("--longest-step", metavar="H", type=float, help="Of the integrator, in seconds; the step of RK4.")
@click.option("--energy", metavar="TEXT", help="An expression or a variable that is recorded as the energy.")
@click.option("--keep-energy", is_flag=True, help="Project onto the energy of the start, too.")
@path_option("--against", metavar="LINEAR", help="Compare with a linear model: .mat .npz .json")
@path_option("-o", "--output", metavar="FILE.csv", help="Every state and output over time.")
@path_option("--plot", metavar="FILE.png", help="A picture.")
@running_options
def command(
    model: str,
    stop_time: float,
    start_time: float | None,
    step: float | None,
    inputs: Path | None,
    settings: tuple[str, ...],
    constrained: Constraints,
    point: Path | None,
    outputs: str | None,
    stabilization: str,
    method: str,
    tolerance: float | None,
    longest_step: float | None,
    energy: str | None,
    against: Path | None,
    output: Path | None,
    plot: Path | None,
    running: Running,
    *,
    project: bool,
    keep_energy: bool,
) -> int:
    """Integrate a model on the manifold of its constraints.

    MODEL is model.fmu, path/to/file.py:name or package.module:name. Without -o or --plot a summary is printed.
    """
    constraints = constrained.asked()
    if keep_energy and stabilization != "projection":
        raise UsageError("--keep-energy goes with --stabilization projection. Leave one of them out.")
    _check_file(output, ".csv", "-o")
    _check_file(plot, ".png", "--plot")
    run = Run(
        stop=_finite(stop_time, "--stop-time"),
        start=finite(start_time, "--start-time"),
        step=finite(step, "--step"),
        stabilization=stabilization,
        method=method,
        tolerance=finite(tolerance, "--tolerance"),
        longest_step=finite(longest_step, "--longest-step"),
        energy=energy,
        keeps_energy=keep_energy,
    )
    request = Request(
        source=model,
        fmu=running.fmu(),
        settings=assignments(settings),
        constraints=constraints,
        constraints_file=constrained.constraints,
        outputs=names(outputs, "--outputs"),
        time=run.start,
        project=project,
        point=point,
    )

    def job(runner: JobRunner) -> None:
        table = _inputs(inputs)
        loaded, start = _opened(request, runner)
        trajectory = _simulated(loaded, start, run, table)
        runner.restore_directory()
        comparison = None if against is None else _compared(trajectory, against, run, table)
        name = loaded.info.name
        _write(trajectory, comparison, name, output, plot)
        _print(trajectory, comparison, name, runner, quiet=bool(output or plot))

    return running.work(job, model)


# -- the job -----------------------------------------------------------------------------------------


def _opened(request: Request, runner: JobRunner) -> tuple[Model, OperatingPoint]:
    from fmilin.cli.points import assembled, with_saved_point

    request, saved = with_saved_point(request)
    model, values = open_model(request, runner)
    point = assembled(model, values, request, saved)
    if request.outputs is not None:
        model = model.with_interface(None, request.outputs)
    return model, point


def _simulated(model: Model, point: OperatingPoint, run: Run, table: InputTable | None) -> Trajectory:
    import fmilin as fl

    with progress_bar(model.info.name, point.time, run.stop) as progress:
        return fl.simulate(
            model,
            point,
            stop_time=run.stop,
            step=run.step,
            inputs=table,
            stabilization=run.on_manifold(),
            method=run.integrator(),
            energy=run.energy,
            progress=progress,
        )


def _inputs(path: Path | None) -> InputTable | None:
    if path is None:
        return None
    from fmilin.simulation.table_files import read_inputs

    return read_inputs(path)


def _compared(trajectory: Trajectory, path: Path, run: Run, table: InputTable | None) -> Comparison:
    from fmilin.linear_model.model import LinearModel
    from fmilin.simulation.linear_response import compare

    return compare(trajectory, LinearModel.load(path), inputs=table, method=run.integrator())


def _write(
    trajectory: Trajectory, comparison: Comparison | None, name: str, output: Path | None, plot: Path | None
) -> None:
    """Make all files before the first is written."""
    from fmilin.export.atomic import write_atomically

    contents: dict[Path, bytes] = {}
    if output is not None:
        from fmilin.simulation.table_files import trajectory_as_csv

        contents[output] = trajectory_as_csv(trajectory)
    if plot is not None:
        contents[plot] = _picture(trajectory, comparison, name)
    for path, content in contents.items():
        write_atomically(path, content)


def _picture(trajectory: Trajectory, comparison: Comparison | None, name: str) -> bytes:
    try:
        from fmilin.report.trajectory_picture import trajectory_picture

        return trajectory_picture(trajectory, comparison, title=name)
    except ModuleNotFoundError as error:
        raise UsageError(f"A picture needs {error.name}, which is not installed: pip install {error.name}.") from None


def _print(trajectory: Trajectory, comparison: Comparison | None, name: str, runner: JobRunner, *, quiet: bool) -> None:
    from fmilin.report.trajectory_table import print_comparison, print_trajectory

    if quiet:
        for remark in trajectory.remarks:
            sys.stderr.write(f"Warning: {remark}\n")
    else:
        print_trajectory(trajectory, name, runner.results)
    if comparison is not None:
        print_comparison(comparison, "the linear model", runner.results)


def _check_file(path: Path | None, suffix: str, option: str) -> None:
    if path is None:
        return
    if path.suffix.lower() != suffix:
        raise UsageError(f"{option} '{path}': the file has to end in {suffix}.")
    from fmilin.export.atomic import check_writable

    check_writable(path)


def _finite(value: float, option: str) -> float:
    finite(value, option)
    return value
