"""Pictures in common: colours, figures without a window, axes without a frame, names next to axes, files."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.formats import Writing, require_codec
from fmilin.report.numbers import shorten_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    from fmilin.signals import FloatArray, Signal

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7a7a7a")
"""Of Okabe and Ito: distinguishable for colour-blind people, and by their lightness in print."""

DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (8, 2, 2, 2)))
INK, QUIET, GRID, UNSTABLE = "#202124", "#5f6368", "#dcdfe2", "#fbeceb"
LONGEST_LABEL = 26  # characters next to an axis
AXIS_MARGIN = 0.03  # at both ends of an axis, in parts of it
MIN_LABEL_DISTANCE = 0.06  # between labels of contours, in parts of the picture
SHORT_AXIS_RATIO = 50.0  # of the ends of a logarithmic axis with plain numbers
MAX_TICKS = 40  # rows or columns of a matrix that are named


def line_style(number: int) -> dict[str, Any]:
    """Return colour and dashes of line ``number``: neighbours differ in both, for print without colours."""
    dashes = DASHES[(number + number // len(COLORS)) % len(DASHES)]  # every round of the colours has other ones
    return {"color": COLORS[number % len(COLORS)], "linestyle": dashes}


def new_figure(width: float, height: float, **more: Any) -> Figure:
    """Return a figure of this size, in inches; a notebook shows it, with pyplot and without."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = _define_shown_figure()(figsize=(width, height), **more)
    FigureCanvasAgg(figure)
    return figure


def create_titled_figure(title: str, width: float, height: float, fontsize: float | None = 12) -> Figure:
    """Return a figure with automatic layout and its title above at the left."""
    figure = new_figure(width, height, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=fontsize)
    return figure


def over_one_axis(title: str, ratios: tuple[int, int] = (1, 1)) -> tuple[Figure, Axes, Axes]:
    """Return a figure with two gridded panels, one above the other, over the same axis."""
    figure = create_titled_figure(title, 8.5, 7.0)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=ratios)
    for axes in (above, below):
        axes.margins(x=0.01)
        draw_grid(axes)
    return figure, above, below


def create_headed_figure(title: str, subtitle: str, width: float, height: float, heads: tuple[float, float]) -> Figure:
    """Return a figure with a large title and a quiet line below it, at two heights in parts of its own."""
    figure = new_figure(width, height)
    figure.text(0.02, heads[0], title, fontsize=15, fontweight="bold", va="center")
    figure.text(0.02, heads[1], subtitle, fontsize=10.5, color=QUIET, va="center")
    return figure


@cache
def _define_shown_figure() -> type[Figure]:
    """Return the class of figures that show themselves: matplotlib's do so only after pyplot has been imported."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            return render_figure(self, dpi=90)

    return ShownFigure


def draw_curve(axes: Axes, x: FloatArray, y: FloatArray, **style: Any) -> None:
    """Draw a line over x, both (n,), with gaps where y is NaN, and a mark where a point is alone between two gaps."""
    axes.plot(x, y, **style)
    good = np.concatenate([[False], np.isfinite(y), [False]])
    alone = np.flatnonzero(good[1:-1] & ~good[:-2] & ~good[2:])
    if len(alone):
        axes.plot(x[alone], y[alone], ".", color=style.get("color"), markersize=8)


def label_short_decades(axes: Axes) -> None:
    """Write plain numbers where a logarithmic axis of x has less than two decades: powers of ten would overlap."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_xlim()
    if not 0 < low < high < SHORT_AXIS_RATIO * low:
        return
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def remove_overlapping_labels(axes: Axes, labels: Iterable[Text]) -> list[Text]:
    """Remove labels of contours that are too near to another one to be read, as at a cliff; return the others."""
    remaining: list[Text] = []
    positions: list[FloatArray] = []
    for label in labels:
        position: FloatArray = np.array([label.get_position()], dtype=np.float64)
        at = axes.transAxes.inverted().transform(axes.transData.transform(position))[0]
        if any(np.abs(at - other).max() < MIN_LABEL_DISTANCE for other in positions):
            label.remove()
        else:
            remaining.append(label)
            positions.append(at)
    return remaining


def show_whole_axis(axes: Axes, axis: FloatArray) -> None:
    """Let a picture begin and end with its axis, where curves are undefined at some of its points."""
    low, high = float(axis.min()), float(axis.max())
    if low < high:
        margin = AXIS_MARGIN * (high - low)
        axes.set_xlim(low - margin, high + margin)


def open_sides(axes: Axes) -> None:
    """Leave the frame away above and at the right."""
    axes.spines[["top", "right"]].set_visible(False)


def draw_grid(axes: Axes) -> None:
    """Leave the frame away, and draw a thin grid behind everything."""
    axes.grid(visible=True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    open_sides(axes)


def plain(name: str, longest: int = LONGEST_LABEL) -> str:
    """Return a name, shortened, with dollars that do not begin a formula."""
    return shorten_name(name, longest).replace("$", r"\$")


def format_unit(unit: str) -> str:
    """Return a unit as it is written next to an axis: N·m for N.m and N*m; 1 where there is none."""
    return re.sub(r"(?<=[^\d\s(])[.*](?=[^\d\s)])|(?<=\d)[.*](?=[A-Za-z])", "·", unit) or "1"


def format_label(signal: Signal) -> str:
    """Return a name with its unit."""
    return f"{plain(signal.name)} [{format_unit(signal.unit)}]"


def format_ratio(output: Signal, source: Signal) -> str:
    """Return the unit of a channel: that of the output over that of the input, as N·m/(rad/s)."""
    if output.unit == source.unit:
        return "1"
    top, below = (format_unit(signal.unit) for signal in (output, source))
    if below == "1":
        return top
    top, below = (f"({unit})" if any(c in unit for c in "/ ·") else unit for unit in (top, below))
    return f"{top.strip('()') if '/' not in top else top}/{below}"


def label_ticks(axes: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Name rows and columns of a matrix where the names fit."""
    if len(rows) <= MAX_TICKS:
        axes.set_yticks(range(len(rows)), [plain(n) for n in rows], fontsize=8)
    if len(columns) <= MAX_TICKS:
        axes.set_xticks(range(len(columns)), [plain(n) for n in columns], fontsize=8, rotation=45, ha="right")


@dataclass(frozen=True)
class Picture:
    """A figure, and the resolution that it has in formats of pixels."""

    figure: Figure
    dpi: int = 130


def encode_picture(figure: Figure, path: str | Path, dpi: int = 130) -> bytes:
    """Return the content of a file of a picture, in the format of its suffix. Raises UsageError if there is none."""
    return require_codec(path, "picture").dumps(Picture(figure, dpi), Writing())


def render_figure(figure: Figure, suffix: str = ".png", dpi: int = 130) -> bytes:
    """Return a file's content, the same on every machine that draws it alike."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "fmilin"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # of names: a box stands in its place
        if suffix.lower() == ".svg":
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        else:
            figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": ""})
    return buffer.getvalue()
