"""Newton's method for k systems of equations r(z) = 0 of one shape at once; k = 1 is the ordinary case.

Each iteration evaluates the points that are still running together and treats every point as if it were alone:

1. The correction d = -J^+ r is shortened to the trust radius, measured in sizes of the unknowns.
2. It is taken when the weighted residual |W r| falls. Where that falls by less than a tenth, or steps are not damped,
   the next correction with the same J may fall instead: the natural monotonicity test (Deuflhard, Newton
   Methods for Nonlinear Problems, 2011, section 3.3), which does not depend on how stiff the rows are.
3. A point at which neither falls tries the other steps that its system offers (Marquardt's damping, small singular
   values) in a radius that shrinks; without damping it stops, and the caller searches in another way.
4. A point arrives when its system says that the residual is zero. A few more steps are taken as long as each helps.

A system evaluates residuals and Jacobians, and knows how J is inverted: :class:`DenseSystem` by the singular values of
the equilibrated matrix, which handles singular and rectangular ones. Others factorize sparse matrices, or keep the J of
a neighbour (chord steps).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.balanced import TERMS_ROUNDED, Balanced, balanced
from fmilin.signals import FloatArray
from fmilin.tolerances import BALANCED_EXACTLY

IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

WEAK_SINGULAR_VALUE = 1e-9
"""Singular values of an equilibrated Jacobian below this part of the largest: the first steps do without them."""
ROUNDED_SINGULAR_VALUE = 1e-14
"""Singular values of an equilibrated Jacobian, whose largest is near one, that are rounding."""
DAMPINGS = (1e-6, 1e-4, 1e-2, 1.0, 1e2)
"""Tried in turn until the residual falls, in squares of the largest singular value, which is near one."""
UNDAMPED_SHRINKAGE, DAMPED_SHRINKAGE = 2.0, 4.0
"""Divisors of the trust radius after a step that did not help."""
SLOW_REDUCTION = 0.9
"""Part of the residual that a step leaves, above which the corrections are compared instead."""
NATURAL_FRACTIONS = (1.0, 0.5, 0.25, 0.125)
"""Parts of a step that are tried until the next correction is shorter."""
TWO_STEP_CONTRACTION = 0.5
"""What two steps without damping must gain: slower ones belong to the Jacobian of another point."""


class Verdict(Enum):
    """How the iteration of a point ended."""

    CONVERGED = "converged"  # the residual is zero by the rule of the system
    STALLED = "stalled"  # no step makes the residual, or the next correction, smaller
    DIVERGED = "diverged"  # the iterations ended with steps that do not become shorter
    UNDEFINED = "undefined"  # the residual or the Jacobian is not finite at the point


@dataclass(frozen=True)
class NewtonRules:
    """What an iteration may do."""

    iterations: int = 40
    trust_radius: float = 0.5
    """Of the first step, in sizes: what lies farther away is another solution. It grows while steps help."""
    polishing_steps: int = 2
    """Steps after the residual is zero, with the last Jacobian, as long as each makes it smaller yet."""


class NewtonSystem(Protocol):
    """k systems of m equations in n unknowns, evaluated at some of their points at once.

    It keeps the Jacobian of each point, from which the corrections are computed until it is taken again.
    """

    low: FloatArray  # (n,), bounds of the unknowns
    high: FloatArray  # (n,)

    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return r (j, m) of the systems ``points`` at z (j, n); NaN where it is undefined."""

    def differentiate(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Take the Jacobians at z (j, n), where the residuals are r (j, m); return where they are finite, (j,)."""

    def correct(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return the corrections (j, n) that make r (j, m) vanish to first order."""

    def weigh(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return the weighted norms (j,) of residuals (j, m)."""

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return how long steps (j, n) are, (j,), in sizes of the unknowns that the trust radius limits."""

    def is_zero(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return which residuals count as zero, (j,)."""


class DampedSystem(NewtonSystem, Protocol):
    """Systems that offer other steps where a full correction does not help."""

    def first_reduction(self, points: IntArray) -> FloatArray:
        """Return the part of the residual, (j,), that the first step may leave to be taken without a comparison."""

    def alternatives(self, point: int, r: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        """Yield the steps (n,) to try behind the correction for r (m,), in turn.

        With each comes the divisor of the trust radius for the step after it.
        """

    def correct_weakly(self, point: int, r: FloatArray) -> FloatArray:
        """Return the correction (n,) for r (m,) with all singular values that are not rounding."""


@dataclass(frozen=True, eq=False)
class NewtonResult:
    """Where Newton's method ended at k points."""

    z: FloatArray  # (k, n)
    r: FloatArray  # (k, m)
    verdicts: tuple[Verdict, ...]  # (k,)

    @property
    def has_converged(self) -> BoolArray:
        """Which points are zeros, (k,)."""
        return np.array([verdict is Verdict.CONVERGED for verdict in self.verdicts], dtype=bool)


def find_zeros(system: DampedSystem, z0: FloatArray, rules: NewtonRules | None = None) -> NewtonResult:
    """Return where the damped method ends from the starts z0 (k, n), each treated as if it were alone."""
    return _DampedIteration(system, z0, rules or NewtonRules()).run()


def follow_zeros(system: NewtonSystem, z0: FloatArray, rules: NewtonRules) -> NewtonResult:
    """Return where full steps end from the zeros z0 (k, n) of neighbouring systems, each treated as if it were alone.

    A point that would need damping stalls: it may belong to another branch of solutions.
    """
    return _FullStepIteration(system, z0, rules).run()


_Taken = tuple[FloatArray, FloatArray, float]
"""z (n,), r (m,) and the trust radius behind a step."""


class _Iteration(ABC):
    def __init__(self, system: NewtonSystem, z0: FloatArray, rules: NewtonRules) -> None:
        self.system, self.rules = system, rules
        self.z = z0.copy()
        count = len(z0)
        self.r = system.values(np.arange(count), self.z)
        self.radius = np.full(count, rules.trust_radius)
        self.steps_at_zero = np.zeros(count, dtype=np.intp)
        self.verdicts = [Verdict.UNDEFINED] * count
        self.lengths: list[FloatArray] = []  # of the corrections so far, (k,) each; NaN where none was made

    def run(self) -> NewtonResult:
        points = np.arange(len(self.z))
        points = points[np.isfinite(self.r).all(axis=1)]
        is_finite = self.system.differentiate(points, self.z[points], self.r[points])
        if self.r.shape[1] and self.z.shape[1]:
            points = points[is_finite]
        self._mark_zeros(points)
        for _ in range(self.rules.iterations if self.r.shape[1] and self.z.shape[1] else 0):
            points = points[self.steps_at_zero[points] <= self.rules.polishing_steps]
            if not len(points):
                break
            points = self._iterate(points)
        self._end(points, Verdict.DIVERGED)
        self._judge()
        z = np.clip(self.z, self.system.low, self.system.high)
        return NewtonResult(z, self.r, tuple(self.verdicts))

    def _iterate(self, points: IntArray) -> IntArray:
        """Take a step at each of the points, and the Jacobians behind it; return the points that go on."""
        points = self._advance(points)
        # Where the residual is zero the slopes are good enough for the last digits.
        at_zero = self._mark_zeros(points)
        moved = points[~at_zero]
        if not len(moved):
            return points
        is_finite = self.system.differentiate(moved, self.z[moved], self.r[moved])
        self._end(moved[~is_finite], Verdict.UNDEFINED)
        return np.union1d(points[at_zero], moved[is_finite])

    def _mark_zeros(self, points: IntArray) -> BoolArray:
        """Return which points have a residual of zero, and count that they do."""
        at_zero = self.system.is_zero(points, self.z[points], self.r[points])
        self.steps_at_zero[points[at_zero]] += 1
        return at_zero

    def _end(self, points: IntArray, verdict: Verdict) -> None:
        for point in points:
            self.verdicts[point] = verdict

    def _judge(self) -> None:
        """Say converged of the points whose residual is zero, and stalled of those whose steps had become short."""
        for point in np.flatnonzero(self.steps_at_zero):
            self.verdicts[point] = Verdict.CONVERGED
        for point, verdict in enumerate(self.verdicts):
            if verdict is Verdict.DIVERGED:
                lengths = [float(each[point]) for each in self.lengths if np.isfinite(each[point])]
                if lengths and lengths[-1] < TWO_STEP_CONTRACTION * max(lengths):
                    self.verdicts[point] = Verdict.STALLED

    @abstractmethod
    def _advance(self, points: IntArray) -> IntArray:
        """Take a step at each of the points; return those at which one was taken."""

    def _remember(self, points: IntArray, lengths: FloatArray) -> None:
        every = np.full(len(self.z), np.nan)
        every[points] = lengths
        self.lengths.append(every)

    def _move(self, points: IntArray, z: FloatArray, r: FloatArray, radius: FloatArray) -> None:
        self.z[points], self.r[points], self.radius[points] = z, r, radius

    def _end_others(self, points: IntArray, accepted: BoolArray) -> IntArray:
        self._end(points[~accepted], Verdict.STALLED)
        return points[accepted]


class _FullStepIteration(_Iteration):
    def _advance(self, points: IntArray) -> IntArray:
        system = self.system
        r = self.r[points]
        steps = system.correct(points, r)
        lengths = system.measure(points, steps)
        self._remember(points, lengths)
        trial = np.clip(self.z[points] + steps, system.low, system.high)
        value = system.values(points, trial)
        accepted = system.weigh(points, value) < system.weigh(points, r)
        others = np.flatnonzero(~accepted & np.isfinite(value).all(axis=1))
        if len(others):
            accepted[others] = self._is_shorter(points[others], trial[others], value[others], lengths[others])
        accepted &= ~self._is_slow(points)
        self._move(points[accepted], trial[accepted], value[accepted], self.radius[points[accepted]])
        return self._end_others(points, accepted)

    def _is_shorter(self, points: IntArray, z: FloatArray, value: FloatArray, lengths: FloatArray) -> BoolArray:
        """Return where the next correction with the same Jacobian is no longer, or a zero stays one, (j,)."""
        following = self.system.measure(points, self.system.correct(points, value))
        stays_zero = (self.steps_at_zero[points] > 0) & self.system.is_zero(points, z, value)
        return np.asarray((following <= lengths) | stays_zero)

    def _is_slow(self, points: IntArray) -> BoolArray:
        """Return where two steps have gained too little to arrive, (j,)."""
        if len(self.lengths) < 3:
            return np.zeros(len(points), dtype=bool)
        last, before = self.lengths[-1][points], self.lengths[-3][points]
        return np.asarray((last > TWO_STEP_CONTRACTION * before) & (self.steps_at_zero[points] == 0))


class _DampedIteration(_Iteration):
    system: DampedSystem

    def __init__(self, system: DampedSystem, z0: FloatArray, rules: NewtonRules) -> None:
        super().__init__(system, z0, rules)

    def _advance(self, points: IntArray) -> IntArray:
        system = self.system
        z, r = self.z[points], self.r[points]
        before = system.weigh(points, r)
        steps = system.correct(points, r)
        lengths = system.measure(points, steps)
        self._remember(points, lengths)
        radius = self.radius[points]
        fraction = np.divide(radius, lengths, out=np.ones(len(points)), where=lengths > radius)
        trial = np.clip(z + fraction[:, None] * steps, system.low, system.high)
        value = system.values(points, trial)
        norm = system.weigh(points, value)
        is_smaller = norm < system.first_reduction(points) * before
        grows = (fraction < 1.0) & (norm < before * (1 - 0.3 * fraction))
        new_radius = np.where(grows, radius * 4, np.maximum(radius, lengths))
        accepted = is_smaller & (norm <= SLOW_REDUCTION * before)
        self._move(points[accepted], trial[accepted], value[accepted], new_radius[accepted])
        for k in np.flatnonzero(~accepted & (before > 0.0)):
            point = int(points[k])
            if is_smaller[k]:
                natural = self._find_natural_step(point, float(radius[k]))
                self._move_one(point, natural or (trial[k], value[k], float(new_radius[k])))
                accepted[k] = True
            else:
                accepted[k] = self._advance_otherwise(point, float(before[k]), float(lengths[k]))
        return self._end_others(points, accepted)

    def _move_one(self, point: int, taken: _Taken) -> None:
        self.z[point], self.r[point], self.radius[point] = taken

    def _advance_otherwise(self, point: int, before: float, length: float) -> bool:
        """Take the first of the other steps that makes the residual smaller than ``before``; False without one.

        ``length`` is that of the correction, which did not.
        """
        system = self.system
        one = np.array([point])
        radius = float(self.radius[point])
        if system.first_reduction(one)[0] == 1.0:  # else the first step says nothing of how far the others may go
            radius = min(radius, length) / UNDAMPED_SHRINKAGE
        for step, shrinkage in system.alternatives(point, self.r[point]):
            longest = float(system.measure(one, step[None])[0])
            fraction = min(1.0, radius / longest) if longest > 0 else 1.0
            trial = np.clip(self.z[one] + fraction * step, system.low, system.high)
            value = system.values(one, trial)
            norm = float(system.weigh(one, value)[0])
            if norm < before:
                grows = fraction < 1.0 and norm < before * (1 - 0.3 * fraction)
                taken = trial[0], value[0], radius * 4 if grows else max(radius, longest)
                natural = self._find_natural_step(point, radius) if norm > SLOW_REDUCTION * before else None
                self._move_one(point, natural or taken)
                return True
            radius = min(radius, longest) / shrinkage
        return False

    def _find_natural_step(self, point: int, radius: float) -> _Taken | None:
        """Return z, r and a radius behind a step that makes the next correction shorter; None without one.

        Along the bottom of a stiff, curved valley every step that leads far makes the residual larger, and monotone
        residuals allow tiny steps only.
        """
        system, one = self.system, np.array([point])
        step = system.correct_weakly(point, self.r[point])
        length = float(np.max(np.abs(step), initial=0.0))
        longest = float(system.measure(one, step[None])[0])
        if not 0 < longest < np.inf:
            return None
        for part in NATURAL_FRACTIONS:
            fraction = part * min(1.0, self.rules.trust_radius / longest)
            trial = np.clip(self.z[one] + fraction * step, system.low, system.high)
            value = system.values(one, trial)
            if not np.isfinite(value).all():
                continue
            remaining = float(np.max(np.abs(system.correct_weakly(point, value[0])), initial=0.0))
            if remaining <= (1.0 - fraction / 2) * length:
                return trial[0], value[0], max(radius, longest)
        return None


class DenseSystem(ABC):
    """Systems with dense Jacobians, inverted by the singular values of their equilibrated forms.

    Rows and columns are divided by their lengths, measured with the largest entries that were met on the way: where a
    force is largest its slope vanishes, and a row that is short by chance must not be magnified. Directions of small
    singular values are left out of the first steps. Unknowns at a bound are left out of steps that would leave it.

    >>> import numpy as np
    >>> class SquareRoots(DenseSystem):
    ...     def values(self, points, z):
    ...         return z**2 - np.array([[4.0], [9.0]])[points]
    ...     def jacobians(self, points, z):
    ...         return 2.0 * z[:, :, None]
    >>> result = find_zeros(SquareRoots(1), np.array([[1.0], [5.0]]))
    >>> np.round(result.z, 12).tolist(), [verdict.value for verdict in result.verdicts]
    ([[2.0], [3.0]], ['converged', 'converged'])
    """

    def __init__(self, unknowns: int, low: FloatArray | None = None, high: FloatArray | None = None) -> None:
        self.low = np.full(unknowns, -np.inf) if low is None else low
        self.high = np.full(unknowns, np.inf) if high is None else high
        self.slopes: dict[int, FloatArray] = {}  # the last Jacobian (m, n) of each point
        self.seen: dict[int, FloatArray] = {}  # the largest absolute value of each entry (m, n) on the way
        self._forms: dict[int, Balanced] = {}

    @abstractmethod
    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return r (j, m) of the systems ``points`` at z (j, n); NaN where it is undefined."""

    @abstractmethod
    def jacobians(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return dr/dz (j, m, n)."""

    def differentiate(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Take the Jacobians, equilibrated; return where they are finite."""
        is_finite = np.ones(len(points), dtype=bool)
        if not len(points):
            return is_finite
        for k, J in enumerate(self.jacobians(points, z)):
            point = int(points[k])
            self.slopes[point] = J
            self.seen[point] = np.fmax(self.seen[point], np.abs(J)) if point in self.seen else np.abs(J)
            is_finite[k] = J.size > 0 and np.isfinite(J).all()
            if is_finite[k]:
                self._forms[point] = balanced(self._without_blocked_columns(z[k], J, r[k]), self.seen[point])
        return is_finite

    def _without_blocked_columns(self, z: FloatArray, J: FloatArray, r: FloatArray) -> FloatArray:
        """Return J without the columns of unknowns that would leave their bounds."""
        at_low, at_high = z <= self.low, z >= self.high
        if not (at_low.any() or at_high.any()):
            return J
        step = balanced(J).step(r, drop=WEAK_SINGULAR_VALUE)
        # What the comparisons say of a step of zero makes no difference: without its column the shortest step is the
        # same.
        blocked = (at_low & (step < 0)) | (at_high & (step > 0))
        return np.where(blocked, 0.0, J)

    def correct(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return the shortest corrections in equilibrated unknowns, without weak singular values."""
        steps = [self._forms[int(p)].step(r[k], drop=WEAK_SINGULAR_VALUE) for k, p in enumerate(points)]
        return np.array(steps)

    def weigh(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return the norms of equilibrated residuals."""
        return np.array([np.linalg.norm(self._forms[int(p)].rows * r[k]) for k, p in enumerate(points)])

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return the largest component of each step."""
        return np.max(np.abs(step), axis=1, initial=0.0)

    def is_zero(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return which residuals are within :meth:`allow`."""
        is_zero = [(np.abs(r[k]) <= self.allow(self.slopes[int(p)], z[k])).all() for k, p in enumerate(points)]
        return np.array(is_zero, dtype=bool)

    def allow(self, J: FloatArray, z: FloatArray) -> FloatArray:
        """Return what counts as zero, (m,): a limit, and the rounding of the terms of each row of J (m, n)."""
        return np.maximum(BALANCED_EXACTLY, TERMS_ROUNDED * np.abs(J) @ np.maximum(np.abs(z), 1.0))

    def first_reduction(self, points: IntArray) -> FloatArray:
        """Return 1; 1/2 where weak singular values are left out.

        Those of a stiff model are true: they are used where the step without them hardly helps.
        """
        return np.array([0.5 if self._is_stiff(int(p)) else 1.0 for p in points])

    def _is_stiff(self, point: int) -> bool:
        sigma = self._forms[point].sigma
        if not len(sigma):
            return False
        return bool(((sigma > ROUNDED_SINGULAR_VALUE) & (sigma <= WEAK_SINGULAR_VALUE * sigma[0])).any())

    def alternatives(self, point: int, r: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        """Yield steps with Marquardt's damping, behind one with weak singular values where there are any."""
        form = self._forms[point]
        if self._is_stiff(point):
            yield form.step(r, drop=ROUNDED_SINGULAR_VALUE), UNDAMPED_SHRINKAGE
            yield form.step(r, drop=WEAK_SINGULAR_VALUE), UNDAMPED_SHRINKAGE
        for damping in DAMPINGS:
            yield form.step(r, damping, WEAK_SINGULAR_VALUE), DAMPED_SHRINKAGE

    def correct_weakly(self, point: int, r: FloatArray) -> FloatArray:
        """Return the correction with all singular values that are not rounding."""
        return self._forms[point].step(r, drop=ROUNDED_SINGULAR_VALUE)
