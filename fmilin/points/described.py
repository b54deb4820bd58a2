"""The operating point that a request describes: assembled, read from a file, or solved for."""

from __future__ import annotations

from dataclasses import replace

from fmilin.ground.errors import UsageError
from fmilin.manifold.operating_points import operating_point
from fmilin.model.interface import Model, OperatingPoint
from fmilin.points.procedure import search
from fmilin.points.request import PointRequest


def point_of(model: Model, request: PointRequest) -> OperatingPoint:
    """Return the point of a model that was loaded with the parameters of a completed request."""
    if request.trim is not None:
        problem, guess = request.trim_of(model)
        return search(model, problem, guess, anywhere=request.project)
    values, saved = request.values_of(model), request.saved_point
    if saved is None:
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
