"""Uniform motions of points: how fast and how curved they are, and whether A stays the same along them.

With x' = f(x) the second derivatives along the motion are x'' = J f. Where all coordinates move uniformly the states
follow from the constraints alone, and the rates there show whether that is the motion. A second A further on, seen
along one direction through all columns, confirms it. Every array has a leading axis: one point is a stack of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.manifold.rank import fixed_direction
from fmilin.numerics.balanced import UNTOLD, is_equilibrium
from fmilin.signals import FloatArray
from fmilin.tolerances import BALANCED_EXACTLY, EQUILIBRIUM, ROUNDING, SAME_ALONG, STEADY, UNIFORM

FURTHER = 0.3
"""How far further on the motion is compared, in times that its fastest state takes to move by its size; three times
that of the slowest state."""

SLOWEST = 1e-3  # what moves more slowly than this fraction of the fastest is not waited for
ASIDE = 0.3  # sizes by which states that nothing depends on are moved, less than a quaternion's components
STEP = 2.0**-13  # of the difference that shows the second A, in sizes of the coordinates
SIDES = (1.0, -1.0, 1.0)  # of the motion, to which it is gone at three moments
SHORT_STEP = 2.0**-17  # of a difference that hardly bends
LATEST = 2.2  # times as late until A is compared for the last time along a motion that goes straight on
BENT = 2.0  # times later than soon where it bends: what is seen to second order leads no further
MOST_TURNING = 40  # coordinates: of more it is not asked whether they turn, which may take a visit for each
TURNS = 0.1  # of the terms of x' x'' in one unit: what is left of them where vectors turn
LEFT, EXACT = 1e-2, 1e-7  # gaps of eigenvalues that are none: of how much A changes, and of their own size
SMALL, DEFECTIVE = 1e-3, 1e-4  # eigenvalues, of the largest, that may be a multiple zero, and how far it is spread
SLOW = 1e-2  # of the motion's own pace: slower rows may change as they like, what moves sees their mean
NOISE = 10.0  # times that a difference misses A at the point: a smaller change is none
ZEROS = repeat(0.0)
ALIKE = 1 - 1e-9  # speeds above this part of the largest are as large

Mask = NDArray[np.bool_]
Times = Sequence[FloatArray]
Bend = FloatArray | float
Asides = Iterable[Bend]


def fastest_states(
    rates: FloatArray,
    sizes: FloatArray,
    terms: FloatArray,
    slopes: tuple[FloatArray, FloatArray],
    errors: FloatArray,
    coordinates: int,
) -> NDArray[np.intp]:
    """Return the states that move fastest in their sizes, shape (k,), -1 at rest, the first of equally fast ones.

    ``rates``, ``sizes`` and ``terms`` are (k, N), ``slopes`` (k, N, n) along unknowns of these sizes (k, n), the first
    of them coordinates, and ``errors`` (k, N, n) of slopes times sizes. Rates that round their terms are none.
    """
    speeds = np.abs(rates)
    moving = speeds > np.maximum(UNTOLD * sizes, ROUNDING * terms)
    small = moving.any(axis=1) & (speeds <= np.maximum(EQUILIBRIUM * sizes, BALANCED_EXACTLY * terms)).all(axis=1)
    for k in np.flatnonzero(small):
        moving[k] &= not is_equilibrium(rates[k], sizes[k], slopes[0][k] * slopes[1][k], errors[k], coordinates)
    if not moving.any():
        return np.full(len(rates), -1, dtype=np.intp)
    compared = np.where(moving, speeds / sizes, -1.0)
    first = np.argmax(compared >= ALIKE * compared.max(axis=1, keepdims=True), axis=1)
    return np.asarray(np.where(moving.any(axis=1), first, -1))


def unseen(slopes: FloatArray, errors: FloatArray, sizes: FloatArray) -> Mask:
    """Return on which columns (k, n) no rate depends, from slopes (k, N, n) in sizes (k, n), errors times sizes."""
    seen, noise = np.abs(slopes) * sizes[:, None], 10 * errors
    rounding = ROUNDING * seen.max(axis=2, initial=0.0, keepdims=True)
    return np.asarray((seen <= rounding + noise).all(axis=1))


@dataclass(frozen=True, eq=False)
class Moving:
    """k points in motion: x' (k, N), y' (k, P), slopes of x' along y (k, N, P) with errors, and sizes."""

    rates: FloatArray
    y_rates: FloatArray
    f_y: FloatArray
    f_y_error: FloatArray  # times the sizes of y, (k, N, P), or (k, N, 1) where those of a row are the same
    sizes: FloatArray  # shape (k, N)
    y_sizes: FloatArray  # shape (k, P)
    paces: FloatArray  # |x'| (k, N) in nominal sizes per second, however far an angle has turned

    def __getitem__(self, some: Any) -> Moving:
        part = Moving(**{f.name: getattr(self, f.name)[some] for f in fields(self)})
        vars(part)["bends"] = self.bends[some]  # asked for before
        return part

    @cached_property
    def pace(self) -> FloatArray:
        """Of the fastest state, shape (k,)."""
        return np.asarray(self.paces.max(axis=1, initial=0.0))

    @cached_property
    def bends(self) -> FloatArray:
        """The second derivatives x'' (k, N) beyond what their terms may leave, else 0; what a trim leaves is none."""
        pace = self.pace[:, None]
        moving = np.where(np.abs(self.y_rates) > STEADY * pace * self.y_sizes, self.y_rates, 0.0)[..., None]
        second, terms = (self.f_y @ moving)[..., 0], (np.abs(self.f_y) @ np.abs(moving))[..., 0]
        ways = np.abs(moving) / self.y_sizes[..., None]
        ways = ways if self.f_y_error.shape[2] == ways.shape[1] else ways.sum(axis=1, keepdims=True)
        noise = 10 * (self.f_y_error @ ways)[..., 0] + ROUNDING * pace**2 * self.sizes
        return np.where(np.abs(second) > UNIFORM * terms + noise, second, 0.0)

    def vanishes(self, second: FloatArray, terms: FloatArray) -> Mask:
        """Say which y'' (k, P), summed from such terms, are rounding."""
        return np.asarray(np.abs(second) <= UNIFORM * terms + ROUNDING * self.pace[:, None] ** 2 * self.y_sizes)

    @property
    def later(self) -> tuple[FloatArray, FloatArray]:
        """When the motion is compared, in s, each (k,): soon, and when the slowest move or bend has come far enough."""
        paces = np.concatenate((self.paces, np.sqrt(np.abs(self.bends) / self.sizes)), axis=1)
        slowest = np.where(paces > SLOWEST * self.pace[:, None], paces, np.inf).min(axis=1, initial=np.inf)
        return FURTHER / self.pace, 3 * FURTHER / np.minimum(slowest, self.pace)


