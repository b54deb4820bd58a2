"""Builds every linear model from numbers: coordinates at a point, derivatives along them, and the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.linear_model.model import (
    Accuracy,
    EntryErrors,
    LinearizationMethod,
    LinearizationPoint,
    LinearModel,
    relative_error,
)
from fmilin.linear_model.sparse import is_sparse
from fmilin.model.interface import Model, ModelInfo, OperatingPoint
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS


class Named(NamedTuple):
    """The linearized object where it is not a :class:`~fmilin.Model`."""

    info: ModelInfo
    inputs: Signals
    outputs: Signals


@dataclass(frozen=True, eq=False)
class IndependentCoordinates:
    """P coordinates y at a point of N states, ``x - x0 = T (y - y0) + T_u (u - u0)``."""

    # states, full_states: the P coordinates, and all N states
    states: Signals
    full_states: Signals
    y0: FloatArray  # shape (P,)
    T: FloatArray  # shape (N, P)
    T_error: FloatArray  # shape (N, P)
    kind: str  # as in :class:`~fmilin.linear_model.model.LinearizationMethod`
    condition_number: float = 1.0
    residual: float = 0.0
    T_u: FloatArray | None = None  # (N, nu), None: zeros


@dataclass(frozen=True, eq=False)
class LinearMatrices:
    """A, B, C, D and f0 in those coordinates, with the estimated absolute errors of their entries."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    f0: FloatArray
    A_error: FloatArray
    B_error: FloatArray
    C_error: FloatArray
    D_error: FloatArray

    @classmethod
    def with_relative_error(
        cls, relative: float, matrices: tuple[FloatArray, FloatArray, FloatArray, FloatArray], f0: FloatArray
    ) -> LinearMatrices:
        """Return derivatives A, B, C, D of which every entry has the same relative error."""
        return cls(*matrices, f0, *(relative * np.abs(matrix) for matrix in matrices))


def build_matrices(
    interface: Model | Named,
    coordinates: IndependentCoordinates,
    slopes: LinearMatrices,
    point: LinearizationPoint,
    method: tuple[str, int, int],
    remarks: Sequence[Remark] = (),
    *,
    sample_time: float = 0.0,
) -> LinearModel:
    """Return the linear model; ``method``: how derivatives were taken, evaluations to the model, exact products."""
    errors = EntryErrors(slopes.A_error, slopes.B_error, slopes.C_error, slopes.D_error, coordinates.T_error)
    matrices = slopes.A, slopes.B, slopes.C, slopes.D, coordinates.T
    derivatives, evaluations, products = method
    accuracy = Accuracy(
        **dict(zip("ABCDT", relative_errors(errors, matrices), strict=True)),
        f0=EPS if slopes.f0.any() else 0.0,
        constraint_residual=coordinates.residual,
        conditioning=coordinates.condition_number,
    )
    values = dict(zip("ABCDT", matrices, strict=True)) | {"f0": slopes.f0, "y0": coordinates.y0}
    if coordinates.T_u is not None:
        values["T_u"] = coordinates.T_u
    return build_from_arrays(
        interface,
        values,
        (errors, accuracy),
        (coordinates.states, coordinates.full_states),
        point,
        LinearizationMethod(derivatives, coordinates.kind, evaluations, products),
        remarks=remarks,
        sample_time=sample_time,
    )


def build_from_arrays(
    interface: Model | Named,
    values: Mapping[str, FloatArray],
    certainty: tuple[EntryErrors, Accuracy],
    signals: tuple[Signals, Signals],
    point: LinearizationPoint,
    method: LinearizationMethod,
    *,
    remarks: Sequence[Remark] = (),
    sample_time: float = 0.0,
) -> LinearModel:
    """Return the linear model of A, B, C, D, T, f0, y0, and T_u where inputs prescribe a motion, by name.

    ``certainty`` is how far its entries may be off, and ``signals`` are its coordinates and all states.
    """
    states, full_states = signals
    errors, accuracy = certainty
    T_u = values.get("T_u")
    return LinearModel(
        values["A"],
        values["B"],
        values["C"],
        values["D"],
        values["T"],
        f0=values["f0"],
        states=states,
        full_states=full_states,
        inputs=interface.inputs,
        outputs=interface.wrapped_outputs if isinstance(interface, Model) else interface.outputs,
        y0=values["y0"],
        point=point,
        accuracy=accuracy,
        method=method,
        model=interface.info,
        warnings=tuple(remarks),
        sample_time=sample_time,
        T_u=np.zeros((len(full_states), len(interface.inputs))) if T_u is None else T_u,
        errors=errors,
    )


