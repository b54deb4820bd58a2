"""Prescribed motions as states of the linear model: a chain of integrators in front of the inputs."""

from __future__ import annotations

import dataclasses

import numpy as np

from fmilin.linear_model.model import EntryErrors, LinearModel
from fmilin.signals import FloatArray, Signals

__all__ = ["with_prescribed_states"]


def with_prescribed_states(linear: LinearModel) -> LinearModel:
    """Return the model in which every input that has its derivative among the inputs is a state.

    With s the inputs that become states and r the others, u = (s, r), and s' = S_s s + S_r r picks the derivatives:

        [y']   [A  B_s] [y]   [B_r]
        [s'] = [0  S_s] [s] + [S_r] r
    """
    names, n_y = linear.inputs.names, len(linear.states)
    positions = linear.inputs.positions_of_own_names
    chain = {j: positions[f"der({name})"] for j, name in enumerate(names) if f"der({name})" in positions}
    if not chain:
        return linear
    s, r = sorted(chain), [j for j in range(len(names)) if j not in chain]
    pick = np.zeros((len(s), len(names)))
    for row, j in enumerate(s):
        pick[row, chain[j]] = 1.0
    u0 = np.array([linear.point.inputs[name] for name in names])
    zeros = np.zeros((len(s), n_y))

    def wide(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.hstack((left, right[:, s]))

    errors = linear.errors
    return dataclasses.replace(
        linear,
        A=np.vstack((wide(linear.A, linear.B), wide(zeros, pick))),
        B=np.vstack((linear.B[:, r], pick[:, r])),
        C=wide(linear.C, linear.D),
        D=linear.D[:, r],
        T=wide(linear.T, linear.T_u),
        T_u=linear.T_u[:, r],
        f0=np.concatenate((linear.f0, pick @ u0)),
        y0=np.concatenate((linear.y0, u0[s])),
        states=Signals([*linear.states, *(linear.inputs[j] for j in s)]),
        inputs=linear.inputs.select(r),
        errors=EntryErrors(
            A=np.vstack((wide(errors.A, errors.B), np.zeros((len(s), n_y + len(s))))),
            B=np.vstack((errors.B[:, r], np.zeros((len(s), len(r))))),
            C=wide(errors.C, errors.D),
            D=errors.D[:, r],
            T=wide(errors.T, np.zeros_like(linear.T_u)),
        ),
        descriptor=None,
    )
