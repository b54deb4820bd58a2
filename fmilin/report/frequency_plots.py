"""Bode and Nyquist diagrams of linear models, with the margins of loops, and sensitivities with their peaks.

L of a loop is drawn as wired, in every picture and as python-control draws ``L.to_control()``: its critical point is
+1, where a phase is a whole number of turns. Of other models the critical point is -1, that of a negative feedback.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.design.margins import Margins
from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.report.figures import COLORS, INK, QUIET, create_titled_figure, draw_grid, format_label, format_ratio, plain
from fmilin.report.frequency_curves import Complex, choose_frequencies, convert_to_decibels, unwrap_phase
from fmilin.report.loop_margins import LoopMargins, is_single_loop
from fmilin.report.response_plots import (
    Names,
    choose_channels,
    compose_title,
    has_response,
    name_magnitude_unit,
    write_no_response,
)
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOP_VIEW_SIZE = 4.0  # largest modulus of a loop that a Nyquist diagram shows without its own scale
VIEW_LIMIT = 5.0  # largest modulus of other responses, in units of the larger of 1 and the median
MAX_CRITICAL_DISTANCE = 3.0  # from the critical point, in sizes of the response, beyond which it is left out
CUT_FACTOR = 20.0  # A curve is not drawn beyond this multiple of the largest modulus that is seen
MIN_WIDTH_OF_TWO_COLUMNS = 8.0  # inches
SPIKE_PERCENT = 2.0  # of the frequencies drawn, at each end of the magnitudes, that may be a spike
SPIKE_POINT_COUNT = 500
SPIKE_HEIGHT_DB = 40.0  # dB beyond all others that are drawn of a spike
ROUNDING_DEPTH_DB = 250.0  # below nearly all of a curve: deeper than that a zero is one within rounding
NOTE_BACKGROUND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0}  # over a curve
LEGEND_HEIGHT = 1.0  # inches, of margins


def bode_figure(linear: LinearModel, *, inputs: Names = None, outputs: Names = None, db: bool = True) -> Figure:
    """Return Bode diagrams of channels by name, the first four of each by default; of a single loop with margins.

    Magnitudes are in dB of the unit of the channel, or with ``db=False`` factors on a logarithmic axis.
    """
    u, out = choose_channels(linear, inputs, outputs)
    w = choose_frequencies(linear)
    G = linear.frequency_response(w)
    title = compose_title(linear, "Bode diagram", u, out)
    figure = create_titled_figure(
        title, max(4.6 * len(u) + 0.9, 5.6), 4.6 * len(out) + (1.0 if is_single_loop(linear) else 0.2)
    )
    grid = figure.subplots(2 * len(out), len(u), squeeze=False, sharex=True)
    drawn = LoopMargins.of(linear)
    for column, j in enumerate(u):
        loop_title = f"L at {plain(linear.inputs[j].name)}" if drawn is not None else ""
        grid[0, column].set_title(loop_title or f"from {format_label(linear.inputs[j])}", fontsize=10, loc="left")
        grid[-1, column].set_xlabel("frequency [rad/s]")
        for row, i in enumerate(out):
            magnitude, phase = grid[2 * row : 2 * row + 2, column]
            curve = G[i, j] if has_response(linear, i, j) else np.zeros(len(w), np.complex128)
            _draw_bode(magnitude, phase, w, curve, db=db)
            name = f"{plain(linear.outputs[i].name)}\n" if column == 0 else ""
            magnitude.set_ylabel(f"{name}{_name_magnitude(linear, i, j, db=db)}")
            phase.set_ylabel("phase [deg]")
            if drawn is not None:
                drawn.draw_in_bode(magnitude, phase, w, curve, db=db)
    _add_legend(figure, grid.ravel().tolist())
    return figure


def nyquist_figure(linear: LinearModel, *, inputs: Names = None, outputs: Names = None) -> Figure:
    """Return Nyquist diagrams of channels by name, one panel each, the first four of each by default.

    A loop is drawn as wired, with its critical point +1 and its margins.
    """
    u, out = choose_channels(linear, inputs, outputs)
    w = choose_frequencies(linear)
    G = linear.frequency_response(w)
    title = compose_title(linear, "Nyquist diagram", u, out)
    figure = create_titled_figure(
        title, max(4.8 * len(u), 5.6), 4.6 * len(out) + (1.6 if is_single_loop(linear) else 0.6)
    )
    grid = figure.subplots(len(out), len(u), squeeze=False)
    for (row, column), axes in np.ndenumerate(grid):
        i, j = out[row], u[column]
        channel = f"{plain(linear.inputs[j].name)} to {plain(linear.outputs[i].name)}"
        axes.set_title(f"L at {plain(linear.inputs[j].name)}" if is_single_loop(linear) else channel, fontsize=10,
                       loc="left")  # fmt: skip
        ratio = format_ratio(linear.outputs[i], linear.inputs[j])
        axes.set(xlabel=f"real part [{ratio}]", ylabel=f"imaginary part [{ratio}]")
        if has_response(linear, i, j):
            _draw_nyquist(axes, linear, G[i, j])
            _draw_start(axes, linear, i, j, G[i, j, 0])
        else:
            write_no_response(axes)
        draw_grid(axes)
    _add_legend(figure, grid.ravel().tolist())
    return figure


def draw_margins(linear: LinearModel) -> Figure:
    """Return a loop's Bode and Nyquist diagrams with its margins, and S and T with their peaks."""
    if not is_single_loop(linear):
        raise UsageError(
            "Margins are drawn of a loop at one wire of a system, as fl.loop_transfer(system, 'plant.u') returns it."
        )
    drawn = LoopMargins.of(linear)
    w = choose_frequencies(linear)
    L = linear.frequency_response(w)[0, 0]
    figure = create_titled_figure(compose_title(linear, "Margins", [0], [0]), 11.5, 8.0)
    (magnitude, nyquist), (phase, sensitivities) = figure.subplots(2, 2)
    phase.sharex(magnitude)
    _draw_bode(magnitude, phase, w, L, db=True)
    magnitude.set_ylabel(_name_magnitude(linear, 0, 0, db=True))
    phase.set(ylabel="phase [deg]", xlabel="frequency [rad/s]")
    nyquist.set(xlabel="real part", ylabel="imaginary part")
    _draw_nyquist(nyquist, linear, L)
    _draw_start(nyquist, linear, 0, 0, L[0])
    draw_grid(nyquist)
    if drawn is not None:
        drawn.draw_in_bode(magnitude, phase, w, L, db=True)
    _draw_sensitivities(sensitivities, w, L)
    for axes, text in ((magnitude, f"L at {plain(linear.inputs[0].name)}"), (nyquist, "Nyquist diagram of L"),
                       (sensitivities, "S = 1/(1 - L) and T = 1 - S")):  # fmt: skip
        axes.set_title(text, fontsize=10, loc="left")
    _add_legend(figure, [magnitude, phase, nyquist])
    return figure


