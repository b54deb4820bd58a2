"""Systems of equations with dense Jacobians, for Newton's method: equilibrated, and inverted by singular values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from fmilin.numerics.balanced import TERMS_ROUNDED, Balanced, equilibrate_jacobian
from fmilin.numerics.newton import UNDAMPED_SHRINKAGE_FACTOR, BoolArray, IntArray
from fmilin.signals import FloatArray
from fmilin.tolerances import EXACT_BALANCE_TOLERANCE

WEAK_SINGULAR_VALUE = 1e-9
"""Singular values of an equilibrated Jacobian below this part of the largest: the first steps do without them."""
ROUNDED_SINGULAR_VALUE = 1e-14
"""Singular values of an equilibrated Jacobian, the largest being near one, that are rounding."""
DAMPING_FACTORS = (1e-6, 1e-4, 1e-2, 1.0, 1e2)
"""Tried in turn until the residual falls, in squares of the largest singular value, which is near one."""
DAMPED_SHRINKAGE_FACTOR = 4.0
"""Divisor of the trust radius after a damped step that did not help."""


class DenseSystem(ABC):
    """Systems with dense Jacobians, inverted by the singular values of their equilibrated forms.

    Rows and columns are divided by their lengths, measured with the largest entries that were met on the way: where a
    force is largest its slope vanishes, and a row that is short by chance must not be magnified. Directions of small
    singular values are left out of the first steps. Unknowns at a bound are left out of steps that would leave it.

    >>> import numpy as np
    >>> from fmilin.numerics.newton import find_zeros
    >>> class SquareRoots(DenseSystem):
    ...     def values(self, points, z):
    ...         return z**2 - np.array([[4.0], [9.0]])[points]
    ...     def jacobians(self, points, z, r):
    ...         return 2.0 * z[:, :, None]
    >>> result = find_zeros(SquareRoots(1), np.array([[1.0], [5.0]]))
    >>> np.round(result.z, 12).tolist(), [verdict.value for verdict in result.verdicts]
    ([[2.0], [3.0]], ['converged', 'converged'])
    """

    def __init__(self, unknowns: int, low: FloatArray | None = None, high: FloatArray | None = None) -> None:
        # bounds of all systems (n,), or of each (k, n)
        self._low = np.full(unknowns, -np.inf) if low is None else low
        self._high = np.full(unknowns, np.inf) if high is None else high
        self.slopes: dict[int, FloatArray] = {}  # the last Jacobian (m, n) of each point
        self.entry_sizes: dict[int, FloatArray] = {}  # the largest absolute value of each entry (m, n) on the way
        self._forms: dict[int, Balanced] = {}

    def clip(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return unknowns z (j, n) within their bounds."""
        low, high = self._read_bounds(points)
        return np.clip(z, low, high)

    def _read_bounds(self, points: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of systems, (n,) or (j, n)."""
        if self._low.ndim == 1:
            return self._low, self._high
        return self._low[points], self._high[points]

    @abstractmethod
    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return r (j, m) of the systems ``points`` at z (j, n); NaN where it is undefined."""

    @abstractmethod
    def jacobians(self, points: IntArray, z: FloatArray, r: FloatArray) -> FloatArray:
        """Return dr/dz (j, m, n) at z (j, n), where the residuals are r (j, m)."""

    def differentiate(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Take the Jacobians, equilibrated; return where they are finite."""
        is_finite = np.ones(len(points), dtype=bool)
        if not len(points):
            return is_finite
        for k, J in enumerate(self.jacobians(points, z, r)):
            point = int(points[k])
            self.slopes[point] = J
            self.entry_sizes[point] = (
                np.fmax(self.entry_sizes[point], np.abs(J)) if point in self.entry_sizes else np.abs(J)
            )
            is_finite[k] = J.size > 0 and np.isfinite(J).all()
            if is_finite[k]:
                self._forms[point] = equilibrate_jacobian(
                    self._without_blocked_columns(point, z[k], J, r[k]), self.entry_sizes[point]
                )
        return is_finite

    def _without_blocked_columns(self, point: int, z: FloatArray, J: FloatArray, r: FloatArray) -> FloatArray:
        """Return J without the columns of unknowns that would leave their bounds."""
        low, high = self._read_bounds(np.array([point]))
        at_low, at_high = (z <= low).ravel(), (z >= high).ravel()
        if not (at_low.any() or at_high.any()):
            return J
        step = equilibrate_jacobian(J).step(r, drop=WEAK_SINGULAR_VALUE)
        # The comparisons do not affect a step of zero: without its column the shortest step is the same.
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
        return np.asarray(np.max(np.abs(step), axis=1, initial=0.0))

    def is_zero(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return which residuals are within :meth:`allow`."""
        is_zero = [(np.abs(r[k]) <= self.allow(int(p), self.slopes[int(p)], z[k])).all() for k, p in enumerate(points)]
        return np.array(is_zero, dtype=bool)

    def allow(self, point: int, J: FloatArray, z: FloatArray) -> FloatArray:
        """Return what counts as zero, (m,): a limit, and the rounding of the terms of each row of J (m, n)."""
        return np.maximum(EXACT_BALANCE_TOLERANCE, TERMS_ROUNDED * np.abs(J) @ np.maximum(np.abs(z), 1.0))

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
            yield form.step(r, drop=ROUNDED_SINGULAR_VALUE), UNDAMPED_SHRINKAGE_FACTOR
            yield form.step(r, drop=WEAK_SINGULAR_VALUE), UNDAMPED_SHRINKAGE_FACTOR
        for damping in DAMPING_FACTORS:
            yield form.step(r, damping, WEAK_SINGULAR_VALUE), DAMPED_SHRINKAGE_FACTOR

    def correct_weakly(self, point: int, r: FloatArray) -> FloatArray:
        """Return the correction with all singular values that are not rounding."""
        return self._forms[point].step(r, drop=ROUNDED_SINGULAR_VALUE)
