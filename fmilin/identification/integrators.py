"""Integrators of a fixed step: what each makes of a linear plant in one step, and the plant that belongs to a step.

With x' = A x + B u + f0, M = [A B f0; 0 0 0; 0 0 0] and inputs held over a step of h seconds, the step is a function of
h M alone: P = R(h M) = [Phi Gamma d; 0 1 0; 0 0 1]. Every method has a plant for every P, so that P alone does not tell
which method is inside (Hairer and Wanner, Solving Ordinary Differential Equations II, IV.2, for R of each method).

The semi-implicit Euler methods are not functions of h M: which coordinates are positions is found from the discrete
model. Velocities are updated first, and positions from the new velocities: q[k+1] = q[k] + h v[k+1], so that v is a
difference backwards, which no input moves at once. Positions first, q[k+1] = q[k] + h v[k] is a difference forwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import factorial

import numpy as np
from scipy import linalg

from fmilin.errors import NumericalError
from fmilin.identification.discrete_models import (
    Continuous,
    Sampled,
    choose_independent,
    find_observed_rows,
    take_logarithm,
)
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, LOGARITHM_TOLERANCE, MIN_RELATION_RATIO, RANK_MEASURED

NEWTON_STEPS = 40  # from the logarithm of the step matrix, which is near unless steps are too long for a plant
MAX_BODIES_IN_TURN = 4  # bodies that are updated one after another
FREE_BODY_TOLERANCE = 1e-4  # eigenvalues that are as near to 1 belong to a body that moves freely
INPUT_EFFECT_TOLERANCE = 1e-6  # singular values of what inputs do to a mode below this, relative, are rounding


@dataclass(frozen=True)
class OneStepMethod:
    """A one-step method: R, its inverse, and its name in a sentence."""

    name: str
    step_matrix: Callable[[FloatArray], FloatArray]  # R(h M)
    plant_matrix: Callable[[FloatArray], FloatArray]  # h M with R(h M) = P
    key: str = ""  # by which a user names it
    is_usual: bool = True  # whether tools export it: others are named together with a usual one, and do not outweigh it
    evaluated: float = 0.5  # where in a step rates are taken, on average: 0 at its beginning, 1 at its end

    def recover_plant(self, model: Sampled) -> FloatArray:
        """Return M = [A B f0; 0 0 0; 0 0 0] of the plant that this method steps as ``model`` does."""
        P = join_step_matrix(model)
        with np.errstate(all="ignore"):
            try:
                Z = self.plant_matrix(P)
                back = self.step_matrix(Z)
            except (np.linalg.LinAlgError, ValueError, OverflowError):
                raise NumericalError(f"No plant reproduces these steps with {self.name}.") from None
        worst = float(np.max(np.abs(back - P))) if np.isfinite(back).all() else np.inf
        if not worst <= LOGARITHM_TOLERANCE * float(np.max(np.abs(P))):
            raise NumericalError(f"No plant reproduces these steps with {self.name}.")
        return Z / model.step

    def compute_step(self, M: FloatArray, step: float, order: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return Phi, Gamma and the drift over a step of ``step`` seconds."""
        with np.errstate(all="ignore"):
            P = self.step_matrix(M * step)
        return P[:order, :order], P[:order, order:-1], P[:order, -1]


def join_step_matrix(model: Sampled) -> FloatArray:
    """Return P = [Phi Gamma d; 0 1 0; 0 0 1]."""
    n, k = model.order, model.B.shape[1]
    P = np.eye(n + k + 1)
    P[:n, :n], P[:n, n : n + k], P[:n, -1] = model.A, model.B, model.drift
    return P


def _polynomial(degree: int) -> Callable[[FloatArray], FloatArray]:
    """Return R(Z) = 1 + Z + ... + Z^degree/degree!, of explicit Runge-Kutta methods of that order and stages."""

    def value(Z: FloatArray) -> FloatArray:
        term, total = np.eye(len(Z)), np.eye(len(Z))
        for k in range(1, degree + 1):
            term = term @ Z / k
            total = total + term
        return total

    return value


def _polynomial_inverse(degree: int) -> Callable[[FloatArray], FloatArray]:
    """Return the Z with R(Z) = P that is nearest to log(P), by Newton's method."""
    # All iterates are functions of P and commute with it, so that the scalar iteration serves for matrices.
    value, slope = _polynomial(degree), _polynomial(degree - 1)

    def inverse(P: FloatArray) -> FloatArray:
        Z = take_logarithm(P)
        for _ in range(NEWTON_STEPS):
            change = np.linalg.solve(slope(Z), P - value(Z))
            Z = Z + change
            if float(np.max(np.abs(change))) <= EPS * factorial(3) * float(np.max(np.abs(Z))):
                break
        return Z

    return inverse