class Uniform(NamedTuple):
    """Coordinates that may move uniformly."""

    rates: FloatArray  # y', shape (k, P)
    sizes: FloatArray  # shape (k, P)
    A: FloatArray  # shape (k, P, P)
    leading: Mask  # which must be steady, shape (k, P): not those that are a state on which nothing depends


class Visited(NamedTuple):
    """Points further along the motion: so much later, states, x' and y', and where all that was had."""

    later: FloatArray
    x: FloatArray
    f: FloatArray
    rates: FloatArray
    good: Mask


class Beyond(ABC):
    """The model further along uniform motions, and beside them."""

    exact: bool = False  # whether rates and slopes are off by no more than rounding

    @abstractmethod
    def further(self, path: FloatArray, times: Times, bend: Bend = 0.0, asides: Asides = ZEROS) -> Iterable[Visited]:
        """Go on for so long (k,), or as far as coordinates lead, y' = path, y'' = bend, then aside, each (k, P)."""

    def along(
        self, path: FloatArray, times: Times, bend: FloatArray, direction: FloatArray
    ) -> Iterator[tuple[Visited, FloatArray]]:
        """Yield what is further on, as above, and the slopes (k, P) of y' along a direction (k, P) there."""
        for ahead in self.further(path, times, bend, [SHORT_STEP * direction] * len(times)):
            (behind,) = self.displaced(ahead, [-2 * SHORT_STEP * direction])
            x, f, rates = ((a + b) / 2 for a, b in zip(ahead[1:4], behind[1:4], strict=True))
            slopes = (ahead.rates - behind.rates) / (2 * SHORT_STEP)
            yield Visited(ahead.later, x, f, rates, ahead.good & behind.good), slopes

    def A(self, far: Visited, sizes: FloatArray, some: Mask) -> FloatArray:
        """Return A (j, P, P) at some points further on, by one-sided differences along coordinates of such sizes."""
        columns = [self.one_sided(far, unit * sizes)[0] for unit in np.eye(sizes.shape[1])]
        return (np.stack(columns, axis=2) / sizes[:, None])[some]

    @abstractmethod
    def displaced(self, far: Visited, displacements: Sequence[FloatArray]) -> Iterable[Visited]:
        """Visit the model at coordinates displaced (k, P) from points further on."""

    def slopes(self, far: Visited, direction: FloatArray) -> tuple[FloatArray, Mask]:
        """Return the slopes (k, P) of y' along a direction (k, P), by a difference, and where that was had."""
        if self.exact:
            return self.one_sided(far, direction)  # which hardly bends
        ahead, behind = self.displaced(far, [sign * STEP * direction for sign in (1.0, -1.0)])
        return (ahead.rates - behind.rates) / (2 * STEP), ahead.good & behind.good

    def one_sided(self, far: Visited, direction: FloatArray) -> tuple[FloatArray, Mask]:
        """Return the same by a short one-sided difference, from one visit."""
        (ahead,) = self.displaced(far, [SHORT_STEP * direction])
        return (ahead.rates - far.rates) / SHORT_STEP, far.good & ahead.good


