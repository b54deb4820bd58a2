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

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import NumericalError
from fmilin.models.mechanism.choosing import Choice, choose, position_gradient
from fmilin.models.mechanism.kinematics import coordinate_columns, coordinate_rates, displacement_of
from fmilin.models.mechanism.screws import Array
from fmilin.models.mechanism.system import Columns, Solution

if TYPE_CHECKING:
    from fmilin.models.mechanism.model import Mechanism

__all__ = ["Choice", "Matrices", "choose", "matrices", "matrices_of"]

AT_ONCE = 256
"""Points that are computed together."""


@dataclass(frozen=True)
class Matrices:
    """The linear model at one point or at many, and what it is made of.

    Attributes
    ----------
    A, B, C, D, T : array
        Shapes (..., P, P), (..., P, nu), (..., ny, P), (..., ny, nu), (..., N, P).
    f0, values : array, shape (..., P), (..., ny)
    K_q, K, K_dot, K_ddot, K_dot_twice : array
        The terms of the local state-space form: (..., n, p_q), (..., n, p_v), (..., n, p_q), (..., n, p_q),
        (..., n, p_v).
    """

    A: Array
    B: Array
    C: Array
    D: Array
    T: Array
    f0: Array
    values: Array
    K_q: Array
    K: Array
    K_dot: Array
    K_ddot: Array
    K_dot_twice: Array


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


def matrices(model: Mechanism, x: Array, u: Array, choice: Choice) -> Matrices:
    """Return the linear models at the points x (..., N), u (..., nu), which are not verified.

    Raises
    ------
    NumericalError
        When the coordinates are singular at a point.
    """
    tree, R_q = model.system.tree, list(choice.q)
    solution = model.solution(x, u)
    state, columns = solution.state, model.system.columns(solution)
    terms = (_open_terms if _is_open(model, choice) else _terms)(model, solution, columns, choice)
    dq, dv = terms.dq, np.concatenate((terms.K_dot, terms.K), axis=-1)
    p_q, p = dq.shape[-1], dv.shape[-1]
    if len(tree.balls):
        E, E_q = coordinate_columns(tree, state.q, state.v)
        upper = E[..., R_q, :] @ dv
        upper[..., :p_q] += E_q[..., R_q, :] @ dq
    else:
        upper = dv[..., tree.speeds_at(R_q), :]  # q' = v: E only says which speed belongs to which coordinate
    zero = np.zeros((*upper.shape[:-1], terms.lower.shape[-1] - p))
    whole = np.concatenate((np.concatenate((upper, zero), axis=-1), terms.lower), axis=-2)
    seen = _outputs(model, solution, columns, terms)
    T = np.concatenate((np.concatenate((dq, np.zeros((*dq.shape[:-1], p - p_q))), axis=-1), dv), axis=-2)
    rates = np.concatenate(
        (coordinate_rates(tree, state.q, state.v)[..., R_q], solution.v_dot[..., list(choice.v)]), axis=-1
    )
    return Matrices(
        A=whole[..., :p],
        B=whole[..., p:],
        C=seen[..., :p],
        D=seen[..., p:],
        T=T,
        f0=rates,
        values=model.output_values(solution),
        K_q=terms.K_q,
        K=terms.K,
        K_dot=terms.K_dot,
        K_ddot=terms.K_ddot,
        K_dot_twice=terms.K_dot_twice,
    )


