"""Values and exact slopes of a mechanism for chosen outputs and what constraints observe."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.model.interface import SecondOrderForm
from fmilin.native.mechanism.closure import Closure
from fmilin.native.mechanism.kinematics import coordinate_columns, displacement_of
from fmilin.native.mechanism.outputs import Outputs
from fmilin.native.mechanism.screws import Array
from fmilin.native.mechanism.second_order_form import accelerations_along, separated
from fmilin.native.mechanism.system import Solution, State, System, rates_of
from fmilin.native.native_engine import Quantity, QuantityEvaluator

__all__ = ["MechanismEvaluator"]


class MechanismEvaluator(QuantityEvaluator):
    """Outputs and observed quantities of a mechanism.

    ``system``: with markers for these quantities and nothing else. ``closure``: what constraints observe, without
    dynamics.
    """

    def __init__(self, system: System, used: Array, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> None:
        self.system, self._used = system, used
        self.outputs, self.observing = Outputs(system, outputs), Outputs(system, observed)
        system.finish()
        self.closure = Closure.of(system, observed)

    def state(self, x: Array, u: Array) -> State:
        """Return what x (..., N) and all inputs u (..., nu) determine without solving."""
        q, v, a = self.system.parts(x)
        if len(self.system.activation_names):
            shape = np.broadcast_shapes(u.shape[:-1], a.shape[:-1])
            both = (np.broadcast_to(part, (*shape, part.shape[-1])) for part in (u, a))
            u = np.concatenate(tuple(both), axis=-1)
        return self.system.state(q, v, u)

    def solution(self, x: Array, u: Array) -> Solution:
        """Return accelerations and multipliers, with everything on the way."""
        return self.system.solve(self.state(x, u), self._used)

    def values(self, solution: Solution) -> tuple[Array, Array, Array]:
        """Return rates, outputs and observed quantities at a solution."""
        return rates_of(self.system, solution), self.outputs.values(solution), self.observing.values(solution)

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rates, outputs and observed quantities at a point, or at many: x (..., N), u (..., nu)."""
        del t
        return self.values(self.solution(x, u))

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the exact derivatives along the columns of dx (N, k) and du (nu, k)."""
        del t
        system, n_q = self.system, self.system.tree.n_q
        solution = self.solution(x, u)
        columns = system.columns(solution)
        q, v = solution.state.q, solution.state.v
        dq, dv, da = dx[:n_q], dx[n_q : n_q + system.tree.n], dx[n_q + system.tree.n :]
        du = np.concatenate((du, da))
        theta = displacement_of(system.tree, q, dq)
        dv_dot, dl = accelerations_along(solution, columns, theta, dv, du)
        E, E_q = coordinate_columns(system.tree, q, v)
        out, dz = (
            o.q @ dq + o.theta @ theta + o.v @ dv + o.v_dot @ dv_dot + o.multipliers @ dl + o.u @ du
            for o in (self.outputs.columns(solution, columns), self.observing.columns(solution, columns))
        )
        return np.concatenate((E_q @ dq + E @ dv, dv_dot, system.activation_columns(solution.state.u) @ du)), out, dz

    def observed(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return gaps and slips from positions and velocities alone; None when something else is observed."""
        del t, u
        return None if self.closure is None else self.closure.values(*self.system.parts(x)[:2])

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Return M, G and the forces at a point, also where G loses rank.

        None with quaternions, wheels, skates or activations.
        """
        del t
        system = self.system
        if len(system.tree.balls) or system.activation_names or system.m_q < len(system.loop_constraints):
            return None
        return separated(system, self.outputs, self.state(x, u))
