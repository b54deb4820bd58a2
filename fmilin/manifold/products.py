"""Slopes that need no difference: by the model's own procedure or products, and rows that are exact beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from fmilin.ground.errors import FmilinError, NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import ROUNDING
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.model.interface import ExactSlopes
from fmilin.numerics.differences.differences import Slopes

EPS = float(np.finfo(np.float64).eps)


def by_procedure(nearby: Neighbourhood) -> Slopes | None:
    """Let the model's own procedure eliminate the dependent states; None where it has none for these coordinates."""
    independent, point = nearby.frame.selection.kept, nearby.point
    exact = None if independent is None else nearby.model.exact_slopes(point.time, point.states, point.inputs)
    if exact is None or independent is None:
        return None
    J = _along(exact, independent)
    if J is None:
        return None
    slopes = _with_error(nearby, J)
    rounding_error = _rounding_error(nearby, J, independent) if exact.smooth else None
    if rounding_error is None:
        return slopes
    return nearby.with_exact_rows(_smooth(J, np.maximum(slopes.error, rounding_error)))


def _along(exact: ExactSlopes, independent: Sequence[int]) -> FloatArray | None:
    try:
        answer = exact.along(independent)
    except NumericalError:
        return None
    J = np.concatenate((answer.derivatives, answer.outputs))
    return J if np.isfinite(J).all() else None


def _rounding_error(nearby: Neighbourhood, J: FloatArray, independent: Sequence[int]) -> FloatArray | None:
    """Return what rounding changes in a procedure's slopes, shape of J, asked again some bits further on; or None."""
    point = nearby.point
    exact = nearby.model.exact_slopes(point.time, point.states, point.inputs)
    if exact is not None and (change := exact.rounding(independent)) is not None:
        return row_sizes(change, nearby.scales)
    nudged = some_bits_further(point.states, nearby.frame.invariants.scales)
    try:
        again = nearby.model.exact_slopes(point.time, nudged, point.inputs)
    except FmilinError:
        return None
    other = None if again is None else _along(again, independent)
    return None if other is None else row_sizes(other - J, nearby.scales)


def some_bits_further(states: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return states (..., N) moved by some bits of their sizes: also where they are zero, as angles at rest are."""
    return np.asarray(states + 2 * EPS * np.maximum(np.abs(states), sizes) * _signs(states.shape[-1]))


@cache
def _signs(count: int) -> FloatArray:
    """Return signs at random, the same every time, shape (count,)."""
    return np.random.default_rng(1952).choice([-1.0, 1.0], count)


def rounding_of(samples: Sequence[FloatArray]) -> FloatArray:
    """Return what rounding does to slopes, from two samples or three some bits apart: of three, twice their range."""
    # Three may lie close together by chance, and the truth beside them; two are compared as they are.
    some = 1.0 if len(samples) == 2 else 2.0
    return np.asarray(some * np.ptp(samples, axis=0))


def by_products(nearby: Neighbourhood) -> Slopes | None:
    """Ask the model for exact products along T and along each input; None when it has none, NaN where it has none."""
    frame, point, p, k = nearby.frame, nearby.point, nearby.p, nearby.k
    if p + k == 0:
        return _smooth(np.zeros((len(nearby.base), 0)), np.zeros((len(nearby.base), 0)))
    dx = np.hstack((frame.T, frame.x_u))
    du = np.hstack((np.zeros((k, p)), np.eye(k)))
    answer = nearby.model.products(point.time, point.states, point.inputs, dx, du)
    if answer is None:
        return None
    slopes = _with_error(nearby, np.concatenate((answer.derivatives, answer.outputs)))
    own = nearby.model.product_errors(point.time, point.states, point.inputs, dx, du)
    if own is None:
        return slopes
    return replace(slopes, error=slopes.error + np.concatenate((own.derivatives, own.outputs)))


def _with_error(nearby: Neighbourhood, J: FloatArray) -> Slopes:
    """Return slopes that are as good as the coordinates are conditioned, with the rows that are exact."""
    T, T_error = nearby.frame.T, nearby.frame.T_error
    relative = 8 * EPS * nearby.frame.condition_number
    relative += float(T_error.max(initial=0.0)) / max(float(np.abs(T).max(initial=0.0)), 1e-300)
    return nearby.with_exact_rows(_smooth(J, relative * row_sizes(J, nearby.scales)))


def row_sizes(J: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the largest slope of each row, compared in scaled columns, in units of each entry; same shape as J."""
    entries = np.abs(J)
    if not np.isfinite(entries).all():
        entries = np.nan_to_num(entries, nan=0.0, posinf=0.0)
    sizes: FloatArray = (entries * scales).max(axis=1, keepdims=True, initial=0.0) / scales
    return sizes


def rounding(nearby: Neighbourhood, J: FloatArray) -> FloatArray:
    """Return what rounding alone may leave of slopes whose terms cancel, in units of each entry; same shape as J."""
    slope = (np.abs(J) * nearby.scales).max(axis=1, initial=0.0)
    return ROUNDING * nearby.terms(slope)[:, None] / nearby.scales


def _smooth(J: FloatArray, error: FloatArray) -> Slopes:
    """Return slopes with no jumps and no bends."""
    none = np.zeros(J.shape)
    return Slopes(J, error, none, none)