def draw_margins_of_loop(result: Margins) -> Figure:
    """Return the picture of :func:`draw_margins` of the loop that margins belong to."""
    if result.loop is None:
        raise UsageError("These margins belong to no loop that could be drawn: use fl.design.margins(loop).plot().")
    return draw_margins(result.loop)


def _name_magnitude(linear: LinearModel, i: int, j: int, *, db: bool) -> str:
    ratio = format_ratio(linear.outputs[i], linear.inputs[j])
    return f"magnitude {name_magnitude_unit(ratio, db=db)}"


def _draw_bode(magnitude: Axes, phase: Axes, w: FloatArray, G: Complex, *, db: bool) -> None:
    for axes in (magnitude, phase):
        draw_grid(axes)
        axes.set_xscale("log")
        axes.margins(x=0)
    if not np.nanmax(np.abs(G), initial=0.0) > 0:
        write_no_response(magnitude)
        write_no_response(phase)
        return
    style: dict[str, Any] = {"color": COLORS[0], "linewidth": 1.8}
    if db:
        decibels = convert_to_decibels(np.abs(G))
        magnitude.plot(w, decibels, **style)
        _cut_spikes(magnitude, w, decibels)
        _set_ticks(magnitude, (6.0, 10.0, 20.0, 40.0, 60.0, 100.0), 12.0)
    else:
        magnitude.loglog(w, np.abs(G), **style)
    phase.plot(w, unwrap_phase(G), **style)
    _set_ticks(phase, (45.0, 90.0, 180.0, 360.0, 720.0, 1800.0, 3600.0), 180.0)


