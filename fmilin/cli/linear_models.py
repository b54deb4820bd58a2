"""Linear models for ``fmilin linearize``: of a co-simulation itself, on the way of a motion, at a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fmilin as fl
from fmilin.cli.duration import progress_bar
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import CosimulationRequest, LoopCut, explain_rejections
from fmilin.cli.options import check_outputs, floats
from fmilin.errors import UsageError
from fmilin.export.files import check_output, dumps
from fmilin.formats import matches_suffix
from fmilin.options import Linearization, Stepping, describe
from fmilin.options.function_options import WITHOUT_MEANING
from fmilin.options.function_options import given_options as given_keywords

if TYPE_CHECKING:
    from fmilin.cli.request import CommandRequest
    from fmilin.formats import Writing
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model, OperatingPoint


# The step, the order of the members and the choice of signals are those of the co-simulation.
_OF_THE_COSIMULATION = {"--inputs", "--outputs", *(d.option for d in describe(Stepping))}
REASONS_AGAINST_COSIMULATION = {
    flag: reason for flag, reason in explain_rejections("cosimulated").items() if flag not in _OF_THE_COSIMULATION
}


def linearize_cosimulation(
    request: CommandRequest,
    cosimulated: CosimulationRequest,
    files: Sequence[Path],
    runner: JobRunner,
    *,
    as_json: bool,
) -> None:
    """Deliver the discrete linear model of a co-simulation; without files or JSON the table of its damping."""
    from fmilin.cli.request import at_point
    from fmilin.composition.system import ConnectedModel

    model, point = at_point(request, runner)
    if not isinstance(model, ConnectedModel):
        raise UsageError(f"'{request.source}' is not a system of several members: --as-cosimulated is for those.")
    model = model.with_interface(request.how.inputs, request.how.outputs)
    if len(point.inputs) != len(model.inputs):  # those that were not chosen stand at their start values
        point = replace(point, inputs=model.start.inputs)
    how = _keep_meaningful_options("cosimulated", request.how)
    cosimulation = fl.cosimulated(
        model, point, step=cosimulated.step, master=cosimulated.master, order=cosimulated.order, linearization=how
    )
    _deliver(cosimulation, cosimulated, files, runner, as_json=as_json)


def _deliver(
    cosimulation: Any, cosimulated: CosimulationRequest, files: Sequence[Path], runner: JobRunner, *, as_json: bool
) -> None:
    from fmilin.report.cosimulation_report import cosimulation_figure, show_cosimulation
    from fmilin.report.figures import encode_picture

    runner.restore_directory()
    contents = {path: dumps(cosimulation.linear, path) for path in files}
    if cosimulated.plot is not None:
        contents[cosimulated.plot] = encode_picture(cosimulation_figure(cosimulation), cosimulated.plot)
    runner.write_files(contents)
    for path in contents:
        runner.say(f"{path}: co-simulation over steps of {cosimulated.step:g} s\n")
    if as_json:
        runner.results.write(dumps(cosimulation.linear, "results.json").decode("ascii"))
    elif not files:
        runner.print_shown(show_cosimulation, cosimulation)


def _keep_meaningful_options(function: str, how: Linearization) -> Linearization:
    """Return the options that a function takes, without those that the command adds for the formats of files."""
    without = WITHOUT_MEANING[function]
    return Linearization(**{k: v for k, v in given_keywords(how).items() if k not in without})


def snapshot_times(text: str | None, option: str = "--snapshots") -> tuple[float, ...]:
    """Return the times of ``0.5,1,2``, in seconds."""
    refusal = f"{option} '{text}': these are not times that increase. Write for example 0.5,1,2."
    times = floats(text, ",", refusal)
    if not all(map(isfinite, times)) or any(b <= a for a, b in pairwise(times)):
        raise UsageError(refusal)
    return times


def linear_models(
    request: CommandRequest, times: Sequence[float], runner: JobRunner, table: Path | None = None
) -> Sequence[LinearModel]:
    """Load, assemble, and linearize at every time of one motion, in coordinates that do not jump."""
    from fmilin.cli.request import at_point
    from fmilin.families.along import linearize_points
    from fmilin.model.stepping import Stepped
    from fmilin.simulation.trajectory import read_inputs

    inputs = None if table is None else read_inputs(table)
    model, start = at_point(request, runner)
    if isinstance(model, Stepped):
        if inputs is not None:
            raise UsageError("--input: a model that is stepped from time to time keeps its inputs. Leave it out.")
        return list(_one_by_one(model, start, times, request))
    with progress_bar(model.info.name, start.time, times[-1]) as progress:
        points = fl.snapshots(model, start, times=times, inputs=inputs, progress=progress)
        return linearize_points(model, points, request.how)


def _one_by_one(
    model: Model, start: OperatingPoint, times: Sequence[float], request: CommandRequest
) -> Iterator[LinearModel]:
    """Lead a stepped model from time to time and linearize it at each."""
    from fmilin.cli.request import advance_to_time
    from fmilin.linearization.linearize import linearize_request

    point = start
    for t in times:
        point = advance_to_time(model, point, t, request.how.stepping)
        yield linearize_request(model, point, request.how)


def deliver_each(
    models: Sequence[LinearModel],
    times: Sequence[float],
    files: Sequence[Path],
    runner: JobRunner,
    *,
    as_json: bool,
    writing: Writing | None = None,
) -> None:
    """Write the family over time, or a file for each time where a format holds one linear model; or JSON; or tables."""
    from fmilin.export.family_record import to_arrays
    from fmilin.export.strict_json import encode
    from fmilin.families.family_builder import build_family

    runner.restore_directory()
    family = build_family(models, {"time": times})
    made = {path: dumps(family, path) for path in files if matches_suffix(path, "family")}
    singles = [path for path in files if path not in made]
    made |= {
        name_file(path, t): dumps(m, path, writing) for m, t in zip(models, times, strict=True) for path in singles
    }
    runner.write_files(made)
    if as_json:
        runner.results.writelines(encode(to_arrays(family)))
    elif not files:
        from fmilin.report.table import show_linear

        for t, m in zip(times, models, strict=True):
            runner.results.write(f"At t = {t:g} s\n\n")
            runner.print_shown(show_linear, m, adjusted=0.0)
            runner.results.write("\n")
    if files and not as_json:
        for t, m in zip(times, models, strict=True):
            runner.say_remarks(m.warnings, f"at t = {t:g} s: ")
        for path in made:
            runner.say(f"{path}\n")


def check_files(paths: Sequence[Path], times: Sequence[float]) -> None:
    """Make sure that every file that snapshots at these times go into can be written."""
    families = [path for path in paths if matches_suffix(path, "family")]
    for path in families:
        check_output(path, "family")
    check_outputs([name_file(path, t) for path in paths if path not in families for t in times])


def name_file(path: Path, time: float) -> Path:
    """Return the name of the file for one time."""
    return path.with_name(f"{path.stem}_t{time:g}{path.suffix}")


def linear_model(
    request: CommandRequest, runner: JobRunner, cut: LoopCut | None = None
) -> tuple[LinearModel, OperatingPoint]:
    """Load, assemble the point, linearize; ``cut``: a loop of the system."""
    from fmilin.cli.request import at_point
    from fmilin.linearization.linearize import linearize_request

    model, point = at_point(request, runner)
    if cut is not None:
        return cut.linear_model(model, point, request.how), point
    if request.tangent_only:
        from fmilin.discovery.tangent import linearize_on_tangent

        how = _keep_meaningful_options("linearize_on_tangent", request.how)
        return linearize_on_tangent(model, point, linearization=how), point
    return linearize_request(model, point, request.how), point


def _print_table(linear: LinearModel, point: OperatingPoint, runner: JobRunner) -> None:
    from fmilin.linear_model.model import DelayedLinearModel

    if isinstance(linear, DelayedLinearModel):
        from fmilin.report.delays import show_delayed_model

        runner.print_shown(show_delayed_model, linear)
    else:
        from fmilin.report.table import show_linear

        runner.print_shown(show_linear, linear, adjusted=point.adjusted)


def deliver(
    linear: LinearModel,
    point: OperatingPoint,
    files: Sequence[Path],
    runner: JobRunner,
    *,
    as_json: bool = False,
    writing: Writing | None = None,
) -> None:
    """Write the files; then JSON or, without files, the table."""
    runner.restore_directory()
    runner.write_files({path: dumps(linear, path, writing) for path in files})
    if as_json:
        runner.results.write(dumps(linear, "results.json").decode("ascii"))
    elif not files:
        _print_table(linear, point, runner)
    if files and not as_json:
        runner.say_remarks(linear.warnings)
        from fmilin.report.table import order_text

        order = order_text(linear)
        for path in files:
            runner.say(f"{path}: {order}\n")
