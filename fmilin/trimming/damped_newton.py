"""Newton's method for r(z) = 0, damped where it must be: rows and columns in sizes that the Jacobian itself tells."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.manifold.rank import pivoted_qr
from fmilin.numerics.balanced import TERMS_ROUNDED, Balanced, equilibrate_jacobian
from fmilin.numerics.decompositions import column_space, decompose_by_singular_values
from fmilin.numerics.dense_system import WEAK_SINGULAR_VALUE, DenseSystem
from fmilin.numerics.newton import IntArray, Verdict, find_zeros
from fmilin.signals import FloatArray
from fmilin.tolerances import EXACT_BALANCE_TOLERANCE, PSEUDOINVERSE_TOLERANCE, RANK
from fmilin.trimming.equilibrium_equations import Equations
from fmilin.trimming.together import compute_jacobians, compute_residuals

DEAD_BAND_STEP_SIZE = 2.0**-14  # a step of an input, in its size, that shows nothing inside a dead band
DEAD_BAND_SIZES = (1.0, 4.0, 16.0, 64.0)  # how far it may reach


def compute_rounding(J: FloatArray, z: FloatArray, equations: Equations | None = None) -> FloatArray:
    """Return what counts as zero where the model has no noise, shape (m,): a limit, and the rounding of the terms."""
    rounding = TERMS_ROUNDED * np.abs(J) @ np.maximum(np.abs(z), 1.0)
    if equations is not None and len(equations.targets):
        # A target may be far below the sizes of the unknowns that reach it: there terms are what the unknowns are.
        term_rounding = TERMS_ROUNDED * np.abs(J) @ np.abs(z)
        rounding = np.where(equations.kinds("target"), term_rounding, rounding)
    return np.maximum(EXACT_BALANCE_TOLERANCE, rounding)


def balance_inputs(equations: Equations, z0: FloatArray, *, exact: bool) -> FloatArray | None:
    """Return the guess with the free inputs that balance it best (most enter affinely); None where no input is free."""
    columns = equations.unknowns.input_columns
    if not len(columns):
        return None
    unknowns, z = equations.unknowns, z0.copy()
    r = equations.values(z)
    J = equations.jacobian(z, exact=exact, quick=True)[0][:, columns]
    # Where the model is undefined at the guess, the attempts that start elsewhere are left.
    if not (np.isfinite(J).all() and np.isfinite(r).all()):
        return None
    z[columns] += equilibrate_jacobian(J).step(r, drop=WEAK_SINGULAR_VALUE)
    return np.clip(z, unknowns.low, unknowns.high)


def wake_inputs(equations: Equations, z0: FloatArray) -> FloatArray | None:
    """Return the guess with the free inputs that do nothing there set to where they do; None where all do something."""
    z, moved = z0.copy(), False
    base = float(np.linalg.norm(equations.values(z0)))
    for j in equations.unknowns.input_columns:
        ways = np.outer([*DEAD_BAND_SIZES, *(-s for s in DEAD_BAND_SIZES)], np.eye(len(z0))[j])
        here = [equations.values(z0 + s * np.eye(len(z0))[j]) for s in (-DEAD_BAND_STEP_SIZE, 0.0, DEAD_BAND_STEP_SIZE)]
        # It acts at the guess, which is not in a dead zone.
        if not np.array_equal(here[0], here[1]) or not np.array_equal(here[1], here[2]):
            continue
        costs = [float(np.linalg.norm(equations.values(z0 + way))) for way in ways]
        awake = [k for k, cost in enumerate(costs) if np.isfinite(cost) and cost != base]
        if awake:
            z, moved = z + ways[min(awake, key=lambda k: costs[k])], True
    return np.clip(z, equations.unknowns.low, equations.unknowns.high) if moved else None


class TrimSystem(DenseSystem):
    """The equations of k trims, each at its start, for :func:`fmilin.numerics.newton.find_zeros`.

    They have as many rows and unknowns, and each has its sizes, bounds and targets.
    """

    def __init__(self, problems: Sequence[Equations], *, exact: bool) -> None:
        low = np.array([problem.unknowns.low for problem in problems])
        high = np.array([problem.unknowns.high for problem in problems])
        super().__init__(low.shape[1], low, high)
        self.problems = list(problems)
        self.exact = exact

    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the residuals (j, m); NaN where the model is undefined."""
        return compute_residuals([self.problems[p] for p in points], z)

    def jacobians(self, points: IntArray, z: FloatArray, r: FloatArray) -> FloatArray:
        """Return Jacobians (j, m, n) that show the way."""
        problems = [self.problems[p] for p in points]
        for problem in problems:
            problem.columns_computed += z.shape[1]
        return compute_jacobians(problems, z, r, exact=self.exact)[0]

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return the largest change of a state: free inputs enter affinely, mostly, and go as far as they must."""
        columns = self.problems[0].unknowns.state_columns
        return np.asarray(np.max(np.abs(step[:, columns]), axis=1, initial=0.0))

    def allow(self, point: int, J: FloatArray, z: FloatArray) -> FloatArray:
        """Return what counts as zero, (m,)."""
        return compute_rounding(J, z, self.problems[point])


@dataclass(frozen=True, eq=False)
class NewtonStart:
    """Where Newton's method is to begin, and for which equations."""

    equations: Equations
    z: FloatArray  # (n,)
    exact: bool = True  # whether the model's own derivatives are used

    @property
    def kind(self) -> tuple[int, int, int, bool]:
        """Rows, unknowns and states among them, and whether derivatives are exact: one run has one of each."""
        unknowns = self.equations.unknowns
        return self.equations.count, len(unknowns), len(unknowns.states), self.exact


