"""Folds, where a branch of trimmed points turns back: where they are, and the branch around them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.errors import FmilinError, NumericalError
from fmilin.families.continuation import ContinuationPoint
from fmilin.signals import FloatArray

MAX_APPROACHES = 160
"""Steps towards a fold."""
FOLD_TOLERANCE = 1e-8
"""Of the step between two points of the grid: so exactly a fold is located."""
REMAINING_PART = 0.3
"""Of the way to a fold, that the next step leaves."""
MAX_VOLUME_AT_FOLD = 0.05
"""Of the determinant of the equations, over that at the start of the step, for which a fold is named."""


class FoldError(NumericalError):
    """No solution beyond a fold was found: ``fold`` says where the branch turns back, ``otherwise`` why no other."""

    def __init__(self, fold: str, otherwise: str) -> None:
        super().__init__(f"{fold} No other solution was found at this point: {otherwise}")


@dataclass(frozen=True)
class Fold:
    """Where a branch turns back."""

    sentence: str
    before: ContinuationPoint  # at the start of the step in which it lies
    last: ContinuationPoint  # beyond the fold

    def describe_later_point(self, beyond: ContinuationPoint, sizes: FloatArray, *, around: bool) -> str:
        """Return the sentence on a point beyond, with the state that tells it from the fold."""
        x, x_at_fold = beyond.point.states, self.last.point.states
        i = int(np.argmax(np.abs(x - x_at_fold) / sizes))
        name = list(beyond.linear.point.states)[i]
        branch = "farther along it, around the fold" if around else "on another branch"
        return f"{self.sentence} This point lies {branch}: {name} = {x[i]:.6g}, at the fold {x_at_fold[i]:.6g}."


def locate_fold(
    predecessor: ContinuationPoint,
    values: Mapping[str, float],
    follow: Callable[[Mapping[str, float], ContinuationPoint], ContinuationPoint | None],
    compute_volume: Callable[[ContinuationPoint], float],
) -> Fold | ContinuationPoint:
    """Return where the branch through ``predecessor`` turns back before ``values``; if it does not, its last point.

    Near a fold at p* the determinant of the equations (their volume) goes as the root of p* - p, so that two points
    on the way tell p*; the next one is taken before it.
    """
    start = {name: predecessor.values[name] for name in values}

    def interpolate(s: float) -> dict[str, float]:
        return {name: (1 - s) * start[name] + s * value for name, value in values.items()}

    first_volume = compute_volume(predecessor)
    if first_volume <= 0:
        return predecessor
    last, s, limit, fold = predecessor, 0.0, 1.0, np.nan
    history = [(0.0, first_volume)]
    for _ in range(MAX_APPROACHES):
        aim = fold - REMAINING_PART * (fold - s)
        if not (s < fold and aim < limit):  # no fold ahead is known, or a point before it was not reached
            aim = (s + limit) / 2
        point = follow(interpolate(aim), last)
        if point is None:
            limit = aim
        else:
            last, s, limit = point, aim, 1.0
            history.append((s, compute_volume(point)))
            fold = _extrapolate(history)
        if limit - s < FOLD_TOLERANCE or (np.isfinite(fold) and abs(fold - s) < FOLD_TOLERANCE):
            break
    if not history[-1][1] < MAX_VOLUME_AT_FOLD * first_volume:
        return last
    fold = fold if np.isfinite(fold) else s
    where = ", ".join(f"{n} = {v:.9g}" for n, v in interpolate(fold).items() if v != start[n] or len(start) == 1)
    return Fold(f"The branch turns back at {where} (a fold: the equations are singular there).", predecessor, last)


def _extrapolate(history: list[tuple[float, float]]) -> float:
    """Return where the volume's square vanishes on the line through the last two points; NaN if it does not fall."""
    if len(history) < 2:
        return np.nan
    (a, x), (b, y) = history[-2:]
    return b + (b - a) * y**2 / (x**2 - y**2) if x > y else np.nan


MAX_STEPS_AROUND = 120
"""Steps around a fold."""
LONGEST_STEP = 0.1
"""Of the leading state, in sizes, and of the way from the fold where that is longer."""
SHORTEST_STEP = 1e-5
"""Of the leading state, in sizes."""
FIRST_STEP = 0.1
"""Part of the last way to the fold."""
STEP_GROWTH_FACTOR, STEP_SHRINKAGE_FACTOR = 1.5, 0.25
"""Of a step after one that was taken, and after one that was not."""
MAX_DEVIATION = 2.0
"""Of a state from its guess, in steps; a point that lies farther off is on another branch."""

SolveWithLeader = Callable[[int, FloatArray], FloatArray]
"""Returns the point near a guess (states, inputs, what varies) at which the state of this number is as guessed."""


class BranchAroundFold:
    """A branch beyond its fold, computed as far as it is needed.

    There the state that moves fastest leads (a local parametrization, Rheinboldt 1980). ``approach`` are two points on
    the way to the fold (states, inputs, what varies), ``sizes`` those of the states, ``leaders`` the states that are
    not fixed.
    """

    def __init__(
        self, approach: list[FloatArray], sizes: FloatArray, leaders: Sequence[int], solve: SolveWithLeader
    ) -> None:
        self._points, self._sizes, self._leaders, self._solve = approach, sizes, leaders, solve
        self._fold = approach[-1]
        self._step = FIRST_STEP * self._measure_distance(*approach)
        self._remaining_steps = MAX_STEPS_AROUND if leaders and self._step > 0 else 0

    def find_crossings(self, value: float) -> Iterator[FloatArray]:
        """Yield guesses of the points with this value of what varies, in the order of the branch."""
        k = 2
        while k < len(self._points) or self._extend():
            one, other = self._points[k - 1], self._points[k]
            if (one[-1] - value) * (other[-1] - value) <= 0 and one[-1] != other[-1]:
                yield one + (value - one[-1]) / (other[-1] - one[-1]) * (other - one)
            k += 1

    def _extend(self) -> bool:
        """Take one more step; False where the branch ends, or is long enough."""
        previous, last = self._points[-2:]
        direction = (last - previous)[: len(self._sizes)] / self._sizes
        leader = max(self._leaders, key=lambda i: abs(direction[i]))
        while self._remaining_steps > 0 and self._step > SHORTEST_STEP:
            self._remaining_steps -= 1
            guess = last + self._step / abs(direction[leader]) * (last - previous)
            try:
                point = self._solve(leader, guess)
            except FmilinError:
                point = np.full(len(last), np.nan)
            if self._measure_distance(point, guess) <= MAX_DEVIATION * self._step:
                self._points.append(point)
                distance = self._measure_distance(point, self._fold)
                self._step = min(STEP_GROWTH_FACTOR * self._step, LONGEST_STEP * max(1.0, distance))
                return True
            self._step *= STEP_SHRINKAGE_FACTOR
        return False

    def _measure_distance(self, one: FloatArray, other: FloatArray) -> float:
        """Return the largest difference of a state, in sizes."""
        return float(np.max(np.abs(one - other)[: len(self._sizes)] / self._sizes))
