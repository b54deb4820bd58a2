"""A reduced linear model beside the full one: largest gains, their difference, and the bound that it stays below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction.comparison import difference, error_bound, in_sizes
from fmilin.output.report.figures import COLORS, QUIET, gridded, plain, titled_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.linear_model.reduction.gramians import StateSpace

POINTS, DECADES = 1200, 1.0  # of the frequencies, and how far beyond the slowest and the fastest mode


def reduction_figure(reduced: LinearModel, full: LinearModel, low: float = 0.0, high: float = float("inf")) -> Figure:
    """Return largest singular values over frequency of both and of their difference, with its bound in the band."""
    peak, between = error_bound(full, reduced, low, high), difference(full, reduced)
    speeds = np.abs(full.eigenvalues())
    speeds = speeds[speeds > 1e-9 * speeds.max(initial=0.0)] if len(speeds) else np.ones(1)
    w = np.geomspace(speeds.min() / 10**DECADES, speeds.max() * 10**DECADES, POINTS)
    orders = f"order {len(reduced.states)} for {len(full.states)}"
    figure = titled_figure(f"Reduced linear model: {plain(full.model.name, 40)} ({orders})", 8.0, 5.0)
    axes = figure.subplots()
    curves: list[tuple[StateSpace, str, dict[str, Any]]] = [
        (in_sizes(full, full), "full", {"color": COLORS[0], "linewidth": 2.4}),
        (in_sizes(reduced, full), "reduced", {"color": COLORS[1], "linestyle": (0, (4, 2))}),
        (between, "difference", {"color": COLORS[2]}),
    ]
    for system, label, style in curves:
        gains = np.array([system.gain(frequency) for frequency in w])
        if gains.max() > 0:
            axes.loglog(w, np.where(gains > 0, gains, np.nan), label=label, **style)
    if 0 < peak.bound < np.inf:
        band = max(low, w[0]), min(high, w[-1])
        axes.plot(band, [peak.bound] * 2, color=QUIET, linestyle=":", label=f"bound {peak.bound:.3g}")
    axes.set(xlabel="frequency [rad/s]", ylabel="largest gain, in nominal values")
    axes.legend(fontsize=9)
    gridded(axes)
    return figure
