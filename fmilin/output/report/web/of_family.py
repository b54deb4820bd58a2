"""The report of a family of linear models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

import numpy as np

from fmilin.families.family import LinearFamily
from fmilin.output.report.numbers import eigenvalue_text, rounded, shortened
from fmilin.output.report.web.blocks import Block, Cell, Section, html_of, number, picture, table, text
from fmilin.output.report.web.of_family_modes import family_mode_sections

__all__ = ["family_report"]

MOST_REMARKS = 20


def family_report(family: LinearFamily) -> str:
    """Return the report of a family as one HTML file."""
    name = family.template.model.name or "sweep"
    sections = [
        Section("Overview", _overview(family)),
        Section("Pictures", _pictures(family)),
        *family_mode_sections(family),
        Section("Coordinates", _coordinates(family)),
        Section("Accuracy", _accuracy(family)),
        Section("Remarks", list(_remarks(family))),
        Section("Points", _points(family)),
    ]
    t = family.template
    subtitle = (
        f"{int(family.ok.sum())} linear models at {len(family)} operating points: {t.order} independent states out of "
        f"{len(t.full_states)}, inputs: {len(t.inputs)}, outputs: {len(t.outputs)}"
    )
    return html_of(name, subtitle, sections)


def _overview(family: LinearFamily) -> list[Block]:
    t, good = family.template, int(family.ok.sum())
    model = t.model
    rows = [
        ["Model", f"{model.name} ({f'FMI {model.fmi_version}' if model.fmi_version else 'native'})"],
        *([["Made by", model.tool]] if model.tool else []),
        *([["Identity", model.guid]] if model.guid else []),
        [
            "Points",
            f"{good} of {len(family)} have a linear model; grid {' x '.join(map(str, family.shape)) or 'of one point'}",
        ],
        ["Sampling", f"every {t.sample_time:g} s" if t.sample_time > 0 else "continuous"],
        ["Inputs", ", ".join(map(shortened, t.inputs.names)) or "none"],
        ["Outputs", ", ".join(map(shortened, t.outputs.names)) or "none"],
    ]
    axes = (
        [name, number(len(values), digits=8), number(float(np.min(values))), number(float(np.max(values)))]
        for name, values in family.axes.items()
    )
    blocks: list[Block] = [
        table("", [], rows),
        table("What varies", ["Name", "Values", "From", "To"], axes),
    ]
    if good < len(family):
        reasons = Counter(str(r) for r in family.reasons[~family.ok])
        failed = ([number(count, digits=8), reason] for reason, count in reasons.most_common())
        blocks.append(table("Why points have no linear model", ["Points", "Reason"], failed, most=50))
    return blocks


def _pictures(family: LinearFamily) -> list[Block]:
    if not family.ok.any() or not family.template.order or not family.axes:
        return []
    plot, blocks = family.plot, []
    blocks.append(picture("Root locus", plot.root_locus))
    blocks.append(picture("Eigenvalues over the last axis", plot.eigenvalues))
    if (np.abs(np.nan_to_num(family.eigenvalues.imag)) > 0).any():
        blocks.append(picture("Frequencies and damping (Campbell's diagram)", plot.campbell))
    if len(family.shape) == 2 and min(family.shape) > 1:
        quantities = ("growth", "damping", "accuracy")
        blocks += [picture(f"Over both axes: {name}", partial(plot.surface, name)) for name in quantities]
    return blocks


def _coordinates(family: LinearFamily) -> list[Block]:
    conditioning = family.array("accuracy").reshape(len(family), -1)[:, -1]
    rows = []
    for k, choice in enumerate(family.choices):
        here = family.chosen == k
        worst = float(np.nanmax(conditioning[here])) if here.any() else np.nan
        names = ", ".join(map(shortened, choice.states.names)) or "none"
        rows.append([Cell(names), Cell(choice.method[1]), number(int(here.sum()), digits=8), number(worst, digits=3)])
    said = "The coordinates are not the same at all points." if family.switches else ""
    heads = ["Independent coordinates", "Chosen by", "Points", "Largest condition number"]
    return [*([text(said, alarm=True)] if said else []), table("Which coordinates, and how", heads, rows)]


def _accuracy(family: LinearFamily) -> list[Block]:
    if not family.ok.any():
        return []
    rows = sorted(_entries(family), key=lambda row: -(row[5].value or 0.0))
    heads = ["Matrix", "Row", "Column", "From", "To", "Largest error over the largest entry of its row", "At"]
    return [
        text(
            "Every entry of every point has an estimated error; here the worst of all points. It counts against the "
            "largest entry of its row at that point; 0 means exact."
        ),
        table("Entry by entry, the least certain first", heads, rows, most=2000),
    ]


def _entries(family: LinearFamily) -> Iterator[list[Cell]]:
    y, u, out = family.states, family.inputs, family.outputs
    good = np.flatnonzero(family.ok)
    for name, rows, columns in (("A", y, y), ("B", y, u), ("C", out, y), ("D", out, u)):
        values = family.layout.part(family.rows[good], name)
        errors = family.layout.part(family.rows[good], f"error_{name}")
        if not values.size:
            continue
        largest = np.abs(values).max(axis=2, keepdims=True)
        part = errors / np.where(largest > 0, largest, 1.0)
        for i, j in np.ndindex(*values.shape[1:]):
            entry = values[:, i, j]
            if not entry.any() and not errors[:, i, j].any():
                continue
            worst = int(np.argmax(part[:, i, j]))
            most = float(part[worst, i, j])
            yield [
                Cell(name), Cell(_row_name(family, i, rows.names)), Cell(_row_name(family, j, columns.names)),
                number(float(entry.min())), number(float(entry.max())), number(most, digits=2, alarm=most > 1e-3),
                Cell(_at(family, int(good[worst])) if most > 0 else ""),
            ]  # fmt: skip


def _row_name(family: LinearFamily, k: int, names: tuple[str, ...]) -> str:
    switched = family.switches and names == family.states.names
    return f"coordinate {k + 1}" if switched else names[k]


def _at(family: LinearFamily, number_of_point: int) -> str:
    return ", ".join(f"{name} = {value:.6g}" for name, value in family.grid.values(number_of_point).items())


def _remarks(family: LinearFamily) -> Iterator[Block]:
    """Yield remarks that are alike once, with the number of points that have them."""
    by_kind: dict[str, list[tuple[int, str, bool]]] = {}
    for k, remarks in family.remarks.items():
        for remark in remarks:
            by_kind.setdefault(remark.kind, []).append((k, remark.message, remark.is_information))
    if not by_kind:
        yield text("No warnings.")
        return
    rows = (
        [kind, "note" if found[0][2] else "warning", number(len({k for k, *_ in found}), digits=8),
         _at(family, found[0][0]), found[0][1]]
        for kind, found in sorted(by_kind.items())
    )  # fmt: skip
    yield table("Remarks by kind", ["Kind", "", "Points", "First at", "As said there"], rows)


def _points(family: LinearFamily) -> list[Block]:
    heads = [*family.axes, "Rightmost eigenvalue [1/s]", "Smallest damping ratio", "Slowest [rad/s]", "Fastest [rad/s]",
             "Accuracy of A", "Residual", "Remarks"]  # fmt: skip
    values = family.eigenvalues.reshape(len(family), -1)
    accuracy = family.layout.part(family.rows, "accuracy")
    rows = []
    for k in range(len(family)):
        at = [number(v) for v in family.grid.values(k).values()]
        if not family.ok.flat[k]:
            rows.append([*at, Cell("failed", alarm=True), *[Cell("")] * 5, Cell(str(family.reasons.flat[k])[:200])])
            continue
        w = values[k]
        kinds = ", ".join(sorted({r.kind for r in family.remarks.get(k, ())}))
        rows.append(
            [*at, *_figures(w), number(accuracy[k, 0], digits=2), number(accuracy[k, -2], digits=2), Cell(kinds)]
        )
    return [table("Every point of the grid", heads, rows, most=20_000)]


def _figures(w: np.ndarray) -> list[Cell]:
    """Return the rightmost eigenvalue, the smallest damping ratio, the slowest and the fastest frequency."""
    if not len(w):
        return [Cell("none"), Cell(""), Cell(""), Cell("")]
    top = complex(w[np.argmax(w.real)])
    size = np.abs(w)
    swings = (np.abs(w.imag) > 1e-9 * size) & (size > 0)
    ratio = float((-w.real[swings] / size[swings]).min()) if swings.any() else np.nan
    growing = rounded(top).real > 0
    return [
        Cell(eigenvalue_text(top, pair=abs(top.imag) > 1e-9 * abs(top)), top.real, growing),
        number(ratio, digits=4), number(float(size.min()), digits=4), number(float(size.max()), digits=4),
    ]  # fmt: skip
