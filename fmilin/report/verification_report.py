"""A verification as a table and as a picture: both responses of each channel, and how far each holds."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import UsageError, count_omitted
from fmilin.formats import alternatives, matches_suffix
from fmilin.linear_model.verification import Channel, Trace, Verification
from fmilin.report.facts import Fact, print_fact, print_facts, print_remarks
from fmilin.report.figures import COLORS, QUIET, draw_grid, encode_picture, format_unit, new_figure
from fmilin.report.numbers import rough, shorten_name
from fmilin.report.terminal import print_to_stream
from fmilin.support.files import write_atomically
from fmilin.support.tables import Cell, ResultTable, TableColumn, build_cells
from fmilin.tolerances import MIN_OWN_RESPONSE_FRACTION, MIN_RESPONSE_FRACTION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fmilin.support.table_repr import Sheet

MAX_REASONS = 6  # more failed channels are counted, not explained


def verification_text(verification: Verification) -> str:
    """Return the table as text, 80 columns wide."""
    stream = io.StringIO()
    print_to_stream(stream, show_verification, verification)
    return stream.getvalue()


def show_verification(verification: Verification, page: Sheet) -> None:
    """Print what was found, channel by channel."""
    print_facts(page, _facts(verification))
    page.print()
    page.print(channel_table(verification))
    failed = verification.failed
    if failed or verification.remarks:
        page.print()
    for channel in failed[:MAX_REASONS]:
        print_fact(page, "Failed", [_reason(channel)])
    if remaining := count_omitted(len(failed), MAX_REASONS):
        print_fact(page, "", [remaining])
    print_remarks(page, verification.remarks)


def limit_text(channel: Channel) -> str:
    """Return how far a channel holds, ``"0.22 m"`` or ``"> 98 m"``; a dash where nothing is said."""
    validity = channel.validity
    if validity is None:
        return "-"
    sign = "> " if validity.at_least else ""
    return f"{sign}{rough(validity.limit)} {channel.unit}".rstrip()


def _facts(verification: Verification) -> Iterator[Fact]:
    count = len(verification.channels)
    wrong = f"WRONG in {len(verification.failed)} of {count} channels"
    yield "Model", [shorten_name(verification.model.name)]
    yield "Verdict", [f"right to first order in all {count} channels" if verification.passed else wrong]
    floor = f"at least {MIN_RESPONSE_FRACTION:g} of the largest of all ({MIN_OWN_RESPONSE_FRACTION:g} for the 5 %)"
    yield "Compared", [f"each coordinate and output with its own largest response in the channel, {floor}"]
    yield "Followed", [f"{verification.horizon:.4g} s", f"{verification.evaluations} evaluations"]


def channel_table(verification: Verification, *, reasons: bool = False) -> ResultTable:
    """Return one row for each channel: whether the linear model is right in it, how far it holds, what limits it.

    With ``reasons`` that may be a sentence, for which a terminal has no place.
    """
    columns = (
        TableColumn("Channel", largest_width=30),
        TableColumn("rad/s", "right"),
        TableColumn(""),
        TableColumn("Error", "right"),
        TableColumn("Order", "right"),
        TableColumn("Within 5% to", "right"),
        TableColumn("Limited by", largest_width=14),
    )
    rows = (
        (
            shorten_name(channel.label.partition(", ")[0] if channel.kind == "sine" else channel.label),
            _number_cell(channel.frequency, ".4g", ""),
            Cell("pass" if channel.passed else "FAIL", alarm=not channel.passed),
            _number_cell(channel.slope_error, ".1e", "-"),
            _number_cell(channel.order, ".2f", "-"),
            Cell(limit_text(channel), None if channel.validity is None else channel.validity.limit),
            _describe_limit(channel, reasons=reasons),
        )
        for channel in verification.channels
    )
    return ResultTable(columns, build_cells(rows))


def _number_cell(value: float | None, form: str, missing: str) -> Cell:
    """Return a number in a form; ``missing`` where there is none, or it is not finite."""
    if value is None or not np.isfinite(value):
        return Cell(missing)
    return Cell(format(value, form), value)


def _describe_limit(channel: Channel, *, reasons: bool) -> str:
    """Return the signal that limits a channel, or, with ``reasons``, the reason in words."""
    if channel.validity is None:
        return ""
    text = channel.validity.limited_by
    return shorten_name(text) if reasons or " " not in text else "end of the model"


def _reason(channel: Channel) -> str:
    if not np.isfinite(channel.slope_error):
        return f"{channel.label}: {channel.worst}"
    what, scale = f"in the limit of small amplitudes '{channel.worst}'", "the largest response"
    if channel.kind == "point":
        what, scale = f"'{channel.worst}'", "its size"
    elif channel.kind == "drift":
        what, scale = f"the rate of '{channel.worst}' or its change", "its size"
    return f"{channel.label}: {what} is off by {channel.slope_error:.2g} of {scale}."


NONLINEAR, LINEAR, BEYOND = COLORS[0], COLORS[5], COLORS[4]
RIGHT, WRONG = COLORS[:2]
COLUMNS = 3
MAX_PANELS = 12
MAX_BARS = 30


def save_verification(verification: Verification, path: str | Path) -> None:
    """Write what :func:`verification_figure` draws."""
    if not matches_suffix(path, "picture"):
        raise UsageError(f"Cannot draw '{path}': the name of a picture ends in {alternatives('picture')}.")
    write_atomically(path, encode_picture(verification_figure(verification), path))


def validity_figure(verification: Verification) -> Figure:
    """Return a bar per channel up to the amplitude at which the linear model is 5 % off."""
    bars = _select_bars(verification)
    if not bars:
        raise UsageError("The verification has no channel with a range of validity.")
    height = 0.34 * len(bars) + 1.6
    figure = new_figure(10.5, height)
    figure.text(
        0.015, 1 - 0.3 / height, f"Validity: {shorten_name(verification.model.name)}", fontsize=13, fontweight="bold",
        va="center",
    )  # fmt: skip
    _draw_bars(figure.add_axes((0.30, 0.62 / height, 0.55, 1 - 1.45 / height)), bars)
    return figure


def _select_bars(verification: Verification) -> list[Channel]:
    return [c for c in verification.channels if c.kind not in ("point", "drift")][:MAX_BARS]


def verification_figure(verification: Verification) -> Figure:
    """Return a panel per channel, and a bar per channel up to the amplitude at which it is 5 % off."""
    panels = _select_panels([c for c in verification.channels if c.trace is not None])
    bars = _select_bars(verification)
    rows = max(-(-len(panels) // COLUMNS), 1)
    bar_height = 0.26 * max(len(bars), 2) + 1.0
    height = 1.45 + 2.45 * rows + bar_height + 0.3
    figure = new_figure(11.5, height)
    _headline(figure, verification, height)
    middle = (bar_height + 0.45) / height
    edges = {"left": 0.08, "right": 0.985, "top": 1 - 1.4 / height, "bottom": middle + 0.28 / height}
    grid = figure.add_gridspec(rows, COLUMNS, **edges, wspace=0.28, hspace=0.62)
    for i, channel in enumerate(panels):
        _draw_responses(figure.add_subplot(grid[i // COLUMNS, i % COLUMNS]), channel)
    if bars:
        _draw_bars(figure.add_axes((0.30, 0.62 / height, 0.55, middle - 1.12 / height)), bars)
    return figure


def _select_panels(channels: Sequence[Channel]) -> list[Channel]:
    """Return those to draw: the failed ones first, then evenly over the others, in their order."""
    failed = [c for c in channels if not c.passed][:MAX_PANELS]
    passed = [c for c in channels if c.passed]
    room = MAX_PANELS - len(failed)
    if len(passed) > room:
        passed = [passed[i] for i in np.linspace(0, len(passed) - 1, room).round().astype(int)] if room else []
    chosen = {id(c) for c in (*failed, *passed)}
    return [c for c in channels if id(c) in chosen]


def _headline(figure: Figure, verification: Verification, height: float) -> None:
    count, failed = len(verification.channels), len(verification.failed)
    words = f"right to first order in all {count} channels" if not failed else f"wrong in {failed} of {count} channels"
    title = f"{shorten_name(verification.model.name)}: the linear model is {words}"
    traced = [channel for channel in verification.channels if channel.trace is not None]
    drawn = len(_select_panels(traced))
    omitted = f" {drawn} of {len(traced)} responses are drawn." if drawn < len(traced) else ""
    subtitle = (
        "Each response at the amplitude where it is 5 % off, or at a small one where the channel fails: deviations "
        f"from the point, over {verification.horizon:.3g} s.{omitted}"
    )
    color = WRONG if failed else "black"
    figure.text(0.02, 1 - 0.33 / height, title, fontsize=15, fontweight="bold", va="center", color=color)
    figure.text(0.02, 1 - 0.66 / height, subtitle, fontsize=10, color=QUIET, va="center")
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=NONLINEAR, linewidth=2.2, label="nonlinear model on its manifold"),
        Line2D([], [], color=LINEAR, linewidth=1.6, linestyle=(0, (4, 2)), label="linear model"),
        Line2D([], [], color=BEYOND, linewidth=1.2, label="nonlinear at four times the amplitude, divided by four"),
    ]
    corner = (0.01, 1 - 0.75 / height)
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=corner, ncols=3, frameon=False, fontsize=10)


def _draw_responses(axes: Axes, channel: Channel) -> None:
    trace = channel.trace
    if trace is None:
        return
    scale, unit = _choose_unit_prefix(trace)
    if trace.beyond is not None:
        axes.plot(trace.times, trace.beyond / scale, color=BEYOND, linewidth=1.2)
    axes.plot(trace.times, trace.nonlinear / scale, color=NONLINEAR, linewidth=2.2)
    axes.plot(trace.times, trace.linear / scale, color=LINEAR, linewidth=1.6, linestyle=(0, (4, 2)))
    axes.axhline(0, color=QUIET, linewidth=0.6, zorder=0)
    axes.margins(x=0)
    peak = float(max(np.abs(trace.nonlinear).max(), np.abs(trace.linear).max())) / scale or 1.0
    axes.set_ylim(_limits(trace, scale, peak))
    title, color = "\n".join(textwrap.wrap(shorten_name(channel.label), 40)), "black" if channel.passed else WRONG
    axes.set_title(title, fontsize=10, loc="left", color=color, fontweight="bold")
    amplitude = f"amplitude {rough(trace.amplitude)} {_typeset(channel.unit)}".rstrip()
    if channel.kind == "drift":
        amplitude = f"time to {trace.amplitude:.3g} s"
    axes.text(
        0.99, 0.97, amplitude, transform=axes.transAxes, ha="right", va="top", fontsize=8.5, color=QUIET,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.8},
    )  # fmt: skip
    axes.set_ylabel(f"{shorten_name(trace.signal)} [{unit}]" if unit else shorten_name(trace.signal), fontsize=9)
    axes.set_xlabel("time [s]", fontsize=9, labelpad=1)
    _plain(axes)


def _limits(trace: Trace, scale: float, peak: float) -> tuple[float, float]:
    curves = [trace.nonlinear, trace.linear, *([] if trace.beyond is None else [trace.beyond])]
    bound = 1.6 * scale * peak  # what goes far beyond is cut
    low = max(min(float(curve.min()) for curve in curves), -bound) / scale
    high = min(max(float(curve.max()) for curve in curves), bound) / scale
    room = 0.08 * max(high - low, 1e-3 * peak)
    return low - room, high + 3.2 * room  # place for the amplitude


def _choose_unit_prefix(trace: Trace) -> tuple[float, str]:
    """Return a power of ten to divide by, and the unit with it, so that axes carry short numbers."""
    peak = float(max(np.abs(trace.nonlinear).max(), np.abs(trace.linear).max()))
    if peak == 0 or 1e-2 <= peak < 1e4:
        return 1.0, _typeset(trace.unit)
    power = int(np.floor(np.log10(peak)))
    return 10.0**power, rf"$10^{{{power}}}$ {_typeset(trace.unit)}".rstrip()


def _typeset(unit: str) -> str:
    """Return a unit as pictures have it, empty where there is none."""
    return format_unit(unit) if unit else ""


def _draw_bars(axes: Axes, channels: Sequence[Channel]) -> None:
    """Draw one bar per channel, from the amplitude of the slope check to the limit, relative to the former's size."""
    positions = np.arange(len(channels))[::-1]
    spans = [_span(channel) for channel in channels]
    longest = max([1.0, *(s for s in spans if s is not None)])
    for position, channel, span in zip(positions, channels, spans, strict=True):
        if span is None:
            axes.plot(0.0, position, "x", color=WRONG, markersize=7, markeredgewidth=2.2, clip_on=False)
            text, color = f"fails: {channel.slope_error:.2g} off at any amplitude", WRONG
            if not np.isfinite(channel.slope_error):
                text = "fails: no response to compare with"
            axes.text(0.02 * longest, position, text, va="center", fontsize=9, color=color)
            continue
        at_least = channel.validity is not None and channel.validity.at_least
        axes.barh(position, span, height=0.62, color=RIGHT, alpha=0.35 if at_least else 0.85, linewidth=0)
        axes.text(span + 0.012 * longest, position, _draw_limit_text(channel), va="center", fontsize=9, color="black")
        limiting = channel.validity.limited_by if channel.validity is not None else ""
        if limiting and " " not in limiting and span > 0.3 * longest:
            axes.text(
                span - 0.012 * longest, position, f"{shorten_name(limiting)} first", va="center", ha="right",
                fontsize=8.5, color="white",
            )  # fmt: skip
    axes.set_yticks(positions, [shorten_name(c.label) for c in channels], fontsize=9.5)
    axes.set(xlim=(0, longest), ylim=(-0.6, len(channels) - 0.4))
    along = "largest linear deviation of a state at the limit, in sizes of the states (logarithmic)"
    axes.set_xlabel(along, fontsize=9)
    ticks = [t for t in (-3, -2, -1, 0, 1, 2) if t + 3 <= longest]
    axes.set_xticks([t + 3 for t in ticks], [rf"$10^{{{t}}}$" for t in ticks])
    axes.set_title("Right within 5 % up to", fontsize=11, loc="left", fontweight="bold")
    _plain(axes)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _draw_limit_text(channel: Channel) -> str:
    """Return what :func:`limit_text` does, with the unit as pictures have it."""
    return limit_text(replace(channel, unit=_typeset(channel.unit)))


def _span(channel: Channel) -> float | None:
    """Return the length of a bar: decades of motion above a thousandth of the states' sizes."""
    if channel.validity is None:
        return None
    return float(max(np.log10(max(channel.validity.motion, 1e-3)) + 3, 0.05))


def _plain(axes: Axes) -> None:
    draw_grid(axes)
    axes.tick_params(labelsize=8.5)
