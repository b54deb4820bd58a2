"""Checks of the response: an input that moves no output, and dead zones that look like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError
from fmilin.linear_model.arrays import LinearArrays
from fmilin.linear_model.no_response import (
    PUSH_SIZES,
    dead_zone_error,
    is_connected,
    with_remark_on_response,
)
from fmilin.linearization.checks.check import ResultCheck
from fmilin.linearization.linearization_context import AssembledPoint, LinearizedBatch, Mask
from fmilin.model.capabilities import is_at_input_limits, read_event_indicators
from fmilin.model.evaluator import evaluate_each
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.numerics.steps import Domains, domains
from fmilin.signals import FloatArray


class InputsReachOutputs(ResultCheck):
    """A linear model without a path from an input to an output reads like a success, and answers nothing."""

    verifies = "Some input affects some output, or no input has a dead zone around the point."
    needs = "Evaluations with larger inputs, if no input reaches an output."
    runs = "at every point"
    kinds = ("no-response",)
    error = "NumericalError for a dead zone, unless keep_inaccurate or hold_modes."
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


SMALL_PUSH_SIZES = (1e-3, 1e-2)  # small pushes, in sizes of the input


def require_no_dead_zones(model: Model, point: OperatingPoint) -> None:
    """Raise NumericalError if larger inputs than those of a derivative move a model that no small input moves."""
    if is_at_input_limits(model):
        return
    sizes = model.inputs.scales(point.inputs)
    still = _list_unmoved(model, point, sizes, list(range(len(sizes))))
    dead = _list_moved(model, point, sizes, still) if still else []
    if dead:
        raise dead_zone_error([model.inputs.names[j] for j in dead])


def _list_unmoved(model: Model, point: OperatingPoint, sizes: FloatArray, inputs: Sequence[int]) -> list[int]:
    """Return the inputs that move nothing when they change a little; not those with changes that the model rejects."""
    here, *pushed = _evaluate_pushed(model, point, _list_pushes(inputs, sizes, SMALL_PUSH_SIZES))
    count = 2 * len(SMALL_PUSH_SIZES)
    unmoved = []
    for position, j in enumerate(inputs):
        answers = pushed[position * count : (position + 1) * count]
        if here is not None and all(a is not None and not _has_moved(here, a) for a in answers):
            unmoved.append(j)
    return unmoved


def _list_moved(model: Model, point: OperatingPoint, sizes: FloatArray, inputs: Sequence[int]) -> list[int]:
    """Return the inputs that move something, or an indicator across zero, when they are pushed by about their size."""
    here, *pushed = _evaluate_pushed(model, point, _list_pushes(inputs, sizes, PUSH_SIZES))
    count = 2 * len(PUSH_SIZES)
    moved = []
    for position, j in enumerate(inputs):
        answers = [a for a in pushed[position * count : (position + 1) * count] if a is not None]
        if here is not None and any(_has_moved(here, a) or not np.array_equal(a.sides, here.sides) for a in answers):
            moved.append(j)
    return moved


def _list_pushes(inputs: Sequence[int], sizes: FloatArray, parts: Sequence[float]) -> list[tuple[int, float]]:
    """Return by how much each input is pushed, in both directions."""
    return [(j, float(sign * part * sizes[j])) for j in inputs for part in parts for sign in (1.0, -1.0)]


class _Pushed(NamedTuple):
    """A model with an input pushed: rates and outputs, and on which sides of zero event indicators are."""

    evaluation: Evaluation
    sides: Domains


def _evaluate_pushed(model: Model, point: OperatingPoint, pushes: Sequence[tuple[int, float]]) -> list[_Pushed | None]:
    """Return the model's answers at the point, then with each push (input, change); None where it rejects them."""
    t, x = point.time, point.states
    inputs = [point.inputs]
    for j, change in pushes:
        u = point.inputs.copy()
        u[j] += change
        inputs.append(u)
    try:
        has_indicators = len(read_event_indicators(model, t, x, point.inputs)) > 0
    except FmilinError:
        return [None] * len(inputs)
    if not has_indicators:
        evaluations = evaluate_each(model, t, [(x, u) for u in inputs])
        nothing = domains(np.empty(0))
        return [_Pushed(one, nothing) if isinstance(one, Evaluation) else None for one in evaluations]
    # Indicators are read where the model stands, after each evaluation.
    answers: list[_Pushed | None] = []
    for u in inputs:
        try:
            answers.append(_Pushed(model.evaluate(t, x, u), domains(read_event_indicators(model, t, x, u))))
        except FmilinError:
            answers.append(None)
    return answers


def _has_moved(here: _Pushed, pushed: _Pushed) -> bool:
    """Whether rates or outputs differ from those at the point, in any bit."""
    at_point, evaluation = here.evaluation, pushed.evaluation
    same = np.array_equal(at_point.derivatives, evaluation.derivatives, equal_nan=True)
    return not (same and np.array_equal(at_point.outputs, evaluation.outputs, equal_nan=True))


def find_connected_points(models: LinearArrays, path: Sequence[tuple[str, int, int]]) -> Mask:
    """Return where inputs reach outputs by entries larger than their errors, or there are none, shape (k,).

    ``path`` leads from an input to an output at another point, and is examined first; empty without either.
    """
    connected = np.ones(len(models), dtype=bool)
    for name, i, j in path:
        connected &= np.abs(models.read(name)[:, i, j]) > models.read_errors(name, i, j)
    if connected.all():
        return connected
    for point in np.flatnonzero(~connected).tolist():
        connected[point] = is_connected(*_find_visible(models, point))
    return connected


def _find_visible(models: LinearArrays, point: int) -> list[Mask]:
    """Return which entries of A, B, C and D are larger than their errors at a point."""
    one = models[point : point + 1]
    return [np.asarray(np.abs(one.read(name)) > one.read(f"error_{name}"))[0] for name in "ABCD"]