def _cut_spikes(axes: Axes, w: FloatArray, decibels: FloatArray) -> None:
    """Limit a magnitude axis to 40 dB beyond nearly all of a curve: poles and zeros without damping reach hundreds."""
    is_finite = np.isfinite(decibels) & (w > 0)
    finite = decibels[is_finite]
    if not len(finite):
        return
    # The frequencies lie close together at a resonance: evenly spaced ones do not count it more often.
    logarithms = np.log(w[is_finite])
    even = np.linspace(logarithms[0], logarithms[-1], SPIKE_POINT_COUNT)
    values = np.interp(even, logarithms, finite)
    low, high = np.percentile(values, [SPIKE_PERCENT, 100 - SPIKE_PERCENT])
    ends = []
    if finite.max() > high + SPIKE_HEIGHT_DB:
        ends.append(f"{finite.max():.0f} dB")
        axes.set_ylim(top=high + SPIKE_HEIGHT_DB)
    if finite.min() < low - SPIKE_HEIGHT_DB:
        is_rounding = finite.min() < low - ROUNDING_DEPTH_DB
        lowest = "0" if is_rounding else f"{finite.min():.0f} dB".replace("-", "\N{MINUS SIGN}")
        ends.append(lowest)
        axes.set_ylim(bottom=low - SPIKE_HEIGHT_DB)
    if ends:
        text = f"the curve reaches {' and '.join(ends)}"
        axes.annotate(text, (0.01, 0.02), xycoords="axes fraction", fontsize=8, color=QUIET, bbox=dict(NOTE_BACKGROUND))


def _set_ticks(axes: Axes, steps: tuple[float, ...], least: float) -> None:
    """Give an axis a range of at least ``least``, and at most eight ticks at multiples of one of ``steps``."""
    from matplotlib.ticker import MultipleLocator

    low, high = axes.get_ylim()
    middle, half = (low + high) / 2, max(high - low, least) / 2
    low, high = middle - half, middle + half
    step = next((step for step in steps if high - low <= 7 * step), None)
    if step is not None:
        axes.yaxis.set_major_locator(MultipleLocator(step))
        low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    axes.set_ylim(low, high)


def _draw_nyquist(axes: Axes, linear: LinearModel, G: Complex) -> None:
    """Draw one curve with its mirror image, its direction, and the critical point."""
    is_loop = is_single_loop(linear)
    critical = 1.0 if is_loop else -1.0
    finite = G[np.isfinite(G)]
    largest = float(np.abs(finite).max(initial=0.0))
    points = np.concatenate((finite, finite.conj()))
    is_near = is_loop or float(np.abs(finite - critical).min(initial=np.inf)) < MAX_CRITICAL_DISTANCE * largest
    if is_near:
        word = "critical point +1" if is_loop else "critical point −1 (negative feedback)"
        axes.plot([critical], [0.0], "+", color=INK, markersize=11, markeredgewidth=2.2, zorder=5, label=word)
        points = np.append(points, critical)
    limit = (
        LOOP_VIEW_SIZE if is_loop else VIEW_LIMIT * max(1.0, float(np.median(np.abs(finite))) if len(finite) else 1.0)
    )
    inner = np.where(np.abs(G) < CUT_FACTOR * limit, G, np.nan)
    axes.plot(inner.real, inner.imag, color=COLORS[0], linewidth=1.8, label="ω > 0")
    axes.plot(inner.real, -inner.imag, color=COLORS[0], linewidth=1.0, linestyle=(0, (4, 2)), label="ω < 0")
    axes.axhline(0, color=QUIET, linewidth=0.8, zorder=1)
    axes.axvline(0, color=QUIET, linewidth=0.8, zorder=1)
    drawn = LoopMargins.of(linear)
    if drawn is not None:
        of_disk = [gain for gain in drawn.margins.disk_gain if math.isfinite(gain)]
        points = np.append(points, [-1.05, 1.05, 1.05j, -1.05j, *of_disk])  # the unit circle, the disk, and a margin
    clipped = np.clip(points.real, -limit, limit) + 1j * np.clip(points.imag, -limit, limit)
    _frame(axes, clipped)
    if largest > 1.01 * limit * math.sqrt(2):
        axes.set_xlabel(f"{axes.get_xlabel()}\nthe curve reaches {largest:.3g}")
    _draw_direction(axes, G)
    if drawn is not None:
        drawn.draw_in_nyquist(axes)


