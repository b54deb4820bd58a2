"""Eigenvalues in the complex plane with rays of equal damping; those that belong to no motion are grey."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import Mode
from fmilin.output.report.eigenvalue_picture import without
from fmilin.output.report.figures import COLORS, QUIET, UNSTABLE, gridded, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["eigenvalue_figure", "modes_of", "rays"]

Complex = NDArray[np.complex128]

RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Damping ratios with a ray."""

CLOSE = 0.08
"""Eigenvalues within this part of the largest one are crowded: there is a second panel for them."""


def eigenvalue_figure(linear: LinearModel, naive: LinearModel | None = None) -> Figure:
    """Return the eigenvalues in the complex plane; of a sampled model log(z) / T.

    ``naive``: all states as if they were independent: what its Jacobian adds belongs to no motion, and is grey.
    """
    true = _both(modes_of(linear))
    false = np.empty(0, np.complex128)
    if naive is not None:
        false = without(_both(naive.modes()), true)
    size = np.abs(np.concatenate((true, false)))
    crowded = size[size < CLOSE * np.max(size, initial=0.0)]
    panels = 2 if len(crowded) > 1 and crowded.max() > 0 else 1
    figure = new_figure(6.5 * panels, 5.6, layout="constrained")
    figure.suptitle(f"Eigenvalues of {plain(linear.model.name, 60)}", x=0.01, ha="left", fontweight="bold")
    every = figure.subplots(1, panels, squeeze=False)[0]
    _panel(every[0], true, false, 1.15 * float(size.max(initial=0.0)) or 1.0)
    if panels > 1:
        _panel(every[1], true, false, 1.3 * float(crowded.max()))
        every[1].set_title(f"Close up: the {len(crowded)} slowest", loc="left", fontsize=10, color=QUIET)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def modes_of(linear: LinearModel) -> tuple[Mode, ...]:
    """Return the modes."""
    modes = linear.modes()
    if not modes:
        raise UsageError("The linear model has no states, so it has no eigenvalues to draw.")
    return modes


def _both(modes: Sequence[Mode]) -> Complex:
    """Return all finite eigenvalues, both of a pair."""
    s = np.array([m.eigenvalue for m in modes if np.isfinite(m.eigenvalue)], np.complex128)
    return np.concatenate((s, s[s.imag > 0].conj()))


def _panel(axes: Axes, true: Complex, false: Complex, reach: float) -> None:
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    rays(axes, reach)
    if len(false):
        look: dict[str, Any] = {
            "marker": "o",
            "markeredgecolor": "#80868b",
            "markerfacecolor": "#dadce0",
            "markersize": 7,
        }
        label = f"{len(false)} false ones: constraints counted as motions"
        axes.plot(false.real, false.imag, linestyle="none", zorder=3, label=label, **look)
    axes.plot(true.real, true.imag, "x", color=COLORS[0], markersize=9, markeredgewidth=2.2, linestyle="none",
              zorder=4, label=f"{len(true)} eigenvalues")  # fmt: skip
    axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")


def rays(axes: Axes, reach: float) -> None:
    """Draw the unstable half plane, and rays of equal damping in a square around the origin."""
    axes.axvspan(0, reach, color=UNSTABLE, zorder=0, label="unstable half plane")
    for ratio in RATIOS:
        along, up = -0.9 * ratio * reach, 0.9 * np.sqrt(1 - ratio**2) * reach
        for sign in (1, -1):
            axes.plot([0, along], [0, sign * up], ":", color=QUIET, linewidth=0.8, zorder=1)
        axes.annotate(f"{ratio:g}", (along, up), color=QUIET, fontsize=8, ha="right",
                      va="bottom", annotation_clip=True)  # fmt: skip
    axes.annotate("damping ratio", (0.01, 0.99), xycoords="axes fraction", color=QUIET, fontsize=8, va="top")
    axes.axhline(0, color=QUIET, linewidth=0.8, zorder=1)
    axes.axvline(0, color=QUIET, linewidth=0.8, zorder=1)
    gridded(axes)
