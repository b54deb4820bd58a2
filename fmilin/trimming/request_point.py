"""The point of a request: by values, from a file, or an equilibrium, for which trimming is imported only then."""

from __future__ import annotations

from dataclasses import replace

from fmilin.errors import UsageError
from fmilin.manifold.operating_points import operating_point
from fmilin.model.interface import Model, OperatingPoint
from fmilin.trimming.trim_request import PointRequest


def find_point(model: Model, request: PointRequest) -> OperatingPoint:
    """Return the point that a completed request describes, of a model loaded with its parameters."""
    if request.trim is not None:
        from fmilin.trimming.search_algorithm import search

        problem, guess = request.build_trim(model)
        return search(model, problem, guess, anywhere=request.project)
    values, saved = request.collect_values(model), request.saved_point
    if saved is None:
        return operating_point(model, values, time=request.time, project=request.project)
    if states := [name for name in values if model.states.has(name)]:
        raise UsageError(
            f"settings={{{states[0]!r}: ...}} contradicts saved=, a point that has all states. Leave "
            "one of them out, or trim from there: fl.trim(model)."
        )
    point = saved.on(model)
    for name, value in values.items():
        point.inputs[model.inputs.index_of(name, "an input of the model")] = value
    return point if request.time is None else replace(point, time=request.time)