def _implicit(Z: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.inv(np.eye(len(Z)) - Z))


def _trapezoid(Z: FloatArray) -> FloatArray:
    one = np.eye(len(Z))
    return np.asarray(np.linalg.solve(one - Z / 2, one + Z / 2))


def _trapezoid_inverse(P: FloatArray) -> FloatArray:
    one = np.eye(len(P))
    return np.asarray(2.0 * np.linalg.solve((P + one).T, (P - one).T).T)


EXACT = OneStepMethod("a solver without visible error", lambda Z: np.asarray(linalg.expm(Z)), take_logarithm, "exact")
EXPLICIT_EULER = OneStepMethod(
    "the explicit Euler method", lambda Z: np.eye(len(Z)) + Z, lambda P: P - np.eye(len(P)), "euler", evaluated=0.0
)
IMPLICIT_EULER = OneStepMethod(
    "the implicit Euler method", _implicit, lambda P: np.eye(len(P)) - np.asarray(np.linalg.inv(P)), "implicit-euler",
    evaluated=1.0,
)  # fmt: skip
TRAPEZOID = OneStepMethod(
    "the trapezoidal rule (or the implicit midpoint rule)", _trapezoid, _trapezoid_inverse, "trapezoid"
)
HEUN = OneStepMethod("a Runge-Kutta method of order 2", _polynomial(2), _polynomial_inverse(2), "rk2")
RUNGE_KUTTA_3 = OneStepMethod("a Runge-Kutta method of order 3", _polynomial(3), _polynomial_inverse(3), "rk3")
RUNGE_KUTTA_4 = OneStepMethod("the Runge-Kutta method of order 4", _polynomial(4), _polynomial_inverse(4), "rk4")
INTEGRATORS = (EXPLICIT_EULER, RUNGE_KUTTA_4, TRAPEZOID, HEUN, IMPLICIT_EULER, RUNGE_KUTTA_3)
"""Methods with a step that is a function of h M, the most usual first; the semi-implicit Euler method is not."""


def sequential_euler(
    groups: Sequence[FloatArray], name: str, key: str = "", *, is_usual: bool = False, evaluated: float = 1.0
) -> OneStepMethod:
    """Return the Euler method that updates one group of states after another, each from the newest values.

    ``groups`` (n, n) project on the states of a group, along the others; their sum is the identity. The step is
    (1 + P_m Z) ... (1 + P_1 Z). Inputs do not change within a step.
    """

    def widen(group: FloatArray, size: int) -> FloatArray:
        wide = np.zeros((size, size))
        wide[: len(group), : len(group)] = group
        return wide

    def step_matrix(Z: FloatArray) -> FloatArray:
        updated = np.eye(len(Z))
        for group in groups:
            updated = updated + widen(group, len(Z)) @ Z @ updated
        return np.asarray(updated)

    def plant_matrix(P: FloatArray) -> FloatArray:
        change = P - np.eye(len(P))
        updated = np.eye(len(P))  # of the groups before, from the states at the beginning of the step
        Z = np.zeros_like(updated)
        for group in groups:
            wide = widen(group, len(P))
            Z = Z + np.linalg.solve(updated.T, (wide @ change).T).T
            updated = updated + wide @ change
        return Z

    return OneStepMethod(name, step_matrix, plant_matrix, key, is_usual, evaluated)


def semi_implicit_euler(first: FloatArray, *, positions_first: bool = False) -> OneStepMethod:
    """Return the Euler method that updates some states first, and the others from their new values.

    ``first`` (n, n) projects on the states that are updated first, along the others.
    """
    which = "positions first" if positions_first else "velocities first"
    key = "positions-first-euler" if positions_first else "semi-implicit-euler"
    name = f"the semi-implicit Euler method ({which})"
    # velocities first, accelerations are those of the beginning of the step
    evaluated = 1.0 if positions_first else 0.0
    groups = [first, np.eye(len(first)) - first]
    return sequential_euler(groups, name, key, is_usual=not positions_first, evaluated=evaluated)


def find_plant_of_integrator(integrator: OneStepMethod, model: Sampled, exact: Continuous) -> Continuous:
    """Return the plant that an integrator steps as ``model`` does; C, D and T are those of ``exact``."""
    n = model.order
    M = integrator.recover_plant(model)
    return replace(exact, A=M[:n, :n], B=M[:n, n:-1], f0=M[:n, -1])


def step_plant(integrator: OneStepMethod, model: Continuous, step: float, reading: str) -> Sampled:
    """Return what an integrator makes of a plant in one step of ``step`` seconds."""
    n, k = model.B.shape
    M = np.zeros((n + k + 1, n + k + 1))
    M[:n, :n], M[:n, n : n + k], M[:n, -1] = model.A, model.B, model.f0
    A, B, drift = integrator.compute_step(M, step, n)
    C, D = model.C, model.D
    if reading == "end of step":
        C, D = model.C @ A, model.C @ B + model.D
    return Sampled(A, B, C, D, step, reading, model.T, drift)


