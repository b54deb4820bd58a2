"""What was discovered as a person reads it."""

from __future__ import annotations

from typing import TextIO

from fmilin.discovery.result import Discovery
from fmilin.output.report.table import console_on, fact, simple_table

__all__ = ["print_discovery"]

MOST = 40


def print_discovery(found: Discovery, stream: TextIO) -> None:
    """Print the constraints with their residuals, what was kept out, and the order with and without."""
    with console_on(stream) as console:
        order = f"{found.order} independent states of {found.full_order}"
        console.print(fact("Model", [found.name, order], console.width))
        effort = [f"{found.visits} visits", f"{found.seconds:.1f} s"]
        console.print(fact("Effort", effort, console.width))
        if found.constant:
            console.print(
                fact("Constant", ["never change, so they are parameters:", *found.constant[:MOST]], console.width)
            )
        console.print()
        if found.findings:
            table = simple_table("constraint = 0", "level", "h", "H f", "H f_u")
            for f in found.findings:
                residuals = (f"{v:.0e}" for v in (f.value, f.along_motion, f.along_inputs))
                table.add_row(f.expression, f.level, *residuals)
            console.print(table)
        else:
            console.print("No constraint was found: nothing says that the states depend on each other.")
        for k in found.kept_out[:MOST]:
            console.print(fact("Kept out", [f"{k.expression}: {k.reason}"], console.width))
