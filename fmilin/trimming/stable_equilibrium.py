"""Whether an equilibrium is stable, and the search for a stable one: damped motion instead of Newton's method.

Newton's method goes to stable and unstable equilibria alike. The motion with velocities set to zero after each step of
implicit Euler's method on the manifold, (I/h - A) dy = f, ends at stable ones only; Newton's method then finds the last
digits.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from fmilin.errors import REFUSALS
from fmilin.manifold.projection import project
from fmilin.manifold.rank import row_sizes
from fmilin.numerics.decompositions import null_space
from fmilin.signals import FloatArray
from fmilin.tolerances import EXACT_BALANCE_TOLERANCE, RANK, RANK_MEASURED
from fmilin.trimming.equilibrium_equations import Equations
from fmilin.trimming.equilibrium_solver import Solution, solve
from fmilin.trimming.trim_report import Instability
from fmilin.trimming.trim_request import TrimRequest
from fmilin.trimming.unknowns import Candidate, Unknowns, make_invariants

MAX_STATES = 400  # more take longer than the search
MIN_SOLUTION_DISTANCE = 1e-13  # distance of a solution, in sizes of the unknowns, over which A hardly changes
MAX_SIMPLE_SOLUTION_DISTANCE = (
    1e-9  # the same up to which the linear model there is as good as that at a simple solution
)
BLURRED = {True: 1e-13, False: 1e-6}  # relative error of exact derivatives, and of those that were measured


def judge_equilibrium(equations: Equations, solution: Solution) -> Instability | None:
    """Return how unstable an equilibrium is; None where that is not cheap to say."""
    candidate = equations.unknowns.at(solution.z)
    n = len(candidate.states)
    if math.isnan(candidate.model.map_period):  # of rates and increments together no matrix decides
        return None
    if not 0 < n <= MAX_STATES:
        return None
    try:
        H, F = _compute_slopes(equations, solution, candidate)
    except REFUSALS:
        return None
    if not (np.isfinite(H).all() and np.isfinite(F).all()):
        return None
    S = equations.state_scales
    lengths = row_sizes(H * S, equations.constraint_terms(candidate))
    V = null_space(H * S / lengths[:, None], RANK if solution.is_exact else RANK_MEASURED)
    A = V.T @ (F * S / S[:, None]) @ V
    changes = _changes_within_distance(equations, solution, F)
    # The rates of a sampled model are its changes over a period: the map is I + A.
    if sampled := candidate.model.map_period > 0:
        A = A + np.eye(len(A))
    if not changes:
        return judge_growth(A, BLURRED[solution.is_exact], sampled=sampled)
    change = np.max([np.abs(V.T @ (each * S / S[:, None]) @ V) for each in changes], axis=0)
    verdict = judge_growth(A, BLURRED[solution.is_exact], change, sampled=sampled)
    # At a simple solution that is nearer than this, linear models are as accurate as at the solution itself.
    if solution.certified.multiple or _relative_distance(equations, solution) > MAX_SIMPLE_SOLUTION_DISTANCE:
        return replace(verdict, slope_changes=np.max(np.abs(changes), axis=0))
    return verdict


def _relative_distance(equations: Equations, solution: Solution) -> float:
    """Return how far the solution may be, in sizes of the unknowns; infinite where nothing is known of it."""
    return float(np.max(solution.certified.distance / equations.unknowns.sizes(solution.z), initial=0.0))


def _changes_within_distance(equations: Equations, solution: Solution, F: FloatArray) -> list[FloatArray]:
    """Return changes of F (N, N) over the distance within which the solution is known, to both sides; mostly none.

    Where several solutions meet A vanishes at the solution alone; near it rounding of the point has a sign.
    """
    # Measured derivatives change by their own errors over such a distance.
    if not solution.is_exact:
        return []
    if not MIN_SOLUTION_DISTANCE < _relative_distance(equations, solution) < np.inf:
        return []
    unknowns, changes = equations.unknowns, []
    for sign in (1.0, -1.0):
        moved = solution.z + sign * solution.certified.distance
        try:
            moved_solution = replace(solution, z=moved, J=equations.jacobian(moved)[0])
            nearby = _compute_slopes(equations, moved_solution, unknowns.at(moved))[1]
        except REFUSALS:
            continue
        # On one side the model may be undefined: the other one still counts.
        if np.isfinite(nearby).all():
            changes.append(nearby - F)
    return changes


def _compute_slopes(equations: Equations, solution: Solution, candidate: Candidate) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of invariants (m, N) and rates (N, N) along all states."""
    n, J = len(candidate.states), solution.J
    # Stability is that of all states, also of those which the request fixes or lets move.
    if len(equations.unknowns.states) != n or len(equations.at_rest) != n:
        equations = Equations(Unknowns(candidate, TrimRequest()), range(n), equations.pairs, moving=False)
        J = equations.jacobian(equations.unknowns.z0)[0]
    columns = equations.unknowns.state_columns
    slopes = J[:, columns] * equations.sizes[:, None] / equations.unknowns.scales[columns]
    return slopes[equations.kinds("constraint")], slopes[equations.kinds("rate")]


