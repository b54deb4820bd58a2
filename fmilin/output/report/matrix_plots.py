"""A linear model entry by entry: how well each is known, and which are zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from fmilin.ground.signals import FloatArray, Signals
from fmilin.linear_model.model import LinearModel
from fmilin.output.report.figures import named_ticks, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["error_figure", "sparsity_figure"]

Draw = Callable[["Axes", str, FloatArray], "AxesImage"]


def error_figure(linear: LinearModel) -> Figure:
    """Return the estimated error of every entry of A, B, C and D over the largest entry of its matrix."""
    from matplotlib.colors import LogNorm

    def draw(axes: Axes, name: str, matrix: FloatArray) -> AxesImage:
        seen = getattr(linear.errors, name) / (float(np.max(np.abs(matrix))) or 1.0)
        norm = LogNorm(1e-16, 1.0, clip=True)
        return axes.imshow(np.where(seen > 0, seen, np.nan), norm=norm, cmap="cividis", aspect="auto")

    figure, image = _four(linear, "Estimated relative errors", draw)
    if image is not None:
        figure.colorbar(image, ax=figure.axes, label="error over largest entry (blank: exact)")
    return figure


def sparsity_figure(linear: LinearModel) -> Figure:
    """Return the sizes of the entries of A, B, C and D over the largest of each; zeros are blank.

    What is not larger than its own estimated error counts as zero.
    """
    from matplotlib.colors import LogNorm

    def draw(axes: Axes, name: str, matrix: FloatArray) -> AxesImage:
        size, error = np.abs(matrix), getattr(linear.errors, name)
        seen = np.where(size > error, size, 0.0) / (float(size.max()) or 1.0)
        count = int((seen > 0).sum())
        axes.set_title(f"{name}: {count} of {matrix.size} entries", loc="left", fontsize=10)
        return axes.imshow(
            np.where(seen > 0, seen, np.nan), norm=LogNorm(1e-8, 1.0, clip=True), cmap="viridis_r", aspect="auto"
        )

    figure, image = _four(linear, "Entries", draw)
    if image is not None:
        figure.colorbar(image, ax=figure.axes, label="entry over largest (blank: zero)")
    return figure


def _four(linear: LinearModel, title: str, draw: Draw) -> tuple[Figure, AxesImage | None]:
    """Return a figure with a panel for each of A, B, C and D that has entries, and the last image."""
    parts = list(_parts(linear))
    figure = new_figure(8.0, 6.5, layout="constrained")
    figure.suptitle(f"{title}: {plain(linear.model.name, 50)}", x=0.01, ha="left", fontweight="bold")
    grid = figure.subplots(2, 2)
    image: AxesImage | None = None
    for axes, (name, matrix, rows, columns) in zip(grid.ravel(), parts, strict=True):
        axes.set_title(name, loc="left", fontsize=10)
        if not matrix.size:
            axes.set_axis_off()
            continue
        image = draw(axes, name, matrix)
        named_ticks(axes, rows.names, columns.names)
    return figure, image


def _parts(linear: LinearModel) -> Iterator[tuple[str, FloatArray, Signals, Signals]]:
    y, u, out = linear.states, linear.inputs, linear.outputs
    for name, rows, columns in (("A", y, y), ("B", y, u), ("C", out, y), ("D", out, u)):
        yield name, getattr(linear, name), rows, columns
