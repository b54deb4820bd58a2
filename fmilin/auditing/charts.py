"""Second ways of charts of many motions: multipliers beside exponents, margins and verdicts beside both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.result import Audit, AuditRow, compare, compare_claim, keep_worst
from fmilin.tolerances import AUDITED_MULTIPLIERS, CLEAR_OF_LIMIT

if TYPE_CHECKING:
    from fmilin.periodic.chart import FloquetChart

UNCHECKED = "multipliers against the model: audit its motions, fl.linearize_periodic(...)"


def audit_chart(chart: FloquetChart) -> Audit:
    """Return the audit of a chart: each number of a motion against the others, the worst of each quantity."""
    rows: list[AuditRow] = []
    for comparisons in zip(*(_compare_motion(chart, index) for index in _list_motions(chart)), strict=True):
        rows += keep_worst(row for kind in comparisons for row in kind)
    return Audit("chart of many motions", chart.name, tuple(rows), (UNCHECKED,))


def _list_motions(chart: FloquetChart) -> Iterator[tuple[int, ...]]:
    for index in np.ndindex(chart.period.shape):
        if chart.ok[index]:
            yield index


def _compare_motion(chart: FloquetChart, index: tuple[int, ...]) -> list[list[AuditRow]]:
    """Return rows of the multipliers, the margin and the verdict of a motion."""
    axes = list(chart.axes.items())
    location = ", ".join(f"{name} = {values[k]:g}" for (name, values), k in zip(axes, index, strict=True))
    period = float(chart.period[index])
    multipliers, exponents = chart.multipliers[index], chart.exponents[index]
    second = np.exp(exponents * period)
    products = [
        compare(f"multiplier {k + 1} at {location}", mu, other, "exponential of the exponent",
                AUDITED_MULTIPLIERS * max(abs(other), 1e-12))
        for k, (mu, other) in enumerate(zip(multipliers, second, strict=True))
        if np.isfinite(mu) and np.isfinite(other)
    ]  # fmt: skip
    margin = float(chart.margin[index])
    growths = exponents.real[np.isfinite(exponents.real)]
    margins = []
    if np.isfinite(margin) and len(growths):  # symmetries are left out: it is the growth of some mode
        nearest = float(growths[np.argmin(np.abs(growths - margin))])
        tolerance = AUDITED_MULTIPLIERS * max(float(np.abs(growths).max()), 1 / period)
        margins = [compare(f"margin at {location}", margin, nearest, "growth of a mode", tolerance)]
    verdicts = []
    undecided = chart.undecided is not None and bool(chart.undecided[index])
    largest = float(np.abs(second[np.isfinite(second)]).max(initial=0.0))
    if not undecided and largest > 1 + CLEAR_OF_LIMIT and margin * period > CLEAR_OF_LIMIT:
        claim = f"motion is stable at {location}"
        verdicts = [compare_claim(claim, "exponents", stated=bool(chart.stable[index]), holds=False)]
    elif not undecided and largest < 1 - CLEAR_OF_LIMIT:
        claim = f"motion is stable at {location}"
        verdicts = [compare_claim(claim, "exponents", stated=bool(chart.stable[index]), holds=True)]
    turn = 2 * np.pi / period
    tolerance = AUDITED_MULTIPLIERS * max(
        turn, float(np.abs(exponents.imag[np.isfinite(exponents.imag)]).max(initial=0.0))
    )
    frequencies = [
        compare(f"frequency of mode {k + 1} at {location}", float(w), _fold_nearest(float(w), float(s.imag), turn),
                "exponent and whole turns a period", tolerance)
        for k, (w, s) in enumerate(zip(chart.frequencies[index], exponents, strict=True))
        if np.isfinite(w) and np.isfinite(s.imag)
    ]  # fmt: skip
    return [products, margins, verdicts, frequencies]


def _fold_nearest(frequency: float, imaginary: float, turn: float) -> float:
    """Return the frequency of a mode by whole turns a period that is nearest to the stated one."""
    shifted = (sign * frequency - imaginary for sign in (1.0, -1.0))
    return min((abs(imaginary + turn * round(s / turn)) for s in shifted), key=lambda value: abs(value - frequency))
