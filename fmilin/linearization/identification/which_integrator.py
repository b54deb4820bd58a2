"""Which integrator made a discrete model: the one with a plant in which exact relations hold that others miss.

One discrete model has a plant for every integrator. The right plant is told by what is exactly so in equations of
motion and only nearly so in the wrong plants: an input that moves a position by way of its acceleration only (C B = 0),
an output that is the first or second rate of another (C_i A = C_j, C_i A^2 = C_j), an undamped mode, a coefficient that
is zero, a coefficient of the characteristic polynomial that has few digits, as parameters that people write have.
Without such a relation the integrator cannot be told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.ground import FloatArray, FmilinError, NumericalError
from fmilin.ground.tolerances import RANK_MEASURED, RELATION_HOLDS, RELATION_MISSED
from fmilin.linearization.identification.integrators import (
    EXACT,
    INTEGRATORS,
    Integrator,
    continuous_by,
    semi_implicit_euler,
    sequential_euler,
)
from fmilin.linearization.identification.sampled import Continuous, Sampled

MARKOV = 4  # parameters C A^k B that may vanish
MOST_IN_TURN = 4  # bodies that are updated one after another
DIGITS = 4  # of coefficients that people write: by chance one of about 1e6 numbers is as near to such as rounding
VANISHING = 1e-7  # coefficients of the polynomial, relative, that a multiple zero leaves: they tell nothing
SAME_PLANT = 1e-9  # entries of A and B that differ by less than this, relative to the largest, are the same
ROUNDED = 1e-12  # errors of entries, relative to the largest, that a realization has at least
FEW_ROWS = 24  # outputs and states that are compared with each other


@dataclass(frozen=True)
class Candidate:
    """An integrator and its plant."""

    integrator: Integrator
    plant: Continuous


@dataclass(frozen=True)
class Identified:
    """The integrator that was found, or that none can be told."""

    integrator: Integrator | None
    plant: Continuous  # of the integrator; of a solver without visible error where none is told
    relations: int  # exact relations that hold in this plant and not in all others
    rivals: tuple[Candidate, ...]  # others in which as many hold
    unusual: tuple[Candidate, ...] = ()  # others in which as many hold, of orders of updates that few tools have
    errors: FloatArray | None = None  # of the entries of A, so far

    @property
    def difference(self) -> float:
        """How far the plants of rivals are from this one: entries of A and B, eigenvalues, transfer functions."""
        return max((self.measure(rival) for rival in self.rivals), default=0.0)

    def measure(self, rival: Candidate) -> float:
        """Return how far the plant of a rival is from this one."""
        return _difference(self.plant, rival.plant, self.errors)


def identify_integrator(
    model: Sampled, exact: Continuous, errors: FloatArray | None = None, name: str | None = None
) -> Identified:
    """Return the integrator behind a discrete model over its solver's own step; ``exact`` is the plant by logarithm.

    ``errors`` are those of the entries of A; ``name`` names the integrator, where a user knows it.
    """
    candidates = find_candidates(model, exact)
    if name is not None:
        return _take_integrator(candidates, name, errors)
    rows = _rows_of(model)
    residuals = np.array([_relations(candidate.plant, rows) for candidate in candidates])
    least, most = residuals.min(axis=0), residuals.max(axis=0)
    informative = least <= RELATION_MISSED * most
    holds = residuals <= np.maximum(RELATION_HOLDS, 10.0 * least)
    votes = (holds & informative & ~holds.all(axis=0)).sum(axis=1)
    most_votes = int(votes.max(initial=0))
    if not most_votes:
        return leave_integrator_open(model, exact, errors)
    counted = list(zip(candidates, votes.tolist(), strict=True))
    best = [candidate for candidate, count in counted if count == most_votes]
    usual = [candidate for candidate in best if candidate.integrator.is_usual]
    unusual = [candidate for candidate in best if not candidate.integrator.is_usual]
    if usual:
        return Identified(usual[0].integrator, usual[0].plant, most_votes, tuple(usual[1:]), tuple(unusual), errors)
    # one relation may hold by accident, as that of h k = d, which leaves an oscillator undamped: it decides nothing
    near = [candidate for candidate, count in counted if count == most_votes - 1 and candidate.integrator.is_usual]
    first = unusual[0]
    return Identified(first.integrator, first.plant, most_votes, (*unusual[1:], *near), (), errors)


def _take_integrator(candidates: list[Candidate], name: str, errors: FloatArray | None) -> Identified:
    for candidate in candidates:
        if candidate.integrator.key == name:
            return Identified(candidate.integrator, candidate.plant, 0, (), (), errors)
    possible = ", ".join(dict.fromkeys(c.integrator.key for c in candidates if c.integrator.key))
    raise NumericalError(
        f"No plant is stepped as this model is by the integrator '{name}'. Integrators that have one: {possible}."
    )


def leave_integrator_open(model: Sampled, exact: Continuous, errors: FloatArray | None = None) -> Identified:
    """Return the plant by logarithm, with those of all integrators as its rivals."""
    others = [c for c in find_candidates(model, exact) if c.integrator is not EXACT]
    usual, unusual = (tuple(c for c in others if c.integrator.is_usual == is_usual) for is_usual in (True, False))
    return Identified(None, exact, 0, usual, unusual, errors)


def find_candidates(model: Sampled, exact: Continuous) -> list[Candidate]:
    """Return the integrators that have a plant, the most usual first."""
    first, *others = INTEGRATORS
    integrators = [first, *_semi_implicit(model), *others]
    candidates = []
    for integrator in integrators:
        try:
            plant = continuous_by(integrator, model, exact)
        except FmilinError:
            continue
        if np.isfinite(plant.A).all() and np.isfinite(plant.B).all():
            candidates.append(Candidate(integrator, plant))
    return [*candidates, Candidate(EXACT, exact)]


COMPARED_FREQUENCIES = (0.3 + 0.1j, 0.3 + 1j, 0.3 + 3j)  # complex frequencies, in the modulus of the fastest eigenvalue


def _difference(one: Continuous, other: Continuous, errors: FloatArray | None = None) -> float:
    """Return how far a plant is from another, relative to this one, in whatever a user can compare.

    The coordinates of a realization are arbitrary: entries of A may differ by less than eigenvalues and transfer
    functions do, which depend on no coordinates. What the errors of the entries explain is not a difference: they
    spread a double zero by the root of rounding.
    """
    parts = []
    for name in "AB":
        a, b = getattr(one, name), getattr(other, name)
        largest = float(np.max(np.abs(a), initial=0.0))
        if largest:
            parts.append(float(np.max(np.abs(a - b))) / largest)
    # the plants of integrators that step a chain of integrators alike differ by rounding, with all its eigenvalues 0
    same = not parts or max(parts) <= SAME_PLANT
    if same:
        return max(parts, default=0.0)
    # either may be the true plant: what is wrong is relative to the true one
    for stated, true in ((one, other), (other, one)):
        spread = _spread(true.A, errors)
        fastest = float(np.max(np.abs(np.linalg.eigvals(true.A)), initial=0.0))
        if fastest > spread:
            parts.append(max(_eigenvalue_distance(stated.A, true.A) - spread, 0.0) / fastest)
            parts.append(_transfer_difference(stated, true, fastest))
    return max(parts, default=0.0)


def _spread(A: FloatArray, errors: FloatArray | None) -> float:
    """Return by how much errors of the entries of A may move an eigenvalue."""
    from fmilin.numerics.eigenvalue_errors import compute_eigenvalue_errors

    E = np.full_like(A, ROUNDED * float(np.max(np.abs(A), initial=0.0)))
    if errors is not None:
        E = np.maximum(E, errors)
    moved = compute_eigenvalue_errors(A, E)
    return float(np.max(moved, initial=0.0))


def _eigenvalue_distance(stated: FloatArray, true: FloatArray) -> float:
    from scipy.optimize import linear_sum_assignment

    values, others = np.linalg.eigvals(stated), np.linalg.eigvals(true)
    distances = np.abs(values[:, None] - others)
    rows, columns = linear_sum_assignment(distances)
    return float(np.max(distances[rows, columns], initial=0.0))


def _transfer_difference(stated: Continuous, true: Continuous, fastest: float) -> float:
    worst = 0.0
    for point in COMPARED_FREQUENCIES:
        one, other = (_evaluate_transfer(plant, fastest * point) for plant in (stated, true))
        largest = float(np.max(np.abs(other), initial=0.0))
        if largest and np.isfinite(one).all():
            worst = max(worst, float(np.max(np.abs(one - other))) / largest)
    return worst


def _evaluate_transfer(plant: Continuous, s: complex) -> NDArray[np.complex128]:
    try:
        states = np.linalg.solve(s * np.eye(len(plant.A)) - plant.A, plant.B.astype(np.complex128))
    except np.linalg.LinAlgError:  # an eigenvalue of the plant
        return np.full(plant.D.shape, np.inf, dtype=np.complex128)
    return np.asarray(plant.C @ states + plant.D, dtype=np.complex128)


# Rows of outputs and of states: what is seen of x and of u. Rates of them are relations to look for.


@dataclass(frozen=True)
class _Rows:
    C: FloatArray  # (r, n)
    D: FloatArray  # (r, nu)
    square: FloatArray | None  # n independent rows of C in which A may have zeros


def _rows_of(model: Sampled) -> _Rows:
    n, k = model.B.shape
    C = np.vstack((model.T.reshape(-1, n), model.C))
    D = np.vstack((np.zeros((len(model.T), k)), model.D))
    if model.reading == "end of step" and n:  # y[k] = C x[k+1] + D u[k]
        shown = np.linalg.solve(model.A.T, model.C.T).T
        C, D = np.vstack((model.T.reshape(-1, n), shown)), np.vstack((D[: len(model.T)], model.D - shown @ model.B))
    sizes = np.linalg.norm(C, axis=1)
    seen = np.flatnonzero(sizes > RANK_MEASURED * np.max(sizes, initial=0.0))
    distinct: list[int] = []
    for i in seen.tolist():
        if all(_apart(np.append(C[i], D[i]), np.append(C[j], D[j])) > RANK_MEASURED for j in distinct):
            distinct.append(i)
    C, D = C[distinct[:FEW_ROWS]], D[distinct[:FEW_ROWS]]
    small = np.abs(D) <= RELATION_HOLDS * np.max(np.abs(D), axis=1, initial=0.0)[:, None]
    return _Rows(C, np.where(small, 0.0, D), _independent(C, n))


def _apart(one: FloatArray, other: FloatArray) -> float:
    """Return the sine of the angle between two vectors."""
    a, b = (vector / np.linalg.norm(vector) for vector in (one, other))
    return float(np.linalg.norm(a - (a @ b) * b))


def _independent(rows: FloatArray, count: int) -> FloatArray | None:
    """Return the first rows that are well independent, as many as ``count``; None where there are fewer."""
    chosen: list[FloatArray] = []
    for row in rows:
        trial = np.array([*chosen, row / np.linalg.norm(row)])
        if np.linalg.svd(trial, compute_uv=False)[-1] > RANK_MEASURED:
            chosen.append(trial[-1])
        if len(chosen) == count:
            return np.array(chosen)
    return None


def _relations(plant: Continuous, rows: _Rows) -> FloatArray:
    """Return how far each relation is from exact, relative to the terms in it, in the same order for all plants."""
    A, B, C, n = plant.A, plant.B, rows.C, len(plant.A)
    if plant.f0.any():
        B = np.column_stack((B, plant.f0))
    D = np.column_stack((rows.D, np.zeros((len(C), B.shape[1] - rows.D.shape[1]))))
    residuals: list[float] = []
    if not n:
        return np.zeros(0)
    residuals += _count_digits(A)
    if n < 2:  # every row is the rate of every other
        return np.array(residuals)
    proper = (D == 0).all(axis=1)
    power, terms = B, np.abs(B)
    for _ in range(min(MARKOV, n - 1)):
        size = np.abs(C) @ terms
        value = np.abs(C @ power) / np.where(size > 0, size, 1.0)
        residuals += np.where(D == 0, value, 1.0).ravel().tolist()
        power, terms = A @ power, np.abs(A) @ terms
    shown = np.hstack((C, D))
    terms = np.abs(C) @ np.abs(B)
    moved_at_once = np.abs(C @ B) > RELATION_MISSED * np.where(terms > 0, terms, 1.0)
    slow = proper & ~moved_at_once.any(axis=1)  # rows that have a second rate
    for rates, has_rate in ((np.hstack((C @ A, C @ B)), proper), (np.hstack((C @ A @ A, C @ A @ B)), slow)):
        for i in range(len(C)):
            for j in range(len(C)):
                if i != j:
                    zero = not rates[i].any()
                    residuals.append(1.0 if zero or not has_rate[i] else _apart(rates[i], shown[j]))
    values = np.linalg.eigvals(A)
    oscillating = sorted(values[values.imag > 0.1 * np.abs(values)].tolist(), key=lambda s: s.imag)
    damping = [abs(s.real) / abs(s) for s in oscillating[: n // 2]]
    residuals += damping + [1.0] * (n // 2 - len(damping))
    if rows.square is not None:
        own = rows.square @ A @ np.linalg.inv(rows.square)
        sizes = np.max(np.abs(own), axis=1, keepdims=True)
        residuals += (np.abs(own) / np.where(sizes > 0, sizes, 1.0)).ravel().tolist()
    return np.array(residuals)


def _count_digits(A: FloatArray) -> list[float]:
    """Return how far coefficients of the characteristic polynomial are from numbers of few digits, relative."""
    coefficients = np.poly(A)[1:]
    fastest = float(np.max(np.abs(np.linalg.eigvals(A)), initial=0.0))
    residuals: list[float] = []
    for k, coefficient in enumerate(coefficients.tolist(), 1):
        if not np.isfinite(coefficient) or abs(coefficient) <= VANISHING * fastest**k:
            residuals.append(0.0)
        else:
            rounded = float(f"{coefficient:.{DIGITS - 1}e}")
            residuals.append(abs(coefficient - rounded) / abs(coefficient))
    return residuals


# The semi-implicit Euler method needs to know what are positions: half of the coordinates, seen by outputs or states.


def _semi_implicit(model: Sampled) -> list[Integrator]:
    """Return the semi-implicit Euler methods whose positions are among the rows that are seen."""
    n = model.order
    if n < 2 or n % 2:
        return []
    rows, h, one = _rows_of(model), model.step, np.eye(n)
    proper = rows.C[~rows.D.any(axis=1)]
    Gamma = np.column_stack((model.B, model.drift)) if model.drift.any() else model.B
    if not Gamma.shape[1]:
        return []
    try:
        back = np.linalg.inv(model.A)
    except np.linalg.LinAlgError:
        return []
    # velocities first: q[k+1] = q[k] + h v[k+1], so that v is a difference backwards, which no input moves at once
    pairings: list[tuple[FloatArray, FloatArray, bool]]
    pairings = [(q, q @ (one - back) / h, False) for q in _half(_rows_moved(proper, back @ Gamma, moved=False), n)]
    for speeds in _half(_rows_moved(proper, Gamma, moved=True), n):  # of bodies that inputs accelerate
        positions = np.asarray(h * np.linalg.lstsq((one - back).T, speeds.T, rcond=1e-12)[0].T, dtype=np.float64)
        if np.allclose(positions @ (one - back), h * speeds, rtol=1e-8, atol=1e-10 * np.max(np.abs(speeds))):
            pairings.append((positions, speeds, False))
    # positions first: q[k+1] = q[k] + h v[k]
    pairings += [(q, q @ (model.A - one) / h, True) for q in _half(_rows_moved(proper, Gamma, moved=False), n)]
    methods: list[Integrator] = []
    in_turn: list[Integrator] = []
    for positions, speeds, positions_first in pairings:
        S = np.vstack((positions, speeds))
        S = S / np.linalg.norm(S, axis=1, keepdims=True)
        if not np.isfinite(S).all() or np.linalg.svd(S, compute_uv=False)[-1] <= RANK_MEASURED:
            continue
        which = np.zeros(n)
        which[: n // 2] = float(positions_first)
        which[n // 2 :] = float(not positions_first)
        methods.append(semi_implicit_euler(np.linalg.solve(S, which[:, None] * S), positions_first=positions_first))
        if not positions_first:
            in_turn += _in_turn(S)
    return [*methods, *in_turn]


def _in_turn(S: FloatArray) -> list[Integrator]:
    """Return the methods that update velocities one after another, or body after body; rows of S: positions, speeds.

    In all of them positions are the sums of new velocities, so that only the plant tells them from the method that
    updates all velocities at once.
    """
    count = len(S) // 2
    if not 2 <= count <= MOST_IN_TURN:
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
    """Return the rows that some column moves, beside the moduli of the terms; or else those that none does."""
    terms = np.abs(rows) @ np.abs(Gamma)
    reached = (np.abs(rows @ Gamma) > RELATION_MISSED * np.where(terms > 0, terms, 1.0)).any(axis=1)
    chosen: FloatArray = rows[reached == moved]
    return chosen


def _half(rows: FloatArray, order: int) -> list[FloatArray]:
    """Return the independent rows where there are just as many as half of ``order``."""
    count = order // 2
    chosen = _independent(rows, count)
    more = _independent(rows, count + 1) if len(rows) > count else None
    return [] if chosen is None or more is not None else [chosen]
