"""The exact linearization of a mechanism in independent coordinates, with the blocks of Spencer (thesis), section 4.2.

With y_q = R_q q, y_v = R_v v and (R_v; G)^-1 = (K N), a change of the positions along K_q changes velocities that obey
the constraints by Kdot, and accelerations with the same ydot_v by Kddot:

    Kdot = -N d(G v)/dq K_q,     Kddot = -N d(G vdot + Gdot v)/d(q, v) (K_q; Kdot),

and a change along y_v changes accelerations by "2 Kdot" = -N d(Gdot v)/dv K. The local state-space form then has

    A_21 = -(K' M K)^-1 K' (d rho/dq K_q + d rho/dv Kdot + M Kddot),
    A_22 = -(K' M K)^-1 K' (d rho/dv K + M 2 Kdot),

with rho = tau_NE + G' lambda - tau. The term with dK'/dy of the source is in d(G' lambda)/dq: K' G' = 0, so that
(dK'/dy) (tau_NE - tau) = -(dK'/dy) G' lambda = K' (dG'/dy) lambda, which takes one column for each freedom instead of a
tensor. Quaternions and nonholonomic constraints make K_q another matrix than K: the source has neither. All points of
a batch and all columns are computed together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.model.interface import Evaluation, ExactSlopes, Tangent
from fmilin.native.mechanism.independence import Independence
from fmilin.native.mechanism.outputs import Outputs
from fmilin.native.mechanism.recursions import coordinate_columns, displacement_of
from fmilin.native.mechanism.screws import Array
from fmilin.native.mechanism.system import Columns, Solution, System, rates_of

__all__ = ["Choice", "Matrices", "MatricesInDetail", "MechanismEquations", "MechanismSlopes", "matrices", "matrices_of"]

AT_ONCE = 256
"""Points that are computed together."""


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
    """What is linearized."""

    system: System
    independence: Independence  # which constraints are independent
    outputs: Outputs
    inputs: list[int]  # which inputs of the description are the model's

    @property
    def driving(self) -> list[int]:
        """Columns of (inputs, activations) in the order of linear models: activations are states and stand first."""
        first = self.system.nu - len(self.system.activation_names)
        return [*range(first, self.system.nu), *self.inputs]


@dataclass(frozen=True)
class Matrices:
    """The linear model at one point or at many."""

    choice: Choice  # the P states that are kept, positions first
    derivatives: Array  # (..., N, P + nu), slopes of all rates along the kept states, then along the inputs
    outputs: Array  # of shape (..., ny, P + nu)
    T: Array  # of shape (..., N, P)
    rates: Array  # of shape (..., N)
    values: Array  # of shape (..., ny)

    @property
    def kept(self) -> list[int]:
        """The kept states by number, positions first."""
        return list(self.choice.states)

    @property
    def A(self) -> Array:
        """Shape (..., P, P)."""
        return self.derivatives[..., self.kept, : self.T.shape[-1]]

    @property
    def B(self) -> Array:
        """Shape (..., P, nu)."""
        return self.derivatives[..., self.kept, self.T.shape[-1] :]

    @property
    def C(self) -> Array:
        """Shape (..., ny, P)."""
        return self.outputs[..., : self.T.shape[-1]]

    @property
    def D(self) -> Array:
        """Shape (..., ny, nu)."""
        return self.outputs[..., self.T.shape[-1] :]

    @property
    def f0(self) -> Array:
        """Shape (..., P)."""
        return self.rates[..., self.kept]


@dataclass(frozen=True)
class MatricesInDetail(Matrices):
    """The linear model and what it is made of."""

    # K_q, K, K_dot, K_ddot, K_dot_twice: the terms of the local state-space form: (..., n, p_q), (..., n, p_v), (...,
    # n, p_q), (..., n, p_q), (..., n, p_v)
    K_q: Array
    K: Array
    K_dot: Array
    K_ddot: Array
    K_dot_twice: Array


class MechanismSlopes(ExactSlopes):
    """The recursion at one point, ready for a choice of states.

    ``gradient``: takes the columns of the system; returns the gradient of all residuals, shape (m, N).
    """

    def __init__(
        self,
        equations: MechanismEquations,
        solution: Solution,
        values: Evaluation,
        gradient: Callable[[Columns], Array],
    ) -> None:
        self._equations, self._solution = equations, solution
        self._columns = equations.system.columns(solution)
        self.values = values
        self.constraint_gradient = gradient(self._columns)

    def along(self, independent: Sequence[int]) -> Tangent:
        """Return the slopes with these states kept, in this order."""
        choice = Choice.of(independent, self._equations.system)
        terms = _all_terms(self._equations, self._solution, self._columns, choice)
        order = _places(choice.states, independent)
        columns = [*order, *range(len(order), terms.lower.shape[-1])]
        rates, seen = (
            _rates(self._equations, self._solution, terms),
            _outputs(self._equations, self._solution, self._columns, terms),
        )
        T = _tangent(terms, choice.a)
        return Tangent(T[:, order], np.zeros((len(T), len(columns) - len(order))), rates[:, columns], seen[:, columns])


@dataclass(frozen=True)
class _Terms:
    """The terms of the local state-space form, and what positions, velocities and inputs do to vdot and lambda."""

    dq: Array
    K_q: Array
    K: Array
    K_dot: Array
    K_ddot: Array
    K_dot_twice: Array
    lower: Array
    dv_dot: Array
    multipliers: Array

    @property
    def dv(self) -> Array:
        """What the kept states do to the velocities, shape (..., n, P)."""
        return np.concatenate((self.K_dot, self.K), axis=-1)


def matrices(
    equations: MechanismEquations, solution: Solution, choice: Choice, columns: Columns | None = None
) -> MatricesInDetail:
    """Return the linear models at the points of a solution, not verified; ``columns`` are the system's."""
    columns = equations.system.columns(solution) if columns is None else columns
    terms = _all_terms(equations, solution, columns, choice)
    return MatricesInDetail(
        choice=choice,
        derivatives=_rates(equations, solution, terms),
        outputs=_outputs(equations, solution, columns, terms),
        T=_tangent(terms, choice.a),
        rates=rates_of(equations.system, solution),
        values=equations.outputs.values(solution),
        K_q=terms.K_q,
        K=terms.K,
        K_dot=terms.K_dot,
        K_ddot=terms.K_ddot,
        K_dot_twice=terms.K_dot_twice,
    )


