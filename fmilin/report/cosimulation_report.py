"""The effect of a co-simulation on the damping of each mode: a table, and a picture over the communication step."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fmilin.composition.cosimulation import Cosimulation, CoupledMode
from fmilin.errors import FmilinError
from fmilin.report.facts import print_fact
from fmilin.report.figures import COLORS, QUIET, UNSTABLE, create_headed_figure, draw_grid
from fmilin.report.numbers import eigenvalue_text
from fmilin.support.tables import build_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fmilin.support.table_repr import Sheet


def show_cosimulation(cosimulation: Cosimulation, page: Sheet) -> None:
    """Print one row for each mode of the coupled plant, then what is stable."""
    print_fact(page, "System", [cosimulation.model.info.name, f"{len(cosimulation.model.members)} members"])
    print_fact(page, "Master", [master_in_words(cosimulation), f"steps of {cosimulation.step:g} s"])
    memories = len(cosimulation.linear.states) - len(cosimulation.plant.states)
    memory_notes = [f"{memories} of them held outputs"] if memories else []
    print_fact(page, "Order", [f"{len(cosimulation.linear.states)} states", *memory_notes])
    page.print()
    heads = ("Coupled plant [1/s]", "Co-simulation [1/s]", "Damping ratio", "then", "lost")
    page.print(build_table(heads, map(_row, cosimulation.modes)))
    page.print()
    stable = "yes" if cosimulation.is_stable else "no"
    print_fact(page, "Stable", [f"{stable}: the largest |z| is {cosimulation.growth:.9g}"])
    print_fact(page, "Limit", find_step_limit(cosimulation)[1])
    for remark in cosimulation.plant.warnings:
        if not remark.is_information:
            print_fact(page, remark.heading, str(remark))


def master_in_words(cosimulation: Cosimulation) -> str:
    """Return the master's kind, and its order."""
    if cosimulation.master.kind == "jacobi":
        return "Jacobi"
    return f"Gauss-Seidel, in the order {', '.join(cosimulation.master.order or cosimulation.model.members)}"


def find_step_limit(cosimulation: Cosimulation) -> tuple[float | None, str]:
    """Return the largest stable step in seconds, None if it is not drawn, and a sentence about it."""
    try:
        limit = cosimulation.largest_step
    except FmilinError as error:
        return None, str(error)
    if limit is None:
        return None, "no step is stable, however short: this coupling removes more damping than the plant has"
    if math.isinf(limit):
        return None, "every tested step is stable"
    return limit, f"stable up to steps of {limit:.4g} s"


def _row(mode: CoupledMode) -> tuple[str, ...]:
    before, after = mode.damping
    pair = mode.plant.imag > 0
    if not mode.resolved:
        return eigenvalue_text(mode.plant, pair=pair), "faster than the step", f"{before:.4g}", "", ""
    apparent = eigenvalue_text(mode.apparent, pair=pair and mode.apparent.imag > 0)
    return eigenvalue_text(mode.plant, pair=pair), apparent, f"{before:.4g}", f"{after:.4g}", f"{before - after:.2g}"


STEPS = 60
MAX_MODES = 6  # that are drawn: those with the least damping
MODE_COLORS = COLORS[:1] + COLORS[2:]  # the second one marks the largest stable step


def cosimulation_figure(cosimulation: Cosimulation) -> Figure:
    """Return two panels over the step: damping ratios of the modes, and the largest ``|z|``."""
    limit, words = find_step_limit(cosimulation)
    subtitle = f"{master_in_words(cosimulation)} master, steps of {cosimulation.step:g} s; {words}"[:120]
    figure = create_headed_figure(f"Damping lost: {cosimulation.model.info.name}", subtitle, 10.0, 5.2, (0.945, 0.885))
    figure.subplots_adjust(left=0.085, right=0.975, bottom=0.13, top=0.8, wspace=0.28)
    marked = cosimulation.step if limit is None else limit
    steps = np.geomspace(0.05 * min(marked, cosimulation.step), 2.0 * max(marked, cosimulation.step), STEPS)
    cosimulations = [replace(cosimulation, step=float(h)) for h in steps]
    ratios, growth = figure.subplots(1, 2)
    _damping(ratios, cosimulation, steps, cosimulations)
    growth.semilogx(steps, [s.growth for s in cosimulations], color=COLORS[0])
    growth.axhspan(1.0, max(1.001, growth.get_ylim()[1]), color=UNSTABLE, zorder=0)
    growth.set(ylabel="largest |z|")
    for axes in (ratios, growth):
        axes.axvline(cosimulation.step, color=QUIET, linestyle=":", linewidth=1.4, label="this step")
        if limit is not None:
            axes.axvline(limit, color=COLORS[1], linewidth=1.2, label="largest stable step")
        axes.set(xlabel="communication step [s]", xlim=(steps[0], steps[-1]))
        axes.legend(frameon=False, fontsize=9, loc="best")
        draw_grid(axes)
    return figure


def _damping(axes: Axes, cosimulation: Cosimulation, steps: np.ndarray, cosimulations: list[Cosimulation]) -> None:
    """Draw the damping ratio of the oscillating modes; each begins at that of the coupled plant."""
    oscillating = [m for m in cosimulation.modes if m.plant.imag > 0]
    chosen = sorted(oscillating, key=lambda m: m.damping[0])[:MAX_MODES]
    for mode, color in zip(chosen, MODE_COLORS, strict=False):
        at_each = [next((m for m in s.modes if m.plant == mode.plant and m.resolved), None) for s in cosimulations]
        ratios = [np.nan if m is None else m.damping[1] for m in at_each]
        axes.semilogx(steps, ratios, color=color, label=f"mode of {abs(mode.plant):.3g} rad/s")
        axes.axhline(mode.damping[0], color=color, linewidth=0.8, linestyle="--")
    if not chosen:
        axes.text(0.5, 0.5, "no mode oscillates", transform=axes.transAxes, ha="center", color=QUIET)
        axes.set_xscale("log")
    axes.axhline(0.0, color=QUIET, linewidth=0.8)
    axes.set(ylabel="damping ratio (dashed: coupled plant)")
