"""What is read of a point by name: a state, an input, a parameter, ``der(state)``, an output or another variable.

Targets, bounds and preferences are about readings; their slopes are rows of A, B, C and D, or measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from fmilin.ground.signals import FloatArray, rate_unit
from fmilin.points.request import is_quantity, quantity, rate_of

if TYPE_CHECKING:
    from fmilin.model.interface import Evaluation, Model

ReadingKind = Literal["state", "input", "parameter", "rate", "output"]


@dataclass(frozen=True)
class Reading:
    """One number of a point, and the value that it should have."""

    name: str
    kind: ReadingKind
    index: int  # among its kind; parameters have no order
    unit: str
    size: float  # nominal, else the larger of 1 and of what it should be
    value: float = 0.0


def model_that_shows(model: Model, names: Sequence[str]) -> Model:
    """Return the model with an interface that has all ``names`` that are no state, input, parameter or rate."""
    missing = [name for name in names if _kind(model, name)[0] == "output" and not model.outputs.has(name)]
    return model.with_interface(outputs=[*model.outputs.names, *missing]) if missing else model


def reading(model: Model, name: str, value: float = 0.0) -> Reading:
    """Return what ``name`` means in a model that shows it."""
    kind, index = _kind(model, name)
    if kind == "parameter":
        return Reading(name, kind, 0, "", max(abs(value), 1.0), value)
    if kind == "rate":
        signal = model.states[index]
        size = model.states.scales()[index]
        return Reading(name, kind, index, rate_unit(signal.unit), float(size), value)
    signals = {"state": model.states, "input": model.inputs, "output": model.outputs}[kind]
    some = signals.select([index])
    return Reading(name, kind, index, some[0].unit, float(some.scales(np.array([value]))[0]), value)


def _kind(model: Model, name: str) -> tuple[ReadingKind, int]:
    if is_quantity(model, name):
        return quantity(model, name)
    if (state := rate_of(model, name)) is not None:
        return "rate", model.states.positions[state]
    return "output", model.outputs.positions[name] if model.outputs.has(name) else -1


def reading_values(
    readings: Sequence[Reading], x: FloatArray, u: FloatArray, parameters: Mapping[str, float], answer: Evaluation
) -> FloatArray:
    """Return the numbers that are read, shape (k,), at a point where the model says ``answer``."""
    sources = {"state": x, "input": u, "rate": answer.derivatives, "output": answer.outputs}
    values = [parameters[r.name] if r.kind == "parameter" else sources[r.kind][r.index] for r in readings]
    return np.array(values, dtype=np.float64)


def reading_slopes(
    readings: Sequence[Reading], dx: FloatArray, du: FloatArray, rates: FloatArray, outputs: FloatArray
) -> FloatArray:
    """Return their slopes along the columns of dx (N, c) and du (nu, c), shape (k, c)."""
    sources = {"state": dx, "input": du, "rate": rates, "output": outputs}
    rows = [np.zeros(dx.shape[1]) if r.kind == "parameter" else sources[r.kind][r.index] for r in readings]
    return np.array(rows).reshape(len(readings), dx.shape[1])
