"""Friction at rest, and dead zones: inputs that move nothing when they are pushed a little, and something when more."""

from __future__ import annotations

import numpy as np

from fmilin.ground.errors import FmilinError
from fmilin.ground.signals import FloatArray
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.no_response import PUSHES, dead_zone_error
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.numerics.crossings import Domains, domains

SMALL = (1e-3, 1e-2)  # small pushes, in sizes of the input


def refuse_dead_zones(linear: LinearModel, model: Model, point: OperatingPoint) -> LinearModel:
    """Return a linear model that no input moves, unless larger pushes than those of a derivative move the model."""
    if model.names_limits:
        return linear
    sizes = model.inputs.scales(point.inputs)
    dead = [name for j, name in enumerate(model.inputs.names) if _has_dead_zone(model, point, j, float(sizes[j]))]
    if dead:
        raise dead_zone_error(dead)
    return linear


def _has_dead_zone(model: Model, point: OperatingPoint, j: int, size: float) -> bool:
    try:
        base, here = _seen(model, point, point.inputs)
        small = [_pushed(model, point, j, sign * part * size) for part in SMALL for sign in (1.0, -1.0)]
    except FmilinError:
        return False
    if any(_moved(base, seen) for seen, _ in small):
        return False
    for part in PUSHES:
        for sign in (1.0, -1.0):
            try:
                seen, domain = _pushed(model, point, j, sign * part * size)
            except FmilinError:
                continue
            if _moved(base, seen) or not np.array_equal(domain, here):
                return True
    return False


def _pushed(model: Model, point: OperatingPoint, j: int, by: float) -> tuple[Evaluation, Domains]:
    inputs = point.inputs.copy()
    inputs[j] += by
    return _seen(model, point, inputs)


def _seen(model: Model, point: OperatingPoint, inputs: FloatArray) -> tuple[Evaluation, Domains]:
    evaluation = model.evaluate(point.time, point.states, inputs)
    return evaluation, domains(model.event_indicators(point.time, point.states, inputs))


def _moved(base: Evaluation, seen: Evaluation) -> bool:
    """Whether rates or outputs are no longer those of ``base``, to the last bit."""
    same = np.array_equal(base.derivatives, seen.derivatives, equal_nan=True)
    return not (same and np.array_equal(base.outputs, seen.outputs, equal_nan=True))
