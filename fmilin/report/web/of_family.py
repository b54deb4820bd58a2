"""The report of a family of linear models: its modes followed over the grid, accuracy, diagnostics, every point."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fmilin.families.family import LinearFamily
from fmilin.linear_model.modal import ModalAnalysis, modal_analysis
from fmilin.report.family_pictures import GROWING, compute_eigenvalue_rates, compute_rate_errors, mode_numbers
from fmilin.report.numbers import interface_text, list_matrices, rough, shorten_name, values_text
from fmilin.report.result_tables import point_table, points_fact
from fmilin.report.web.blocks import Block, Section, note_omitted, number, picture, render_html, table, text
from fmilin.signals import FloatArray, Signals
from fmilin.support.tables import Cell

MAX_POINTS = 2000  # that are examined for participation and channels, evenly chosen; those of the eigenvalues are all
MAX_MODES = 200
MAX_TABLE_POINTS = 20_000  # points in a table


@dataclass(frozen=True, eq=False)
class _Followed:
    """Shares of every mode at some points: shape (points, modes, channels); and where a mode is not moved or seen."""

    points: Sequence[int]
    participation: FloatArray
    controllability: FloatArray
    observability: FloatArray
    unmoved: FloatArray
    unseen: FloatArray


def family_mode_sections(family: LinearFamily) -> list[Section]:
    """Return the sections about modes, and about controllability and observability."""
    if not family.ok.any() or not family.template.order:
        return []
    values = family.eigenvalues.reshape(len(family), -1)
    # Of two modes that are conjugates of each other at every point one is shown.
    numbers = [k + 1 for k in mode_numbers(values)]
    columns = np.flatnonzero((np.isfinite(values) & (values.imag >= 0)).any(axis=0)).tolist()[:MAX_MODES]
    numbers_by_column = {m: numbers[m] for m in sorted(columns, key=numbers.__getitem__)}
    followed = _follow(family, values)
    names = [f"coordinate {k + 1}" for k in range(family.template.order)] if family.switches else family.states.names
    mean = followed.participation.mean(axis=0)
    rows = (
        [number(numbers_by_column[m], digits=4), *(number(100 * p, digits=3) for p in mean[m])]
        for m in numbers_by_column
    )
    heads = ["Mode", *map(shorten_name, names)]
    caption = (
        f"Participation factors in percent, mean over {_count(family, followed)}; independent of units and scaling"
    )
    return [
        Section("Modes", [*_modes(family, numbers_by_column), table(caption, heads, rows), *_events(family, numbers)]),
        Section("Controllability and observability", _channels(family, followed, numbers_by_column)),
    ]


def _modes(family: LinearFamily, numbers_by_column: Mapping[int, int]) -> list[Block]:
    spectra = compute_eigenvalue_rates(family).reshape(len(family), -1)
    errors = compute_rate_errors(family).reshape(spectra.shape)
    grows = np.isin(family.spectra.kinds, GROWING)
    rows = []
    for m in numbers_by_column:
        w = spectra[:, m]
        size = np.abs(w)
        finite = np.isfinite(size)
        swings = finite & (np.abs(w.imag) > 1e-9 * size) & (size > 0)
        ratio = np.where(swings, -w.real / np.where(size > 0, size, 1.0), np.nan)
        growing = int(grows[:, m].sum())
        error = float(np.nanmax(errors[:, m]))
        right = int(np.nanargmax(np.where(finite, w.real, -np.inf)))
        rows.append(
            [
                number(numbers_by_column[m], digits=4), number(float(np.nanmin(w.real))),
                number(float(np.nanmax(w.real)), alarm=growing > 0),
                Cell(_at(family, right)), number(_least(np.where(swings, np.abs(w.imag), np.nan))),
                number(-_least(-np.where(swings, np.abs(w.imag), np.nan))), number(_least(ratio), digits=4),
                number(growing, digits=8, alarm=growing > 0), number(error, digits=2),
            ]
        )  # fmt: skip
    heads = ["Mode", "Real part [1/s] from", "to", "largest at", "Frequency [rad/s] from", "to",
             "Smallest damping ratio", "Points where it grows", "Largest error [1/s]"]  # fmt: skip
    return [table("Modes followed over the grid by their eigenvectors; of a pair one", heads, rows)]


def _least(values: np.ndarray) -> float:
    return float(np.nanmin(values)) if np.isfinite(values).any() else float("nan")


def _at(family: LinearFamily, point: int) -> str:
    return values_text(family.grid.values(point))


def _events(family: LinearFamily, numbers: Sequence[int]) -> list[Block]:
    rows = [
        [e.kind, *(number(numbers[m], digits=4) for m in e.modes), *(_at(family, k) for k in e.between)]
        for e in family.mode_events
    ]
    heads = ["What", "Mode", "and mode", "Between", "and"]
    return [table("Where modes meet", heads, rows, most=500)] if rows else []


def _follow(family: LinearFamily, values: np.ndarray) -> _Followed:
    """Analyse points one by one, and sort what is found by the modes that run through the grid."""
    good = np.flatnonzero(family.ok)
    points = good[np.unique(np.linspace(0, len(good) - 1, min(len(good), MAX_POINTS)).round().astype(int))].tolist()
    analyses = [modal_analysis(family.linear_model(k)) for k in points]
    groups = [_find_groups(analysis, values[k]) for analysis, k in zip(analyses, points, strict=True)]

    def stack_attribute(name: str) -> FloatArray:
        return np.array([getattr(a, name)[p] for a, p in zip(analyses, groups, strict=True)], dtype=float)

    counts = np.array([[a.groups[g].count for g in p] for a, p in zip(analyses, groups, strict=True)], dtype=float)
    shares = (stack_attribute(name) for name in ("participation", "controllability", "observability"))
    never = ((stack_attribute(name) == counts[..., None]).astype(float) for name in ("unmoved", "unseen"))
    return _Followed(points, *shares, *never)


def _find_groups(analysis: ModalAnalysis, values: np.ndarray) -> list[int]:
    """Return the group that each eigenvalue belongs to, with its conjugate."""
    centres = np.array([g.eigenvalue for g in analysis.groups])
    upper = values.real + 1j * np.abs(values.imag)
    return [int(k) for k in np.argmin(np.abs(centres - upper[:, None]), axis=1)]


def _count(family: LinearFamily, followed: _Followed) -> str:
    good = int(family.ok.sum())
    return f"{len(followed.points)} points" + ("" if len(followed.points) == good else f" of {good}, evenly chosen")


def _channels(family: LinearFamily, followed: _Followed, numbers_by_column: Mapping[int, int]) -> list[Block]:
    blocks: list[Block] = [
        text(
            "The share of a mode is the largest part that it has in the impulse response of any coordinate to the "
            "input; for outputs, in the response to initial values. 'not' counts the points where this input cannot "
            "move it, this output does not show it, by the test of Popov, Belevitch and Hautus. Looked at: "
            f"{_count(family, followed)}."
        )
    ]
    channels = (
        ("Which input moves which mode: share in percent", family.inputs, followed.controllability, followed.unmoved),
        ("Which output shows which mode: share in percent", family.outputs, followed.observability, followed.unseen),
    )
    return [*blocks, *(_shares(*channel, numbers_by_column) for channel in channels if len(channel[1]))]


def _shares(
    caption: str, signals: Signals, shares: FloatArray, lack: FloatArray, numbers_by_column: Mapping[int, int]
) -> Block:
    rows: list[list[Cell]] = []
    for m in numbers_by_column:
        cells = [number(numbers_by_column[m], digits=4)]
        for c in range(len(signals)):
            low, high, never = 100 * shares[:, m, c].min(), 100 * shares[:, m, c].max(), int(lack[:, m, c].sum())
            share_text = f"{rough(low)} to {rough(high)}" if high - low > 0.5 else rough(high)
            if never:
                share_text = "not" if never == len(shares) else f"{share_text}, not at {never}"
            cells.append(Cell(share_text, float(low), alarm=never > 0))
        rows.append(cells)
    return table(caption, ["Mode", *map(shorten_name, signals.names)], rows)


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
    return render_html(name, subtitle, sections)


def _overview(family: LinearFamily) -> list[Block]:
    t, good = family.template, int(family.ok.sum())
    model = t.model
    rows = [
        ["Model", f"{model.name} ({interface_text(model)})"],
        *([["Made by", model.tool]] if model.tool else []),
        *([["Identity", model.guid]] if model.guid else []),
        ["Points", ", ".join(points_fact(family))],
        ["Sampling", f"every {t.sample_time:g} s" if t.sample_time > 0 else "continuous"],
        ["Inputs", ", ".join(map(shorten_name, t.inputs.names)) or "none"],
        ["Outputs", ", ".join(map(shorten_name, t.outputs.names)) or "none"],
    ]
    axes = (
        [name, number(len(values), digits=8), number(float(np.min(values))), number(float(np.max(values)))]
        for name, values in family.axes.items()
    )
    blocks: list[Block] = [table("", [], rows), table("What varies", ["Name", "Values", "From", "To"], axes)]
    if good < len(family):
        reasons = Counter(str(r) for r in family.reasons[~family.ok])
        failed = ([number(count, digits=8), reason] for reason, count in reasons.most_common())
        blocks.append(table("Why points have no linear model", ["Points", "Reason"], failed, most=50))
    return blocks


def _pictures(family: LinearFamily) -> list[Block]:
    if not family.ok.any() or not family.template.order or not family.axes:
        return []
    plot = family.plot
    blocks = [picture("Root locus", plot.root_locus), picture("Eigenvalues over the last axis", plot.eigenvalues)]
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
        names = ", ".join(map(shorten_name, choice.states.names)) or "none"
        rows.append([Cell(names), Cell(choice.method[1]), number(int(here.sum()), digits=8), number(worst, digits=3)])
    warning = [text("The coordinates are not the same at all points.", alarm=True)] if family.switches else []
    heads = ["Independent coordinates", "Chosen by", "Points", "Largest condition number"]
    return [*warning, table("Which coordinates, and how", heads, rows)]


def _accuracy(family: LinearFamily) -> list[Block]:
    if not family.ok.any():
        return []
    rows = sorted(_entries(family), key=lambda row: -(row[5].value or 0.0))
    heads = ["Matrix", "Row", "Column", "From", "To", "Largest error over the largest entry of its row", "At"]
    return [
        text(
            "Every entry of every point has an estimated error; here the worst of all points. It is relative to the "
            "largest entry of its row at that point; 0 means exact."
        ),
        table("Entry by entry, the least certain first", heads, rows, most=2000),
    ]


def _entries(family: LinearFamily) -> Iterator[list[Cell]]:
    good = np.flatnonzero(family.ok)
    for name, rows, columns in list_matrices(family):
        models = family.models[good]
        values, errors = models.read(name), models.read(f"error_{name}")
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


def _remarks(family: LinearFamily) -> Iterator[Block]:
    """Yield diagnostics that are alike once, with the number of points that have them."""
    by_kind: dict[str, list[tuple[int, str, bool]]] = {}
    for k, remarks in family.remarks.items():
        for remark in remarks:
            by_kind.setdefault(remark.kind, []).append((k, remark.message, remark.is_information))
    if not by_kind:
        yield text("No warnings.")
        return
    rows = (
        [kind, "note" if occurrences[0][2] else "warning", number(len({k for k, *_ in occurrences}), digits=8),
         _at(family, occurrences[0][0]), occurrences[0][1]]
        for kind, occurrences in sorted(by_kind.items())
    )  # fmt: skip
    yield table("Notes and warnings by kind", ["Kind", "", "Points", "First at", "Message"], rows)


def _points(family: LinearFamily) -> list[Block]:
    values = compute_eigenvalue_rates(family).reshape(len(family), -1)
    grows = np.asarray(np.isin(family.spectra.kinds, GROWING).any(axis=-1))
    accuracy = family.models.read("accuracy")
    listed_points = range(min(len(family), MAX_TABLE_POINTS))
    rows: list[list[Cell]] = []
    for k in listed_points:
        if family.ok.flat[k]:
            kinds = ", ".join(sorted({r.kind for r in family.remarks.get(k, ())}))
            stable = Cell("yes" if grows[k] else "", alarm=bool(grows[k]))
            rows.append([stable, *_figures(values[k]), number(accuracy[k, -2], digits=2), Cell(kinds)])
        else:
            rows.append([*[Cell("")] * 5, Cell(str(family.reasons.flat[k])[:200])])
    heads = ["Grows", "Smallest damping ratio", "Slowest [rad/s]", "Fastest [rad/s]", "Residual", "Remarks"]
    listed = point_table(family, listed_points).beside(table("", heads, rows, most=MAX_TABLE_POINTS))
    return [replace(listed, caption="Every point of the grid", note=note_omitted(len(family), MAX_TABLE_POINTS))]


def _figures(w: np.ndarray) -> list[Cell]:
    """Return the smallest damping ratio, the slowest and the fastest frequency."""
    if not len(w):
        return [Cell(""), Cell(""), Cell("")]
    size = np.abs(w)
    swings = (np.abs(w.imag) > 1e-9 * size) & (size > 0)
    ratio = float((-w.real[swings] / size[swings]).min()) if swings.any() else np.nan
    return [
        number(ratio, digits=4), number(float(size.min()), digits=4), number(float(size.max()), digits=4),
    ]  # fmt: skip
