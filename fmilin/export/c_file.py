"""A linear model, a filter, a regulator or a gain schedule as C99, or as an FMU around it.

out = g0 + C x + D (in - u0), x := f0 + A x + B (in - u0) + F (limited out - out), where x is the deviation from the
operating point (numbers near zero keep their digits in single precision, too) and F tells the states of a regulator
what its actuators really do (anti-windup).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from fmilin.codegen.c_component import (
    ACCUMULATE,
    CComponent,
    Constant,
    Memory,
    Precision,
    describe,
    loop,
    operations,
    product,
    runtime,
)
from fmilin.errors import UnknownNameError, UsageError
from fmilin.export.files import save
from fmilin.export.fmu_file import embed_linear_model
from fmilin.export.linear_record import require_writable
from fmilin.fmi.write.linear_model_fmu import collect_values
from fmilin.fmi.write.symbolic_fmu import NAME, block_fmu
from fmilin.formats import Writing, alternatives, matches_suffix, require_codec
from fmilin.linear_model.measured_angles import MeasuredAngles, describe_wrapped
from fmilin.linear_model.model import LinearModel
from fmilin.reduction.transformation import discretize
from fmilin.signals import FloatArray, Signal, limits_by_name
from fmilin.support.files import write_atomically

if TYPE_CHECKING:
    from fmilin.design.laws import Savable
    from fmilin.design.schedule import Schedule

SAMPLES = 20  # in the time in which the fastest motion turns by one radian or decays to a third, where none are given
Bounds = Mapping[str, tuple[float, float]]  # the least and the largest value of outputs, by name
_SAMPLE_TIME_DIGITS = (1.0, 2.0, 5.0)  # digits of sample times that are chosen here


@dataclass(frozen=True)
class OutputLimits:
    """The limits of a regulator's outputs, and their feedback."""

    lower: FloatArray  # shape (ny,)
    upper: FloatArray
    back: FloatArray  # F, shape (P, ny)


def convert_limits(linear: LinearModel, limits: Bounds, back: FloatArray) -> OutputLimits:
    """Return limits of outputs, by name and in absolute values, as arrays; reject values that are not limits."""
    largest = float(np.finfo(np.float32).max)  # stands for infinity, in both precisions
    lower, upper = np.full(len(linear.outputs), -largest), np.full(len(linear.outputs), largest)
    for name, (least, most) in limits_by_name(limits).items():
        if not linear.outputs.has(name):
            raise UnknownNameError.among(name, linear.outputs.names, "an input that the regulator drives")
        k = linear.outputs.index_of(name)
        lower[k], upper[k] = max(least, -largest), min(most, largest)
    return OutputLimits(lower, upper, back)


def dumps(linear: LinearModel, writing: Writing, limits: OutputLimits | None = None) -> bytes:
    """Return the file's content; a continuous model is sampled first, its inputs held."""
    require_writable(linear)  # before eigenvalues, which choose the sample time and which NaN has none of
    return component(linear, writing, limits).text().encode("ascii")


def save_law(
    law: Savable,
    path: str | Path,
    *,
    limits: Bounds | None = None,
    precision: Precision = "double",
    fmi: Literal["2.0", "3.0"] = "2.0",
) -> None:
    """Write a filter or a regulator in the format of the suffix."""
    linear = law.linear_model()
    suffix = require_codec(path, "linear model").suffix
    bounds = convert_limits(linear, limits, law.compute_limit_response()) if limits else None
    angles = law.find_measured_angles()
    if suffix == ".fmu" and (bounds or angles):
        made = component(linear, Writing(NAME, precision=precision), bounds, angles)
        inputs = [signal.with_start(linear.point.inputs[signal.name]) for signal in linear.inputs]
        further = {} if bounds else embed_linear_model(linear)
        outputs = list(linear.outputs)
        write_atomically(path, block_fmu(made, inputs, outputs, Path(path), fmi_version=fmi, further=further))
        return
    if suffix != ".c":
        if limits:
            raise UsageError(f"'{path}' has no output limits: leave them out, or write a .c or .fmu file.")
        save(linear, path, Writing(embedded=True, fmi=fmi), precision=precision)
        return
    writing = Writing(Path(path).stem, precision=precision)
    write_atomically(path, component(linear, writing, bounds, angles).text().encode("ascii"))


