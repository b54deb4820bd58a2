"""``fmilin floquet MODEL``: a motion that repeats, and what becomes of deviations from it."""

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
    assignments,
    grouped,
    json_option,
    names_option,
    number_option,
    one_of,
    outputs_of,
    outputs_option,
    path_option,
    picture_option,
    read_by,
    settings_option,
    time_option,
)
from fmilin.cli.request import Request, open_model, request_of
from fmilin.cli.sweep import axes_of
from fmilin.ground.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fmilin.families.periodic.chart import FloquetChart
    from fmilin.families.periodic.model import PeriodicModel
    from fmilin.families.periodic.orbit import PeriodicOrbit
    from fmilin.families.periodic.problem import OrbitRequest
    from fmilin.model.interface import Model, OperatingPoint

MOST_POINTS = 512  # phases that are taken without being asked for
FINE = 1e-8  # error of the exponents, times the period, at which no more phases are taken


@dataclass(frozen=True)
class Orbit:
    """What stands on the command line about the motion."""

    period: float | None
    turn: str | None
    fix: Mapping[str, float]
    free: Sequence[str] | None
    steady: Sequence[str] | None
    guess: Mapping[str, float]
    inputs: Path | None
    method: str
    tolerance: float
    segments: int | None

    def request(self, start: OperatingPoint, time: float | None) -> OrbitRequest:
        """Return what is asked of the motion; ``start`` as in :class:`OrbitRequest`."""
        from fmilin.families.periodic.problem import OrbitRequest
        from fmilin.motion.simulation.method import Method
        from fmilin.motion.simulation.run import RunRequest
        from fmilin.motion.simulation.trajectory import read_inputs

        run = RunRequest(
            inputs=None if self.inputs is None else read_inputs(self.inputs),
            method=Method(self.method, self.tolerance, self.tolerance / 10),
        )
        return OrbitRequest(
            self.period, self.turn, self.fix, tuple(self.free or ()), tuple(self.steady or ()), start, time, run,
            self.segments,
        )  # fmt: skip


ORBIT = grouped(
    "orbit",
    Orbit,
    number_option("--period", metavar="T", help="In seconds, of what forces the motion; found where it is left out."),
    click.option("--turn", metavar="NAME", help="The state that grows by one turn a period."),
    click.option(
        "--fix", metavar="NAME=VALUE", multiple=True, callback=read_by(assignments),
        help="Repeatable: a state at the start of the period, an input or a parameter that keeps this value.",
    ),
    names_option("--free", "Inputs and parameters to solve for; period: --period is a first guess."),
    names_option("--steady", "States that may gain something every period: distances gone."),
    click.option(
        "--guess", metavar="NAME=VALUE", multiple=True, callback=read_by(assignments),
        help="Repeatable: where the search starts."
    ),
    path_option("--input", "inputs", metavar="FILE.csv", help="Inputs over time: a column 'time', and one per input."),
    click.option(
        "--method", type=one_of("DOP853", "RK45", "Radau", "BDF"), default="DOP853",
        help="Radau and BDF for stiff models."
    ),
    number_option("--tolerance", metavar="R", default=1e-12, help="Relative, of one step of the integration."),
    click.option("--segments", metavar="K", type=int, help="Stretches of multiple shooting; 1, then 8."),
)  # fmt: skip