# The semi-implicit Euler methods that can have made a discrete model


@dataclass(frozen=True)
class _Map:
    """A discrete model with its inverse."""

    step: float
    A: FloatArray
    back: FloatArray  # A^-1
    Gamma: FloatArray  # (n, nu); the motion of the point where there are no inputs

    @property
    def order(self) -> int:
        return len(self.A)


def find_semi_implicit(model: Sampled) -> list[OneStepMethod]:
    """Return the semi-implicit Euler methods that have a plant, those of shown positions before all others."""
    # a point with speeds moves its positions, which inputs do not: its motion takes the place of inputs only
    Gamma = model.B if model.B.any() else model.drift[:, None]
    if model.order < 2 or not Gamma.shape[1]:
        return []
    try:
        back = np.asarray(np.linalg.inv(model.A), dtype=np.float64)
    except np.linalg.LinAlgError:
        return []
    step_map = _Map(model.step, model.A, back, Gamma)
    rows = find_observed_rows(model)
    proper = rows.C[~rows.D.any(axis=1)]
    methods: list[OneStepMethod] = []
    in_turn: list[OneStepMethod] = []
    for positions, speeds, positions_first in _pairings(step_map, proper):
        S = _normalize_rows(np.vstack((positions, speeds)))
        if not _is_regular(S):
            continue
        count = len(positions)
        methods.append(_method(S, slice(0, count), positions_first=positions_first))
        if not positions_first:
            in_turn += _in_turn(S)
    for positions_first in (False, True):
        if not any(method.is_usual is not positions_first for method in methods):
            other = _of_free_positions(step_map, proper, positions_first=positions_first)
            other = other or _of_modes(step_map, positions_first=positions_first)
            methods += [] if other is None else [other]
    return [*methods, *in_turn]


def _method(S: FloatArray, positions: slice, *, positions_first: bool) -> OneStepMethod:
    """Return the method in the coordinates S x, of which some are positions."""
    is_first = np.full(len(S), float(not positions_first))
    is_first[positions] = float(positions_first)
    first = np.asarray(np.linalg.solve(S, is_first[:, None] * S), dtype=np.float64)
    return semi_implicit_euler(first, positions_first=positions_first)


def _normalize_rows(rows: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _is_regular(S: FloatArray) -> bool:
    if not np.isfinite(S).all():
        return False
    return bool(np.linalg.svd(S, compute_uv=False)[-1] > RANK_MEASURED)


def _pairings(step_map: _Map, proper: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, bool]]:
    """Yield positions, speeds, and whether positions come first, where shown rows are half of the coordinates."""
    n, h, one = step_map.order, step_map.step, np.eye(step_map.order)
    if n % 2:
        return
    differences_backwards = (one - step_map.back) / h
    for q in _half(_rows_moved(proper, step_map.back @ step_map.Gamma, moved=False), n):
        yield q, q @ differences_backwards, False
    for speeds in _half(_rows_moved(proper, step_map.Gamma, moved=True), n):  # of bodies that inputs accelerate
        # 1e-12: rounding of exact matrices, against 1e-8 for those that were measured
        positions = np.linalg.lstsq(differences_backwards.T, speeds.T, rcond=1e-12)[0].T
        missed = np.abs(positions @ differences_backwards - speeds)
        # the equation holds to half of the digits, in the sizes of the entry and of the row
        if (missed <= 1e-8 * np.abs(speeds) + 1e-10 * np.max(np.abs(speeds))).all():
            yield np.asarray(positions, dtype=np.float64), speeds, False
    for q in _half(_rows_moved(proper, step_map.Gamma, moved=False), n):
        yield q, q @ (step_map.A - one) / h, True


def _of_free_positions(step_map: _Map, proper: FloatArray, *, positions_first: bool) -> OneStepMethod | None:
    """Return the method where positions act on nothing: the angle of a motor, unlike its speed and its current.

    The other states are then updated without them, so that the direction of positions is what Phi leaves as it is.
    """
    moved_by = step_map.Gamma if positions_first else step_map.back @ step_map.Gamma
    positions = _rows_moved(proper, moved_by, moved=False)
    _, sizes, rows = np.linalg.svd(step_map.A - np.eye(step_map.order))
    free = rows[sizes <= FREE_BODY_TOLERANCE**2 * max(1.0, float(sizes[0]))].T
    count = free.shape[1]
    q = choose_independent(positions, count) if count else None
    if q is None or choose_independent(positions, count + 1) is not None:
        return None
    free_positions = q @ free
    if np.linalg.svd(free_positions, compute_uv=False)[-1] <= RANK_MEASURED:
        return None
    on_positions = np.asarray(free @ np.linalg.solve(free_positions, q))
    first = on_positions if positions_first else np.eye(step_map.order) - on_positions
    return semi_implicit_euler(first, positions_first=positions_first)