def component(
    linear: LinearModel, writing: Writing, limits: OutputLimits | None = None, angles: MeasuredAngles | None = None
) -> CComponent:
    """Return the parts of the file; ``angles`` are the inputs of a sampled law that are taken modulo their turns."""
    if angles is None and linear.sample_time > 0 and not writing.deviation:
        angles = MeasuredAngles.around_point(linear.inputs, len(linear.A))
    sampled, how = _sample_model(linear, writing.sample_time)
    (P, nu), ny = sampled.B.shape, len(sampled.C)
    zero, at = writing.deviation, sampled.point
    u0, g0 = (
        np.zeros(len(s)) if zero else collect_values(s, values, what, "C code")
        for s, values, what in ((sampled.inputs, at.inputs, "input"), (sampled.outputs, at.outputs, "output"))
    )
    f0 = np.zeros(P) if zero else sampled.f0
    states = [f"{describe(s)}, less {v:.6g}" for s, v in zip(sampled.states, sampled.y0, strict=True)]
    constants = [
        Constant("A", sampled.A, "A, by rows: of the states, for their next values"),
        Constant("B", sampled.B, "B, by rows: of the inputs, for the next values of the states"),
        Constant("C", sampled.C, "C, by rows: of the states, for the outputs"),
        Constant("D", sampled.D, "D, by rows: of the inputs, for the outputs"),
        Constant("f0", f0, "the change of the states in a sample at the operating point"),
        Constant("u0", u0, "the inputs at the operating point"),
        Constant("g0", g0, "the outputs at the operating point"),
    ]
    if limits is not None:
        constants += [
            Constant("lower", limits.lower, "the least outputs"),
            Constant("upper", limits.upper, "the largest outputs"),
            Constant(
                "F", limits.back, "the reduction of the outputs by their limits, for the next values of the states"
            ),
        ]
    matrices = [sampled.A, sampled.B, sampled.C, sampled.D, *([] if limits is None else [limits.back])]
    if angles is not None:
        of_states, of_inputs = "of the states, for the angles that it measures", "of the inputs, for these angles"
        constants += [
            Constant("turns", angles.turns, "of measured angles, which are taken modulo these"),
            Constant("expected", angles.offset, "these angles at the operating point, less their values there"),
            Constant("of_states", angles.of_states, f"by rows: {of_states}"),
            Constant("of_inputs", angles.of_inputs, f"by rows: {of_inputs}"),
        ]
        matrices += [angles.of_states, angles.of_inputs]
    wrapped = "" if angles is None else describe_wrapped(sampled.inputs.select(angles.columns))
    return CComponent(
        name=writing.name,
        about=[
            f"linear model of {linear.model.name or 'a model'} in {P} independent coordinates.",
            how,
            *([] if not zero else ["in and out are deviations from the operating point."]),
            *([f"Measured angles are taken modulo a turn: {wrapped}."] if wrapped else []),
            *(str(remark) for remark in sampled.warnings),
        ],
        inputs=[describe(s, v) for s, v in zip(sampled.inputs, u0, strict=True)],
        outputs=[describe(s, v) for s, v in zip(sampled.outputs, g0, strict=True)],
        memory=[Memory("x", np.zeros(P), states)],
        constants=constants,
        step=_step(sampled, limits, angles),
        operations=operations(*matrices)
        + nu
        + (3 * ny if limits is not None else 0)
        + (0 if angles is None else 6 * len(angles.turns)),
        sample_time=sampled.sample_time,
        locals=nu + P + ny + (0 if angles is None else len(angles.turns)),
        precision=writing.precision,
        functions=(ACCUMULATE, *(() if angles is None else (wrap_function(writing.precision),))),
        headers=() if angles is None else ("math.h",),
    )


def wrap_function(precision: Precision) -> str:
    """Return the C function that takes a difference of angles modulo ``turns``."""
    text = runtime("wrap.c")
    return text if precision == "double" else text.replace("ceil(", "ceilf(")


def _sample_model(linear: LinearModel, sample_time: float | None) -> tuple[LinearModel, str]:
    if linear.sample_time > 0:
        if sample_time is not None and sample_time != linear.sample_time:
            raise UsageError(
                f"The linear model is sampled every {linear.sample_time:g} s: it cannot be written for another sample "
                f"time ({sample_time:g} s). Sample the continuous model."
            )
        return linear, f"It is sampled every {linear.sample_time!r} s."
    h = _sample_time(linear) if sample_time is None else sample_time
    chosen = f", chosen for {SAMPLES} samples in the time of its fastest motion" if sample_time is None else ""
    return discretize(linear, h), f"Continuous, and sampled here every {h!r} s{chosen}; inputs are held meanwhile."