@click.command(
    cls=Command,
    examples=[
        "fmilin floquet rotor.toml --turn shaft.q --fix shaft.v=30",
        "fmilin floquet pendulum.fmu --period 0.02 -o periodic.nc",
        "fmilin floquet mathieu.py:model --period 3.14159265358979 --vary a=0:6:19 --vary q=0:3:10 --plot chart.png",
    ],
)
@MODEL
@ORBIT
@click.option(
    "--vary",
    metavar="NAME=FROM:TO:COUNT",
    multiple=True,
    callback=read_by(axes_of),
    help="Repeatable: over a range or [v1,v2,...]; one: a Campbell diagram, two: a stability chart (-o: .json).",
)
@settings_option("Repeatable: a start value, parameter or input.")
@time_option()
@POINT
@PROJECT
@constraints_options("Treat all states as independent.")
@names_option("--independent", "States to keep as coordinates.")
@outputs_option()
@file_options
@click.option("--points", metavar="M", type=int, help="Phases; 64, and more where the multipliers need them.")
@outputs_of("periodic model")
@picture_option("A picture of the multipliers.")
@json_option("What Floquet's theory says, as one JSON document on standard output.")
@running_options
def command(
    model: str,
    orbit: Orbit,
    vary: dict[str, list[float]],
    settings: dict[str, float],
    time: float | None,
    saved: Path | None,
    constrained: Constraints,
    independent: list[str] | None,
    outputs: list[str] | None,
    opened: FileOptions,
    points: int | None,
    output: tuple[Path, ...],
    plot: Path | None,
    running: Running,
    *,
    project: bool,
    as_json: bool,
) -> int:
    """Find a motion that repeats, and say what becomes of small deviations from it, period by period.

    The period is given (--period), that of a turn (--turn), or else found. A table is printed; -o saves the linear
    models along the motion for 'fmilin plot'.
    """
    from fmilin.output.export.files import check_output

    for path in output:
        check_output(path, "periodic model")
        if vary and path.suffix.lower() != ".json":
            raise UsageError(f"-o '{path}': a chart (--vary) is saved as .json.")
    if vary and plot and len(vary) > 2:
        raise UsageError(f"--plot draws over one or two axes, and {len(vary)} vary.")
    request = request_of(
        model, running, constrained, opened,
        settings={**settings, **orbit.guess, **orbit.fix}, time=time, project=project, saved=saved, outputs=outputs,
        independent=independent,
    )  # fmt: skip

    def job(runner: JobRunner) -> None:
        if vary:
            _deliver_chart(
                _charted(open_model(request, runner), request, orbit, vary, points), output, plot, runner, as_json
            )
            return
        closed, periodic = _made(open_model(request, runner), request, orbit, points)
        _deliver(closed, periodic, output, plot, runner, as_json=as_json)

    return running.work(job, model)


def _made(model: Model, request: Request, orbit: Orbit, points: int | None) -> tuple[PeriodicOrbit, PeriodicModel]:
    """Return the orbit and the linear models along it, at as many phases as the multipliers need."""
    from fmilin.families.periodic.linearize import linearize_periodic_as
    from fmilin.families.periodic.search import orbit_as
    from fmilin.points.described import point_of

    point = request.point.completed()
    start = point_of(model, point)
    closed = orbit_as(model, orbit.request(start, request.point.time))
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
    from fmilin.cli.progress import progress_bar
    from fmilin.families.periodic.chart import chart_as
    from fmilin.points.described import point_of

    start = point_of(model, request.point.completed())
    with progress_bar(model.info.name, 0.0, 1.0) as progress:
        own = orbit.request(start, request.point.time)
        return chart_as(model, vary, own, request.how, points or 64, lambda done, every: progress(done / every))


def _deliver_chart(
    chart: FloquetChart,
    files: Sequence[Path],
    plot: Path | None,
    runner: JobRunner,
    as_json: bool,  # noqa: FBT001
) -> None:
    from fmilin.output.export.periodic_file import dumps_chart

    runner.restore_directory()
    contents = {path: dumps_chart(chart) for path in files}
    if plot is not None:
        from fmilin.output.report.figures import rendered

        contents[plot] = rendered(chart.campbell() if len(chart.axes) == 1 else chart.stability(), plot.suffix)
    runner.write_files(contents)
    if as_json:
        runner.results.write(dumps_chart(chart).decode())
    elif not contents:
        from fmilin.output.report.periodic_tables import print_chart

        print_chart(chart, runner.results)
    else:
        for path in contents:
            runner.say(f"{path}: {int(chart.stable.sum())} of {int(chart.ok.sum())} points stable\n")


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
    """Write the files; then JSON or, without files, the table."""
    from fmilin.output.export.files import dumps

    runner.restore_directory()
    floquet = periodic.floquet()
    contents = {path: dumps(periodic, path) for path in files}
    if plot is not None:
        from fmilin.output.report.figures import rendered
        from fmilin.output.report.periodic_pictures import multiplier_figure

        contents[plot] = rendered(multiplier_figure(floquet), plot.suffix)
    runner.write_files(contents)
    if as_json:
        from fmilin.output.export.json_file import text_of
        from fmilin.output.export.periodic_file import summary_of

        runner.results.write(text_of(summary_of(periodic, floquet)))
    elif not contents:
        from fmilin.output.report.periodic_tables import print_floquet

        print_floquet(orbit, floquet, runner.results)
    if contents and not as_json:
        for remark in floquet.remarks:
            runner.say(f"{remark.heading}: {remark}\n")
        for path in contents:
            runner.say(f"{path}: period {orbit.period:.9g} s, {floquet.verdict}\n")
