"""Pictures of periodic motions: multipliers beside the unit circle, modes over the period with their harmonics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fmilin.families.periodic.chart import FloquetChart
from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.motion.periodic.floquet import Floquet
from fmilin.output.report.family_pictures import rays_of_orders
from fmilin.output.report.figures import COLORS, QUIET, UNSTABLE, gridded, line_style, over_one_axis, titled_figure
from fmilin.output.report.numbers import rough, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 4  # modes, unless they are named
SEEN = 0.02  # part of a mode below which states and harmonics are left out


def multiplier_figure(floquet: Floquet) -> Figure:
    """Return the multipliers in the complex plane: what lies outside the circle grows."""
    figure = titled_figure(f"{shortened(floquet.name)}: multipliers of a period of {floquet.period:.6g} s", 6.4, 6.2)
    axes = figure.add_subplot()
    angle = np.linspace(0, 2 * np.pi, 361)
    reach = 1.15 * max(1.0, float(np.abs(floquet.multipliers).max(initial=0.0)))
    axes.set_facecolor(UNSTABLE)
    axes.fill(np.cos(angle), np.sin(angle), color="white", zorder=0)
    axes.plot(np.cos(angle), np.sin(angle), color=QUIET, linewidth=1)
    own = [k for k in range(len(floquet.multipliers)) if k not in floquet.unit.values()]
    grows = np.abs(floquet.multipliers) > 1 + 10 * floquet.accuracy["multipliers"] + 1e-9
    for marks, color, label in (
        ([k for k in own if not grows[k]], COLORS[0], "dies out, or stays"),
        ([k for k in own if grows[k]], COLORS[1], "grows"),
        (sorted(floquet.unit.values()), COLORS[2], "symmetry"),
    ):
        if marks:
            mu = floquet.multipliers[marks]
            axes.plot(mu.real, mu.imag, "o", color=color, markersize=7, label=label, zorder=3)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part", ylabel="imaginary part")
    gridded(axes)
    axes.legend(loc="lower left", fontsize=9)
    return figure


def floquet_mode_figure(floquet: Floquet, numbers: Sequence[int] | None = None) -> Figure:
    """Return modes over the period, slowest decay first, and at which frequencies they are seen.

    ``numbers`` count from 1, as the lines of the table do.
    """
    chosen = _chosen(floquet, numbers)
    figure = titled_figure(
        f"{shortened(floquet.name)}: modes over a period of {floquet.period:.6g} s", 9.5, 2.3 * len(chosen) + 0.6
    )
    grid = figure.subplots(len(chosen), 2, squeeze=False, width_ratios=(3, 2))
    phases = np.arange(len(floquet.modes) + 1) / len(floquet.modes)
    order = np.argsort(floquet.harmonics)
    for row, k in zip(grid, chosen, strict=True):
        mode = np.concatenate((floquet.modes[:, :, k], floquet.modes[:1, :, k]))
        size = np.abs(mode).max(axis=0)
        for i in np.flatnonzero(size > SEEN * size.max(initial=0.0))[:8]:
            row[0].plot(phases, mode[:, i].real, label=shortened(floquet.states.names[i]), **line_style(int(i)))
        exponent = complex(floquet.exponents[k])
        row[0].set_ylabel(f"mode {k + 1}\n{rough(exponent.real)} {exponent.imag:+.3g} i", fontsize=9)
        row[0].legend(fontsize=8, loc="upper right")
        share = floquet.participation[order, k]
        visible = share > SEEN
        at = exponent.imag + 2 * np.pi / floquet.period * floquet.harmonics[order]
        row[1].vlines(at[visible], 0, share[visible], color=COLORS[0], linewidth=3)
        row[1].set(ylim=(0, 1.05), ylabel="share")
        for axes in row:
            gridded(axes)
    grid[-1][0].set_xlabel("phase")
    grid[-1][1].set_xlabel("frequency [rad/s]")
    return figure


def _chosen(floquet: Floquet, numbers: Sequence[int] | None) -> list[int]:
    count = len(floquet.exponents)
    if numbers is not None:
        if beyond := [n for n in numbers if not 1 <= n <= count]:
            raise UsageError(f"There is no mode {beyond[0]}: there are {count}, counted from 1.")
        return [n - 1 for n in numbers]
    one_of_pairs = [k for k in range(count) if floquet.exponents[k].imag >= 0 and np.isfinite(floquet.exponents[k])]
    return one_of_pairs[:SHOWN]


def campbell_figure(chart: FloquetChart) -> Figure:
    """Return frequencies at which modes are seen over one axis, rays of harmonics, and growth below."""
    if len(chart.axes) != 1:
        raise UsageError(f"Campbell's diagram is drawn over one axis, and {len(chart.axes)} vary here.")
    ((name, axis),) = chart.axes.items()
    title = f"{shortened(chart.name)}: Campbell diagram of Floquet's exponents"
    figure, frequency, growth = over_one_axis(title, (3, 2))
    visible = [k for k in range(chart.exponents.shape[-1]) if _is_first_of_pair(chart, k)]
    tolerance = 1e-9 * np.nanmax(np.abs(chart.exponents[np.isfinite(chart.exponents)]), initial=1.0)
    for drawn, k in enumerate(visible):
        frequency.plot(axis, chart.frequencies[:, k], **line_style(drawn))
        growth.plot(axis, chart.exponents[:, k].real, **line_style(drawn))
        grows = chart.exponents[:, k].real > tolerance
        frequency.plot(axis[grows & ~chart.stable], chart.frequencies[grows & ~chart.stable, k], "o", color=COLORS[1],
                       markerfacecolor="white", markersize=5)  # fmt: skip
    top = 1.1 * float(np.nanmax(chart.frequencies[:, visible], initial=1e-300))
    rays_of_orders(frequency, axis, 2 * np.pi / chart.period, range(1, 7), top)
    for axes in (frequency, growth):
        for low, high in _unstable_stretches(axis, chart.ok & ~chart.stable):
            axes.axvspan(low, high, color=UNSTABLE, zorder=0)
    frequency.set(ylim=(0, top), ylabel="seen at [rad/s]")
    growth.axhline(0, color=QUIET, linewidth=0.8)
    growth.set(ylabel="growth [1/s]", xlabel=shortened(name))
    return figure


def _is_first_of_pair(chart: FloquetChart, k: int) -> bool:
    """Whether a mode is drawn: of conjugate ones, whose frequencies and growth are the same, the first."""
    rows = [(chart.exponents[:, j].real, chart.frequencies[:, j]) for j in range(k + 1)]
    size = 1e-6 * (1 + np.nanmax(np.abs(rows[k][1]), initial=0.0))
    return not any(
        np.nanmax(np.abs(np.concatenate((rows[j][0] - rows[k][0], rows[j][1] - rows[k][1]))), initial=0.0) <= size
        for j in range(k)
    )


def _unstable_stretches(axis: FloatArray, unstable: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Return where the motion is unstable, half a step beyond its points."""
    middle = np.concatenate((axis[:1], (axis[1:] + axis[:-1]) / 2, axis[-1:]))
    return [(float(middle[k]), float(middle[k + 1])) for k in np.flatnonzero(unstable)]