def _sample_time(linear: LinearModel) -> float:
    """Return a round sample time for the fastest motion; a hundredth of a second where nothing turns or decays."""
    fastest = float(np.abs(linear.eigenvalues()).max(initial=0.0))
    if fastest == 0.0:
        return 0.01
    sample_time = 1 / (SAMPLES * fastest)
    power = 10.0 ** math.floor(math.log10(sample_time))
    return float(f"{max(d for d in _SAMPLE_TIME_DIGITS if d * power <= sample_time or d == 1.0) * power:.0e}")


def _step(linear: LinearModel, limits: OutputLimits | None, angles: MeasuredAngles | None) -> str:
    (P, nu), ny = linear.B.shape, len(linear.C)
    back_calculates = limits is not None and bool(limits.back.any())
    n_angles = 0 if angles is None else len(angles.turns)
    text = "".join(
        f"    @real {name}[{size}];\n"
        for name, size in (("du", nu), ("next", P), ("taken", ny if back_calculates else 0), ("angles", n_angles))
        if size
    )
    text += "\n" + ("" if P else "    (void)self;\n")
    text += loop(nu, "du[i] = in[i] - @u0[i];") or "    (void)in;\n"
    text += _statements_of_angles(angles) if angles is not None else ""
    text += loop(ny, "out[i] = @g0[i];") or "    (void)out;\n"
    text += product("C", linear.C, "self->x", "out") + product("D", linear.D, "du", "out")
    text += limit_statements(ny, back_calculates=back_calculates) if limits is not None and ny else ""
    text += loop(P, "next[i] = @f0[i];")
    text += product("A", linear.A, "self->x", "next") + product("B", linear.B, "du", "next")
    text += product("F", limits.back, "taken", "next") if limits is not None else ""
    return text + loop(P, "self->x[i] = next[i];")


def _statements_of_angles(angles: MeasuredAngles) -> str:
    """Return what takes the difference of each measured angle and its prediction into (-turn/2, turn/2]."""
    text = loop(len(angles.turns), "angles[i] = @expected[i];")
    text += product("of_states", angles.of_states, "self->x", "angles")
    text += product("of_inputs", angles.of_inputs, "du", "angles")
    for i, column in enumerate(angles.columns):
        text += f"    du[{column}] = angles[{i}] + @wrap(du[{column}] - angles[{i}], {i});\n"
    return text


def limit_statements(ny: int, *, back_calculates: bool) -> str:
    """Return C code that keeps ``out`` in its limits, and stores the excess where the states need it."""
    wish = "        const @real asked = out[i];\n\n" if back_calculates else ""
    taken = "        taken[i] = out[i] - asked;\n" if back_calculates else ""
    return (
        f"    for (int i = 0; i < {ny}; i++) {{\n{wish}"
        "        if (out[i] < @lower[i]) {\n            out[i] = @lower[i];\n        }\n"
        "        if (out[i] > @upper[i]) {\n            out[i] = @upper[i];\n        }\n"
        f"{taken}    }}\n"
    )


# Deviations of measured angles modulo their turns: of coordinates, which are subtracted, and of innovations.
_WRAPPED = (
    "    for (int i = 0; i < @P; i++) {\n        e[i] = -@wrap(-e[i], i);\n    }\n",
    "    for (int i = 0; i < @M; i++) {\n        innovation[i] = @wrap(innovation[i], i);\n    }\n",
)


@dataclass(frozen=True)
class LimitedSchedule:
    """A schedule with limits of its outputs, by name and in absolute values."""

    schedule: Schedule
    limits: Bounds


def save_schedule(
    schedule: Schedule,
    path: str | Path,
    *,
    limits: Bounds | None = None,
    precision: Precision = "double",
    fmi: Literal["2.0", "3.0"] = "2.0",
) -> None:
    """Write a schedule as C code, or as an FMU around it."""
    if not matches_suffix(path, "schedule"):
        raise UsageError(
            f"Cannot write '{path}' as a schedule: known are {alternatives('schedule', 'and')}. At one point it is a "
            "linear model, which has more formats: schedule.linear_model({...}).save(...)."
        )
    target = Path(path)
    writing = Writing(target.stem, precision=precision, fmi=fmi)
    require_codec(target, "schedule").write(LimitedSchedule(schedule, limits or {}), target, writing)


def dumps_schedule(limited: LimitedSchedule, writing: Writing) -> bytes:
    """Return the content of a .c file."""
    component = schedule_component(limited.schedule, writing.name, limited.limits, writing.precision)
    return component.text().encode("ascii")


