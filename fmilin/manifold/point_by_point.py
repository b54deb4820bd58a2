"""Tangents at many points of a model with exact directional derivatives of its own, along all states and inputs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fmilin.model.capabilities import read_products
from fmilin.model.interface import Evaluation, Model, TangentBatch
from fmilin.signals import FloatArray, Signals


class EvaluationWithDerivatives(NamedTuple):
    """The results of a model at k points, and the derivatives of each along all states and inputs (k, r, N + nu)."""

    values: Evaluation
    derivatives: Evaluation


def differentiate_each(model: Model, t: FloatArray, x: FloatArray, u: FloatArray) -> EvaluationWithDerivatives | None:
    """Return both, from one point after the other; None where the model has no derivatives."""
    n, k = x.shape[1], u.shape[1]
    dx, du = np.eye(n, n + k), np.eye(k, n + k, n)
    derivatives = []
    for point in zip(t.tolist(), x, u, strict=True):
        products = read_products(model, *point, dx, du)
        if products is None:
            return None
        derivatives.append(products)
    return EvaluationWithDerivatives(model.evaluate_points(t, x, u), Evaluation.joined(derivatives))


def compute_tangents(
    answer: EvaluationWithDerivatives, states: Signals, x: FloatArray, independent: Sequence[int]
) -> TangentBatch | None:
    """Return rates, outputs and residuals with derivatives along the kept states; None if inputs move the manifold."""
    (values, derivatives), n = answer, x.shape[1]
    residuals = derivatives.residuals
    # NaN marks residuals without exact derivatives.
    if not np.isfinite(residuals).all() or residuals[..., n:].any():
        return None
    H, dependent = residuals[..., :n], [i for i in range(n) if i not in independent]
    T = np.zeros((len(x), n, len(independent)))
    T[:, independent] = np.eye(len(independent))
    if dependent:
        from fmilin.manifold.rank import independent_rows, scaled

        rows, *_ = scaled(H[0], states.scales(x[0]), np.zeros(H.shape[1]), np.zeros_like(H[0]))
        G = H[:, independent_rows(rows, len(dependent), len(rows))]
        T[:, dependent] = -np.linalg.solve(G[..., dependent], G[..., independent])
    parts = derivatives.derivatives, derivatives.outputs
    J, C = (
        np.concatenate((part[..., :n] @ T if dependent else part[..., independent], part[..., n:]), axis=2)
        for part in parts
    )
    return TangentBatch(
        tuple(independent), values.derivatives, values.outputs, values.residuals, H, T, J, C, smooth=False
    )
