"""The point of the manifold nearest to a given one (Spencer eqs. 3.10 and 3.11), some states held."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ConstraintError, NumericalError, join_first
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.position import NEWTON_SINGULAR_VALUE_TOLERANCE, smallest_usable, solve_weak_directions
from fmilin.manifold.rank import decide_rank, independent_rows
from fmilin.numerics.decompositions import null_space
from fmilin.numerics.lapack import lapack
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, MANIFOLD_DISTANCE_TOLERANCE, PROJECTION_TOLERANCE, RANK

ITERATIONS = 100  # start values of loops may be far away, and damped steps are short
ITERATIONS_ALONG_A_PATH = 20  # predictions are near: where these do not suffice, the step along the path is halved
QUADRATIC_STEP_SIZE = 1e-7  # A step of Newton's method, in sizes of the states, with a square below rounding
OFF = "The operating point is not on the manifold"
ASSEMBLE = "Let fmilin.operating_point assemble it."


def project(
    invariants: Invariants,
    t: float,
    x: FloatArray,
    pinned: Sequence[int] = (),
    *,
    restart: bool = True,
    iterations: int = ITERATIONS,
) -> FloatArray:
    """Return the nearest point with h(t, x) = 0, in sizes of the states, ``held`` ones unmoved: damped Gauss-Newton."""
    if not len(invariants):
        return x.copy()
    start = x
    D = invariants.scales.copy()
    D[list(pinned)] = 0.0
    try:
        x, h, remaining = _descended(invariants, t, x, D, iterations)
    except NumericalError:  # a model that cannot be evaluated here may be nearby
        restarted = _restarted_nearby(invariants, t, start, D) if restart else None
        if restarted is None:
            raise
        return restarted[0]
    if restart and not (remaining <= PROJECTION_TOLERANCE).all():
        x, h, remaining = _restarted_nearby(invariants, t, start, D) or (x, h, remaining)
    bad = {n: float(r) for n, r, d in zip(invariants.names, h, remaining, strict=True) if not d <= PROJECTION_TOLERANCE}
    if bad:
        held_names = [invariants.model.states.names[i] for i in pinned]
        what = f"with {', '.join(held_names)} held" if held_names else "from the start values"
        raise ConstraintError(
            f"The constraints cannot be satisfied {what}: "
            + join_first((f"'{n}' is off by {r:.6g}" for n, r in bad.items()), 6, "; ")
            + ". Check the constraints and the given values of states and parameters.",
            residuals=bad,
        )
    # Where the last step has left rounding only, nothing can be parallel enough to make a distance of it.
    return solve_weak_directions(invariants, t, x, D) if (remaining > PROJECTION_TOLERANCE**2).any() else x


def predict_states(
    invariants: Invariants, t: float, x: FloatArray, pinned: Sequence[int], moved: FloatArray
) -> FloatArray:
    """Return where the tangent leads when the held states are ``moved`` (N,), zero but for these, the shortest way."""
    gradient = invariants.gradient(t, x)
    D = invariants.scales.copy()
    D[list(pinned)] = 0.0
    # No tangent: the other states stay for the correction, which finds them or shortens the step.
    if not np.isfinite(gradient.H).all():
        return x + moved
    Hs = gradient.scaled
    # x is on the manifold: singular values of redundant constraints are rounding here.
    zero = min(gradient.threshold, smallest_usable(gradient, NEWTON_SINGULAR_VALUE_TOLERANCE))
    inverse = pseudo_inverse(Hs * (D / invariants.scales), zero)
    return np.asarray(x + moved - D * (inverse @ (Hs @ (moved / invariants.scales))))


def pseudo_inverse(matrix: FloatArray, threshold: float) -> FloatArray:
    """Return the pseudo-inverse of a small finite matrix; zero is what is below this part of the largest value."""
    if not matrix.size:  # LAPACK rejects it; all states may be held, or no constraint may be left
        return np.zeros(matrix.T.shape)
    U, sigma, Vt, failed = lapack.dgesdd(matrix, full_matrices=0)
    if failed:
        raise np.linalg.LinAlgError("The singular values of a matrix do not exist, because it is not finite.")
    nonzero = sigma > threshold * sigma[0]
    return np.asarray((Vt[nonzero].T / sigma[nonzero]) @ U[:, nonzero].T)


Descended = tuple[FloatArray, FloatArray, FloatArray]  # x, h, and the distance from the manifold beyond noise


def _descended(
    invariants: Invariants, t: float, start: FloatArray, D: FloatArray, iterations: int = ITERATIONS
) -> Descended:
    """Return where Gauss-Newton ends; D (N,) holds the sizes of the states, 0 where held.

    :func:`fmilin.numerics.newton.find_zeros` does not serve here. Which rows count is decided anew at every point, from
    the errors of a gradient that is measured there: rows that their noise makes redundant are left out. Rows are
    compared in distances, |h| over the length of the row at the same point, so that lengths change from step to step.
    The iteration ends at the noise of the rates inside of h, which no limit for the residual knows beforehand.
    """
    x = start.copy()
    invariants.gradient(t, x)
    h = invariants.values(t, x)
    previous, sizes = np.inf, None
    for _ in range(iterations):
        # The distance below is NaN then, and the point counts as not reached.
        if not np.isfinite(h).all():
            break
        gradient = invariants.gradient(t, x)
        if not np.isfinite(gradient.H).all():
            break
        sizes = gradient.sizes.copy()
        Hs, zero = gradient.scaled.copy(), gradient.threshold
        if not gradient.is_exact:  # the noise of redundant constraints would move the point
            redundant = np.ones(len(h), dtype=bool)
            redundant[independent_rows(Hs, decide_rank(Hs, zero).rank, invariants.declared)] = False
            Hs[redundant], sizes[redundant] = 0.0, np.inf
        step = -D * (pseudo_inverse(Hs * (D / invariants.scales), zero) @ (h / sizes))
        size = float(np.max(np.abs(step) / invariants.scales, initial=0.0))
        moved = _damped(invariants, t, x, step, h, sizes)
        if moved is None:
            break
        x, h = moved
        limit = 8 * EPS * max(1.0, float(np.max(np.abs(x) / invariants.scales)))
        # Steps at the rounding of x, or steps near it that no longer shrink: noise of the constraints keeps them there.
        if size <= limit or (size >= 0.5 * previous and size <= 1e3 * limit):
            break
        # A step a thousand times shorter than the one before is one of squares, and no lucky short one.
        converges = gradient.is_exact and size <= QUADRATIC_STEP_SIZE and size <= 1e-3 * previous
        if converges and (np.abs(h) <= PROJECTION_TOLERANCE**2 * sizes).all():
            return x, h, np.abs(h) / sizes  # each step squares the last one: the next would be rounding
        previous = size
    return x, h, distance_beyond_noise(invariants, t, x)


def _restarted_nearby(invariants: Invariants, t: float, start: FloatArray, D: FloatArray) -> Descended | None:
    """Start anew nearby, where nothing moves (x^2 + y^2 has no gradient along x at x = 0); None if that fails, too."""
    random = np.random.default_rng(1801)
    solutions: list[Descended] = []
    # The nearest first; longer ones twice, with other signs.
    for size in (0.01, 0.1, 0.1, 0.3, 0.3):
        perturbation = size * D * random.choice([-1.0, 1.0], len(D))
        try:
            solution = _descended(invariants, t, start + perturbation, D)
            if not (solution[2] <= PROJECTION_TOLERANCE).all():
                continue  # off the manifold there is nothing to go back along
            for _ in range(3):  # the perturbation has moved what need not move: go back along the manifold
                x = solution[0]
                solution = _descended(invariants, t, x + _tangential(invariants, t, x, start - x, D), D)
            reached = bool((solution[2] <= PROJECTION_TOLERANCE).all())
        except NumericalError:  # the model cannot be evaluated there: another perturbation may lead elsewhere
            continue
        if reached:
            solutions.append(solution)
    return min(solutions, key=lambda s: float(np.linalg.norm((s[0] - start) / invariants.scales)), default=None)


def _tangential(invariants: Invariants, t: float, x: FloatArray, d: FloatArray, D: FloatArray) -> FloatArray:
    """Return the part of a displacement d (N,) that stays on the manifold, held states left alone."""
    free = D > 0
    step = np.zeros_like(d)
    H = invariants.gradient(t, x).H[:, free]
    # Without a tangent nothing can go back along it.
    if not np.isfinite(H).all():
        return step
    V = null_space(H * D[free], rcond=RANK)
    step[free] = D[free] * (V @ (V.T @ (d[free] / D[free])))
    return step


def distance_beyond_noise(invariants: Invariants, t: float, x: FloatArray) -> FloatArray:
    """Return |h_i| over the row norm of H D less what the noise of measured rates may account for, shape (m,)."""
    distance, noise = _distance(invariants, t, x)
    return np.maximum(distance - noise, 0.0)


def require_on_manifold(
    invariants: Invariants,
    t: float,
    x: FloatArray,
    *,
    nearer: float = MANIFOLD_DISTANCE_TOLERANCE,
    otherwise: str = OFF,
    advice: str = ASSEMBLE,
) -> float:
    """Return the distance of a point from the manifold, in sizes of the states; reject one that is not ``nearer``."""
    distance, noise = _distance(invariants, t, x)
    is_too_far = ~(distance - noise <= nearer)
    if is_too_far.any():
        values = invariants.values(t, x)
        residuals = {invariants.names[i]: float(values[i]) for i in np.flatnonzero(is_too_far)}
        raise not_on_manifold(residuals, otherwise=otherwise, advice=advice)
    return float(distance.max(initial=0.0))


def not_on_manifold(residuals: Mapping[str, float], *, otherwise: str = OFF, advice: str = ASSEMBLE) -> ConstraintError:
    """Return the error of a point that is not on the manifold, with its residuals by name."""
    listed = join_first((f"'{name}' is {value:.6g} instead of 0" for name, value in residuals.items()), 6, "; ")
    return ConstraintError(f"{otherwise}: {listed}. {advice}", residuals=residuals)


def distances(invariants: Invariants, t: float, x: FloatArray) -> FloatArray:
    """Return |h_i| over the norm of row i of H D: the distance from each invariant in sizes of the states, (m,)."""
    return _distance(invariants, t, x)[0]


def _distance(invariants: Invariants, t: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    if not len(invariants):
        return np.empty(0), np.empty(0)
    gradient = invariants.gradient(t, x)
    # Ten times: the noise of rates is an estimate from a few values.
    sizes, noise = gradient.sizes, 10 * gradient.noise
    if not gradient.is_exact:
        # A slope's error is the noise of its row over a step of a few percent: the noise itself is smaller.
        noise = np.maximum(noise, 0.1 * np.max(gradient.error * invariants.scales, axis=1, initial=0.0))
    return np.abs(invariants.values(t, x)) / sizes, noise / sizes


def _damped(
    invariants: Invariants, t: float, x: FloatArray, step: FloatArray, h: FloatArray, sizes: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return where a step or a part of it leads, and h there; None where the model cannot be evaluated."""
    before = float(np.linalg.norm(h / sizes))
    for halving in range(12):
        candidate = x + step / 2**halving
        value = _values(invariants, t, candidate)
        norm = float(np.linalg.norm(value / sizes))
        # A residual that is rounding already need not fall.
        if np.isfinite(norm) and (norm < before or norm < 1e-12):
            return candidate, value
    # Steps from near a stationary point are so long that not even 2^-11 of one helps. The whole step leads elsewhere,
    # from where the next ones may arrive: otherwise one of forty random starts of a slider-crank is lost.
    value = _values(invariants, t, x + step)
    return (x + step, value) if np.isfinite(value).all() else None


