"""One step of the classical Runge-Kutta method, and where event indicators change sign over a step."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS

Rates = Callable[[float, FloatArray], FloatArray]


def runge_kutta_step(f: Rates, t: float, y: FloatArray, h: float, k1: FloatArray) -> FloatArray:
    """Return y(t + h) by the classical Runge-Kutta method; ``k1``: f(t, y)."""
    k2 = f(t + h / 2, y + h / 2 * k1)
    k3 = f(t + h / 2, y + h / 2 * k2)
    k4 = f(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


Indicators = Callable[[float], FloatArray]  # time in seconds to event indicators, shape (ne,)
Domains = NDArray[np.bool_]
SUBINTERVAL_COUNT = 4
"""Parts of a step: the indicators are evaluated at their ends. An indicator that dips below zero and comes back
within a part is not seen."""

END_FRACTION = 1e-4  # of a part: where it is seen whether an indicator comes or goes


@dataclass(frozen=True, slots=True)
class Crossing:
    """The first event of a step."""

    time: float  # just behind the crossing
    indicators: tuple[int, ...]  # those that have changed sign there


def domains(values: FloatArray) -> Domains:
    """Return on which side of zero each indicator is: zero itself belongs to the negative side, as in FMI."""
    return values > 0


def first_crossing(
    indicators: Indicators, before: Domains, start: float, end: float, *, last_turns: bool = False
) -> Crossing | None:
    """Return where the indicators first leave ``before`` (ne,), their sides at ``start``; None when they do not.

    With ``last_turns`` the last one is followed where it turns within a part, too.
    """
    if not before.size:
        return None
    a = start
    for k in range(1, SUBINTERVAL_COUNT + 1):
        b = end if k == SUBINTERVAL_COUNT else start + (end - start) * k / SUBINTERVAL_COUNT
        if (domains(indicators(b)) != before).any():
            return _bisect_crossing(indicators, before, a, b)
        if last_turns and (domains(indicators(peak := _turn(indicators, before, a, b))) != before).any():
            return _bisect_crossing(indicators, before, a, peak)
        a = b
    return None


def _turn(indicators: Indicators, before: Domains, a: float, b: float) -> float:
    """Return where the last indicator comes nearest to zero in a part that it enters towards it and leaves from it."""
    away, h = (1.0 if before[-1] else -1.0), END_FRACTION * (b - a)
    first, second, third, last = (away * float(indicators(t)[-1]) for t in (a, a + h, b - h, b))
    if not (second < first and third < last):
        return b
    from scipy.optimize import minimize_scalar  # every linear model passes this module, few need that

    minimum = minimize_scalar(
        lambda t: away * indicators(t)[-1],
        bounds=(a, b),
        method="bounded",
        options={"xatol": END_FRACTION**2 * (b - a)},
    )
    return float(minimum.x)


def _bisect_crossing(indicators: Indicators, before: Domains, a: float, b: float) -> Crossing:
    finest = EPS * max(4 * max(abs(a), abs(b)), b - a)
    while b - a > finest:
        middle = a + (b - a) / 2
        if middle in (a, b):
            break
        if (domains(indicators(middle)) != before).any():
            b = middle
        else:
            a = middle
    changed = np.flatnonzero(domains(indicators(b)) != before)
    return Crossing(b, tuple(int(i) for i in changed))