@dataclass(frozen=True, eq=False)
class Correction:
    """Where Newton's method ended."""

    z: FloatArray  # shape (n,)
    r: FloatArray  # shape (m,)
    entry_sizes: FloatArray  # (m, n), the largest absolute value of each entry of the Jacobian on the way
    distance: float  # how far it was, in sizes of the unknowns
    verdict: Verdict


def newton_correct(equations: Equations, z0: FloatArray, *, exact: bool = True) -> Correction:
    """Return where Newton's method from z0 (n,) ends; the corrector of a continuation, too."""
    return newton_correct_each([NewtonStart(equations, z0, exact)])[0]


def newton_correct_each(starts: Sequence[NewtonStart]) -> list[Correction]:
    """Return where Newton's method from each of the starts ends; those of one kind in one run."""
    ends: dict[int, Correction] = {}
    by_kind: dict[tuple[int, int, int, bool], list[int]] = {}
    for number, start in enumerate(starts):
        by_kind.setdefault(start.kind, []).append(number)
    for numbers in by_kind.values():
        ends.update(zip(numbers, _correct_together([starts[number] for number in numbers]), strict=True))
    return [ends[number] for number in range(len(starts))]


def _correct_together(starts: Sequence[NewtonStart]) -> list[Correction]:
    system = TrimSystem([start.equations for start in starts], exact=starts[0].exact)
    result = find_zeros(system, np.array([start.z for start in starts]))
    nothing = np.zeros((result.r.shape[1], result.z.shape[1]))
    corrections = []
    for k, start in enumerate(starts):
        entry_sizes = np.nan_to_num(system.entry_sizes.get(k, nothing))
        distance = float(np.max(np.abs(result.z[k] - start.z), initial=0.0))
        corrections.append(Correction(result.z[k], result.r[k], entry_sizes, distance, result.verdicts[k]))
    return corrections


Result = TypeVar("Result")
Search = Generator[NewtonStart, Correction, Result]
"""A search that yields where Newton's method should begin, and is sent where that ended."""


def run_together(searches: Sequence[Search[Result]]) -> list[Result | FmilinError]:
    """Return what each of several searches returns, or its error; Newton's method runs for all that wait for it."""
    outcomes: dict[int, Result | FmilinError] = {}
    ends: dict[int, Correction] = {}
    pending = list(range(len(searches)))
    while pending:
        starts: dict[int, NewtonStart] = {}
        for number in pending:
            try:
                # A generator has to be started by next() before it can be sent anything.
                starts[number] = searches[number].send(ends[number]) if number in ends else next(searches[number])
            except StopIteration as end:
                outcomes[number] = end.value
            except FmilinError as error:
                outcomes[number] = error
        pending = list(starts)
        ends = dict(zip(pending, newton_correct_each(list(starts.values())), strict=True))
    return [outcomes[number] for number in range(len(searches))]


def run_alone(search: Search[Result]) -> Result:
    """Return what a search returns; raise its error."""
    (outcome,) = run_together([search])
    if isinstance(outcome, FmilinError):
        raise outcome
    return outcome


# Newton's method that does not go where a solution is known already, by deflation: r(z) is multiplied by
#     m(z) = prod_k (1/|z - z_k|^2 + 1),
# which grows without bounds at known solutions z_k. The Newton step of m r is that of r times
# 1 / (1 - (grad m . d) / m) (Farrell, Birkisson and Funke, SIAM Journal on Scientific Computing 37, 2015).

