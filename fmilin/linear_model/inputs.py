"""Some of the inputs of a linear model, in an order of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import Signals
from fmilin.linear_model.model import LinearModel, relative_error
from fmilin.model.interface import Model, OperatingPoint

__all__ = ["chosen_inputs", "with_inputs", "with_parameters_as_inputs"]


def with_parameters_as_inputs(
    model: Model, point: OperatingPoint, names: Sequence[str]
) -> tuple[Model, OperatingPoint]:
    """Return the model with those of ``names`` as further inputs that are none yet, and the point with their values."""
    further = [name for name in dict.fromkeys(names) if not model.inputs.has(name)]
    if not further or not model.moves_parameters:
        return model, point
    known = len(model.inputs)
    model = model.with_interface([*model.inputs.names, *further])
    if shaping := [model.inputs.names[j] for j in model.constraints.prescribing if j >= known]:
        raise UsageError(
            f"The parameter '{shaping[0]}' stands in a constraint: as an input it would drag the states along, and its "
            "rate would enter the model. Compare linear models at two of its values instead (--set)."
        )
    return model, replace(point, inputs=np.concatenate((point.inputs, model.start.inputs[known:])))


def chosen_inputs(inputs: Signals, names: Sequence[str]) -> list[int]:
    """Return which inputs are wanted, by number."""
    chosen = [inputs.index_of(name, "an input of the model") for name in names]
    if len(set(chosen)) != len(chosen):
        raise UsageError(f"An input is named twice in {', '.join(names)}.")
    return chosen


def with_inputs(linear: LinearModel, chosen: Sequence[int]) -> LinearModel:
    """Return the linear model with some inputs, in the given order; the others stay at their values of the point."""
    columns, E, descriptor = list(chosen), linear.errors, linear.descriptor
    selected = linear.inputs.select(columns)
    B, D = linear.B[:, columns], linear.D[:, columns]
    errors = replace(E, B=E.B[:, columns], D=E.D[:, columns])
    return replace(
        linear,
        B=B,
        D=D,
        T_u=linear.T_u[:, columns],
        inputs=selected,
        errors=errors,
        accuracy=replace(linear.accuracy, B=relative_error(errors.B, B), D=relative_error(errors.D, D)),
        descriptor=descriptor and descriptor.with_interface(selected.names, linear.outputs.names),
    )
