"""The equations of a mechanism taken apart at one point: what singular configurations and other formulations need."""

from __future__ import annotations

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.model.interface import SecondOrderForm
from fmilin.native.mechanism.outputs import Outputs
from fmilin.native.mechanism.screws import Array
from fmilin.native.mechanism.system import Columns, Solution, State, System

__all__ = ["accelerations_along", "separated"]


def accelerations_along(
    solution: Solution, columns: Columns, theta: Array, dv: Array, du: Array
) -> tuple[Array, Array]:
    """Return the changes of vdot and lambda along displacements theta, dv (n, k) and inputs du (nu, k)."""
    used = solution.used
    dF = -(columns.rho_q @ theta + columns.rho_v @ dv + columns.rho_u @ du)
    dc = columns.c_q[..., used, :] @ theta + columns.c_v[..., used, :] @ dv
    w = solution.factors.solve(np.concatenate((dF, -dc), axis=-2))
    n = dF.shape[-2]
    dl = np.zeros((*w.shape[:-2], solution.multipliers.shape[-1], w.shape[-1]))
    dl[..., used, :] = w[..., n:, :]
    return w[..., :n, :], dl


def separated(system: System, outputs: Outputs, state: State) -> SecondOrderForm:
    """Return M, G and the forces of a mechanism without balls and with constraints on positions alone.

    Multipliers and accelerations are those of least norm. Positions and freedoms are numbered alike there.
    """
    solution = system.solve_robustly(state)
    columns = system.columns(solution)
    n = system.tree.n
    o = outputs.columns(solution, columns)
    order = np.arange(n)
    zero = np.zeros_like(state.u)

    def bend(a: FloatArray) -> FloatArray:
        return np.asarray(system.state(state.q, a, zero).c)

    return SecondOrderForm(
        positions=order,
        velocities=n + order,
        M=state.M,
        G=state.G,
        multipliers=solution.multipliers,
        accelerations=solution.v_dot,
        force_states=-np.hstack((columns.rho_q, columns.rho_v)),
        force_inputs=-columns.rho_u,
        output_states=np.hstack((o.q + o.theta, o.v)),
        output_inputs=o.u,
        output_unknowns=np.hstack((o.v_dot, o.multipliers)),
        bend=bend,
        constraint_states=np.hstack((columns.c_q, columns.c_v)),
        constraint_inputs=np.zeros((len(system.loop_constraints), state.u.size)),
    )