def _draw_start(axes: Axes, linear: LinearModel, i: int, j: int, first: complex) -> None:
    """Close the gap between the static gain, where there is one, and the lowest frequency."""
    try:
        static = complex(linear.frequency_response(np.zeros(1))[i, j, 0])
    except np.linalg.LinAlgError:
        return
    if math.isfinite(abs(static)) and abs(static) < 2 * abs(first):
        values = np.array([first.conjugate(), static, first])
        axes.plot(values.real, values.imag, color=COLORS[0], linewidth=1.0)


def _frame(axes: Axes, points: Complex) -> None:
    """Show all of the points, with the same scale in both directions where that leaves neither flat."""
    width, height = float(np.ptp(points.real)), float(np.ptp(points.imag))
    room = 0.06 * max(width, height) or 1e-3
    axes.set(xlim=(points.real.min() - room, points.real.max() + room),
             ylim=(points.imag.min() - room, points.imag.max() + room))  # fmt: skip
    if max(width, height) < 8 * min(width, height):
        axes.set_aspect("equal", adjustable="box")
    axes.ticklabel_format(scilimits=(-3, 4))


def _draw_direction(axes: Axes, G: Complex) -> None:
    """Draw an arrow in the middle of the part of a curve that is seen."""
    (leftmost, rightmost), (low, high) = axes.get_xlim(), axes.get_ylim()
    inside = np.isfinite(G) & (leftmost < G.real) & (rightmost > G.real) & (low < G.imag) & (high > G.imag)
    k = np.flatnonzero(inside[:-1] & inside[1:])
    if not len(k):
        return
    lengths = np.cumsum(np.abs(G[k + 1] - G[k]))
    at = int(k[int(np.searchsorted(lengths, 0.5 * lengths[-1]))])
    ahead = min(at + 1, len(G) - 1)
    arrow: dict[str, Any] = {"arrowstyle": "-|>", "color": COLORS[0], "mutation_scale": 14, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (G[ahead].real, G[ahead].imag), (G[at].real, G[at].imag), arrowprops=arrow)


def _draw_sensitivities(axes: Axes, w: FloatArray, L: Complex) -> None:
    """Draw |S| and |T| with their peaks."""
    draw_grid(axes)
    axes.set_xscale("log")
    axes.margins(x=0)
    S = 1 / (1 - L)
    for name, values, style in (("S", S, "-"), ("T", 1 - S, (0, (6, 2)))):
        decibels = convert_to_decibels(np.abs(values))
        k = int(np.nanargmax(decibels))
        color = COLORS[0] if name == "S" else COLORS[1]
        is_peak = 0 < k < len(w) - 1
        what = f"peak {np.abs(values[k]):.3g}" if is_peak else f"no peak, up to {np.abs(values[k]):.3g}"
        at = f" at {w[k]:.4g} rad/s" if is_peak else ""
        label = f"|{name}|, {what} ({round(float(decibels[k]), 2) + 0.0:.2f} dB){at}"
        axes.plot(w, decibels, color=color, linewidth=1.8, linestyle=style, label=label)
        if is_peak:
            axes.plot([w[k]], [decibels[k]], "o", color=color, markersize=6, markerfacecolor="white")
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -80.0), high)
    axes.axhline(0, color=QUIET, linewidth=0.8)
    axes.set(xlabel="frequency [rad/s]", ylabel="magnitude [dB]")
    axes.legend(fontsize=9, loc="best", framealpha=1.0, edgecolor="none")


def _add_legend(figure: Figure, panels: list[Axes]) -> None:
    """Name what is drawn once for all panels, below them."""
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if entries:
        columns = 2 if figure.get_figwidth() > MIN_WIDTH_OF_TWO_COLUMNS else 1
        handles, labels = list(entries.values()), list(entries)
        figure.legend(handles, labels, loc="outside lower left", ncols=columns, frameon=False, fontsize=8.5)
