"""States that were all taken for independent and look as if they were not.

Constraints that were differentiated until the accelerations follow (as every multibody tool does) keep their
second derivative at zero, wherever the states are: combinations w of the states with ``w' f = 0``, and no input
moves them. In a linear model of all states they are left null vectors of ``[A B f0]``: what falls freely does not hang
on its neighbours, but it moves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.linear_model.model import LinearModel
from fmilin.remarks import Remark
from fmilin.tolerances import EQUILIBRIUM, RANK, ROUNDING

__all__ = ["unmovable_combinations", "with_remark_on_dependence"]


def unmovable_combinations(linear: LinearModel) -> int:
    """Return how many combinations of the states cannot change, to first order, whatever the inputs do.

    Neither the units of states and inputs nor a mixture of fast and slow states has a part in the answer: left
    null vectors survive any scaling of rows and columns, so both are brought to size 1 first.
    """
    sizes = linear.states.scales(linear.y0)
    A = linear.A * sizes / sizes[:, None]
    B = linear.B * linear.inputs.scales() / sizes[:, None]
    moving_now = linear.f0 / sizes
    fastest = float(np.max(np.abs(moving_now), initial=0.0))
    f0 = np.where(np.abs(moving_now) > RANK * fastest, moving_now, 0.0)[:, None] * (fastest > EQUILIBRIUM)
    both = np.hstack([A, B, f0])
    error = np.hstack(
        [
            linear.errors.A * sizes / sizes[:, None],
            linear.errors.B * linear.inputs.scales() / sizes[:, None],
            np.zeros_like(f0),
        ]
    )
    rounding = ROUNDING * np.max(np.abs(both), axis=1, keepdims=True, initial=0.0)  # each row has its own size
    visible = np.abs(both) > np.maximum(error, rounding)
    rows, columns = visible.any(axis=1), visible.any(axis=0)
    moving = both[np.ix_(rows, columns)]
    unmoved = len(sizes) - len(moving)
    if not moving.size:
        return len(sizes)
    for _ in range(3):
        moving = moving / np.maximum(np.linalg.norm(moving, axis=1, keepdims=True), np.finfo(float).tiny)
        moving = moving / np.maximum(np.linalg.norm(moving, axis=0, keepdims=True), np.finfo(float).tiny)
    s = np.linalg.svd(moving, compute_uv=False)
    return unmoved + len(moving) - int(np.count_nonzero(s > RANK * s[0]))


def with_remark_on_dependence(linear: LinearModel) -> LinearModel:
    """Return the linear model of a model without constraints, with a warning if its states look dependent."""
    count = unmovable_combinations(linear)
    if not count:
        return linear
    remark = Remark(
        "dependent-states",
        f"All {len(linear.states)} states were treated as independent, but {count} "
        f"{'combination of them cannot' if count == 1 else 'combinations of them cannot'} change, to first order, "
        f"whatever the inputs do: states seem to depend on each other, and some of the eigenvalues then belong to no "
        f'motion. Declare the constraints: --constraint "x^2 + y^2 - L^2", or constraints=[...] in Python.',
    )
    return replace(linear, warnings=(*linear.warnings, remark))
