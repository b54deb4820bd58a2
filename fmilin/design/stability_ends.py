"""Ends of intervals of gains, angles and delays, confirmed by the eigenvalues of the closed loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fmilin.signals import FloatArray

TEST_DISTANCES = (
    1e-6,
    1e-5,
    1e-4,
    1e-3,
)  # relative distances from an end at which the closed loop is tested, until one decides
MAX_UNCONFIRMED_GAIN = 1e9  # a factor beyond it that eigenvalues do not confirm is rounding of a loop that fades away
BISECTION_COUNT = 60


class End(NamedTuple):
    """The end of an interval of gains or of angles in rad, and the frequency in rad/s of the growing motion."""

    value: float
    frequency: float


def confirm_end(
    name: str, end: End, between: FloatArray, decide: Callable[[float], bool | None]
) -> tuple[End, list[str]]:
    """Compare an end with the closed loop's eigenvalues: in between, just inside and just outside.

    An unstable loop in between makes the end wrong: it is replaced by the one that bisection finds.
    """
    start = 1.0 if name.endswith("gain") else 0.0
    stable = start
    for value in between:
        if decide(float(value)) is False:
            limit = _bisect(stable, float(value), decide)
            text = (
                f"The {name} is {limit:.6g} by the closed loop's eigenvalues and {end.value:.6g} by the frequency "
                "response: the former is used."
            )
            return End(limit, math.nan), [text]
        stable = float(value)
    if not 0 < end.value < math.inf:
        return end, []
    for aside in TEST_DISTANCES:
        step = aside * (end.value - start)
        inside, outside = decide(end.value - step), decide(end.value + step)
        if inside is True and outside is False:
            return end, []
    if not 1 / MAX_UNCONFIRMED_GAIN < end.value < MAX_UNCONFIRMED_GAIN:
        return End(0.0 if end.value < 1 else math.inf, math.nan), []
    if inside is None or outside is None:
        verdict = "their rounding hides whether the loop becomes unstable there"
    else:
        words = {True: "stable", False: "unstable"}
        verdict = f"the loop is {words[inside]} just inside it and {words[outside]} just outside"
    return end, [f"The {name} {end.value:.6g} is not confirmed by the closed loop's eigenvalues: {verdict}."]


def _bisect(stable: float, unstable: float, decide: Callable[[float], bool | None]) -> float:
    """Return where a loop becomes unstable."""
    for _ in range(BISECTION_COUNT):
        middle = (stable + unstable) / 2 if min(stable, unstable) <= 0 else math.sqrt(stable * unstable)
        if decide(middle) is False:
            unstable = middle
        else:
            stable = middle
    return stable


def confirm_gain_ends(
    factors: Sequence[End], tested_count: int, farthest_gain: float, decide: Callable[[float], bool | None]
) -> tuple[End, End, list[str]]:
    """Return the ends of the gains around 1 among ``factors``, and what contradicts them at gains in between.

    ``decide`` says whether the loop with a gain is stable, from its eigenvalues; ``tested_count`` gains are tried,
    up to ``farthest_gain`` where an end is at infinity.
    """
    low = max((end for end in factors if end.value < 1), default=End(0.0, math.nan))
    high = min((end for end in factors if end.value > 1), default=End(math.inf, math.nan))
    doubts: list[str] = []
    ends = []
    for end, name in ((low, "lower"), (high, "upper")):
        farthest = min(max(end.value, 1 / farthest_gain), farthest_gain)
        gains = np.geomspace(1.0, farthest, tested_count + 2)[1:-1]
        confirmed, texts = confirm_end(f"{name} gain", end, gains, decide)
        ends.append(confirmed)
        doubts += texts
    return ends[0], ends[1], doubts
