"""What a co-simulation takes of the damping of each mode, and the largest step, as a person reads them."""

from __future__ import annotations

import math
from typing import TextIO

from fmilin.connected.cosimulation import Cosimulation, Mode
from fmilin.ground.errors import FmilinError
from fmilin.output.report.numbers import eigenvalue_text
from fmilin.output.report.table import console_on, fact, simple_table

__all__ = ["limit_in_words", "print_cosimulation"]


def print_cosimulation(found: Cosimulation, stream: TextIO) -> None:
    """Print one row for each mode of the coupled plant, then what is stable."""
    table = simple_table("Coupled plant [1/s]", "Co-simulation [1/s]", "Damping ratio", "then", "lost")
    for mode in found.modes:
        table.add_row(*_row(mode))
    with console_on(stream) as console:
        width = console.width
        console.print(fact("System", [found.model.info.name, f"{len(found.model.members)} members"], width))
        console.print(fact("Master", [master_in_words(found), f"steps of {found.step:g} s"], width))
        memories = len(found.linear.states) - len(found.plant.states)
        order = [f"{len(found.linear.states)} states", *([f"{memories} of them held outputs"] if memories else [])]
        console.print(fact("Order", order, width))
        console.print()
        console.print(table)
        console.print()
        stable = "yes" if found.is_stable else "no"
        console.print(fact("Stable", [f"{stable}: the largest |z| is {found.growth:.9g}"], width))
        console.print(fact("Limit", limit_in_words(found).split(), width, separator=" "))
        for remark in found.plant.warnings:
            if not remark.is_information:
                console.print(fact("Warning", str(remark).split(), width, separator=" "))


def master_in_words(found: Cosimulation) -> str:
    """Return the master's kind, and its order."""
    if found.master.kind == "jacobi":
        return "Jacobi"
    return f"Gauss-Seidel, in the order {', '.join(found.master.order or found.model.members)}"


def limit_in_words(found: Cosimulation) -> str:
    """Return the largest step as a sentence."""
    try:
        limit = found.largest_step
    except FmilinError as error:
        return str(error)
    if limit is None:
        return "no step is stable, however short: this coupling takes more damping than the plant has"
    if math.isinf(limit):
        return "every step that was looked at is stable"
    return f"stable up to steps of {limit:.4g} s"


def _row(mode: Mode) -> tuple[str, ...]:
    before, after = mode.damping
    pair = mode.plant.imag > 0
    if not mode.resolved:
        return eigenvalue_text(mode.plant, pair=pair), "faster than the step", f"{before:.4g}", "", ""
    seen = eigenvalue_text(mode.seen, pair=pair and mode.seen.imag > 0)
    return eigenvalue_text(mode.plant, pair=pair), seen, f"{before:.4g}", f"{after:.4g}", f"{before - after:.2g}"
