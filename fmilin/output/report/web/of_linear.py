"""The report of one linear model, and of its verification."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.verification import Verification
from fmilin.output.report.mechanism_picture import mechanism_figure
from fmilin.output.report.numbers import matrices_of, shortened
from fmilin.output.report.table import facts_of
from fmilin.output.report.verification import limit_text, verification_figure
from fmilin.output.report.web.blocks import Block, Cell, Section, html_of, number, picture, table, text
from fmilin.output.report.web.of_modes import mode_sections

if TYPE_CHECKING:
    from fmilin.model.interface import Model


def verification_section(verification: Verification) -> Section:
    """Return what the comparison with the nonlinear model found, channel by channel."""
    failed, count = len(verification.failed), len(verification.channels)
    verdict = f"WRONG to first order in {failed} of {count}" if failed else f"right to first order in all {count}"
    rows = (
        [
            Cell(shortened(c.label)), Cell("yes" if c.passed else "NO", alarm=not c.passed),
            number(c.slope_error, digits=2), number(c.tolerance, digits=2), number(c.amplitude, c.unit, digits=3),
            number(c.order, digits=3),
            Cell(limit_text(c), None if c.validity is None else c.validity.limit),
            Cell("" if c.validity is None else shortened(c.validity.limited_by)),
        ]
        for c in verification.channels
    )  # fmt: skip
    heads = ["Channel", "Right", "Slope error", "Tolerance", "Amplitude", "Order", "Within 5 % up to", "Limited by"]
    draw = partial(verification_figure, verification)
    return Section(
        "Verification",
        [
            text(f"The linear model is {verdict} channels.", alarm=bool(failed)),
            text(
                f"Responses were followed over {verification.horizon:.3g} s; {verification.evaluations} visits to the "
                "nonlinear model.",
                *(r.message for r in verification.remarks),
            ),
            table("Channel by channel, against the nonlinear model on its manifold", heads, rows),
            picture("Both responses of each channel, and how far each holds", draw),
        ],
    )


MOST_CELLS = 30  # columns of a matrix that is printed

CHOICES = {
    "named": "They were named: by the user, or as the coordinates that the model recommends.",
    "partition": "They were chosen among the states: the columns of the constraints' Jacobian were pivoted (QR) so "
    "that the remaining, dependent states follow from them as well conditioned as possible.",
    "tangent": "They are orthonormal directions in the tangent space of the manifold (SVD), and no states.",
    "turning": "They are functions of the states that do not turn with bodies: A stays the same in them.",
    "identified": "They are the order of the responses from which the model was identified.",
    "enlarged": "They were chosen by pivoted QR over the enlarged set of velocities at a singular configuration.",
}


def linear_report(linear: LinearModel, verification: Verification | None = None, model: Model | None = None) -> str:
    """Return the report as one HTML file, with the constraints or the mechanism of ``model``, the nonlinear one."""
    name = linear.model.name
    sections = [
        Section("Overview", [table("", [], _overview(linear))]),
        Section("Operating point", _point(linear)),
        Section("Constraints and coordinates", _coordinates(linear, model)),
        *mode_sections(linear),
        Section("Responses", _responses(linear)),
        Section("Accuracy", _accuracy(linear)),
        Section("Remarks", list(remark_blocks(linear.warnings))),
        *([] if verification is None else [verification_section(verification)]),
        Section("Matrices", _matrices(linear)),
    ]
    P, N = len(linear.states), len(linear.full_states)
    subtitle = (
        f"Linear model of {P} independent states out of {N}, inputs: {len(linear.inputs)}, "
        f"outputs: {len(linear.outputs)}"
    )
    return html_of(name or "linear model", subtitle, sections)


def _overview(linear: LinearModel) -> Iterator[list[str]]:
    for word, pieces in facts_of(linear):
        yield [word, ", ".join(pieces)]
    if linear.model.guid:
        yield ["Identity", linear.model.guid]
    yield ["Sampling", f"every {linear.sample_time:g} s" if linear.sample_time > 0 else "continuous"]


def _point(linear: LinearModel) -> list[Block]:
    point, independent = linear.point, set(linear.states.names)
    groups = (
        ("States", linear.full_states, point.states),
        ("Inputs", linear.inputs, point.inputs),
        ("Outputs", linear.outputs, point.outputs),
    )
    blocks: list[Block] = [text(f"Time {point.time:.8g} s.")]
    for caption, signals, values in groups:
        rows = [[s.name, number(values.get(s.name, np.nan), digits=8), s.unit] for s in signals]
        heads = [caption[:-1], "Value", "Unit"]
        if caption == "States":
            rows = [[*row, "independent" if row[0] in independent else "dependent"] for row in rows]
            heads.append("Kind")
        if rows or caption == "States":
            blocks.append(table(caption, heads, rows))
    if point.parameters:
        changed = ([name, number(value, digits=8)] for name, value in point.parameters.items())
        blocks.append(table("Parameters that were changed", ["Parameter", "Value"], changed))
    return blocks


def _coordinates(linear: LinearModel, model: Model | None) -> list[Block]:
    P, N = len(linear.states), len(linear.full_states)
    accuracy = linear.accuracy
    relations = N - P
    sentence = f"No relation holds between the {N} states: all are independent."
    if relations:
        sentence = (
            f"{relations} independent relations hold between the {N} states, those between rates included: {P} of them "
            f"can be chosen freely. Their largest residual at the point is {accuracy.constraint_residual:.1e} in sizes "
            "of the states."
        )
    blocks: list[Block] = [text(sentence)]
    if model is not None and len(model.constraints):
        rows = ([c.name, Cell(shortened(c.expression.text, 200) + " = 0"), c.level] for c in model.constraints.declared)
        blocks.append(table("Constraints of the model", ["Name", "Equation", "Level"], rows))
    why = CHOICES.get(linear.method.coordinates, f"They were chosen by {linear.method.coordinates}.")
    blocks.append(text(
        f"Independent coordinates: {', '.join(map(shortened, linear.states.names)) or 'none'}. {why}",
        f"The condition number of the choice is {accuracy.conditioning:.3g}: 1 is best, and what is near 1/eps means "
        "that the coordinates hardly determine the dependent states." if relations else "",
    ))  # fmt: skip
    dependent = [i for i, name in enumerate(linear.full_states.names) if name not in set(linear.states.names)]
    if dependent and P <= MOST_CELLS:
        rows = ([linear.full_states[i].name, *(number(v, digits=5) for v in linear.T[i])] for i in dependent)
        heads = ["State", *map(shortened, linear.states.names)]
        blocks.append(table("Dependent states follow to first order: rows of T", heads, rows))
    description = getattr(model, "description", None)
    if description is not None and hasattr(description, "joints"):
        blocks.append(picture("The mechanism and its modes", lambda: mechanism_figure(description, linear)))
    return blocks


def _responses(linear: LinearModel) -> list[Block]:
    if not len(linear.inputs) or not len(linear.outputs):
        return []
    return [
        picture("Steps of one unit of each input; the first four channels", linear.plot.step),
        picture("Bode diagram; the first four channels", linear.plot.bode),
    ]


def _accuracy(linear: LinearModel) -> list[Block]:
    rows = sorted(_entries(linear), key=lambda row: -(row[-1].value or 0.0))
    heads = ["Matrix", "Row", "Column", "Value", "Estimated error", "Over the largest entry of the row"]
    return [
        text(
            "Every entry has an estimated error. It counts against the largest entry of its row; beyond 1e-3 there is "
            "a remark, and 0 means that the entry is exact."
        ),
        table("Entry by entry, the least certain first", heads, rows, most=2000),
        picture("Estimated relative errors", linear.plot.errors),
        picture("Which entries are zero, and the sizes of the others", linear.plot.sparsity),
    ]


def _entries(linear: LinearModel) -> Iterator[list[Cell]]:
    for name, rows, columns in matrices_of(linear):
        matrix, errors = getattr(linear, name), getattr(linear.errors, name)
        largest = np.abs(matrix).max(axis=1, initial=0.0)
        for i, j in np.ndindex(*matrix.shape):
            if matrix[i, j] == 0 and errors[i, j] == 0:
                continue
            part = errors[i, j] / largest[i] if largest[i] > 0 else errors[i, j]
            yield [
                Cell(name), Cell(rows[i].name), Cell(columns[j].name), number(matrix[i, j], digits=8),
                number(errors[i, j], digits=2), number(part, digits=2, alarm=part > 1e-3),
            ]  # fmt: skip


def remark_blocks(remarks: tuple[Remark, ...]) -> Iterator[Block]:
    """Yield warnings, then notes."""
    alarms = [f"{r.message} ({r.kind})" for r in remarks if not r.is_information]
    notes = [f"{r.message} ({r.kind})" for r in remarks if r.is_information]
    yield text(*alarms, alarm=True) if alarms else text("No warnings.")
    if notes:
        yield text(*notes)


def _matrices(linear: LinearModel) -> list[Block]:
    blocks: list[Block] = [text("y' = f0 + A (y - y0) + B (u - u0), out = g0 + C (y - y0) + D (u - u0).")]
    f0: FloatArray = linear.f0[:, None]
    every = [(name, getattr(linear, name), rows, columns.names) for name, rows, columns in matrices_of(linear)]
    for name, matrix, rows, columns in [*every, ("f0", f0, linear.states, ("rate",))]:
        if matrix.size and matrix.shape[1] <= MOST_CELLS:
            lines = (
                [row.name, *(number(v, digits=8) for v in values)] for row, values in zip(rows, matrix, strict=True)
            )
            blocks.append(table(name, ["", *map(shortened, columns)], lines, most=200))
    return blocks
