"""The recursions of Spencer (thesis), A.3, in body-fixed coordinates, from link to link: oracles.

Newton-Euler and the body-fixed Jacobians are a second way to what the sums over all links give
(:mod:`fmilin.models.mechanism.recursions`). The articulated-body algorithm finds accelerations of an open tree at a
cost that is linear in the number of links.

Each link has one elementary joint, whose screw S_i is constant in the link, so that its own Sdot_i is zero; that of a
joint with several freedoms arises from the links between.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fmilin.models.mechanism.recursions import local_transformations
from fmilin.models.mechanism.tree import Array, Tree, ad, along, cross, inertia_tensor

__all__ = ["Ad", "articulated_body", "body_jacobians", "newton_euler"]


def newton_euler(tree: Tree, q: Array, v: Array, v_dot: Array, gravity: Array) -> Array:
    """Return tau_NE(q, v, vdot) = M vdot - F (A.6), shape (..., n).

    Forward:  V_i = Ad V_P + S_i v_i,  Vdot_i = Ad Vdot_P + S_i vdot_i - ad_(S_i v_i) V_i;
    backward: F_i = sum Ad* F_k + I_i Vdot_i - ad_(V_i)^* I_i V_i,  tau_i = S_i' F_i.
    """
    down = Ad_inverse(tree, q)
    tensors = inertia_tensor(tree.inertia)
    V, V_dot = _forward(tree, down, v, v_dot, gravity)
    F = [
        along(box, a) - along(np.swapaxes(ad(w), -1, -2), along(box, w))
        for box, a, w in zip(tensors, V_dot, V, strict=True)
    ]
    tau = np.zeros(v.shape, dtype=np.result_type(q, v, v_dot))
    for i in range(len(tree.P) - 1, 0, -1):
        tau[..., speeds(tree, i)] = F[i] @ tree.axes[speeds(tree, i)].T
        F[tree.P[i]] = F[tree.P[i]] + along(np.swapaxes(down[i], -1, -2), F[i])
    return tau


def body_jacobians(tree: Tree, q: Array) -> list[Array]:
    """Return J_i = Ad J_P + (0 .. S_i .. 0) of all links, each (..., 6, n): V_i = J_i v (4.4.1)."""
    down = Ad_inverse(tree, q)
    J: list[Array] = [np.zeros((*q.shape[:-1], 6, tree.n))]
    for i in range(1, len(tree.P)):
        own = down[i] @ J[tree.P[i]]
        own[..., speeds(tree, i)] += tree.axes[speeds(tree, i)].T
        J.append(own)
    return J


def articulated_body(tree: Tree, q: Array, v: Array, tau: Array, gravity: Array) -> Array:
    """Return vdot of the open tree under the generalized forces tau (..., n), shape (..., n) (A.3.4).

    Raises
    ------
    numpy.linalg.LinAlgError
        When a freedom moves no mass.
    """
    down = Ad_inverse(tree, q)
    tensors = list(inertia_tensor(tree.inertia))
    V, a = _forward(tree, down, v, None, None)
    b = [-along(np.swapaxes(ad(w), -1, -2), along(box, w)) for box, w in zip(tensors, V, strict=True)]
    count = len(tree.P)
    hat: list[Array] = list(tensors)
    z: list[Array] = [b[0]] * count
    D: list[Array] = [None] * count
    for i in range(count - 1, 0, -1):
        S = tree.axes[speeds(tree, i)].T
        z[i] = along(hat[i], a[i]) + b[i]
        IS = hat[i] @ S
        D[i] = np.linalg.solve(np.swapaxes(S, -1, -2) @ IS, np.swapaxes(IS, -1, -2))  # (S' I S)^-1 S' I
        push = tau[..., speeds(tree, i)] - z[i] @ S
        up, P = np.swapaxes(down[i], -1, -2), tree.P[i]
        hat[P] = hat[P] + up @ (hat[i] - IS @ D[i]) @ down[i]
        b[P] = b[P] + along(up, z[i] + along(np.swapaxes(D[i], -1, -2), push))
    v_dot = np.zeros(np.broadcast_shapes(v.shape, tau.shape), dtype=np.result_type(q, v, tau))
    V_dot: list[Array] = [np.concatenate((np.zeros(3), -np.asarray(gravity)))]
    for i in range(1, count):
        S, coming = tree.axes[speeds(tree, i)].T, along(down[i], V_dot[tree.P[i]])
        IS = hat[i] @ S
        push = tau[..., speeds(tree, i)] - z[i] @ S
        own = np.linalg.solve(np.swapaxes(S, -1, -2) @ IS, push[..., None])[..., 0] - along(D[i], coming)
        v_dot[..., speeds(tree, i)] = own
        V_dot.append(coming + own @ S.T + a[i])
    return v_dot


def speeds(tree: Tree, link: int) -> Any:
    """Return the freedoms of a link."""
    return np.flatnonzero(link == tree.L)


def Ad(X: Array) -> Array:
    """Return the matrix Ad_X of a homogeneous transformation X (..., 4, 4), shape (..., 6, 6) (A.1.4)."""
    R, p = X[..., :3, :3], X[..., :3, 3]
    pR = cross(p[..., None, :], np.swapaxes(R, -1, -2))  # rows: p x (columns of R)
    upper = np.concatenate((R, np.zeros_like(R)), axis=-1)
    lower = np.concatenate((np.swapaxes(pR, -1, -2), R), axis=-1)
    return np.concatenate((upper, lower), axis=-2)


def Ad_inverse(tree: Tree, q: Array) -> Array:
    """Return Ad of f_(P,i)^-1 for every link, first axis the links, shape (N + 1, ..., 6, 6)."""
    f = np.moveaxis(local_transformations(tree, q), -3, 0)
    R_t = np.swapaxes(f[..., :3, :3], -1, -2)
    back = np.zeros_like(f)
    back[..., :3, :3] = R_t
    back[..., :3, 3] = -along(R_t, f[..., :3, 3])
    back[..., 3, 3] = 1.0
    return Ad(back)


def _forward(
    tree: Tree, down: Array, v: Array, v_dot: Array | None, gravity: Array | None
) -> tuple[list[Array], list[Array]]:
    """Return V_i and Vdot_i; without accelerations only what each joint adds, -ad_(S_i v_i) V_i."""
    base = np.zeros(6) if gravity is None else np.concatenate((np.zeros(3), -np.asarray(gravity)))
    V, V_dot = [np.zeros((*v.shape[:-1], 6))], [np.broadcast_to(base, (*v.shape[:-1], 6))]
    for i in range(1, len(tree.P)):
        S, P = tree.axes[speeds(tree, i)].T, tree.P[i]
        own = v[..., speeds(tree, i)] @ S.T
        V.append(along(down[i], V[P]) + own)
        turn = -along(ad(own), V[i])
        if v_dot is not None:
            turn = turn + along(down[i], V_dot[P]) + v_dot[..., speeds(tree, i)] @ S.T
        V_dot.append(turn)
    return V, V_dot
