"""The equations of a mechanism, evaluated and differentiated at one point or at many: (A.8) of Spencer (thesis).

    M(q) vdot + tau_NE(q, v, 0) + G' lambda = tau(q, v, u),   G vdot + Gdot v = 0,   q' = E(q) v

Derivatives with respect to q are in terms of displacements theta, q' = E theta'.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fmilin.models.mechanism import recursions
from fmilin.models.mechanism.fixed_rows import FixedRows, RowCollector, RowDerivatives, RowMotion
from fmilin.models.mechanism.forces import FixedForces, Forces
from fmilin.models.mechanism.loop_constraints import (
    Curvatures,
    PositionValues,
    collect_loop_constraints,
    with_virtual_links,
)
from fmilin.models.mechanism.markers import MarkerMotion, Markers
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.paths import FixedPaths, PathColumns, PathMotion, Paths
from fmilin.models.mechanism.tree import Array, Partials, Tree
from fmilin.numerics.factors import require_regular
from fmilin.numerics.null_space import NullSpaceFactors


@dataclass(frozen=True)
class State:
    """Everything that positions and velocities determine."""

    # q, v, u: u are the inputs, then the activations of actuators
    q: Array  # shape (..., n_q)
    v: Array  # shape (..., n)
    u: Array  # shape (..., nu)
    at: recursions.Velocities
    inertia: recursions.Inertia
    I_c: Array  # of shape (..., n, 6, 6)
    now: MarkerMotion
    rows: RowMotion
    A: Array  # (..., N + 1, 6), vdot of the links for vdot = 0
    s: Array  # (..., R), sizes of the wrenches of springs and inputs
    M: Array  # of shape (..., n, n)
    G: Array  # of shape (..., m, n)
    F: Array  # (..., n), tau - tau_NE(q, v, 0)
    c: Array  # (..., m), gdot v
    drives: PathMotion | None = None  # of tendons and actuators


@dataclass(frozen=True)
class ForwardDynamics:
    """Accelerations and multipliers."""

    state: State
    used: Array  # the independent constraints; all of them where these depend on each other
    v_dot: Array  # of shape (..., n)
    multipliers: Array  # (..., m), zero for constraints that were left out
    A: Array  # (..., N + 1, 6), vdot
    factors: Any = None  # of M and the rows ``used`` of G; None where accelerations are symbols


@dataclass(frozen=True)
class Columns:
    """Derivatives of the equations at a solution."""

    # rho_q, rho_v: (..., n, n), of M vdot + tau_NE(q, v, 0) + G' lambda - tau, with respect to theta and v; vdot and
    # lambda held
    rho_q: Array
    rho_v: Array
    rho_u: Array  # of shape (..., n, nu)
    # c_q, c_v: (..., m, n), of G vdot + Gdot v
    c_q: Array
    c_v: Array
    rate_q: Array  # (..., m, n), d(G v)/dtheta
    motion: recursions.AccelerationTerms
    # each (..., ns, n), of springs and forces along lines: the derivative of L^2/2 by theta, and that of L L' by theta
    stretch: tuple[Array, Array]
    drives: PathColumns | None = None


def compute_rates(system: System, solution: ForwardDynamics) -> Array:
    """Return the rates of all states, shape (..., N)."""
    state = solution.state
    parts = [
        recursions.coordinate_rates(system.tree, state.q, state.v),
        solution.v_dot,
        system.activation_rates(state.u),
    ]
    if len(shapes := {part.shape[:-1] for part in parts}) > 1:
        parts = [np.broadcast_to(part, (*np.broadcast_shapes(*shapes), part.shape[-1])) for part in parts]
    return np.concatenate(parts, axis=-1)


class System:
    """A description, ``without`` some constraints by loop and number, made ready to compute; its ``tree`` if there."""

    def __init__(
        self, description: MechanismDescription, without: Collection[tuple[str, int]] = (), tree: Tree | None = None
    ) -> None:
        self.description = description = with_virtual_links(description)
        self.tree = Tree(description) if tree is None else tree
        self.acceleration_names = [f"der({v})" for v in self.tree.state_names[1]]
        self.gravity = np.array(description.gravity)
        self.collector = Markers(self.tree)
        rows = RowCollector(self.tree)
        # m of them, the m_q on positions first
        self.loop_constraints = collect_loop_constraints(description, self.collector, rows)
        if without:
            rest = [loop for loop in self.loop_constraints if (loop.of, loop.index) not in without]
            keys = rows.keep([loop.row for loop in rest])
            self.loop_constraints = [replace(loop, row=key) for loop, key in zip(rest, keys, strict=True)]
        self._rows, self._forces = rows, Forces(description, self.tree, self.collector, rows)
        self._paths = Paths(description, self.tree, self.collector, rows)
        self.activation_names = self._paths.state_names
        self.nu = len(description.inputs) + len(self.activation_names)
        self.armature = np.array([a for joint in description.joints for a in joint.armature])
        self.finish()

    def finish(self) -> None:
        """Make arrays of everything that was collected; again after more markers were added."""
        self.markers = self.collector.build(self._rows.links)
        self.rows = FixedRows(self._rows, self.markers)
        self.forces = FixedForces(self._forces, self.rows)
        self.paths = FixedPaths(self._paths, self.rows, len(self.description.inputs)) if self._paths.rows else None
        self.derivatives = RowDerivatives(self.tree, self.rows, self.markers)
        self.positions = np.array([self.rows.position(b.row) for b in self.loop_constraints], dtype=np.intp)
        self.g = PositionValues(self.loop_constraints, self.rows, self.tree)
        bends = Curvatures(self.loop_constraints, self.tree)
        self.bends = bends if len(bends) else None
        self.rods = self.forces.rows - self.rows.sizes[0]

    @property
    def path_names(self) -> list[str]:
        """Tendons, springs of bushings, then actuators: the order of the paths."""
        paths = self._paths
        return [*(t.name for t in paths.tendons), *(s.name for s in paths.springs), *(a.name for a in paths.actuators)]

    @property
    def m_q(self) -> int:
        """Number of constraints on positions."""
        return len(self.g)

    def parts(self, x: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and activations out of all states (..., N)."""
        n_q, n = self.tree.n_q, self.tree.n
        return x[..., :n_q], x[..., n_q : n_q + n], x[..., n_q + n :]

    def activation_rates(self, u: Array) -> Array:
        """Return the rates of the activations, shape (..., s), for u with them at its end."""
        return u[..., :0] if self.paths is None else self.paths.activation_rates(u)

    def activation_columns(self, u: Array) -> Array:
        """Return the derivatives of these rates by u, shape (..., s, nu)."""
        if self.paths is None:
            return np.zeros((*u.shape[:-1], 0, u.shape[-1]))
        return self.paths.activation_columns(u)

    def state(self, q: Array, v: Array, u: Array) -> State:
        """Return what q (..., n_q), v (..., n) and u (..., nu) determine."""
        tree, rows = self.tree, self.rows
        at = recursions.velocities(tree, q, v)
        inertia = recursions.compute_inertia(tree, at)
        I_c = recursions.composite_inertia(tree, inertia)
        A = recursions.accelerations(tree, at, v, self.gravity)
        now = self.markers.motion(at)
        wrenches = rows.motion(now)
        s = self.forces.sizes(*self._stretch(at, now, wrenches), u)
        tau, drives, M = self.forces.joints(q, v, u), None, recursions.mass_matrix(tree, at.S, I_c)
        if self.paths is not None:
            drives = self.paths.motion(q, v, u, (now, wrenches, at.V), rows)
            tau, s = tau + drives.joints, self._with_drives(s, drives)
        if self.armature.any():
            M = M + np.diag(self.armature)
        outside = rows.spread @ (s[..., None] * wrenches.W)
        tau_NE = recursions.project_wrenches(tree, at.S, recursions.net_forces(inertia, A) - outside)
        W, W_dot = wrenches.W[..., self.positions, :], wrenches.W_dot[..., self.positions, :]
        c = (W * rows.relative(A, self.positions)).sum(-1) + (W_dot * rows.relative(at.V, self.positions)).sum(-1)
        G = rows.jacobian(W, at.S, self.positions)
        if self.bends is not None:
            G, c = self.bends.jacobian(G, q), self.bends.drift(c, q, v)
        return State(q, v, u, at, inertia, I_c, now, wrenches, A, s, M, G, tau - tau_NE, c, drives)

    def _with_drives(self, s: Array, drives: PathMotion) -> Array:
        """Return the sizes of all rows with those of tendons and actuators."""
        assert self.paths is not None  # noqa: S101 - it made them
        if not len(self.paths.rows):
            return s
        shape = np.broadcast_shapes(s.shape[:-1], drives.sizes.shape[:-1])
        s = np.broadcast_to(s, (*shape, s.shape[-1])).astype(np.result_type(s, drives.sizes))
        s[..., self.paths.rows] += drives.sizes
        return s

    def gaps(self, state: State) -> Array:
        """Return g of the constraints on positions, shape (..., m_q)."""
        return self.compute_gaps(state.now, state.q)

    def compute_gaps(self, now: MarkerMotion, q: Array) -> Array:
        """Return g from markers and coordinates, shape (..., m_q)."""
        gaps = self.g(now.p, now.e, q)
        return gaps if self.bends is None else self.bends.gaps(gaps, q)

    def rates(self, state: State) -> Array:
        """Return G v, shape (..., m)."""
        return (state.G @ state.v[..., None])[..., 0]

    def solve(self, state: State, used: Array) -> ForwardDynamics:
        """Return accelerations and multipliers with the constraints ``used``, which are independent where possible."""
        factors = NullSpaceFactors(state.M, state.G[..., used, :])
        if (factors.rank < len(used)).any():
            return self.solve_robustly(state)
        return self._solution(state, factors, used)

    def solve_robustly(self, state: State) -> ForwardDynamics:
        """Solve with all constraints, which may depend on each other: multipliers of least norm."""
        return self._solution(state, NullSpaceFactors(state.M, state.G), np.arange(len(self.loop_constraints)))

    def _solution(self, state: State, factors: NullSpaceFactors, used: Array) -> ForwardDynamics:
        n = self.tree.n
        require_regular(factors, f"The equations of '{self.description.name}'", self.acceleration_names)
        right = np.concatenate((state.F, -state.c[..., used]), axis=-1)
        w = factors.solve(right) if right.ndim == 1 else factors.solve(right[..., None])[..., 0]
        v_dot = w[..., :n]
        multipliers = np.zeros((*w.shape[:-1], len(self.loop_constraints)), dtype=w.dtype)
        multipliers[..., used] = w[..., n:]
        A = state.A + self.tree.above @ (state.at.S * v_dot[..., None])
        return ForwardDynamics(state, used, v_dot, multipliers, A, factors)

    def stretch(self, state: State) -> tuple[Array, Array]:
        """Return d = p_b - p_a (..., ns, 3) and L L' (..., ns) of the springs and of forces along lines."""
        return self._stretch(state.at, state.now, state.rows)

    def _stretch(self, at: recursions.Velocities, now: MarkerMotion, wrenches: RowMotion) -> tuple[Array, Array]:
        p, rows = now.p, self.rows
        d = p[..., rows.rod_second[self.rods], :] - p[..., rows.rod_first[self.rods], :]
        springs = self.forces.rows
        return d, (wrenches.W[..., springs, :] * rows.relative(at.V, springs)).sum(axis=-1)

    def columns(self, solution: ForwardDynamics) -> Columns:
        """Return the derivatives of the equations at a solution, exact."""
        state, tree, rows = solution.state, self.tree, self.rows
        at, these = state.at, self.positions
        moving = recursions.motion(tree, at, solution.A)
        slots = self.derivatives.slots(state.now)
        of_rows = self.derivatives.columns(moving, state.now, slots, state.rows)
        G = rows.jacobian(state.rows.W, at.S)
        springs = self.forces.rows
        along = G[..., springs, :], of_rows.rate_q[..., springs, :]
        forces = self.forces.columns(*self.stretch(state), state.u, along)
        s, drives, on_joints = state.s.copy(), None, Partials(0.0, 0.0, 0.0)
        if self.paths is not None and state.drives is not None:
            drives = self.paths.columns(state.drives, G, of_rows.rate_q)
            forces, on_joints = forces.with_rows(self.paths.rows, drives.s), drives.joints
        s[..., these] = s[..., these] - solution.multipliers
        outside = rows.spread @ (s[..., None] * state.rows.W)
        tau_q, tau_v = recursions.torque_columns(tree, moving, state.inertia, state.I_c, outside)
        G_t = np.swapaxes(G, -1, -2)
        joints = self.forces.joints
        loads = self.derivatives.load_columns(at, slots, s)
        rho_q = tau_q - loads - G_t @ forces.q + np.diag(joints.k) - on_joints.q
        c_q, c_v, rate_q = (a[..., these, :] for a in (of_rows.c_q, of_rows.c_v, of_rows.rate_q))
        if self.bends is not None:
            rho_q = self.bends.loads(rho_q, state.q, solution.multipliers)
            c_q, c_v = self.bends.columns(c_q, c_v, (state.q, state.v, solution.v_dot))
            rate_q = self.bends.rate_columns(rate_q, state.q, state.v)
        rho_v = tau_v - G_t @ forces.v + np.diag(joints.d) - on_joints.v
        with np.errstate(invalid="ignore"):  # an input along a line has no direction where both ends coincide
            rho_u = -(G_t @ forces.u) - joints.B - on_joints.u
        return Columns(rho_q, rho_v, rho_u, c_q, c_v, rate_q, moving, along, drives)
