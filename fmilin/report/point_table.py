"""Equilibria and steady motions as a person reads them on a terminal, or in a file of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from fmilin.model.interface import Model
from fmilin.report.numbers import shortened, value_with_unit
from fmilin.report.table import Fact, console_on, fact, simple_table
from fmilin.signals import rate_unit
from fmilin.trimming.result import TrimmedPoint, TrimReport

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["print_points"]

MOST_STATES = 60
"""Longer tables are cut, and say how much was left out."""

SHOWN_AS_ZERO = 1e-12
"""Of a state's size: shown as zero."""


def print_points(model: Model, points: Sequence[TrimmedPoint], stream: TextIO) -> None:
    """Print what a person wants to know about points of ``model``."""
    with console_on(stream) as console:
        for i, point in enumerate(points):
            if i:
                console.print()
            if len(points) > 1:
                console.print(fact("Point", [f"{i + 1} of {len(points)}"], console.width))
            _print_point(model, point, console)


def _print_point(model: Model, point: TrimmedPoint, console: Console) -> None:
    for word, pieces in _facts(model, point):
        console.print(fact(word, pieces, console.width))
    if len(model.states):
        console.print()
        console.print(_states(point))
        if len(model.states) > MOST_STATES:
            console.print(f"and {len(model.states) - MOST_STATES} more; all of them are in a file (-o point.toml)")
    console.print()
    for remark in point.report.remarks:
        word = "Note" if remark.kind == "family" else "Warning"
        console.print(fact(word, str(remark).split(), console.width, separator=" "))
    if not point.report.remarks:
        console.print("No warnings.")


def _facts(model: Model, point: TrimmedPoint) -> Iterator[Fact]:
    report = point.report
    yield "Model", [shortened(model.info.name)]
    yield "Found", [report.summary, f"t = {point.time:.8g} s"]
    units = model.inputs.units
    inputs = [
        f"{shortened(n)} = {value_with_unit(v, unit)}"
        for n, v, unit in zip(model.inputs.names, point.inputs.tolist(), units, strict=True)
    ]
    yield "Inputs", inputs or ["none"]
    if point.parameters:
        yield "Parameters", [f"{shortened(n)} = {v:.8g}" for n, v in point.parameters.items()]
    if report.at_bounds:
        yield "At a bound", [shortened(n) for n in report.at_bounds]
    yield "Residual", [f"{report.residual:.1e}" if report.residual else "0", "in sizes of the states (per second)"]
    for i, direction in enumerate(report.free_directions):
        along = [f"{shortened(n)} by {slope:.4g}" for n, slope in direction.along.items()]
        follow = [f"and with it {along[0]}", *along[1:]] if along else []
        yield "" if i else "Free", [f"{shortened(direction.name)} by 1", *follow]


def _states(point: TrimmedPoint) -> Table:
    report = point.report
    steady = not report.is_equilibrium
    table = simple_table()
    table.add_column("State")
    table.add_column("Value", justify="right")
    table.add_column("Unit")
    if steady:
        table.add_column("Rate", justify="right")
        table.add_column("Unit")
        table.add_column("")
    sizes = report.states.scales(point.states)
    rows = list(zip(report.states, point.states, report.rates, sizes, strict=True))[:MOST_STATES]
    for signal, value, rate, size in rows:
        cells = [shortened(signal.name), _figure(value, size), signal.unit]
        if steady:
            moves = signal.name in report.moving
            cells += [_figure(rate, size) if moves else "0", rate_unit(signal.unit), _kind(report, signal.name)]
        table.add_row(*cells)
    return table


def _kind(report: TrimReport, name: str) -> str:
    """Return how a state moves."""
    if name not in report.moving:
        return ""
    rate = "varying rate" if name in report.varying else "constant rate"
    return f"{rate}, follows" if name in report.dragged else rate


def _figure(value: float, size: float) -> str:
    return f"{0.0 if abs(value) < SHOWN_AS_ZERO * size else value:.8g}"
