"""Many points of a model that is asked at one after the other, with exact products of its own."""

from collections.abc import Sequence

import numpy as np

from fmilin.model.capabilities import read_products
from fmilin.model.interface import Evaluation, Model, TangentBatch
from fmilin.signals import FloatArray


def evaluations(model: Model, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation:
    """Return what a model says at times t (k,), points x (k, N), u (k, nu), each part with a leading axis."""
    visits = [model.evaluate(*point) for point in zip(t.tolist(), x, u, strict=True)]
    return Evaluation(*(np.array([getattr(v, p) for v in visits]) for p in ("derivatives", "outputs", "residuals")))


def slopes(model: Model, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation | None:
    """Return the slopes of each part along all states and inputs (k, r, N + nu); None where there is no answer."""
    n, k = x.shape[1], u.shape[1]
    dx, du = np.eye(n, n + k), np.eye(k, n + k, n)
    answers = [read_products(model, *point, dx, du) for point in zip(t.tolist(), x, u, strict=True)]
    parts = (np.array([getattr(a, p, None) for a in answers]) for p in ("derivatives", "outputs", "residuals"))
    return None if None in answers else Evaluation(*parts)


def tangents(model: Model, t: FloatArray, x: FloatArray, u: FloatArray, kept: Sequence[int]) -> TangentBatch | None:
    """Return rates, outputs and residuals with slopes along the kept states, or None; no input moves the manifold."""
    along, n = slopes(model, t, x, u), x.shape[1]
    if along is None or not np.isfinite(along.residuals).all() or along.residuals[..., n:].any():
        return None
    H, others = along.residuals[..., :n], [i for i in range(n) if i not in kept]
    T = np.zeros((len(x), n, len(kept)))
    T[:, kept] = np.eye(len(kept))
    if others:
        from fmilin.manifold.rank import independent_rows, scaled

        rows, *_ = scaled(H[0], model.states.scales(x[0]), np.zeros(H.shape[1]), np.zeros_like(H[0]))
        G = H[:, independent_rows(rows, len(others), len(rows))]
        T[:, others] = -np.linalg.solve(G[..., others], G[..., kept])
    J, C = (np.concatenate((p[..., :n] @ T, p[..., n:]), axis=2) for p in (along.derivatives, along.outputs))
    v = evaluations(model, t, x, u)
    return TangentBatch(tuple(kept), v.derivatives, v.outputs, v.residuals, H, T, J, C, smooth=False)
