"""Eigenvalues in the complex plane: the true ones, and what treating all states as independent makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fmilin.output.report.figures import new_figure, open_sides, png

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["eigenvalue_picture", "without"]

Complex = NDArray[np.complex128]

TRUE, NAIVE, QUIET, UNSTABLE = "#0b5394", "#c0392b", "#5f6368", "#fbeceb"


def eigenvalue_picture(true: Complex, naive: Complex, *, title: str, subtitle: str = "") -> bytes:
    """Return a PNG picture of two panels: all eigenvalues, and close up those that belong to no motion.

    ``true`` (P,): in 1/s, of the model in independent coordinates: open circles. ``naive`` (N,): in 1/s, of the
    Jacobian of all states: crosses.
    """
    figure = new_figure(10.0, 5.6)
    figure.subplots_adjust(left=0.085, right=0.975, bottom=0.205, top=0.765, wspace=0.28)
    figure.text(0.02, 0.945, title, fontsize=15, fontweight="bold", va="center")
    figure.text(0.02, 0.885, subtitle, fontsize=10.5, color=QUIET, va="center")
    overview, close_up = figure.subplots(1, 2)
    false = without(naive, true)
    scale = _draw(overview, true, naive, reach=_reach(np.concatenate([true, naive])))
    _draw(close_up, true, naive, reach=_reach(false))
    overview.set_title("All eigenvalues", fontsize=11, loc="left")
    close_up.set_title(f"Close up: the {len(false)} that belong to no motion", fontsize=11, loc="left")
    _say_where_the_close_up_is(overview, false / scale)
    handles, labels = overview.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, fontsize=10, frameon=False)
    return png(figure)


def without(naive: Complex, true: Complex) -> Complex:
    """Return ``naive`` without the entry nearest to each of ``true``: what the naive Jacobian adds."""
    left = list(naive)
    for value in true:
        if left:
            left.pop(int(np.argmin(np.abs(np.array(left) - value))))
    return np.array(left, dtype=np.complex128)


def _reach(values: Complex) -> float:
    return 1.25 * float(np.max(np.abs(values), initial=0.0)) or 1.0


def _draw(axes: Axes, true: Complex, naive: Complex, *, reach: float) -> float:
    """Show what lies in a square around the origin; return the power of ten that all numbers were divided by."""
    power = int(np.floor(np.log10(reach)))
    power = 0 if -2 <= power <= 3 else power
    scale = 10.0**power
    true, naive, reach = true / scale, naive / scale, reach / scale
    axes.axvspan(0, reach, color=UNSTABLE, zorder=0, label="unstable half plane")
    axes.axhline(0, color=QUIET, linewidth=0.8, zorder=1)
    axes.axvline(0, color=QUIET, linewidth=0.8, zorder=1)
    axes.plot(
        true.real, true.imag, "o", markersize=14, markerfacecolor="white", markeredgecolor=TRUE, markeredgewidth=2.4,
        zorder=2, linestyle="none", label=f"true: {len(true)} independent states",
    )  # fmt: skip
    axes.plot(
        naive.real, naive.imag, "x", markersize=7.5, color=NAIVE, markeredgewidth=1.9, zorder=3, linestyle="none",
        label=f"naive: Jacobian of all {len(naive)} states",
    )  # fmt: skip
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    unit = rf"$10^{{{power}}}$ " if power else ""
    axes.set_xlabel(f"real part [{unit}1/s]")
    axes.set_ylabel(f"imaginary part [{unit}rad/s]")
    axes.grid(visible=True, color="#dcdfe2", linewidth=0.7)
    axes.set_axisbelow(True)
    open_sides(axes)
    return scale


def _say_where_the_close_up_is(axes: Axes, false: Complex) -> None:
    if not len(false):
        return
    centre = false.mean()
    reach = axes.get_xlim()[1]
    axes.annotate(
        f"{len(false)} more here",
        xy=(centre.real, centre.imag),
        xytext=(centre.real - 0.85 * reach, centre.imag + 0.35 * reach),
        color=NAIVE,
        fontsize=10,
        arrowprops={"arrowstyle": "->", "color": NAIVE, "shrinkB": 7, "connectionstyle": "arc3,rad=-0.15"},
    )