class Change(NamedTuple):
    """By which part rows of A change along the motion, at most; NaN where that was not looked at."""

    part: FloatArray
    later: FloatArray  # how much later that was seen, in s
    turning: Mask  # where its eigenvalues do not change: the coordinates turn with the motion

    @classmethod
    def unseen(cls, count: int) -> Change:
        """Return that of points at which nothing was looked at."""
        return cls(np.full(count, np.nan), np.full(count, np.nan), np.zeros(count, dtype=bool))


class Confirmed(NamedTuple):
    """Where the motion is steady, which coordinates are carried there, how much later, and which rates x' changed."""

    steady: Mask
    carried: Mask
    later: FloatArray
    changed: Mask
    falls: Mask  # (k,), where all would be steady, and some rates grow for ever as they do now


def confirmed(at: Moving, uniform: Uniform, beyond: Beyond) -> Confirmed:
    """Go on uniformly, and see whether rates and A stay what they are."""
    pace, leading = at.pace[:, None], uniform.leading
    limit = UNIFORM * pace * uniform.sizes
    steady, same = np.ones(len(limit), dtype=bool), np.ones(limit.shape, dtype=bool)
    changed = np.zeros(at.rates.shape, dtype=bool)
    # Nothing depends on the states that need not be steady, wherever they are.
    accelerations = []
    for far in beyond.further(np.where(leading, uniform.rates, 0.0), at.later):
        accelerations.append((far.rates - uniform.rates) / np.maximum(far.later, 1e-300)[:, None])
        changed |= far.good[:, None] & ~(np.abs(far.f - at.rates) <= UNIFORM * pace * at.sizes)
        same &= np.abs(far.rates - uniform.rates) <= limit
        steady &= far.good & (same | ~leading).all(axis=1)
        if not steady.any():
            return Confirmed(steady, ~same, far.later, changed, np.zeros_like(steady))
    # What turns has other accelerations further on; what falls has the same ones for ever.
    falls = ~same & (np.abs(np.ptp(accelerations, axis=0)) <= UNIFORM * np.abs(accelerations[-1]))
    falling = steady & falls.any(axis=1)
    steady &= ~falling
    direction = _direction(uniform.sizes)
    first = (uniform.A @ direction[..., None])[..., 0]
    largest = (np.abs(uniform.A) * uniform.sizes[:, None]).max(axis=2, initial=0.0)
    alike = SAME_ALONG * np.maximum(largest, pace * uniform.sizes)
    slopes, good = beyond.slopes(far, direction)
    same &= np.abs(slopes - first) <= alike
    steady &= good & (same | ~leading).all(axis=1)
    if not leading.all() and steady.any():
        (aside,) = beyond.displaced(far, [np.where(leading, 0.0, ASIDE * uniform.sizes)])
        still = aside.good & (np.abs(aside.rates - far.rates) <= limit).all(axis=1)
        # No rate may depend on a rotor's angle, and A all the same.
        slopes, good = beyond.slopes(aside, direction)
        still &= good & ((np.abs(slopes - first) <= alike) | ~leading).all(axis=1)
        steady &= leading.all(axis=1) | still
    return Confirmed(steady, ~same, far.later, changed, falling)


