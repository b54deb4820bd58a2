"""Implementations of the zeros of a linear model, and of the choice of its channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.errors import UnknownNameError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.zeros import ZeroStructure
from fmilin.numerics.system_pencil import SystemPencil
from fmilin.signals import FloatArray, Signals


def find_zero_structure(
    linear: LinearModel, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> ZeroStructure:
    """Return the zeros of a linear model from some of its inputs to some of its outputs, all by default."""
    linear = select_channels(linear.with_prescribed_states(), inputs, outputs)
    pencil = build_pencil(linear)
    structure = ZeroStructure(linear.inputs, linear.outputs, linear.sample_time, np.zeros_like(linear.D), pencil)
    return replace(structure, decoupling_matrix=_differentiate(linear, structure.relative_degree))


def build_pencil(linear: LinearModel) -> SystemPencil:
    """Return the system pencil of a linear model with the errors of its entries."""
    for kind, signals in (("inputs", linear.inputs), ("outputs", linear.outputs)):
        if not len(signals):
            raise UsageError(f"This linear model has no {kind}, which zeros require. Linearize with {kind}=['NAME'].")
    matrices, E = (linear.A, linear.B, linear.C, linear.D), linear.errors
    if not all(np.isfinite(matrix).all() for matrix in matrices):
        raise UsageError("A matrix of this linear model has entries that are NaN or infinite: it has no zeros.")
    accuracy = linear.accuracy
    is_estimated = bool(np.isfinite([accuracy.A, accuracy.B, accuracy.C, accuracy.D]).all())
    return SystemPencil.build(matrices, (E.A, E.B, E.C, E.D), errors_known=is_estimated)


def select_channels(linear: LinearModel, inputs: Sequence[str] | None, outputs: Sequence[str] | None) -> LinearModel:
    """Return the linear model with some of its inputs and outputs, in the order of their names.

    Raises UnknownNameError, with the nearest names.
    """
    if inputs is None and outputs is None:
        return linear
    columns = _positions(linear.inputs, inputs, "an input of the linear model")
    for name in outputs or ():
        if linear.full_states.has(name) and not linear.outputs.has(name):
            advice = f"linearize with outputs=['{name}']"
            text = f"'{name}' is a state, and not among the outputs of the linear model: {advice}."
            raise UnknownNameError(text, name=name)
    rows = _positions(linear.outputs, outputs, "an output of the linear model")
    E = linear.errors
    errors = replace(E, B=E.B[:, columns], C=E.C[rows], D=E.D[np.ix_(rows, columns)])
    return replace(
        linear,
        B=linear.B[:, columns],
        C=linear.C[rows],
        D=linear.D[np.ix_(rows, columns)],
        T_u=linear.T_u[:, columns],
        inputs=linear.inputs.select(columns),
        outputs=linear.outputs.select(rows),
        errors=errors,
        descriptor=None,
        derivatives={},
        discrete=None,
    )


def _positions(signals: Signals, names: Sequence[str] | None, what: str) -> list[int]:
    return list(range(len(signals))) if names is None else [signals.index_of(name, what) for name in names]


def _differentiate(linear: LinearModel, degrees: FloatArray) -> FloatArray:
    """Return C_i A^(r - 1) B of each output, D_i where r = 0, and zeros where r is infinite."""
    rows = np.zeros_like(linear.D)
    for i, degree in enumerate(degrees.tolist()):
        if degree == 0:
            rows[i] = linear.D[i]
        elif np.isfinite(degree):
            row = linear.C[i]
            for _ in range(int(degree) - 1):
                row = row @ linear.A
            rows[i] = row @ linear.B
    return rows
