"""Damping lost in a co-simulation, and the largest multiplier, over the communication step."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fmilin.connected.cosimulation import Cosimulation
from fmilin.ground.errors import FmilinError
from fmilin.output.report.cosimulation_table import limit_in_words, master_in_words
from fmilin.output.report.eigenvalue_picture import NAIVE, QUIET, TRUE, UNSTABLE
from fmilin.output.report.figures import new_figure, open_sides, rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["cosimulation_picture"]

STEPS = 60
MOST_MODES = 6
"""That are drawn: those with the least damping."""


def cosimulation_picture(found: Cosimulation, suffix: str = ".png") -> bytes:
    """Return a picture of two panels over the step: damping ratios of the modes, and the largest |z|."""
    figure = new_figure(10.0, 5.2)
    figure.subplots_adjust(left=0.085, right=0.975, bottom=0.13, top=0.8, wspace=0.28)
    figure.text(0.02, 0.945, f"Damping lost: {found.model.info.name}", fontsize=15, fontweight="bold", va="center")
    subtitle = f"{master_in_words(found)} master, steps of {found.step:g} s; {limit_in_words(found)}"
    figure.text(0.02, 0.885, subtitle[:120], fontsize=10.5, color=QUIET, va="center")
    limit = _limit(found)
    marked = found.step if limit is None else limit
    steps = np.geomspace(0.05 * min(marked, found.step), 2.0 * max(marked, found.step), STEPS)
    seen = [replace(found, step=float(h)) for h in steps]
    ratios, growth = figure.subplots(1, 2)
    _damping(ratios, found, steps, seen)
    growth.semilogx(steps, [s.growth for s in seen], color=TRUE)
    growth.axhspan(1.0, max(1.001, growth.get_ylim()[1]), color=UNSTABLE, zorder=0)
    growth.set(ylabel="largest |z|")
    for axes in (ratios, growth):
        axes.axvline(found.step, color=QUIET, linestyle=":", linewidth=1.4, label="this step")
        if limit is not None:
            axes.axvline(limit, color=NAIVE, linewidth=1.2, label="largest stable step")
        axes.set(xlabel="communication step [s]", xlim=(steps[0], steps[-1]))
        axes.legend(frameon=False, fontsize=9, loc="best")
        open_sides(axes)
        axes.grid(visible=True, color="#dcdfe2", linewidth=0.7)
        axes.set_axisbelow(True)
    return rendered(figure, suffix)


def _limit(found: Cosimulation) -> float | None:
    try:
        limit = found.largest_step
    except FmilinError:
        return None
    return None if limit is None or math.isinf(limit) else limit


def _damping(axes: Axes, found: Cosimulation, steps: np.ndarray, seen: list[Cosimulation]) -> None:
    """Draw the damping ratio of the oscillating modes; each begins at that of the coupled plant."""
    oscillating = [m for m in found.modes if m.plant.imag > 0]
    chosen = sorted(oscillating, key=lambda m: m.damping[0])[:MOST_MODES]
    for mode in chosen:
        at_each = [next((m for m in s.modes if m.plant == mode.plant and m.resolved), None) for s in seen]
        ratios = [np.nan if m is None else m.damping[1] for m in at_each]
        (line,) = axes.semilogx(steps, ratios, label=f"mode of {abs(mode.plant):.3g} rad/s")
        axes.axhline(mode.damping[0], color=line.get_color(), linewidth=0.8, linestyle="--")
    if not chosen:
        axes.text(0.5, 0.5, "no mode oscillates", transform=axes.transAxes, ha="center", color=QUIET)
        axes.set_xscale("log")
    axes.axhline(0.0, color=QUIET, linewidth=0.8)
    axes.set(ylabel="damping ratio (dashed: coupled plant)")
