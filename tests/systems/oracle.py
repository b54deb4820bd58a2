"""A small dense reduction that owes nothing to the linearizer: A = R J T with T from (R; H) T = (I; 0)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin import Model
from fmilin.model.capabilities import read_products
from fmilin.signals import FloatArray

__all__ = ["reduced", "relative_error"]


def reduced(
    model: Model, independent: Sequence[str], states: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return A, B, C, D in the named coordinates from the model's exact products at ``states`` or its start."""
    x = model.start.states if states is None else states
    n, k = len(model.states), len(model.inputs)
    J = read_products(model, 0.0, x, model.start.inputs, np.eye(n, n + k), np.eye(k, n + k, n))
    assert J is not None
    rows = [model.states.names.index(name) for name in independent]
    R, H = np.eye(n)[rows], J.residuals[:, :n]
    right = np.vstack((np.eye(len(rows)), np.zeros((len(H), len(rows)))))
    T, _, rank, _ = np.linalg.lstsq(np.vstack((R, H)), right)
    assert rank == n
    np.testing.assert_allclose(H @ T, 0.0, atol=1e-12)
    f, c = J.derivatives, J.outputs
    return R @ f[:, :n] @ T, R @ f[:, n:], c[:, :n] @ T, c[:, n:]


def relative_error(found: FloatArray, expected: FloatArray) -> float:
    """Return the largest difference over the largest expected entry."""
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))
