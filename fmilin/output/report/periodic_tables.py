"""Orbits, periodic models and what Floquet's theory says of them, as tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmilin.families.periodic.chart import FloquetChart
from fmilin.families.periodic.model import PeriodicModel
from fmilin.families.periodic.orbit import PeriodicOrbit
from fmilin.motion.periodic.floquet import Floquet
from fmilin.output.report.numbers import eigenvalue_text, rough, shortened, value_with_unit
from fmilin.output.report.page import Sheet
from fmilin.output.report.table import print_fact, print_names, print_remarks, simple_table, table_of

NAMES = 8  # shown of a list
MODES = 24
ROWS = 24  # of a chart


def show_orbit(orbit: PeriodicOrbit, page: Sheet) -> None:
    """Print the period, what turns, what was free, and how well the motion closes."""
    model, names = orbit.model, orbit.model.states.names
    print_fact(page, "Orbit", [shortened(model.info.name), f"period {orbit.period:.12g} s"])
    gained = [f"{shortened(names[i])} gains {value_with_unit(orbit.shift[i], model.states[i].unit)}"
              for i in np.flatnonzero(orbit.shift).tolist()]  # fmt: skip
    if gained:
        print_fact(page, "A period", gained[:NAMES])
    if passed := [f"{event.cause} at {event.time:.6g} s" for event in orbit.events]:
        print_fact(page, "Events", passed[:NAMES])
    print_fact(page, "Closure", [f"{orbit.closure:.2g} of the sizes of the states"])
    if orbit.free:
        print_fact(page, "Free", [f"{name} = {value:.9g}" for name, value in orbit.free.items()])


def show_periodic(periodic: PeriodicModel, page: Sheet) -> None:
    """Print what there is of a periodic model."""
    P, N = len(periodic.states), len(periodic.full_states)
    print_fact(page, "Model", [shortened(periodic.info.name), f"period {periodic.period:.12g} s"])
    print_fact(page, "Order", [f"{P} independent states out of {N}", f"{len(periodic.A)} phases"])
    print_names(page, periodic)
    print_fact(page, "A varies", [f"by {rough(100 * periodic.variation)} % over the period"])
    page.print()
    print_remarks(page, periodic.remarks)


def show_gain(gain: Any, page: Sheet) -> None:  # of the room beside this one
    """Print what gains along a motion make of it."""
    _, rows, columns = gain.gain.shape
    print_fact(page, "Gain", [f"{rows} x {columns} at {len(gain.gain)} phases", f"of {rough(np.abs(gain.gain).max())}"])
    show_floquet(gain.closed.floquet(), page)


def show_chart(chart: FloquetChart, page: Sheet) -> None:
    """Print where over its axes a motion is stable."""
    good, size = int(chart.ok.sum()), chart.ok.size
    print_fact(page, "Motion", [shortened(chart.name), f"{good} of {size} points", f"{int(chart.stable.sum())} stable"])
    page.print()
    rows = []
    for i in np.ndindex(chart.ok.shape):
        values = [f"{axis[k]:.6g}" for axis, k in zip(chart.axes.values(), i, strict=True)]
        verdict = "stable" if chart.stable[i] else "unstable" if chart.ok[i] else "no periodic motion"
        figures = [f"{chart.period[i]:.6g}", f"{chart.margin[i]:.6g}"] if chart.ok[i] else ["", ""]
        rows.append((*values, *figures, verdict))
    page.print(table_of((*chart.axes, "Period [s]", "Growth [1/s]", ""), rows, most=ROWS))


def show_floquet(floquet: Floquet, page: Sheet, orbit: PeriodicOrbit | None = None) -> None:
    """Print the orbit, if it is there, multipliers, exponents, the harmonics at which modes are seen, and stability."""
    if orbit is None:
        print_fact(page, "Motion", [shortened(floquet.name), f"period {floquet.period:.12g} s"])
    else:
        show_orbit(orbit, page)
        page.print()
    print_fact(page, "Stability", [floquet.verdict])
    errors = {name: rough(floquet.accuracy[name]) for name in ("multipliers", "exponents")}
    print_fact(page, "Accuracy", [f"multipliers {errors['multipliers']}", f"exponents {errors['exponents']}/s"])
    page.print()
    table = simple_table("Multiplier", "Exponent [1/s]", "Seen at [rad/s]", "Harmonic", "", columns="RRrrl")
    why = {k: text for text, k in floquet.unit.items()}
    shown = 0
    for k, exponent in enumerate(floquet.exponents):
        paired = bool(np.abs(floquet.exponents - exponent.conj()).min() <= 1e-9 * (1 + abs(exponent)))
        if paired and exponent.imag < 0:
            continue  # its conjugate has a line
        multiplier = eigenvalue_text(complex(floquet.multipliers[k]), pair=paired and exponent.imag > 0)
        seen = f"{floquet.frequencies[k]:.6g}" if np.isfinite(exponent) else ""
        text = eigenvalue_text(complex(exponent), pair=abs(exponent.imag) > 0) if np.isfinite(exponent) else "-inf"
        table.add_row(multiplier, text, seen, str(abs(int(floquet.largest_harmonics[k]))), why.get(k, ""))
        shown += 1
        if shown == MODES:
            break
    page.print(table)
    page.print()
    print_remarks(page, floquet.remarks)