def relative_errors(errors: EntryErrors, matrices: Sequence[FloatArray]) -> tuple[float, ...]:
    """Return the largest error over the largest entry of A, B, C, D and T."""
    all_errors = errors.A, errors.B, errors.C, errors.D, errors.T
    return tuple(relative_error(error, matrix) for error, matrix in zip(all_errors, matrices, strict=True))


def with_errors(linear: LinearModel, errors: EntryErrors, *remarks: Remark) -> LinearModel:
    """Return a linear model with other errors of its entries (NaN stays), their accuracy, and diagnostics."""
    relative = relative_errors(errors, (linear.A, linear.B, linear.C, linear.D, linear.T))
    estimated = {n: e for n, e in zip("ABCDT", relative, strict=True) if not np.isnan(getattr(linear.accuracy, n))}
    accuracy = replace(linear.accuracy, **estimated)
    return replace(linear, errors=errors, accuracy=accuracy, warnings=(*linear.warnings, *remarks))


class NamedSignals(Protocol):
    """The signals of a model."""

    @property
    def states(self) -> Signals:
        """The states."""

    @property
    def inputs(self) -> Signals:
        """The inputs."""

    @property
    def outputs(self) -> Signals:
        """The outputs."""


def name_point(model: NamedSignals, point: OperatingPoint, outputs: FloatArray | None) -> LinearizationPoint:
    """Return a point by the names of a model's signals; without outputs where these are not determined."""
    return LinearizationPoint(
        time=point.time,
        states=dict(zip(model.states.names, point.states.tolist(), strict=True)),
        inputs=dict(zip(model.inputs.names, point.inputs.tolist(), strict=True)),
        outputs={} if outputs is None else dict(zip(model.outputs.names, outputs.tolist(), strict=True)),
        parameters=dict(point.parameters),
    )


def with_parameters_as_inputs(
    model: Model, point: OperatingPoint, names: Sequence[str]
) -> tuple[Model, OperatingPoint]:
    """Return the model with those of ``names`` as further inputs that are none yet, and the point with their values."""
    further = [name for name in dict.fromkeys(names) if not model.inputs.has(name)]
    if not further or not model.moves_parameters:
        return model, point
    count = len(model.inputs)
    model = model.with_interface([*model.inputs.names, *further])
    if shaping := [model.inputs.names[j] for j in model.constraints.prescribing if j >= count]:
        raise UsageError(
            f"The parameter '{shaping[0]}' occurs in a constraint: as an input it would move the states directly, and "
            "its rate would enter the model. Compare linear models at two of its values instead: fl.load(source, "
            f"parameters={{{shaping[0]!r}: VALUE}})."
        )
    return model, replace(point, inputs=np.concatenate((point.inputs, model.start.inputs[count:])))


def find_inputs(inputs: Signals, names: Sequence[str]) -> list[int]:
    """Return which inputs are wanted, by number."""
    chosen = [inputs.index_of(name, "an input of the model") for name in names]
    if len(set(chosen)) != len(chosen):
        raise UsageError(f"An input is named twice in {', '.join(names)}. Name each once.")
    return chosen


def with_inputs(linear: LinearModel, chosen: Sequence[int]) -> LinearModel:
    """Return the linear model with some inputs, in the given order; the others stay at their values of the point."""
    columns = list(chosen)
    selected = linear.inputs.select(columns)
    if is_sparse(linear):
        return linear.with_matrices(
            linear.sparse.select_inputs(columns), inputs=selected, derivatives={}, discrete=None
        )
    E, descriptor = linear.errors, linear.descriptor
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
        derivatives={},
        discrete=None,
    )
