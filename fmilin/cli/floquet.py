"""``fmilin floquet MODEL``: a motion that repeats, and what becomes of deviations from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import model_options
from fmilin.cli.command import Command
from fmilin.cli.derive import (
    MODEL,
    ValueReader,
    command_option,
    json_switch,
    new_file,
    new_files,
    options_of_commands,
    take,
)
from fmilin.cli.duration import progress_bar
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import explain_rejections, linearization_options, reject_options
from fmilin.cli.request import CommandRequest, build_request, open_model
from fmilin.cli.sweep import read_axes
from fmilin.errors import UsageError
from fmilin.export.files import check_output, dumps
from fmilin.formats import suffixes
from fmilin.options import Orbit
from fmilin.options.groups import MOTION, POINT
from fmilin.trimming.trim_request import PointRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.periodic.chart import FloquetChart
    from fmilin.periodic.orbit import OrbitRequest, PeriodicOrbit
    from fmilin.periodic.periodic_model import PeriodicModel

MAX_POINTS = 512  # phases that are taken without being asked for
FINE_EXPONENT_ERROR = 1e-8  # error of the exponents, times the period, at which no more phases are taken


@options_of_commands
class FloquetOptions:
    """The options of ``floquet``: varied quantities, phases of linearization, and output files."""

    vary: dict[str, list[float]] = command_option(
        {},
        "A state, input or parameter, over a range or [v1,v2,...]; one: a Campbell diagram, two: a stability chart "
        "(-o: .json).",
        POINT,
        "special",
        metavar="NAME=FROM:TO:COUNT",
        reading=ValueReader(str, read_axes, is_repeatable=True),
    )
    inputs: Path | None = model_options.INPUTS_OVER_TIME
    points: int | None = command_option(
        None, "Phases; 64, and more where the multipliers need them.", MOTION, "integer", metavar="M"
    )
    output: tuple[Path, ...] = new_files("periodic model")
    plot: Path | None = new_file("A picture of the multipliers.", suffixes("picture"))
    as_json: bool = json_switch("What Floquet's theory says, as one JSON document on standard output.")


@dataclass(frozen=True)
class _OrbitSearch:
    """The search for the orbit."""

    orbit: Orbit
    inputs: Path | None

    def request(self, start: OperatingPoint, time: float | None) -> OrbitRequest:
        """Return what is asked of the motion; ``start`` as in :class:`OrbitRequest`."""
        from fmilin.periodic.orbit import OrbitRequest
        from fmilin.simulation.method import Method
        from fmilin.simulation.run import RunRequest
        from fmilin.simulation.trajectory import read_inputs

        orbit = self.orbit
        run = RunRequest(
            inputs=None if self.inputs is None else read_inputs(self.inputs),
            method=Method(orbit.method, orbit.tolerance, orbit.tolerance / 10),
        )
        return OrbitRequest(
            orbit.period, orbit.turn, orbit.fixed, tuple(orbit.free), tuple(orbit.steady), start, time, run,
            orbit.segments,
        )  # fmt: skip


@click.command(
    cls=Command,
    examples=[
        "fmilin floquet rotor.toml --turn shaft.q --fix shaft.v=30",
        "fmilin floquet pendulum.fmu --period 0.02 -o periodic.nc",
        "fmilin floquet mathieu.py:model --period 3.14159265358979 --vary a=0:6:9 --vary q=0:3:5 --plot chart.png",
    ],
)
@MODEL
@take("orbit", Orbit)
@model_options.model_options(model_options.DiscoveryOptions)
@take("point", PointRequest, omit=("guess",))
@linearization_options("linearize_periodic")
@take("results", FloquetOptions)
def command(model: str, orbit: Orbit, point: PointRequest, results: FloquetOptions, **request_options: Any) -> int:
    """Find a motion that repeats, and say what becomes of small deviations from it, period by period.

    The period is given (--period), that of a turn (--turn), or else found. A table is printed; -o saves the linear
    models along the motion for 'fmilin plot'.
    """
    vary, output, plot, as_json = results.vary, results.output, results.plot, results.as_json
    for path in output:
        check_output(path, "periodic model")
        if vary and path.suffix.lower() != ".json":
            raise UsageError(f"-o '{path}': a chart (--vary) is saved as .json.")
    if vary and plot and len(vary) > 2:
        raise UsageError(f"--plot draws over one or two axes, and {len(vary)} are varied.")
    if vary:
        reject_options(explain_rejections("floquet_chart"), "--vary")
    settings = {**point.settings, **orbit.guess, **orbit.fixed}
    request = build_request(model, point=replace(point, settings=settings), **request_options)
    search, points = _OrbitSearch(orbit, results.inputs), results.points

    def job(runner: JobRunner) -> None:
        opened = open_model(request, runner)
        if vary:
            chart = _compute_chart(opened, request, search, vary, points)
            _deliver_chart(chart, output, plot, runner, as_json=as_json)
            return
        _deliver(*_compute_orbit(opened, request, search, points), output, plot, runner, as_json=as_json)

    return request.work(job)


def _compute_orbit(
    model: Model, request: CommandRequest, search: _OrbitSearch, points: int | None
) -> tuple[PeriodicOrbit, PeriodicModel]:
    """Return the orbit and the linear models along it, at as many phases as the multipliers need."""
    from fmilin.periodic.periodic_linearization import linearize_orbit
    from fmilin.periodic.search import find_orbit
    from fmilin.trimming.request_point import find_point

    closed = find_orbit(model, search.request(find_point(model, request.point.complete()), request.point.time))
    count = points or 64
    periodic = linearize_orbit(model, closed, request.how, count)
    while points is None and count < MAX_POINTS and _error(periodic) * closed.period > FINE_EXPONENT_ERROR:
        count *= 2
        finer = linearize_orbit(model, closed, request.how, count)
        if _error(finer) > 0.5 * _error(periodic):
            break
        periodic = finer
    return closed, periodic


def _compute_chart(
    model: Model, request: CommandRequest, search: _OrbitSearch, vary: dict[str, list[float]], points: int | None
) -> FloquetChart:
    from fmilin.periodic.chart import compute_chart
    from fmilin.trimming.request_point import find_point

    start = find_point(model, request.point.complete())
    with progress_bar(model.info.name, 0.0, 1.0) as progress:
        orbit_request = search.request(start, request.point.time)
        return compute_chart(
            model, vary, orbit_request, request.how, points or 64, lambda done, count: progress(done / count)
        )


def _deliver_chart(
    chart: FloquetChart, files: Sequence[Path], plot: Path | None, runner: JobRunner, *, as_json: bool
) -> None:
    from fmilin.export.periodic_record import chart_document, dumps_chart

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
        from fmilin.export.periodic_record import summarize_periodic

        runner.print_json(summarize_periodic(periodic, floquet))
    elif not files and plot is None:
        from fmilin.report.periodic import show_floquet

        runner.print_shown(show_floquet, floquet, orbit=orbit)
