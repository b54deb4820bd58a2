"""Ends of intervals of gains, angles and delays, confirmed by the eigenvalues of the closed loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

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