DEFLATED_ITERATIONS = 40  # as of the method without deflation
MAX_DEFLATED_STEP = 2.0  # of a step, in sizes of the unknowns
DEFLATION_END_DISTANCE = 1e-6  # length of a step at which Newton's method without deflation takes over


def search_elsewhere(equations: Equations, z0: FloatArray, solutions: Sequence[FloatArray]) -> FloatArray | None:
    """Return where Newton's method from z0 (n,) ends apart from known ``solutions``; None where it ends at no point.

    The residual grows without bounds near a known solution, so that a smaller one does not say that a step helps: every
    step is taken, and no other rule of :func:`fmilin.numerics.newton.find_zeros` holds. Searches follow one after the
    other, since each leaves out what the ones before it led to.
    """
    unknowns, z = equations.unknowns, z0
    # At a known solution the factor m is infinite, and the direction of the step is not determined.
    if any(np.array_equal(z, each) for each in solutions):
        return None
    for _ in range(DEFLATED_ITERATIONS):
        r = equations.values(z)
        J = equations.jacobian(z, quick=True)[0]
        if not (np.isfinite(J).all() and np.isfinite(r).all()):
            return None
        sizes = unknowns.sizes(z)
        newton = equilibrate_jacobian(J).step(r, drop=WEAK_SINGULAR_VALUE)
        slope = sum(_slope_of_factor((z - each) / sizes, newton / sizes) for each in solutions)
        denominator = 1.0 - slope
        # Where the deflated Jacobian is singular, the step of r itself is taken.
        step = newton / denominator if denominator != 0 else newton
        length = float(np.max(np.abs(step) / sizes, initial=0.0))
        # A denominator near 0 makes the step overflow.
        if not np.isfinite(length):
            return None
        z = np.clip(z + step * min(1.0, MAX_DEFLATED_STEP / length if length > 0 else 1.0), unknowns.low, unknowns.high)
        if length <= DEFLATION_END_DISTANCE:
            return z
    return None


def _slope_of_factor(away: FloatArray, step: FloatArray) -> float:
    """Return (grad m_k . step) / m_k of m_k = 1/|away|^2 + 1."""
    square = float(away @ away)
    # At z_k itself m_k is infinite: -inf makes the step zero, which ends the search there.
    return float(-2.0 * (away @ step) / (square * (1.0 + square))) if square > 0 else -np.inf


# From a guess that does not balance to a solution: what holds the guess is taken away step by step.
#     h(z) = 0,    f(z) - (1 - lambda) f(z0) = 0,    lambda = 0 .. 1,
# by pseudo-arclength, so that folds are passed: z is balanced at lambda = 0 by fictitious forces, gravity and
# preload that are held, and by nothing at lambda = 1. Of the rates those are taken that determine the others.

FIRST_STEP_SIZE, MAX_STEP_SIZE, MIN_STEP_SIZE = (
    0.1,
    0.5,
    1e-4,
)  # lengths of a step, in sizes of the unknowns and of lambda
MAX_JACOBIANS = 200  # at most, in each direction: then the search is given up
MAX_CORRECTIONS = 5  # to the path: more mean that the step along it was too long
PATH_TOLERANCE = 1e-6  # accuracy of the path, relative to its start: the end is corrected in any case
MAX_HOMOTOPY_PARAMETER = 10.0  # multiples of what held the guess beyond which the path leads away


@dataclass(frozen=True, eq=False)
class _Path:
    """The equations of the path in sizes of the start: w = (z / S, lambda)."""

    equations: Equations
    rows: NDArray[np.intp]
    start: Balanced
    start_residual: FloatArray  # W r(z0) of the chosen rows; 0 for constraints
    exact: bool

    def value(self, w: FloatArray) -> FloatArray:
        r = self.equations.values(w[:-1] * self.start.columns)[self.rows]
        return np.asarray(self.start.rows[self.rows] * r - (1.0 - w[-1]) * self.start_residual)

    def slope(self, w: FloatArray) -> FloatArray:
        J = self.equations.jacobian(w[:-1] * self.start.columns, exact=self.exact, quick=True)[0][self.rows]
        return np.hstack((self.start.rows[self.rows, None] * J * self.start.columns, self.start_residual[:, None]))


