"""Values and exact slopes of a mechanism for chosen outputs and what constraints observe.

Gaps and slips come from positions and velocities alone: Newton's iterations on the manifold ask for them many times,
and the kinematics take a third of the cost of an evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.model.interface import SecondOrderForm
from fmilin.native.mechanism.elements import Sensor
from fmilin.native.mechanism.outputs import Outputs
from fmilin.native.mechanism.recursions import accelerations, coordinate_columns, displacement_of, motion, velocities
from fmilin.native.mechanism.screws import Array
from fmilin.native.mechanism.system import Columns, Solution, State, System, rates_of
from fmilin.native.mechanism.tree import Tree
from fmilin.native.native_engine import Quantity, QuantityEvaluator


class Closure:
    """What the constraints of a mechanism observe without its dynamics: gaps and slips, in any order."""

    def __init__(self, system: System, entries: Sequence[Quantity]) -> None:
        self.system = system
        # Gaps first, then slips: the number of a gap is that of its constraint, and those on positions come first.
        first = {"gap": 0, "slip": system.m_q}
        self._order = np.array([first[kind] + number for kind, number in (e.source for e in entries)], dtype=np.intp)

    @classmethod
    def of(cls, system: System, entries: Sequence[Quantity]) -> Closure | None:
        """Return the closure, or None when something else is observed, too, an acceleration, say."""
        sources = [entry.source for entry in entries]
        is_closure = all(not isinstance(source, Sensor) and source[0] in ("gap", "slip") for source in sources)
        return cls(system, entries) if is_closure else None

    def values(self, q: Array, v: Array) -> Array:
        """Return the observed values at q (..., n_q), v (..., n), shape (..., their number)."""
        system, at = self.system, velocities(self.system.tree, q, v)
        now = system.markers.motion(at)
        W = system.rows.motion(now).W[..., system.positions, :]
        slips = system.rows.slips(W, at.V, v, system.positions)
        slips = slips if system.bends is None else system.bends.slips(slips, q, v)
        return np.concatenate((system.gaps_at(now, q), slips), axis=-1)[..., self._order]

    def values_and_gradient(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the observed values (..., k) and their gradients for (q, v), shape (..., k, N), without dynamics."""
        system, tree, rate_q = self.system, self.system.tree, None
        at = velocities(tree, q, v)
        now = system.markers.motion(at)
        wrenches = system.rows.motion(now)
        G = system.rows.jacobian(wrenches.W[..., system.positions, :], at.S, system.positions)
        G = G if system.bends is None else system.bends.jacobian(G, q)
        slips = (G @ v[..., None])[..., 0]
        if v.any():
            moving = motion(tree, at, accelerations(tree, at, v, system.gravity))
            slots = system.derivatives.slots(now)
            rate_q = system.derivatives.columns(moving, now, slots, wrenches).rate_q[..., system.positions, :]
            rate_q = rate_q if system.bends is None else system.bends.rate_columns(rate_q, q, v)
        values = np.concatenate((system.gaps_at(now, q), slips), axis=-1)
        return values[..., self._order], self._gradient(q, G, rate_q)

    def gradient(self, solution: Solution, columns: Columns) -> Array:
        """Return the gradients of the observed values for (q, v) at a solution, shape (..., their number, N)."""
        return self._gradient(solution.state.q, solution.state.G, columns.rate_q)

    def _gradient(self, q: Array, G: Array, rate_q: Array | None) -> Array:
        """Return the gradients for (q, v, activations): these move nothing; ``rate_q`` is None at rest."""
        tree, m_q = self.system.tree, self.system.m_q
        states = tree.n_q + tree.n + len(self.system.activation_names)
        gradient = np.zeros((*G.shape[:-2], m_q + G.shape[-2], states))
        gradient[..., :m_q, : tree.n_q] = _along_coordinates(tree, q, G[..., :m_q, :])
        gradient[..., m_q:, tree.n_q : tree.n_q + tree.n] = G
        if rate_q is not None:
            gradient[..., m_q:, : tree.n_q] = _along_coordinates(tree, q, rate_q)
        return gradient[..., self._order, :]


def _along_coordinates(tree: Tree, q: Array, columns: Array) -> Array:
    """Return slopes along displacements (..., k, n) as slopes along coordinates, shape (..., k, n_q)."""
    if len(tree.balls):
        return columns @ displacement_of(tree, q, np.eye(tree.n_q))
    columns_q = np.empty((*columns.shape[:-1], tree.n_q))
    columns_q[..., tree.screw_coordinates] = columns[..., tree.screw_speeds]
    return columns_q


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
    """Return M, G and the forces without balls and slips; multipliers and accelerations are those of least norm."""
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


class MechanismEvaluator(QuantityEvaluator):
    """Outputs and observed quantities of a mechanism; ``system`` has markers for these and nothing else."""

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
        """Return M, G (of any rank) and the forces; None with quaternions, wheels, skates or activations."""
        del t
        system = self.system
        if len(system.tree.balls) or system.activation_names or system.m_q < len(system.loop_constraints):
            return None
        return separated(system, self.outputs, self.state(x, u))
