"""Newton's method for k systems of equations r(z) = 0 of one shape at once; k = 1 is the ordinary case.

Each iteration evaluates the points that are still running together and treats every point as if it were alone. The
correction d = -J^+ r is shortened to a trust radius in sizes of the unknowns. Then there are two ways:

- :func:`find_zeros` searches from any start. A step is taken when the weighted residual |W r| falls; else Marquardt's
  damping and small singular values are tried in a radius that shrinks. Where the residual falls by less than a tenth,
  the natural monotonicity test (Deuflhard, Newton Methods for Nonlinear Problems, 2011, section 3.3) decides: the next
  correction with the same J is to be shorter, which does not depend on how stiff the rows are.
- :func:`follow_zeros` starts near a solution and must not leave its branch. The natural test alone decides, and steps
  are halved until it holds, or not at all; or every step is taken, and the caller tells whether the branch was left.

A point arrives when its system says that the residual is zero. A few more steps are taken as long as each helps.

A system evaluates residuals and Jacobians, and knows how J is inverted:
:class:`fmilin.numerics.dense_system.DenseSystem` by the singular values of
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

from fmilin.signals import FloatArray

IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

UNDAMPED_SHRINKAGE_FACTOR = 2.0
"""Divisor of the trust radius after a correction that did not help."""
SLOW_REDUCTION_RATIO = 0.9
"""Part of the residual that a step leaves, above which the corrections are compared instead."""
NATURAL_FRACTIONS = (1.0, 0.5, 0.25, 0.125)
"""Parts of a step that are tried until the next correction is shorter."""
MAX_HALVINGS = 4
"""Of the first correction, in :func:`follow_zeros`; rounding may keep it from getting shorter."""
SHORT_STEP = 0.5
"""Of the longest correction of a point: with a last one below it an iteration has stalled rather than run away."""


class Verdict(Enum):
    """How the iteration of a point ended."""

    CONVERGED = "converged"  # the residual is zero by the rule of the system
    STALLED = "stalled"  # no step makes the residual, or the next correction, smaller
    DIVERGED = "diverged"  # the iterations ended with steps that do not become shorter
    UNDEFINED = "undefined"  # the residual or the Jacobian is not finite at the point


@dataclass(frozen=True)
class NewtonRules:
    """The limits of a Newton iteration."""

    iterations: int = 40
    trust_radius: float = 0.5
    """Of the first step, in sizes: what lies farther away is another solution. It grows while steps help."""
    shortest_part: float = 1.0
    """Of a step, in :func:`follow_zeros`: 1 takes full steps only."""
    steps_to_halve: int = 1
    """Full steps in which :func:`follow_zeros` halves the correction: 1, or 2, which compares with the first one."""
    is_compared: bool = True
    """Whether :func:`follow_zeros` compares corrections; else the caller tells whether a zero is on the branch."""
    polishing_steps: int = 2
    """Steps after the residual is zero, with the last Jacobian, as long as each makes it smaller yet."""


class NewtonSystem(Protocol):
    """k systems of m equations in n unknowns, evaluated at some of their points at once.

    It keeps the Jacobian of each point, from which the corrections are computed until it is taken again.
    """

    def clip(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the unknowns z (j, n) of the systems ``points``, within the bounds of each."""

    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return r (j, m) of the systems ``points`` at z (j, n); NaN where it is undefined."""

    def differentiate(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Take the Jacobians at z (j, n), where the residuals are r (j, m); return where they are finite, (j,)."""

    def correct(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return the corrections (j, n) that make r (j, m) vanish to first order."""

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return how long steps (j, n) are, (j,), in sizes of the unknowns that the trust radius limits."""

    def is_zero(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return which residuals count as zero, (j,)."""


class DampedSystem(NewtonSystem, Protocol):
    """Systems that offer other steps where a full correction does not make the residual smaller."""

    def weigh(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return the weighted norms (j,) of residuals (j, m)."""

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
    """Return where the method ends that stays on the path from the starts z0 (k, n), each treated as if it were alone.

    A step is halved until the next correction with the same Jacobian is shorter; where even the shortest part does not
    help, another branch of solutions may be nearer, and the point stalls.
    """
    return _NaturalIteration(system, z0, rules).run()


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
        self.is_at_zero = np.zeros(count, dtype=bool)
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
        z = self.system.clip(np.arange(len(self.z)), self.z)
        return NewtonResult(z, self.r, tuple(self.verdicts))

    def _iterate(self, points: IntArray) -> IntArray:
        """Take a step at each of the points, and the Jacobians behind it; return the points that go on."""
        points = self._advance(points)
        # Where the residual is zero the derivatives are good enough for the last digits.
        at_zero = self._mark_zeros(points)
        moved = points[~at_zero]
        if not len(moved):
            return points
        is_finite = self.system.differentiate(moved, self.z[moved], self.r[moved])
        self._end(moved[~is_finite], Verdict.UNDEFINED)
        return np.union1d(points[at_zero], moved[is_finite])

    def _mark_zeros(self, points: IntArray) -> BoolArray:
        """Return which points have a residual of zero, and count that they do."""
        if not len(points):
            return np.zeros(0, dtype=bool)
        at_zero = self.system.is_zero(points, self.z[points], self.r[points])
        self.steps_at_zero[points[at_zero]] += 1
        self.is_at_zero[points] = at_zero
        return at_zero

    def _end(self, points: IntArray, verdict: Verdict) -> None:
        for point in points:
            self.verdicts[point] = verdict

    def _judge(self) -> None:
        """Mark points with a residual of zero as converged, and those with short steps as stalled."""
        for point in np.flatnonzero(self.is_at_zero).tolist():
            self.verdicts[point] = Verdict.CONVERGED
        for point, verdict in enumerate(self.verdicts):
            if verdict is Verdict.DIVERGED:
                lengths = [float(each[point]) for each in self.lengths if np.isfinite(each[point])]
                if lengths and lengths[-1] < SHORT_STEP * max(lengths):
                    self.verdicts[point] = Verdict.STALLED

    @abstractmethod
    def _advance(self, points: IntArray) -> IntArray:
        """Take a step at each of the points; return those at which one was taken."""

    def _remember(self, points: IntArray, lengths: FloatArray) -> None:
        row = np.full(len(self.z), np.nan)
        row[points] = lengths
        self.lengths.append(row)

    def _move(self, points: IntArray, z: FloatArray, r: FloatArray, radius: FloatArray) -> None:
        self.z[points], self.r[points], self.radius[points] = z, r, radius


class _NaturalIteration(_Iteration):
    def _choose_reference_lengths(self, points: IntArray, lengths: FloatArray) -> FloatArray:
        """Return the lengths (j,) which the next corrections are compared with: these, or longer ones before them."""
        if not self.rules.is_compared:
            return np.full(len(points), np.inf)
        if self.rules.steps_to_halve == 1:
            return lengths
        halvings = min((len(self.lengths) + 1) // 2, MAX_HALVINGS)
        return np.asarray(2.0 * 0.5**halvings * self.lengths[0][points])

    def _advance(self, points: IntArray) -> IntArray:
        system = self.system
        steps = system.correct(points, self.r[points])
        lengths = system.measure(points, steps)
        self._remember(points, lengths)
        compared = self._choose_reference_lengths(points, lengths)
        is_polished = self.steps_at_zero[points] > 0
        radius = self.rules.trust_radius
        part = np.divide(radius, lengths, out=np.ones(len(points)), where=lengths > radius)
        accepted = np.zeros(len(points), dtype=bool)
        pending = np.flatnonzero(np.isfinite(lengths))
        while len(pending):
            pending_points, fraction = points[pending], part[pending]
            trial = system.clip(pending_points, self.z[pending_points] + fraction[:, None] * steps[pending])
            value = system.values(pending_points, trial)
            following = system.measure(pending_points, system.correct(pending_points, value))
            helps = following <= (1.0 - fraction / 2) * compared[pending]
            if self.rules.is_compared:
                helps |= is_polished[pending] & (following <= lengths[pending])
            helps &= np.isfinite(value).all(axis=1)
            self._move(pending_points[helps], trial[helps], value[helps], self.radius[pending_points[helps]])
            accepted[pending[helps]] = True
            part[pending] /= 2
            pending = pending[~helps & (part[pending] >= self.rules.shortest_part)]
        self._end(points[~accepted], Verdict.STALLED)
        return points[accepted]


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
        trial = system.clip(points, z + fraction[:, None] * steps)
        value = system.values(points, trial)
        norm = system.weigh(points, value)
        is_smaller = norm < system.first_reduction(points) * before
        grows = (fraction < 1.0) & (norm < before * (1 - 0.3 * fraction))
        new_radius = np.where(grows, radius * 4, np.maximum(radius, lengths))
        accepted = is_smaller & (norm <= SLOW_REDUCTION_RATIO * before)
        self._move(points[accepted], trial[accepted], value[accepted], new_radius[accepted])
        for k in np.flatnonzero(~accepted & (before > 0.0)):
            point = int(points[k])
            if is_smaller[k]:
                natural = self._find_natural_step(point, float(radius[k]))
                self._move_one(point, natural or (trial[k], value[k], float(new_radius[k])))
                accepted[k] = True
            else:
                accepted[k] = self._advance_otherwise(point, float(before[k]), float(lengths[k]))
        self._end(points[~accepted], Verdict.STALLED)
        return points[accepted]

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
            radius = min(radius, length) / UNDAMPED_SHRINKAGE_FACTOR
        for step, shrinkage in system.alternatives(point, self.r[point]):
            longest = float(system.measure(one, step[None])[0])
            fraction = min(1.0, radius / longest) if longest > 0 else 1.0
            trial = system.clip(one, self.z[one] + fraction * step)
            value = system.values(one, trial)
            norm = float(system.weigh(one, value)[0])
            if norm < before:
                grows = fraction < 1.0 and norm < before * (1 - 0.3 * fraction)
                taken = trial[0], value[0], radius * 4 if grows else max(radius, longest)
                natural = self._find_natural_step(point, radius) if norm > SLOW_REDUCTION_RATIO * before else None
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
            trial = system.clip(one, self.z[one] + fraction * step)
            value = system.values(one, trial)
            if not np.isfinite(value).all():
                continue
            remaining = float(np.max(np.abs(system.correct_weakly(point, value[0])), initial=0.0))
            if remaining <= (1.0 - fraction / 2) * length:
                return trial[0], value[0], max(radius, longest)
        return None