def change_along(at: Moving, uniform: Uniform, bend: FloatArray, beyond: Beyond, turns: Mask) -> Change:
    """Compare leading rows of A along a motion with y'' = bend (k, P); where it ``turns`` and A changes, all of A."""
    direction, times = _direction(uniform.sizes), _moments(at, bend, uniform.leading)
    first, noise, good = (uniform.A @ direction[..., None])[..., 0], np.zeros(()), np.ones(len(bend), dtype=bool)
    at_point, further = None, list(beyond.along(uniform.rates, times, bend, direction))
    if not beyond.exact:
        ((at_point, measured),) = beyond.along(uniform.rates, [0 * times[0]], bend, direction)
        first, noise, good = measured, NOISE * np.abs(measured - first), at_point.good
    part, when, turning = Change.unseen(len(bend))
    for far, slopes in further:
        gap = np.abs(slopes - first)
        relative = np.where((gap > noise) & uniform.leading, gap / _row_sizes(at, uniform, slopes), 0.0)
        seen = np.where(good & far.good, relative.max(axis=1, initial=0.0), np.nan)
        better = (seen <= SAME_ALONG) & ~(part > SAME_ALONG) | (seen > SAME_ALONG) & ~(seen <= part)
        part, when = np.where(better, seen, part), np.where(better, far.later, when)
    changing = turns & (part > SAME_ALONG)
    if changing.any() and bend.shape[1] <= MOST_TURNING:
        A = uniform.A[changing] if at_point is None else beyond.A(at_point, uniform.sizes, changing)
        sizes = uniform.sizes[changing]
        scaled = (M * (sizes[:, None] / sizes[..., None]) for M in (A, beyond.A(far, uniform.sizes, changing)))
        turning[changing] = _same_spectrum(next(scaled), next(scaled), part[changing])
    return Change(part, when, turning)


def _moments(at: Moving, bend: FloatArray, leading: Mask) -> list[FloatArray]:
    """Return when A is compared, in s, each (k,)."""
    soon, later = at.later
    ahead = is_straight(bend, leading)
    last = np.where(ahead, LATEST * later, BENT * soon)
    return [soon, np.where(ahead, later, last), last] if ahead.any() else [last]


def _row_sizes(at: Moving, uniform: Uniform, slopes: FloatArray | float = 0.0) -> FloatArray:
    """Return what changes of slopes along the direction are compared with, shape (k, P)."""
    paces = (uniform.leading * np.abs(uniform.rates) / uniform.sizes).max(axis=1, initial=0.0)
    pace = np.where(paces > SLOWEST * at.pace, paces, at.pace)[:, None]  # a long way travelled hides no change
    terms = (np.abs(uniform.A) @ _direction(uniform.sizes)[..., None])[..., 0]
    return np.maximum(np.maximum(terms, np.abs(slopes)), SLOW * pace * uniform.sizes)


def falls_on(at: Moving, uniform: Uniform, bend: FloatArray, beyond: Beyond) -> Change:
    """Say where all rates go on as A says, and it stays the same, as of what falls for ever; NaN elsewhere."""
    step, times = SHORT_STEP * _direction(uniform.sizes), _moments(at, bend, uniform.leading)
    gaps, good = [], np.ones(len(bend), dtype=bool)
    # To alternate sides tells another A from what a difference leaves out, which is the same on both.
    asides = [sign * step for sign in SIDES]
    for far, t, aside in zip(beyond.further(uniform.rates, times, bend, asides), times, asides, strict=True):
        way = t[:, None] * uniform.rates + t[:, None] ** 2 / 2 * bend + aside
        gaps.append(far.rates - uniform.rates - (uniform.A @ way[..., None])[..., 0])
        good &= far.good & (np.abs(gaps[-1]) <= UNIFORM * at.pace[:, None] * uniform.sizes).all(axis=1)
    part = (np.ptp(gaps, axis=0) / _row_sizes(at, uniform)).max(axis=1, initial=0.0) / SHORT_STEP
    falls = good & (part <= SAME_ALONG)
    return Change(np.where(falls, part, np.nan), np.where(falls, times[-1], np.nan), np.zeros_like(falls))


