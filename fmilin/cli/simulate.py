"""``fmilin simulate MODEL``: integrate on the manifold; as CSV, as a picture, beside a linear model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fmilin.cli.files import Command
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.model_options import (
    POINT,
    PROJECT,
    Constraints,
    FileOptions,
    Running,
    constraints_options,
    file_options,
    running_options,
)
from fmilin.cli.options import (
    MODEL,
    Renamed,
    grouped,
    new_file_option,
    number_option,
    one_of,
    outputs_option,
    path_option,
    picture_option,
    settings_option,
)
from fmilin.cli.progress import progress_bar
from fmilin.cli.request import Request, at_point, request_of
from fmilin.ground.errors import UsageError
from fmilin.output.formats import listed, suffixes

if TYPE_CHECKING:
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.motion.simulation.inputs import InputTable
    from fmilin.motion.simulation.linear_response import Comparison
    from fmilin.motion.simulation.method import Method
    from fmilin.motion.simulation.stabilization import Stabilization
    from fmilin.motion.simulation.trajectory import Trajectory


@dataclass(frozen=True)
class Run:
    """How to integrate, as the command line says."""

    stop_time: float
    start_time: float | None
    step: float | None
    stabilization: str
    method: str
    tolerance: float | None
    longest_step: float | None
    energy: str | None
    keep_energy: bool

    def integrator(self) -> Method:
        """Return the method with its tolerances; RK4 steps from sample to sample when no step is given."""
        from fmilin.motion.simulation.method import Method

        relative = Method().relative if self.tolerance is None else self.tolerance
        longest = self.longest_step
        if longest is None:
            longest = self.step if self.method == "RK4" and self.step is not None else float("inf")
        return Method(self.method, relative, relative / 100, longest)

    def on_manifold(self) -> Stabilization:
        """Return the stabilization."""
        from fmilin.motion.simulation.stabilizations import Projection, stabilization_named

        return Projection(keeps_energy=True) if self.keep_energy else stabilization_named(self.stabilization)


RUN = grouped(
    "run",
    Run,
    number_option("--stop-time", metavar="T", required=True, help="In seconds."),
    number_option("--start-time", metavar="T", help="In seconds; the model's own start."),
    number_option("--step", metavar="H", help="Of the samples, in seconds; a 500th of the whole."),
    click.option(
        "--stabilization",
        "--formulation",
        "stabilization",
        cls=Renamed,
        type=one_of("projection", "local", "baumgarte", "none"),
        default="projection",
        help="How the states are kept on the manifold.",
    ),
    click.option(
        "--method",
        type=one_of("DOP853", "RK45", "RK23", "Radau", "BDF", "RK4"),
        default="DOP853",
        help="Radau and BDF for stiff models.",
    ),
    number_option("--tolerance", metavar="R", help="Relative, of one step; 1e-9."),
    number_option("--longest-step", metavar="H", help="Of the integrator, in seconds; the step of RK4."),
    click.option("--energy", metavar="TEXT", help="An expression or a variable that is recorded as the energy."),
    click.option("--keep-energy", is_flag=True, help="Project onto the energy of the start, too."),
)


@click.command(
    cls=Command,
    examples=[
        "fmilin simulate four_bar.fmu --set phi=2.0 --stop-time 5 -o run.csv",
        "fmilin simulate four_bar.fmu --set phi=2.2 --stop-time 5 --against plant.mat",
    ],
)
@MODEL
@RUN
@path_option("--input", "inputs", metavar="FILE.csv", help="Inputs over time: a column 'time', and one per input.")
@settings_option("Repeatable: a start value, parameter or input.")
@constraints_options("Integrate all states as they are, as other tools do.")
@file_options
@POINT
@PROJECT
@outputs_option()
@path_option(
    "--against", metavar="LINEAR", help=f"Compare with a linear model: {listed('linear model', complete=True)}"
)
@new_file_option("-o", "--output", suffix=suffixes("motion"), help="Every state and output over time.")
@picture_option("A picture.")
@running_options
def command(
    model: str,
    run: Run,
    inputs: Path | None,
    settings: dict[str, float],
    constrained: Constraints,
    opened: FileOptions,
    saved: Path | None,
    outputs: list[str] | None,
    against: Path | None,
    output: Path | None,
    plot: Path | None,
    running: Running,
    *,
    project: bool,
) -> int:
    """Integrate a model on the manifold of its constraints.

    Without -o or --plot a summary is printed.
    """
    if run.keep_energy and run.stabilization != "projection":
        raise UsageError("--keep-energy goes with --stabilization projection. Leave one of them out.")
    request = request_of(
        model, running, constrained, opened,
        settings=settings, outputs=outputs, time=run.start_time, project=project, saved=saved,
    )  # fmt: skip

    def job(runner: JobRunner) -> None:
        table = _inputs(inputs)
        loaded, start = _opened(request, runner)
        trajectory = _simulated(loaded, start, run, table)
        runner.restore_directory()
        comparison = None if against is None else _compared(trajectory, against, run, table)
        name = loaded.info.name
        _write(trajectory, comparison, name, output, plot, runner)
        _print(trajectory, comparison, name, runner, quiet=bool(output or plot))

    return running.work(job, model)


# -- the job -----------------------------------------------------------------------------------------


def _opened(request: Request, runner: JobRunner) -> tuple[Model, OperatingPoint]:
    model, point = at_point(request, runner)
    outputs = request.how.outputs
    return model if outputs is None else model.with_interface(None, outputs), point


def _simulated(model: Model, point: OperatingPoint, run: Run, table: InputTable | None) -> Trajectory:
    import fmilin as fl

    with progress_bar(model.info.name, point.time, run.stop_time) as progress:
        return fl.simulate(
            model,
            point,
            stop_time=run.stop_time,
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
    from fmilin.motion.simulation.trajectory import read_inputs

    return read_inputs(path)


def _compared(trajectory: Trajectory, path: Path, run: Run, table: InputTable | None) -> Comparison:
    from fmilin.linear_model.model import LinearModel
    from fmilin.motion.simulation.linear_response import compare

    return compare(trajectory, LinearModel.load(path), inputs=table, method=run.integrator())


def _write(
    trajectory: Trajectory,
    comparison: Comparison | None,
    name: str,
    output: Path | None,
    plot: Path | None,
    runner: JobRunner,
) -> None:
    contents: dict[Path, bytes] = {}
    if output is not None:
        from fmilin.motion.simulation.trajectory import trajectory_as_csv

        contents[output] = trajectory_as_csv(trajectory)
    if plot is not None:
        contents[plot] = _picture(trajectory, comparison, name, plot.suffix)
    runner.write_files(contents)
    if plot is not None:
        runner.say(f"{plot}: {name} over time\n")


def _picture(trajectory: Trajectory, comparison: Comparison | None, name: str, suffix: str) -> bytes:
    try:
        from fmilin.output.report.trajectory import trajectory_picture

        return trajectory_picture(trajectory, comparison, title=name, suffix=suffix)
    except ModuleNotFoundError as error:
        raise UsageError(f"A picture needs {error.name}, which is not installed: pip install {error.name}.") from None


def _print(trajectory: Trajectory, comparison: Comparison | None, name: str, runner: JobRunner, *, quiet: bool) -> None:
    from fmilin.output.report.trajectory import print_comparison, print_trajectory

    if quiet:
        for remark in trajectory.remarks:
            runner.say(f"{remark.heading}: {remark}\n")
    else:
        print_trajectory(trajectory, name, runner.results)
    if comparison is not None:
        print_comparison(comparison, "the linear model", runner.results)
