"""Points, discoveries, families and descriptions of mechanisms as tables of 80 columns, or as wide as the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from fmilin.discovery.result import Discovery
from fmilin.ground.signals import FloatArray, Signals, rate_unit
from fmilin.linear_model.model import Point
from fmilin.model.interface import Model, OperatingPoint
from fmilin.native.mechanism.description import MechanismDescription
from fmilin.output.report.numbers import eigenvalue_text, rough, shortened, value_with_unit
from fmilin.output.report.page import Page
from fmilin.output.report.table import Fact, console_on, print_fact, print_facts, print_remarks, simple_table
from fmilin.points.report import TrimmedPoint, TrimReport

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fmilin.families.family import LinearFamily


MOST_STATES = 60  # longer tables are cut, and say how much was left out
WORTH_SAYING = 1e-8  # how far the solution may be from a point, in sizes of the unknowns, before that is shown
SHOWN_AS_ZERO = 1e-12  # of a state's size: shown as zero


def print_points(model: Model, points: Sequence[TrimmedPoint], stream: TextIO) -> None:
    """Print what a person wants to know about points of ``model``."""
    with console_on(stream) as console:
        for i, point in enumerate(points):
            if i:
                console.print()
            if len(points) > 1:
                print_fact(console, "Point", [f"{i + 1} of {len(points)}"])
            show_point(point, console, name=model.info.name)


def show_point(point: TrimmedPoint, page: Console | Page, *, name: str = "") -> None:
    """Print what :func:`print_points` does for one point; ``name`` is the model's."""
    report = point.report
    if name:
        print_fact(page, "Model", [shortened(name)])
    print_fact(page, "Found", [report.summary, f"t = {point.time:.8g} s"])
    inputs = [
        f"{shortened(s.name)} = {value_with_unit(v, s.unit)}"
        for s, v in zip(report.inputs, point.inputs.tolist(), strict=True)
    ]
    print_facts(page, (("Inputs", inputs or ["none"]), *_parameters(point), *_facts(report)))
    if len(report.states):
        page.print()
        page.print(_states(report, point.states))
        if len(report.states) > MOST_STATES:
            page.print(f"and {len(report.states) - MOST_STATES} more; all of them are in a file (-o point.toml)")
    _show_remarks(report, page)


def show_report(report: TrimReport, page: Console | Page) -> None:
    """Print what there is to say about a point beside its values."""
    print_facts(page, (("Found", [report.summary]), *_facts(report)))
    if report.moving:
        table = simple_table("State", "Rate", "Unit", "", columns="lrll")
        for signal, rate in zip(report.states, report.rates, strict=True):
            if signal.name in report.moving:
                kind = _kind(report, signal.name)
                table.add_row(shortened(signal.name), f"{rate:.8g}", rate_unit(signal.unit), kind)
        page.print()
        page.print(table)
    _show_remarks(report, page)


def show_plain_point(point: OperatingPoint, page: Page) -> None:
    """Print a point that does not know its model: values by number."""
    moved = (
        f"projection moved a state by {point.adjusted:.2g} of its nominal value" if point.adjusted else "not projected"
    )
    print_fact(page, "Point", [f"t = {point.time:.8g} s", moved])
    print_facts(page, _parameters(point))
    for title, letter, values in (("State", "x", point.states), ("Input", "u", point.inputs)):
        page.print()
        if not len(values):
            page.print(f"No {title.lower()}s.")
            continue
        table = simple_table(f"{title}s ({len(values)})", "Value", columns="lr")
        for i, value in enumerate(values[:MOST_STATES].tolist()):
            table.add_row(f"{letter}[{i}]", f"{value:.8g}")
        if len(values) > MOST_STATES:
            table.add_row(f"and {len(values) - MOST_STATES} more", "")
        page.print(table)
    for remark in point.remarks:
        print_fact(page, remark.heading, str(remark))


def _show_remarks(report: TrimReport, page: Console | Page) -> None:
    page.print()
    print_remarks(page, report.remarks)
    if not report.remarks:
        page.print("No warnings.")


