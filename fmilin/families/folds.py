"""Where a branch of trimmed points turns back: a fold, found and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.families.continuation import SolvedPoint
from fmilin.ground.errors import FmilinError, NumericalError
from fmilin.ground.signals import FloatArray

APPROACHES = 160  # steps towards a fold
NEAR = 1e-8  # of the step between two points of the grid: so exactly a fold is located
REST = 0.3  # part of the way to a fold that the next step leaves
TURNED = 0.05  # A fold is named when the determinant of the equations has fallen below this part of what it was


class FoldError(NumericalError):
    """No solution beyond a fold was found: ``fold`` says where the branch turns back, ``otherwise`` why no other."""

    def __init__(self, fold: str, otherwise: str) -> None:
        super().__init__(f"{fold} No other solution was found at this point: {otherwise}")


@dataclass(frozen=True)
class Fold:
    """Where a branch turns back."""

    sentence: str
    before: SolvedPoint  # where it was still far
    last: SolvedPoint  # next to it

    def to(self, reached: SolvedPoint, sizes: FloatArray, *, around: bool) -> str:
        """Return the sentence on a point beyond, with the state that tells it from the fold."""
        x, at_fold = reached.point.states, self.last.point.states
        i = int(np.argmax(np.abs(x - at_fold) / sizes))
        name = list(reached.linear.point.states)[i]
        branch = "farther along it, around the fold" if around else "on another branch"
        return f"{self.sentence} This point lies {branch}: {name} = {x[i]:.6g}, at the fold {at_fold[i]:.6g}."


def fold_between(
    predecessor: SolvedPoint,
    values: Mapping[str, float],
    onward: Callable[[Mapping[str, float], SolvedPoint], SolvedPoint | None],
    volume: Callable[[SolvedPoint], float],
) -> Fold | SolvedPoint:
    """Return where the branch through ``predecessor`` turns back before ``values``; if it does not, its last point.

    Near a fold at p* the determinant of the equations (``volume``) goes as the root of p* - p, so that two points
    on the way tell p*; the next one is taken before it.
    """
    start = {name: predecessor.values[name] for name in values}

    def at(s: float) -> dict[str, float]:
        return {name: (1 - s) * start[name] + s * value for name, value in values.items()}

    first = volume(predecessor)
    if first <= 0:
        return predecessor
    here, s, reach, fold = predecessor, 0.0, 1.0, np.nan
    history = [(0.0, first)]
    for _ in range(APPROACHES):
        aim = fold - REST * (fold - s) if s < fold and fold - REST * (fold - s) < reach else (s + reach) / 2
        reached = onward(at(aim), here)
        if reached is None:
            reach = aim
        else:
            here, s, reach = reached, aim, 1.0
            history.append((s, volume(reached)))
            fold = _extrapolated(history)
        if reach - s < NEAR or (np.isfinite(fold) and abs(fold - s) < NEAR):
            break
    if not history[-1][1] < TURNED * first:
        return here
    fold = fold if np.isfinite(fold) else s
    where = ", ".join(f"{n} = {v:.9g}" for n, v in at(fold).items() if v != start[n] or len(start) == 1)
    return Fold(f"The branch turns back at {where} (a fold: the equations are singular there).", predecessor, here)


def _extrapolated(history: list[tuple[float, float]]) -> float:
    """Return where the volume's square vanishes on the line through the last two points; NaN if it does not fall."""
    if len(history) < 2:
        return np.nan
    (a, x), (b, y) = history[-2:]
    return b + (b - a) * y**2 / (x**2 - y**2) if x > y else np.nan


# Around a fold: the state that moves fastest leads, and what varies is solved for with the rest. Where a branch turns
# back, what varies is no coordinate along it, but any state that moves is one; each step hands the lead to the fastest
# (a local parametrization, Rheinboldt 1980), so that several folds in a row are no obstacle.

STEPS = 120
LONGEST = 0.1  # step of the leading state, in sizes, and of the way from the fold where that is longer
SHORTEST = 1e-5
FIRST = 0.1  # part of the last way to the fold
GROWTH, SHRINKAGE = 1.5, 0.25
ASTRAY = 2.0  # steps that a state may be off its guess

Led = Callable[[int, FloatArray], FloatArray]
"""Return the point near a guess (states, inputs, what varies) whose state of this number is as guessed."""


class Turning:
    """A branch beyond its fold, as far as somebody asked.

    ``passed`` are two points on the way to the fold (states, inputs, what varies), ``sizes`` those of the states,
    ``leaders`` the states that are not held.
    """

    def __init__(self, passed: list[FloatArray], sizes: FloatArray, leaders: Sequence[int], led: Led) -> None:
        self._passed, self._sizes, self._leaders, self._led = passed, sizes, leaders, led
        self._fold = passed[-1]
        self._step = FIRST * self._far(*passed)
        self._left = STEPS if leaders and self._step > 0 else 0

    def crossings(self, value: float) -> Iterator[FloatArray]:
        """Yield guesses of the points with this value of what varies, in the order of the branch."""
        k = 2
        while k < len(self._passed) or self._goes_on():
            one, other = self._passed[k - 1], self._passed[k]
            if (one[-1] - value) * (other[-1] - value) <= 0 and one[-1] != other[-1]:
                yield one + (value - one[-1]) / (other[-1] - one[-1]) * (other - one)
            k += 1

    def _goes_on(self) -> bool:
        """Take one more step; False where the branch ends, or is long enough."""
        previous, here = self._passed[-2:]
        n = len(self._sizes)
        direction = (here - previous)[:n] / self._sizes
        leader = max(self._leaders, key=lambda i: abs(direction[i]))
        while self._left > 0 and self._step > SHORTEST:
            self._left -= 1
            guess = here + self._step / abs(direction[leader]) * (here - previous)
            try:
                point = self._led(leader, guess)
            except FmilinError:
                point = np.full(len(here), np.nan)
            if self._far(point, guess) <= ASTRAY * self._step:
                self._passed.append(point)
                self._step = min(GROWTH * self._step, LONGEST * max(1.0, self._far(point, self._fold)))
                return True
            self._step *= SHRINKAGE
        return False

    def _far(self, one: FloatArray, other: FloatArray) -> float:
        n = len(self._sizes)
        return float(np.max(np.abs(one - other)[:n] / self._sizes))