def _values(invariants: Invariants, t: float, x: FloatArray) -> FloatArray:
    """Return h, NaN where the model cannot be evaluated, as FMUs do far away from where they were made for."""
    try:
        invariants.evaluator.constraint_gradient(t, x, invariants.inputs)  # where it is cheap, both are computed then
        return invariants.values(t, x)
    except NumericalError:
        return np.full(len(invariants), np.nan)


# Loops close in several ways. Followed along the manifold from the start values, in steps that the tangent predicts
# well, a point stays on the start's own branch. Many are followed together, each with its own length of step.

MAX_DEVIATION_RATIO = (
    0.25  # how far a point may lie from its prediction, relative to the step: beyond, the step is halved
)
MIN_STEP_FRACTION = 1e-3  # of a step, relative to the whole path
STEPS = 200  # of a path: after these a point counts as not reached

Subset = NDArray[np.intp]  # numbers of the points that are still on their way
Mask = NDArray[np.bool_]


class ProjectedPoints(NamedTuple):
    """Points on the manifold (k, N), where they were reached, and where the branch is given up."""

    x: FloatArray
    reached: Mask
    given_up: Mask


Predict = Callable[[Subset, FloatArray, FloatArray], FloatArray]
"""Where the tangent at x (k, N) leads when the held states are moved (k, N), zero but for these, the shortest way."""

