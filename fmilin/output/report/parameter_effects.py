"""Which parameter moves which mode: the numbers, and a picture with the largest effects on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.linear_model.model import LinearModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_MODES = 4  # of a table of 80 columns
MOST_BARS = 12
SEEN = 1e-9  # of the fastest eigenvalue: an effect below it is none


def effects(linear: LinearModel) -> tuple[list[int], np.ndarray]:
    """Return the modes (of pairs the upper one), slowest first, and p dl/dp for each, shape (modes, parameters).

    That is what an eigenvalue moves by when the parameter grows to e times itself, to first order; a parameter that is
    zero counts per unit.
    """
    if not linear.derivatives:
        raise UsageError(
            "There are no derivatives by parameters: ask for them with linearize(..., parameters=[...]) or "
            "'fmilin linearize --parameters A,B'."
        )
    values, slopes = linear.eigenvalues(), linear.eigenvalue_derivatives()
    sizes = np.array([abs(d.value) or 1.0 for d in linear.derivatives.values()])
    upper = sorted(np.flatnonzero(values.imag >= 0).tolist(), key=lambda i: (abs(values[i]), values[i].real))
    return upper, slopes[upper] * sizes


def least_effect(linear: LinearModel) -> float:
    """Return what is too small to be one, in 1/s."""
    return SEEN * float(np.max(np.abs(linear.eigenvalues()), initial=0.0))


def most_moved(moved: np.ndarray, least: float) -> list[int]:
    """Return the rows with the largest effects, at most four, in their order."""
    sizes = np.abs(moved).max(axis=1, initial=0.0)
    chosen = [i for i in np.argsort(-sizes, kind="stable").tolist() if sizes[i] > least][:MOST_MODES]
    return sorted(chosen)


def short(value: complex) -> str:
    """Return an eigenvalue with four digits."""
    return f"{value.real:.4g}" if value.imag == 0 else f"{value.real:.4g} ± {value.imag:.4g} i"


def sensitivity_figure(linear: LinearModel, modes: Sequence[int] | None = None) -> Figure:
    """Return bars of what each parameter does to growth and frequency, a panel for each mode, largest on top."""
    from fmilin.output.report.figures import COLORS, gridded, plain, titled_figure

    every, moved = effects(linear)
    least = least_effect(linear)
    shown = most_moved(moved, least) if modes is None else [m - 1 for m in modes]
    if wrong := [m + 1 for m in shown if not 0 <= m < len(every)]:
        raise UsageError(f"There is no mode {wrong[0]}: they are 1 to {len(every)}, slowest first.")
    if not shown:
        raise UsageError("None of these parameters moves an eigenvalue: there is nothing to draw.")
    names, values = list(linear.derivatives), linear.eigenvalues()
    rows = min(len(names), MOST_BARS)
    figure = titled_figure("Which parameter moves which mode", 4.6 * len(shown), 1.2 + 0.32 * rows)
    for axes, i in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        order = np.argsort(-np.abs(moved[i]), kind="stable")[:rows][::-1]
        axes.barh(np.arange(rows) + 0.2, moved[i, order].real, height=0.36, color=COLORS[0], label="real part")
        axes.barh(np.arange(rows) - 0.2, moved[i, order].imag, height=0.36, color=COLORS[1], label="imaginary part")
        axes.set_yticks(np.arange(rows), [plain(names[j]) for j in order])
        axes.set_title(f"{short(complex(values[every[i]]))} 1/s", fontsize=10, loc="left")
        axes.set_xlabel("p dl/dp [1/s]")
        gridded(axes)
    figure.axes[0].legend(fontsize=8)
    return figure
