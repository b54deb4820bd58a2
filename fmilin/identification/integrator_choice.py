"""Which integrator made a discrete model: the one with a plant in which exact relations hold that others miss.

One discrete model has a plant for every integrator. The right plant is recognized by relations that hold exactly in
equations of motion and only nearly so in the wrong plants: an input that moves a position by way of its acceleration
only (C B = 0), an output that is the first or second rate of another (C_i A = C_j, C_i A^2 = C_j), an undamped mode, a
coefficient that is zero, a coefficient of the characteristic polynomial, or an entry between outputs, that has few
digits, as parameters that people write have.
Without such a relation the integrator cannot be identified.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.discrete_models import Continuous, OutputRows, Sampled, compute_sine, find_observed_rows
from fmilin.identification.integrators import (
    EXACT,
    INTEGRATORS,
    OneStepMethod,
    find_plant_of_integrator,
    find_semi_implicit,
)
from fmilin.signals import FloatArray
from fmilin.tolerances import MIN_RELATION_RATIO, RELATION_TOLERANCE

MAX_MARKOV_PARAMETERS = 4  # parameters C A^k B that may vanish
DIGITS = 4  # of coefficients that people write: by chance one of about 1e6 numbers is as near to such as rounding
MAX_DIGITS = 8  # of a coefficient: as many are any number
VANISHING_COEFFICIENT_TOLERANCE = (
    1e-7  # coefficients of the polynomial, relative, that a multiple zero leaves: they tell nothing
)
SAME_PLANT_TOLERANCE = 1e-9  # entries of A and B that differ by less than this, relative to the largest, are the same
REALIZATION_ROUNDING_ERROR = 1e-12  # errors of entries, relative to the largest, that a realization has at least


@dataclass(frozen=True)
class IntegratorCandidate:
    """An integrator and its plant."""

    integrator: OneStepMethod
    plant: Continuous


@dataclass(frozen=True)
class Identified:
    """The identified integrator, or that there is none."""

    integrator: OneStepMethod | None
    plant: Continuous  # of the integrator; of a solver without visible error where none is identified
    relations: int  # exact relations that hold in this plant and not in all others
    rivals: tuple[IntegratorCandidate, ...]  # others in which as many hold
    unusual: tuple[
        IntegratorCandidate, ...
    ] = ()  # others in which as many hold, of orders of updates that few tools have
    longer: tuple[
        IntegratorCandidate, ...
    ] = ()  # such orders that need more digits: they are named, and not counted as errors
    errors: FloatArray | None = None  # of the entries of A, so far

    @property
    def difference(self) -> float:
        """How far the plants of rivals are from this one: entries of A and B, eigenvalues, transfer functions."""
        return max((self.measure(rival) for rival in self.rivals), default=0.0)

    @property
    def unusual_difference(self) -> float:
        """How far the plants of unusual orders of updates are from this one: entries of A and B, eigenvalues."""
        # transfer functions differ far more near a resonance, and every explicit Euler method has such a rival
        return max(
            (_difference(self.plant, rival.plant, self.errors, transfer=False) for rival in self.unusual), default=0.0
        )

    def measure(self, rival: IntegratorCandidate) -> float:
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
    rows = find_observed_rows(model)
    residuals = np.array([_relations(candidate.plant, rows) for candidate in candidates])
    least, most = residuals.min(axis=0), residuals.max(axis=0)
    informative = least <= MIN_RELATION_RATIO * most
    # ten times: residuals of equally good candidates differ by noise, as ends of errors do
    holds = residuals <= np.maximum(RELATION_TOLERANCE, 10.0 * least)
    votes = (holds & informative & ~holds.all(axis=0)).sum(axis=1)
    most_votes = int(votes.max(initial=0))
    if not most_votes:
        return leave_integrator_open(model, exact, errors)
    counted = list(zip(candidates, votes.tolist(), strict=True))
    best = [candidate for candidate, count in counted if count == most_votes]
    usual = [candidate for candidate in best if candidate.integrator.is_usual]
    unusual = [candidate for candidate in best if not candidate.integrator.is_usual]
    if usual:
        # an order of updates that few tools have is as good an explanation, unless it makes coefficients longer
        digits = _count_all_digits(usual[0].plant.A, errors)
        as_short = [candidate for candidate in unusual if _count_all_digits(candidate.plant.A, errors) <= digits]
        longer = [candidate for candidate in unusual if _count_all_digits(candidate.plant.A, errors) > digits]
        return Identified(
            usual[0].integrator, usual[0].plant, most_votes, tuple(usual[1:]), tuple(as_short), tuple(longer), errors
        )
    # one relation may hold by accident, as that of h k = d, which leaves an oscillator undamped: it decides nothing
    near = [candidate for candidate, count in counted if count == most_votes - 1 and candidate.integrator.is_usual]
    first = unusual[0]
    return Identified(first.integrator, first.plant, most_votes, (*unusual[1:], *near), (), (), errors)


def _take_integrator(candidates: list[IntegratorCandidate], name: str, errors: FloatArray | None) -> Identified:
    for candidate in candidates:
        if candidate.integrator.key == name:
            return Identified(candidate.integrator, candidate.plant, 0, (), (), (), errors)
    possible = ", ".join(dict.fromkeys(c.integrator.key for c in candidates if c.integrator.key))
    raise NumericalError(
        f"No plant reproduces this model with the integrator '{name}'. Integrators that do: {possible}."
    )


def leave_integrator_open(model: Sampled, exact: Continuous, errors: FloatArray | None = None) -> Identified:
    """Return the plant by logarithm, with those of all integrators as its rivals."""
    other_candidates = [c for c in find_candidates(model, exact) if c.integrator is not EXACT]
    usual, unusual = (
        tuple(c for c in other_candidates if c.integrator.is_usual == is_usual) for is_usual in (True, False)
    )
    return Identified(None, exact, 0, usual, (), unusual, errors)


def find_candidates(model: Sampled, exact: Continuous) -> list[IntegratorCandidate]:
    """Return the integrators that have a plant, the most usual first."""
    first, *other_integrators = INTEGRATORS
    integrators = [first, *find_semi_implicit(model), *other_integrators]
    candidates = []
    for integrator in integrators:
        try:
            plant = find_plant_of_integrator(integrator, model, exact)
        except FmilinError:
            continue
        if np.isfinite(plant.A).all() and np.isfinite(plant.B).all():
            candidates.append(IntegratorCandidate(integrator, plant))
    return [*candidates, IntegratorCandidate(EXACT, exact)]


COMPARED_FREQUENCIES = (0.3 + 0.1j, 0.3 + 1j, 0.3 + 3j)  # complex frequencies, in the modulus of the fastest eigenvalue


def _difference(
    one: Continuous, other: Continuous, errors: FloatArray | None = None, *, transfer: bool = True
) -> float:
    """Return how far a plant is from another, relative to this one, in whatever a user can compare.

    The coordinates of a realization are arbitrary: entries of A may differ by less than eigenvalues and transfer
    functions do, which depend on no coordinates. Deviations within the errors of the entries do not count as a
    difference: they spread a double zero by the root of rounding.
    """
    parts = []
    for name in "AB":
        a, b = getattr(one, name), getattr(other, name)
        largest = float(np.max(np.abs(a), initial=0.0))
        if largest:
            parts.append(float(np.max(np.abs(a - b))) / largest)
    # the plants of integrators that step a chain of integrators alike differ by rounding, with all its eigenvalues 0
    same = not parts or max(parts) <= SAME_PLANT_TOLERANCE
    if same:
        return max(parts, default=0.0)
    # either may be the true plant: what is wrong is relative to the true one
    for stated, true in ((one, other), (other, one)):
        spread = _spread(true.A, errors)
        fastest = float(np.max(np.abs(np.linalg.eigvals(true.A)), initial=0.0))
        if fastest > spread:
            parts.append(max(_eigenvalue_distance(stated.A, true.A) - spread, 0.0) / fastest)
            if transfer:
                parts.append(_transfer_difference(stated, true, fastest))
    return max(parts, default=0.0)


def _spread(A: FloatArray, errors: FloatArray | None) -> float:
    """Return by how much errors of the entries of A may move an eigenvalue."""
    from fmilin.numerics.eigenvalue_errors import compute_eigenvalue_errors

    E = np.full_like(A, REALIZATION_ROUNDING_ERROR * float(np.max(np.abs(A), initial=0.0)))
    if errors is not None:
        E = np.maximum(E, errors)
    moved = compute_eigenvalue_errors(A, E)
    return float(np.max(moved, initial=0.0))


def _eigenvalue_distance(stated: FloatArray, true: FloatArray) -> float:
    from scipy.optimize import linear_sum_assignment

    values, true_values = np.linalg.eigvals(stated), np.linalg.eigvals(true)
    distances = np.abs(values[:, None] - true_values)
    rows, columns = linear_sum_assignment(distances)
    return float(np.max(distances[rows, columns], initial=0.0))


def _transfer_difference(stated: Continuous, true: Continuous, fastest: float) -> float:
    worst = 0.0
    for point in COMPARED_FREQUENCIES:
        one, other = (plant.evaluate_transfer(fastest * point) for plant in (stated, true))
        largest = float(np.max(np.abs(other), initial=0.0))
        if largest and np.isfinite(one).all():
            worst = max(worst, float(np.max(np.abs(one - other))) / largest)
    return worst


def _relations(plant: Continuous, rows: OutputRows) -> FloatArray:
    """Return how far each relation is from exact, relative to the terms in it, in the same order for all plants."""
    A, B, C, n = plant.A, plant.B, rows.C, len(plant.A)
    if plant.f0.any():
        B = np.column_stack((B, plant.f0))
    D = np.column_stack((rows.D, np.zeros((len(C), B.shape[1] - rows.D.shape[1]))))
    residuals: list[float] = []
    if not n:
        return np.zeros(0)
    residuals += [_measure_rounding(value, DIGITS) for value in _compute_coefficients(A).tolist()]
    if n < 2:  # every row is the rate of every other
        return np.array(residuals)
    proper = (D == 0).all(axis=1)
    power, terms = B, np.abs(B)
    for _ in range(min(MAX_MARKOV_PARAMETERS, n - 1)):
        size = np.abs(C) @ terms
        value = np.abs(C @ power) / np.where(size > 0, size, 1.0)
        residuals += value.ravel().tolist()
        power, terms = A @ power, np.abs(A) @ terms
    # the rate of a position is its speed, and the speed of the point in f0
    B, D = plant.B, rows.D
    output_matrix = np.hstack((C, D))
    terms = np.abs(C) @ np.abs(B)
    moved_at_once = np.abs(C @ B) > MIN_RELATION_RATIO * np.where(terms > 0, terms, 1.0)
    slow = proper & ~moved_at_once.any(axis=1)  # rows that have a second rate
    for rates, has_rate in ((np.hstack((C @ A, C @ B)), proper), (np.hstack((C @ A @ A, C @ A @ B)), slow)):
        for i in range(len(C)):
            for j in range(len(C)):
                if i != j:
                    zero = not rates[i].any()
                    residuals.append(1.0 if zero or not has_rate[i] else compute_sine(rates[i], output_matrix[j]))
    values = np.linalg.eigvals(A)
    # a mode that decays within a period says nothing of being undamped
    oscillating = sorted(values[values.imag > 0.1 * np.abs(values)].tolist(), key=lambda s: s.imag)
    damping = [abs(s.real) / abs(s) for s in oscillating[: n // 2]]
    residuals += damping + [1.0] * (n // 2 - len(damping))
    if rows.square is not None:
        square = rows.square / np.linalg.norm(rows.square, axis=1, keepdims=True)
        transformed = square @ A @ np.linalg.inv(square)
        sizes = np.max(np.abs(transformed), axis=1, keepdims=True)
        residuals += (np.abs(transformed) / np.where(sizes > 0, sizes, 1.0)).ravel().tolist()
        residuals += _relate_written_entries(plant, rows.square)
    return np.array(residuals)


def _compute_coefficients(A: FloatArray) -> FloatArray:
    """Return the coefficients of the characteristic polynomial, 0 for those that a multiple zero leaves."""
    coefficients = np.asarray(np.poly(A)[1:], dtype=np.float64)
    fastest = float(np.max(np.abs(np.linalg.eigvals(A)), initial=0.0))
    is_visible = np.abs(coefficients) > VANISHING_COEFFICIENT_TOLERANCE * fastest ** np.arange(1, len(A) + 1)
    return np.where(is_visible & np.isfinite(coefficients), coefficients, 0.0)


def _measure_rounding(value: float, digits: int) -> float:
    """Return how far a number is from one of a few digits, relative; 0 for 0."""
    return abs(value - float(f"{value:.{digits - 1}e}")) / abs(value) if value else 0.0


def _count_all_digits(A: FloatArray, errors: FloatArray | None) -> int:
    """Return how many digits the coefficients of the characteristic polynomial have together."""
    size = float(np.max(np.abs(A), initial=0.0)) or 1.0
    # digits beyond ten times the errors are noise
    certain = RELATION_TOLERANCE if errors is None else max(RELATION_TOLERANCE, 10.0 * float(np.max(errors)) / size)
    most = max(1, min(MAX_DIGITS, int(-np.log10(certain)) - 1)) if certain < 1.0 else 1
    total = 0
    for coefficient in _compute_coefficients(A).tolist():
        total += next((n for n in range(1, most) if _measure_rounding(coefficient, n) <= certain), most)
    return total


def _relate_written_entries(plant: Continuous, rows: FloatArray) -> list[float]:
    """Return how far entries of A and B, in the coordinates that are shown, are from numbers of few digits."""
    # a zero tells nothing here: other relations count it
    entries = np.hstack((rows @ plant.A @ np.linalg.inv(rows), rows @ plant.B))
    sizes = np.max(np.abs(entries), axis=1, keepdims=True, initial=0.0)
    is_visible = np.abs(entries) > VANISHING_COEFFICIENT_TOLERANCE * sizes
    values = zip(entries.ravel().tolist(), is_visible.ravel().tolist(), strict=True)
    return [_measure_rounding(value, DIGITS) if visible else 1.0 for value, visible in values]