Correct = Callable[[Subset, FloatArray], ProjectedPoints]
"""The points of the manifold nearest to predictions (k, N), held states unmoved."""


def follow(
    predict: Predict, correct: Correct, start: FloatArray, pinned: list[int], targets: FloatArray, sizes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return states (k, N) with the held ones at targets (k, h), NaN where the branch ends, and how far it led."""
    path = targets - start[pinned]
    x, done, length = np.tile(start, (len(targets), 1)), np.zeros(len(targets)), np.ones(len(targets))
    for _ in range(STEPS):
        subset = np.flatnonzero((done < 1.0) & (length > 0.0))
        if not len(subset):
            break
        step = np.minimum(length[subset], 1.0 - done[subset])
        further = np.where(done[subset] + step >= 1.0, 1.0, done[subset] + step)
        moved = np.zeros((len(subset), len(start)))
        moved[:, pinned] = step[:, None] * path[subset]
        ahead = predict(subset, x[subset], moved)
        ahead[:, pinned] = np.where(
            further[:, None] == 1.0, targets[subset], start[pinned] + further[:, None] * path[subset]
        )
        corrected, reached, given_up = correct(subset, ahead)
        deviation = np.max(np.abs(corrected - ahead) / sizes[subset], axis=1)
        good = reached & (
            deviation
            <= MAX_DEVIATION_RATIO * np.max(np.abs(ahead - x[subset]) / sizes[subset], axis=1) + PROJECTION_TOLERANCE
        )
        x[subset[good]], done[subset[good]] = corrected[good], further[good]
        # A step that leaves the branch is halved; one that is not corrected at all was much too long.
        shorter = np.where(step <= MIN_STEP_FRACTION, 0.0, step / np.where(reached, 2.0, 4.0))
        length[subset] = np.where(good, 2.0 * step, shorter)
        length[subset[given_up]] = done[subset[given_up]] = 0.0
    return np.where((done >= 1.0)[:, None], x, np.nan), done


def followed(
    invariants: Invariants, t: float, start: FloatArray, target: FloatArray, pinned: Sequence[int]
) -> tuple[FloatArray | None, float]:
    """Return the point with the held states of ``target`` and 1, or None and the part of the way that was followed."""
    fixed = list(pinned)

    def predict(_: Subset, x: FloatArray, moved: FloatArray) -> FloatArray:
        return predict_states(invariants, t, x[0], fixed, moved[0])[None]

    def correct(_: Subset, ahead: FloatArray) -> ProjectedPoints:
        try:
            corrected = project(invariants, t, ahead[0], fixed, restart=False, iterations=ITERATIONS_ALONG_A_PATH)
        except (ConstraintError, NumericalError):
            return ProjectedPoints(ahead, np.array([False]), np.array([False]))
        return ProjectedPoints(corrected[None], np.array([True]), np.array([False]))

    states, done = follow(predict, correct, start, fixed, target[None, fixed], invariants.scales[None])
    return (states[0] if done[0] >= 1.0 else None), float(done[0])
