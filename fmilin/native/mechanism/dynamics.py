"""Newton-Euler, the mass matrix and their exact derivatives, all freedoms at once.

Spencer (thesis), A.3 and 4.3, seen from the ground. There the backward recursion is a sum over subtrees. With
composite quantities of the subtree of link i

    I_i^c = sum I_k,   F_i = sum I_k Vdot_k - ad_(V_k)^* I_k V_k - (what acts from outside on k),   tau_i = S_i' F_i,

the mass matrix of the composite-rigid-body algorithm is M_ij = S_i' I_j^c S_j for j beyond i, and the recursions of 4.3
for d tau/dq and d tau/dv, which carry a column through the tree for every freedom, sum up to

    d tau_i/d theta_j = S_i' (I^c phi_j + B^c psi_j),   less S_i' ad_(S_j)^* F_j for j beyond i,
    d tau_i/d v_j     = S_i' (I^c (psi_j + Sdot_j) + B^c S_j),

I^c and B^c of whichever of i and j lies farther out, with B_k x = -ad_(V_k)^* I_k x - I_k ad_(V_k) x - ad_x^* I_k V_k
for each link. Singh, Russell and Wensing (2022) found the same sums for robots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.native.mechanism.kinematics import Motion, Velocities
from fmilin.native.mechanism.screws import Array, ad, along, inertia_tensor, moment_of
from fmilin.native.mechanism.tree import Tree

__all__ = ["Inertia", "TorqueColumns", "generalized", "inertia_of", "mass_matrix", "torque_columns"]


@dataclass(frozen=True)
class Inertia:
    """Inertia and momentum of the links, seen from the ground."""

    P: Array  # (..., N + 1, 4, 4), pseudo-inertia
    # of shape (..., N + 1, 6, 6)
    I: Array  # noqa: E741 - the letter of the source
    momentum: Array  # (..., N + 1, 6), I V
    gyroscopic: Array  # (..., N + 1, 6), -ad_V^* I V
    ad_V: Array  # of shape (..., N + 1, 6, 6)


def inertia_of(tree: Tree, at: Velocities) -> Inertia:
    """Return the inertia tensors X P X' of all links and what follows from the velocities."""
    P = at.X @ tree.inertia @ np.swapaxes(at.X, -1, -2)
    tensors = inertia_tensor(P)
    momentum = along(tensors, at.V)
    ad_V = ad(at.V)
    return Inertia(P, tensors, momentum, -along(np.swapaxes(ad_V, -1, -2), momentum), ad_V)


def net_forces(inertia: Inertia, A: Array) -> Array:
    """Return the moment and force that each link needs for its motion, I Vdot - ad_V^* I V, shape (..., N + 1, 6)."""
    return along(inertia.I, A) + inertia.gyroscopic


def generalized(tree: Tree, S: Array, wrenches: Array) -> Array:
    """Return S_i' (sum of the wrenches on the subtree of i), shape (..., n), for wrenches (..., N + 1, 6)."""
    return (S * (tree.below @ wrenches)).sum(axis=-1)


def composite(tree: Tree, of_links: Array) -> Array:
    """Return the sum of (..., N + 1, a, b) over the subtree of each freedom's link, shape (..., n, a, b)."""
    a, b = of_links.shape[-2:]
    flat = of_links.reshape((*of_links.shape[:-2], a * b))
    return (tree.below @ flat).reshape((*of_links.shape[:-3], tree.n, a, b))


def composite_inertia(tree: Tree, inertia: Inertia) -> Array:
    """Return I^c of each freedom's link, shape (..., n, 6, 6)."""
    return inertia_tensor(composite(tree, inertia.P))


def mass_matrix(tree: Tree, S: Array, I_c: Array) -> Array:
    """Return M (..., n, n) by the composite-rigid-body algorithm (A.3.4), I_c from :func:`composite_inertia`."""
    M = S @ np.swapaxes(along(I_c, S), -1, -2)
    beyond = M * tree.strict
    return M * tree.same + beyond + np.swapaxes(beyond, -1, -2)


@dataclass(frozen=True)
class TorqueColumns:
    """Derivatives of tau_NE(q, v, vdot), without those of wrenches from outside."""

    # q, v: (..., n, n), d tau/d theta and d tau/dv
    q: Array
    v: Array


def torque_columns(tree: Tree, motion: Motion, inertia: Inertia, I_c: Array, outside: Array) -> TorqueColumns:
    """Return d tau_NE/d theta and d tau_NE/dv (4.3).

    Shapes: I_c (..., n, 6, 6). ``motion``: with the accelerations at which to differentiate. ``outside`` (..., N + 1,
    6): wrenches on the links from outside, which tau_NE has subtracted; how they change themselves is left out here.
    """
    S, psi, phi = motion.at.S, motion.psi, motion.phi
    ad_V, tensors = inertia.ad_V, inertia.I
    turned = np.swapaxes(ad_V, -1, -2) @ tensors  # ad_V^* I, and I ad_V is its transpose
    B = -turned - np.swapaxes(turned, -1, -2) + moment_of(inertia.momentum)
    B_c = composite(tree, B)
    F = along(moment_of(tree.below @ net_forces(inertia, motion.A)), S)  # -ad_S^* F of what lies beyond
    W = along(moment_of(tree.below @ outside), S)
    drift = psi + motion.at.Sdot
    by_I, by_B = I_c @ np.stack((phi, drift, S), axis=-1), B_c @ np.stack((psi, S), axis=-1)
    inner_q, inner_v = by_I[..., 0] + by_B[..., 0], by_I[..., 1] + by_B[..., 1]
    IS, BS = by_I[..., 2], along(np.swapaxes(B_c, -1, -2), S)
    lower_q = np.concatenate((IS, BS, -W), axis=-1) @ _columns(phi, psi, S)
    lower_v = np.concatenate((IS, BS), axis=-1) @ _columns(drift, S)
    turn = _columns
    upper_q, upper_v = S @ turn(inner_q), S @ turn(inner_v)
    lower = np.swapaxes(tree.strict, -1, -2)
    d_q = upper_q * (tree.same + tree.strict) + (S @ turn(F)) * tree.strict + (S @ turn(W)) * tree.same
    return TorqueColumns(d_q + lower_q * lower, upper_v * (tree.same + tree.strict) + lower_v * lower)


def _columns(*screws: Array) -> Array:
    """Return screws (..., n, 6) side by side as columns, shape (..., 6 times their number, n)."""
    joined = np.concatenate(screws, axis=-1) if len(screws) > 1 else screws[0]
    return np.swapaxes(joined, -1, -2)
