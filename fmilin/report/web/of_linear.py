"""The report of one linear model: its modes, their inputs and outputs, accuracy, and its verification."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.linear_model.modal import ModalAnalysis, ModeGroup, modal_analysis
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.verification import Verification
from fmilin.model.interface import Model
from fmilin.reduction import hankel_singular_values
from fmilin.report.mechanism_picture import mechanism_figure
from fmilin.report.numbers import cluster_text, list_matrices, shorten_name
from fmilin.report.table import describe_choice, eigenvalue_table, list_facts, point_tables
from fmilin.report.verification_report import channel_table, verification_figure
from fmilin.report.web.blocks import Block, Section, number, picture, render_html, table, text
from fmilin.report.zero_texts import has_zeros
from fmilin.report.zeros_report import channel_zeros
from fmilin.signals import FloatArray
from fmilin.support.tables import Cell

ALIKE = "eigenvalues that are equal within their accuracy count together"
REACHED = (
    "Amplitude that an input of unit energy reaches (from the controllability Gramian of the mode), in the unit of the "
    "state that moves most; ∞ where the mode does not decay, empty for several equal modes"
)
OBSERVED_ENERGY = (
    "Root of the energy of an output while the mode decays from amplitude 1 (from the observability Gramian)"
)


def mode_sections(linear: LinearModel) -> list[Section]:
    """Return the sections about modes, and about controllability and observability."""
    if not len(linear.states):
        return [Section("Modes", [text("The linear model has no states: nothing can move.")])]
    analysis = modal_analysis(linear)
    return [
        Section("Modes", _modes(linear, analysis)),
        Section("Controllability and observability", _channels(linear, analysis)),
        *([Section("Zeros", _zeros(linear))] if has_zeros(linear) else []),
    ]


def _modes(linear: LinearModel, analysis: ModalAnalysis) -> list[Block]:
    rows = []
    for k, group in enumerate(analysis.groups):
        growth = group.cluster.real
        slowness = number(1 / abs(growth) if growth != 0 and group.kind != "neutral" else np.nan, digits=4)
        rows.append([slowness, _verdict(group), Cell(_largest(linear, analysis.participation[k]))])
    clusters = [group.cluster for group in analysis.groups]
    numbers = ([number(k + 1, digits=4)] for k in range(len(clusters)))
    modes = table(f"Modes, slowest first; {ALIKE}", ["Mode"], numbers).beside(
        eigenvalue_table(clusters, sampled=linear.sample_time > 0),
        table("", ["Time constant [s]", "Motion", "Coordinates that take part"], rows),
    )
    factors = [
        [number(k + 1, digits=4), *(number(100 * p, digits=3) for p in row)]
        for k, row in enumerate(analysis.participation)
    ]
    return [
        modes,
        text(
            "A participation factor is the share of a coordinate in a mode: the diagonal of the spectral projector, "
            "with the sum 100 % over all coordinates. It does not depend on units or scaling; it does depend on which "
            "coordinates were chosen."
        ),
        table("Participation factors in percent", ["Mode", *map(shorten_name, linear.states.names)], factors),
        picture("Eigenvalues in the complex plane", linear.plot.eigenvalues),
        picture("Mode shapes in all states, dependent ones included", linear.plot.modes),
        picture("Shares of modes in coordinates, inputs and outputs, in percent", linear.plot.participation),
    ]


def _zeros(linear: LinearModel) -> list[Block]:
    structure = linear.zero_structure()
    return [
        text(
            "At a zero there is an input without effect on the outputs. Zeros in the right half-plane, or outside the "
            "unit circle, limit the bandwidth of every controller, and outputs first move in the wrong direction."
        ),
        text(*map(str, structure.warnings), alarm=True),
        channel_zeros(linear),
        picture("Eigenvalues, and zeros from all inputs to all outputs", linear.plot.zeros),
    ]


def _value(group: ModeGroup) -> str:
    return cluster_text(group.cluster)


def _verdict(group: ModeGroup) -> Cell:
    growth = {
        "decays": "decays", "neutral": "without decay", "unstable": "grows", "defective": "grows in proportion to time",
        "undecided": "cannot be determined: the error is larger than the growth",
    }[group.kind]  # fmt: skip
    alarm = group.kind in ("unstable", "defective")
    if group.kind == "neutral":
        return Cell(f"{'swings' if group.is_pair else 'moves'} {growth}")
    return Cell(f"swings and {growth}" if group.is_pair and group.kind != "undecided" else growth, alarm=alarm)


def _largest(linear: LinearModel, factors: np.ndarray) -> str:
    order = [i for i in np.argsort(-factors, kind="stable")[:4] if factors[i] > 0.005]
    return ", ".join(f"{shorten_name(linear.states[i].name)} {100 * factors[i]:.0f} %" for i in order)


def _channels(linear: LinearModel, analysis: ModalAnalysis) -> list[Block]:
    blocks: list[Block] = [
        text(
            "The share of a mode is the largest part that it has in the impulse response of any coordinate to the "
            "input; for outputs, in the response to initial values. It is independent of all units. 'No' is the test "
            "of Popov, Belevitch and Hautus with this input or output alone, against the estimated errors of the "
            "entries."
        ),
        text(*ill_moved(linear, analysis), alarm=True),
    ]
    moved = (analysis.controllability, analysis.unmoved, analysis.uncontrollable)
    observability = (analysis.observability, analysis.unseen, analysis.unobservable)
    for signals, caption, shares, energies, energy_caption in (
        (linear.inputs, "Which input moves which mode", moved, analysis.reachable_amplitudes, REACHED),
        (linear.outputs, "Which output shows which mode", observability, analysis.output_norms, OBSERVED_ENERGY),
    ):
        if len(signals):
            rows = (_channel_row(k, *of_mode) for k, of_mode in enumerate(zip(analysis.groups, *shares, strict=True)))
            heads = ["Mode", "Eigenvalue [1/s]", "All together", *map(shorten_name, signals.names)]
            blocks.append(table(f"{caption}: share in percent", heads, rows))
            amplitudes = (
                [number(k + 1, digits=4), *(number(v, digits=3) for v in row)] for k, row in enumerate(energies)
            )
            heads = ["Mode", *(f"{shorten_name(s.name)} [{s.unit or '1'}]" for s in signals)]
            blocks.append(table(energy_caption, heads, amplitudes))
    hankel = hankel_singular_values(linear).tolist() if len(linear.inputs) and len(linear.outputs) else []
    if hankel:
        rows = ([number(k + 1, digits=4), number(v, digits=4)] for k, v in enumerate(hankel))
        blocks.append(
            table("Hankel singular values of the part that decays, channels in their sizes", ["Number", "Value"], rows)
        )
    return blocks


def _channel_row(k: int, group: ModeGroup, shares: np.ndarray, missing: np.ndarray, together: int) -> list[Cell | str]:
    total = "yes" if not together else "no" if together == group.count else f"all but {together}"
    mode = Cell(_value(group), group.eigenvalue.real)
    cells: list[Cell | str] = [number(k + 1, digits=4), mode, Cell(total, alarm=together > 0)]
    for share, lack in zip(shares.tolist(), missing.tolist(), strict=True):
        if lack == group.count:
            cells.append(Cell("no", 0.0, alarm=True))
        else:
            cells.append(Cell(f"{100 * share:.3g}" + (f", all but {lack}" if lack else ""), 100 * share))
    return cells


def ill_moved(linear: LinearModel, analysis: ModalAnalysis) -> Iterator[str]:
    """Yield a sentence for every mode that some input cannot move, or some output does not show."""
    for signals, alone, all_of, cannot, none in (
        (linear.inputs, analysis.unmoved, analysis.uncontrollable, ("cannot be moved by",) * 2, "any input"),
        (linear.outputs, analysis.unseen, analysis.unobservable, ("is not seen in", "are not seen in"), "any output"),
    ):
        for k, group in enumerate(analysis.groups):
            what = f"Mode {k + 1} ({_value(group)} 1/s)"
            which = [shorten_name(s.name) for s, lack in zip(signals, alone[k], strict=True) if lack == group.count]
            if all_of[k] == group.count:
                yield f"{what} {cannot[0]} {none}."
            elif which:
                yield f"{what} {cannot[0]} {', '.join(which)} alone."
            if 0 < all_of[k] < group.count:
                yield f"{what}: {all_of[k]} of its {group.count} motions {cannot[1]} {none}."


def verification_section(verification: Verification) -> Section:
    """Return what the comparison with the nonlinear model found, channel by channel."""
    failed, count = len(verification.failed), len(verification.channels)
    verdict = f"WRONG to first order in {failed} of {count}" if failed else f"right to first order in all {count}"
    sizes = ([number(c.tolerance, digits=2), number(c.amplitude, c.unit, digits=3)] for c in verification.channels)
    channels = channel_table(verification, reasons=True).beside(table("", ["Tolerance", "Amplitude"], sizes))
    caption = "Channel by channel, against the nonlinear model on its manifold"
    draw = partial(verification_figure, verification)
    return Section(
        "Verification",
        [
            text(f"The linear model is {verdict} channels.", alarm=bool(failed)),
            text(
                f"Responses were followed over {verification.horizon:.3g} s; {verification.evaluations} evaluations "
                "of the nonlinear model.",
                *(r.message for r in verification.remarks),
            ),
            replace(channels, caption=caption),
            picture("Both responses of each channel, and the range of validity of each", draw),
        ],
    )


MAX_MATRIX_COLUMNS = 30  # columns of a matrix that is printed


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
    return render_html(name or "linear model", subtitle, sections)


def _overview(linear: LinearModel) -> Iterator[list[str]]:
    for word, pieces in list_facts(linear):
        yield [word, ", ".join(pieces)]
    if linear.model.guid:
        yield ["Identity", linear.model.guid]
    yield ["Sampling", f"every {linear.sample_time:g} s" if linear.sample_time > 0 else "continuous"]


def _point(linear: LinearModel) -> list[Block]:
    point, independent = linear.point, set(linear.states.names)
    signals = {"States": linear.full_states, "Inputs": linear.inputs, "Outputs": linear.outputs}
    blocks: list[Block] = [text(f"Time {point.time:.8g} s.")]
    for values in point_tables(point, signals):
        if values.caption == "Parameters":
            blocks.append(values)
            continue
        names = getattr(point, values.caption.lower())
        units = {signal.name: signal.unit for signal in signals[values.caption]}
        further = [table("", ["Unit"], ([units.get(name, "")] for name in names))]
        if values.caption == "States":
            kinds = (["independent" if name in independent else "dependent"] for name in names)
            further.append(table("", ["Kind"], kinds))
        blocks.append(values.beside(*further))
    return blocks


def _coordinates(linear: LinearModel, model: Model | None) -> list[Block]:
    P, N = len(linear.states), len(linear.full_states)
    accuracy = linear.accuracy
    relations = N - P
    sentence = f"There are no relations between the {N} states: all are independent."
    if relations:
        sentence = (
            f"{relations} independent relations hold between the {N} states, those between rates included: {P} of them "
            f"can be chosen freely. Their largest residual at the point is {accuracy.constraint_residual:.1e} in sizes "
            "of the states."
        )
    blocks: list[Block] = [text(sentence)]
    if model is not None and len(model.constraints):
        rows = (
            [c.name, Cell(shorten_name(c.expression.text, 200) + " = 0"), c.level] for c in model.constraints.declared
        )
        blocks.append(table("Constraints of the model", ["Name", "Equation", "Level"], rows))
    why = describe_choice(linear)[1]
    blocks.append(text(
        f"Independent coordinates: {', '.join(map(shorten_name, linear.states.names)) or 'none'}. {why}",
        f"The condition number of the choice is {accuracy.conditioning:.3g}: 1 is best; near 1/eps the coordinates "
        "hardly determine the dependent states." if relations else "",
    ))  # fmt: skip
    dependent = [i for i, name in enumerate(linear.full_states.names) if name not in set(linear.states.names)]
    if dependent and P <= MAX_MATRIX_COLUMNS:
        rows = ([linear.full_states[i].name, *(number(v, digits=5) for v in linear.T[i])] for i in dependent)
        heads = ["State", *map(shorten_name, linear.states.names)]
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
            "Every entry has an estimated error. It is relative to the largest entry of its row; beyond 1e-3 there is "
            "a warning, and 0 means that the entry is exact."
        ),
        table("Entry by entry, the least certain first", heads, rows, most=2000),
        picture("Estimated relative errors", linear.plot.errors),
        picture("Which entries are zero, and the sizes of the others", linear.plot.sparsity),
    ]


def _entries(linear: LinearModel) -> Iterator[list[Cell]]:
    for name, rows, columns in list_matrices(linear):
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
    matrices = [(name, getattr(linear, name), rows, columns.names) for name, rows, columns in list_matrices(linear)]
    for name, matrix, rows, columns in [*matrices, ("f0", f0, linear.states, ("rate",))]:
        if matrix.size and matrix.shape[1] <= MAX_MATRIX_COLUMNS:
            lines = (
                [row.name, *(number(v, digits=8) for v in values)] for row, values in zip(rows, matrix, strict=True)
            )
            blocks.append(table(name, ["", *map(shorten_name, columns)], lines, most=200))
    return blocks
