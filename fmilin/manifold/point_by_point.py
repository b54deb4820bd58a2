"""Many points of a model that is evaluated at one after the other, with exact directional derivatives of its own."""

from collections.abc import Sequence

import numpy as np

from fmilin.model.capabilities import read_products
from fmilin.model.interface import Evaluation, Model, TangentBatch
from fmilin.signals import FloatArray


def differentiate_each(model: Model, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation | None:
    """Return derivatives of each result along all states and inputs (k, r, N + nu); None where the model has none."""
    n, k = x.shape[1], u.shape[1]
    dx, du = np.eye(n, n + k), np.eye(k, n + k, n)
    derivatives = []
    for point in zip(t.tolist(), x, u, strict=True):
        products = read_products(model, *point, dx, du)
        if products is None:
            return None
        derivatives.append(products)
    return Evaluation.joined(derivatives)


def compute_tangents(
    model: Model,
    t: FloatArray,
    x: FloatArray,
    u: FloatArray,
    kept: Sequence[int],
    derivatives: Evaluation | None = None,
) -> TangentBatch | None:
    """Return rates, outputs and residuals with derivatives along the kept states; None if inputs move the manifold.

    ``derivatives`` along all states and inputs are asked for where they are not given.
    """
    all_derivatives, n = derivatives or differentiate_each(model, t, x, u), x.shape[1]
    if all_derivatives is None:
        return None
    residuals = all_derivatives.residuals
    if not np.isfinite(residuals).all() or residuals[..., n:].any():
        return None
    H, others = residuals[..., :n], [i for i in range(n) if i not in kept]
    T = np.zeros((len(x), n, len(kept)))
    T[:, kept] = np.eye(len(kept))
    if others:
        from fmilin.manifold.rank import independent_rows, scaled

        rows, *_ = scaled(H[0], model.states.scales(x[0]), np.zeros(H.shape[1]), np.zeros_like(H[0]))
        G = H[:, independent_rows(rows, len(others), len(rows))]
        T[:, others] = -np.linalg.solve(G[..., others], G[..., kept])
    parts = all_derivatives.derivatives, all_derivatives.outputs
    J, C = (np.concatenate((part[..., :n] @ T, part[..., n:]), axis=2) for part in parts)
    base = model.evaluate_points(t, x, u)
    return TangentBatch(tuple(kept), base.derivatives, base.outputs, base.residuals, H, T, J, C, smooth=False)
