"""A motion as a picture: quantities by unit, the linear model dashed beside them, the drift of the constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.output.report.figures import COLORS, QUIET, new_figure, open_sides, rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fmilin.motion.simulation.linear_response import Comparison
    from fmilin.motion.simulation.trajectory import Trajectory

__all__ = ["trajectory_picture"]

MOST_LINES = 8
MOST_PANELS = 6
FLOOR = 1e-18
"""Drift below this is drawn here: the axis is logarithmic."""


@dataclass(frozen=True, eq=False)
class _Line:
    name: str
    unit: str
    values: FloatArray


def trajectory_picture(
    trajectory: Trajectory, comparison: Comparison | None = None, *, title: str, suffix: str = ".png"
) -> bytes:
    """Return a picture: a panel for each unit, and the drift of the invariants where there are any.

    Outputs are drawn, and states where there are none. Events are grey lines; of a comparison the linear model
    is dashed.
    """
    panels = _panels(trajectory)
    with_drift = trajectory.drift.shape[1] > 0
    rows = len(panels) + with_drift
    figure = new_figure(9.5, 1.3 + 2.2 * rows, layout="constrained")
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    every = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    for axes, (unit, lines) in zip(every, panels.items(), strict=False):
        _draw(axes, trajectory.times, lines, comparison)
        axes.set_ylabel(f"[{unit}]" if unit else "")
    if with_drift:
        _draw_drift(every[-1], trajectory)
    every[-1].set_xlabel("time [s]")
    for axes in every:
        for event in trajectory.events:
            axes.axvline(event.time, color="#c9ccd1", linewidth=0.8, zorder=0)
        axes.grid(visible=True, color="#e4e6e9", linewidth=0.7)
        axes.margins(x=0)
        open_sides(axes)
    return rendered(figure, suffix)


def _panels(trajectory: Trajectory) -> dict[str, list[_Line]]:
    """Return what is drawn, by unit; the most common units first where there are too many."""
    signals, values = trajectory.output_signals, trajectory.outputs
    if not len(signals):
        signals, values = trajectory.state_signals, trajectory.states
    found: dict[str, list[_Line]] = {}
    for signal, course in zip(signals, values.T, strict=True):
        found.setdefault(signal.unit, []).append(_Line(signal.name, signal.unit, course))
    if trajectory.energy.size:
        lines = found.setdefault("J", [])
        if all(line.name != "energy" for line in lines):
            lines.append(_Line("energy", "J", trajectory.energy))
    order = sorted(found, key=lambda unit: -len(found[unit]))[:MOST_PANELS]
    return {unit: lines for unit, lines in found.items() if unit in order}


def _draw(axes: Axes, times: FloatArray, lines: list[_Line], comparison: Comparison | None) -> None:
    for line, color in zip(lines, COLORS, strict=False):
        axes.plot(times, line.values, color=color, linewidth=1.7, label=line.name)
        if comparison is not None and comparison.signals.has(line.name):
            column = comparison.linear[:, comparison.signals.positions[line.name]]
            axes.plot(comparison.times, column, color=color, linewidth=1.5, linestyle=(0, (4, 2.5)), alpha=0.75)
    if comparison is not None:
        axes.plot([], [], color=QUIET, linewidth=1.5, linestyle=(0, (4, 2.5)), label="linear")
    more = len(lines) - MOST_LINES
    axes.legend(
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize=9,
        title=f"and {more} more" if more > 0 else None,
        title_fontsize=8,
    )


def _draw_drift(axes: Axes, trajectory: Trajectory) -> None:
    largest = np.max(np.abs(trajectory.drift), axis=1)
    axes.semilogy(trajectory.times, np.maximum(largest, FLOOR), color=QUIET, linewidth=1.2)
    axes.set_ylabel("drift")
    axes.set_title(f"Largest constraint residual ({trajectory.stabilization})", fontsize=9.5, loc="left", color=QUIET)
