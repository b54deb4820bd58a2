"""Second ways of the frequencies of margins and of the delay: L itself on the stability limit, solved anew."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.result import AuditRow, compare
from fmilin.tolerances import AUDITED_ENDS

if TYPE_CHECKING:
    from fmilin.design.margins import Margins
    from fmilin.numerics.feedback import StateSpace
    from fmilin.signals import FloatArray

FLAT = 1e-8  # of the distance to the critical disk: frequencies with so small a difference are equally near
WAY = "L on the stability limit"


def compare_crossings(margins: Margins, loop: StateSpace, grid: FloatArray) -> Iterator[AuditRow]:
    """Compare the frequencies of a single loop's margins with L there, and the delay with all crossings of |L| = 1.

    ``grid`` are frequencies in rad/s, rising.
    """
    if math.isfinite(margins.phase_frequency) and margins.phase_frequency > 0:
        L = evaluate_loop(loop, margins.phase_frequency)
        yield compare(f"|L| at {margins.phase_frequency:.6g} rad/s (phase)", 1.0, abs(L), WAY, AUDITED_ENDS)
    if math.isfinite(margins.gain_frequency) and margins.gain_frequency > 0:
        L = evaluate_loop(loop, margins.gain_frequency)
        ends = [end for end in margins.gain if 0 < end < math.inf]
        nearest = min(ends, key=lambda end: abs(end * L - 1), default=math.nan)
        quantity = f"L times the gain at {margins.gain_frequency:.6g} rad/s"
        yield compare(quantity, 1.0, nearest * L, WAY, 10 * AUDITED_ENDS)
    if 0 < margins.delay < math.inf:
        delay = find_delay(loop, grid)
        if math.isfinite(delay):
            yield compare("delay", margins.delay, delay, f"{WAY}, crossings of |L| = 1", 10 * AUDITED_ENDS * delay)


def compare_peak(margins: Margins, loop: StateSpace) -> Iterator[AuditRow]:
    """Compare the frequency of the disk margin with the minimum of the distance to the critical disk near it."""
    from scipy.optimize import minimize_scalar

    stated = margins.disk_frequency
    if not 0 < stated < math.inf:
        return
    top = math.pi / loop.sample_time if loop.sample_time else math.inf
    low, high = 0.9 * stated, min(1.1 * stated, top)

    def distance(frequency: float) -> float:
        return _compute_disk(loop, frequency)

    try:
        minimum = minimize_scalar(distance, bounds=(low, high), method="bounded", options={"xatol": 1e-9 * stated})
        second = min((float(minimum.x), low, high), key=distance)
        step = 0.01 * stated
        least = distance(second)
        bend = (distance(second - step) + distance(second + step) - 2 * least) / step**2
    except np.linalg.LinAlgError:  # an eigenvalue of the open loop lies there
        return
    # A minimum is known to where the distance differs from its least value by more than rounding: a flat one hardly.
    flat = math.sqrt(2 * FLAT * least / bend) if bend > 0 else math.inf
    tolerance = 10 * AUDITED_ENDS * stated + flat
    yield compare("frequency of the disk margin", stated, second, "minimum over frequencies near it", tolerance)


def _compute_disk(loop: StateSpace, frequency: float) -> float:
    """Return the disk margin of a loop at one frequency in rad/s."""
    m, n = len(loop.D), loop.order
    point = cmath.exp(1j * frequency * loop.sample_time) if loop.sample_time else 1j * frequency
    L = loop.D.astype(np.complex128)
    if n:
        L = L + loop.C @ np.linalg.solve(point * np.eye(n) - loop.A, loop.B.astype(np.complex128))
    sensitivity = np.linalg.inv(np.eye(m) - L)
    return 1 / float(np.linalg.norm(sensitivity - 0.5 * np.eye(m), 2))


def evaluate_loop(loop: StateSpace, frequency: float) -> complex:
    """Return L at a frequency in rad/s."""
    point = cmath.exp(1j * frequency * loop.sample_time) if loop.sample_time else 1j * frequency
    n = loop.order
    through = complex(loop.D[0, 0])
    if not n:
        return through
    states = np.linalg.solve(point * np.eye(n) - loop.A, loop.B.astype(np.complex128))
    return complex((loop.C @ states)[0, 0]) + through


def find_delay(loop: StateSpace, grid: FloatArray) -> float:
    """Return the shortest dead time that turns some L of modulus 1 onto 1; inf where no crossing is found."""
    delays = []
    for frequency in _find_unit_frequencies(loop, grid):
        angle = cmath.phase(evaluate_loop(loop, frequency)) % (2 * math.pi)
        delays.append(angle / frequency)
    if loop.sample_time and abs(evaluate_loop(loop, math.pi / loop.sample_time)) >= 1:
        delays.append(loop.sample_time)  # a sample of delay changes the sign of L at z = -1
    return min(delays, default=math.inf)


def _find_unit_frequencies(loop: StateSpace, grid: FloatArray) -> Iterator[float]:
    from scipy.optimize import brentq

    def excess(frequency: float) -> float:
        return math.log(max(abs(evaluate_loop(loop, frequency)), 1e-300))

    last = math.nan
    before = math.nan
    for frequency in grid.tolist():
        try:
            value = excess(frequency)
        except np.linalg.LinAlgError:  # an eigenvalue of the open loop
            continue
        if math.isfinite(before) and before * value < 0:
            yield float(brentq(excess, last, frequency, xtol=1e-14 * frequency, rtol=1e-12))
        last, before = frequency, value