def _parameters(point: OperatingPoint) -> Iterator[Fact]:
    if point.parameters:
        yield "Parameters", [f"{shortened(n)} = {v:.8g}" for n, v in point.parameters.items()]


def _facts(report: TrimReport) -> Iterator[Fact]:
    if report.at_bounds:
        yield "At a bound", [shortened(n) for n in report.at_bounds]
    if report.targets:
        off = {n: f" ({value:+.4g} off)" for n, value in report.missed.items()}
        yield "Reached", [f"{shortened(n)} = {v:.8g}{off.get(n, '')}" for n, v in report.targets.items()]
    if report.preferred is not None:
        each = [f"{v:+.4g} per unit of {shortened(n)}" for n, v in report.multipliers.items()]
        yield "Least", [f"{report.preferred:.8g}", *each]
    if report.unstable is not None and report.eigenvalues is not None:
        yield "Stability", [f"{report.unstable} of {len(report.eigenvalues)} eigenvalues with a positive real part"]
    yield "Residual", [f"{report.residual:.1e}" if report.residual else "0", "in sizes of the states (per second)"]
    if doubtful := {n: d for n, d in report.distance.items() if d > WORTH_SAYING * _size(report, n)}:
        yield "Known to", [f"{shortened(n)} +- {rough(d)}" for n, d in doubtful.items()]
    for i, direction in enumerate(report.free_directions):
        along = [f"{shortened(n)} by {slope:.4g}" for n, slope in direction.along.items()]
        follow = [f"and with it {along[0]}", *along[1:]] if along else []
        yield "" if i else "Free", [f"{shortened(direction.name)} by 1", *follow]


def _size(report: TrimReport, name: str) -> float:
    """Return the size of an unknown; parameters have none, so 1."""
    for signals in (report.states, report.inputs):
        if signals.has(name):
            return float(signals.select([signals.positions[name]]).scales()[0])
    return 1.0


def _states(report: TrimReport, values: FloatArray) -> Table:
    steady = not report.is_equilibrium
    heads = ("State", "Value", "Unit", *(("Rate", "Unit", "") if steady else ()))
    table = simple_table(*heads, columns="lrlrll"[: len(heads)])
    sizes = report.states.scales(values)
    rows = list(zip(report.states, values, report.rates, sizes, strict=True))[:MOST_STATES]
    for signal, value, rate, size in rows:
        cells = [shortened(signal.name), _figure(value, size), signal.unit]
        if steady:
            moves = signal.name in report.moving
            cells += [_figure(rate, size) if moves else "0", rate_unit(signal.unit), _kind(report, signal.name)]
        table.add_row(*cells)
    return table


def _kind(report: TrimReport, name: str) -> str:
    """Return how a state moves."""
    if name not in report.moving:
        return ""
    rate = "varying rate" if name in report.varying else "constant rate"
    return f"{rate}, follows" if name in report.dragged else rate


def _figure(value: float, size: float) -> str:
    return f"{0.0 if abs(value) < SHOWN_AS_ZERO * size else value:.8g}"


MOST = 40


def print_discovery(discovery: Discovery, stream: TextIO) -> None:
    """Print the constraints with their residuals, what was kept out, and the order with and without."""
    with console_on(stream) as console:
        show_discovery(discovery, console)


def show_discovery(discovery: Discovery, page: Console | Page) -> None:
    """Print the same on a console or page."""
    print_fact(page, "Model", [discovery.name, f"{discovery.order} independent states of {discovery.full_order}"])
    print_fact(page, "Effort", [f"{discovery.visits} visits", f"{discovery.seconds:.1f} s"])
    if discovery.constant:
        print_fact(page, "Constant", ["never change, so they are parameters:", *discovery.constant[:MOST]])
    page.print()
    if discovery.findings:
        table = simple_table("constraint = 0", "level", "h", "H f", "H f_u")
        for f in discovery.findings[:MOST]:
            residuals = (f"{v:.0e}" for v in (f.value, f.along_motion, f.along_inputs))
            table.add_row(f.expression, f.level, *residuals)
        page.print(table)
    else:
        page.print("No constraint was found: nothing says that the states depend on each other.")
    for k in discovery.kept_out[:MOST]:
        print_fact(page, "Kept out", [f"{k.expression}: {k.reason}"])
    for name, whole in (("constraints", discovery.findings), ("kept out", discovery.kept_out)):
        if len(whole) > MOST:
            page.print(f"{len(whole) - MOST} more {name}: -o FILE.toml and --json have them all.")


