"""Slopes of one column looked at over eighteen decades of steps: which plateau is the slope, and where it ends.

A rung has steps +-h; the next one a quarter of them. Of two, Richardson's E(h) = D(h/4) + (D(h/4) - D(h)) / 15
is free of the h^2 term, and what E changes by from rung to rung is the error, be it truncation, noise or a feature:

- a *plateau* is where E stands still; the one nearest to the point is the slope, unless what differs is noise;
- F(s) - F(0) - s E leaves zero somewhere beyond the plateau. Where it does so in a jump, and more of them follow, the
  model rounds (an encoder, digits that cancel inside): the height of the jump is the noise, and the plateau a step
  of the staircase;
- jumps and kinks at the point itself stay the same at the smallest steps: F(h) - F(-h) or (F(h) + F(-h) - 2 F(0)) / h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fmilin.errors import ModelError, NumericalError
from fmilin.signals import FloatArray

__all__ = ["CONTRADICTS", "Climb", "Ladder", "climbed", "ladder_of"]

RATIO = 4.0

LARGEST, SMALLEST = 1.0, 2.0**-54
"""Steps, in sizes of the variable; where the variable is not zero, none is smaller than :data:`LOST` of it."""

LOST = 2.0**-50

CONTRADICTS = 10.0
"""A slope nearer to the point is another one when they differ by this many of their errors."""

EVEN = 0.1
"""Bends over h that stay the same to this part, from rung to rung, are a kink's."""

STILL = 1e-3
"""Changes of F that stay the same to this part are a jump's: noise does so less often."""

RUN = 4
"""Rungs over which they must."""

LEFT = 0.1
"""Of what the slope makes: where F is farther away from it than that, the plateau has ended."""

RIPPLE = 1e-9
"""Of what the slope makes over the variable's size: a smaller wave is noise, if it changes the slope by little."""

STAIRS = 4.0
"""Jumps of one height that are no accident."""

SUDDEN = 0.02
"""Of what F changes by over a rung, that it changes by within 2^-14 of it: a jump."""

HALVINGS = 14


@dataclass(frozen=True, slots=True)
class Ladder:
    """F at steps +-h along one column, largest first; K rungs.

    Attributes
    ----------
    h : array, shape (K,)
    ahead, behind : array, shape (K, r)
    base : array, shape (r,)
    scale : float
        The size of the variable.
    """

    h: FloatArray
    ahead: FloatArray
    behind: FloatArray
    base: FloatArray
    scale: float

    @property
    def D(self) -> FloatArray:
        """Central differences, shape (K, r)."""
        found: FloatArray = (self.ahead - self.behind) / (2 * self.h[:, None])
        return found


@dataclass(frozen=True, slots=True)
class Climb:
    """What the ladder says of one entry.

    Attributes
    ----------
    slope, error : float
    jump : float
        Right slope minus left slope at the point; 0 where there is no kink, infinite where F itself jumps.
    reach : float
        The step at which it holds no longer; infinite where it always does.
    beyond : float
        The slope found farther away.
    """

    slope: float
    error: float
    jump: float
    reach: float
    beyond: float


def ladder_of(line: Callable[[float], FloatArray], base: FloatArray, scale: float, value: float) -> Ladder | None:
    """Climb down one column; None where it cannot be evaluated at three steps at least.

    Parameters
    ----------
    line : callable
        s -> F, shape (r,).
    base : array, shape (r,)
        F at s = 0.
    scale : float
        The size of the variable.
    value : float
        What it is at the point.
    """
    h, least = LARGEST * scale, max(SMALLEST * scale, LOST * abs(value))
    steps, ahead, behind = [], [], []
    h = float(2.0 ** np.round(np.log2(h)))
    while h >= least:
        try:
            pair = line(h), line(-h)
            usable = bool(np.isfinite(pair).all())
        except (ModelError, NumericalError):
            usable = False
        if usable:
            steps.append(h)
            ahead.append(pair[0])
            behind.append(pair[1])
        else:  # what lies beyond an event or the border of the domain says nothing about the point
            steps, ahead, behind = [], [], []
        h /= RATIO
    if len(steps) < 6:
        return None
    return Ladder(np.array(steps), np.array(ahead), np.array(behind), base, scale)


