"""Checks of the response: an input that moves no output, and dead zones that look like it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError
from fmilin.linear_model.arrays import LinearArrays
from fmilin.linear_model.no_response import (
    PUSHES,
    dead_zone_error,
    is_connected,
    with_remark_on_response,
)
from fmilin.linearization.checks.check import ResultCheck
from fmilin.linearization.context import AssembledPoint, LinearizedBatch, Mask
from fmilin.model.capabilities import is_at_input_limits, read_event_indicators
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.numerics.steps import Domains, domains
from fmilin.signals import FloatArray


class InputsReachOutputs(ResultCheck):
    """A linear model without a path from an input to an output reads like a success, and answers nothing."""

    verifies = "Some input moves some output; if none does, no input has a dead zone around the point."
    needs = "Nothing; if no input reaches an output, evaluations with larger inputs."
    runs = "at every point"
    kinds = ("no-response",)
    error = "NumericalError if larger inputs move the model: a dead zone, unless keep_inaccurate or hold_modes."
    is_reported_first = True

    def examine(self, at: AssembledPoint) -> Sequence[Remark]:
        linear = at.stated
        marked = with_remark_on_response(linear)
        if marked is linear:
            return ()
        is_accepted = at.request.keep_inaccurate or at.request.hold_modes
        if not is_accepted:
            require_no_dead_zones(at.model, at.point)
        return marked.warnings[:1]

    def find_doubt(self, at: LinearizedBatch) -> Mask:
        return ~find_connected_points(at.models, at.reference.path)


SMALL = (1e-3, 1e-2)  # small pushes, in sizes of the input


def require_no_dead_zones(model: Model, point: OperatingPoint) -> None:
    """Raise NumericalError if larger inputs than those of a derivative move a model that no small input moves."""
    if is_at_input_limits(model):
        return
    sizes = model.inputs.scales(point.inputs)
    dead = [name for j, name in enumerate(model.inputs.names) if _has_dead_zone(model, point, j, float(sizes[j]))]
    if dead:
        raise dead_zone_error(dead)


def _has_dead_zone(model: Model, point: OperatingPoint, j: int, size: float) -> bool:
    try:
        base, here = _evaluate_with_domains(model, point, point.inputs)
        small = [_evaluate_pushed(model, point, j, sign * part * size) for part in SMALL for sign in (1.0, -1.0)]
    except FmilinError:
        return False
    if any(_has_moved(base, seen) for seen, _ in small):
        return False
    for part in PUSHES:
        for sign in (1.0, -1.0):
            try:
                seen, domain = _evaluate_pushed(model, point, j, sign * part * size)
            except FmilinError:
                continue
            if _has_moved(base, seen) or not np.array_equal(domain, here):
                return True
    return False


def _evaluate_pushed(model: Model, point: OperatingPoint, j: int, by: float) -> tuple[Evaluation, Domains]:
    inputs = point.inputs.copy()
    inputs[j] += by
    return _evaluate_with_domains(model, point, inputs)


def _evaluate_with_domains(model: Model, point: OperatingPoint, inputs: FloatArray) -> tuple[Evaluation, Domains]:
    evaluation = model.evaluate(point.time, point.states, inputs)
    return evaluation, domains(read_event_indicators(model, point.time, point.states, inputs))


def _has_moved(base: Evaluation, seen: Evaluation) -> bool:
    """Whether rates or outputs are no longer those of ``base``, to the last bit."""
    same = np.array_equal(base.derivatives, seen.derivatives, equal_nan=True)
    return not (same and np.array_equal(base.outputs, seen.outputs, equal_nan=True))


def find_connected_points(models: LinearArrays, path: Sequence[tuple[str, int, int]]) -> Mask:
    """Return where inputs reach outputs by entries larger than their errors, or there are none, shape (k,).

    ``path`` leads from an input to an output at another point, and is looked at first; empty without either.
    """
    connected = np.ones(len(models), dtype=bool)
    for name, i, j in path:
        connected &= np.abs(models.read(name)[:, i, j]) > models.read_errors(name, i, j)
    for point in np.flatnonzero(~connected).tolist():
        connected[point] = is_connected(*_find_visible(models, point))
    return connected


def _find_visible(models: LinearArrays, point: int) -> list[Mask]:
    """Return which entries of A, B, C and D are larger than their errors at a point."""
    one = models[point : point + 1]
    return [np.asarray(np.abs(one.read(name)) > one.read(f"error_{name}"))[0] for name in "ABCD"]
