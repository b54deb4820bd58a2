"""``fmilin simulate MODEL``: integrate on the manifold; as CSV, as a picture, beside a linear model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import fmilin as fl
from fmilin.cli import model_options, options
from fmilin.cli.command import Command
from fmilin.cli.duration import progress_bar
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.options import number_field, one_of, option
from fmilin.cli.request import at_point, request_of
from fmilin.errors import UsageError
from fmilin.formats import listed, suffixes
from fmilin.support.interrupts import stoppable

if TYPE_CHECKING:
    from fmilin.composition.linear_response import Comparison
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.simulation.inputs import InputTable
    from fmilin.simulation.method import Method
    from fmilin.simulation.stabilization import Stabilization
    from fmilin.simulation.trajectory import Trajectory


@dataclass(frozen=True)
class Run:
    """How to integrate, as the command line says."""

    stop_time: float = number_field("T", "In seconds.", required=True)
    start_time: float | None = number_field("T", "In seconds; the model's own start.")
    step: float | None = number_field("H", "Of the samples, in seconds; a 500th of the whole.")
    stabilization: str = option(
        "--stabilization",
        "--formulation",
        cls=options.Renamed,
        type=one_of("projection", "local", "baumgarte", "none"),
        default="projection",
        help="How the states are kept on the manifold.",
    )
    method: str = option(
        type=one_of("DOP853", "RK45", "RK23", "Radau", "BDF", "RK4"),
        default="DOP853",
        help="Radau and BDF for stiff models.",
    )
    tolerance: float | None = number_field("R", "Relative, of one step; 1e-9.")
    longest_step: float | None = number_field("H", "Of the integrator, in seconds; the step of RK4.")
    energy: str | None = option(metavar="TEXT", help="An expression or a variable that is recorded as the energy.")
    keep_energy: bool = options.flag("Project onto the energy of the start, too.")

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

        return Projection(keeps_energy=True) if self.keep_energy else stabilization_named(self.stabilization)


@click.command(
    cls=Command,
    examples=[
        "fmilin simulate four_bar.fmu --set phi=2.0 --stop-time 5 -o run.csv",
        "fmilin simulate four_bar.fmu --set phi=2.2 --stop-time 5 --against plant.mat",
    ],
)
@options.MODEL
@options.grouped("run", Run)
@model_options.INPUTS_OVER_TIME
@options.settings_option("Repeatable: a start value, parameter or input.")
@model_options.of_model("Integrate all states as they are, as other tools do.")
@model_options.POINT
@model_options.PROJECT
@options.OUTPUTS
@options.path_option(
    "--against", metavar="LINEAR", help=f"Compare with a linear model: {listed('linear model', complete=True)}"
)
@options.new_file_option("-o", "--output", suffix=suffixes("motion"), help="Every state and output over time.")
@options.picture_option("A picture.")
def command(
    model: str,
    run: Run,
    inputs: Path | None,
    against: Path | None,
    output: Path | None,
    plot: Path | None,
    **given: Any,
) -> int:
    """Integrate a model on the manifold of its constraints.

    Without -o or --plot a summary is printed.
    """
    if run.keep_energy and run.stabilization != "projection":
        raise UsageError("--keep-energy goes with --stabilization projection. Leave one of them out.")
    request = request_of(model, time=run.start_time, **given)

    def job(runner: JobRunner) -> None:
        from fmilin.composition.linear_response import compare
        from fmilin.linear_model.model import LinearModel
        from fmilin.simulation.trajectory import read_inputs, trajectory_as_csv

        table = None if inputs is None else read_inputs(inputs)
        loaded, start = at_point(request, runner)
        if request.how.outputs is not None:
            loaded = loaded.with_interface(None, request.how.outputs)
        trajectory = _simulated(loaded, start, run, table)
        runner.restore_directory()
        comparison = None
        if against is not None:
            comparison = compare(trajectory, LinearModel.load(against), inputs=table, method=run.integrator())
        name = loaded.info.name
        if output is not None:
            runner.write_files({output: trajectory_as_csv(trajectory)})
        if plot is not None:
            from fmilin.report.trajectory import trajectory_figure

            runner.draw(plot, trajectory_figure(trajectory, comparison, title=name), f"{name} over time")
        _print(trajectory, comparison, name, runner, quiet=bool(output or plot))
        runner.end_where_interrupted(trajectory.remarks)

    return request.work(job)


def _simulated(model: Model, point: OperatingPoint, run: Run, table: InputTable | None) -> Trajectory:
    with stoppable() as stop, progress_bar(model.info.name, point.time, run.stop_time) as progress:
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
            stop=stop,
        )


def _print(trajectory: Trajectory, comparison: Comparison | None, name: str, runner: JobRunner, *, quiet: bool) -> None:
    from fmilin.report.trajectory import show_comparison, show_trajectory

    if quiet:
        runner.say_remarks(trajectory.remarks)
    else:
        runner.print_shown(show_trajectory, trajectory, name=name)
    if comparison is not None:
        runner.print_shown(show_comparison, comparison, name="the linear model")
