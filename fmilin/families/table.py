"""A family of linear models for people: one line per point."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import numpy as np

from fmilin.report.numbers import eigenvalue_text, rough

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily

__all__ = ["print_family"]

LINES = 40
"""Points shown; what lies between is left out."""

EVENTS = 8


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
    table = [[*family.axes, "rightmost eigenvalue in 1/s", "accuracy of A"]]
    table += [["..."] * len(table[0]) if k < 0 else _line(family, k) for k in numbers]
    widths = [max(len(row[c]) for row in table) for c in range(len(table[0]))]
    for row in table:
        stream.write("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() + "\n")
    _print_events(family, stream)


def _line(family: LinearFamily, number: int) -> list[str]:
    values = [f"{v:g}" for v in family.grid.values(number).values()]
    if not family.ok.flat[number]:
        return [*values, "failed", ""]
    w = family.eigenvalues.reshape(len(family), -1)[number]
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