def may_turn(at: Moving, kept: Sequence[int], leading: Mask, units: Sequence[str]) -> Mask:
    """Return where the speed in each unit stays, (k,): what turns keeps the length of its vectors, x' x'' = 0."""
    power = at.rates * at.bends
    power[:, list(kept)] = np.where(leading, power[:, list(kept)], 0.0)
    of_units = np.array([[unit == other for unit in dict.fromkeys(units)] for other in units], dtype=np.float64)
    return np.asarray((np.abs(power @ of_units) <= TURNS * (np.abs(power) @ of_units)).all(axis=1))


def _same_spectrum(A: FloatArray, B: FloatArray, part: FloatArray) -> Mask:
    """Return where two matrices (k, P, P) that differ by such a part (k,) have the same eigenvalues."""
    from scipy.optimize import linear_sum_assignment

    same = np.asarray(np.isfinite(A).all(axis=(1, 2)) & np.isfinite(B).all(axis=(1, 2)))
    first, last = (np.linalg.eigvals(np.where(same[:, None, None], M, 0.0)) for M in (A, B))
    moduli = np.sort(np.abs(first), axis=1), np.sort(np.abs(last), axis=1)
    most = (LEFT * part + EXACT + DEFECTIVE) * moduli[0].max(axis=1)  # most pairs of spectra differ in their moduli
    same &= np.abs(moduli[0] - moduli[1]).max(axis=1) <= most
    for k in np.flatnonzero(same):
        a, b = first[k], last[k]
        gaps, sizes = np.abs(a[:, None] - b), np.abs(a)
        pairs = linear_sum_assignment(gaps)
        defective = np.where(sizes < SMALL * sizes.max(), DEFECTIVE * sizes.max(), 0.0)
        same[k] = bool((gaps[pairs] <= (LEFT * part[k] + EXACT) * sizes + defective).all())
    return same


def _influential(dependence: Mask) -> Mask:
    """Return on which coordinates (k, P) others depend, but for those that nothing depends on, as a track's."""
    leading: Mask = np.ones(dependence.shape[:2], dtype=bool)
    for _ in range(dependence.shape[1]):
        fewer = np.asarray((dependence & leading[:, :, None]).any(axis=1))
        if (fewer == leading).all():
            break
        leading = fewer
    return leading


def compared(at: Moving, bend: FloatArray, A: FloatArray, errors: FloatArray) -> tuple[Mask, Mask]:
    """Return where A is compared (k,), as it goes straight on or has speeds, and what leads (k, P); errors in sizes."""
    entries = np.abs(A) * at.y_sizes[:, None]
    noise = 10 * errors + ROUNDING * entries.max(axis=2, initial=0.0, keepdims=True)
    dependence = np.asarray(entries > noise)  # of which y' on which y
    leading = _influential(dependence)
    # What begins from rest does not move yet, and what bends without a speed is on its way to a rest.
    moving = np.abs(at.y_rates) > STEADY * at.pace[:, None] * at.y_sizes
    first = dependence.argmax(axis=2)  # that each row depends on
    is_one = np.abs(A[np.arange(len(A))[:, None], rows := np.arange(A.shape[1]), first] - 1.0) <= UNIFORM
    speeds = (np.count_nonzero(dependence, axis=2) == 1) & is_one & (first != rows)
    return np.asarray((moving & speeds).any(axis=1) | is_straight(bend, leading)), leading


def is_straight(bend: FloatArray, leading: Mask) -> Mask:
    """Return where nothing bends on which something depends, shape (k,)."""
    return np.asarray(~((bend != 0) & leading).any(axis=1))


def _direction(sizes: FloatArray) -> FloatArray:
    """Return a direction (k, P) in which A is compared, the same at every call."""
    return fixed_direction(1851, 0.5, sizes.shape[1]) * sizes
