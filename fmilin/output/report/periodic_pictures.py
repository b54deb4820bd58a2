"""Pictures of periodic motions: multipliers beside the unit circle, modes over the period with their harmonics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.motion.periodic.floquet import Floquet
from fmilin.output.report.figures import COLORS, DASHES, QUIET, UNSTABLE, gridded, titled_figure
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
            style = {"color": COLORS[i % len(COLORS)], "linestyle": DASHES[i // len(COLORS) % len(DASHES)]}
            row[0].plot(phases, mode[:, i].real, label=shortened(floquet.states.names[i]), **style)
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
