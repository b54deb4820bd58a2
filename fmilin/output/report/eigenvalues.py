"""Eigenvalues in the complex plane: the true ones, and what treating all states as independent makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import Mode
from fmilin.output.report.figures import COLORS, QUIET, UNSTABLE, gridded, headed_figure, plain, titled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Complex = NDArray[np.complex128]


def comparison_figure(true: Complex, naive: Complex, *, title: str, subtitle: str = "") -> Figure:
    """Return all eigenvalues in 1/s, true (P,) and naive (N,), and close up of those of no motion."""
    figure = headed_figure(title, subtitle, 10.0, 5.6, (0.945, 0.885))
    figure.subplots_adjust(left=0.085, right=0.975, bottom=0.205, top=0.765, wspace=0.28)
    overview, close_up = figure.subplots(1, 2)
    false = without(naive, true)
    scale = _draw(overview, true, naive, reach=_reach(np.concatenate([true, naive])))
    _draw(close_up, true, naive, reach=_reach(false))
    overview.set_title("All eigenvalues", fontsize=11, loc="left")
    close_up.set_title(f"Close up: the {len(false)} that belong to no motion", fontsize=11, loc="left")
    _say_where_the_close_up_is(overview, false / scale)
    handles, labels = overview.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, fontsize=10, frameon=False)
    return figure


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
        true.real, true.imag, "o", markersize=14, markerfacecolor="white", markeredgecolor=COLORS[0],
        markeredgewidth=2.4, zorder=2, linestyle="none", label=f"true: {len(true)} independent states",
    )  # fmt: skip
    axes.plot(
        naive.real, naive.imag, "x", markersize=7.5, color=COLORS[1], markeredgewidth=1.9, zorder=3, linestyle="none",
        label=f"naive: Jacobian of all {len(naive)} states",
    )  # fmt: skip
    unit = rf"$10^{{{power}}}$ " if power else ""
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    axes.set(xlabel=f"real part [{unit}1/s]", ylabel=f"imaginary part [{unit}rad/s]")
    gridded(axes)
    return scale


def _say_where_the_close_up_is(axes: Axes, false: Complex) -> None:
    if not len(false):
        return
    centre = false.mean()
    reach = axes.get_xlim()[1]
    text, position = f"{len(false)} more here", (centre.real - 0.85 * reach, centre.imag + 0.35 * reach)
    arrow = {"arrowstyle": "->", "color": COLORS[1], "shrinkB": 7, "connectionstyle": "arc3,rad=-0.15"}
    axes.annotate(text, (centre.real, centre.imag), position, color=COLORS[1], fontsize=10, arrowprops=arrow)


RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)  # damping ratios with a ray
SAME_MARK = 5e-3  # of half the width: nearer eigenvalues are one mark on paper, and their number is written beside it
CLOSE = 0.08  # eigenvalues within this part of the largest one are crowded: there is a second panel for them


def eigenvalue_figure(linear: LinearModel, naive: LinearModel | None = None) -> Figure:
    """Return the eigenvalues, of a sampled model log(z) / T; what only the naive Jacobian has, no motion, is grey."""
    true = _both(modes_of(linear))
    false = np.empty(0, np.complex128)
    if naive is not None:
        false = without(_both(naive.modes()), true)
    size = np.abs(np.concatenate((true, false)))
    crowded = size[size < CLOSE * np.max(size, initial=0.0)]
    panels = 2 if len(crowded) > 1 and crowded.max() > 0 else 1
    figure = titled_figure(f"Eigenvalues of {plain(linear.model.name, 60)}", 6.5 * panels, 5.6, None)
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
    s = np.array([m.eigenvalue for m in modes if np.isfinite(m.eigenvalue)], np.complex128)
    return np.concatenate((s, s[s.imag > 0].conj()))


def _panel(axes: Axes, true: Complex, false: Complex, reach: float) -> None:
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    rays(axes, reach, reach, reach)
    if len(false):
        style: dict[str, Any] = {"marker": "o", "markeredgecolor": "#80868b", "markerfacecolor": "#dadce0"}
        label = f"{len(false)} false ones: constraints counted as motions"
        axes.plot(false.real, false.imag, linestyle="none", markersize=7, zorder=3, label=label, **style)
    axes.plot(true.real, true.imag, "x", color=COLORS[0], markersize=9, markeredgewidth=2.2, linestyle="none",
              zorder=4, label=f"{len(true)} eigenvalues")  # fmt: skip
    for value, count in _repeated(true, reach):
        axes.annotate(f"× {count}", (value.real, value.imag), (7, 5), textcoords="offset points", fontsize=9,
                      color=COLORS[0])  # fmt: skip
    axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")


def _repeated(values: Complex, reach: float) -> Iterator[tuple[complex, int]]:
    """Yield where several eigenvalues are one mark, and how many."""
    left = values[np.abs(values) < reach]
    while len(left):
        same = np.abs(left - left[0]) < SAME_MARK * reach
        if (count := int(same.sum())) > 1:
            yield complex(left[same].mean()), count
        left = left[~same]


def rays(axes: Axes, left: float, right: float, height: float) -> None:
    """Draw the unstable half plane, and rays of equal damping in a box around the origin, labelled at its border."""
    axes.axvspan(0, right, color=UNSTABLE, zorder=0, label="unstable half plane")
    for ratio in _ratios(left / np.hypot(left, height)):
        up = np.sqrt(1 - ratio**2)
        length = 0.93 * min(left / ratio, height / up)
        for sign in (1, -1):
            axes.plot([0, -ratio * length], [0, sign * up * length], ":", color=QUIET, linewidth=0.8, zorder=1)
        axes.annotate(f"{ratio:g}", (-ratio * length, up * length), color=QUIET, fontsize=8, ha="right",
                      va="bottom", annotation_clip=True)  # fmt: skip
    axes.annotate("damping ratio", (0.01, 0.01), xycoords="axes fraction", color=QUIET, fontsize=8, va="bottom")
    axes.axhline(0, color=QUIET, linewidth=0.8, zorder=1)
    axes.axvline(0, color=QUIET, linewidth=0.8, zorder=1)
    gridded(axes)


def _ratios(corner: float) -> Sequence[float]:
    """Return the damping ratios of rays that fill a box whose corner has the ratio ``corner``."""
    if corner > RATIOS[1]:
        return RATIOS
    steps = [digit * 10.0**power for power in range(-9, 0) for digit in (1, 2, 5)]
    return [ratio for ratio in steps if corner / 8 < ratio < corner * 8]
