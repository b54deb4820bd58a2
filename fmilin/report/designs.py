"""Tables and pictures of designs: schedules, responses, regulators, Monte Carlo runs, estimators."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import cut_list, join_first
from fmilin.linear_model.measured_angles import describe_wrapped
from fmilin.report.facts import print_fact, print_remarks, print_rows
from fmilin.report.figures import COLORS, QUIET, create_titled_figure, draw_grid, format_label, format_unit, plain
from fmilin.report.numbers import shorten_name
from fmilin.signals import FloatArray, Signal
from fmilin.support.table_repr import Sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.design.estimation.consistency import Filtered
    from fmilin.design.estimation.estimator import Estimator
    from fmilin.design.frequency_response import FrequencyResponse
    from fmilin.design.margins import Margins
    from fmilin.design.monte_carlo import MonteCarlo
    from fmilin.design.regulators import EstimatorRegulator, FunctionRegulator, KalmanRegulator
    from fmilin.design.schedule import Schedule
    from fmilin.design.schedule_check import ScheduleReport
    from fmilin.design.shaped_regulator import ShapedRegulator
    from fmilin.design.tuning import Tuned

MAX_POINTS = 8  # points shown


def show_schedule(schedule: Schedule, page: Sheet) -> None:
    """Print what it reads and sets, over which ranges, and its report."""
    axes = zip(schedule.over, schedule.table.axes, strict=True)
    print_fact(page, "Schedule", [f"of {schedule.family.template.model.name}", f"{schedule.form} form"])
    print_fact(page, "Over", [f"{shorten_name(n)} from {a[0]:g} to {a[-1]:g}, {len(a)} values" for n, a in axes])
    print_fact(page, "Reads", cut_list(map(shorten_name, schedule.measured.names), MAX_POINTS))
    print_fact(page, "Sets", [shorten_name(n) for n in schedule.drives])
    if schedule.sample_time:
        print_fact(page, "Every", [f"{schedule.sample_time:g} s"])
    show_schedule_report(schedule.report, page)


SCHEDULE_COLUMNS = (
    "Decay: of the slowest motion with fixed scheduling variables; ±: its error by interpolation between points. Read "
    "from the plant: the decay where scheduling variables follow the plant."
)


def show_schedule_report(report: ScheduleReport, page: Sheet) -> None:
    """Print how many points are stable, the weakest of them, holes and diagnostics."""
    counts = [f"{report.count(k)} {k}" for k in ("stable", "uncertain", "unstable")]
    print_fact(page, "Closed loop", [f"of {len(report.verdicts)} points {counts[0]}", *counts[1:]])
    if report.holes:
        first = shorten_name(next(iter(report.holes)), 150)
        print_fact(page, "Holes", [f"{sum(report.holes.values())} points of the grid; the first: {first}"])
    weakest = report.weakest[:MAX_POINTS]
    if weakest:
        values = ", ".join(f"{name} = {x:.5g}" for name, x in zip(report.over, report.points[weakest[0]], strict=True))
        print_fact(page, "Weakest", [values])
    rows = []
    for k in sorted(weakest, key=lambda k: tuple(report.points[k].tolist())):
        verdict = report.verdicts[k]
        rates = (verdict.decay, verdict.uncertainty, verdict.measured_decay)
        numbers = (f"{rate:.4g}" if np.isfinite(rate) else "" for rate in rates)
        rows.append((*(f"{value:.5g}" for value in report.points[k]), verdict.kind, *numbers))
    heads = (*report.over, "Loop", "Decay [1/s]", "±", "Read from the plant")
    print_rows(page, heads, rows, columns="r" * len(report.over) + "lrrr")
    page.print(SCHEDULE_COLUMNS)
    for remark in report.remarks:
        page.print()
        page.print(remark)


def show_response(measured: FrequencyResponse, page: Sheet) -> None:
    """Print magnitude and phase at every frequency, of the first outputs and the first amplitude."""
    sizes = ", ".join(f"{a:.4g}" for a in measured.amplitudes)
    print_fact(
        page, "Measured", [f"from {shorten_name(measured.input.name)}", f"amplitude {sizes} {measured.input.unit}"]
    )
    names = measured.outputs.names[:2]
    heads = [f"{part} {shorten_name(name)}" for name in names for part in ("|G|", "phase [deg]", "error")]
    shape = (-1, *measured.response.shape[-2:])
    G, error = measured.response.reshape(shape)[0], measured.error.reshape(shape)[0]
    rows = []
    for k, w in enumerate(measured.frequencies[:24]):
        cells = [(abs(G[i, k]), np.degrees(np.angle(G[i, k])), error[i, k]) for i in range(len(names))]
        rows.append((f"{w:.5g}", *(text for a, b, c in cells for text in (f"{a:.5g}", f"{b:.2f}", f"{c:.1e}"))))
    print_rows(page, ("w [rad/s]", *heads), rows, columns="r" * (1 + len(heads)))


def show_sentence(result: object, page: Sheet) -> None:
    """Print what a result says of itself."""
    page.print(str(result))


def show_margins(margins: Margins, page: Sheet) -> None:
    """Print the margins of a loop, one a line, with the frequencies that they belong to."""
    if not margins.stable:
        page.print(str(margins))
        return
    print_fact(page, "Closed loop", "stable")
    if not math.isnan(margins.phase):
        low, high = margins.gain
        print_fact(page, "Gain", f"{low:.4g} to {high:.4g}{_write_frequency(margins.gain_frequency)}")
        print_fact(page, "Phase", f"{margins.phase:.4g} deg{_write_frequency(margins.phase_frequency)}")
        print_fact(page, "Delay", f"{margins.delay:.4g} s")
    low, high = margins.disk_gain
    disk = f"{margins.disk:.4g}{_write_frequency(margins.disk_frequency)}: gains {low:.4g} to {high:.4g} and phases"
    print_fact(page, "Disk margin", f"{disk} within {margins.disk_phase:.4g} deg at once")
    for warning in margins.warnings:
        page.print(f"! {warning}")


def _write_frequency(frequency: float) -> str:
    return "" if math.isnan(frequency) else f" at {frequency:.4g} rad/s"


def show_regulator(
    regulator: FunctionRegulator | KalmanRegulator | EstimatorRegulator | ShapedRegulator, page: Sheet
) -> None:
    """Print what a regulator reads and drives, how often, and its gain."""
    print_fact(page, "Reads", [join_first(map(shorten_name, regulator.reads), 12)])
    print_fact(page, "Drives", [join_first(map(shorten_name, regulator.drives), 12)])
    print_fact(page, "Every", [f"{regulator.sample_time:g} s"])
    for row in np.atleast_2d(getattr(regulator, "gain", np.empty((0, 0))))[:12]:
        print_fact(page, "Gain", [join_first((f"{k:.5g}" for k in row), 12)])


def show_tuned(tuned: Tuned, page: Sheet) -> None:
    """Print the parameters, and the loop of every plant."""
    print_fact(page, "Parameters", [f"{name} = {value:.6g}" for name, value in tuned.parameters.items()])
    print_fact(page, "Goals", ["reached" if tuned.attained else "not reached"])
    numbered_margins = enumerate(zip(tuned.disk_margins[:24], tuned.bandwidths[:24], strict=True))
    rows = ((str(k), f"{margin:.4g}", f"{bandwidth:.4g}") for k, (margin, bandwidth) in numbered_margins)
    print_rows(page, ("Plant", "Disk margin", "Bandwidth [rad/s]"), rows, columns="rrr")


def show_monte_carlo(study: MonteCarlo, page: Sheet) -> None:
    """Print the statistics of every measure, and failures."""
    runs = len(next(iter(study.samples.values()), study.times))
    failed = sum(study.failures.values())
    print_fact(
        page, "Runs", [f"{runs}, of which {failed} failed", *(shorten_name(r, 150) for r in list(study.failures)[:2])]
    )
    print_fact(page, "Parameters", [f"{n} from {v.min():.4g} to {v.max():.4g}" for n, v in study.samples.items()])
    rows = []
    for name, values in study.measures.items():
        v = values[np.isfinite(values)]
        low, high = np.percentile(v, (5, 95)) if len(v) else (np.nan, np.nan)
        numbers = (v.mean(), v.std(), v.min(), low, high, v.max()) if len(v) else (np.nan,) * 6
        rows.append((shorten_name(name), *(f"{x:.4g}" for x in numbers)))
    print_rows(page, ("Measure", "Mean", "std", "Least", "5 %", "95 %", "Largest"), rows, columns="lrrrrrr")


def monte_carlo_figure(study: MonteCarlo) -> Figure:
    """Return medians and bands of the signals over time."""
    runs = max((len(rows) for rows in study.courses.values()), default=0)
    failed = f", {sum(study.failures.values())} of them failed" if study.failures else ""
    figure = create_titled_figure(
        f"Monte Carlo: median and 5th to 95th percentiles of {runs} runs{failed}", 8.5, 2.2 * len(study.courses) + 0.8
    )
    panels = figure.subplots(max(len(study.courses), 1), 1, squeeze=False, sharex=True)[:, 0]
    for axes, (name, rows) in zip(panels, study.courses.items(), strict=False):
        low, middle, high = np.nanpercentile(rows, (5, 50, 95), axis=0)
        axes.fill_between(study.times, low, high, color=COLORS[0], alpha=0.25, linewidth=0)
        axes.plot(study.times, middle, color=COLORS[0])
        unit = study.units.get(name, "")
        axes.set_ylabel(f"{plain(name)} [{format_unit(unit)}]" if unit else plain(name))
        axes.margins(x=0)
        draw_grid(axes)
    panels[-1].set_xlabel("time [s]")
    return figure


MAX_PANELS = 8  # states that are drawn
NAMES = 8  # measurements that are named


def show_estimator(estimator: Estimator, page: Sheet) -> None:
    """Print the present estimate with its standard deviations."""
    names = estimator.model.outputs.names
    kind = f"{estimator.kind.upper()} every {estimator.sample_time:g} s"
    print_fact(page, "Estimator", [kind, f"of {estimator.model.info.name}", f"t = {estimator.time:g} s"])
    print_fact(page, "Measured", cut_list(map(shorten_name, names), NAMES))
    measured = estimator.model.outputs.with_turns([turn or None for turn in estimator.turns.tolist()])
    if wrapped := describe_wrapped(measured):
        print_fact(page, "Wraps", wrapped)
    print_fact(page, "Coordinates", list(estimator.states.names))
    _print_states(page, "estimate", zip(estimator.model.states, estimator.x, estimator.deviations, strict=True))
    if estimator.remarks:
        page.print()
        print_remarks(page, estimator.remarks)


def show_filtered(filtered: Filtered, page: Sheet) -> None:
    """Print the last estimate, and whether innovations are as large as expected, and white."""
    mean, low, high = filtered.mean_nis
    times = f"{filtered.times[0]:g} s to {filtered.times[-1]:g} s" if len(filtered.times) else "no samples"
    print_fact(page, "Filtered", [f"{len(filtered.times)} samples", times])
    verdict = "inside" if low <= mean <= high else "outside"
    print_fact(page, "NIS", [f"{mean:.4g} for one output", f"{verdict} [{low:.4g}, {high:.4g}] (95 %)"])
    rms = np.sqrt(np.nanmean(filtered.innovations**2, axis=0))
    outputs = zip(filtered.output_signals, rms, filtered.whiteness().values(), strict=True)
    rows = ((shorten_name(signal.name), signal.unit, f"{size:.3g}", f"{p:.2g}") for signal, size, p in outputs)
    print_rows(page, ("Output", "Unit", "innovation rms", "whiteness p"), rows, columns="llrr")
    last = zip(filtered.state_signals, filtered.states[-1], filtered.deviations[-1], strict=True)
    _print_states(page, "at the end", last)


def _print_states(page: Sheet, head: str, estimates: Iterable[tuple[Signal, float, float]]) -> None:
    rows = ((shorten_name(s.name), s.unit, f"{value:.6g}", f"{deviation:.3g}") for s, value, deviation in estimates)
    print_rows(page, ("State", "Unit", head, "std"), rows, columns="llrr")


def create_filter_figure(filtered: Filtered, truth: FloatArray | None = None) -> Figure:
    """Return estimates in their band of two standard deviations, whitened innovations, and their autocorrelation."""
    N, m = min(filtered.states.shape[1], MAX_PANELS), filtered.whitened.shape[1]
    rows = (N + 1) // 2 + 1
    mean, low, high = filtered.mean_nis
    title = f"Filter: NIS for one output {mean:.3g}, 95 % in [{low:.3g}, {high:.3g}]"
    figure = create_titled_figure(title, 10.5, 1.2 + 1.9 * rows, 13)
    grid, t = figure.subplots(rows, 2, squeeze=False), filtered.times
    for i, axes in enumerate(grid.ravel()[: 2 * (rows - 1)]):
        if i >= N:
            axes.set_axis_off()
            continue
        x, d = filtered.states[:, i], filtered.deviations[:, i]
        axes.fill_between(t, x - 2 * d, x + 2 * d, color=COLORS[0], alpha=0.25, linewidth=0)
        axes.plot(t, x, color=COLORS[0], linewidth=1.4, label="estimate, 95 %")
        if truth is not None:
            axes.plot(t, truth[:, i], color=COLORS[1], linewidth=1.0, linestyle="--", label="truth")
        axes.set_ylabel(format_label(filtered.state_signals[i]))
        draw_grid(axes)
    grid[0, 0].legend(fontsize=8, loc="best")
    innovations, correlation = grid[-1]
    for k, name in enumerate(filtered.output_signals.names):
        innovations.plot(t, filtered.whitened[:, k], ".", markersize=2.5, color=COLORS[k % len(COLORS)], label=name)
        rho = filtered.autocorrelation()[1:, k]
        correlation.plot(np.arange(1, len(rho) + 1), rho, "o-", markersize=3, color=COLORS[k % len(COLORS)], label=name)
    innovations.set(xlabel="time [s]", ylabel="innovation / std")
    band = 2 / np.sqrt(max(int(np.isfinite(filtered.whitened).sum(axis=0).min()), 1))
    for axes, ends in ((innovations, 2.0), (correlation, band)):
        for end in (-ends, ends):
            axes.axhline(end, color=QUIET, linewidth=0.9, linestyle=":")
        draw_grid(axes)
    correlation.set(xlabel="lag [samples]", ylabel="autocorrelation")
    correlation.xaxis.get_major_locator().set_params(integer=True)
    if m <= MAX_PANELS:
        correlation.legend(fontsize=7, ncols=2, framealpha=0.6, loc="upper right")
    return figure
