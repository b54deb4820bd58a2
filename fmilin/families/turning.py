"""Around a fold: the state that moves fastest leads, and what varies is solved for with the rest.

Where a branch turns back, what varies is no coordinate along it, but any state that moves is one; each step hands the
lead to the fastest (a local parametrization, Rheinboldt 1980), so that several folds in a row are no obstacle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fmilin.ground.errors import FmilinError
from fmilin.ground.signals import FloatArray

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
