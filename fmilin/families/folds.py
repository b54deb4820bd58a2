"""Where a branch of trimmed points turns back: a fold, found and named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fmilin.families.continuation import SolvedPoint
from fmilin.ground.errors import NumericalError
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