def _all_terms(equations: MechanismEquations, solution: Solution, columns: Columns, choice: Choice) -> _Terms:
    return (_open_terms if _is_open(equations, choice) else _terms)(equations, solution, columns, choice)


def _places(names: Sequence[int], wanted: Sequence[int]) -> list[int]:
    place = {name: i for i, name in enumerate(names)}
    return [place[name] for name in wanted]


def _rates(equations: MechanismEquations, solution: Solution, terms: _Terms) -> Array:
    """Return the slopes of all rates along the kept states and the inputs, shape (..., N, P + nu)."""
    tree, state, dv = equations.system.tree, solution.state, terms.dv
    p_q, p = terms.dq.shape[-1], dv.shape[-1]
    if len(tree.balls):
        E, E_q = coordinate_columns(tree, state.q, state.v)
        upper = E @ dv
        upper[..., :p_q] += E_q @ terms.dq
    else:
        upper = dv[..., tree.speeds_at(range(tree.n_q)), :]  # q' = v: E only says which speed belongs to which
    zero = np.zeros((*upper.shape[:-1], terms.lower.shape[-1] - p))
    found = np.concatenate((np.concatenate((upper, zero), axis=-1), terms.dv_dot), axis=-2)
    if not equations.system.activation_names:
        return found
    own = equations.system.activation_columns(state.u)[..., equations.driving]
    own = np.broadcast_to(own, (*found.shape[:-2], *own.shape[-2:]))
    still = np.zeros((*own.shape[:-1], p))
    return np.concatenate((found, np.concatenate((still, own), axis=-1)), axis=-2)


def _tangent(terms: _Terms, activations: int) -> Array:
    """Return T, shape (..., N, P)."""
    zero = np.zeros((*terms.dq.shape[:-1], terms.K.shape[-1]))
    moving = np.concatenate((np.concatenate((terms.dq, zero), axis=-1), terms.dv), axis=-2)
    if not activations:
        return moving
    *stack, n, p = moving.shape
    T = np.zeros((*stack, n + activations, p + activations))
    T[..., :n, :p], T[..., n:, p:] = moving, np.eye(activations)
    return T


def _terms(equations: MechanismEquations, solution: Solution, columns: Columns, choice: Choice) -> _Terms:
    used, M = solution.used, solution.state.M
    K, N = _along_speeds(solution, choice)
    dq, K_q = _along_positions(equations, solution, choice, K)
    c_q, c_v = columns.c_q[..., used, :], columns.c_v[..., used, :]
    K_dot = -N @ (columns.rate_q[..., used, :] @ K_q)
    K_ddot = -N @ (c_q @ K_q + c_v @ K_dot)
    K_dot_twice = -N @ (c_v @ K)
    pushes = np.concatenate(
        (
            columns.rho_q @ K_q + columns.rho_v @ K_dot + M @ K_ddot,
            columns.rho_v @ K + M @ K_dot_twice,
            columns.rho_u[..., equations.driving],
        ),
        axis=-1,
    )
    dv_dot = -solution.factors.accelerations(pushes)
    lower = dv_dot[..., list(choice.v), :]
    some = -np.swapaxes(N, -1, -2) @ (pushes + M @ dv_dot)
    multipliers = np.zeros((*some.shape[:-2], len(equations.system.loop_constraints), some.shape[-1]))
    multipliers[..., used, :] = some
    p_q, p = K_q.shape[-1], K_q.shape[-1] + K.shape[-1]
    dv_dot[..., :p_q] += K_ddot
    dv_dot[..., p_q:p] += K_dot_twice
    dv_dot[..., list(choice.v), :] = lower
    return _Terms(dq, K_q, K, K_dot, K_ddot, K_dot_twice, lower, dv_dot, multipliers)