def _terms(model: Mechanism, solution: Solution, columns: Columns, choice: Choice) -> _Terms:
    used, M = model.independence.all, solution.state.M
    K, N = _along_speeds(solution, choice)
    dq, K_q = _along_positions(model, solution, choice, K)
    c_q, c_v = columns.c_q[..., used, :], columns.c_v[..., used, :]
    K_dot = -N @ (columns.rate_q[..., used, :] @ K_q)
    K_ddot = -N @ (c_q @ K_q + c_v @ K_dot)
    K_dot_twice = -N @ (c_v @ K)
    K_t, N_t = np.swapaxes(K, -1, -2), np.swapaxes(N, -1, -2)
    pushes = np.concatenate(
        (
            columns.rho_q @ K_q + columns.rho_v @ K_dot + M @ K_ddot,
            columns.rho_v @ K + M @ K_dot_twice,
            columns.rho_u[..., model.kept_inputs],
        ),
        axis=-1,
    )
    lower = -np.linalg.solve(K_t @ M @ K, K_t @ pushes)
    dv_dot = K @ lower
    some = -N_t @ (pushes + M @ dv_dot)
    multipliers = np.zeros((*some.shape[:-2], len(model.system.bonds), some.shape[-1]))
    multipliers[..., used, :] = some
    p_q, p = K_q.shape[-1], K_q.shape[-1] + K.shape[-1]
    dv_dot[..., :p_q] += K_ddot
    dv_dot[..., p_q:p] += K_dot_twice
    return _Terms(dq, K_q, K, K_dot, K_ddot, K_dot_twice, lower, dv_dot, multipliers)


def _is_open(model: Mechanism, choice: Choice) -> bool:
    """Whether all freedoms are kept in their order: K is one then, and not worth multiplying with."""
    every = tuple(range(model.system.tree.n))
    return not len(model.system.tree.balls) and not len(model.independence.all) and choice.q == choice.v == every


def _open_terms(model: Mechanism, solution: Solution, columns: Columns, choice: Choice) -> _Terms:
    del choice
    M = solution.state.M
    one, none = np.broadcast_to(np.eye(M.shape[-1]), M.shape), np.zeros(M.shape)
    pushes = np.concatenate((columns.rho_q, columns.rho_v, columns.rho_u[..., model.kept_inputs]), axis=-1)
    lower = -np.linalg.solve(M, pushes)
    multipliers = np.zeros((*lower.shape[:-2], len(model.system.bonds), lower.shape[-1]))
    return _Terms(one, one, one, none, none, none, lower, lower, multipliers)


def _outputs(model: Mechanism, solution: Solution, columns: Columns, terms: _Terms) -> Array:
    """Return (C D), shape (..., ny, P + nu)."""
    p_q, p = terms.K_q.shape[-1], terms.K_q.shape[-1] + terms.K.shape[-1]
    o = model.output_columns(solution, columns)
    seen = o.v_dot @ terms.dv_dot + o.multipliers @ terms.multipliers
    seen[..., :p_q] += o.q @ terms.dq + o.theta @ terms.K_q
    seen[..., :p] += o.v @ np.concatenate((terms.K_dot, terms.K), axis=-1)
    seen[..., p:] += o.u[..., model.kept_inputs]
    return seen


def matrices_of(model: Mechanism, x: Array, u: Array, choice: Choice) -> Matrices:
    """Return the linear models at many points x (k, N), u (k, nu), in blocks that fit into the processor's cache."""
    blocks = [matrices(model, x[i : i + AT_ONCE], u[i : i + AT_ONCE], choice) for i in range(0, len(x), AT_ONCE)]
    return Matrices(*(np.concatenate([getattr(b, f.name) for b in blocks]) for f in fields(Matrices)))


def _along_speeds(solution: Solution, choice: Choice) -> tuple[Array, Array]:
    """Return K and N with (R_v; G) (K N) = 1, from the orthonormal null space of G."""
    K, N, v = solution.null_space.K, solution.null_space.N, list(choice.v)
    if K.shape[-1] != len(v):
        raise NumericalError(
            "The configuration is singular: fewer constraints are independent here than beside it, and there is no "
            "linear model of the motions that cross. Choose a point beside it."
        )
    K = K @ _inverse(K[..., v, :])
    return K, N - K @ N[..., v, :]


def _along_positions(model: Mechanism, solution: Solution, choice: Choice, K: Array) -> tuple[Array, Array]:
    """Return dq/dy_q (..., n_q, p_q) and the displacements that belong to it: K itself where it can be."""
    tree, known, q = model.system.tree, model.independence, solution.state.q
    if not len(tree.balls) and len(known.position) == len(known.all) and list(choice.v) == tree.speeds_at(choice.q):
        dq = np.zeros((*K.shape[:-2], tree.n_q, K.shape[-1]))
        dq[..., tree.screw_coordinates, :] = K[..., tree.screw_speeds, :]
        return dq, K
    H = position_gradient(model, solution)
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
