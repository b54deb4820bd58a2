"""``fmilin floquet MODEL``: a motion that repeats, and what becomes of deviations from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import model_options, options
from fmilin.cli.command import Command
from fmilin.cli.duration import progress_bar
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.options import assignments, names_field, names_option, number_field, one_of, option, read_by, repeated
from fmilin.cli.request import Request, open_model, request_of
from fmilin.cli.sweep import axes_of
from fmilin.errors import UsageError
from fmilin.export.files import check_output, dumps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.periodic.chart import FloquetChart
    from fmilin.periodic.model import PeriodicModel
    from fmilin.periodic.orbit import OrbitRequest, PeriodicOrbit

MOST_POINTS = 512  # phases that are taken without being asked for
FINE = 1e-8  # error of the exponents, times the period, at which no more phases are taken


@dataclass(frozen=True)
class Orbit:
    """What stands on the command line about the motion."""

    period: float | None = number_field("T", "In seconds, of what forces the motion; found where it is left out.")
    turn: str | None = option(metavar="NAME", help="The state that grows by one turn a period.")
    fix: Mapping[str, float] = repeated(
        "NAME=VALUE",
        "Repeatable: a state at the start of the period, an input or a parameter that keeps this value.",
        assignments,
    )
    free: Sequence[str] | None = names_field("Inputs and parameters to solve for; period: --period is a first guess.")
    steady: Sequence[str] | None = names_field("States that may gain something every period: distances gone.")
    guess: Mapping[str, float] = repeated("NAME=VALUE", "Repeatable: where the search starts.", assignments)
    inputs: Path | None = None
    method: str = option(
        type=one_of("DOP853", "RK45", "Radau", "BDF"), default="DOP853", help="Radau and BDF for stiff models."
    )
    tolerance: float = number_field("R", "Relative, of one step of the integration.", default=1e-12)
    segments: int | None = option(metavar="K", type=int, help="Stretches of multiple shooting; 1, then 8.")

    def request(self, start: OperatingPoint, time: float | None) -> OrbitRequest:
        """Return what is asked of the motion; ``start`` as in :class:`OrbitRequest`."""
        from fmilin.periodic.orbit import OrbitRequest
        from fmilin.simulation.method import Method
        from fmilin.simulation.run import RunRequest
        from fmilin.simulation.trajectory import read_inputs

        run = RunRequest(
            inputs=None if self.inputs is None else read_inputs(self.inputs),
            method=Method(self.method, self.tolerance, self.tolerance / 10),
        )
        return OrbitRequest(
            self.period, self.turn, self.fix, tuple(self.free or ()), tuple(self.steady or ()), start, time, run,
            self.segments,
        )  # fmt: skip


@click.command(
    cls=Command,
    examples=[
        "fmilin floquet rotor.toml --turn shaft.q --fix shaft.v=30",
        "fmilin floquet pendulum.fmu --period 0.02 -o periodic.nc",
        "fmilin floquet mathieu.py:model --period 3.14159265358979 --vary a=0:6:9 --vary q=0:3:5 --plot chart.png",
    ],
)
@options.MODEL
@options.grouped("orbit", Orbit, model_options.INPUTS_OVER_TIME)
@click.option(
    "--vary",
    metavar="NAME=FROM:TO:COUNT",
    multiple=True,
    callback=read_by(axes_of),
    help="Repeatable: over a range or [v1,v2,...]; one: a Campbell diagram, two: a stability chart (-o: .json).",
)
@options.settings_option("Repeatable: a start value, parameter or input.")
@options.TIME
@model_options.POINT
@model_options.PROJECT
@model_options.of_model("Treat all states as independent.")
@names_option("--independent", "States to keep as coordinates.")
@options.OUTPUTS
@click.option("--points", metavar="M", type=int, help="Phases; 64, and more where the multipliers need them.")
@options.outputs_of("periodic model")
@options.picture_option("A picture of the multipliers.")
@options.json_option("What Floquet's theory says, as one JSON document on standard output.")
def command(
    model: str,
    orbit: Orbit,
    vary: dict[str, list[float]],
    settings: dict[str, float],
    points: int | None,
    output: tuple[Path, ...],
    plot: Path | None,
    *,
    as_json: bool,
    **given: Any,
) -> int:
    """Find a motion that repeats, and say what becomes of small deviations from it, period by period.

    The period is given (--period), that of a turn (--turn), or else found. A table is printed; -o saves the linear
    models along the motion for 'fmilin plot'.
    """
    for path in output:
        check_output(path, "periodic model")
        if vary and path.suffix.lower() != ".json":
            raise UsageError(f"-o '{path}': a chart (--vary) is saved as .json.")
    if vary and plot and len(vary) > 2:
        raise UsageError(f"--plot draws over one or two axes, and {len(vary)} vary.")
    request = request_of(model, settings={**settings, **orbit.guess, **orbit.fix}, **given)

    def job(runner: JobRunner) -> None:
        opened = open_model(request, runner)
        if vary:
            chart = _charted(opened, request, orbit, vary, points)
            _deliver_chart(chart, output, plot, runner, as_json=as_json)
            return
        _deliver(*_made(opened, request, orbit, points), output, plot, runner, as_json=as_json)

    return request.work(job)


def _made(model: Model, request: Request, orbit: Orbit, points: int | None) -> tuple[PeriodicOrbit, PeriodicModel]:
    """Return the orbit and the linear models along it, at as many phases as the multipliers need."""
    from fmilin.periodic.linearize import linearize_periodic_as
    from fmilin.periodic.search import orbit_as
    from fmilin.trimming.procedure import point_of

    closed = orbit_as(model, orbit.request(point_of(model, request.point.completed()), request.point.time))
    count = points or 64
    periodic = linearize_periodic_as(model, closed, request.how, count)
    while points is None and count < MOST_POINTS and _error(periodic) * closed.period > FINE:
        count *= 2
        finer = linearize_periodic_as(model, closed, request.how, count)
        if _error(finer) > 0.5 * _error(periodic):
            break
        periodic = finer
    return closed, periodic


def _charted(
    model: Model, request: Request, orbit: Orbit, vary: dict[str, list[float]], points: int | None
) -> FloquetChart:
    from fmilin.periodic.chart import chart_as
    from fmilin.trimming.procedure import point_of

    start = point_of(model, request.point.completed())
    with progress_bar(model.info.name, 0.0, 1.0) as progress:
        own = orbit.request(start, request.point.time)
        return chart_as(model, vary, own, request.how, points or 64, lambda done, every: progress(done / every))


def _deliver_chart(
    chart: FloquetChart, files: Sequence[Path], plot: Path | None, runner: JobRunner, *, as_json: bool
) -> None:
    from fmilin.export.periodic_file import chart_document, dumps_chart

    runner.restore_directory()
    stable = f"{int(chart.stable.sum())} of {int(chart.ok.sum())} points stable"
    runner.write_files({path: dumps_chart(chart) for path in files})
    for path in files if not as_json else ():
        runner.say(f"{path}: {stable}\n")
    if plot is not None:
        runner.draw(plot, chart.campbell() if len(chart.axes) == 1 else chart.stability(), stable)
    if as_json:
        runner.print_json(chart_document(chart))
    elif not files and plot is None:
        from fmilin.report.periodic import show_chart

        runner.print_shown(show_chart, chart)


def _error(periodic: PeriodicModel) -> float:
    return periodic.floquet().accuracy["exponents"]


def _deliver(
    orbit: PeriodicOrbit,
    periodic: PeriodicModel,
    files: Sequence[Path],
    plot: Path | None,
    runner: JobRunner,
    *,
    as_json: bool,
) -> None:
    runner.restore_directory()
    floquet = periodic.floquet()
    runner.write_files({path: dumps(periodic, path) for path in files})
    if not as_json and (files or plot is not None):
        runner.say_remarks(floquet.remarks)
        for path in files:
            runner.say(f"{path}: period {orbit.period:.9g} s, {floquet.verdict}\n")
    if plot is not None:
        from fmilin.report.periodic import multiplier_figure

        runner.draw(plot, multiplier_figure(floquet), f"period {orbit.period:.9g} s, {floquet.verdict}")
    if as_json:
        from fmilin.export.periodic_file import summary_of

        runner.print_json(summary_of(periodic, floquet))
    elif not files and plot is None:
        from fmilin.report.periodic import show_floquet

        runner.print_shown(show_floquet, floquet, orbit=orbit)
