"""A motion in a few lines and as a picture, compared with a linear model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.errors import count_omitted, cut_list
from fmilin.report.facts import Fact, print_fact, print_facts
from fmilin.report.figures import COLORS, GRID, QUIET, create_titled_figure, draw_grid
from fmilin.report.numbers import shorten_name, value_with_unit
from fmilin.signals import FloatArray
from fmilin.support.tables import build_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fmilin.composition.linear_response import ResponseComparison
    from fmilin.simulation.trajectory import Trajectory
    from fmilin.support.table_repr import Sheet

MAX_LINES = 8
MAX_PANELS = 6
Line = tuple[str, FloatArray]  # what is drawn over time: its name and its values
MIN_PLOTTED_DRIFT_SIZE = 1e-18  # drift below this is drawn here: the axis is logarithmic


def trajectory_figure(trajectory: Trajectory, comparison: ResponseComparison | None = None, *, title: str) -> Figure:
    """Return a panel for each unit of the outputs, else of the states, and the drift; the linear model is dashed."""
    panels = _panels(trajectory)
    with_drift = trajectory.drift.shape[1] > 0
    rows = len(panels) + with_drift
    figure = create_titled_figure(title, 9.5, 1.3 + 2.2 * rows, 13)
    panel_axes = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    for axes, (unit, lines) in zip(panel_axes, panels.items(), strict=False):
        _draw(axes, trajectory.times, lines, comparison)
        axes.set_ylabel(f"[{unit}]" if unit else "")
    if with_drift:
        largest = np.max(np.abs(trajectory.drift), axis=1)
        panel_axes[-1].semilogy(
            trajectory.times, np.maximum(largest, MIN_PLOTTED_DRIFT_SIZE), color=QUIET, linewidth=1.2
        )
        panel_axes[-1].set_ylabel("drift")
        residual = f"Largest constraint residual ({trajectory.stabilization})"
        panel_axes[-1].set_title(residual, fontsize=9.5, loc="left", color=QUIET)
    panel_axes[-1].set_xlabel("time [s]")
    for axes in panel_axes:
        for event in trajectory.events:
            axes.axvline(event.time, color=GRID, linewidth=1.2, zorder=0)
        draw_grid(axes)
        axes.margins(x=0)
    return figure


def _panels(trajectory: Trajectory) -> dict[str, list[Line]]:
    """Return what is drawn, by unit; the most common units first where there are too many."""
    signals, values = trajectory.output_signals, trajectory.outputs
    if not len(signals):
        signals, values = trajectory.state_signals, trajectory.states
    panels: dict[str, list[Line]] = {}
    for signal, course in zip(signals, values.T, strict=True):
        panels.setdefault(signal.unit, []).append((signal.name, course))
    if trajectory.energy.size:
        lines = panels.setdefault("J", [])
        if "energy" not in dict(lines):
            lines.append(("energy", trajectory.energy))
    order = sorted(panels, key=lambda unit: -len(panels[unit]))[:MAX_PANELS]
    return {unit: lines for unit, lines in panels.items() if unit in order}


def _draw(axes: Axes, times: FloatArray, lines: list[Line], comparison: ResponseComparison | None) -> None:
    for (name, values), color in zip(lines, COLORS, strict=False):
        axes.plot(times, values, color=color, linewidth=1.7, label=name)
        if comparison is not None and comparison.signals.has(name):
            column = comparison.linear[:, comparison.signals.positions[name]]
            axes.plot(comparison.times, column, color=color, linewidth=1.5, linestyle=(0, (4, 2.5)), alpha=0.75)
    if comparison is not None:
        axes.plot([], [], color=QUIET, linewidth=1.5, linestyle=(0, (4, 2.5)), label="linear")
    more = count_omitted(len(lines), MAX_LINES) or None
    at_right: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    axes.legend(**at_right, frameon=False, fontsize=9, title=more, title_fontsize=8)


MAX_ROWS = 40
MAX_EVENTS = 8


def show_trajectory(trajectory: Trajectory, page: Sheet, *, name: str = "") -> None:
    """Print what a person wants to know about a run; ``name`` is the model's, which a trajectory does not know."""
    if name:
        print_fact(page, "Model", [name])
    print_facts(page, _facts(trajectory))
    page.print()
    values = [
        *zip(trajectory.state_signals, trajectory.states[-1], strict=True),
        *((s, v) for s, v in zip(trajectory.output_signals, trajectory.outputs[-1], strict=True)
          if not trajectory.state_signals.has(s.name)),
    ]  # fmt: skip
    rows = ((shorten_name(signal.name), value_with_unit(float(value), signal.unit)) for signal, value in values)
    page.print(build_table(("At the end", "Value"), rows, columns="fr", most=MAX_ROWS))
    for number, remark in enumerate(trajectory.remarks):
        if not number:
            page.print()
        print_fact(page, "Remark", str(remark))
    if name:
        page.print()


def show_comparison(comparison: ResponseComparison, page: Sheet, *, name: str) -> None:
    """Print how far the linear model ``name`` gets from the nonlinear one."""
    rows = []
    for signal, reach, off in zip(comparison.signals, comparison.ranges, comparison.deviations, strict=True):
        part = f"{100 * off / reach:.2g} %" if reach > 0 else ""
        short = (value_with_unit(float(f"{value:.4g}"), signal.unit) for value in (reach, off))
        rows.append((shorten_name(signal.name), *short, part))
    heads = (f"Against {name}", "Moves by", "Linear is off by", "")
    page.print(build_table(heads, rows, columns="frrr", most=MAX_ROWS))


def _facts(trajectory: Trajectory) -> Iterator[Fact]:
    times, statistics = trajectory.times, trajectory.statistics
    yield "Time", [f"{times[0]:g} s to {times[-1]:g} s", f"{len(times)} samples"]
    counts = [f"{statistics.steps} steps", f"{statistics.evaluations} evaluations"]
    counts += [f"{statistics.projections} projections"] if statistics.projections else []
    yield "Integrated", [trajectory.stabilization, trajectory.method, *counts]
    if trajectory.drift.shape[1]:
        worst = int(abs(trajectory.drift).max(axis=0).argmax())
        yield "Drift", [f"{trajectory.largest_drift:.2g} at most ({shorten_name(trajectory.invariants[worst])})"]
    if trajectory.energy.size:
        change = float(abs(trajectory.energy - trajectory.energy[0]).max())
        yield "Energy", [f"{trajectory.energy[0]:.8g} at the start", f"changes by {change:.2g} at most"]
    if trajectory.switches:
        yield "Switches", [f"{s.time:.6g} s: {', '.join(s.before)} → {', '.join(s.after)}" for s in trajectory.switches]
    if trajectory.events:
        yield "Events", cut_list([f"{e.time:.8g} s ({e.cause})" for e in trajectory.events], MAX_EVENTS)
