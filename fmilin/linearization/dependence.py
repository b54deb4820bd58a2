"""States that were all taken for independent and look as if they were not.

Constraints that were differentiated until the accelerations follow (as every multibody tool does) keep their
second derivative at zero, wherever the states are: combinations w of the states with ``w' f = 0``, and no input
moves them. In a linear model of all states they are left null vectors of ``[A B f0]``: what falls freely does not hang
on its neighbours, but it moves.

A sum that is conserved (mass of a reaction, charge) is such a left null vector, too, and no constraint. What tells
them apart at rest: a velocity constraint w is the derivative of a position constraint z, ``z' [A B f0] = [w' 0 0]``.
Where the point moves, z turns with it, and only the shape of the equations tells: some of them say that a state is the
derivative of another.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.linear_model.model import LinearModel
from fmilin.manifold.rank import TINY, singular_values
from fmilin.remarks import Remark
from fmilin.signals import FloatArray
from fmilin.tolerances import EQUILIBRIUM, RANK, ROUNDING

__all__ = ["unmovable_combinations", "with_remark_on_dependence"]


def unmovable_combinations(linear: LinearModel) -> int:
    """Return how many combinations of the states cannot change, to first order, whatever the inputs do.

    Neither the units of states and inputs nor a mixture of fast and slow states has a part in the answer: left
    null vectors survive any scaling of rows and columns, so both are brought to size 1 first.
    """
    sizes = linear.states.scales(linear.y0)
    units = np.concatenate((sizes, linear.inputs.scales()))
    both = np.hstack((linear.A, linear.B)) * units / sizes[:, None]
    error = np.hstack((linear.errors.A, linear.errors.B)) * units / sizes[:, None]
    rates = linear.f0 / sizes
    fastest = float(np.abs(rates).max(initial=0.0))
    if fastest > EQUILIBRIUM:
        both = np.column_stack((both, np.where(np.abs(rates) > RANK * fastest, rates, 0.0)))
        error = np.column_stack((error, np.zeros(len(rates))))
    entries = np.abs(both)
    rounding = ROUNDING * entries.max(axis=1, keepdims=True, initial=0.0)  # each row has its own size
    visible = entries > np.maximum(error, rounding)
    moving = both[np.ix_(visible.any(axis=1), visible.any(axis=0))]
    unmoved = len(sizes) - len(moving)
    if not moving.size:
        return len(sizes)
    for axis in (1, 0, 1, 0, 1, 0):
        moving = moving / np.maximum(np.sqrt((moving * moving).sum(axis=axis, keepdims=True)), TINY)
    s = singular_values(moving)
    return unmoved + len(moving) - int(np.count_nonzero(s > RANK * s[0]))


def looks_constrained(linear: LinearModel) -> bool:
    """Whether combinations that cannot change look like differentiated constraints, not like conserved sums."""
    sizes = linear.states.scales(linear.y0)
    A = linear.A * sizes / sizes[:, None]
    R = np.column_stack((linear.B / sizes[:, None], linear.f0 / sizes))
    if float(np.abs(R[:, -1]).max(initial=0.0)) > EQUILIBRIUM:
        kinematic = (np.count_nonzero(linear.A, axis=1) == 1) & (np.abs(linear.A - 1.0) < ROUNDING).any(axis=1)
        return int(np.count_nonzero(kinematic & ~linear.B.any(axis=1))) > 1
    M = np.hstack((A, R[:, :-1]))
    s = _lengths(M)
    W = _left_null(M / s) / s.T  # null vectors of M itself
    if not len(W):
        return False
    W = W / _lengths(W)
    below = np.hstack((W, np.zeros((len(W), R.shape[1] - 1))))
    K = np.vstack((M, below))
    return len(_left_null(K / _lengths(K))) > len(W)


def _lengths(M: FloatArray) -> FloatArray:
    """Return the lengths of the rows, 1 for empty ones, shape (n, 1)."""
    found = np.sqrt((M * M).sum(axis=1, keepdims=True))
    return np.where(found > 0, found, 1.0)


def _left_null(M: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the left null space, a vector per row."""
    U, s, _ = np.linalg.svd(M)
    rank = int(np.count_nonzero(s > RANK * s[:1].sum())) if s.size else 0
    return np.asarray(U[:, rank:].T, dtype=np.float64)


def with_remark_on_dependence(linear: LinearModel) -> LinearModel:
    """Return the linear model of a model without constraints, with a warning if its states look dependent."""
    count = unmovable_combinations(linear)
    if not count or not looks_constrained(linear):
        return linear
    remark = Remark(
        "dependent-states",
        f"All {len(linear.states)} states were treated as independent, but {count} "
        f"{'combination of them cannot' if count == 1 else 'combinations of them cannot'} change, to first order, "
        f"whatever the inputs do: states seem to depend on each other, and some of the eigenvalues then belong to no "
        f'motion. Declare the constraints: --constraint "x^2 + y^2 - L^2", or constraints=[...] in Python.',
    )
    return replace(linear, warnings=(*linear.warnings, remark))
