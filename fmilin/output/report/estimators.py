"""Estimators, and what they made of recorded data, as tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.ground.signals import FloatArray, Signal
from fmilin.output.report.figures import COLORS, QUIET, gridded, labelled, titled_figure
from fmilin.output.report.numbers import shortened
from fmilin.output.report.page import Sheet
from fmilin.output.report.table import print_fact, print_remarks, print_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 8  # states that are drawn
NAMES = 8  # measurements that are named


def show_estimator(estimator: Any, page: Sheet) -> None:  # of the room beside this one
    """Print the present estimate with its standard deviations."""
    names = estimator.model.outputs.names
    kind = f"{estimator.kind.upper()} every {estimator.sample_time:g} s"
    print_fact(page, "Estimator", [kind, f"of {estimator.model.info.name}", f"t = {estimator.time:g} s"])
    print_fact(page, "Measured", [shortened(name) for name in names[:NAMES]])
    print_fact(page, "Coordinates", list(estimator.states.names))
    _print_states(page, "estimate", zip(estimator.model.states, estimator.x, estimator.deviations, strict=True))
    if estimator.remarks:
        page.print()
        print_remarks(page, estimator.remarks)


def show_filtered(filtered: Any, page: Sheet) -> None:
    """Print the last estimate, and whether innovations are as large as expected, and white."""
    mean, low, high = filtered.mean_nis
    times = f"{filtered.times[0]:g} s to {filtered.times[-1]:g} s" if len(filtered.times) else "no samples"
    print_fact(page, "Filtered", [f"{len(filtered.times)} samples", times])
    verdict = "inside" if low <= mean <= high else "outside"
    print_fact(page, "NIS", [f"{mean:.4g} for one output", f"{verdict} [{low:.4g}, {high:.4g}] (95 %)"])
    rms = np.sqrt(np.nanmean(filtered.innovations**2, axis=0))
    every = zip(filtered.output_signals, rms, filtered.whiteness().values(), strict=True)
    rows = ((shortened(signal.name), signal.unit, f"{size:.3g}", f"{p:.2g}") for signal, size, p in every)
    print_rows(page, ("Output", "Unit", "innovation rms", "whiteness p"), rows, columns="llrr")
    last = zip(filtered.state_signals, filtered.states[-1], filtered.deviations[-1], strict=True)
    _print_states(page, "at the end", last)


def _print_states(page: Sheet, head: str, every: Iterable[tuple[Signal, float, float]]) -> None:
    rows = ((shortened(s.name), s.unit, f"{value:.6g}", f"{deviation:.3g}") for s, value, deviation in every)
    print_rows(page, ("State", "Unit", head, "std"), rows, columns="llrr")


def filtered_figure(filtered: Any, truth: FloatArray | None = None) -> Figure:
    """Return estimates in their band of two standard deviations, whitened innovations, and their autocorrelation."""
    N, m = min(filtered.states.shape[1], MOST_PANELS), filtered.whitened.shape[1]
    rows = (N + 1) // 2 + 1
    mean, low, high = filtered.mean_nis
    title = f"NIS for one output {mean:.3g}, 95 % in [{low:.3g}, {high:.3g}]"
    figure = titled_figure(title, 10.5, 1.2 + 1.9 * rows, 13)
    every, t = figure.subplots(rows, 2, squeeze=False), filtered.times
    for i, axes in enumerate(every.ravel()[: 2 * (rows - 1)]):
        if i >= N:
            axes.set_axis_off()
            continue
        x, d = filtered.states[:, i], filtered.deviations[:, i]
        axes.fill_between(t, x - 2 * d, x + 2 * d, color=COLORS[0], alpha=0.25, linewidth=0)
        axes.plot(t, x, color=COLORS[0], linewidth=1.4, label="estimate, 95 %")
        if truth is not None:
            axes.plot(t, truth[:, i], color=COLORS[1], linewidth=1.0, linestyle="--", label="truth")
        axes.set_ylabel(labelled(filtered.state_signals[i]))
        gridded(axes)
    every[0, 0].legend(fontsize=8, loc="best")
    innovations, correlation = every[-1]
    for k, name in enumerate(filtered.output_signals.names):
        innovations.plot(t, filtered.whitened[:, k], ".", markersize=2.5, color=COLORS[k % len(COLORS)], label=name)
        rho = filtered.autocorrelation()[1:, k]
        correlation.plot(np.arange(1, len(rho) + 1), rho, "o-", markersize=3, color=COLORS[k % len(COLORS)], label=name)
    innovations.set_ylabel("innovation / std")
    innovations.set_xlabel("time [s]")
    band = 2 / np.sqrt(max(int(np.isfinite(filtered.whitened).sum(axis=0).min()), 1))
    for axes, ends in ((innovations, 2.0), (correlation, band)):
        for end in (-ends, ends):
            axes.axhline(end, color=QUIET, linewidth=0.9, linestyle=":")
        gridded(axes)
    correlation.set_ylabel("autocorrelation")
    correlation.set_xlabel("lag [samples]")
    if m <= MOST_PANELS:
        correlation.legend(fontsize=7, ncols=2, framealpha=0.6, loc="upper right")
    return figure