def release_guess(equations: Equations, z0: FloatArray, *, exact: bool) -> FloatArray | None:
    """Return z where the path from z0 (n,), near the manifold, ends, to be corrected; None when it does not end."""
    r = equations.values(z0)
    J = equations.jacobian(z0, exact=exact, quick=True)[0]
    # Without unknowns, equations or derivatives at the guess there is nothing to follow.
    if not J.size or not (np.isfinite(J).all() and np.isfinite(r).all()):
        return None
    start = equilibrate_jacobian(J)
    rows = find_independent_rows(equations.kinds("constraint"), start)
    start_residual = np.where(equations.kinds("constraint"), 0.0, start.rows * r)[rows]
    # Nothing holds the guess, or the constraints alone: there is nothing to take away.
    if not len(rows) or not start_residual.any():
        return None
    path = _Path(equations, rows, start, start_residual, exact)
    w = np.append(z0 / start.columns, 0.0)
    for direction in (1.0, -1.0):
        end = _follow_path(path, w, direction)
        if end is not None:
            return np.clip(end[:-1] * start.columns, equations.unknowns.low, equations.unknowns.high)
    return None


def find_independent_rows(constraints: NDArray[np.bool_], start: Balanced) -> NDArray[np.intp]:
    """Return the ``constraints`` (m,) that are independent, and then the other rows that are independent of them."""
    first, remaining = np.flatnonzero(constraints), np.flatnonzero(~constraints)
    independent = first[_find_pivots(start.E[first])]
    span = column_space(start.E[independent].T) if len(independent) else np.zeros((start.E.shape[1], 0))
    rest = start.E[remaining] - (start.E[remaining] @ span) @ span.T
    return np.concatenate((independent, remaining[_find_pivots(rest)]))


def _find_pivots(rows: FloatArray) -> NDArray[np.intp]:
    # LAPACK rejects equations without unknowns.
    if not rows.size:
        return np.empty(0, dtype=np.intp)
    diagonal, order = pivoted_qr(rows.T)
    return order[: int(np.count_nonzero(diagonal > RANK))]


def _follow_path(path: _Path, w: FloatArray, direction: float) -> FloatArray | None:
    """Return w at lambda = 1, or None."""
    towards, length = np.append(np.zeros(len(w) - 1), direction), FIRST_STEP_SIZE
    slope, remaining_jacobians = path.slope(w), MAX_JACOBIANS
    while remaining_jacobians > 0 and length > MIN_STEP_SIZE and abs(w[-1]) < MAX_HOMOTOPY_PARAMETER:
        tangent = _compute_tangent(slope, towards)
        if tangent is None:
            return None
        # The step reaches lambda = 1: Newton's method corrects the end on the tangent, which lies near the path.
        if w[-1] + length * tangent[-1] >= 1.0:
            w_end = w + (1.0 - w[-1]) / tangent[-1] * tangent
            return w_end if np.isfinite(path.value(w_end)).all() else None
        corrected_point = _correct_to_path(path, w + length * tangent)
        # A correction that fails costs as many Jacobians as it may.
        remaining_jacobians -= MAX_CORRECTIONS if corrected_point is None else corrected_point[2]
        # A correction that takes back half of the step may have led to another branch of the path.
        if corrected_point is None or (corrected_point[0] - w) @ tangent < 0.5 * length:
            length /= 2
            continue
        w, slope, count = corrected_point
        # Three corrections or fewer: the path is hardly curved over this step, and the next one may be longer.
        towards, length = tangent, min(MAX_STEP_SIZE, 2 * length) if count <= 3 else length
    return None


def _compute_tangent(slope: FloatArray, towards: FloatArray) -> FloatArray | None:
    """Return the direction of the path nearest to another, of length one, or None."""
    if not np.isfinite(slope).all():
        return None
    _, sigma, V = decompose_by_singular_values(slope)
    V = V[int(np.count_nonzero(sigma > RANK * sigma[0])) :]
    along: FloatArray = V.T @ (V @ towards)
    size = float(np.linalg.norm(along))
    # Shorter than this it is rounding: the path goes on at right angles to where it came from.
    return along / size if size > 1e-8 else None


def _correct_to_path(path: _Path, w: FloatArray) -> tuple[FloatArray, FloatArray, int] | None:
    """Return the point of the path nearest to w, the slope there, and the number of derivatives that this took."""
    from scipy import linalg

    for count in range(1, MAX_CORRECTIONS + 1):
        value, slope = path.value(w), path.slope(w)
        if not (np.isfinite(value).all() and np.isfinite(slope).all()):
            return None
        # 1.0: a smaller start does not need more digits, since the end of the path is corrected in any case.
        if float(np.max(np.abs(value))) <= PATH_TOLERANCE * max(1.0, float(np.max(np.abs(path.start_residual)))):
            return w, slope, count
        w = w - linalg.pinv(slope, rtol=PSEUDOINVERSE_TOLERANCE) @ value
    return None
