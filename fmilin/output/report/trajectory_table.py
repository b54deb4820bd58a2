"""A motion in a few lines: how it was integrated, where it ended, and how far a linear model is from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from fmilin.output.report.numbers import shortened, value_with_unit
from fmilin.output.report.table import Fact, console_on, fact

if TYPE_CHECKING:
    from rich.table import Table

    from fmilin.motion.simulation.linear_response import Comparison
    from fmilin.motion.simulation.trajectory import Trajectory

__all__ = ["print_comparison", "print_trajectory"]

MOST_ROWS = 40
MOST_EVENTS = 8


def print_trajectory(trajectory: Trajectory, name: str, stream: TextIO) -> None:
    """Print what a person wants to know about a run of the model ``name``."""
    with console_on(stream) as console:
        for word, pieces in _facts(trajectory, name):
            console.print(fact(word, pieces, console.width))
        console.print()
        console.print(_final_values(trajectory))
        console.print()
        for remark in trajectory.remarks:
            console.print(fact("Remark", str(remark).split(), console.width, separator=" "))


def print_comparison(comparison: Comparison, name: str, stream: TextIO) -> None:
    """Print how far the linear model ``name`` gets from the nonlinear one."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=f"Against {name}", title_justify="left", title_style="bold")
    table.add_column("quantity", overflow="fold")
    table.add_column("moves by", justify="right")
    table.add_column("linear is off by", justify="right")
    table.add_column("", justify="right")
    ranges, deviations = comparison.ranges, comparison.deviations
    for signal, reach, off in list(zip(comparison.signals, ranges, deviations, strict=True))[:MOST_ROWS]:
        part = f"{100 * off / reach:.2g} %" if reach > 0 else ""
        unit = signal.unit
        table.add_row(
            shortened(signal.name), value_with_unit(_short(reach), unit), value_with_unit(_short(off), unit), part
        )
    with console_on(stream) as console:
        console.print(table)
        if len(comparison.signals) > MOST_ROWS:
            console.print(f"and {len(comparison.signals) - MOST_ROWS} more")


def _facts(trajectory: Trajectory, name: str) -> Iterator[Fact]:
    times, statistics = trajectory.times, trajectory.statistics
    yield "Model", [name]
    yield "Time", [f"{times[0]:g} s to {times[-1]:g} s", f"{len(times)} samples"]
    yield (
        "Integrated",
        [
            trajectory.stabilization,
            trajectory.method,
            f"{statistics.steps} steps",
            f"{statistics.evaluations} evaluations",
            *([f"{statistics.projections} projections"] if statistics.projections else []),
        ],
    )
    if trajectory.drift.shape[1]:
        worst = int(abs(trajectory.drift).max(axis=0).argmax())
        yield "Drift", [f"{trajectory.largest_drift:.2g} at most ({shortened(trajectory.invariants[worst])})"]
    if trajectory.energy.size:
        change = float(abs(trajectory.energy - trajectory.energy[0]).max())
        yield "Energy", [f"{trajectory.energy[0]:.8g} at the start", f"changes by {change:.2g} at most"]
    if trajectory.switches:
        yield "Switches", [f"{s.time:.6g} s: {', '.join(s.before)} → {', '.join(s.after)}" for s in trajectory.switches]
    if trajectory.events:
        yield "Events", _events(trajectory)


def _events(trajectory: Trajectory) -> Sequence[str]:
    shown = [f"{e.time:.8g} s ({e.cause})" for e in trajectory.events[:MOST_EVENTS]]
    more = len(trajectory.events) - len(shown)
    return [*shown, *([f"and {more} more"] if more else [])]


def _final_values(trajectory: Trajectory) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("at the end", overflow="fold")
    table.add_column("value", justify="right")
    rows = [
        *zip(trajectory.state_signals, trajectory.states[-1], strict=True),
        *((s, v) for s, v in zip(trajectory.output_signals, trajectory.outputs[-1], strict=True)
          if not trajectory.state_signals.has(s.name)),
    ]  # fmt: skip
    for signal, value in rows[:MOST_ROWS]:
        table.add_row(shortened(signal.name), value_with_unit(float(value), signal.unit))
    if len(rows) > MOST_ROWS:
        table.add_row(f"and {len(rows) - MOST_ROWS} more", "")
    return table


def _short(value: float) -> float:
    return float(f"{value:.4g}")
