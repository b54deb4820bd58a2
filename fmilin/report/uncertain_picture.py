"""The eigenvalues of a model with uncertain parameters: nominal, with their bars, and of samples and corners."""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING

import numpy as np

from fmilin.report.figures import COLORS, UNSTABLE, create_titled_figure, draw_grid, plain
from fmilin.report.linear_pictures import shade_outside_unit_circle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.trimming.uncertainty import Uncertain

MAX_DRAWN_CORNERS = 64
MARGIN = 0.12  # around the eigenvalues, in parts of their extent


def draw_uncertain(uncertain: Uncertain, n: int = 200, seed: int = 0) -> Figure:
    """Return the eigenvalues at the middle of the box with first-order bars, of ``n`` samples, and of corners."""
    nominal, bars = uncertain.nominal.eigenvalues(), uncertain.eigenvalue_bars()
    sampled = np.concatenate([linear.eigenvalues() for linear in uncertain.sample(n, seed)] or [nominal[:0]])
    corners = [dict(zip(uncertain.box, values, strict=True)) for values in islice(product(*uncertain.box.values()),
                                                                                 MAX_DRAWN_CORNERS)]  # fmt: skip
    at_corners = np.concatenate([uncertain.at(values).eigenvalues() for values in corners])
    box = ", ".join(f"{plain(name)} {low:.4g} to {high:.4g}" for name, (low, high) in islice(uncertain.box.items(), 4))
    omitted = f" and {len(uncertain.box) - 4} more" if len(uncertain.box) > 4 else ""
    figure = create_titled_figure(f"Eigenvalues of {plain(uncertain.nominal.model.name, 40)}", 8.0, 6.2)
    axes = figure.subplots()
    axes.set_title(f"{box}{omitted}", fontsize=9.5, loc="left")
    axes.plot(sampled.real, sampled.imag, ".", color=COLORS[4], markersize=4, label=f"{n} samples", zorder=2)
    axes.plot(at_corners.real, at_corners.imag, "s", color=COLORS[1], markerfacecolor="none", markersize=6,
              label=f"{len(corners)} corners", zorder=3)  # fmt: skip
    axes.plot(nominal.real, nominal.imag, "x", color=COLORS[6], markersize=9, markeredgewidth=2,
              label="middle, with first-order bars", zorder=4)  # fmt: skip
    axes.errorbar(nominal.real, nominal.imag, xerr=bars.real, yerr=bars.imag, fmt="none", ecolor=COLORS[6], capsize=3)
    everything = np.concatenate([nominal - bars, nominal + bars, sampled, at_corners])
    if uncertain.nominal.sample_time > 0:
        shade_outside_unit_circle(axes)
        axes.set(xlabel="real part of z", ylabel="imaginary part of z", aspect="equal")
    else:
        low, high = min(float(everything.real.min()), 0.0), max(float(everything.real.max()), 0.0)
        reach = max(high - low, 0.1 * float(np.abs(everything.imag).max())) or 1.0
        axes.set_xlim(low - MARGIN * reach, high + MARGIN * reach)
        axes.axvspan(0.0, high + MARGIN * reach, color=UNSTABLE, zorder=0, label="unstable half plane")
        axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")
    draw_grid(axes)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure
