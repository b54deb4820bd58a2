"""Points, discoveries, families and mechanisms as tables of 80 columns, or as wide as the terminal; points drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fmilin.discovery.discovery_result import Discovery
from fmilin.errors import count_omitted, cut_list
from fmilin.linear_model.measured_angles import describe_wrapped
from fmilin.linear_model.model import LinearizationPoint
from fmilin.model.interface import OperatingPoint
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.report.facts import Fact, certificate_facts, print_fact, print_facts, print_remarks, print_rows
from fmilin.report.family_pictures import mode_numbers
from fmilin.report.figures import COLORS, QUIET, create_titled_figure, draw_grid, format_label
from fmilin.report.numbers import grid_text, hide_rounding, rough, shorten_name, value_with_unit, values_text
from fmilin.report.table import point_tables, print_names, rightmost_eigenvalue
from fmilin.signals import FloatArray, Signals, rate_unit
from fmilin.support.table_repr import Sheet
from fmilin.support.tables import Cell, ResultTable, build_table
from fmilin.trimming.many_starts import OperatingPoints
from fmilin.trimming.trim_report import TrimmedPoint, TrimReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.design.kalman import KalmanFilter
    from fmilin.families.family import LinearFamily

MAX_STATES = 60  # longer tables are cut, and say how much was left out
SHOWN_AS_ZERO = 1e-12  # of a state's size: shown as zero


def show_points(points: Sequence[TrimmedPoint], page: Sheet, *, name: str) -> None:
    """Print what a person wants to know about points of the model ``name``."""
    for i, point in enumerate(points):
        if i:
            page.print()
        if len(points) > 1:
            print_fact(page, "Point", [f"{i + 1} of {len(points)}"])
        show_point(point, page, name=name)


def show_point(point: TrimmedPoint, page: Sheet, *, name: str = "") -> None:
    """Print one point; ``name`` is the model's."""
    report = point.report
    if name:
        print_fact(page, "Model", [shorten_name(name)])
    print_fact(page, "Found", [report.summary, f"t = {point.time:.8g} s"])
    values = dict(zip(report.inputs.names, point.inputs.tolist(), strict=True))
    displayed = hide_rounding(values, report.inputs)
    inputs = [f"{shorten_name(s.name)} = {value_with_unit(displayed[s.name], s.unit)}" for s in report.inputs]
    print_facts(page, (("Inputs", inputs or ["none"]), *_parameters(point), *_facts(report)))
    if len(report.states):
        page.print()
        page.print(_states(report, point.states))
        if len(report.states) > MAX_STATES:
            remaining = count_omitted(len(report.states), MAX_STATES)
            page.print(f"{remaining}; all of them are in a file (-o point.toml)")
    _show_remarks(report, page)


def show_report(report: TrimReport, page: Sheet) -> None:
    """Print the notes on a point after its values."""
    print_facts(page, (("Found", [report.summary]), *_facts(report)))
    if report.moving:
        rows = (
            (shorten_name(s.name), f"{rate:.8g}", rate_unit(s.unit), _kind(report, s.name))
            for s, rate in zip(report.states, report.rates, strict=True)
            if s.name in report.moving
        )
        print_rows(page, ("State", "Rate", "Unit", ""), rows, columns="lrll")
    _show_remarks(report, page)


def show_plain_point(point: OperatingPoint, page: Sheet) -> None:
    """Print a point: values by name, by number where it does not know its model."""
    moved = (
        f"projection moved a state by {point.adjusted:.2g} of its nominal value" if point.adjusted else "not projected"
    )
    print_fact(page, "Point", [f"t = {point.time:.8g} s", moved])
    print_facts(page, _parameters(point))
    states, inputs = point.names
    for title, letter, values, names in (("State", "x", point.states, states), ("Input", "u", point.inputs, inputs)):
        page.print()
        if not len(values):
            page.print(f"No {title.lower()}s.")
            continue
        row_names = names if len(names) == len(values) else [f"{letter}[{i}]" for i in range(len(values))]
        rows = ((shorten_name(name), f"{value:.8g}") for name, value in zip(row_names, values.tolist(), strict=True))
        page.print(build_table((f"{title}s ({len(values)})", "Value"), rows, columns="lr", most=MAX_STATES))
    print_remarks(page, point.remarks)


def _show_remarks(report: TrimReport, page: Sheet) -> None:
    page.print()
    print_remarks(page, report.remarks)
    if not report.remarks:
        page.print("No warnings.")


def _parameters(point: OperatingPoint) -> Iterator[Fact]:
    if point.parameters:
        yield "Parameters", [f"{shorten_name(n)} = {v:.8g}" for n, v in point.parameters.items()]


def _facts(report: TrimReport) -> Iterator[Fact]:
    if report.at_bounds:
        yield "At a bound", [shorten_name(n) for n in report.at_bounds]
    if report.targets:
        off = {n: f" ({value:+.4g} off)" for n, value in report.missed.items()}
        yield "Reached", [f"{shorten_name(n)} = {v:.8g}{off.get(n, '')}" for n, v in report.targets.items()]
    if report.preferred is not None:
        each = [f"{v:+.4g} per unit of {shorten_name(n)}" for n, v in report.multipliers.items()]
        yield "Least", [f"{report.preferred:.8g}", *each]
    if report.stability is not None:
        yield "Stability", [report.stability.text]
    yield from certificate_facts(report.certificate)
    for i, direction in enumerate(report.free_directions):
        along = [f"{shorten_name(n)} by {slope:.4g}" for n, slope in direction.along.items()]
        follow = [f"and with it {along[0]}", *along[1:]] if along else []
        yield "" if i else "Free", [f"{shorten_name(direction.name)} by 1", *follow]


def _states(report: TrimReport, values: FloatArray) -> ResultTable:
    steady = not report.is_equilibrium
    heads = ("State", "Value", "Unit", *(("Rate", "Unit", "") if steady else ()))
    rows = []
    for signal, value, rate, size in zip(
        report.states, values, report.rates, report.states.scales(values), strict=True
    ):
        cells = [shorten_name(signal.name), _figure(value, size), signal.unit]
        if steady:
            moves = signal.name in report.moving
            cells += [_figure(rate, size) if moves else "0", rate_unit(signal.unit), _kind(report, signal.name)]
        rows.append(cells)
    return build_table(heads, rows[:MAX_STATES], columns="lrlrll"[: len(heads)])


def _kind(report: TrimReport, name: str) -> str:
    if name not in report.moving:
        return ""
    rate = "varying rate" if name in report.varying else "constant rate"
    return f"{rate}, follows" if name in report.dragged else rate


def _figure(value: float, size: float) -> str:
    return f"{0.0 if abs(value) < SHOWN_AS_ZERO * size else value:.8g}"


MAX_NAMES = 40


def show_discovery(discovery: Discovery, page: Sheet) -> None:
    """Print the constraints with their residuals, what was kept out, and the order with and without."""
    print_fact(page, "Model", [discovery.name, f"{discovery.order} independent states of {discovery.full_order}"])
    print_fact(page, "Effort", [f"{discovery.visits} visits", f"{discovery.seconds:.1f} s"])
    if discovery.constant:
        print_fact(
            page, "Constant", ["never change, so they are parameters:", *cut_list(discovery.constant, MAX_NAMES)]
        )
    page.print()
    if discovery.findings:
        rows = (
            (f.expression, f.level, *(f"{v:.0e}" for v in (f.value, f.along_motion, f.along_inputs)))
            for f in discovery.findings[:MAX_NAMES]
        )
        page.print(build_table(("constraint = 0", "level", "h", "H f", "H f_u"), rows))
    else:
        page.print("No constraint was found: there is no evidence that the states depend on each other.")
    for k in discovery.kept_out[:MAX_NAMES]:
        print_fact(page, "Kept out", [f"{k.expression}: {k.reason}"])
    for name, entries in (("constraints", discovery.findings), ("kept out", discovery.kept_out)):
        if len(entries) > MAX_NAMES:
            page.print(f"{len(entries) - MAX_NAMES} more {name}: a file of this result has all of them.")


def show_signals(signals: Signals, page: Sheet) -> None:
    """Print names, units, start and nominal values, and the model's own words."""
    if not len(signals):
        page.print("No signals.")
        return
    rows = ((shorten_name(s.name), s.unit, f"{s.start:.8g}", f"{s.nominal or '':.6}", s.description) for s in signals)
    page.print(build_table(("Name", "Unit", "Start", "Nominal", ""), rows, columns="llrrl"))