def _of_modes(step_map: _Map, *, positions_first: bool) -> OneStepMethod | None:
    """Return the method where each oscillation, and a body that moves freely, has a position of its own.

    Where fewer positions are shown than there are, many plants are stepped alike. This one is damped mode by mode. Real
    modes other than that of a free body have no position.
    """
    bases = _bases_of_modes(step_map.A)
    X = np.hstack([basis for basis, _ in bases])
    if X.shape[0] != X.shape[1] or not _is_regular(_normalize_rows(X.T)):
        return None
    L = np.asarray(np.linalg.inv(X))
    moved_by = L @ (step_map.Gamma if positions_first else step_map.back @ step_map.Gamma)
    one = np.eye(step_map.order)
    difference = step_map.A - one if positions_first else one - step_map.back
    positions: list[FloatArray] = []
    other_rows: list[FloatArray] = []
    begin = 0
    for basis, has_position in bases:
        part = slice(begin, begin + basis.shape[1])
        begin = part.stop
        if not has_position:
            other_rows += list(L[part])
            continue
        U, sizes, _ = np.linalg.svd(moved_by[part])
        if not sizes[0] or (len(sizes) > 1 and sizes[1] > INPUT_EFFECT_TOLERANCE * sizes[0]):
            return None
        q = U[:, 1] @ L[part]
        positions.append(q)
        other_rows.append(q @ difference / step_map.step)
    S = _normalize_rows(np.array([*positions, *other_rows]))
    if not positions or not _is_regular(S):
        return None
    return _method(S, slice(0, len(positions)), positions_first=positions_first)


def _bases_of_modes(A: FloatArray) -> list[tuple[FloatArray, bool]]:
    """Return real bases of the modes, and whether each has a position."""
    values, vectors = np.linalg.eig(A)
    at_one = np.abs(values - 1.0) <= FREE_BODY_TOLERANCE
    bases: list[tuple[FloatArray, bool]] = []
    if at_one.sum() == 2:  # eigenvectors of a double eigenvalue are lost in rounding, their plane is not
        off = A - np.eye(len(A))
        plane = np.linalg.svd(off @ off)[2][-2:].T
        bases.append((np.asarray(plane, dtype=np.float64), True))
    else:
        at_one[:] = False
    for value, vector in zip(values[~at_one], vectors[:, ~at_one].T, strict=True):
        if value.imag > 0:
            bases.append((np.column_stack((vector.real, vector.imag)), True))
        elif not value.imag:
            bases.append((np.asarray(vector.real[:, None]), False))
    return bases


def _in_turn(S: FloatArray) -> list[OneStepMethod]:
    """Return the methods that update velocities one after another, or body after body; rows of S: positions, speeds.

    In all of them positions are the sums of new velocities, so that only the plant tells them from the method that
    updates all velocities at once.
    """
    count = len(S) // 2
    if not 2 <= count <= MAX_BODIES_IN_TURN:
        return []
    units = np.eye(len(S))
    single: list[FloatArray] = [np.asarray(np.linalg.solve(S, unit[:, None] * S)) for unit in units]
    positions, speeds = single[:count], single[count:]
    methods = []
    for turn in (list(range(count)), list(range(count))[::-1]):
        apart = [*(speeds[k] for k in turn), np.asarray(sum(positions))]
        methods.append(sequential_euler(apart, "the semi-implicit Euler method (one velocity after another)"))
        bodies = [group for k in turn for group in (speeds[k], positions[k])]
        methods.append(sequential_euler(bodies, "the semi-implicit Euler method (body after body)"))
    return methods


def _rows_moved(rows: FloatArray, Gamma: FloatArray, *, moved: bool) -> FloatArray:
    """Return the rows that some column moves, with the moduli of the terms; or else those that none does."""
    terms = np.abs(rows) @ np.abs(Gamma)
    reached = (np.abs(rows @ Gamma) > MIN_RELATION_RATIO * np.where(terms > 0, terms, 1.0)).any(axis=1)
    chosen: FloatArray = rows[reached == moved]
    return chosen


def _half(rows: FloatArray, order: int) -> list[FloatArray]:
    """Return the independent rows where there are just as many as half of ``order``."""
    count = order // 2
    chosen = choose_independent(rows, count)
    more = choose_independent(rows, count + 1) if len(rows) > count else None
    return [] if chosen is None or more is not None else [chosen]
