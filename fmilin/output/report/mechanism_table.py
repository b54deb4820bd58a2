"""The description of a mechanism as a person reads it: bodies, joints, loops, and what acts on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.native.mechanism.description import MechanismDescription
from fmilin.output.report.page import Page
from fmilin.output.report.table import fact, simple_table

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["show_mechanism"]


def show_mechanism(mechanism: MechanismDescription, page: Page) -> None:
    """Lay out the description on a page."""
    page.print(fact("Mechanism", [mechanism.name], page.width))
    page.print(fact("Gravity", [f"{', '.join(f'{g:g}' for g in mechanism.gravity)} m/s2"], page.width))
    for word, parts in (("Wheels", mechanism.wheels), ("Skates", mechanism.skates), ("Springs", mechanism.springs)):
        if parts:
            page.print(fact(word, [str(len(parts))], page.width))
    for word, named in (("Inputs", mechanism.inputs), ("Sensors", mechanism.sensors)):
        page.print(fact(word, [part.name for part in named] or ["none"], page.width))
    if mechanism.independent:
        page.print(fact("Coordinates", mechanism.independent, page.width))
    page.print()
    bodies = simple_table()
    bodies.add_column(f"Bodies ({len(mechanism.bodies)})")
    bodies.add_column("Mass [kg]", justify="right")
    for body in mechanism.bodies:
        bodies.add_row(body.name, "" if body.mass is None else f"{body.mass:.8g}")
    page.print(bodies)
    page.print()
    page.print(_links("Joints", [(j.name, j.type, j.parent, j.child) for j in mechanism.joints]))
    if mechanism.loops:
        page.print()
        page.print(_links("Loops", [(p.name, p.type, p.first, p.second) for p in mechanism.loops]))
    for remark in mechanism.remarks:
        page.print(fact("Note", remark.split(), page.width, separator=" "))


def _links(title: str, rows: list[tuple[str, str, str, str]]) -> Table:
    table = simple_table()
    for head in (f"{title} ({len(rows)})", "Type", "From", "To"):
        table.add_column(head)
    for row in rows:
        table.add_row(*row)
    return table
