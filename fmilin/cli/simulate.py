"""``fmilin simulate MODEL``: integrate on the manifold; as CSV, as a picture, with a linear model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import fmilin as fl
from fmilin.cli import model_options
from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, OPTIONS, command_option, new_file, options_of_commands, take
from fmilin.cli.duration import progress_bar
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import decorate_with_delay_rejection
from fmilin.cli.request import at_point, build_request
from fmilin.errors import UsageError
from fmilin.formats import Writing, listed, require_codec, suffixes
from fmilin.options import Linearization, Simulation
from fmilin.support.interrupts import stoppable
from fmilin.trimming.trim_request import PointRequest

if TYPE_CHECKING:
    from fmilin.composition.linear_response import ResponseComparison
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.simulation.inputs import InputTable
    from fmilin.simulation.method import Method
    from fmilin.simulation.stabilization import Stabilization
    from fmilin.simulation.trajectory import Trajectory


@options_of_commands
class SimulateOptions:
    """The options of ``simulate``: the model to compare with, and the output."""

    inputs: Path | None = model_options.INPUTS_OVER_TIME
    against: Path | None = command_option(
        None,
        f"Compare with a linear model: {listed('linear model', complete=True)}",
        OPTIONS,
        "path",
        metavar="LINEAR",
    )
    output: Path | None = new_file("Every state and output over time.", suffixes("motion"), flag="--output", short="-o")
    plot: Path | None = new_file("A picture.", suffixes("picture"))


def integrator(run: Simulation) -> Method:
    """Return the method with its tolerances; RK4 steps from sample to sample when no step is given."""
    from fmilin.simulation.method import Method

    relative = Method().relative if run.tolerance is None else run.tolerance
    longest = run.longest_step
    if longest is None:
        longest = run.step if run.method == "RK4" and run.step is not None else float("inf")
    return Method(run.method, relative, relative / 100, longest)


def stabilization(run: Simulation) -> Stabilization:
    """Return the stabilization of a run."""
    from fmilin.simulation.stabilizations import Projection, stabilization_named

    return Projection(keeps_energy=True) if run.keep_energy else stabilization_named(run.stabilization)


@click.command(
    cls=Command,
    examples=[
        "fmilin simulate four_bar.fmu --set phi=2.0 --stop-time 5 -o run.csv",
        "fmilin simulate four_bar.fmu --set phi=2.2 --stop-time 5 --against plant.mat",
    ],
)
@MODEL
@decorate_with_delay_rejection("The integrators take models without delays. The linear model has exact time responses.")
@take("run", Simulation)
@model_options.model_options(model_options.DiscoveryOptions)
@take("point", PointRequest, omit=("time", "guess"))
@take("how", Linearization, only=("outputs",))
@take("results", SimulateOptions)
def command(model: str, run: Simulation, point: PointRequest, results: SimulateOptions, **request_options: Any) -> int:
    """Integrate a model on the manifold of its constraints.

    Without -o or --plot a summary is printed.
    """
    if run.keep_energy and run.stabilization != "projection":
        raise UsageError("--keep-energy requires --stabilization projection. Leave one of them out.")
    request = build_request(model, point=replace(point, time=run.start_time), **request_options)
    inputs, against, output, plot = results.inputs, results.against, results.output, results.plot

    def job(runner: JobRunner) -> None:
        from fmilin.composition.linear_response import compare
        from fmilin.linear_model.model import LinearModel
        from fmilin.simulation.trajectory import read_inputs

        table = None if inputs is None else read_inputs(inputs)
        loaded, start = at_point(request, runner)
        if request.how.outputs is not None:
            loaded = loaded.with_interface(None, request.how.outputs)
        trajectory = _simulate(loaded, start, run, table)
        runner.restore_directory()
        comparison = None
        if against is not None:
            comparison = compare(trajectory, LinearModel.load(against), inputs=table, method=integrator(run))
        name = loaded.info.name
        if output is not None:
            runner.write_files({output: require_codec(output, "motion").dumps(trajectory, Writing())})
        if plot is not None:
            from fmilin.report.trajectory_report import trajectory_figure

            runner.draw(plot, trajectory_figure(trajectory, comparison, title=name), f"{name} over time")
        _print(trajectory, comparison, name, runner, quiet=bool(output or plot))
        runner.end_where_interrupted(trajectory.remarks)

    return request.work(job)


def _simulate(model: Model, point: OperatingPoint, run: Simulation, table: InputTable | None) -> Trajectory:
    with stoppable() as stop, progress_bar(model.info.name, point.time, run.stop_time) as progress:
        return fl.simulate(
            model,
            point,
            stop_time=run.stop_time,
            step=run.step,
            inputs=table,
            stabilization=stabilization(run),
            method=integrator(run),
            energy=run.energy,
            progress=progress,
            stop=stop,
        )


def _print(
    trajectory: Trajectory, comparison: ResponseComparison | None, name: str, runner: JobRunner, *, quiet: bool
) -> None:
    from fmilin.report.trajectory_report import show_comparison, show_trajectory

    if quiet:
        runner.say_remarks(trajectory.remarks)
    else:
        runner.print_shown(show_trajectory, trajectory, name=name)
    if comparison is not None:
        runner.print_shown(show_comparison, comparison, name="the linear model")
