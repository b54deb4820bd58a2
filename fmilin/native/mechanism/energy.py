"""Energies of a mechanism and orientations of its bodies, with their derivatives.

Orientations are unit quaternions whose signs are continuous. The quaternion of a link is that of its parent times that
of its joint: no branch is taken on the way. A displacement theta_j turns everything beyond it with the angular part w_j
of its screw: de/dtheta_j = (0, w_j) o e / 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from fmilin.native.mechanism.screws import Array, ad, along, cross, root
from fmilin.native.mechanism.system import State, System
from fmilin.native.mechanism.tree import Tree


def energy(system: System, state: State, what: str) -> Array:
    """Return ``kinetic_energy``, ``potential_energy`` (of weight and springs) or their sum, shape (...)."""
    values = 0.0
    if what != "potential_energy":
        values = values + (state.at.V * state.inertia.momentum).sum(axis=(-1, -2)) / 2
        if system.armature.any():
            values = values + (system.armature * state.v * state.v).sum(axis=-1) / 2
    if what != "kinetic_energy":
        weight = state.inertia.P[..., :3, 3].sum(axis=-2) @ system.gravity
        joints = system.forces.joints
        stretch = state.q[..., joints.coordinate] - joints.rest
        springs = (joints.k * stretch * stretch).sum(axis=-1) / 2
        values = values + system.forces.energy(system.stretch(state)[0]) + springs - weight
        if system.forces.s_0 is not None:
            values = values - system.forces.lifted(system.rows, state.now)
        if system.paths is not None and state.drives is not None:
            values = values + system.paths.energy(state.drives)
    return values


def energy_columns(system: System, state: State, what: str) -> tuple[Array, Array]:
    """Return the derivatives with respect to theta and v, each (..., n)."""
    theta, v = np.zeros_like(state.v), np.zeros_like(state.v)
    if what != "potential_energy":
        # The sum of (I V)' psi_j over the links beyond j: the rest of dV/dtheta_j turns V and I alike.
        tree, at = system.tree, state.at
        psi = along(ad(at.V[..., tree.P[tree.L], :]), at.S)
        theta = theta + (psi * (tree.below @ state.inertia.momentum)).sum(axis=-1)
        v = v + (state.M @ state.v[..., None])[..., 0]
    if what != "kinetic_energy":
        theta = theta + _potential(system, state)
    return theta, v


def _potential(system: System, state: State) -> Array:
    tree, S, forces = system.tree, state.at.S, system.forces
    first_moment = tree.below @ state.inertia.P[..., :, 3]  # (m c, m) of what each freedom moves
    moved = S[..., 3:] * first_moment[..., 3:] + cross(S[..., :3], first_moment[..., :3])
    joints = forces.joints
    stretch = state.q[..., joints.coordinate] - joints.rest
    d, _ = system.stretch(state)
    L = np.sqrt((d * d).sum(axis=-1))
    G = system.rows.jacobian(state.rows.W[..., forces.rows, :], S, forces.rows)
    pull = forces.k * np.where(forces.L_0 > 0, (L - forces.L_0) / np.where(L > 0, L, 1.0), 1.0)
    tendons = 0.0
    if system.paths is not None and state.drives is not None:
        R = system.rows.jacobian(state.rows.W, S)
        stretched = system.paths.stretch(state.drives)
        tendons = (stretched[..., None] * system.paths.length_columns(state.drives, R)).sum(axis=-2)
    if forces.s_0 is not None:
        tendons = tendons - (forces.s_0[:, None] * system.rows.jacobian(state.rows.W, S)).sum(axis=-2)
    return joints.k * stretch - moved @ system.gravity + (pull[..., None] * G).sum(axis=-2) + tendons


Floats = NDArray[np.float64]


def quaternion_of(tree: Tree, q: Array, body: str) -> Array:
    """Return the unit quaternion of a body's frame, shape (..., 4), real part first."""
    link, offset = tree.frame_of[body]
    path = []
    while link:
        path.append(link)
        link = int(tree.P[link])
    e = np.broadcast_to(np.array([1.0, 0.0, 0.0, 0.0]), (*q.shape[:-1], 4))
    balls = tree.balls.tolist()
    for i in reversed(path):
        e = _product(e, _constant(tree.M[i, :3, :3]))
        if i in balls:
            own = q[..., tree.ball_coordinates[balls.index(i)]]
            e = _product(e, own / root((own * own).sum(axis=-1, keepdims=True)))
        else:
            freedom = int(np.flatnonzero(i == tree.L)[0])
            axis = tree.axes[freedom, :3]
            if axis.any():
                half = q[..., tree.coordinate[i], None] / 2
                e = _product(e, np.concatenate((np.cos(half), np.sin(half) * axis), axis=-1))
    return _product(e, _constant(offset[:3, :3]))


def turned_columns(tree: Tree, state: State, body: str) -> Array:
    """Return the derivative of the quaternion by displacements, shape (..., 4, n)."""
    link, _ = tree.frame_of[body]
    e = quaternion_of(tree, state.q, body)
    w = state.at.S[..., :3] * tree.above[link][:, None]
    still = np.concatenate((np.zeros((*w.shape[:-1], 1)), w / 2), axis=-1)
    return np.swapaxes(_product(still, e[..., None, :]), -1, -2)


def _product(a: Array, b: Array) -> Array:
    """Return the product of quaternions (..., 4)."""
    a0, a1, a2, a3 = (a[..., i] for i in range(4))
    b0, b1, b2, b3 = (b[..., i] for i in range(4))
    return np.stack(
        (
            a0 * b0 - a1 * b1 - a2 * b2 - a3 * b3,
            a0 * b1 + a1 * b0 + a2 * b3 - a3 * b2,
            a0 * b2 - a1 * b3 + a2 * b0 + a3 * b1,
            a0 * b3 + a1 * b2 - a2 * b1 + a3 * b0,
        ),
        axis=-1,
    )


def _constant(R: Floats) -> Floats:
    """Return the quaternion of a rotation that has the larger real part."""
    return Rotation.from_matrix(R).as_quat(canonical=True, scalar_first=True)
