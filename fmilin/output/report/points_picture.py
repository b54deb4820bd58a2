"""Where the rests of a model are, and which of them stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fmilin.output.report.figures import COLORS, QUIET, gridded, labelled, titled_figure
from fmilin.points.many_starts import OperatingPoints

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def points_figure(points: OperatingPoints, x: str | None, y: str | None) -> Figure:
    """Draw rests over two states, those that stay filled, and where the searches started."""
    signals = points.signals
    values = np.array([point.states for point in points])
    widest = [int(i) for i in np.argsort(-np.ptp(values, axis=0) / signals.scales(), kind="stable")]
    i = widest[0] if x is None else signals.index_of(x, "a state of the model")
    others = [k for k in widest if k != i] or [i]
    j = others[0] if y is None else signals.index_of(y, "a state of the model")
    figure = titled_figure(f"{len(points)} rests, {len(points.stable)} of them stay", 7.0, 5.0)
    axes = figure.subplots()
    axes.plot(points.starts[:, i], points.starts[:, j], ".", color=QUIET, alpha=0.35, markersize=4, label="starts")
    stays = np.array([point.report.is_stable for point in points])
    for some, face, label in ((stays, COLORS[0], "stays"), (~stays, "white", "does not stay")):
        if some.any():
            axes.plot(
                values[some, i], values[some, j], "o", markersize=9, markeredgewidth=1.8, linestyle="none",
                markerfacecolor=face, markeredgecolor=COLORS[0] if face != "white" else COLORS[1], label=label,
            )  # fmt: skip
    axes.set_xlabel(labelled(signals[i]))
    axes.set_ylabel(labelled(signals[j]))
    gridded(axes)
    axes.legend(frameon=False)
    return figure
