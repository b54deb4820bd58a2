"""A family of linear models for people: one line per point."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import numpy as np
from numpy.typing import NDArray

from fmilin.output.report.numbers import eigenvalue_text, rough, shortened
from fmilin.output.report.page import Page
from fmilin.output.report.table import fact, simple_table

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily

__all__ = ["print_family", "show_family"]

LINES = 40
"""Points shown; what lies between is left out."""

EVENTS = 8

ROWS, NAMES = 24, 8
"""Points and names shown by :func:`show_family`."""


def print_family(family: LinearFamily, stream: TextIO) -> None:
    """Print the order, the coordinates, the rightmost eigenvalue of every point, and where modes meet."""
    good = int(family.ok.sum())
    names = ", ".join(family.states.names[:8]) + (", ..." if len(family.states) > 8 else "")
    stream.write(
        f"{family.template.model.name or 'sweep'}: {good} of {len(family)} points, order {family.template.order} "
        f"({names or 'no coordinates'})\n"
    )
    if family.switches:
        stream.write("The coordinates are not the same at all points.\n")
    if not good:
        return
    stream.write("\n")
    numbers = list(range(len(family)))
    if len(numbers) > LINES:
        numbers = [*numbers[: LINES // 2], -1, *numbers[-LINES // 2 :]]
    tracked = family.eigenvalues.reshape(len(family), -1)
    table = [[*family.axes, "rightmost eigenvalue in 1/s", "accuracy of A"]]
    table += [["..."] * len(table[0]) if k < 0 else _line(family, k, tracked[k]) for k in numbers]
    widths = [max(len(row[c]) for row in table) for c in range(len(table[0]))]
    for row in table:
        stream.write("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() + "\n")
    _print_events(family, stream)


def show_family(family: LinearFamily, page: Page) -> None:
    """Print a family of any size in few lines, without following modes from point to point."""
    page.print(fact("Family", [shortened(family.template.model.name) or "sweep"], page.width))
    grid = " x ".join(map(str, family.shape)) or "of one point"
    page.print(fact("Points", [f"{int(family.ok.sum())} of {len(family)} linear models", f"grid {grid}"], page.width))
    for word, names in (
        ("Coordinates", family.states.names),
        ("Inputs", family.inputs.names),
        ("Outputs", family.outputs.names),
    ):
        more = [f"and {len(names) - NAMES} more"] if len(names) > NAMES else []
        page.print(fact(word, [*map(shortened, names[:NAMES]), *more] or ["none"], page.width))
    if family.switches:
        page.print(fact("", ["the coordinates are not the same at all points"], page.width))
    page.print()
    table = simple_table(*family.axes, "Rightmost eigenvalue [1/s]", "Accuracy of A")
    numbers = list(range(len(family)))
    A = family.A.reshape(len(family), *family.A.shape[-2:])
    for k in numbers[:ROWS]:
        table.add_row(*_line(family, k, np.linalg.eigvals(A[k]) if family.ok.flat[k] else np.empty(0, np.complex128)))
    if len(numbers) > ROWS:
        table.add_row(f"and {len(numbers) - ROWS} more", *[""] * (len(family.axes) + 1))
    page.print(table)


def _line(family: LinearFamily, number: int, w: NDArray[np.complex128]) -> list[str]:
    values = [f"{v:g}" for v in family.grid.values(number).values()]
    if not family.ok.flat[number]:
        return [*values, "failed", ""]
    top = w[np.argmax(w.real)] if len(w) else None
    text = "none" if top is None else eigenvalue_text(complex(top), pair=abs(top.imag) > 1e-9 * abs(top))
    return [*values, text, rough(float(family.layout.part(family.rows, "accuracy")[number, 0]))]


def _print_events(family: LinearFamily, stream: TextIO) -> None:
    events = family.mode_events
    if not events:
        return
    stream.write("\n")
    for event in events[:EVENTS]:
        a, b = (", ".join(f"{n} = {v:g}" for n, v in family.grid.values(k).items()) for k in event.between)
        stream.write(f"{event.kind} of modes {event.modes[0] + 1} and {event.modes[1] + 1} between {a} and {b}\n")
    if len(events) > EVENTS:
        stream.write(f"... and {len(events) - EVENTS} more\n")
