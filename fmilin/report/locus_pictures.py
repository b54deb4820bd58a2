"""Root loci: how the eigenvalues, and the zeros, of a family move through the complex plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import UsageError
from fmilin.numerics.eigenvalue_errors import group_eigenvalues
from fmilin.report import figures
from fmilin.report.family_pictures import MARKERS, FamilyLine, compose_family_title, list_lines
from fmilin.report.linear_pictures import SAME_MARK_DISTANCE, rays, shade_outside_unit_circle
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fmilin.families.family import LinearFamily

Complex = NDArray[np.complex128]
MAX_NAMED_LINES = 2 * len(MARKERS)  # of a grid with a mark of their own: filled first, then open
MAX_COUNTED_CLUSTERS = 12  # with a number next to each: more would be written over each other
LABEL_SIZE = 0.011, 0.030  # of a character, in parts of the width and the height of a picture
REAL_FRACTION = 1e-9  # of an eigenvalue: an imaginary part within it is zero
MEETING_STEPS = 40  # of a path between two points, between which a real pair becomes complex
REAL_SPAN = 1e-6  # real parts within this part of the largest eigenvalue are rounding: the picture is not made for them


def root_locus_figure(family: LinearFamily) -> Figure:
    """Return how the eigenvalues walk through the complex plane, coloured by the last axis of the grid.

    Those of sampled models are drawn as they are, z next to the unit circle.
    """
    lines = list(list_lines(family))
    is_sampled = family.sample_time > 0
    all_errors = family.eigenvalue_errors.reshape(-1, family.template.order)
    merged = [
        merge_clusters(
            line.multipliers if is_sampled else line.eigenvalues,
            all_errors[line.first : line.first + len(line.axis)] if is_sampled else line.errors,
        )
        for line in lines
    ]
    return _draw_loci(family, "Root locus", lines, merged)


def zero_locus_figure(family: LinearFamily) -> Figure:
    """Return how the transmission zeros move through the complex plane, coloured by the last axis of the grid."""
    lines = list(list_lines(family))
    zeros = family.zero_tracks.zeros
    if not np.isfinite(zeros).any():
        raise UsageError("None of the linear models has a transmission zero: there is nothing to draw.")
    errors = family.zero_tracks.errors
    parts = [slice(line.first, line.first + len(line.axis)) for line in lines]
    return _draw_loci(family, "Zeros", lines, [merge_clusters(zeros[part], errors[part]) for part in parts])


@dataclass(frozen=True, eq=False)
class Loci:
    """Marks of a line, shape (n, k): eigenvalues that their errors do not separate are one mark, at their mean."""

    values: Complex
    errors: FloatArray  # radius of the disc in which they lie
    counts: NDArray[np.intp]  # eigenvalues of a mark; 0 where another column has the mark


def merge_clusters(values: Complex, errors: FloatArray) -> Loci:
    """Return the marks of eigenvalues (n, k) with errors: those of each row with overlapping discs at one place."""
    merged, radii, counts = values.copy(), errors.copy(), np.isfinite(values).astype(np.intp)
    for row in range(len(values)):
        good = np.flatnonzero(np.isfinite(values[row]))
        certain_radii = np.where(np.isfinite(errors[row, good]), errors[row, good], 0.0)
        for group in group_eigenvalues(values[row, good], certain_radii):
            if len(group) == 1:
                continue
            members = good[group]
            mean = values[row, members].mean()
            spread = float(np.abs(values[row, members] - mean).max())
            merged[row, members] = mean
            radii[row, members] = max(spread, float(certain_radii[group].max()))
            counts[row, members] = 0
            counts[row, members[0]] = len(group)
    return Loci(merged, radii, counts)


def trace_paths(values: Complex) -> list[Complex]:
    """Return the path of each column of ``values`` (n, k), through the point where a real pair becomes complex.

    A straight line would lead from one of two real eigenvalues to one of the pair, past the point at which they meet.
    Between two such rows, the sum and the product of both change linearly.
    """
    paths = []
    is_real = np.abs(values.imag) <= REAL_FRACTION * np.abs(values)
    for column in range(values.shape[1]):
        pieces = [values[:1, column]]
        for row in range(len(values) - 1):
            if is_real[row, column] != is_real[row + 1, column]:
                pieces.append(_interpolate_pair(values[row : row + 2], is_real[row : row + 2], column))
            pieces.append(values[row + 1 : row + 2, column])
        paths.append(np.concatenate(pieces))
    return paths


def _interpolate_pair(rows: Complex, is_real: NDArray[np.bool_], column: int) -> Complex:
    """Return the values of a column between two ``rows``, real in one and complex in the other; (0,) without a pair."""
    ends = rows[:, column]
    complex_row = int(is_real[0, column])
    distances = np.abs(rows[complex_row] - ends[complex_row].conj())
    distances[~np.isfinite(distances)] = np.inf
    partner = int(np.argmin(distances))
    other = rows[:, partner]
    is_pair = distances[partner] <= REAL_FRACTION * abs(ends[complex_row]) and is_real[1 - complex_row, partner]
    if not is_pair or not np.isfinite(ends).all():
        return ends[:0]
    means, products = (ends + other).real / 2, (ends * other).real
    (mean, mean_change), (product, product_change) = ((v[0], v[1] - v[0]) for v in (means, products))
    meetings = np.roots([mean_change**2, 2 * mean * mean_change - product_change, mean**2 - product])
    share = np.linspace(0.0, 1.0, MEETING_STEPS + 1)[1:-1]
    share = np.sort([*share, *(float(t.real) for t in meetings if t.imag == 0 and 0 < t.real < 1)])
    center = mean + share * mean_change
    square = center**2 - (product + share * product_change)
    sides = np.sign((ends - other)[1 - complex_row].real), np.sign(ends[complex_row].imag)
    return np.asarray(center + np.where(square >= 0, sides[0], 1j * sides[1]) * np.sqrt(np.abs(square)))


def _draw_loci(family: LinearFamily, what: str, lines: Sequence[FamilyLine], marks: Sequence[Loci]) -> Figure:
    """Return a picture of loci, those of each line."""
    every_loci = [line_marks.values for line_marks in marks]
    figure = figures.create_titled_figure(compose_family_title(family, what), 8.0, 6.4)
    axes = figure.subplots()
    points = None
    for number, (line, line_marks) in enumerate(zip(lines, marks, strict=True)):
        loci = line_marks.values
        for values in trace_paths(loci):
            axes.plot(values.real, values.imag, color=figures.QUIET, linewidth=1.0, zorder=2)
        axis = np.broadcast_to(line.axis[:, None], loci.shape)
        is_named = len(lines) <= MAX_NAMED_LINES
        is_open = is_named and number >= len(MARKERS)
        drawn = axes.scatter(
            np.where(line_marks.counts > 0, loci.real, np.nan), loci.imag, c=axis, cmap="viridis", s=18, zorder=3,
            marker=MARKERS[number % len(MARKERS)] if is_named else "o", vmin=line.axis.min(), vmax=line.axis.max(),
            label=(line.title if is_named else "") or None,
        )  # fmt: skip
        if is_open:
            drawn.set(facecolor="none", edgecolor=drawn.cmap(drawn.norm(axis.ravel())))
        points = points or drawn
    eigenvalues = np.concatenate([loci.ravel() for loci in every_loci])
    finite = eigenvalues[np.isfinite(eigenvalues)]
    if family.sample_time > 0:
        _frame_unit_circle(axes, finite)
    else:
        _frame_half_plane(axes, finite)
    if len(lines) > MAX_NAMED_LINES:
        axes.plot([], [], "o", color=figures.QUIET, markersize=4, label=f"{len(lines)} lines, {lines[0].title} first")
    _draw_errors(axes, marks)
    _label_ends(axes, lines, every_loci)
    if points is not None:
        figure.colorbar(points, ax=axes, label=lines[0].label)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_errors(axes: Axes, marks: Sequence[Loci]) -> None:
    """Draw discs of visible errors, and how many eigenvalues a mark stands for."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Circle

    low, high = axes.get_xlim()
    smallest = SAME_MARK_DISTANCE * min(high - low, float(np.ptp(axes.get_ylim()))) / 2
    discs = [
        Circle((float(value.real), float(value.imag)), float(error))
        for line in marks
        for value, error, count in zip(line.values.ravel(), line.errors.ravel(), line.counts.ravel(), strict=True)
        if count and np.isfinite(error) and error > smallest
    ]
    if discs:
        drawn = PatchCollection(discs, facecolor=figures.COLORS[0], alpha=0.15, zorder=1)
        axes.add_collection(drawn, autolim=False)
        axes.fill([], [], facecolor=figures.COLORS[0], alpha=0.15, label=f"errors of {len(discs)} marks")
    clusters = [(value, count) for line in marks for value, count in zip(line.values.ravel(), line.counts.ravel(),
                                                                         strict=True) if count > 1]  # fmt: skip
    if not clusters:
        return
    positions = np.array([value for value, _ in clusters])
    counts = np.array([count for _, count in clusters])
    distinct = group_eigenvalues(positions, np.full(len(positions), smallest))
    if len(distinct) <= MAX_COUNTED_CLUSTERS:
        for group in distinct:
            text = f"\N{MULTIPLICATION SIGN} {counts[group].max()}"
            at = positions[group].mean()
            axes.annotate(text, (at.real, at.imag), (6, -11), fontsize=8, textcoords="offset points",
                          color=figures.COLORS[0])  # fmt: skip
    text = f"{len(clusters)} marks are up to {counts.max()} eigenvalues each, not separated by their errors"
    axes.plot([], [], " ", label=text)


