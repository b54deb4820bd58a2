"""``fmilin sweep MODEL --vary NAME=FROM:TO:COUNT``: linear models at many operating points."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import model_options
from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, ValueReader, json_switch, new_file, new_files, options_of_commands, switch, take
from fmilin.cli.duration import progress_bar
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import explain_rejections, linearization_options, reject_options
from fmilin.cli.options import number, split_name
from fmilin.cli.request import CommandRequest, build_request
from fmilin.cli.translation import in_options
from fmilin.errors import NumericalError, UsageError
from fmilin.export.files import check_family_outputs, check_output, save_all
from fmilin.formats import suffixes
from fmilin.linearization.suitability import FamilyOfDelaysError
from fmilin.options import Sweep
from fmilin.options.groups import PROCESSES
from fmilin.trimming.trim_request import PointRequest

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.families.store import Store
    from fmilin.families.sweep_plan import SweepPlan

MAX_AXIS_POINTS = 10_000_000  # points of one axis


def read_axes(texts: Sequence[str], option: str = "--vary") -> dict[str, list[float]]:
    """Return the values of ``NAME=FROM:TO:COUNT`` and ``NAME=[v1,v2,...]`` by name."""
    axes: dict[str, list[float]] = {}
    for text in texts:
        name, values = split_name(text)
        if not name:
            raise UsageError(
                f"{option} '{text}' is not of the form NAME=FROM:TO:COUNT or NAME=[v1,v2,...]. Write for example "
                f"{option} speed=0:10:101."
            )
        if name in axes:
            raise UsageError(f"{option} varies '{name}' twice. Keep one of them.")
        where = f"{option} '{text}'"
        axes[name] = (
            _read_list(values[1:-1], where) if values[:1] == "[" and values[-1:] == "]" else _range(values, where)
        )
    return axes


def _read_list(text: str, where: str) -> list[float]:
    if not text.strip():
        raise UsageError(f"{where}: the list is empty. Write for example [1,2.5,4].")
    return [_read_number(item, where) for item in text.split(",")]


def _range(text: str, where: str) -> list[float]:
    parts = text.split(":")
    if len(parts) != 3:
        raise UsageError(f"{where}: a range is FROM:TO:COUNT, as in 0:10:101; single values are a list, as in [1,2.5].")
    low, high = (_read_number(part, where) for part in parts[:2])
    count = _read_number(parts[2], where)
    if count != int(count) or not 1 <= count <= MAX_AXIS_POINTS:
        raise UsageError(f"{where}: COUNT is {parts[2]}, and a range has 1 to {MAX_AXIS_POINTS} points.")
    if low > high:
        raise UsageError(f"{where}: the range runs backwards. Write {high:g}:{low:g}:{int(count)}, or list the values.")
    if (low == high) != (count == 1):
        raise UsageError(
            f"{where}: {int(count)} points from {low:g} to {high:g} do not form an axis. Write a single value as a "
            f"list: [{low:g}]."
        )
    n = int(count)
    return [low + (high - low) * i / (n - 1) for i in range(n - 1)] + [high] if n > 1 else [low]


def _read_number(text: str, where: str) -> float:
    if not text.strip():
        raise UsageError(f"{where}: a number is missing. Write for example 0:10:101 or [1,2.5,4].")
    return number(text.strip(), where)


AXES = ValueReader(str, read_axes, is_repeatable=True)


@options_of_commands
class Delivery:
    """Where the family goes, and when that is a success."""

    output: tuple[Path, ...] = new_files("family")
    plot: Path | None = new_file("A picture of the root locus.", suffixes("picture"))
    as_json: bool = json_switch("The family as one JSON document on standard output.")
    strict: bool = switch("Exit with status 5 if any point failed.", PROCESSES)
    resume: bool = switch("Resume an interrupted sweep.", PROCESSES, needs="--output")


@click.command(
    cls=Command,
    examples=[
        "fmilin sweep four_bar.fmu --vary phi=0.5:2.5:5 --trim --free torque -o family.json",
        "fmilin sweep loop.py:loop --delay plant.u=0.01:0.1:20",
    ],
)
@MODEL
@take("points", Sweep, readings={"vary": AXES, "delays": AXES})
@model_options.model_options()
@take("point", PointRequest, omit=("saved",), apart=("guess",), readings={"guess": model_options.GUESSES})
@take("trimming", model_options.Trimming)
@model_options.TRIM_OPTIONS
@linearization_options("sweep")
@take("delivery", Delivery)
def command(model: str, points: Sweep, delivery: Delivery, **request_options: Any) -> int:
    """Compute linear models at many operating points: a grid over states, inputs and parameters.

    With --delay, or of a model with delays, the result has the rightmost eigenvalues. A point that fails is marked with
    its reason. Exit status 0 if at least one point succeeds, else 5.
    """
    if points.delays:
        _check_delays(points, delivery)
    else:
        check_family_outputs(delivery.output)
    if points.loop_at:
        reject_options(explain_rejections("loop_transfer"), "--loop-at")
    request = build_request(model, **request_options)

    def job(runner: JobRunner) -> None:
        from fmilin.families.grid import build_grid
        from fmilin.families.sweep_plan import SweepPlan

        if points.delays:
            _sweep_delays(request, points, delivery, runner)
            return
        grid = build_grid(points.vary, zipped=points.zipped)
        wires = tuple(points.loop_at)
        plan = SweepPlan(request.source, grid, request.load, request.point, request.how, wires, points.continuous)
        try:
            _sweep(plan, delivery, runner, jobs=points.jobs, scheduler=points.scheduler)
        except FamilyOfDelaysError:
            _check_delays(points, delivery)
            _sweep_delays(request, points, delivery, runner)

    return request.work(job)


def _check_delays(points: Sweep, delivery: Delivery) -> None:
    """Raise UsageError if options have no meaning for rightmost eigenvalues over delays."""
    from fmilin.export.delayed_family_record import require_json

    for path in delivery.output:
        require_json(path)
        check_output(path, "family")
    if points.loop_at or points.jobs != 1 or points.scheduler is not None:
        from fmilin.families.sweep import DELAYS_ALONE

        raise UsageError(DELAYS_ALONE)
    if delivery.resume:
        raise UsageError("--resume: a sweep of delays is computed in one run. Leave it out.")


def _sweep_delays(request: CommandRequest, points: Sweep, delivery: Delivery, runner: JobRunner) -> None:
    """Compute and deliver the rightmost eigenvalues over delays."""
    from fmilin.export.delayed_family_record import encode_family
    from fmilin.families.delayed_sweep import build_delay_grid, run_delay_sweep
    from fmilin.families.sweep_plan import SweepPlan

    grid = build_delay_grid(points.vary, points.delays, zipped=points.zipped)
    plan = SweepPlan(request.source, grid, request.load, request.point, request.how)
    with progress_bar("sweep", 0, grid.size, "points") as tell:
        family = run_delay_sweep(plan, tuple(points.delays), lambda done, _: tell(done))
    runner.restore_directory()
    runner.write_files({path: encode_family(family).encode("ascii") for path in delivery.output})
    good = int(family.ok.sum())
    if delivery.as_json:
        runner.results.write(encode_family(family))
    elif not delivery.output and good:
        from fmilin.report.delay_family import show_delayed_family

        runner.print_shown(show_delayed_family, family)
    for path in delivery.output:
        sys.stderr.write(f"{path}: {good} of {len(family)} points\n")
    if delivery.plot is not None and good:
        runner.draw(delivery.plot, family.root_locus(), "root locus")
    if good < len(family):
        reason = next(point.reason for point in family.points if point.reason)
        text = f"{len(family) - good} of {len(family)} points failed. The first: {reason}"
        if delivery.strict or not good:
            raise NumericalError(text)
        sys.stderr.write(f"fmilin: {in_options(text)}\n")


def _sweep(
    plan: SweepPlan,
    delivery: Delivery,
    runner: JobRunner,
    *,
    jobs: int,
    scheduler: str | None,
) -> None:
    from fmilin.families.family_builder import FamilyBuilder
    from fmilin.families.store import Store
    from fmilin.families.sweep import choose_engine, run

    total = plan.grid.size
    files = [path.resolve() for path in delivery.output]
    collected = Store(plan, files[0], resume=delivery.resume) if files else FamilyBuilder(plan.grid)
    if isinstance(collected, Store) and collected.damaged:
        sys.stderr.write(f"{collected.damaged} points were damaged on the disk and are computed again.\n")
    try:
        if not collected.done.all():
            with (
                choose_engine(plan, jobs=jobs, scheduler=scheduler) as engine,
                progress_bar("sweep", 0, total, "points") as tell,
            ):
                run(plan, engine, collected, lambda done, _: tell(done))
    except BaseException as error:
        if isinstance(collected, Store):
            _report_interruption(collected, delivery, error)
        raise
    runner.restore_directory()
    family = collected.family()
    refused = save_all(family, files)
    if isinstance(collected, Store):
        if len(refused) < len(files) or not family.ok.any():
            collected.remove()
        else:
            collected.close()
    deliver(family, delivery, runner, [path.resolve() in refused for path in delivery.output])
    if refused:
        text = " ".join(str(error) for error in refused.values())
        if len(refused) == len(files):
            text += (
                f" All {len(family)} points are stored: continue with --resume, and give another output file (-o) "
                "after this one."
            )
        raise UsageError(text)


def _report_interruption(store: Store, delivery: Delivery, error: BaseException) -> None:
    """Say what is kept; a sweep that has not begun leaves nothing."""
    done = int(store.done.sum())
    if not done:
        store.remove()
        return
    store.close()
    if not isinstance(error, UsageError):
        saved_points = f"{done} of {len(store.done)} points of '{delivery.output[0]}' are stored"
        sys.stderr.write(f"{saved_points}: continue with --resume.\n")


def deliver(family: LinearFamily, delivery: Delivery, runner: JobRunner, refused: Sequence[bool]) -> None:
    """Write JSON or, without files, a table; count what failed."""
    if delivery.as_json:
        from fmilin.export.family_record import to_arrays
        from fmilin.export.strict_json import encode

        runner.results.writelines(encode(to_arrays(family)))
    elif not delivery.output and family.ok.any():
        from fmilin.report.result_tables import show_family

        runner.print_shown(show_family, family, events=True)
    for path in [path for path, no in zip(delivery.output, refused, strict=True) if not no]:
        sys.stderr.write(f"{path}: {int(family.ok.sum())} of {len(family)} points\n")
    if delivery.plot is not None and family.ok.any():
        runner.draw(delivery.plot, family.plot.root_locus(), "root locus")
    if not family.ok.all():
        from fmilin.report.result_tables import summarize_failures

        if delivery.strict or not family.ok.any():
            raise NumericalError(summarize_failures(family))
        sys.stderr.write(f"fmilin: {in_options(summarize_failures(family))}\n")
