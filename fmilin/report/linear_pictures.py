"""Pictures of one linear model: eigenvalues, modes, what takes part in them, its entries, a comparison of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import UsageError
from fmilin.linear_model.modal import modal_analysis
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import EigenvalueCluster, Mode, cluster_modes
from fmilin.reduction.modal_reduction import difference, error_bound, in_sizes
from fmilin.report import figures
from fmilin.report.figures import COLORS, QUIET, UNSTABLE, create_titled_figure, draw_grid, plain
from fmilin.report.numbers import eigenvalue_text, list_matrices, round_to_error
from fmilin.report.table import compute_effects, most_moved, short_eigenvalue
from fmilin.signals import FloatArray, Signals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from fmilin.numerics.feedback import StateSpace

Complex = NDArray[np.complex128]


def without(naive: Complex, true: Complex) -> Complex:
    """Return ``naive`` without the entry nearest to each of ``true``: what the naive Jacobian adds."""
    remaining = list(naive)
    for value in true:
        if remaining:
            remaining.pop(int(np.argmin(np.abs(np.array(remaining) - value))))
    return np.array(remaining, dtype=np.complex128)


MIN_RAY_DISTANCE = 0.055  # between the ends of rays, in parts of the picture
RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)  # damping ratios with a ray
SAME_MARK_DISTANCE = (
    5e-3  # of half the width: nearer eigenvalues are one mark on paper, and their number is written next to it
)
CROWDED_SIZE_FRACTION = (
    0.08  # eigenvalues within this part of the largest one are crowded: there is a second panel for them
)


def eigenvalue_figure(linear: LinearModel, naive: LinearModel | None = None) -> Figure:
    """Return the eigenvalues, of a sampled model log(z) / T; what only the naive Jacobian has, no motion, is grey."""
    clusters = cluster_modes(require_modes(linear))
    true = _both(require_modes(linear))
    false = np.empty(0, np.complex128)
    if naive is not None:
        false = without(_both(naive.modes()), true)
    size = np.abs(np.concatenate((true, false)))
    crowded = size[size < CROWDED_SIZE_FRACTION * np.max(size, initial=0.0)]
    panels = 2 if len(crowded) > 1 and crowded.max() > 0 else 1
    figure = create_titled_figure(f"Eigenvalues of {plain(linear.model.name, 60)}", 6.5 * panels, 5.6, None)
    panel_axes = figure.subplots(1, panels, squeeze=False)[0]
    _panel(panel_axes[0], clusters, false, 1.15 * _reach(clusters, float(size.max(initial=0.0))))
    if panels > 1:
        _panel(panel_axes[1], clusters, false, 1.3 * float(crowded.max()))
        panel_axes[1].set_title(f"Close up: the {len(crowded)} slowest", loc="left", fontsize=10, color=QUIET)
    handles, labels = panel_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _reach(clusters: Sequence[EigenvalueCluster], largest: float) -> float:
    """Return how far from the origin there is something to draw, discs of eigenvalues with large errors included."""
    discs = [abs(c.eigenvalue) + c.error for c in clusters if np.isfinite(c.eigenvalue) and np.isfinite(c.error)]
    return max([largest, *discs]) or 1.0


def require_modes(linear: LinearModel) -> tuple[Mode, ...]:
    """Return the modes."""
    modes = linear.modes()
    if not modes:
        raise UsageError("The linear model has no states, so it has no eigenvalues to draw.")
    return modes


def _both(modes: Sequence[Mode]) -> Complex:
    s = np.array([m.eigenvalue for m in modes if np.isfinite(m.eigenvalue)], np.complex128)
    return np.concatenate((s, s[s.imag > 0].conj()))


def _panel(axes: Axes, clusters: Sequence[EigenvalueCluster], false: Complex, reach: float) -> None:
    from matplotlib.patches import Circle

    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    rays(axes, reach, reach, reach)
    if len(false):
        style: dict[str, Any] = {"marker": "o", "markeredgecolor": "#80868b", "markerfacecolor": "#dadce0"}
        label = f"{len(false)} false ones: constraints counted as motions"
        axes.plot(false.real, false.imag, linestyle="none", markersize=7, zorder=3, label=label, **style)
    true, counts, errors = _marks(clusters)
    total = int(counts.sum())
    axes.plot(true.real, true.imag, "x", color=COLORS[0], markersize=9, markeredgewidth=2.2, linestyle="none",
              zorder=4, label=f"{total} eigenvalues")  # fmt: skip
    label = "within the accuracy of the eigenvalues"
    for value, error in zip(true.tolist(), errors.tolist(), strict=True):
        if error > SAME_MARK_DISTANCE * reach and np.isfinite(error):
            axes.add_patch(Circle((value.real, value.imag), error, color=COLORS[0], alpha=0.15, zorder=2, label=label))
            label = "_" + label.removeprefix("_")  # one line of the legend for all of them
    for values, weights, color in ((true, counts, COLORS[0]), (false, np.ones(len(false), np.intp), QUIET)):
        for value, count in find_repeated_marks(values, weights, reach):
            axes.annotate(f"× {count}", (value.real, value.imag), (7, 5), textcoords="offset points", fontsize=9,
                          color=color)  # fmt: skip
    axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")


def _marks(clusters: Sequence[EigenvalueCluster]) -> tuple[Complex, NDArray[np.intp], FloatArray]:
    """Return where clusters are drawn, how many eigenvalues each stands for, and how well it is known."""
    marks = []
    for cluster in clusters:
        if not np.isfinite(cluster.eigenvalue):
            continue
        value = complex(cluster.real, cluster.eigenvalue.imag)
        marks.append((value, cluster.count, cluster.error))
        if cluster.is_pair:
            marks.append((value.conjugate(), cluster.count, cluster.error))
    values = np.array([mark[0] for mark in marks], dtype=np.complex128)
    counts = np.array([mark[1] for mark in marks], dtype=np.intp)
    return values, counts, np.array([mark[2] for mark in marks], dtype=np.float64)


def find_repeated_marks(values: Complex, weights: NDArray[np.intp], reach: float) -> Iterator[tuple[complex, int]]:
    """Yield where several eigenvalues are one mark, and how many."""
    near = np.abs(values) < reach
    remaining, weights = values[near], weights[near]
    while len(remaining):
        same = np.abs(remaining - remaining[0]) < SAME_MARK_DISTANCE * reach
        if (count := int(weights[same].sum())) > 1:
            yield complex(remaining[same].mean()), count
        remaining, weights = remaining[~same], weights[~same]


def rays(axes: Axes, left_extent: float, right: float, height: float) -> None:
    """Draw the unstable half plane, and rays of equal damping in a box around the origin, labelled at its border."""
    axes.axvspan(0, right, color=UNSTABLE, zorder=0, label="unstable half plane")
    previous = None
    for ratio in reversed(_ratios(left_extent / np.hypot(left_extent, height))):
        up = np.sqrt(1 - ratio**2)
        length = 0.93 * min(left_extent / ratio, height / up)
        end = ratio * length / (left_extent + right), up * length / height
        if previous is not None and np.hypot(end[0] - previous[0], end[1] - previous[1]) < MIN_RAY_DISTANCE:
            continue  # its label would be written over the one before
        previous = end
        for sign in (1, -1):
            axes.plot([0, -ratio * length], [0, sign * up * length], ":", color=QUIET, linewidth=0.8, zorder=1)
        axes.annotate(f"{ratio:g}", (-ratio * length, up * length), color=QUIET, fontsize=8, ha="right",
                      va="bottom", annotation_clip=True)  # fmt: skip
    axes.annotate("damping ratio", (0.01, 0.01), xycoords="axes fraction", color=QUIET, fontsize=8, va="bottom")
    axes.axhline(0, color=QUIET, linewidth=0.8, zorder=1)
    axes.axvline(0, color=QUIET, linewidth=0.8, zorder=1)
    draw_grid(axes)


def shade_outside_unit_circle(axes: Axes) -> None:
    """Draw the unit circle, outside of which multipliers and eigenvalues of sampled models grow."""
    angle = np.linspace(0, 2 * np.pi, 361)
    axes.set_facecolor(UNSTABLE)
    axes.fill(np.cos(angle), np.sin(angle), color="white", zorder=0)
    axes.plot(np.cos(angle), np.sin(angle), color=QUIET, linewidth=1, zorder=1)


def _ratios(corner: float) -> Sequence[float]:
    """Return the damping ratios of rays that fill a box; its corner has the ratio ``corner``."""
    if corner > RATIOS[1]:
        return RATIOS
    steps = [digit * 10.0**power for power in range(-9, 0) for digit in (1, 2, 5)]
    return [ratio for ratio in steps if corner / 8 < ratio < corner * 8]


MAX_MODES, MAX_STATES = 6, 24
MIN_MODE_AMPLITUDE = 0.01  # of a mode shape, of which the largest entry is 1: states below it are not listed
MAX_ROWS = 40  # modes of which participation is drawn
MAX_BARS = 12


def mode_figure(linear: LinearModel, numbers: Sequence[int] | None = None) -> Figure:
    """Return mode shapes, by default of the six slowest, as bars with their phase, of the states that move most."""
    modes = require_modes(linear)
    chosen = list(range(1, min(len(modes), MAX_MODES) + 1)) if numbers is None else list(numbers)
    if wrong := [n for n in chosen if not 1 <= n <= len(modes)]:
        raise UsageError(f"There is no mode {wrong[0]}: the linear model has modes 1 to {len(modes)}, slowest first.")
    columns = min(len(chosen), 2)
    rows = -(-len(chosen) // columns)
    moving = [int(np.sum(np.abs(modes[n - 1].shape) > MIN_MODE_AMPLITUDE)) for n in chosen]
    states = min(max(moving), MAX_STATES)
    selection_note = f" ({len(chosen)} slowest of {len(modes)})" if numbers is None and len(modes) > len(chosen) else ""
    title = f"Modes of {figures.plain(linear.model.name, 60)}{selection_note}"
    figure = figures.create_titled_figure(title, 5.2 * columns, (1.0 + 0.3 * states) * rows + 0.4, None)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, number in zip(grid, chosen, strict=False):
        _bars(axes, number, modes[number - 1], linear.full_states, states)
    for axes in grid[len(chosen) :]:
        axes.set_visible(False)
    return figure


def _bars(axes: Axes, number: int, mode: Mode, states: Signals, rows: int) -> None:
    """Draw how far each state moves, the largest first, and the phase next to it where the mode swings."""
    size: FloatArray = np.abs(mode.shape)
    order = np.argsort(-size, kind="stable")[:rows]
    omitted = np.delete(size, order)
    omitted = omitted[omitted > MIN_MODE_AMPLITUDE]
    names = [figures.format_label(states[i]) for i in order.tolist()]
    axes.barh(range(len(order)), size[order], color=figures.COLORS[0])
    for row, i in enumerate(order.tolist()):
        if size[i] > 1e-9:
            angle = round(float(np.degrees(np.angle(mode.shape[i]))))
            axes.annotate(
                f" {180 if angle == -180 else angle}°", (size[i], row), va="center", fontsize=8, color=figures.QUIET
            )
    axes.set_yticks(range(len(order)), names, fontsize=8)
    if len(omitted):
        note = f"{len(omitted)} more states move, by at most {omitted.max():.2g}"
        axes.annotate(note, (1.0, 0.01), xycoords="axes fraction", ha="right", fontsize=8, color=figures.QUIET)
    axes.set(xlabel="amplitude, each state in its unit, and phase", xlim=(0, 1.2), ylim=(len(order) - 0.4, -0.6))
    value = eigenvalue_text(round_to_error(mode.eigenvalue, mode.error), pair=mode.is_oscillatory)
    axes.set_title(f"{number}: {value} 1/s", fontsize=10, loc="left")
    figures.open_sides(axes)


def participation_figure(linear: LinearModel) -> Figure:
    """Return which coordinates take part in which mode, which inputs move it and which outputs show it."""
    require_modes(linear)
    analysis = modal_analysis(linear)
    rows = analysis.groups[:MAX_ROWS]
    panels = [
        ("Participation", analysis.participation, linear.states),
        ("Moved by inputs", analysis.controllability, linear.inputs),
        ("Seen in outputs", analysis.observability, linear.outputs),
    ]
    nonempty_panels = [(title, values, signals) for title, values, signals in panels if len(signals)]
    widths = [min(max(len(signals), 3), 40) for *_, signals in nonempty_panels]  # space for the titles
    width = 3.4 + 0.42 * sum(widths) + 0.9 * len(nonempty_panels)
    figure = figures.create_titled_figure(
        f"Participation in the modes of {figures.plain(linear.model.name, 40)}", width, 2.2 + 0.34 * len(rows), None
    )
    grid = figure.subplots(1, len(nonempty_panels), squeeze=False, width_ratios=widths)[0]
    images: list[AxesImage] = []
    for k, (axes, (title, values, signals)) in enumerate(zip(grid, nonempty_panels, strict=True)):
        images.append(axes.imshow(values[: len(rows)], vmin=0, vmax=1, cmap="Blues", aspect="auto"))
        labels = [eigenvalue_text(g.eigenvalue, pair=g.is_pair) for g in rows] if k == 0 else [""] * len(rows)
        figures.label_ticks(axes, labels, signals.names)
        axes.set_title(title, loc="left", fontsize=10)
        if len(signals) <= 12:
            _numbers(axes, values[: len(rows)])
    grid[0].set_ylabel("eigenvalue [1/s]")
    figure.colorbar(images[-1], ax=grid.tolist(), label="share (in cells: percent)", shrink=0.9)
    return figure


def _numbers(axes: Axes, values: FloatArray) -> None:
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            color = "white" if value > 0.6 else figures.INK
            axes.annotate(f"{100 * value:.0f}", (j, i), ha="center", va="center", fontsize=7.5, color=color)


def error_figure(linear: LinearModel) -> Figure:
    """Return the estimated error of every entry of A, B, C and D over the largest entry of its matrix."""

    def parts(name: str, matrix: FloatArray) -> tuple[FloatArray, str]:
        return getattr(linear.errors, name) / (float(np.max(np.abs(matrix))) or 1.0), name

    label = "error over largest entry (blank: exact)"
    return _four(linear, "Estimated relative errors", parts, (1e-16, "cividis", label))


def sparsity_figure(linear: LinearModel) -> Figure:
    """Return the entries of A, B, C, D over the largest of each; what is within its own error is blank, as zero is."""

    def parts(name: str, matrix: FloatArray) -> tuple[FloatArray, str]:
        size, error = np.abs(matrix), getattr(linear.errors, name)
        significant = np.where(size > error, size, 0.0) / (float(size.max()) or 1.0)
        return significant, f"{name}: {int((significant > 0).sum())} of {matrix.size} entries"

    return _four(linear, "Entries", parts, (1e-8, "viridis_r", "entry over largest (blank: zero)"))


def sensitivity_figure(linear: LinearModel, numbers: Sequence[int] | None = None) -> Figure:
    """Return bars of what each parameter does to growth and frequency, a panel for each mode, largest on top."""
    if not linear.derivatives:
        raise UsageError(
            "The linear model has no derivatives by parameters. Name some when you linearize: parameters=['NAME']."
        )
    values, moved, least = compute_effects(linear)
    mode_indices = most_moved(moved, least) if numbers is None else [m - 1 for m in numbers]
    if wrong := [m + 1 for m in mode_indices if not 0 <= m < len(values)]:
        raise UsageError(
            f"There is no mode {wrong[0]}: the numbers of the modes are 1 to {len(values)}, slowest first."
        )
    if not mode_indices:
        raise UsageError("None of these parameters moves an eigenvalue: there is nothing to draw.")
    names, rows = list(linear.derivatives), min(moved.shape[1], MAX_BARS)
    figure = figures.create_titled_figure(
        f"Which parameter moves which mode: {figures.plain(linear.model.name, 40)}",
        max(4.6 * len(mode_indices), 6.0),
        1.7 + 0.32 * rows,
    )
    for axes, i in zip(figure.subplots(1, len(mode_indices), squeeze=False)[0], mode_indices, strict=True):
        order = np.argsort(-np.abs(moved[i]), kind="stable")[:rows][::-1]
        for shift, part, style in (
            (0.2, "real", {"color": figures.COLORS[0], "label": "growth (real part)"}),
            (-0.2, "imag", {"color": figures.COLORS[1], "label": "frequency (imaginary part)", "hatch": "///"}),
        ):
            lengths = getattr(moved[i, order], part)
            axes.barh(np.arange(rows) + shift, lengths, height=0.36, edgecolor="white", **style)
        axes.set_yticks(np.arange(rows), [figures.plain(names[j]) for j in order])
        axes.set_title(f"{short_eigenvalue(values[i])} 1/s", fontsize=10, loc="left")
        axes.set_xlabel("p ∂λ/∂p [1/s], for parameter p and eigenvalue λ")
        figures.draw_grid(axes)
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=2, frameon=False, fontsize=8
    )
    return figure


def _four(
    linear: LinearModel,
    title: str,
    parts: Callable[[str, FloatArray], tuple[FloatArray, str]],
    scale: tuple[float, str, str],
) -> Figure:
    """Return a panel for each matrix: its ``parts`` of the whole, and a title; ``scale``: least, colours, label."""
    from matplotlib.colors import LogNorm

    least, colors, label = scale
    figure = figures.create_titled_figure(f"{title}: {figures.plain(linear.model.name, 50)}", 8.0, 6.5, None)
    image: AxesImage | None = None
    for axes, (name, rows, columns) in zip(figure.subplots(2, 2).ravel(), list_matrices(linear), strict=True):
        matrix: FloatArray = getattr(linear, name)
        axes.set_title(name, loc="left", fontsize=10)
        if not matrix.size:
            axes.set_axis_off()
            continue
        significant, headline = parts(name, matrix)
        axes.set_title(headline, loc="left", fontsize=10)
        norm = LogNorm(least, 1.0, clip=True)
        image = axes.imshow(np.where(significant > 0, significant, np.nan), norm=norm, cmap=colors, aspect="auto")
        figures.label_ticks(axes, rows.names, columns.names)
    if image is not None:
        figure.colorbar(image, ax=figure.axes, label=label)
    return figure


MAX_DRAWN_DECIBEL_RANGE = 120.0  # below the largest gain: what is weaker leaves the picture
DECIBEL_MARGIN = 5.0
FREQUENCY_COUNT, MARGIN_DECADES = 1200, 1.0  # of the frequencies, and how far beyond the slowest and the fastest mode


def reduction_figure(reduced: LinearModel, full: LinearModel, low: float = 0.0, high: float = float("inf")) -> Figure:
    """Return largest singular values over frequency of both and of their difference, with its bound in the band."""
    peak, between = error_bound(full, reduced, low, high), difference(full, reduced)
    speeds = np.abs(full.eigenvalues())
    speeds = speeds[speeds > 1e-9 * speeds.max(initial=0.0)] if len(speeds) else np.ones(1)
    w = np.geomspace(speeds.min() / 10**MARGIN_DECADES, speeds.max() * 10**MARGIN_DECADES, FREQUENCY_COUNT)
    orders = f"order {len(reduced.states)} instead of {len(full.states)}"
    figure = create_titled_figure(f"Reduced linear model: {plain(full.model.name, 40)} ({orders})", 8.0, 5.0)
    axes = figure.subplots()
    curves: list[tuple[StateSpace, str, dict[str, Any]]] = [
        (in_sizes(full, full), "full", {"color": COLORS[0], "linewidth": 2.4}),
        (in_sizes(reduced, full), "reduced", {"color": COLORS[1], "linestyle": (0, (4, 2))}),
        (between, "difference", {"color": COLORS[2]}),
    ]
    top, bottom = -np.inf, np.inf
    for system, label, style in curves:
        gains = np.array([system.gain(frequency) for frequency in w])
        if gains.max() > 0:
            decibels = 20 * np.log10(np.where(gains > 0, gains, np.nan))
            axes.semilogx(w, decibels, label=label, **style)
            top, bottom = max(top, float(np.nanmax(decibels))), min(bottom, float(np.nanmin(decibels)))
    if 0 < peak.bound < np.inf:
        band = max(low, w[0]), min(high, w[-1])
        label = f"bound of the difference: {20 * np.log10(peak.bound):.1f} dB"
        axes.plot(band, [20 * np.log10(peak.bound)] * 2, color=QUIET, linestyle=":", linewidth=1.8, label=label)
        top = max(top, float(20 * np.log10(peak.bound)))
    if np.isfinite(top):
        axes.set_ylim(max(bottom, top - MAX_DRAWN_DECIBEL_RANGE) - DECIBEL_MARGIN, top + DECIBEL_MARGIN)
    axes.set(xlabel="frequency [rad/s]", ylabel="largest gain [dB], channels in their nominal values")
    axes.legend(fontsize=9)
    draw_grid(axes)
    return figure
