"""Slopes that need no difference: exact products of the model, and rows that are known beforehand."""

from __future__ import annotations

import numpy as np

from fmilin.derivatives.differences import ROUNDING, Slopes
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.signals import FloatArray

__all__ = ["exact_slopes", "rounding", "row_sizes", "written_down"]


def exact_slopes(beside: Neighbourhood) -> Slopes | None:
    """Ask the model for exact products along T and along each input; None when it has none, NaN where it has none."""
    tangent, point, p, k = beside.tangent, beside.point, beside.p, beside.k
    if p + k == 0:
        return _smooth(np.zeros((len(beside.rows), 0)), np.zeros((len(beside.rows), 0)))
    dx = np.hstack((tangent.T, tangent.x_u))
    du = np.hstack((np.zeros((k, p)), np.eye(k)))
    answer = beside.model.products(point.time, point.states, point.inputs, dx, du)
    if answer is None:
        return None
    J = np.vstack((answer.derivatives, answer.outputs))
    relative = 8 * np.finfo(float).eps * tangent.condition_number
    relative += float(np.max(tangent.T_error, initial=0.0)) / max(float(np.max(np.abs(tangent.T), initial=0.0)), 1e-300)
    return written_down(beside, _smooth(J, relative * row_sizes(J, beside.scales)))


def written_down(beside: Neighbourhood, found: Slopes) -> Slopes:
    """Replace rows that are known: rates of positions, outputs that are states or inputs."""
    J, error, jump, bend = (part.copy() for part in (found.J, found.error, found.jump, found.bend))
    tangent, n, p = beside.tangent, beside.n, beside.p
    copies = beside.model.copies
    states = [*tangent.pairs.items(), *((n + row, c.index) for row, c in copies.items() if c.kind == "state")]
    for row, state in states:
        J[row] = np.concatenate((tangent.T[state], tangent.x_u[state]))
        error[row] = np.concatenate((tangent.T_error[state], np.zeros(beside.k)))
    inputs = [(n + row, c.index) for row, c in copies.items() if c.kind == "input"]
    for row, place in inputs:
        J[row], error[row] = 0.0, 0.0
        J[row, p + place] = 1.0
    known = [row for row, _ in (*states, *inputs)]
    jump[known], bend[known] = 0.0, 0.0
    return Slopes(J, error, jump, bend)


def row_sizes(J: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the largest slope of each row, compared in scaled columns, in units of each entry; same shape as J."""
    finite = np.nan_to_num(np.abs(J), nan=0.0, posinf=0.0)
    sizes: FloatArray = np.max(finite * scales, axis=1, keepdims=True, initial=0.0) / scales
    return sizes


def rounding(beside: Neighbourhood, J: FloatArray) -> FloatArray:
    """Return what rounding alone may leave of slopes whose terms cancel, in units of each entry; same shape as J."""
    slope = np.max(np.abs(J) * beside.scales, axis=1, initial=0.0)
    return ROUNDING * beside.terms(slope)[:, None] / beside.scales


def _smooth(J: FloatArray, error: FloatArray) -> Slopes:
    return Slopes(J, error, np.zeros_like(J), np.zeros_like(J))