def judge_growth(
    A: FloatArray, blurred: float, change: FloatArray | float = 0.0, *, sampled: bool = False
) -> Instability:
    """Return whether deviations of y' = A y, or of y[k+1] = A y[k], grow.

    Rows of A are known to ``blurred`` of their largest entry, and entries to ``change``.
    """
    sizes = np.abs(A).max(axis=1, keepdims=True, initial=0.0)
    return Instability(A, np.broadcast_to(blurred * sizes, A.shape) + change, sampled=sampled)


STEPS = 400  # of implicit Euler: slow motions take long ones, and what still moves does not settle
FIRST_STEP_SECONDS, MAX_STEP_SIZE, MIN_STEP_SECONDS = (
    0.1,
    0.3,
    1e-10,
)  # of a step: seconds, as far as it leads in sizes of the states, seconds
GROWTH = 0.5  # of what grows, in one step
ARRIVAL_RATE_TOLERANCE = 1e-7  # rates, in sizes per second, at which Newton's method takes over
MISSED_RATE_FRACTION = 0.3  # part of the rates by which a step may miss what derivatives promised
SLOW_GROWTH_RATIOS = (
    1e-3,
    1e-3,
    1e-6,
    1e-6,
)  # growth relative to the fastest eigenvalue that may be rounding of a multiple zero, in turn
PUSH_SIZE = 1e-2  # along what grows, away from an unstable equilibrium


@dataclass(frozen=True, eq=False)
class _DampedMotion:
    """The rates f (n,) at z and their derivatives J (n, n), a basis V (n, p) of the free motions; in sizes."""

    V: FloatArray
    J: FloatArray
    f: FloatArray

    def growth(self, slow: float) -> tuple[float, FloatArray]:
        """Return the largest real part of an eigenvalue and where that leads (n,); 0 if ``slow``."""
        w, X = np.linalg.eig(self.V.T @ self.J @ self.V)
        i = int(np.argmax(w.real))
        # An eigenvector is known up to a complex factor: its real part may be nothing but rounding.
        direction = self.V @ (X[:, i].real if np.abs(X[:, i].real).max() > ARRIVAL_RATE_TOLERANCE else X[:, i].imag)
        grows = float(w[i].real)
        return grows if grows > slow * float(np.max(np.abs(w))) else 0.0, direction / np.abs(direction).max()

    def step(self, h: float) -> FloatArray:
        """Return dx (n,) of implicit Euler's method."""
        from scipy import linalg

        A = self.V.T @ self.J @ self.V
        return np.asarray(self.V @ linalg.solve(np.eye(len(A)) / h - A, self.V.T @ self.f))


def find_stable_equilibrium(equations: Equations, z0: FloatArray) -> Solution | None:
    """Return the stable equilibrium at which the damped motion from z0 (n,) ends; None where it ends at none."""
    exact = equations.jacobian(z0)[1]
    keep = _mark_positions(equations, z0)
    z = z0
    for slow in SLOW_GROWTH_RATIOS:
        end = _approach_equilibrium(equations, z, keep, slow, exact=exact)
        if end is None:
            return None
        solution = solve(equations, end)
        if not solution.is_zero:
            return None
        unstable = judge_equilibrium(equations, solution)
        # Where stability cannot be judged the equilibrium is returned, and its report says so.
        if unstable is None or not unstable.count:
            return solution
        z = _push(equations, solution.z, keep, exact=exact)
    return None


def stop_motion(equations: Equations, z: FloatArray) -> FloatArray:
    """Return the nearest point of the manifold with velocities zero, (n,); NaN where there is none near."""
    return _project_stopped(equations, z, _mark_positions(equations, z))


def _approach_equilibrium(
    equations: Equations, z0: FloatArray, keep: FloatArray, slow: float, *, exact: bool
) -> FloatArray | None:
    """Return where the damped motion ends, nearly; None where it does not end."""
    z, h, size = _project_stopped(equations, z0, keep), FIRST_STEP_SECONDS, np.inf
    for _ in range(STEPS):
        motion = _linearize_motion(equations, z, exact=exact)
        if motion is None:
            return None
        growth, _ = motion.growth(slow)
        before, size = size, float(np.max(np.abs(motion.f), initial=0.0))
        # It has come to an unstable equilibrium: of four pendulums that stand each has to be pushed.
        if size <= ARRIVAL_RATE_TOLERANCE and growth:
            z = _push(equations, z, keep, exact=exact)
            continue
        # As long as a step divides the rates by ten, the next ones give digits at no further cost.
        if size <= ARRIVAL_RATE_TOLERANCE and (size <= EXACT_BALANCE_TOLERANCE or size > 0.1 * before):
            return z
        # Implicit Euler with longer steps damps what grows: the motion would end at an unstable equilibrium.
        z, h = _step_ahead(equations, z, motion, keep, min(h, GROWTH / growth) if growth else h)
        if h < MIN_STEP_SECONDS:
            return None
    return None


