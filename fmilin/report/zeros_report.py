"""Zeros of linear models as tables, in one line, and with the eigenvalues in a pole-zero map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import cut_list
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.zeros import ZeroStructure
from fmilin.report.facts import print_fact, print_remarks
from fmilin.report.figures import COLORS, QUIET, create_titled_figure, draw_grid, plain
from fmilin.report.linear_pictures import SAME_MARK_DISTANCE, find_repeated_marks, rays, shade_outside_unit_circle
from fmilin.report.locus_pictures import Loci, merge_clusters
from fmilin.report.numbers import cluster_text, shorten_name
from fmilin.report.table import eigenvalue_table
from fmilin.report.zero_texts import MAX_ZEROS, cluster_zeros, describe_side, describe_zeros
from fmilin.support.table_repr import Sheet
from fmilin.support.tables import Cell, ResultTable, build_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Complex = NDArray[np.complex128]

MAX_NAMES = 8
MAX_CHANNELS = 40  # in a table
PHASES = {
    True: "minimum phase: all invariant zeros are inside the stability limit",
    False: "not minimum phase",
    None: "whether it is minimum phase cannot be determined: zeros are at the stability limit within their errors",
}
MARGIN = 1.15  # of a picture beyond what is drawn in it


def show_zero_structure(structure: ZeroStructure, page: Sheet) -> None:
    """Print the zeros from inputs to outputs, what is at infinity, and the relative degrees."""
    outputs = structure.outputs.names
    print_fact(page, "Zeros", [f"{len(structure.zeros)} transmission zeros", f"normal rank {structure.normal_rank}"])
    print_fact(page, "Inputs", cut_list(map(shorten_name, structure.inputs.names), MAX_NAMES))
    print_fact(page, "Outputs", cut_list(map(shorten_name, outputs), MAX_NAMES))
    print_fact(page, "Degrees", cut_list(_list_degrees(structure), MAX_NAMES))
    if not structure.decouples and 1 < len(outputs) <= len(structure.inputs):
        print_fact(page, "Decoupling", "the decoupling matrix is singular, so that there is no vector relative degree")
    orders = ", ".join(map(str, structure.infinite_orders)) or "none"
    print_fact(page, "At infinity", f"zeros of the orders {orders}")
    print_fact(page, "Phase", [PHASES[structure.minimum_phase]])
    if len(structure.zeros):
        page.print()
        page.print(_zero_table(structure))
    hidden = len(structure.invariant) - len(structure.zeros)
    if hidden > 0:
        page.print()
        clusters = cluster_zeros(structure.invariant, structure.invariant_errors)
        texts = cut_list([cluster_text(cluster) for cluster in clusters], MAX_ZEROS)
        print_fact(page, "Invariant zeros", [*texts, f"{hidden} of them hidden from inputs or outputs"])
    if structure.warnings:
        page.print()
        print_remarks(page, structure.warnings)


def _list_degrees(structure: ZeroStructure) -> Iterator[str]:
    for name, degree in zip(structure.outputs.names, structure.relative_degree.tolist(), strict=True):
        moved = f"relative degree {degree:g}" if np.isfinite(degree) else "not moved by any input"
        yield f"{shorten_name(name)}: {moved}"


def _zero_table(structure: ZeroStructure) -> ResultTable:
    clusters = cluster_zeros(structure.zeros, structure.errors)
    is_sampled = structure.sample_time > 0
    if is_sampled:
        rows = ([Cell(cluster_text(c), c.real), Cell(f"{abs(c.eigenvalue):.8g}", abs(c.eigenvalue))] for c in clusters)
        table = build_table(("Zero z", "|z|"), rows, columns="Rr")
    else:
        table = eigenvalue_table(clusters, name="Zero")
    notes = [[Cell(describe_side(cluster, sampled=is_sampled))] for cluster in clusters]
    return table.beside(build_table(("",), notes, columns="l"))


def channel_zeros(linear: LinearModel) -> ResultTable:
    """Return the zeros and the relative degree of each channel of a linear model, one input to one output."""
    channels = [(i, o) for o in linear.outputs.names for i in linear.inputs.names]
    rows = []
    for i, o in channels[:MAX_CHANNELS]:
        structure = linear.zero_structure(inputs=[i], outputs=[o])
        degree = structure.relative_degree[0]
        zeros = ", ".join(describe_zeros(structure)) or "none"
        rows.append([shorten_name(i), shorten_name(o), f"{degree:g}" if np.isfinite(degree) else "not moved", zeros])
    result = build_table(("Input", "Output", "Relative degree", "Zeros"), rows, columns="llrl")
    return replace(result, caption="Zeros from one input to one output", omitted=len(channels) - len(rows))


# -- pole-zero map -----------------------------------------------------------------------------------------------------


def pole_zero_figure(
    linear: LinearModel, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> Figure:
    """Return a map of eigenvalues and transmission zeros; of a sampled model in z with the unit circle."""
    structure = linear.zero_structure(inputs=inputs, outputs=outputs)
    is_sampled = linear.sample_time > 0
    values, zeros = linear.eigenvalues(), structure.zeros
    poles = merge_clusters(values[None], linear.eigenvalue_errors()[None])
    zero_marks = merge_clusters(zeros[None], structure.errors[None])
    reach = MARGIN * max([float(np.abs(each).max(initial=0.0)) for each in (values, zeros)])
    reach = max(reach, MARGIN) if is_sampled else reach or 1.0
    figure = create_titled_figure(f"Poles and zeros of {plain(linear.model.name, 60)}", 6.5, 6.0, None)
    axes = figure.subplots()
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    if is_sampled:
        shade_outside_unit_circle(axes)
        draw_grid(axes)
        axes.set(xlabel="real part of z", ylabel="imaginary part of z", aspect="equal")
    else:
        rays(axes, reach, reach, reach)
        axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")
    style: dict[str, Any] = {"linestyle": "none", "markersize": 9, "markeredgewidth": 2.0, "zorder": 4}
    groups: list[tuple[Loci, str, dict[str, Any], str]] = [
        (poles, COLORS[0], {"marker": "x"}, f"{len(values)} eigenvalues"),
        (zero_marks, COLORS[1], {"marker": "o", "markerfacecolor": "none"}, f"{len(zeros)} transmission zeros"),
    ]
    for marks, color, look, label in groups:
        distinct = marks.values[marks.counts > 0]
        axes.plot(distinct.real, distinct.imag, color=color, label=label, **look, **style)
        _draw_discs(axes, marks, reach, color, -12 if color == COLORS[1] else 5)
    if not np.isfinite(structure.errors).all():
        axes.annotate("zeros without a disc of their error are not confirmed", (0.01, 0.97), xycoords="axes fraction",
                      fontsize=8, color=QUIET)  # fmt: skip
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_discs(axes: Axes, marks: Loci, reach: float, color: str, offset: float) -> None:
    """Draw how far marks may be off, and how many eigenvalues or zeros are one mark."""
    from matplotlib.patches import Circle

    is_drawn = marks.counts > 0
    values, errors, counts = marks.values[is_drawn], marks.errors[is_drawn], marks.counts[is_drawn]
    label = "within their errors"
    for value, error in zip(values.tolist(), errors.tolist(), strict=True):
        if np.isfinite(error) and error > SAME_MARK_DISTANCE * reach:
            axes.add_patch(Circle((value.real, value.imag), error, color=color, alpha=0.15, zorder=2, label=label))
            label = "_" + label.removeprefix("_")
    for center, count in find_repeated_marks(values, counts, reach):
        axes.annotate(f"× {count}", (center.real, center.imag), (7, offset), textcoords="offset points", fontsize=9,
                      color=color)  # fmt: skip
