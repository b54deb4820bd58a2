"""Equilibria and steady motions as a person reads them on a terminal, or in a file of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from fmilin.ground.signals import FloatArray, rate_unit
from fmilin.model.interface import Model, OperatingPoint
from fmilin.output.report.numbers import shortened, value_with_unit
from fmilin.output.report.table import Fact, console_on, fact, simple_table
from fmilin.points.result import TrimmedPoint, TrimReport

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fmilin.output.report.page import Page

__all__ = ["print_points", "show_plain_point", "show_point", "show_report"]

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
            show_point(point, console, name=model.info.name)


def show_point(point: TrimmedPoint, page: Console | Page, *, name: str = "") -> None:
    """Print what :func:`print_points` does for one point; ``name`` is the model's."""
    report = point.report
    if name:
        page.print(fact("Model", [shortened(name)], page.width))
    page.print(fact("Found", [report.summary, f"t = {point.time:.8g} s"], page.width))
    inputs = [
        f"{shortened(s.name)} = {value_with_unit(v, s.unit)}"
        for s, v in zip(report.inputs, point.inputs.tolist(), strict=True)
    ]
    for word, pieces in (("Inputs", inputs or ["none"]), *_parameters(point), *_facts(report)):
        page.print(fact(word, pieces, page.width))
    if len(report.states):
        page.print()
        page.print(_states(report, point.states))
        if len(report.states) > MOST_STATES:
            page.print(f"and {len(report.states) - MOST_STATES} more; all of them are in a file (-o point.toml)")
    _show_remarks(report, page)


def show_report(report: TrimReport, page: Console | Page) -> None:
    """Print what there is to say about a point beside its values."""
    for word, pieces in (("Found", [report.summary]), *_facts(report)):
        page.print(fact(word, pieces, page.width))
    if report.moving:
        table = simple_table()
        table.add_column("State")
        table.add_column("Rate", justify="right")
        table.add_column("Unit")
        table.add_column("")
        for signal, rate in zip(report.states, report.rates, strict=True):
            if signal.name in report.moving:
                kind = _kind(report, signal.name)
                table.add_row(shortened(signal.name), f"{rate:.8g}", rate_unit(signal.unit), kind)
        page.print()
        page.print(table)
    _show_remarks(report, page)


def show_plain_point(point: OperatingPoint, page: Page) -> None:
    """Print a point that does not know its model: values by number."""
    moved = (
        f"projection moved a state by {point.adjusted:.2g} of its nominal value" if point.adjusted else "not projected"
    )
    page.print(fact("Point", [f"t = {point.time:.8g} s", moved], page.width))
    for word, pieces in _parameters(point):
        page.print(fact(word, pieces, page.width))
    for title, letter, values in (("State", "x", point.states), ("Input", "u", point.inputs)):
        page.print()
        if not len(values):
            page.print(f"No {title.lower()}s.")
            continue
        table = simple_table()
        table.add_column(f"{title}s ({len(values)})")
        table.add_column("Value", justify="right")
        for i, value in enumerate(values[:MOST_STATES].tolist()):
            table.add_row(f"{letter}[{i}]", f"{value:.8g}")
        if len(values) > MOST_STATES:
            table.add_row(f"and {len(values) - MOST_STATES} more", "")
        page.print(table)
    for remark in point.remarks:
        page.print(fact("Warning", str(remark).split(), page.width, separator=" "))


def _show_remarks(report: TrimReport, page: Console | Page) -> None:
    page.print()
    for remark in report.remarks:
        word = "Note" if remark.is_information else "Warning"
        page.print(fact(word, str(remark).split(), page.width, separator=" "))
    if not report.remarks:
        page.print("No warnings.")


def _parameters(point: OperatingPoint) -> Iterator[Fact]:
    if point.parameters:
        yield "Parameters", [f"{shortened(n)} = {v:.8g}" for n, v in point.parameters.items()]


def _facts(report: TrimReport) -> Iterator[Fact]:
    if report.at_bounds:
        yield "At a bound", [shortened(n) for n in report.at_bounds]
    yield "Residual", [f"{report.residual:.1e}" if report.residual else "0", "in sizes of the states (per second)"]
    for i, direction in enumerate(report.free_directions):
        along = [f"{shortened(n)} by {slope:.4g}" for n, slope in direction.along.items()]
        follow = [f"and with it {along[0]}", *along[1:]] if along else []
        yield "" if i else "Free", [f"{shortened(direction.name)} by 1", *follow]


def _states(report: TrimReport, values: FloatArray) -> Table:
    steady = not report.is_equilibrium
    table = simple_table()
    table.add_column("State")
    table.add_column("Value", justify="right")
    table.add_column("Unit")
    if steady:
        table.add_column("Rate", justify="right")
        table.add_column("Unit")
        table.add_column("")
    sizes = report.states.scales(values)
    rows = list(zip(report.states, values, report.rates, sizes, strict=True))[:MOST_STATES]
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
