"""Second ways of schedules: the designs of the grid made again, and closed loops from the regulator of a point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.result import Audit, AuditRow, compare, keep_worst
from fmilin.errors import NumericalError
from fmilin.report.numbers import values_text
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDITED_GAIN

if TYPE_CHECKING:
    from fmilin.design.schedule import Schedule
    from fmilin.design.schedule_check import ScheduleReport

MOST_POINTS = 20  # of the grid, and of the report, that are compared: designs may be slow
DECAY = 1e-5  # relative to the fastest motion: multiple eigenvalues scatter by a root of rounding
UNCHECKED = "verdicts.uncertainty and verdicts.measured_decay: estimates from neighbouring points of the grid"


def audit_schedule(schedule: Schedule) -> Audit:
    """Return the audit of a schedule: its values at points of the grid, and the decay of its loops."""
    rows = [*_compare_designs(schedule), *_compare_decays(schedule, schedule.report)]
    unchecked = [UNCHECKED]
    if schedule.redesign is None:
        unchecked.insert(
            0,
            "gains against their design: this schedule has lost its rule (a file or a copy)",
        )
    name = schedule.family.template.model.name
    return Audit("schedule", name, tuple(rows), tuple(unchecked))


def audit_schedule_report(report: ScheduleReport) -> Audit:
    """Return the audit of a report, whose numbers are compared with those of its schedule."""
    text = "points and verdicts: a report does not hold its schedule, whose audit compares them"
    return Audit("report of a schedule", ", ".join(report.over), (), (text,))


def _compare_designs(schedule: Schedule) -> Iterator[AuditRow]:
    """Compare what the schedule looks up at points of its grid with the design of that point, made again."""
    if schedule.redesign is None:
        return
    table = schedule.table
    rows: dict[str, list[AuditRow]] = {}
    numbers = np.flatnonzero(table.good)
    step = -(-len(numbers) // MOST_POINTS)
    for number in numbers[::step].tolist():
        values = table.grid.values(number)
        location = values_text(values)
        designed = schedule.redesign(number)
        if isinstance(designed, str):
            raise NumericalError(f"The rule gives nothing at {location} any more: {designed}")
        stated = schedule.parts.of(table.row(np.array([values[name] for name in schedule.over])))
        for name, second in schedule.parts.of(designed).items():
            if name == ("m0" if schedule.estimates else "y0"):
                second = _move_by_turns(second, stated[name], schedule.measured.turns)  # noqa: PLW2901
            size = AUDITED_GAIN * max(float(np.abs(second).max(initial=0.0)), 1e-12)
            rows.setdefault(name, []).extend(
                compare(f"{name}{list(index)} at {location}", float(stated[name][index]), float(second[index]),
                        "the design of that point made again", size)
                for index in np.ndindex(second.shape)
            )  # fmt: skip
    for comparisons in rows.values():
        yield from keep_worst(comparisons)


def _move_by_turns(values: FloatArray, near: FloatArray, turns: FloatArray) -> FloatArray:
    """Return values of angles by whole turns nearest to others: the schedule goes on beyond half a turn."""
    whole = np.where(turns > 0, turns, 1.0)
    return np.asarray(values + np.where(turns > 0, np.round((near - values) / whole) * turns, 0.0))


def _compare_decays(schedule: Schedule, report: ScheduleReport) -> Iterator[AuditRow]:
    """Compare stated decays with the loop that the linear model of the regulator closes around the plant."""
    step = -(-len(report.points) // MOST_POINTS)
    comparisons = []
    for at, verdict in list(zip(report.points, report.verdicts, strict=True))[::step]:
        location = values_text(dict(zip(report.over, at.tolist(), strict=True)))
        second, fastest = _compute_decay(schedule, at)
        quantity = f"verdicts.decay at {location}"
        way = "regulator of the point around the plant"
        comparisons.append(compare(quantity, verdict.decay, second, way, DECAY * fastest))
    yield from keep_worst(comparisons)


def _compute_decay(schedule: Schedule, at: FloatArray) -> tuple[float, float]:
    """Return the decay of the slowest motion of the loop at a point, and the rate of the fastest one, in 1/s."""
    part = schedule.parts.of(schedule.table.row(at))
    law = schedule.linear_model(at)
    A, B = part["A"], part["B"]
    C = part["C"] if schedule.estimates else np.eye(len(A))
    closed = np.block([[A + B @ law.D @ C, B @ law.C], [law.B @ C, law.A]])
    values = np.linalg.eigvals(closed).astype(np.complex128)
    if not schedule.sample_time:
        return float(-values.real.max()), float(np.abs(values).max())
    with np.errstate(divide="ignore"):
        decays = -np.log(np.abs(values)) / schedule.sample_time
    return float(decays.min()), 1 / schedule.sample_time
