"""Damping lost in a co-simulation: where each mode goes, and the largest multiplier over the step."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fmilin.composition.cosimulation import Cosimulation
from fmilin.errors import FmilinError
from fmilin.report.cosimulation_table import limit_in_words, master_in_words
from fmilin.report.eigenvalue_picture import NAIVE, QUIET, TRUE, UNSTABLE
from fmilin.report.figures import new_figure, open_sides, png

__all__ = ["cosimulation_picture"]

STEPS = 60


def cosimulation_picture(found: Cosimulation) -> bytes:
    """Return a PNG picture of two panels: eigenvalues of plant and co-simulation, growth per second over the step."""
    figure = new_figure(10.0, 5.2)
    figure.subplots_adjust(left=0.085, right=0.975, bottom=0.13, top=0.8, wspace=0.28)
    figure.text(0.02, 0.945, f"Damping lost: {found.model.info.name}", fontsize=15, fontweight="bold", va="center")
    subtitle = f"{master_in_words(found)} master, steps of {found.step:g} s; {limit_in_words(found)}"
    figure.text(0.02, 0.885, subtitle[:120], fontsize=10.5, color=QUIET, va="center")
    plane, curve = figure.subplots(1, 2)
    modes = [m for m in found.modes if m.resolved and np.isfinite(m.seen)]
    before, after = np.array([m.plant for m in modes]), np.array([m.seen for m in modes])
    reach = 1.15 * max(1e-12, float(np.max(np.abs([*before.real, *after.real]), initial=0.0)))
    plane.axvspan(0, reach, color=UNSTABLE, zorder=0)
    plane.axvline(0, color=QUIET, linewidth=0.8)
    for a, b in zip(before, after, strict=True):
        plane.annotate("", (b.real, b.imag), (a.real, a.imag), arrowprops={"arrowstyle": "->", "color": QUIET})
    plane.plot(
        before.real,
        before.imag,
        "o",
        markersize=10,
        markerfacecolor="white",
        markeredgecolor=TRUE,
        label="coupled plant",
    )
    plane.plot(after.real, after.imag, "x", markersize=8, color=NAIVE, markeredgewidth=1.9, label="co-simulation")
    plane.set(xlim=(-reach, reach), xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")
    plane.legend(frameon=False, fontsize=9)
    _growth(curve, found)
    for axes in (plane, curve):
        open_sides(axes)
        axes.grid(visible=True, color="#dcdfe2", linewidth=0.7)
        axes.set_axisbelow(True)
    return png(figure)


def _growth(axes, found: Cosimulation) -> None:  # type: ignore[no-untyped-def]
    try:
        limit = found.largest_step
    except FmilinError:
        limit = None
    marked = limit if limit is not None and math.isfinite(limit) else found.step
    steps = np.geomspace(0.05 * min(marked, found.step), 2.0 * max(marked, found.step), STEPS)
    axes.semilogx(steps, [replace(found, step=float(h)).growth for h in steps], color=TRUE)
    axes.axhline(1.0, color=QUIET, linewidth=0.8)
    axes.axvline(found.step, color=QUIET, linestyle=":", linewidth=1.2, label="this step")
    if limit is not None and math.isfinite(limit):
        axes.axvline(limit, color=NAIVE, linewidth=1.2, label="largest stable step")
    axes.set(xlabel="communication step [s]", ylabel="largest |z|")
    axes.legend(frameon=False, fontsize=9)
