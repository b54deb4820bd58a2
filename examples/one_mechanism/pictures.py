"""The picture: one complex plane per source, with fmilin's eigenvalues and the engine's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

__all__ = ["draw"]

BLUE, ORANGE, QUIET = "#0072b2", "#d55e00", "#5f6368"
Spectrum = NDArray[np.complex128]
TITLES = {"four_bar": "four-bar linkage", "spatial": "two loops in space"}


def draw(found: Mapping[str, Sequence[tuple[str, Spectrum, Spectrum]]], file: Path) -> None:
    """Write a row of complex planes per linkage: source, fmilin's eigenvalues, the engine's own."""
    columns = max(len(rows) for rows in found.values())
    figure = Figure(figsize=(2.45 * columns, 6.6))
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.075, right=0.985, bottom=0.085, top=0.8, wspace=0.12, hspace=0.28)
    figure.text(0.02, 0.955, "One mechanism, every source", fontsize=15, fontweight="bold", va="center")
    figure.text(
        0.02, 0.912,
        "Eigenvalues of two linkages with one degree of freedom each, and how many. Real axis: symmetric, logarithmic.",
        fontsize=10.5, color=QUIET, va="center",
    )  # fmt: skip
    planes = figure.subplots(len(found), columns, sharey="row", squeeze=False)
    for line, (name, rows) in zip(planes, found.items(), strict=True):
        for axes, (source, ours, own) in zip(line, rows, strict=True):
            axes.plot(own.real, own.imag, "x", color=ORANGE, markersize=7, label="the engine's own linear model")
            axes.plot(ours.real, ours.imag, "o", color=BLUE, markersize=11, markerfacecolor="none",
                      markeredgewidth=1.8, label="fmilin")  # fmt: skip
            axes.set_xscale("symlog", linthresh=1e-2, linscale=0.6)
            axes.set_xlim(-300, 300)
            axes.set_xticks([-100, -1, 0, 1, 100])
            axes.minorticks_off()
            axes.axhline(0, color=QUIET, linewidth=0.6)
            axes.axvline(0, color=QUIET, linewidth=0.6)
            axes.set_title(f"{source}: {len(ours)} and {len(own)}", fontsize=10.5, loc="left")
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        limit = 1.35 * max(abs(ours.imag).max() for _, ours, _ in rows)
        line[0].set_ylim(-limit, limit)
        line[0].set_ylabel(f"{TITLES.get(name, name)}\nimaginary part [rad/s]")
    for axes in planes[-1]:
        axes.set_xlabel("real part [1/s]")
    handles, labels = planes[0][0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="upper right", bbox_to_anchor=(0.985, 0.975), frameon=False, ncols=2)
    figure.savefig(file, dpi=110)