def _is_open(equations: MechanismEquations, choice: Choice) -> bool:
    """Whether all freedoms are kept in their order: K is one then, and not worth multiplying with."""
    every = tuple(range(equations.system.tree.n))
    return (
        not len(equations.system.tree.balls) and not len(equations.independence.all) and choice.q == choice.v == every
    )


def _open_terms(equations: MechanismEquations, solution: Solution, columns: Columns, choice: Choice) -> _Terms:
    del choice
    M = solution.state.M
    one, none = np.broadcast_to(np.eye(M.shape[-1]), M.shape), np.zeros(M.shape)
    pushes = np.concatenate((columns.rho_q, columns.rho_v, columns.rho_u[..., equations.driving]), axis=-1)
    lower = -solution.factors.accelerations(pushes)
    multipliers = np.zeros((*lower.shape[:-2], len(equations.system.loop_constraints), lower.shape[-1]))
    return _Terms(one, one, one, none, none, none, lower, lower, multipliers)


def _outputs(equations: MechanismEquations, solution: Solution, columns: Columns, terms: _Terms) -> Array:
    """Return (C D), shape (..., ny, P + nu)."""
    p_q, p = terms.K_q.shape[-1], terms.K_q.shape[-1] + terms.K.shape[-1]
    o = equations.outputs.columns(solution, columns)
    seen = o.v_dot @ terms.dv_dot + o.multipliers @ terms.multipliers
    seen[..., :p_q] += o.q @ terms.dq + o.theta @ terms.K_q
    seen[..., :p] += o.v @ terms.dv
    seen[..., p:] += o.u[..., equations.driving]
    return seen


def matrices_of(
    equations: MechanismEquations, solve: Callable[[slice], Solution], count: int, choice: Choice, *, threads: int = 1
) -> Matrices:
    """Return the linear models at many points, in blocks that fit into the processor's cache.

    ``solve``: takes a slice of the points; returns the solution there. ``count``: how many points there are.
    ``threads``: how many blocks are computed at the same time.
    """
    blocks = [slice(i, i + AT_ONCE) for i in range(0, count, AT_ONCE)]
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda some: matrices(equations, solve(some), choice), blocks))
    stacks = [f.name for f in fields(Matrices) if f.name != "choice"]
    return Matrices(choice, *(np.concatenate([getattr(b, name) for b in found]) for name in stacks))


def _along_speeds(solution: Solution, choice: Choice) -> tuple[Array, Array]:
    """Return K and N with (R_v; G) (K N) = 1, from the orthonormal null space of G."""
    K, N, v = solution.factors.K, solution.factors.N, list(choice.v)
    if K.shape[-1] != len(v):
        raise NumericalError(
            "The configuration is singular: fewer constraints are independent here than beside it, and there is no "
            "linear model of the motions that cross. Choose a point beside it."
        )
    K = K @ _inverse(K[..., v, :])
    return K, N - K @ N[..., v, :]


def _along_positions(
    equations: MechanismEquations, solution: Solution, choice: Choice, K: Array
) -> tuple[Array, Array]:
    """Return dq/dy_q (..., n_q, p_q) and the displacements that belong to it: K itself where it can be."""
    tree, known, q = equations.system.tree, equations.independence, solution.state.q
    if not len(tree.balls) and len(known.position) == len(known.all) and list(choice.v) == tree.speeds_at(choice.q):
        dq = np.zeros((*K.shape[:-2], tree.n_q, K.shape[-1]))
        dq[..., tree.screw_coordinates, :] = K[..., tree.screw_speeds, :]
        return dq, K
    H = _position_gradient(equations, solution)
    n, p = tree.n_q, len(choice.q)
    R = np.broadcast_to(np.eye(n)[list(choice.q)], (*H.shape[:-2], p, n))
    dq = _inverse(np.concatenate((R, H), axis=-2))[..., :p]
    return dq, displacement_of(tree, q, dq)


def _inverse(matrix: Array) -> Array:
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        raise NumericalError(
            "The independent states do not determine the others at this point: choose other ones, or none for those "
            "that pivoting finds.",
            condition_number=float("inf"),
        ) from None


def _position_gradient(equations: MechanismEquations, solution: Solution) -> Array:
    """Return the gradient of the independent constraints on q, lengths of quaternions last, shape (..., m, n_q)."""
    tree, state = equations.system.tree, solution.state
    all_q = np.broadcast_to(np.eye(tree.n_q), (*state.q.shape[:-1], tree.n_q, tree.n_q))
    H = state.G[..., equations.independence.position, :] @ displacement_of(tree, state.q, all_q)
    lengths = np.zeros((*state.q.shape[:-1], len(tree.balls), tree.n_q))
    rows = np.arange(len(tree.balls))[:, None]
    lengths[..., rows, tree.ball_coordinates] = state.q[..., tree.ball_coordinates]
    return np.concatenate((H, lengths), axis=-2)