def show_named_point(point: LinearizationPoint, page: Sheet) -> None:
    """Print the operating point of a linear model, by the model's names."""
    print_fact(page, "Point", [f"t = {point.time:.8g} s"])
    for table in point_tables(point):
        page.print()
        page.print(table)


def show_filter(kalman: KalmanFilter, page: Sheet) -> None:
    """Print how well each coordinate is known after a measurement, and what the filter takes from which one."""
    names = kalman.linear.outputs.names
    print_fact(page, "Kalman filter", [f"every {kalman.sampled.sample_time:g} s", f"of {kalman.linear.model.name}"])
    print_fact(page, "Measured", cut_list(map(shorten_name, names), NAMES))
    if wrapped := describe_wrapped(kalman.linear.outputs):
        print_fact(page, "Wraps", wrapped)
    gain_names = names[:MAX_GAIN_COLUMNS]
    heads = ("Coordinate", "Unit", "std", *(f"gain of {shorten_name(name)}" for name in gain_names))
    rows = (
        (shorten_name(s.name), s.unit, *(f"{v:.4g}" for v in (deviation, *gains[: len(gain_names)])))
        for s, deviation, gains in zip(
            kalman.sampled.states, np.sqrt(np.diag(kalman.covariance)), kalman.gain, strict=True
        )
    )
    print_rows(page, heads, rows, columns="ll" + "r" * (1 + len(gain_names)))


MAX_EVENTS = 8
REASONS = 3  # why points failed
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")
ROWS, NAMES = 24, 8  # points and names shown by :func:`show_family`
MAX_GAIN_COLUMNS = 4  # measurements with a column of gains in :func:`show_filter`


def summarize_failures(family: LinearFamily) -> str:
    """Say how many points failed, the first of them, and why; reasons that differ in numbers alone count as one."""
    failed = [int(k) for k in (~family.ok.ravel()).nonzero()[0]]
    alike: dict[str, list[str]] = {}
    for k in failed:
        reason = str(family.reasons.flat[k])
        alike.setdefault(_NUMBER.sub("#", reason), []).append(reason)
    frequent_reasons = sorted(alike.values(), key=len, reverse=True)[:REASONS]
    at = values_text(family.grid.values(failed[0]))
    return f"{len(failed)} of {len(family)} points failed, the first at {at}. " + " ".join(
        f"{len(reasons)} of them{', such as' if len(set(reasons)) > 1 else ''}: {reasons[0]}"
        for reasons in frequent_reasons
    )


def show_family(family: LinearFamily, page: Sheet, *, events: bool = False) -> None:
    """Print a family of any size in few lines; with ``events``, where modes meet, for which they are followed."""
    print_fact(page, "Family", [shorten_name(family.template.model.name) or "sweep"])
    print_fact(page, "Points", points_fact(family))
    print_names(page, family)
    if family.switches:
        print_fact(page, "", ["the coordinates are not the same at all points"])
    first = next(iter(family.remarks.values()), ())
    print_remarks(page, [remark for remark in first if remark.kind == "unchecked"])
    if any(remark.kind == "loop" for remarks in family.remarks.values() for remark in remarks):
        _show_margins(family, page)
        return
    page.print()
    page.print(replace(point_table(family, range(min(len(family), ROWS))), omitted=max(len(family) - ROWS, 0)))
    met = family.mode_events if events else ()
    if met:
        page.print()
        numbers = mode_numbers(family.eigenvalues.reshape(len(family), -1))
    for event in met[:MAX_EVENTS]:
        a, b = (values_text(family.grid.values(k)) for k in event.between)
        one, other = sorted(numbers[m] + 1 for m in event.modes)
        page.print(f"{event.kind} of modes {one} and {other} between {a} and {b}")
    if len(met) > MAX_EVENTS:
        page.print(f"... {count_omitted(len(met), MAX_EVENTS)}")


