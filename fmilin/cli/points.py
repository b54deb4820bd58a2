"""The operating point that the command line describes: assembled, read from a file, or solved for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fmilin.cli.opening import open_model
from fmilin.cli.progress import progress_bar
from fmilin.ground.errors import UsageError

if TYPE_CHECKING:
    from fmilin.cli.job_runner import JobRunner
    from fmilin.cli.request import Request
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.model.point_files import SavedPoint
    from fmilin.model.stepping import Stepping

__all__ = ["at_point", "carried", "with_saved_point"]


def with_saved_point(request: Request) -> tuple[Request, SavedPoint | None]:
    """Return the request with the parameters and the time of its ``--point``, and that point.

    What stands on the command line goes before what stands in the file.
    """
    if request.point is None:
        return request, None
    from fmilin.model.point_files import load_point

    saved = load_point(request.point)
    settings = {**saved.parameters, **request.settings}
    time = saved.time if request.time is None else request.time
    return replace(request, settings=settings, time=time), saved


def at_point(request: Request, runner: JobRunner) -> tuple[Model, OperatingPoint]:
    """Return the model, and the point that the request describes: where its motion is at ``--simulate-to``."""
    request, saved = with_saved_point(request)
    model, values = open_model(request, runner)
    point = assembled(model, values, request, saved)
    return model, point if request.simulate_to is None else carried(model, point, request.simulate_to, request.stepping)


def carried(model: Model, point: OperatingPoint, to: float, stepping: Stepping | None = None) -> OperatingPoint:
    """Return where the model is at the time ``to`` when it starts from ``point``; a hybrid one is in its mode then."""
    import fmilin as fl

    if to < point.time:
        raise UsageError(f"--simulate-to {to:g}: the motion starts at {point.time:g} s, and time does not go back.")
    from fmilin.model.stepping import Stepped

    if isinstance(model, Stepped):
        return model.advance(point, to, stepping.step if stepping is not None else None)
    with progress_bar(model.info.name, point.time, to) as progress:
        (there,) = fl.snapshots(model, point, times=[to], progress=progress)
        return there


def assembled(
    model: Model, values: Mapping[str, float], request: Request, saved: SavedPoint | None = None
) -> OperatingPoint:
    """Return the point of ``model``.

    ``values``: states and inputs of ``--set``. ``saved``: of ``--point``: where the point is, or where ``--trim``
    starts.
    """
    if request.trim:
        return _nearest(model, values, request, saved)
    if saved is None:
        from fmilin.manifold.operating_points import operating_point

        return operating_point(model, values, time=request.time, project=request.project)
    if states := [name for name in values if model.states.has(name)]:
        raise UsageError(
            f"--set {states[0]} contradicts --point, which has all states. Leave one of them out, or add --trim to "
            "start from there."
        )
    point = saved.on(model)
    for name, value in values.items():
        point.inputs[model.inputs.index_of(name, "an input of the model")] = value
    return point if request.time is None else replace(point, time=request.time)


def _nearest(model: Model, values: Mapping[str, float], request: Request, saved: SavedPoint | None) -> OperatingPoint:
    """Return the equilibrium nearest to the point, inputs held; what is remarkable about it goes to standard error."""
    from fmilin.points.procedure import search
    from fmilin.points.request import TrimRequest

    start = {**saved.states, **saved.inputs, **values} if saved is not None else dict(values)
    if request.wishes is not None:
        what, guess = request.wishes.of(model, start, request.time)
        guess = guess | dict(request.wishes.guess[0] if request.wishes.guess else {})
    else:
        held = {name: value for name, value in start.items() if model.inputs.has(name)}
        what, guess = TrimRequest(held, time=request.time), {n: v for n, v in start.items() if n not in held}
    found = search(model, what, guess, anywhere=request.project)
    for remark in found.report.remarks:
        sys.stderr.write(f"Warning: {remark}\n")
    return found