def dumps_schedule_fmu(limited: LimitedSchedule, writing: Writing) -> bytes:
    """Return the content of an FMU around the C code, its inputs those of the first point of the grid."""
    schedule = limited.schedule
    first = schedule.linear_model(schedule.table.first)
    over = [Signal(name, start=float(v)) for name, v in zip(schedule.over, schedule.table.first, strict=True)]
    inputs = [*over, *(s.with_start(first.point.inputs[s.name]) for s in first.inputs)]
    made = schedule_component(schedule, NAME, limited.limits, writing.precision)
    return block_fmu(made, inputs, list(first.outputs), f"{writing.name}.fmu", fmi_version=writing.fmi)


def schedule_component(
    schedule: Schedule, name: str, limits: Mapping[str, tuple[float, float]], precision: Precision
) -> CComponent:
    """Return the parts of the file."""
    table, parts = schedule.table, schedule.parts
    P, k, m, n = len(schedule.states), len(schedule.drives), len(schedule.measured), len(schedule.over)
    width = sum(int(np.prod(s)) for s in parts.shapes.values()) if schedule.estimates else parts.start("A")
    order = table.numbers
    rows = np.where(table.good[order, None], table.rows[order, :width], 0.0)
    bounds = convert_limits(schedule.linear_model(table.first), limits, np.zeros((0, k))) if limits else None
    offsets = {name: parts.start(name) for name in parts.shapes}
    remembers = schedule.estimates or schedule.form == "velocity"
    memory_description = (
        "the prediction for the next step" if schedule.estimates else "the measurements of the last step"
    )
    memory = [
        Memory("at", table.first, [f"{name}, the last inside the range" for name in schedule.over]),
        Memory("outside", np.zeros(1), ["the steps outside the range or in a hole, which used the values at"]),
    ]
    if remembers:
        memory += [Memory("y", np.zeros(P), [f"{describe(s)}: {memory_description}" for s in schedule.states])]
        memory += [Memory("begun", np.zeros(1), ["1 after the first step"])]
    if schedule.form == "velocity":
        memory += [Memory("u", np.zeros(k), [f"{name}: at the last step" for name in schedule.drives])]
    sizes = [len(axis) for axis in table.axes]
    lengths = f"static const int @sizes[{n}] = {{{', '.join(map(str, sizes))}}};"
    constants = [
        Constant("axes", np.concatenate(table.axes), f"values of {', '.join(schedule.over)}"),
        Constant("good", table.good[order].astype(np.float64), "1 where the grid has a point, 0 in its holes"),
        Constant("rows", rows, f"of each point of the grid: {', '.join(n for n in offsets if offsets[n] < width)}"),
    ]
    if bounds is not None:
        constants += [Constant("lower", bounds.lower, "the least outputs")]
        constants += [Constant("upper", bounds.upper, "the largest outputs")]
    products = sum(2 * int(np.prod(s)) for name, s in parts.shapes.items() if len(s) == 2 and offsets[name] < width)
    counts = {"N": n, "CORNERS": 2**n, "WIDTH": width, "P": P, "K": k, "M": m}
    form = "estimate" if schedule.estimates else schedule.form
    limiting = limit_statements(k, back_calculates=False) if bounds is not None else ""
    turns = schedule.measured.turns
    wraps = bool(turns.any())
    if wraps:
        constants.append(Constant("turns", turns, "of what is measured, by which angles wrap; 0 for the rest"))
    wrapping = _WRAPPED[form == "estimate"] if wraps else ""
    return CComponent(
        name=name,
        about=[
            f"gain schedule over {', '.join(schedule.over)}, linear between {int(table.good.sum())} points, for "
            f"{P} independent coordinates of {schedule.family.template.model.name or 'a model'}.",
            "Outside the range, and in holes of the grid, it goes on with the nearest or the last values inside, and "
            "counts such steps in outside.",
        ],
        inputs=[*schedule.over, *(describe(s) for s in schedule.measured)],
        outputs=[describe(schedule.family.inputs[schedule.family.inputs.index_of(d)]) for d in schedule.drives],
        memory=memory,
        constants=constants,
        step=runtime(f"schedule_{form}.c").replace("/* limits */\n", limiting).replace("/* angles */\n", wrapping),
        functions=(
            ACCUMULATE, lengths, runtime("schedule.c"), *((wrap_function(precision),) if wraps else ())
        ),
        headers=("math.h",) if wraps else (),
        sizes=counts | {f"AT_{name}": start for name, start in offsets.items()},
        operations=products + 2 * (2**n * (width + n + 1) + sum(sizes)) + 12 * n + 6 * (P + k + m) + 2**n * 2 * width,
        sample_time=schedule.sample_time,
        locals=width + 2**n * 2 + 2 * n + 3 * P + k + m,
        calls=512,
        code=2048,
        precision=precision,
    )  # fmt: skip