def _show_margins(family: LinearFamily, page: Sheet) -> None:
    rows = []
    for k, m in list(enumerate(family.margins().ravel()))[:ROWS]:
        texts = ["failed" if m is None else "unstable", *[""] * 4]
        if m is not None and m.stable:
            texts = [f"{v:.4g}" for v in (*m.gain, m.phase, m.delay, m.disk)]
        rows.append([*(f"{v:g}" for v in family.grid.values(k).values()), *texts])
    heads = (*family.axes, "Gain down", "Gain up", "Phase [deg]", "Delay [s]", "Disk margin")
    page.print()
    page.print(replace(build_table(heads, rows), omitted=max(len(family) - ROWS, 0)))


def points_fact(family: LinearFamily) -> list[str]:
    """Return how many points have a linear model, of which order, and over which grid."""
    good = f"{int(family.ok.sum())} of {len(family)} linear models"
    return [good, f"order {family.template.order}", grid_text(family)]


def point_table(family: LinearFamily, points: Iterable[int]) -> ResultTable:
    """Return where each of some points stands, its rightmost eigenvalue, and how accurate its A is."""
    rows = []
    for k in points:
        at = [Cell(f"{value:g}", value) for value in family.grid.values(k).values()]
        if family.ok.flat[k]:
            linear = family.linear_model(k)
            rows.append([*at, rightmost_eigenvalue(linear), Cell(rough(linear.accuracy.A), linear.accuracy.A)])
        else:
            rows.append([*at, Cell("failed", alarm=True), Cell("")])
    return build_table((*family.axes, "Rightmost eigenvalue [1/s]", "Accuracy of A"), rows)


def show_mechanism(mechanism: MechanismDescription, page: Sheet) -> None:
    """Lay out the description on a page."""
    print_fact(page, "Mechanism", [mechanism.name])
    print_fact(page, "Gravity", [f"{', '.join(f'{g:g}' for g in mechanism.gravity)} m/s2"])
    for word, parts in (("Wheels", mechanism.wheels), ("Skates", mechanism.skates), ("Springs", mechanism.springs)):
        if parts:
            print_fact(page, word, [str(len(parts))])
    for word, named in (("Inputs", mechanism.inputs), ("Sensors", mechanism.sensors)):
        print_fact(page, word, [part.name for part in named] or ["none"])
    if mechanism.independent:
        print_fact(page, "Coordinates", mechanism.independent)
    bodies = ((body.name, "" if body.mass is None else f"{body.mass:.8g}") for body in mechanism.bodies)
    print_rows(page, (f"Bodies ({len(mechanism.bodies)})", "Mass [kg]"), bodies, columns="lr")
    joints = [(j.name, j.type, j.parent, j.child) for j in mechanism.joints]
    for title, rows in (("Joints", joints), ("Loops", [(p.name, p.type, p.first, p.second) for p in mechanism.loops])):
        if rows or title == "Joints":
            print_rows(page, (f"{title} ({len(rows)})", "Type", "From", "To"), rows, columns="llll")
    for remark in mechanism.remarks:
        print_fact(page, "Note", remark)


def points_figure(points: OperatingPoints, x: str | None = None, y: str | None = None) -> Figure:
    """Draw rests over two states, those that stay filled, and where the searches started."""
    signals = points.signals
    values = np.array([point.states for point in points])
    widest = [int(i) for i in np.argsort(-np.ptp(values, axis=0) / signals.scales(), kind="stable")]
    i = widest[0] if x is None else signals.index_of(x, "a state of the model")
    other_states = [k for k in widest if k != i] or [i]
    j = other_states[0] if y is None else signals.index_of(y, "a state of the model")
    figure = create_titled_figure(f"{len(points)} equilibria, {len(points.stable)} of them stable", 7.0, 5.0)
    axes = figure.subplots()
    axes.plot(points.starts[:, i], points.starts[:, j], ".", color=QUIET, alpha=0.35, markersize=4, label="starts")
    stays = np.array([point.report.is_stable for point in points])
    for marked, face, label in ((stays, COLORS[0], "stable"), (~stays, "white", "unstable or undecided")):
        if marked.any():
            axes.plot(
                values[marked, i], values[marked, j], "o", markersize=9, markeredgewidth=1.8, linestyle="none",
                markerfacecolor=face, markeredgecolor=COLORS[0] if face != "white" else COLORS[1], label=label,
            )  # fmt: skip
    axes.set(xlabel=format_label(signals[i]), ylabel=format_label(signals[j]))
    draw_grid(axes)
    axes.legend(frameon=False)
    return figure
