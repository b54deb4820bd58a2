"""One number of every linear model of a family over two axes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.ground.errors import UnknownNameError, UsageError
from fmilin.ground.signals import FloatArray, Signals
from fmilin.output.report.figures import gridded, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    from fmilin.families.family import LinearFamily

__all__ = ["QUANTITIES", "axis_label", "quantity_of", "surface_figure"]

QUANTITIES = {
    "growth": "largest real part [1/s]",
    "damping": "smallest damping ratio [1]",
    "frequency": "lowest frequency of the modes that swing [rad/s]",
    "accuracy": "estimated relative error of A",
}

_ENTRY = re.compile(r"([ABCD])\[(.+)\]")


def quantity_of(family: LinearFamily, quantity: str) -> tuple[FloatArray, str]:
    r"""Return a number for every point, shape (\\*shape), NaN where there is none, and what it is."""
    if entry := _ENTRY.fullmatch(quantity.strip()):
        return _entry(family, *entry.groups())
    if quantity not in QUANTITIES:
        raise UnknownNameError.among(quantity, QUANTITIES, "a quantity of a family (or an entry, as A[1,2])")
    if quantity == "accuracy":
        return family.array("accuracy")[..., 0], QUANTITIES[quantity]
    if not family.template.order:
        raise UsageError("The linear models have no states, so they have no eigenvalues to draw.")
    s = family.eigenvalues
    size = np.abs(s)
    nothing = ~np.isfinite(size)
    if quantity == "growth":
        found = np.where(nothing, -np.inf, s.real).max(axis=-1)
    elif quantity == "damping":
        ratio = -s.real / np.where(size > 0, size, 1.0)
        found = np.where(nothing | (size == 0), np.inf, ratio).min(axis=-1)
    else:
        found = np.where(nothing | (np.abs(s.imag) <= 1e-9 * size), np.inf, np.abs(s.imag)).min(axis=-1)
    return np.where(np.isfinite(found), found, np.nan), QUANTITIES[quantity]


def _entry(family: LinearFamily, matrix: str, inside: str) -> tuple[FloatArray, str]:
    y, u, out = family.states, family.inputs, family.outputs
    rows, columns = {"A": (y, y), "B": (y, u), "C": (out, y), "D": (out, u)}[matrix]
    for comma in [m.start() for m in re.finditer(",", inside)]:
        i, j = _place(inside[:comma], rows), _place(inside[comma + 1 :], columns)
        if i is not None and j is not None:
            return family.array(matrix)[..., i, j], f"{matrix}[{plain(rows[i].name)}, {plain(columns[j].name)}]"
    raise UsageError(
        f"{matrix}[{inside}] is no entry: its rows are {', '.join(rows.names) or 'none'}, its columns "
        f"{', '.join(columns.names) or 'none'}."
    )


def _place(text: str, signals: Signals) -> int | None:
    text = text.strip()
    if signals.has(text):
        return signals.index_of(text)
    return int(text) - 1 if text.isdigit() and 1 <= int(text) <= len(signals) else None


def _size(family: LinearFamily) -> str:
    if len(family.shape) < 2:
        return f"a line of {len(family)}" if family.shape else "one point"
    return " x ".join(map(str, family.shape))


def surface_figure(family: LinearFamily, quantity: str) -> Figure:
    """Return a quantity as colours over two axes of the grid, with lines of equal height."""
    values, label = quantity_of(family, quantity)
    if len(family.shape) != 2 or min(family.shape) < 2:
        raise UsageError(
            f"A surface needs a grid of two axes, and this one is {_size(family)}. "
            "Pick a part of the family, or draw its eigenvalues or root locus."
        )
    if not np.isfinite(values).any():
        raise UsageError(f"No point of the family has a {label.split(' [')[0]}: there is nothing to draw.")
    (first, rows), (second, columns) = family.axes.items()
    x, y = np.sort(columns), np.sort(rows)
    shown = np.ma.masked_invalid(values[np.argsort(rows)][:, np.argsort(columns)])
    figure = new_figure(7.5, 5.6, layout="constrained")
    axes = figure.subplots()
    what = label.split(" [")[0] if quantity in QUANTITIES else label
    title = what[0].upper() + what[1:]
    name = plain(family.template.model.name or "sweep", 40)
    figure.suptitle(f"{title}: {name}", x=0.01, ha="left", fontweight="bold", fontsize=12)
    if quantity in ("growth", "damping") and shown.min() < 0 < shown.max():
        reach = float(np.abs(shown).max())  # stability is where the colour changes
        image = axes.pcolormesh(x, y, shown, cmap="PuOr_r" if quantity == "growth" else "PuOr", vmin=-reach, vmax=reach,
                                shading="nearest")  # fmt: skip
        axes.contour(x, y, shown, levels=[0.0], colors="black", linewidths=2.0)
    else:
        image = axes.pcolormesh(x, y, shown, cmap="viridis", shading="nearest", norm=_norm(shown, quantity))
    if quantity != "accuracy" and min(shown.shape) > 2 and float(np.ptp(shown.compressed())) > 0:
        lines = axes.contour(x, y, shown, levels=8, colors="black", linewidths=0.6, alpha=0.6)
        axes.clabel(lines, fontsize=8, fmt="%.3g")
    axes.set(xlabel=axis_label(family, second), ylabel=axis_label(family, first))
    figure.colorbar(image, ax=axes, label=label)
    gridded(axes)
    axes.grid(visible=False)
    return figure


def _norm(shown: np.ma.MaskedArray[Any, Any], quantity: str) -> LogNorm | None:
    """Return a logarithmic scale for errors of different sizes."""
    from matplotlib.colors import LogNorm

    low, high = float(shown.min()), float(shown.max())
    return LogNorm(low, high) if quantity == "accuracy" and 0 < low < 0.5 * high else None


def axis_label(family: LinearFamily, name: str) -> str:
    """Return the name of an axis with its unit, where a signal of the model has that name."""
    for signals in (family.full_states, family.inputs, family.outputs):
        if signals.has(name):
            unit = signals[signals.index_of(name)].unit
            return f"{plain(name, 40)} [{unit or '1'}]"
    return plain(name, 40)