def show_signals(signals: Signals, page: Page) -> None:
    """Print names, units, start and nominal values, and the model's own words."""
    if not len(signals):
        page.print("No signals.")
        return
    table = simple_table("Name", "Unit", "Start", "Nominal", "", columns="llrrl")
    for s in signals:
        table.add_row(shortened(s.name), s.unit, f"{s.start:.8g}", f"{s.nominal or '':.6}", s.description)
    page.print(table)


def show_named_point(point: Point, page: Page) -> None:
    """Print the operating point of a linear model, by the model's names."""
    print_fact(page, "Point", [f"t = {point.time:.8g} s"])
    for title in ("States", "Inputs", "Outputs", "Parameters"):
        if values := getattr(point, title.lower()):
            table = simple_table(f"{title} ({len(values)})", "Value", columns="lr")
            for name, value in values.items():
                table.add_row(shortened(name), f"{value:.8g}")
            page.print()
            page.print(table)


def show_filter(kalman: Any, page: Page) -> None:  # of the room beside this one
    """Print how well each coordinate is known after a measurement, and what the filter takes from which one."""
    names = kalman.linear.outputs.names
    print_fact(page, "Kalman filter", [f"every {kalman.sampled.sample_time:g} s", f"of {kalman.linear.model.name}"])
    print_fact(page, "Measured", [shortened(name) for name in names[:NAMES]])
    page.print()
    shown = names[:FILTERED]
    heads = ("Coordinate", "Unit", "std", *(f"gain of {shortened(name)}" for name in shown))
    table = simple_table(*heads, columns="ll" + "r" * (1 + len(shown)))
    deviations = np.sqrt(np.diag(kalman.covariance))
    for signal, deviation, gains in zip(kalman.sampled.states, deviations, kalman.gain, strict=True):
        table.add_row(shortened(signal.name), signal.unit, *(f"{v:.4g}" for v in (deviation, *gains[: len(shown)])))
    page.print(table)


LINES = 40  # points shown; what lies between is left out

EVENTS = 8

REASONS = 3  # why points failed

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")

ROWS, NAMES = 24, 8  # points and names shown by :func:`show_family`
FILTERED = 4  # measurements whose gains :func:`show_filter` has columns for


def print_family(family: LinearFamily, stream: TextIO) -> None:
    """Print the order, the coordinates, the rightmost eigenvalue of every point, and where modes meet."""
    good = int(family.ok.sum())
    names = ", ".join(family.states.names[:8]) + (", ..." if len(family.states) > 8 else "")
    stream.write(
        f"{family.template.model.name or 'sweep'}: {good} of {len(family)} points, order {family.template.order} "
        f"({names or 'no coordinates'})\n"
    )
    if family.switches:
        stream.write("The coordinates are not the same at all points.\n")
    if not good:
        return
    stream.write("\n")
    numbers = list(range(len(family)))
    if len(numbers) > LINES:
        numbers = [*numbers[: LINES // 2], -1, *numbers[-LINES // 2 :]]
    tracked = family.eigenvalues.reshape(len(family), -1)
    table = [[*family.axes, "rightmost eigenvalue in 1/s", "accuracy of A"]]
    table += [["..."] * len(table[0]) if k < 0 else _line(family, k, tracked[k]) for k in numbers]
    widths = [max(len(row[c]) for row in table) for c in range(len(table[0]))]
    for row in table:
        stream.write("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() + "\n")
    _print_events(family, stream)


def failures_of(family: LinearFamily) -> str:
    """Say how many points failed, the first of them, and why; reasons that differ in numbers alone count as one."""
    failed = [int(k) for k in (~family.ok.ravel()).nonzero()[0]]
    alike: dict[str, list[str]] = {}
    for k in failed:
        reason = str(family.reasons.flat[k])
        alike.setdefault(_NUMBER.sub("#", reason), []).append(reason)
    shown = sorted(alike.values(), key=len, reverse=True)[:REASONS]
    at = ", ".join(f"{name} = {value:g}" for name, value in family.grid.values(failed[0]).items())
    return f"{len(failed)} of {len(family)} points failed, the first at {at}. " + " ".join(
        f"{len(reasons)} of them{', such as' if len(set(reasons)) > 1 else ''}: {reasons[0]}" for reasons in shown
    )


def show_family(family: LinearFamily, page: Page) -> None:
    """Print a family of any size in few lines, without following modes from point to point."""
    print_fact(page, "Family", [shortened(family.template.model.name) or "sweep"])
    grid = " x ".join(map(str, family.shape)) or "of one point"
    print_fact(page, "Points", [f"{int(family.ok.sum())} of {len(family)} linear models", f"grid {grid}"])
    for word, names in (
        ("Coordinates", family.states.names),
        ("Inputs", family.inputs.names),
        ("Outputs", family.outputs.names),
    ):
        more = [f"and {len(names) - NAMES} more"] if len(names) > NAMES else []
        print_fact(page, word, [*map(shortened, names[:NAMES]), *more] or ["none"])
    if family.switches:
        print_fact(page, "", ["the coordinates are not the same at all points"])
    page.print()
    table = simple_table(*family.axes, "Rightmost eigenvalue [1/s]", "Accuracy of A")
    numbers = list(range(len(family)))
    A = family.A.reshape(len(family), *family.A.shape[-2:])
    for k in numbers[:ROWS]:
        table.add_row(*_line(family, k, np.linalg.eigvals(A[k]) if family.ok.flat[k] else np.empty(0, np.complex128)))
    if len(numbers) > ROWS:
        table.add_row(f"and {len(numbers) - ROWS} more", *[""] * (len(family.axes) + 1))
    page.print(table)


def _line(family: LinearFamily, number: int, w: NDArray[np.complex128]) -> list[str]:
    values = [f"{v:g}" for v in family.grid.values(number).values()]
    if not family.ok.flat[number]:
        return [*values, "failed", ""]
    top = w[np.argmax(w.real)] if len(w) else None
    text = "none" if top is None else eigenvalue_text(complex(top), pair=abs(top.imag) > 1e-9 * abs(top))
    return [*values, text, rough(float(family.layout.part(family.rows, "accuracy")[number, 0]))]


def _print_events(family: LinearFamily, stream: TextIO) -> None:
    events = family.mode_events
    if not events:
        return
    stream.write("\n")
    for event in events[:EVENTS]:
        a, b = (", ".join(f"{n} = {v:g}" for n, v in family.grid.values(k).items()) for k in event.between)
        stream.write(f"{event.kind} of modes {event.modes[0] + 1} and {event.modes[1] + 1} between {a} and {b}\n")
    if len(events) > EVENTS:
        stream.write(f"... and {len(events) - EVENTS} more\n")


def show_mechanism(mechanism: MechanismDescription, page: Page) -> None:
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
    page.print()
    bodies = simple_table(f"Bodies ({len(mechanism.bodies)})", "Mass [kg]", columns="lr")
    for body in mechanism.bodies:
        bodies.add_row(body.name, "" if body.mass is None else f"{body.mass:.8g}")
    page.print(bodies)
    page.print()
    page.print(_links("Joints", [(j.name, j.type, j.parent, j.child) for j in mechanism.joints]))
    if mechanism.loops:
        page.print()
        page.print(_links("Loops", [(p.name, p.type, p.first, p.second) for p in mechanism.loops]))
    for remark in mechanism.remarks:
        print_fact(page, "Note", remark)


def _links(title: str, rows: list[tuple[str, str, str, str]]) -> Table:
    table = simple_table(f"{title} ({len(rows)})", "Type", "From", "To", columns="llll")
    for row in rows:
        table.add_row(*row)
    return table
