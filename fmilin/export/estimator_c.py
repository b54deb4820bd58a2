"""A Kalman filter on a model of equations as a C99 file, or as an FMU around the same code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from fmilin.codegen.c_component import CComponent, Memory, Precision, describe
from fmilin.design.estimation.estimator import make_plan
from fmilin.design.estimation.filter_code import NAMES, assemble, count_locals, count_operations
from fmilin.fmi.write.symbolic_fmu import NAME, block_fmu
from fmilin.formats import Writing, require_codec
from fmilin.linear_model.measured_angles import describe_wrapped
from fmilin.signals import Signal

if TYPE_CHECKING:
    from fmilin.design.estimation.estimator import Estimator


def save(
    kf: Estimator, path: str | Path, *, precision: Precision = "double", fmi: Literal["2.0", "3.0"] = "2.0"
) -> None:
    """Write an estimator as C code, or as an FMU around it."""
    target = Path(path)
    require_codec(target, "estimator").write(kf, target, Writing(target.stem, precision=precision, fmi=fmi))


def dumps(kf: Estimator, writing: Writing) -> bytes:
    """Return the content of a .c file for an estimator."""
    return component(kf, writing.name, writing.precision).text().encode("ascii")


def dumps_fmu(kf: Estimator, writing: Writing) -> bytes:
    """Return the content of an FMU around the C code."""
    made, model, start = component(kf, NAME, writing.precision), kf.model, kf.start
    measured = model.evaluate(start.time, start.x[: len(model.states)], kf.settings.inputs).outputs
    inputs = [s.with_start(v) for s, v in zip(model.inputs, kf.settings.inputs, strict=True)]
    for s, value in zip(model.outputs, measured, strict=True):
        name = f"measured.{s.name}" if model.inputs.has(s.name) else s.name
        inputs.append(replace(s, name=name, start=value if np.isfinite(value) else 0.0))
    further = [Signal("nis", description=made.outputs[-2]), Signal("failed", description="1 where a step failed")]
    outputs = [*model.states, *further]
    return block_fmu(made, inputs, outputs, f"{writing.name}.fmu", fmi_version=writing.fmi, start_time=start.time)


def component(kf: Estimator, name: str, precision: Precision) -> CComponent:
    """Return the parts of a file that is a filter by itself."""
    start = kf.start
    parts = assemble(make_plan(kf), precision, in_process=False)
    N, P, RENEWED = (int(parts.sizes[key]) for key in ("N", "P", "RENEWED"))
    measured = kf.model.outputs.with_turns([turn or None for turn in kf.turns.tolist()])
    outputs, inputs, states = kf.model.outputs, kf.model.inputs, kf.model.states
    chart = [*kf.chart.coordinates, *kf.chart.dependent, *kf.chart.rows]
    wraps = bool(kf.turns.any())
    return CComponent(
        name=name,
        about=[
            f"{NAMES[kf.kind]} on {kf.model.info.name}: {P - RENEWED} independent coordinates of {N - RENEWED} states, "
            "in square roots.",
            "in holds the inputs over the sample that ends, then what is measured at its end, or NAN. "
            "out[failed] is 1 where a step could not be computed: the estimate before it stays.",
            *([f"Innovations are taken modulo a turn: {describe_wrapped(measured)}."] if wraps else []),
        ],
        inputs=[*(describe(s) for s in inputs), *(describe(s) for s in outputs)],
        outputs=[*(describe(s) for s in states), "normalized innovation squared", "failed"],
        memory=[
            Memory("x", start.x, [f"estimate of {describe(s)}" for s in kf.settings.model.states]),
            Memory("S", start.S.ravel(), ["factor of the covariance S S', by rows"]),
            Memory(
                "chart", np.array(chart, dtype=np.float64), ["states: coordinates, others; then rows that give these"]
            ),
            Memory("t", np.array([start.time]), ["time in s"]),
        ],
        constants=parts.tables,
        step=parts.step,
        operations=count_operations(parts.quantities, parts.sizes),
        sample_time=kf.sample_time,
        functions=parts.functions,
        locals=count_locals(parts.quantities, parts.sizes),
        calls=2048,
        code=1024 * (16 + sum(p.instructions + p.entries for p in parts.quantities) // 20),
        precision=precision,
        headers=("math.h",),
    )
