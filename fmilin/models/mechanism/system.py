"""The equations of a mechanism, evaluated and differentiated at one point or at many.

    M(q) vdot + tau_NE(q, v, 0) + G' lambda = tau(q, v, u),   G vdot + Gdot v = 0,   q' = E(q) v,

(A.8) of Spencer (thesis) with springs and forces on the right. What concerns derivatives with respect to q is in terms
of displacements theta, q' = E theta'.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fmilin.models.mechanism.description import MechanismDescription
from fmilin.models.mechanism.dynamics import (
    Inertia,
    composite_inertia,
    generalized,
    inertia_of,
    mass_matrix,
    net_forces,
    torque_columns,
)
from fmilin.models.mechanism.forces import ForceColumns, collect_forces
from fmilin.models.mechanism.kinematics import Motion, Velocities, accelerations, motion, velocities
from fmilin.models.mechanism.loop_constraints import collect_loop_constraints, values_of, with_virtual_links
from fmilin.models.mechanism.markers import MarkerMotion, Markers
from fmilin.models.mechanism.row_columns import RowDerivatives
from fmilin.models.mechanism.rows import RowMotion, Rows
from fmilin.models.mechanism.screws import Array
from fmilin.models.mechanism.tree import tree_of
from fmilin.saddle_point.factors import require_regular
from fmilin.saddle_point.null_space import NullSpaceFactors

__all__ = ["Columns", "Solution", "State", "System"]


@dataclass(frozen=True)
class State:
    """Everything that positions and velocities determine.

    Attributes
    ----------
    q, v, u : array, shape (..., n_q), (..., n), (..., nu)
    at : Velocities
    inertia : Inertia
    I_c : array, shape (..., n, 6, 6)
    now : MarkerMotion
    rows : RowMotion
    A : array, shape (..., N + 1, 6)
        Vdot of the links for vdot = 0.
    s : array, shape (..., R)
        Sizes of the wrenches of springs and inputs.
    M : array, shape (..., n, n)
    G : array, shape (..., m, n)
    F : array, shape (..., n)
        tau - tau_NE(q, v, 0).
    c : array, shape (..., m)
        Gdot v.
    """

    q: Array
    v: Array
    u: Array
    at: Velocities
    inertia: Inertia
    I_c: Array
    now: MarkerMotion
    rows: RowMotion
    A: Array
    s: Array
    M: Array
    G: Array
    F: Array
    c: Array


@dataclass(frozen=True)
class Solution:
    """Accelerations and multipliers.

    Attributes
    ----------
    state : State
    used : array of int
        The independent constraints; all of them where these depend on each other.
    v_dot : array, shape (..., n)
    multipliers : array, shape (..., m)
        Zero for constraints that were left out.
    A : array, shape (..., N + 1, 6)
        Vdot.
    factors : NullSpaceFactors
        Of M and the rows ``used`` of G; None where accelerations are symbols.
    """

    state: State
    used: Array
    v_dot: Array
    multipliers: Array
    A: Array
    factors: Any = None


@dataclass(frozen=True)
class Columns:
    """Derivatives of the equations at a solution.

    Attributes
    ----------
    rho_q, rho_v : array, shape (..., n, n)
        Of M vdot + tau_NE(q, v, 0) + G' lambda - tau, with respect to theta and v; vdot and lambda held.
    rho_u : array, shape (..., n, nu)
    c_q, c_v : array, shape (..., m, n)
        Of G vdot + Gdot v.
    rate_q : array, shape (..., m, n)
        d(G v)/dtheta.
    motion : Motion
    stretch : tuple of two arrays, shape (..., ns, n)
        Of springs and forces along lines: the derivative of L^2/2 by theta, and that of L L' by theta.
    forces : ForceColumns
    """

    rho_q: Array
    rho_v: Array
    rho_u: Array
    c_q: Array
    c_v: Array
    rate_q: Array
    motion: Motion
    stretch: tuple[Array, Array]
    forces: ForceColumns


class System:
    """A description made ready to compute.

    Parameters
    ----------
    description : MechanismDescription
    without : collection of (str, int)
        Constraints to leave out, by loop and number.

    Attributes
    ----------
    tree, markers, rows, forces
        Constant arrays.
    loop_constraints : list of LoopConstraint
        m constraints, the m_q on positions first.
    places : array of int, shape (m,)
        Their rows.
    g : PositionValues
    gravity : array, shape (3,)
    acceleration_names : list of str
        ``der(v)`` for each velocity.
    """

    def __init__(self, description: MechanismDescription, without: Collection[tuple[str, int]] = ()) -> None:
        self.description = description = with_virtual_links(description)
        self.tree = tree_of(description)
        self.acceleration_names = [f"der({v})" for v in self.tree.state_names[1]]
        self.gravity = np.array(description.gravity)
        self.collector = Markers(self.tree)
        rows = Rows(self.tree)
        self.loop_constraints = collect_loop_constraints(description, self.collector, rows)
        if without:
            kept = [loop for loop in self.loop_constraints if (loop.of, loop.index) not in without]
            places = rows.keep([loop.row for loop in kept])
            self.loop_constraints = [replace(loop, row=place) for loop, place in zip(kept, places, strict=True)]
        forces = collect_forces(description, self.tree, self.collector, rows)
        self._rows, self._forces = rows, forces
        self.finish()

    def finish(self) -> None:
        """Make arrays of everything that was collected; again after more markers were added."""
        self.markers = self.collector.finished(self._rows.links)
        self.rows = self._rows.finished(self.markers)
        self.forces = self._forces.finished(self.rows)
        self.derivatives = RowDerivatives(self.tree, self.rows, self.markers)
        self.places = np.array([self.rows.position(b.row) for b in self.loop_constraints], dtype=np.intp)
        self.g = values_of(self.loop_constraints, self.rows, self.tree)
        self.rods = self.forces.rows - self.rows.sizes[0]

    @property
    def m_q(self) -> int:
        """Number of constraints on positions."""
        return len(self.g.places)

    # -- values ------------------------------------------------------------------------------------

    def state(self, q: Array, v: Array, u: Array) -> State:
        """Return what q (..., n_q), v (..., n) and u (..., nu) determine."""
        tree, rows = self.tree, self.rows
        at = velocities(tree, q, v)
        inertia = inertia_of(tree, at)
        I_c = composite_inertia(tree, inertia)
        A = accelerations(tree, at, v, self.gravity)
        now = self.markers.motion(at)
        wrenches = rows.motion(now)
        s = self.forces.sizes(*self._stretch(at, now, wrenches), u)
        outside = rows.spread @ (s[..., None] * wrenches.W)
        tau_NE = generalized(tree, at.S, net_forces(inertia, A) - outside)
        W, W_dot = wrenches.W[..., self.places, :], wrenches.W_dot[..., self.places, :]
        c = (W * rows.relative(A, self.places)).sum(-1) + (W_dot * rows.relative(at.V, self.places)).sum(-1)
        return State(
            q=q,
            v=v,
            u=u,
            at=at,
            inertia=inertia,
            I_c=I_c,
            now=now,
            rows=wrenches,
            A=A,
            s=s,
            M=mass_matrix(tree, at.S, I_c),
            G=rows.jacobian(W, at.S, self.places),
            F=self.forces.joints(q, v, u) - tau_NE,
            c=c,
        )

    def gaps(self, state: State) -> Array:
        """Return g of the constraints on positions, shape (..., m_q)."""
        return self.g(state.now.p, state.now.e, state.q)

    def rates(self, state: State) -> Array:
        """Return G v, shape (..., m)."""
        return (state.G @ state.v[..., None])[..., 0]

    def solve(self, state: State, used: Array) -> Solution:
        """Return accelerations and multipliers with the constraints ``used``, which are independent where possible."""
        factors = NullSpaceFactors(state.M, state.G[..., used, :])
        if (factors.rank < len(used)).any():
            return self.solve_robustly(state)
        return self._solution(state, factors, used)

    def solve_robustly(self, state: State) -> Solution:
        """Solve with all constraints, which may depend on each other: multipliers of least norm."""
        return self._solution(state, NullSpaceFactors(state.M, state.G), np.arange(len(self.loop_constraints)))

    def _solution(self, state: State, factors: NullSpaceFactors, used: Array) -> Solution:
        n = self.tree.n
        require_regular(factors, f"The equations of '{self.description.name}'", self.acceleration_names)
        right = np.concatenate((state.F, -state.c[..., used]), axis=-1)
        w = factors.solve(right) if right.ndim == 1 else factors.solve(right[..., None])[..., 0]
        v_dot = w[..., :n]
        multipliers = np.zeros((*w.shape[:-1], len(self.loop_constraints)), dtype=w.dtype)
        multipliers[..., used] = w[..., n:]
        A = state.A + self.tree.above @ (state.at.S * v_dot[..., None])
        return Solution(state, used, v_dot, multipliers, A, factors)

    def stretch(self, state: State) -> tuple[Array, Array]:
        """Return d = p_b - p_a (..., ns, 3) and L L' (..., ns) of the springs and of forces along lines."""
        return self._stretch(state.at, state.now, state.rows)

    def _stretch(self, at: Velocities, now: MarkerMotion, wrenches: RowMotion) -> tuple[Array, Array]:
        p, rows = now.p, self.rows
        d = p[..., rows.rod_second[self.rods], :] - p[..., rows.rod_first[self.rods], :]
        springs = self.forces.rows
        return d, (wrenches.W[..., springs, :] * rows.relative(at.V, springs)).sum(axis=-1)

    # -- derivatives -------------------------------------------------------------------------------

    def columns(self, solution: Solution) -> Columns:
        """Return the derivatives of the equations at a solution, exact."""
        state, tree, rows = solution.state, self.tree, self.rows
        at, these = state.at, self.places
        moving = motion(tree, at, solution.A)
        slots = self.derivatives.slots(state.now)
        of_rows = self.derivatives.columns(moving, state.now, slots, state.rows)
        G = rows.jacobian(state.rows.W, at.S)
        springs = self.forces.rows
        along = G[..., springs, :], of_rows.rate_q[..., springs, :]
        forces = self.forces.columns(*self.stretch(state), state.u, along)
        s = forces.s.copy()
        s[..., these] = s[..., these] - solution.multipliers
        outside = rows.spread @ (s[..., None] * state.rows.W)
        tau = torque_columns(tree, moving, state.inertia, state.I_c, outside)
        G_t = np.swapaxes(G, -1, -2)
        joints = self.forces.joints
        loads = self.derivatives.load_columns(at, slots, s)
        return Columns(
            rho_q=tau.q - loads - G_t @ forces.q + np.diag(joints.k),
            rho_v=tau.v - G_t @ forces.v + np.diag(joints.d),
            rho_u=-(G_t @ forces.u) - joints.B,
            c_q=of_rows.c_q[..., these, :],
            c_v=of_rows.c_v[..., these, :],
            rate_q=of_rows.rate_q[..., these, :],
            motion=moving,
            stretch=along,
            forces=forces,
        )
