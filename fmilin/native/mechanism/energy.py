"""Kinetic and potential energy of a mechanism, and their derivatives."""

from __future__ import annotations

import numpy as np

from fmilin.native.mechanism.screws import Array, ad, along, cross
from fmilin.native.mechanism.system import State, System

__all__ = ["energy", "energy_columns"]


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
        theta, v = theta + _kinetic(system, state), v + (state.M @ state.v[..., None])[..., 0]
    if what != "kinetic_energy":
        theta = theta + _potential(system, state)
    return theta, v


def _kinetic(system: System, state: State) -> Array:
    """Return the sum of (I V)' psi_j over the links beyond j: the rest of dV/dtheta_j turns V and I alike."""
    tree = system.tree
    psi = along(ad(state.at.V[..., tree.P[tree.L], :]), state.at.S)
    return (psi * (tree.below @ state.inertia.momentum)).sum(axis=-1)


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
