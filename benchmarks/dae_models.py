"""DAEs of index 1 to 3 made from a known small system, which their equations hide: for tests and a table.

The small system y' = F(y, u) rests at y0, u0. Further states xi = kappa(y), eta = der(xi) obey constraints that unknown
forces lambda keep; algebraic variables zeta = phi(y, u) solve a cubic equation, which has no other solution. Where
these differ from the truth they push y, so that nothing can be left out. States, algebraic variables and equations are
mixed at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from fmilin import LinearModel, Signal, Signals
from fmilin.models import DaeGraph

Array = NDArray[np.float64]
MIXINGS = ("plain", "within", "across", "functions")
"""Equations as they are; mixed among those of one kind; all with all, by numbers; by functions of the states."""


@dataclass(frozen=True)
class RandomDae:
    """A DAE and what its linear model must be."""

    graph: DaeGraph
    index: int
    mixing: str
    psi: Array  # (N, P), d states / dy at the start
    A: Array
    B: Array
    C: Array
    D: Array

    def error(self, lin: LinearModel) -> float:
        """Return the largest difference from the truth, of the largest entry of each matrix; infinite for the order."""
        if len(lin.A) != len(self.A):
            return float("inf")
        names = self.graph.states.names
        J = self.psi[[names.index(n) for n in lin.states.names]]
        inverse = np.linalg.inv(J)
        truth = (J @ self.A @ inverse, J @ self.B, self.C @ inverse, self.D)
        if len(lin.inputs) > self.B.shape[1]:
            return float("inf")
        pairs = zip((lin.A, lin.B, lin.C, lin.D), truth, strict=True)
        size = max(float(np.abs(t).max(initial=1.0)) for t in truth)
        return max(float(np.abs(a - b).max(initial=0.0)) for a, b in pairs) / size


def random_dae(seed: int) -> RandomDae:
    """Return one of them: the index and the mixing go by the seed in turn."""
    rng = np.random.default_rng(seed)
    index, mixing = 1 + seed % 3, MIXINGS[seed // 3 % len(MIXINGS)]
    n_q, n_u = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    q, v, u = ca.SX.sym("q", n_q), ca.SX.sym("v", n_q), ca.SX.sym("u", n_u)
    y = ca.vertcat(q, v)
    y0, u0 = rng.uniform(-1, 1, 2 * n_q), rng.uniform(-1, 1, n_u)
    y0[n_q:] = 0.0  # it rests

    def smooth(rows: int, over: Any) -> Any:
        n = over.numel()
        return ca.mtimes(rng.normal(size=(rows, n)), over) + 0.3 * ca.mtimes(rng.normal(size=(rows, n)), ca.sin(over))

    def at_rest(e: Any) -> Any:
        return e - ca.Function("e", [y, u], [e])(y0, u0)

    F = ca.vertcat(v, at_rest(smooth(n_q, ca.vertcat(y, u)) + 0.2 * v**2))
    n_zeta = int(rng.integers(1, 4))
    phi = smooth(n_zeta, ca.vertcat(y, u))
    n_xi = 0 if index == 1 else int(rng.integers(1, 3))
    kappa = smooth(n_xi, q if index == 3 else y) + 0.2 * ca.mtimes(rng.normal(size=(n_xi, n_q)), q**2)
    rate = ca.jtimes(kappa, y, F)
    force = ca.jtimes(rate, y, F) if index == 3 else rate
    return _disguised(rng, index, mixing, (y, u, y0, u0), F, (phi, kappa, rate, force))


def _disguised(rng: Any, index: int, mixing: str, point: Any, F: Any, parts: Any) -> RandomDae:
    (y, u, y0, u0), (phi, kappa, rate, force) = point, parts
    n_y, n_u, n_zeta, n_xi = y.numel(), u.numel(), phi.numel(), kappa.numel()
    full = ca.vertcat(y, *([kappa] if index > 1 else []), *([rate] if index == 3 else []))
    N, nz = full.numel(), n_zeta + n_xi
    M, K = _mixer(rng, N), _mixer(rng, nz)
    x, dx, z = ca.SX.sym("x", N), ca.SX.sym("dx", N), ca.SX.sym("z", nz)
    s, ds, free = ca.mtimes(np.linalg.inv(M), x), ca.mtimes(np.linalg.inv(M), dx), ca.mtimes(np.linalg.inv(K), z)
    zeta, lam = free[:n_zeta], ca.reshape(free[n_zeta:], n_xi, 1)
    hidden = ca.Function("hidden", [y, u], [F, phi, force, kappa])
    own_F, own_phi, own_force, own_kappa = hidden(s[:n_y], u)
    wrong = zeta - own_phi
    pushed = ca.mtimes(rng.normal(size=(n_y, nz)), ca.vertcat(wrong, *([lam - own_force] if n_xi else [])))
    n_q = n_y // 2
    pushed[:n_q] = 0
    groups = [ds[:n_y] - own_F - pushed]
    half = _mixer(rng, n_zeta)  # half' half is positive: there is no other solution than zero
    groups.append(ca.mtimes(half.T @ half, wrong) + 0.5 * wrong**3)
    if index == 2:
        groups += [ds[n_y:] - lam, s[n_y:] - own_kappa]
    if index == 3:
        groups += [ds[n_y : n_y + n_xi] - s[n_y + n_xi :], ds[n_y + n_xi :] - lam, s[n_y : n_y + n_xi] - own_kappa]
    rows = _mixed(rng, mixing, groups, s)
    z_true = ca.mtimes(K, ca.vertcat(phi, force))
    seen = ca.vertcat(z_true, ca.sin(y), u[0] * y[0])
    numbers = ca.Function("n", [y, u], [full, z_true, *(ca.jacobian(e, a) for e, a in
                                                       ((full, y), (F, y), (F, u), (seen, y), (seen, u)))])  # fmt: skip
    x0, z0, psi, A, B, C, D = (np.array(a.full()) for a in numbers(y0, u0))
    starts = (M @ x0[:, 0]).tolist(), (z0[:, 0] + 0.05 * rng.normal(size=nz)).tolist()
    graph = DaeGraph(
        name="random",
        residuals=rows,
        x=x, dx=dx, z=z, u=u,
        states=Signals(Signal(f"x[{i + 1}]", start=a) for i, a in enumerate(starts[0])),
        algebraic=Signals(Signal(f"z[{i + 1}]", start=a) for i, a in enumerate(starts[1])),
        inputs=Signals(Signal(f"u[{i + 1}]", start=a) for i, a in enumerate(u0.tolist())),
        outputs={f"o[{i + 1}]": e for i, e in enumerate(
            [*z.elements(), *ca.sin(s[:n_y]).elements(), u[0] * s[0]])},
    )  # fmt: skip
    del n_u
    return RandomDae(graph, index, mixing, M @ psi, A, B, C, D)


def _mixer(rng: Any, n: int) -> Array:
    """Return a regular matrix, well conditioned, half of its entries zero."""
    while True:
        M = np.eye(n) + np.where(rng.random((n, n)) < 0.5, rng.normal(size=(n, n)), 0.0)
        if n == 0 or np.linalg.cond(M) < 30:
            return M


def _mixed(rng: Any, mixing: str, groups: list[Any], s: Any) -> Any:
    if mixing == "within":
        groups = [ca.mtimes(_mixer(rng, g.numel()), g) for g in groups]
    rows = ca.vertcat(*groups)
    n = rows.numel()
    if mixing == "across":
        rows = ca.mtimes(_mixer(rng, n), rows)
    if mixing == "functions":
        lower = np.tril(np.where(rng.random((n, n)) < 0.4, rng.normal(size=(n, n)), 0.0), -1)
        upper = np.triu(np.where(rng.random((n, n)) < 0.4, rng.normal(size=(n, n)), 0.0), 1)
        rows = rows + ca.mtimes(lower * ca.cos(s[0]), rows)
        rows = rows + ca.mtimes(upper * ca.exp(-(s[0] ** 2)), rows)
    return ca.densify(rows)