def _label_ends(axes: Axes, lines: Sequence[FamilyLine], every_loci: Sequence[Complex]) -> None:
    """Write the value of the axis next to both ends of the locus that swings most there, where it fits."""
    ends = []
    for line, loci in zip(lines, every_loci, strict=True):
        good = np.flatnonzero(np.isfinite(loci).all(axis=1)) if loci.shape[1] else np.empty(0, np.intp)
        ends += [(loci[k, int(np.argmax(loci[k].imag))], line.axis[k]) for k in (good[[0, -1]] if len(good) else [])]
    occupied: list[tuple[float, float, float]] = []
    for at, value in sorted(ends, key=lambda end: -end[0].imag):  # the outermost first
        text = f"{value:.4g}"
        x, y = axes.transAxes.inverted().transform(axes.transData.transform((at.real, at.imag)))
        extent = (float(x), float(y), LABEL_SIZE[0] * len(text))
        if any(_overlap(extent, other) for other in occupied):
            continue
        occupied.append(extent)
        axes.annotate(text, (float(at.real), float(at.imag)), (5, 5), textcoords="offset points",
                      color=figures.QUIET, fontsize=8)  # fmt: skip


def _overlap(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    """Whether two labels (left, bottom, width) overlap, in parts of the picture."""
    is_beside = one[0] + one[2] < other[0] or other[0] + other[2] < one[0]
    return not is_beside and abs(one[1] - other[1]) < LABEL_SIZE[1]


def _frame_half_plane(axes: Axes, finite: Complex) -> None:
    """Draw the stability limit of eigenvalues in 1/s, and let them fill the picture."""
    reach = 1.12 * float(np.abs(finite).max(initial=0.0)) or 1.0
    height = max(1.15 * float(finite.imag.max(initial=0.0)), 0.15 * reach)
    right = max(float(finite.real.max(initial=0.0)), 0.0)
    leftmost = min(float(finite.real.min(initial=0.0)), 0.0)
    span = right - leftmost if right - leftmost > REAL_SPAN * reach else 0.2 * reach
    axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]", ylim=(-height, height))
    leftmost, right = leftmost - (0.08 if leftmost < 0 else 0.5) * span, right + 0.16 * span
    rays(axes, -leftmost, right, height)
    axes.set_xlim(leftmost, right)


def _frame_unit_circle(axes: Axes, finite: Complex) -> None:
    """Draw the stability limit of multipliers, and show all of the circle."""
    reach = 1.15 * max(1.0, float(np.abs(finite).max(initial=0.0)))
    shade_outside_unit_circle(axes)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part of z",
             ylabel="imaginary part of z")  # fmt: skip
    figures.draw_grid(axes)
