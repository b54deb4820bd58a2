"""States that were all taken for independent and look as if they were not.

Constraints that were differentiated until the accelerations follow (as every multibody tool does) keep their
second derivative at zero, wherever the states are: combinations w of the states with ``w' f = 0``, and no input
moves them. In a linear model of all states they are left null vectors of ``[A B]``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.linear_model import LinearModel
from fmilin.remarks import Remark

__all__ = ["unmovable_combinations", "with_remark_on_dependence"]

RELATIVE_TOLERANCE = 1e-9
"""Singular values of the scaled [A B] below this times the largest count as zero."""


def unmovable_combinations(linear: LinearModel) -> int:
    """Return how many combinations of the states cannot change, to first order, whatever the inputs do."""
    sizes = linear.states.scales(linear.y0)
    A = linear.A * sizes / sizes[:, None]
    B = linear.B * linear.inputs.scales() / sizes[:, None]
    both = np.hstack([A, B])
    if not both.size:
        return len(sizes)
    s = np.linalg.svd(both, compute_uv=False)
    estimated = max(linear.accuracy.A, linear.accuracy.B)
    tolerance = max(RELATIVE_TOLERANCE, 10 * estimated if np.isfinite(estimated) else 0.0) * s[0]
    return len(sizes) - int(np.count_nonzero(s > tolerance))


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
