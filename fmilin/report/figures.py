"""Pictures in common: a figure without a window, axes without a frame, the bytes of a PNG file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["new_figure", "open_sides", "png"]


def new_figure(width: float, height: float, **more: Any) -> Figure:
    """Return a figure of this size, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), **more)
    FigureCanvasAgg(figure)
    return figure


def open_sides(axes: Axes) -> None:
    """Leave the frame away above and at the right."""
    axes.spines[["top", "right"]].set_visible(False)


def png(figure: Figure, dpi: int = 130) -> bytes:
    """Return the picture, the same on every machine that draws it alike."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": ""})
    return buffer.getvalue()
