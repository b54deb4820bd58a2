"""Points where all invariants are zero, found without a visit to the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fmilin.discovery.invariant import Invariant
from fmilin.ground.signals import FloatArray

__all__ = ["independent_ones", "is_independent", "projected"]

STEPS = 40
ARRIVED = 1e-13

FURTHEST = 10.0
"""How far a projection may go, in sizes of the states."""

TINY = 1e-300

INDEPENDENT = 1e-6
"""What a gradient adds to the span of others, relative to itself, that makes it one of its own."""


def projected(x: FloatArray, invariants: Sequence[Invariant], sizes: FloatArray) -> FloatArray:
    """Return points near x (m, N) where all invariants are zero; those that get there, shape (<= m, N).

    Shapes: sizes (N,), of the states.
    """
    if not invariants or not len(x):
        return x
    s, x0 = x.copy(), x
    arrived: NDArray[np.bool_] = np.zeros(len(x), dtype=np.bool_)
    for _ in range(STEPS):
        size = np.maximum(np.column_stack([i.size(s) for i in invariants]), TINY)
        h = np.column_stack([i.values(s) for i in invariants]) / size
        fine = np.isfinite(h).all(axis=1)
        s, x0, arrived, h, size = s[fine], x0[fine], arrived[fine], h[fine], size[fine]
        arrived = np.asarray((np.abs(h) <= ARRIVED).all(axis=1))
        if arrived.all():
            break
        H = np.stack([i.gradients(s) for i in invariants], axis=1) * sizes / size[:, :, None]
        step = (np.linalg.pinv(H, rcond=1e-10) @ h[:, :, None])[:, :, 0]
        s = np.where(arrived[:, None], s, s - sizes * step)
    near = (np.abs(s - x0) <= FURTHEST * sizes).all(axis=1)  # far away everything is relatively small
    found: FloatArray = s[arrived & near]
    return found


def is_independent(
    candidate: Invariant,
    others: Sequence[Invariant],
    x: FloatArray,
    sizes: FloatArray,
    tolerance: float = INDEPENDENT,
) -> bool:
    """Whether the gradient of ``candidate`` leaves the span of the others' at most of the points x (m, N)."""
    own = candidate.gradients(x) * sizes
    if not others:
        return True
    theirs = np.stack([i.gradients(x) * sizes for i in others], axis=1)
    leaves = 0
    for row, gradients in zip(own, theirs, strict=True):
        rows = gradients / np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), TINY)
        _, s, vt = np.linalg.svd(rows, full_matrices=False)
        span = vt[s > INDEPENDENT * s[0]] if s[0] > 0 else vt[:0]
        leaves += bool(np.linalg.norm(row - span.T @ (span @ row)) > tolerance * np.linalg.norm(row))
    return leaves > len(x) // 2


def independent_ones(invariants: Sequence[Invariant], x: FloatArray, sizes: FloatArray) -> list[Invariant]:
    """Return as many of the invariants, short ones first, as are independent where they are zero, near x (m, N)."""
    found: list[Invariant] = []
    for candidate in sorted(invariants, key=lambda h: len(h.coefficients)):
        near = projected(x, found, sizes)
        if not len(near) or is_independent(candidate, found, near, sizes):
            found.append(candidate)
    return found
