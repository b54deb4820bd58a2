"""A gain schedule as C99 or an FMU: tables over the scheduling variables, and the regulator they make at a step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.fmi.write.fmu import NAME, block_fmu
from fmilin.ground.errors import UsageError
from fmilin.ground.files import write_atomically
from fmilin.ground.signals import Signal
from fmilin.numerics.codegen.c_component import ACCUMULATE, CComponent, Constant, Memory, Precision, described, runtime
from fmilin.output.export.c_file import limit_statements, limits_of
from fmilin.output.formats import alternatives, suffixes


def save_schedule(
    schedule: Any, path: str | Path, limits: Mapping[str, tuple[float, float]], precision: Precision, fmi: str
) -> None:
    """Write a schedule of the room beside this one."""
    path = Path(path)
    if path.suffix.lower() not in suffixes("schedule"):
        raise UsageError(
            f"Cannot write '{path}' as a schedule: known are {alternatives('schedule', 'and')}. At one point it is a "
            "linear model, which has more formats: schedule.linear_model({...}).save(...)."
        )
    if path.suffix.lower() == ".fmu":
        write_atomically(path, dumps_fmu(schedule, path, limits, precision, fmi))
    else:
        write_atomically(path, component(schedule, path.stem, limits, precision).text().encode("ascii"))


def dumps_fmu(
    schedule: Any, path: Path, limits: Mapping[str, tuple[float, float]], precision: Precision, fmi: str
) -> bytes:
    """Return the content of an FMU around the C code, its inputs those of the first point of the grid."""
    first = schedule.linear_model(schedule.table.first)
    over = [Signal(name, start=float(v)) for name, v in zip(schedule.over, schedule.table.first, strict=True)]
    inputs = [*over, *(s.starting_at(first.point.inputs[s.name]) for s in first.inputs)]
    made = component(schedule, NAME, limits, precision)
    return block_fmu(made, inputs, list(first.outputs), path, fmi_version=fmi)


def component(schedule: Any, name: str, limits: Mapping[str, tuple[float, float]], precision: Precision) -> CComponent:
    """Return the parts of the file."""
    table, parts = schedule.table, schedule.parts
    P, k, m, n = len(schedule.states), len(schedule.drives), len(schedule.measured), len(schedule.over)
    width = sum(int(np.prod(s)) for s in parts.shapes.values()) if schedule.estimates else parts.start("A")
    order = table.numbers
    rows = np.where(table.good[order, None], table.rows[order, :width], 0.0)
    bounds = limits_of(schedule.linear_model(table.first), limits, np.zeros((0, k))) if limits else None
    offsets = {name: parts.start(name) for name in parts.shapes}
    remembers = schedule.estimates or schedule.form == "velocity"
    kept = "what is predicted for the next step" if schedule.estimates else "what was read at the last step"
    memory = [
        Memory("at", table.first, [f"{name}, the last inside the range" for name in schedule.over]),
        Memory("outside", np.zeros(1), ["the steps outside the range or in a hole, which took the values of at"]),
    ]
    if remembers:
        memory += [Memory("y", np.zeros(P), [f"{described(s)}: {kept}" for s in schedule.states])]
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
    limiting = limit_statements(k, told=False) if bounds is not None else ""
    return CComponent(
        name=name,
        about=[
            f"gain schedule over {', '.join(schedule.over)}, linear between {int(table.good.sum())} points, for "
            f"{P} independent coordinates of {schedule.family.template.model.name or 'a model'}.",
            "Outside the range, and in holes of the grid, it goes on with the nearest or the last values inside, and "
            "counts such steps in outside.",
        ],
        inputs=[*schedule.over, *(described(s) for s in schedule.measured)],
        outputs=[described(schedule.family.inputs[schedule.family.inputs.index_of(d)]) for d in schedule.drives],
        memory=memory,
        constants=constants,
        step=runtime(f"schedule_{form}.c").replace("/* limits */\n", limiting),
        functions=(ACCUMULATE, lengths, runtime("schedule.c")),
        sizes=counts | {f"AT_{name}": start for name, start in offsets.items()},
        operations=products + 2 * (2**n * (width + n + 1) + sum(sizes)) + 12 * n + 6 * (P + k + m) + 2**n * 2 * width,
        sample_time=schedule.sample_time,
        locals=width + 2**n * 2 + 2 * n + 3 * P + k + m,
        calls=512,
        code=2048,
        precision=precision,
    )  # fmt: skip
