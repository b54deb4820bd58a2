"""Loops that nobody declared, off equilibrium: functions g of positions for which g'' is zero wherever the states are.

There the linear model shows nothing of them: the rate of their gradient is curvature times motion. A mechanism that
starts at a dead centre and falls from it is such a point. With q' = v the second rate needs no differences:
g'' = v' D2g v + Dg v'.
"""

from __future__ import annotations

import numpy as np

from fmilin.ground.errors import ModelError, NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import EQUILIBRIUM, RANK
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model, OperatingPoint

FAR = 0.3  # how far states are moved, in their sizes
MOST_FUNCTIONS = 300  # one visit for each is too many for a remark beyond these


def hidden_loops(linear: LinearModel, model: Model, point: OperatingPoint) -> FloatArray:
    """Return how much each state takes part in each loop, shape (N, k): products, sines and cosines of positions."""
    n, sizes = len(linear.states), linear.states.scales(linear.y0)
    pairs = [(i, int(np.argmax(row))) for i, row in enumerate(linear.A) if _is_speed(linear, i, row)]
    p = len(pairs)
    nothing = np.zeros((n, 0))
    if np.abs(linear.f0 / sizes).max(initial=0.0) <= EQUILIBRIUM or p < 2 or p * (p + 7) // 2 > MOST_FUNCTIONS:
        return nothing
    q, v = np.array(pairs).T
    rows = _second_rates(model, point, sizes, q, v)
    if len(rows) <= rows.shape[1]:
        return nothing
    norms = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
    _, s, vt = np.linalg.svd(rows / norms, full_matrices=False)
    kept = vt[s <= RANK * s[0]] / norms
    kept = kept / np.abs(kept).max(axis=1, keepdims=True, initial=1e-300)
    _, s, vt = np.linalg.svd(kept[:, p:], full_matrices=False)  # sums of positions alone move on, as momentum does
    bends = np.abs(vt[s > RANK])
    members = [*_products(p), *((k, k) for k in (*range(p), *range(p)))]
    parts = np.zeros((n, len(bends)))
    for (i, j), part in zip(members, bends.T, strict=True):
        parts[[q[i], q[j], v[i], v[j]]] += part
    return parts


def _is_speed(linear: LinearModel, i: int, row: FloatArray) -> bool:
    """Whether the rate of state i is another state."""
    j = int(np.argmax(row))
    alone = row[j] == 1 and np.count_nonzero(row) == 1 and i != j
    return alone and not linear.B[i].any() and bool(linear.f0[i] == linear.y0[j])


def _products(p: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(p) for j in range(i, p)]


def _second_rates(model: Model, point: OperatingPoint, sizes: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
    """Return g'' of q_i, q_i q_j, sin q_i and cos q_i at random states and inputs, each row in its size."""
    random, rows = np.random.default_rng(1974), []
    for _ in range(len(q) * (len(q) + 7) // 2 + 10):
        x = point.states + FAR * sizes * random.uniform(-1.0, 1.0, len(sizes))
        u = point.inputs + model.inputs.scales(point.inputs) * random.uniform(-1.0, 1.0, len(point.inputs))
        try:
            f = model.evaluate(point.time, x, u).derivatives
        except (ModelError, NumericalError):
            continue
        x, w, a = x[q], x[v], f[v]
        products = [x[i] * a[j] + 2 * w[i] * w[j] + x[j] * a[i] for i, j in _products(len(q))]
        sines = np.cos(x) * a - np.sin(x) * w * w
        cosines = -np.sin(x) * a - np.cos(x) * w * w
        row = np.concatenate((a, products, sines, cosines))
        if np.isfinite(row).all():
            rows.append(row / max(np.linalg.norm(row), 1e-300))
    return np.array(rows).reshape(-1, len(q) * (len(q) + 7) // 2)
