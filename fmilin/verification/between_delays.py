"""A linear model with delays and its nonlinear model, both cut open at the delays.

Signals behind delays become inputs, and what is delayed outputs. A delay itself is exact in both: a linear model is
right if its matrices between the delays are, and its delays are those of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.linear_model.builder import with_inputs
from fmilin.linear_model.delay_channels import name_ends
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.model.capabilities import CutDelays, HasDelays, delay_wires
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import EPS

DELAY_AGREEMENT_TOLERANCE = 8.0 * EPS
"""Relative difference of a delay in the linear model and in the nonlinear one: both are computed from parameters."""

COMPARED_BETWEEN_DELAYS = Remark(
    "method",
    "The models were compared between their delays: delayed signals were excited like inputs, and the signals before "
    "the delays are outputs of the comparison.",
)


def cut_open(model: Model, linear: DelayedLinearModel) -> tuple[Model, LinearModel]:
    """Return the nonlinear and the linear model between the delays. UsageError where their delays differ."""
    if not isinstance(model, HasDelays):
        model, _ = delay_wires(model, linear.delays)
    cut: CutDelays | None = None
    model_delays: dict[str, float] = {}
    if isinstance(model, HasDelays):
        cut = model.cut_delays(_find_point(model.without_delays(), linear))
        model_delays = dict(zip(cut.channels, cut.seconds, strict=True))
    shared = set() if cut is None else set(cut.shared_inputs)
    core = linear.core
    for channel, seconds in linear.delays.items():
        model_seconds = model_delays.get(channel)
        if model_seconds is not None and abs(model_seconds - seconds) > DELAY_AGREEMENT_TOLERANCE * model_seconds:
            raise UsageError(
                f"The delay of '{channel}' is {seconds:g} s in the linear model and {model_seconds:g} s in the model: "
                "linearize the model with these parameters again."
            )
        if model_seconds is None:
            core = _connect(core, channel)
        elif channel in shared:
            core = _drop_output(core, core.outputs.index_of(name_ends(channel)[1]))
    return (model if cut is None else cut.model), core


def _find_point(model: Model, linear: DelayedLinearModel) -> OperatingPoint:
    """Return the point of a linear model as one of the model; inputs that it does not have are as at the start."""
    at = linear.core.point
    inputs = model.start.inputs.copy()
    for j, name in enumerate(model.inputs.names):
        inputs[j] = at.inputs.get(name, inputs[j])
    states = np.array([at.states[name] for name in model.states.names])
    return OperatingPoint(at.time, states, inputs, dict(at.parameters))


def _connect(core: LinearModel, channel: str) -> LinearModel:
    """Return a core without a delay that was added to an input or to an output: both ends of it are one signal."""
    behind, before = name_ends(channel)
    j, i = core.inputs.index_of(behind), core.outputs.index_of(before)
    passed_input = _find_single_one(core.D[i], core.C[i])
    if passed_input is not None and not core.B[:, passed_input].any():  # the input u goes to the delay alone
        name = core.inputs[passed_input].name
        core = _drop_output(core, i)
        core = _rename_input(core, j, name)
        return with_inputs(core, [k for k in range(len(core.inputs)) if k != passed_input])
    for row in range(len(core.outputs)):  # the output y is what comes out of the delay
        if row != i and _find_single_one(core.D[row], core.C[row]) == j:
            core = _take_place(core, i, row)
            return with_inputs(core, [k for k in range(len(core.inputs)) if k != j])
    raise UsageError(
        f"The delay of '{channel}' is neither before an input nor behind an output, and the model does not have it: "
        "verify the linear model that fl.linearize returns for this model."
    )


def _find_single_one(row: FloatArray, row_of_states: FloatArray) -> int | None:
    """Return the number of the only entry of a row of D, where that is 1 and the row of C is zero; else None."""
    (nonzeros,) = np.nonzero(row)
    is_copy = len(nonzeros) == 1 and row[nonzeros[0]] == 1.0 and not row_of_states.any()
    return int(nonzeros[0]) if is_copy else None


def _drop_output(core: LinearModel, i: int) -> LinearModel:
    return _select_outputs(core, [row for row in range(len(core.outputs)) if row != i])


def _select_outputs(core: LinearModel, rows: Sequence[int]) -> LinearModel:
    numbers = list(rows)
    errors = replace(core.errors, C=core.errors.C[numbers], D=core.errors.D[numbers])
    return replace(core, C=core.C[numbers], D=core.D[numbers], errors=errors, outputs=core.outputs.select(numbers))


def _take_place(core: LinearModel, before: int, after: int) -> LinearModel:
    """Return a core in which the row before a delay stands in the place of the one behind it, with its name."""
    rows = [before if row == after else row for row in range(len(core.outputs)) if row != before]
    selected = _select_outputs(core, rows)
    name, value = core.outputs[after].name, core.point.outputs[core.outputs[before].name]
    signals = [core.outputs[after] if row == before else core.outputs[row] for row in rows]
    point = replace(core.point, outputs={**core.point.outputs, name: value})
    return replace(selected, outputs=Signals(signals), point=point)


def _rename_input(core: LinearModel, j: int, name: str) -> LinearModel:
    """Return a core in which an input has the name of another one, which no longer has it."""
    old = core.inputs[j].name
    signals = [
        replace(signal, name=name, aliases=())
        if k == j
        else replace(signal, name=f"{signal.name} before", aliases=())
        if signal.name == name
        else signal
        for k, signal in enumerate(core.inputs)
    ]
    values = {**core.point.inputs, f"{name} before": core.point.inputs[name], name: core.point.inputs[old]}
    return replace(core, inputs=Signals(signals), point=replace(core.point, inputs=values))
