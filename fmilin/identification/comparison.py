"""Continuous models of different records: in common coordinates, extrapolated, and how far they are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import linalg

from fmilin.errors import NumericalError
from fmilin.identification.discrete_models import Continuous
from fmilin.signals import FloatArray

SLOWEST = 1e-2  # radians in a record


def combine_steps(fine: Continuous, coarse: Continuous) -> Continuous:
    """Return the limit of errors that are proportional to the step, of which one is twice the other."""
    names = ("A", "B", "C", "D", "T", "f0")
    matrices = {name: 2.0 * getattr(fine, name) - getattr(coarse, name) for name in names}
    return replace(fine, **matrices)


def _observe(model: Continuous, seconds: float) -> FloatArray:
    """Return what outputs and states show of each state over some time."""
    n = len(model.A)
    step = linalg.expm(model.A * seconds / max(n, 1))
    rows = np.vstack((model.C, model.T.reshape(-1, n)))
    scale = np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(scale > 0, scale, 1.0)
    blocks = [rows]
    for _ in range(n - 1):
        blocks.append(blocks[-1] @ step)
    return np.vstack(blocks)


def align_models(other: Continuous, model: Continuous, seconds: float) -> Continuous:
    """Return ``other`` in the coordinates in which its outputs are most like those of ``model``."""
    S = np.linalg.lstsq(_observe(model, seconds), _observe(other, seconds), rcond=None)[0]
    if not np.isfinite(S).all() or np.linalg.matrix_rank(S) < len(S):
        raise NumericalError("Two records show no common states.")
    return other.in_coordinates(np.asarray(S, dtype=np.float64))


def measure_difference(one: Continuous, other: Continuous, seconds: float) -> float:
    """Return how far two models are apart, relative: the largest of entries, eigenvalues and transfer functions."""
    parts: list[float] = []
    for name in "AB":
        a, b = getattr(one, name), getattr(other, name)
        largest = float(np.max(np.abs(a), initial=0.0))
        if largest:
            parts.append(float(np.max(np.abs(a - b))) / largest)
    values = np.linalg.eigvals(other.A)
    # slower motions than this cannot be told from 0 in the record: double zeros spread by the root of rounding
    fastest = max(float(np.max(np.abs(values), initial=0.0)), SLOWEST / seconds)
    parts += [_compare_transfer(one, other, fastest * point) for point in _POINTS]
    # coefficients do not have the roots of errors that double eigenvalues have
    n = len(one.A)
    coefficients = [np.poly(model.A) / fastest ** np.arange(n + 1) for model in (one, other)]
    parts.append(float(np.max(np.abs(coefficients[0] - coefficients[1]), initial=0.0)))
    return max(parts)


_POINTS: Sequence[complex] = (0.1 + 0.1j, 0.3 + 1j, 0.3 + 3j)


def _compare_transfer(one: Continuous, other: Continuous, s: complex) -> float:
    try:
        values = [
            model.C @ np.linalg.solve(s * np.eye(len(model.A)) - model.A, model.B.astype(np.complex128)) + model.D
            for model in (one, other)
        ]
    except np.linalg.LinAlgError:
        return float("inf")
    largest = float(np.max(np.abs(values[1]), initial=0.0))
    return float(np.max(np.abs(values[0] - values[1]))) / largest if largest else 0.0