def stability_figure(chart: FloquetChart) -> Figure:
    """Return where over two axes the motion is stable, and how fast deviations grow elsewhere."""
    if len(chart.axes) != 2:
        raise UsageError(f"A stability chart is drawn over two axes, and {len(chart.axes)} vary here.")
    (first, x), (second, y) = chart.axes.items()
    figure = titled_figure(f"{shortened(chart.name)}: stability chart", 8.0, 6.0)
    axes = figure.add_subplot()
    growth = np.where(chart.ok & ~chart.stable, chart.margin, np.nan)
    axes.set_facecolor("white")
    mesh = axes.pcolormesh(x, y, growth.T, cmap="OrRd", shading="nearest", vmin=0.0, rasterized=True)
    if chart.stable.any() and (chart.ok & ~chart.stable).any() and min(chart.stable.shape) > 1:
        axes.contour(x, y, np.where(chart.stable, 0.0, 1.0).T, levels=[0.5], colors=[COLORS[0]], linewidths=1.2)
    if not chart.ok.all():
        i, j = np.nonzero(~chart.ok)
        axes.plot(x[i], y[j], "x", color=QUIET, markersize=4, label="no periodic motion")
        axes.legend(loc="upper right", fontsize=9)
    figure.colorbar(mesh, ax=axes, label="growth [1/s]")
    axes.set(xlabel=shortened(first), ylabel=shortened(second))
    return figure