def climbed(
    ladder: Ladder, row: int, line: Callable[[float], FloatArray], noise: float = 0.0, size: float = 0.0
) -> Climb:
    """Return the slope of one row, its error, and how far it holds.

    Parameters
    ----------
    ladder : Ladder
    row : int
    line : callable
        s -> F, shape (r,); visited again to tell jumps.
    noise : float
        What is known of it.
    size : float
        The largest slope of the row, in the units of this column.
    """
    h, a, b, base = ladder.h, ladder.ahead[:, row], ladder.behind[:, row], float(ladder.base[row])
    ulp = 0.5 * np.spacing(np.maximum(np.maximum(np.abs(a), np.abs(b)), abs(base))) + noise
    D = (a - b) / (2 * h)
    E = D[1:] + (D[1:] - D[:-1]) / (RATIO**2 - 1)
    constant = _constant(a - base, b - base, ulp)
    jumping = Climb(float(D[-1]), abs(float(D[-1])), np.inf, 0.0, float(D[0]))
    if constant[-1]:  # a switch at the point, or the edge of a stair
        stair, _ = _stairs(ladder, row, 0.0, 40 * ulp, len(h) - 1, line)
        if stair == 0.0:
            return jumping
        error = _errors(E, 2 * max(stair, abs(a[-1] - base), abs(b[-1] - base)) / h[1:])
        best = int(np.argmin(error))
        return Climb(float(E[best]), float(error[best]), 0.0, np.inf, float(E[best]))
    plateau = _plateau(ladder, row, E, ulp, line, size)
    if not plateau.stairs and constant[plateau.rung :].any():
        return jumping
    slope, beyond = float(E[plateau.rung]), float(E[plateau.outer if plateau.outer < plateau.rung else 0])
    gone = np.flatnonzero(np.abs(_left(ladder, row, slope)) > LEFT * h * max(abs(slope), abs(beyond)))
    ends = len(gone) > 0 and gone[-1] < plateau.rung and not plateau.stairs
    kink = _kink(h, a + b - 2 * base, np.maximum(ulp, plateau.stairs), plateau.rung)
    return Climb(slope, plateau.error, kink, float(h[gone[-1]]) if ends else np.inf, beyond)


@dataclass(frozen=True, slots=True)
class _Plateau:
    """Where E stands still: the rung, the error there, the rung of least error, and the height of stairs before it."""

    rung: int
    error: float
    outer: int
    stairs: float


def _plateau(
    ladder: Ladder, row: int, E: FloatArray, ulp: FloatArray, line: Callable[[float], FloatArray], size: float
) -> _Plateau:
    """Return the plateau nearest to the point, unless it is a stair: then the nearest beyond the stairs."""
    h, known = ladder.h, 0.0
    error = _errors(E, 2 * ulp[1:] / h[1:])
    while True:
        outer = int(np.argmin(error))
        chosen = _nearest(E, error, outer, h / ladder.scale, size)
        unseen = 20 * ulp + CONTRADICTS * h * error[chosen]
        jump, begin = _stairs(ladder, row, float(E[chosen]), unseen, chosen, line)
        if jump <= 2 * known:
            return _Plateau(chosen, float(error[chosen]), outer, known)
        known = jump
        outside = np.arange(len(E)) < begin  # both steps of a pair have left the first stair
        if not outside[:-1].any() or np.isinf(error[outside]).all():
            return _Plateau(chosen, max(float(error[chosen]), abs(float(E[chosen])), jump / h[0]), outer, known)
        ulp = np.maximum(ulp, jump)
        error = np.where(outside, _errors(E, jump / h[1:]), np.inf)


def _errors(E: FloatArray, floor: FloatArray) -> FloatArray:
    """Return by how much E changes around each rung, on the finer side mostly, and at least the floor."""
    change = np.abs(np.diff(E))
    error = np.full(len(E), np.inf)
    count = len(change) - 2
    error[:count] = np.max([change[k : k + count] / RATIO**k for k in range(3)], axis=0)
    error[1:count] = np.maximum(error[1:count], change[: count - 1] / RATIO**4)
    total: FloatArray = error + floor
    return total


