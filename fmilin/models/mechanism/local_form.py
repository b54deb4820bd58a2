"""The exact linearization of a mechanism in independent coordinates, with the blocks of Spencer (thesis), section 4.2.

With y_q = R_q q, y_v = R_v v and (R_v; G)^-1 = (K N), a change of the positions along K_q changes velocities that obey
the constraints by Kdot, accelerations with the same ydot_v by Kddot, and one along y_v these by "2 Kdot":

    Kdot = -N d(G v)/dq K_q,   Kddot = -N d(G vdot + Gdot v)/d(q, v) (K_q; Kdot),   2 Kdot = -N d(Gdot v)/dv K
    A_21 = -(K' M K)^-1 K' (d rho/dq K_q + d rho/dv Kdot + M Kddot),   A_22 = -(K' M K)^-1 K' (d rho/dv K + M 2 Kdot)

with rho = tau_NE + G' lambda - tau. The term with dK'/dy of the source is in d(G' lambda)/dq: K' G' = 0, so that
(dK'/dy) (tau_NE - tau) = K' (dG'/dy) lambda, one column for each freedom instead of a tensor. Quaternions and
nonholonomic constraints make K_q another matrix than K: the source has neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.errors import NumericalError
from fmilin.model.interface import Evaluation, ExactSlopes, Tangent, TangentBatch
from fmilin.models.mechanism.independence import Independence
from fmilin.models.mechanism.multibody_system import Columns, ForwardDynamics, System, compute_rates
from fmilin.models.mechanism.outputs import Outputs
from fmilin.models.mechanism.recursions import compute_displacements, coordinate_columns
from fmilin.models.mechanism.tree import Array
from fmilin.numerics.rounding import estimate_rounding


@dataclass(frozen=True)
class Choice:
    """Which positions and velocities are kept, by number among q and v; activations all are."""

    q: tuple[int, ...]
    v: tuple[int, ...]
    states: tuple[int, ...]  # the kept states by number: positions, velocities, activations

    @classmethod
    def of(cls, states: Sequence[int], system: System) -> Choice:
        """Return the choice that keeps these states of (q, v, activations)."""
        n_q, n = system.tree.n_q, system.tree.n
        q, v = tuple(i for i in states if i < n_q), tuple(i for i in states if n_q <= i < n_q + n)
        activations = range(n_q + n, n_q + n + len(system.activation_names))
        return cls(q, tuple(i - n_q for i in v), (*q, *v, *activations))

    @property
    def a(self) -> int:
        """How many activations there are."""
        return len(self.states) - len(self.q) - len(self.v)


@dataclass(frozen=True)
class MechanismEquations:
    """The equations of a mechanism that are linearized."""

    system: System
    independence: Independence  # which constraints are independent
    outputs: Outputs
    inputs: list[int]  # which inputs of the description are the model's

    @property
    def driving(self) -> list[int]:
        """Columns of (inputs, activations) in the order of linear models: activations are states and stand first."""
        first = self.system.nu - len(self.system.activation_names)
        return [*range(first, self.system.nu), *self.inputs]


class LocalFormMatrices:
    """The local form at a solution: K_q (..., n, p_q), K (..., n, p_v), K_dot (..., n, p_q), dq (..., n_q, p_q).

    dv_dot (..., n, P + nu), multipliers (..., m, P + nu): what kept states and inputs do to vdot and lambda.
    """

    def __init__(
        self, equations: MechanismEquations, solution: ForwardDynamics, choice: Choice, columns: Columns | None = None
    ) -> None:
        self._equations, self._solution, self._choice = equations, solution, choice
        self._columns = columns = equations.system.columns(solution) if columns is None else columns
        rho_u = columns.rho_u[..., equations.driving]
        if self._is_open():
            M = solution.state.M
            self.dq = self.K_q = self.K = np.broadcast_to(np.eye(M.shape[-1]), M.shape)
            self.K_dot = np.zeros(M.shape)
            self.dv_dot = self._accelerate(np.concatenate((columns.rho_q, columns.rho_v, rho_u), axis=-1))
            m = len(equations.system.loop_constraints)
            self.multipliers = np.zeros((*self.dv_dot.shape[:-2], m, self.dv_dot.shape[-1]))
        else:
            self._close(columns, rho_u)

    def _accelerate(self, pushes: Array) -> Array:
        """Return the accelerations against pushes (..., n, k), without a solution for columns of zeros."""
        moving = pushes.any(axis=tuple(range(pushes.ndim - 1)))
        if moving.all():
            return -self._solution.factors.accelerations(pushes)
        accelerations = np.zeros(pushes.shape)
        accelerations[..., moving] = -self._solution.factors.accelerations(pushes[..., moving])
        return accelerations

    def _is_open(self) -> bool:
        """Whether all degrees of freedom are kept in their order: K is one then, and not worth multiplying with."""
        tree, choice = self._equations.system.tree, self._choice
        bound = len(tree.balls) or len(self._equations.independence.all)
        return not bound and choice.q == choice.v == tuple(range(tree.n))

    def _close(self, columns: Columns, rho_u: Array) -> None:
        solution, v = self._solution, list(self._choice.v)
        used, M = solution.used, solution.state.M
        self.K, N = self._along_speeds()
        self.dq, self.K_q = self._along_positions()
        c_q, c_v = columns.c_q[..., used, :], columns.c_v[..., used, :]
        self.K_dot = -N @ (columns.rate_q[..., used, :] @ self.K_q)
        K_ddot = -N @ (c_q @ self.K_q + c_v @ self.K_dot)
        K_dot_twice = -N @ (c_v @ self.K)
        by_q = columns.rho_q @ self.K_q + columns.rho_v @ self.K_dot + M @ K_ddot
        pushes = np.concatenate((by_q, columns.rho_v @ self.K + M @ K_dot_twice, rho_u), axis=-1)
        self.dv_dot = dv_dot = -solution.factors.accelerations(pushes)
        independent_accelerations = dv_dot[..., v, :]
        dependent_forces = -np.swapaxes(N, -1, -2) @ (pushes + M @ dv_dot)
        m = len(self._equations.system.loop_constraints)
        self.multipliers = np.zeros((*dependent_forces.shape[:-2], m, dependent_forces.shape[-1]))
        self.multipliers[..., used, :] = dependent_forces
        p_q, p = self._sizes
        dv_dot[..., :p_q] += K_ddot
        dv_dot[..., p_q:p] += K_dot_twice
        dv_dot[..., v, :] = independent_accelerations

    @property
    def _sizes(self) -> tuple[int, int]:
        """How many positions, and how many positions and velocities are kept."""
        p_q: int = self.K_q.shape[-1]
        return p_q, p_q + self.K.shape[-1]

    def _along_speeds(self) -> tuple[Array, Array]:
        """Return K and N with (R_v; G) (K N) = 1, from the orthonormal null space of G."""
        factors, v = self._solution.factors, list(self._choice.v)
        if factors.K.shape[-1] != len(v):
            raise NumericalError(
                "The configuration is singular: fewer constraints are independent here than near it, and there is no "
                "linear model of the crossing motions. Choose a point beside it."
            )
        K = factors.K @ _inverse(factors.K[..., v, :])
        return K, factors.N - K @ factors.N[..., v, :]

    def _along_positions(self) -> tuple[Array, Array]:
        """Return dq/dy_q (..., n_q, p_q) and the displacements that belong to it: K itself where it can be."""
        tree, choice, q = self._equations.system.tree, self._choice, self._solution.state.q
        independence, K = self._equations.independence, self.K
        holonomic = not len(tree.balls) and len(independence.position) == len(independence.all)
        if holonomic and list(choice.v) == tree.list_speeds(choice.q):
            dq = np.zeros((*K.shape[:-2], tree.n_q, K.shape[-1]))
            dq[..., tree.screw_coordinates, :] = K[..., tree.screw_speeds, :]
            return dq, K
        H = self._position_gradient()
        n, p = tree.n_q, len(choice.q)
        R = np.broadcast_to(np.eye(n)[list(choice.q)], (*H.shape[:-2], p, n))
        dq = _inverse(np.concatenate((R, H), axis=-2))[..., :p]
        return dq, compute_displacements(tree, q, dq)

    def _position_gradient(self) -> Array:
        """Return the gradient of the independent constraints on q, lengths of quaternions last, (..., m, n_q)."""
        tree, state = self._equations.system.tree, self._solution.state
        all_q = np.broadcast_to(np.eye(tree.n_q), (*state.q.shape[:-1], tree.n_q, tree.n_q))
        H = state.G[..., self._equations.independence.position, :] @ compute_displacements(tree, state.q, all_q)
        lengths = np.zeros((*state.q.shape[:-1], len(tree.balls), tree.n_q))
        rows = np.arange(len(tree.balls))[:, None]
        lengths[..., rows, tree.ball_coordinates] = state.q[..., tree.ball_coordinates]
        return np.concatenate((H, lengths), axis=-2)

    @property
    def dv(self) -> Array:
        """The derivatives of the velocities with respect to the independent states, shape (..., n, P)."""
        return np.concatenate((self.K_dot, self.K), axis=-1)

    def rates(self) -> Array:
        """Return the derivatives of all rates along the kept states and the inputs, shape (..., N, P + nu)."""
        system, state, dv = self._equations.system, self._solution.state, self.dv
        tree, (p_q, p) = system.tree, self._sizes
        if len(tree.balls):
            E, E_q = coordinate_columns(tree, state.q, state.v)
            upper = E @ dv
            upper[..., :p_q] += E_q @ self.dq
        else:
            upper = dv[..., tree.list_speeds(range(tree.n_q)), :]  # q' = v: E only says which speed belongs to which
        zero = np.zeros((*upper.shape[:-1], self.dv_dot.shape[-1] - p))
        slopes: Array = np.concatenate((np.concatenate((upper, zero), axis=-1), self.dv_dot), axis=-2)
        if not system.activation_names:
            return slopes
        activation_forces = system.activation_columns(state.u)[..., self._equations.driving]
        activation_forces = np.broadcast_to(activation_forces, (*slopes.shape[:-2], *activation_forces.shape[-2:]))
        still = np.zeros((*activation_forces.shape[:-1], p))
        return np.concatenate((slopes, np.concatenate((still, activation_forces), axis=-1)), axis=-2)

    def outputs(self) -> Array:
        """Return (C D), shape (..., ny, P + nu)."""
        p_q, p = self._sizes
        o = self._equations.outputs.columns(self._solution, self._columns)
        slopes: Array = o.v_dot @ self.dv_dot + o.multipliers @ self.multipliers
        slopes[..., :p_q] += o.q @ self.dq + o.theta @ self.K_q
        slopes[..., :p] += o.v @ self.dv
        slopes[..., p:] += o.u[..., self._equations.driving]
        return slopes

    def tangent(self) -> Array:
        """Return T, shape (..., N, P)."""
        zero = np.zeros((*self.dq.shape[:-1], self.K.shape[-1]))
        moving = np.concatenate((np.concatenate((self.dq, zero), axis=-1), self.dv), axis=-2)
        activations = self._choice.a
        if not activations:
            return moving
        *stack, n, p = moving.shape
        T = np.zeros((*stack, n + activations, p + activations))
        T[..., :n, :p], T[..., n:, p:] = moving, np.eye(activations)
        return T

    def matrices(self) -> TangentBatch:
        """Return the linear models at the points, which are not verified, without residuals."""
        rates = compute_rates(self._equations.system, self._solution)
        values = self._equations.outputs.values(self._solution)
        no_residuals = np.empty((*rates.shape[:-1], 0)), np.empty((*rates.shape[:-1], 0, rates.shape[-1]))
        slopes = self.tangent(), self.rates(), self.outputs()
        return TangentBatch(self._choice.states, rates, values, *no_residuals, *slopes)


class MechanismDerivatives(ExactSlopes):
    """The recursion at a point and some bits next to it; ``gradient`` is that of all residuals, shape (m, N)."""

    def __init__(
        self,
        equations: MechanismEquations,
        solution: ForwardDynamics,
        values: Evaluation,
        gradient: Callable[[Columns], Array],
    ) -> None:
        self._equations, self._solution = equations, solution
        self._columns = equations.system.columns(solution)
        self.values, self.points = values, len(solution.v_dot)
        self.constraint_gradient = gradient(self._columns)
        self._last: tuple[tuple[int, ...], tuple[tuple[Array, Array, Array], list[int], list[int]]] | None = None

    def along(self, independent: Sequence[int]) -> Tangent:
        """Return the derivatives with these states kept, in this order."""
        (rates, outputs, T), order, columns = self._along(tuple(independent))
        by_inputs = np.zeros((T.shape[1], len(columns) - len(order)))
        return Tangent(T[0][:, order], by_inputs, rates[0][:, columns], outputs[0][:, columns])

    def rounding(self, independent: Sequence[int]) -> Array | None:
        """Return how much the derivatives differ some bits near the point."""
        (*both, _), _, columns = self._along(tuple(independent))
        if self.points == 1 or not self.smooth:
            return None
        return np.concatenate([estimate_rounding(list(slopes)) for slopes in both])[:, columns]

    def _along(self, independent: tuple[int, ...]) -> tuple[tuple[Array, Array, Array], list[int], list[int]]:
        """Return derivatives of rates and outputs, T, and the order of their columns."""
        if self._last is None or self._last[0] != independent:
            choice = Choice.of(independent, self._equations.system)
            form = LocalFormMatrices(self._equations, self._solution, choice, self._columns)
            positions = {state: position for position, state in enumerate(choice.states)}
            order = [positions[state] for state in independent]
            slopes = form.rates(), form.outputs(), form.tangent()
            self._last = independent, (slopes, order, [*order, *range(len(order), slopes[0].shape[-1])])
        return self._last[1]


def _inverse(matrix: Array) -> Array:
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        raise NumericalError(
            "The independent states do not determine the others at this point: choose others, or none for a choice by "
            "pivoting.",
            condition_number=float("inf"),
        ) from None
