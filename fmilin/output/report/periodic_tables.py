"""Orbits, periodic models and what Floquet's theory says of them, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import numpy as np

from fmilin.families.periodic.chart import FloquetChart
from fmilin.families.periodic.model import PeriodicModel
from fmilin.families.periodic.orbit import PeriodicOrbit
from fmilin.motion.periodic.floquet import Floquet
from fmilin.output.report.numbers import eigenvalue_text, rough, shortened, value_with_unit
from fmilin.output.report.page import Page
from fmilin.output.report.table import console_on, print_fact, print_remarks, simple_table

if TYPE_CHECKING:
    from rich.console import Console

NAMES = 8  # shown of a list
MODES = 24
ROWS = 24  # of a chart


def print_floquet(orbit: PeriodicOrbit, floquet: Floquet, stream: TextIO) -> None:
    """Print an orbit, and what becomes of deviations from it."""
    with console_on(stream) as console:
        show_orbit(orbit, console)
        console.print()
        show_floquet(floquet, console, orbit=orbit)


def show_orbit(orbit: PeriodicOrbit, page: Console | Page) -> None:
    """Print the period, what turns, what was free, and how well the motion closes."""
    model, names = orbit.model, orbit.model.states.names
    print_fact(page, "Orbit", [shortened(model.info.name), f"period {orbit.period:.12g} s"])
    gained = [f"{shortened(names[i])} gains {value_with_unit(orbit.shift[i], model.states[i].unit)}"
              for i in np.flatnonzero(orbit.shift).tolist()]  # fmt: skip
    if gained:
        print_fact(page, "A period", gained[:NAMES])
    print_fact(page, "Closure", [f"{orbit.closure:.2g} of the sizes of the states"])
    if orbit.free:
        print_fact(page, "Free", [f"{name} = {value:.9g}" for name, value in orbit.free.items()])


def show_periodic(periodic: PeriodicModel, page: Console | Page) -> None:
    """Print what there is of a periodic model."""
    P, N = len(periodic.states), len(periodic.full_states)
    print_fact(page, "Model", [shortened(periodic.info.name), f"period {periodic.period:.12g} s"])
    print_fact(page, "Order", [f"{P} independent states out of {N}", f"{len(periodic.A)} phases"])
    for word, signals in (("Coordinates", periodic.states), ("Inputs", periodic.inputs), ("Outputs", periodic.outputs)):
        more = [f"and {len(signals) - NAMES} more"] if len(signals) > NAMES else []
        print_fact(page, word, [*map(shortened, signals.names[:NAMES]), *more] or ["none"])
    print_fact(page, "A varies", [f"by {rough(100 * periodic.variation)} % over the period"])
    page.print()
    print_remarks(page, periodic.remarks)


def print_chart(chart: FloquetChart, stream: TextIO) -> None:
    """Print what :func:`show_chart` does."""
    with console_on(stream) as console:
        show_chart(chart, console)


def show_chart(chart: FloquetChart, page: Console | Page) -> None:
    """Print where over its axes a motion is stable."""
    good, size = int(chart.ok.sum()), chart.ok.size
    print_fact(page, "Motion", [shortened(chart.name), f"{good} of {size} points", f"{int(chart.stable.sum())} stable"])
    page.print()
    table = simple_table(*chart.axes, "Period [s]", "Growth [1/s]", "")
    numbers = list(np.ndindex(chart.ok.shape))
    for i in numbers[:ROWS]:
        values = [f"{axis[k]:.6g}" for axis, k in zip(chart.axes.values(), i, strict=True)]
        verdict = "stable" if chart.stable[i] else "unstable" if chart.ok[i] else "no periodic motion"
        figures = [f"{chart.period[i]:.6g}", f"{chart.margin[i]:.6g}"] if chart.ok[i] else ["", ""]
        table.add_row(*values, *figures, verdict)
    if len(numbers) > ROWS:
        table.add_row(f"and {len(numbers) - ROWS} more", *[""] * (len(chart.axes) + 2))
    page.print(table)


def show_floquet(floquet: Floquet, page: Console | Page, orbit: PeriodicOrbit | None = None) -> None:
    """Print multipliers, exponents, the harmonics at which modes are seen, and whether the motion is stable."""
    if orbit is None:
        print_fact(page, "Motion", [shortened(floquet.name), f"period {floquet.period:.12g} s"])
    print_fact(page, "Stability", [floquet.verdict])
    print_fact(
        page,
        "Accuracy",
        [
            f"multipliers {rough(floquet.accuracy['multipliers'])}",
            f"exponents {rough(floquet.accuracy['exponents'])}/s",
        ],
    )
    page.print()
    table = simple_table("Multiplier", "Exponent [1/s]", "Seen at [rad/s]", "Harmonic", "", columns="RRrrl")
    why = {k: text for text, k in floquet.unit.items()}
    shown = 0
    for k, exponent in enumerate(floquet.exponents):
        if exponent.imag < 0 and np.abs(floquet.exponents - exponent.conj()).min() <= 1e-9 * (1 + abs(exponent)):
            continue  # its conjugate has a line
        pair = bool(
            exponent.imag > 0 and np.abs(floquet.exponents - exponent.conj()).min() <= 1e-9 * (1 + abs(exponent))
        )
        multiplier = eigenvalue_text(complex(floquet.multipliers[k]), pair=pair)
        seen = f"{floquet.frequencies[k]:.6g}" if np.isfinite(exponent) else ""
        text = eigenvalue_text(complex(exponent), pair=abs(exponent.imag) > 0) if np.isfinite(exponent) else "-inf"
        table.add_row(multiplier, text, seen, str(abs(int(floquet.largest_harmonics[k]))), why.get(k, ""))
        shown += 1
        if shown == MODES:
            break
    page.print(table)
    page.print()
    print_remarks(page, floquet.remarks)