def _push(equations: Equations, z: FloatArray, keep: FloatArray, *, exact: bool) -> FloatArray:
    """Return a point a little along what grows most."""
    motion = _linearize_motion(equations, z, exact=exact)
    if motion is None:
        return z
    z = z.copy()
    z[equations.unknowns.state_columns] += PUSH_SIZE * motion.growth(0.0)[1]
    return _project_stopped(equations, z, keep)


def _step_ahead(
    equations: Equations, z: FloatArray, motion: _DampedMotion, keep: FloatArray, h: float
) -> tuple[FloatArray, float]:
    """Return where a step ends, and how long the next one may be; 0 where even the shortest one does not hold."""
    columns = equations.unknowns.state_columns
    while h >= MIN_STEP_SECONDS:
        dx = keep * motion.step(h)
        length = float(np.max(np.abs(dx)))
        # Where rates are constant no error limits a step, and it would leap over an equilibrium.
        if length > MAX_STEP_SIZE:
            h *= max(0.1, 0.9 * MAX_STEP_SIZE / length)  # 0.1: by ten at most, since rates change on the way
            continue
        ahead = z.copy()
        ahead[columns] += dx
        ahead = _project_stopped(equations, ahead, keep)
        rates = _compute_rates(equations, ahead)
        missed = float(np.max(np.abs(rates - motion.f - motion.J @ dx)))
        if missed <= MISSED_RATE_FRACTION * max(np.max(np.abs(motion.f)), np.max(np.abs(rates))):  # NaN is not
            # Grow by three: implicit Euler is stable, and only the curvature limits a step.
            return ahead, 3 * h
        h /= 3
    return z, 0.0


def _linearize_motion(equations: Equations, z: FloatArray, *, exact: bool) -> _DampedMotion | None:
    J = equations.jacobian(z, exact=exact, quick=True)[0]
    f = _compute_rates(equations, z)
    if not (np.isfinite(J).all() and np.isfinite(f).all()):
        return None
    columns, n = equations.unknowns.state_columns, len(f)
    H = J[equations.kinds("constraint")][:, columns]
    V = null_space(H, RANK if exact else RANK_MEASURED) if len(H) else np.eye(n)
    return _DampedMotion(V, J[equations.kinds("rate")][np.ix_(equations.unknowns.states, columns)], f)


def _compute_rates(equations: Equations, z: FloatArray) -> FloatArray:
    """Return the rates of the free states, in sizes."""
    return equations.values(z)[equations.kinds("rate")][equations.unknowns.states]


def _project_stopped(equations: Equations, z: FloatArray, keep: FloatArray) -> FloatArray:
    """Return the nearest point of the manifold, velocities zero; NaN where there is none near."""
    unknowns = equations.unknowns
    z = z.copy()
    z[unknowns.state_columns] *= keep
    candidate = unknowns.at(z)
    fixed_states = np.setdiff1d(np.arange(len(candidate.states)), unknowns.states).tolist()
    try:
        x = project(make_invariants(candidate, equations.pairs), candidate.time, candidate.states, fixed_states)
    except REFUSALS:
        x = np.full(len(candidate.states), np.nan)
    z[unknowns.state_columns] = x[unknowns.states] / unknowns.scales[unknowns.state_columns]
    return z


def _mark_positions(equations: Equations, z: FloatArray) -> FloatArray:
    """Return 0 for velocities and 1 for all other free states; 1 for all where no set is seen to be the velocities."""
    # Paired states and those in units per second are tried: without them no other state may move, wherever it is.
    unknowns = equations.unknowns
    candidate, random = unknowns.at(z), np.random.default_rng(1744)
    states = candidate.model.states
    per_second = [i for i, unit in enumerate(states.units) if unit.endswith("/s")]
    velocities = np.array(sorted({*equations.pairs.values(), *per_second}), dtype=np.intp)
    remaining = np.setdiff1d(np.arange(len(states)), velocities)
    x = candidate.states * random.uniform(0.9, 1.1, len(states))
    x[velocities] = 0.0
    try:
        rates = candidate.evaluator.evaluate(candidate.time, x, candidate.inputs).derivatives
    except REFUSALS:
        return np.ones(len(unknowns.states))
    moves = np.abs(rates[remaining]) > ARRIVAL_RATE_TOLERANCE * equations.state_scales[remaining]
    # Velocities stand for themselves where no state is left that they move: the speed of a car has a rest of its own.
    if not len(remaining) or moves.any() or not np.isfinite(rates).all():
        return np.ones(len(unknowns.states))
    return np.where(np.isin(unknowns.states, velocities), 0.0, 1.0)