def _nearest(E: FloatArray, error: FloatArray, chosen: int, h: FloatArray, size: float) -> int:
    """Return the plateau nearest to the point: go down as long as finer rungs contradict.

    A ripple, which changes the slope a little over next to nothing, is noise on the plateau.
    """
    while True:
        finer, change = np.arange(len(E)) > chosen, np.abs(E - E[chosen])
        large = max(abs(float(E[chosen])), size)
        ripple = (change <= 0.2 * large) & (change * h[:-1] <= RIPPLE * large)
        against = finer & (change > CONTRADICTS * (error + error[chosen])) & ~ripple
        if not against.any():
            return chosen
        chosen = int(np.argmin(np.where(against, error, np.inf)))


def _left(ladder: Ladder, row: int, slope: float) -> FloatArray:
    """Return the odd part of F(s) - F(0) - s E, shape (K,)."""
    left: FloatArray = (ladder.ahead[:, row] - ladder.behind[:, row]) / 2 - ladder.h * slope
    return left


def _stairs(
    ladder: Ladder, row: int, slope: float, error: FloatArray, chosen: int, line: Callable[[float], FloatArray]
) -> tuple[float, int]:
    """Return the height of stairs beyond a plateau and the rung where they begin; 0 and 0 where there are none.

    One jump is a switch beside the point; stairs go on. What grows with h^3 from rung to rung is smooth.
    """
    h, left = ladder.h, _left(ladder, row, slope)

    def rest(s: float) -> float:
        return float(line(s)[row] - line(-s)[row]) / 2 - s * slope

    first, begin = 0.0, 0
    for k in range(min(chosen, len(h) - 2), -1, -1):
        growth = abs(left[k]) / max(abs(left[k + 1]), 1e-300)
        if abs(left[k]) <= error[k] or RATIO**3 / 2 <= growth <= RATIO**3 * 2:
            continue
        height = _jump(rest, (h[k + 1], h[k]), (left[k + 1], left[k]))
        if first == 0.0:
            first, begin = height, k
        elif height > 0.2 * first:
            return (first, begin) if np.abs(left[: begin + 1]).max() >= STAIRS / 2 * first else (0.0, 0)
    return 0.0, 0


def _jump(rest: Callable[[float], float], interval: tuple[float, float], ends: tuple[float, float]) -> float:
    """Return the height of the jump in an interval at whose ends something is known; 0 when there is none."""
    (low, high), (at_low, at_high) = interval, ends
    whole = max(abs(at_high), abs(at_low))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        try:
            found = rest(middle)
        except (ModelError, NumericalError):
            return 0.0
        if abs(found - at_low) >= abs(at_high - found):
            high, at_high = middle, found
        else:
            low, at_low = middle, found
    height = float(abs(at_high - at_low))
    return height if height > SUDDEN * whole else 0.0


def _constant(right: FloatArray, left: FloatArray, ulp: FloatArray) -> FloatArray:
    """Return where runs of rungs begin over which F is the same on a side, and not F(0): it has jumped.

    Not where it is the same on both sides: there the steps are lost in rounding, and what differs from F(0) is noise.
    """
    runs = np.lib.stride_tricks.sliding_window_view(np.stack((right, left)), RUN, axis=1)
    sizes = np.abs(runs).max(axis=2)
    apart = np.abs(runs[0] - runs[1]).min(axis=1)
    same = (np.ptp(runs, axis=2) <= STILL * sizes) & (sizes > 40 * ulp[: sizes.shape[1]]) & (apart > EVEN * sizes)
    found: FloatArray = same.any(axis=0)
    return found


def _kink(h: FloatArray, S: FloatArray, ulp: FloatArray, chosen: int) -> float:
    """Return S / h where it is the same over rungs that the plateau contains; 0 otherwise."""
    bend, seen = S / h, np.abs(S) > 30 * ulp
    for k in range(len(h) - RUN, -1, -1):
        run = slice(k, k + RUN)
        finer = float(np.abs(S[k + RUN :]).max(initial=0.0))
        if k + RUN - 1 < chosen or not seen[run].all() or abs(S[k]) < 30 * finer:  # noise does not fall with h
            continue
        if np.ptp(bend[run]) <= EVEN * np.abs(bend[run]).max():
            return float(np.mean(bend[run]))
    return 0.0
