"""Tables and pictures of families of linear models with delays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import UsageError
from fmilin.families.delayed_family import DelayedFamily
from fmilin.report import figures
from fmilin.report.facts import print_fact
from fmilin.report.linear_pictures import rays
from fmilin.report.numbers import shorten_name
from fmilin.support.table_repr import Sheet
from fmilin.support.tables import Cell, build_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_TABLE_ROWS = 24
MAX_LISTED_CHANGES = 8


def show_delayed_family(family: DelayedFamily, page: Sheet) -> None:
    """Print the rightmost eigenvalue at each point, and where stability changes."""
    print_fact(page, "Family", [shorten_name(family.name)])
    good = f"{int(family.ok.sum())} of {len(family)} linear models with delays"
    print_fact(page, "Points", [good, f"grid {' x '.join(map(str, family.shape))}"])
    heads = [f"{name} [s]" if name in family.delay_names else name for name in family.axes]
    rows = []
    for number, point in enumerate(family.points[:MAX_TABLE_ROWS]):
        at = [Cell(f"{value:g}", value) for value in family.grid.values(number).values()]
        if point.linear is None:
            rows.append([*at, Cell("failed", alarm=True), Cell("")])
            continue
        finite = point.eigenvalues[np.isfinite(point.eigenvalues)]
        text = _describe_eigenvalue(complex(finite[-1])) if len(finite) else "none"
        rows.append([*at, Cell(text), Cell(str(point.unstable), alarm=bool(point.unstable))])
    table = build_table((*heads, "Rightmost eigenvalue [1/s]", "Growing"), rows)
    page.print()
    page.print(replace(table, omitted=max(len(family) - MAX_TABLE_ROWS, 0)))
    if family.changes:
        page.print()
    for change in family.changes[:MAX_LISTED_CHANGES]:
        values = [f"{name} = {value:.6g}" for name, value in change.at.items()]
        delays = [f"{name} = {seconds:.6g} s" for name, seconds in change.delays.items()]
        numbers = f"{change.unstable_before} to {change.unstable_after} growing"
        page.print(f"Stability changes at {', '.join((*values, *delays))}: {numbers}, {change.frequency:.6g} rad/s")
    if len(family.changes) > MAX_LISTED_CHANGES:
        page.print(f"... and {len(family.changes) - MAX_LISTED_CHANGES} more changes")


def _describe_eigenvalue(value: complex) -> str:
    return f"{value.real:.6g}" if value.imag == 0.0 else f"{value.real:.6g} ± {abs(value.imag):.6g} i"


def draw_root_locus(family: DelayedFamily) -> Figure:
    """Return the rightmost eigenvalues in the complex plane, coloured by the last axis."""
    values = family.eigenvalues
    if not np.isfinite(values).any():
        raise UsageError("None of the linear models has an eigenvalue: there is nothing to draw.")
    last = list(family.axes)[-1]
    colors = np.broadcast_to(family.grid.column(last)[..., None], values.shape)
    figure = figures.create_titled_figure(f"Root locus of {figures.plain(family.name, 60)}", 8.0, 6.4)
    axes = figure.subplots()
    drawn = axes.scatter(values.real, values.imag, c=colors, cmap="viridis", s=18, zorder=3)
    finite = values[np.isfinite(values)]
    height = 1.15 * float(np.abs(finite.imag).max()) or 1.0
    width = 1.15 * max(float(-finite.real.min()), 0.0) or 0.2 * height
    right = max(1.3 * float(finite.real.max()), 0.2 * width)
    rays(axes, width, right, height)
    axes.set(xlim=(-width, right), ylim=(-height, height), xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")
    figure.colorbar(drawn, ax=axes, label=f"{last} [s]" if last in family.delay_names else last)
    return figure
