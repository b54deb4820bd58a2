"""How a large point moves, from sparse derivatives: what :mod:`fmilin.manifold.point_motion` finds out from arrays.

Models without constraints have no choice of coordinates: what is searched is whether the point is an equilibrium, and
by how much A changes along its motion. A further on is the model's own there, not a difference of its rates. The
eigenvalues of two A are not compared: that is done of up to 40 coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.manifold.continued_motion import PARTS, SHORT_STEP, STEP
from fmilin.manifold.point_motion import MotionBatch
from fmilin.manifold.rank import fixed_direction
from fmilin.manifold.uniform import (
    COMPARISON_TIME,
    EQUAL_SPEED_RATIO,
    LATEST_CURVED_TIME_FACTOR,
    LATEST_TIME_FACTOR,
    SLOW_ROW_RATIO,
    SLOWEST_RATE,
    Change,
)
from fmilin.model.capabilities import read_event_indicators
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import OperatingPoint
from fmilin.model.learned_structure import compute_sparse_derivatives
from fmilin.numerics.balanced import HIDDEN_ROUNDING_RATE
from fmilin.numerics.sparse_equilibrium import is_sparse_equilibrium
from fmilin.numerics.sparse_rank import factorize
from fmilin.numerics.sparse_rows import reduce_rows
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import (
    CONSTANT_JACOBIAN_TOLERANCE,
    EQUILIBRIUM_RATE_TOLERANCE,
    EXACT_BALANCE_TOLERANCE,
    ROUNDING_TOLERANCE,
    STEADY_RATE_TOLERANCE,
    UNIFORM_RATE_TOLERANCE,
)

if TYPE_CHECKING:
    from scipy import sparse

Mask = NDArray[np.bool_]

GROWTH_STEPS = 32  # of the power method, over the second half of which the growth is averaged
MIN_DIVISOR = 1e-300  # no growth is estimated from a vector of zeros


@dataclass(frozen=True, eq=False)
class SparseMotion:
    """A point with rates (N,) and their derivatives along states and inputs (N, N + nu), and what follows of both."""

    evaluator: PointEvaluator
    point: OperatingPoint
    rates: FloatArray
    J: sparse.csr_array[Any]
    errors: sparse.csr_array[Any]  # of the same entries
    scales: FloatArray  # sizes of states and inputs
    by_differences: bool = False  # whether the model has no derivatives of its own further on

    @property
    def count(self) -> int:
        """N, the number of states."""
        return len(self.rates)

    @property
    def sizes(self) -> FloatArray:
        """Those of the states."""
        return self.scales[: self.count]

    @cached_property
    def A(self) -> sparse.csr_array[Any]:
        """The derivatives along the states."""
        return self.J[:, : self.count]

    @cached_property
    def relative_rates(self) -> FloatArray:
        """Speeds in nominal sizes per second."""
        return np.abs(self.rates) / self.evaluator.model.states.scales()

    @cached_property
    def fastest_rate(self) -> float:
        """The largest of them."""
        return float(self.relative_rates.max(initial=0.0))

    def describe(self) -> MotionBatch:
        """Return how the point moves."""
        fastest = np.array([self.find_fastest_state()], dtype=np.intp)
        motion = MotionBatch.not_searched(fastest, self.count, has_choice=False)
        if fastest[0] < 0:
            return motion if self.evaluator.model.autonomous else replace(motion, change=self.compare_with_time())
        leading, is_comparable = self.find_leading()
        if not is_comparable:
            return motion
        soon, later = self.compute_comparison_times()
        is_curved = ((self.accelerations != 0) & leading).any()
        times = [LATEST_CURVED_TIME_FACTOR * soon] if is_curved else [soon, later, LATEST_TIME_FACTOR * later]
        return replace(motion, change=self.compare(self.rates, times, leading))

    def find_fastest_state(self) -> int:
        """Return the state that moves fastest in its size, the first of equally fast ones; -1 at rest."""
        J, scales, sizes, speeds = self.J, self.scales, self.sizes, np.abs(self.rates)
        in_sizes = J.data * scales[J.indices]
        terms = reduce_rows(np.add, np.abs(in_sizes), J.indptr)
        is_moving = speeds > np.maximum(HIDDEN_ROUNDING_RATE * sizes, ROUNDING_TOLERANCE * terms)
        is_small = (speeds <= np.maximum(EQUILIBRIUM_RATE_TOLERANCE * sizes, EXACT_BALANCE_TOLERANCE * terms)).all()
        if is_moving.any() and is_small:
            slopes, errors = J.copy(), self.errors.copy()
            slopes.data, errors.data = in_sizes, errors.data * scales[errors.indices]
            is_moving &= not is_sparse_equilibrium(self.rates, sizes, slopes, errors)
        if not is_moving.any():
            return -1
        relative = np.where(is_moving, speeds / sizes, -1.0)
        return int(np.argmax(relative >= EQUAL_SPEED_RATIO * relative.max()))

    @cached_property
    def accelerations(self) -> FloatArray:
        """The second derivatives x'' beyond their rounding and errors, else 0."""
        is_moving = np.abs(self.rates) > STEADY_RATE_TOLERANCE * self.fastest_rate * self.sizes
        moving = np.where(is_moving, self.rates, 0.0)
        second, speeds = self.A @ moving, np.abs(moving)
        # errors are estimates: within a factor of ten they are right
        noise = 10 * (self.errors[:, : self.count] @ speeds) + ROUNDING_TOLERANCE * self.fastest_rate**2 * self.sizes
        return np.where(np.abs(second) > UNIFORM_RATE_TOLERANCE * (abs(self.A) @ speeds) + noise, second, 0.0)

    def compute_comparison_times(self) -> tuple[float, float]:
        """Return when the motion is compared, in s: soon, and when its slowest part has moved far enough."""
        rates = np.concatenate((self.relative_rates, np.sqrt(np.abs(self.accelerations) / self.sizes)))
        slowest = float(np.min(rates[rates > SLOWEST_RATE * self.fastest_rate], initial=np.inf))
        return COMPARISON_TIME / self.fastest_rate, 3 * COMPARISON_TIME / min(slowest, self.fastest_rate)

    def find_leading(self) -> tuple[Mask, bool]:
        """Return the states on which others depend, and whether A is compared along the motion.

        It is on straight motions and those with speeds: one that begins from rest does not move yet, and a curved one
        without a speed is on its way to a rest.
        """
        from scipy import sparse

        A, E, sizes, count = self.A, self.errors[:, : self.count], self.sizes, self.count
        entries = np.abs(A.data) * sizes[A.indices]
        largest = reduce_rows(np.maximum, entries, A.indptr)
        rows = np.repeat(np.arange(count), np.diff(A.indptr))
        # errors are estimates: within a factor of ten they are right
        depends = entries > 10 * E.data * sizes[A.indices] + ROUNDING_TOLERANCE * largest[rows]
        pattern = sparse.csr_array((depends.astype(np.float64), A.indices, A.indptr), shape=A.shape).T.tocsr()
        leading = pattern @ np.ones(count) > 0
        while not leading.all():
            fewer = pattern @ leading.astype(np.float64) > 0
            if (fewer == leading).all():
                break
            leading = fewer
        counts = np.bincount(rows[depends], minlength=count)
        moves = np.abs(self.rates) > STEADY_RATE_TOLERANCE * self.fastest_rate * sizes
        is_copy = depends & (np.abs(A.data - 1.0) <= UNIFORM_RATE_TOLERANCE) & (A.indices != rows)
        has_speed = moves & (counts == 1) & (np.bincount(rows[is_copy], minlength=count) == 1)
        return leading, bool(has_speed.any()) or not ((self.accelerations != 0) & leading).any()

    def compare(self, path: FloatArray, times: Sequence[float], leading: Mask) -> Change:
        """Compare leading rows of A along a motion x' = path, x'' = accelerations, after each of the times."""
        # any fixed direction that is not an axis: equal calls give equal results
        direction = fixed_direction(1851, 0.5, self.count) * self.sizes
        first, terms = self.A @ direction, abs(self.A) @ direction
        rate = float((leading * np.abs(path) / self.sizes).max(initial=0.0))
        # The rate of leading states: a long way along a track, on which nothing depends, hides no change.
        rate = rate if rate > SLOWEST_RATE * self.fastest_rate else self.fastest_rate
        part, when = np.nan, np.nan
        for time in times:
            ahead = self._differentiate_ahead(path, time, direction)
            # The model has no values so far on: the other times are compared.
            if ahead is None:
                continue
            later, derivatives = ahead
            sizes = np.maximum(np.maximum(terms, np.abs(derivatives)), SLOW_ROW_RATIO * rate * self.sizes)
            gaps = np.abs(derivatives - first)
            is_different = leading & (gaps > 0)
            change = float(np.max(gaps[is_different] / sizes[is_different], initial=0.0))
            # The last time at which A is the same, else the first at which it changes most.
            still_same = change <= CONSTANT_JACOBIAN_TOLERANCE and not part > CONSTANT_JACOBIAN_TOLERANCE
            if still_same or (change > CONSTANT_JACOBIAN_TOLERANCE and not change <= part):
                part, when = change, later
        return Change(np.array([part]), np.array([when]), np.zeros(1, dtype=bool))

    def compare_with_time(self) -> Change:
        """Return how A changes at a point at rest as time goes on, over the times of its own eigenvalues."""
        nothing = Change.not_compared(1)
        fastest = estimate_growth(lambda v: self.A @ v, self.count)
        if not self._depends_on_time(COMPARISON_TIME / (fastest or 1.0)):
            return nothing
        factors = factorize(self.A.tocsc())
        slowest = 0.0 if factors is None else 1.0 / max(estimate_growth(factors.solve, self.count), MIN_DIVISOR)
        slowest = max(slowest, SLOWEST_RATE * fastest) if fastest else 1.0
        still = replace(self, rates=np.zeros(self.count))
        vars(still).update(fastest_rate=fastest or 1.0, A=self.A, accelerations=np.zeros(self.count))
        later = 3 * COMPARISON_TIME / slowest
        times = [COMPARISON_TIME / (fastest or 1.0), later, LATEST_TIME_FACTOR * later]
        change = still.compare(still.rates, times, np.ones(self.count, dtype=bool))
        return change if change.part[0] > CONSTANT_JACOBIAN_TOLERANCE else nothing

    def _differentiate_ahead(
        self, path: FloatArray, time: float, direction: FloatArray
    ) -> tuple[float, FloatArray] | None:
        """Return how much later the first point is that the motion can reach, and derivatives along a direction there.

        None without such a point.
        """
        t, x, u, model = self.point.time, self.point.states, self.point.inputs, self.evaluator.model
        before = read_event_indicators(model, t, x, u) > 0
        for part in PARTS:
            later = part * time
            ahead = x + later * path + later**2 / 2 * self.accelerations
            try:
                derivatives = self._differentiate(t + later, ahead, direction)
                after = read_event_indicators(model, t + later, ahead, u) > 0
            except FmilinError:
                continue
            if derivatives is None:
                return None
            if np.isfinite(derivatives).all() and (after == before).all():
                return later, derivatives
        return None

    def _differentiate(self, t: float, x: FloatArray, direction: FloatArray) -> FloatArray | None:
        """Return the derivatives of the rates along a direction of the states, (N,); None without."""
        u = self.point.inputs
        if self.by_differences:
            step = SHORT_STEP * direction
            sides = self.evaluator.evaluate_points(np.array([t, t]), np.array([x + step, x - step]), np.array([u, u]))
            return np.asarray((sides.derivatives[0] - sides.derivatives[1]) / (2 * SHORT_STEP))
        derivatives = compute_sparse_derivatives(self.evaluator.model, t, x, u)
        if derivatives is None:
            return None
        self.evaluator.directions += derivatives.directions
        return np.asarray(derivatives.J[: self.count, : self.count] @ direction)

    def _depends_on_time(self, later: float) -> bool:
        """Whether any bit of rates or event indicators is another so much later; True where these have no value."""
        t, u, model = self.point.time, self.point.inputs, self.evaluator.model
        nearby = self.point.states + STEP * self.sizes
        answers = []
        try:
            for time in (t, t + later):
                derivatives = self.evaluator.evaluate(time, nearby, u).derivatives
                answers.append((derivatives, read_event_indicators(model, time, nearby, u)))
        except FmilinError:
            return True
        return not all(np.array_equal(*parts) for parts in zip(*answers, strict=True))


def estimate_growth(apply: Any, count: int) -> float:
    """Return the modulus of the largest eigenvalue of a linear map, about: by how much a vector grows at each step.

    >>> round(estimate_growth(lambda v: np.array([3.0, 1.0]) * v, 2), 6)
    3.0
    """
    # any fixed direction that is not an axis: equal calls give equal results
    vector = np.random.default_rng(1907).uniform(-1.0, 1.0, count)
    growth = []
    for _ in range(GROWTH_STEPS):
        size = float(np.linalg.norm(vector))
        if not 0.0 < size < np.inf:
            return 0.0
        vector = apply(vector / size)
        growth.append(float(np.linalg.norm(vector)))
    late = np.array(growth[GROWTH_STEPS // 2 :])
    return float(np.exp(np.log(late).mean())) if (late > 0).all() else 0.0
