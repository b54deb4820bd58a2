"""Filters and regulators as sampled linear models, and as files for the machine that they run on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from fmilin.errors import UsageError
from fmilin.linear_model.measured_angles import MeasuredAngles
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearizationMethod, LinearizationPoint, LinearModel
from fmilin.model.interface import ModelInfo
from fmilin.signals import FloatArray, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked

CYCLIC_DERIVATIVE_TOLERANCE = 1e-9  # of the largest slope: what depends so little on a coordinate does not depend on it
Matrices = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


class Savable:
    """A filter or a regulator that runs on a machine, with a sampled linear model of itself."""

    __slots__ = ()

    def linear_model(self) -> LinearModel:
        """Return the sampled linear model, from what is read to what is answered."""
        raise NotImplementedError

    @kinds_checked
    @implemented_in("fmilin.export.c_file:save_law")
    def save(
        self,
        path: str | Path,
        *,
        limits: Mapping[str, tuple[float, float]] | None = None,
        precision: Literal["double", "single"] = "double",
        fmi: Literal["2.0", "3.0"] = "2.0",
    ) -> None:
        """Write it: .c is one C99 file for a microcontroller, .fmu an FMU; any other format of a linear model.

        Raises UsageError or UnknownNameError when there is no such format, limits are none, or the file cannot be
        written.

        Parameters
        ----------
        path : str or Path
            The stem of a .c file is the name of its struct.
        limits : mapping of str to (float, float), optional
            Of outputs, absolute: .c and .fmu only. The states take the limited outputs into account.
        precision : str
            ``"double"`` or ``"single"``, for .c.
        fmi : str
            The version of an FMU.
        """
        ...

    def compute_limit_response(self) -> FloatArray:
        """Return how the states move with what limits take from the outputs, shape (P, outputs)."""
        linear = self.linear_model()
        return np.zeros((len(linear.states), len(linear.outputs)))

    def find_measured_angles(self) -> MeasuredAngles | None:
        """Return the inputs that are measured angles, with what its states predict of them; None without any."""
        linear = self.linear_model()
        return MeasuredAngles.around_point(linear.inputs, len(linear.states))


def with_states(linear: LinearModel, names: Sequence[str]) -> LinearModel:
    """Return a linear model without the coordinates that the named ones do not depend on; reject where they do."""
    selected = [linear.states.index_of(name, "a coordinate of the linear model") for name in names]
    if not selected:
        raise UsageError("A regulator must read at least one state: name a coordinate of the linear model.")
    omitted = [i for i in range(len(linear.states)) if i not in selected]
    E, scales = linear.errors, linear.states.scales(linear.y0)
    sizes = np.outer(1 / scales[selected], scales)
    depends = (
        np.abs(linear.A[selected]) * sizes
        > 10 * (E.A[selected] * sizes) + CYCLIC_DERIVATIVE_TOLERANCE * (np.abs(linear.A[selected]) * sizes).max()
    )
    if (coupled := np.argwhere(depends[:, omitted])).size:
        i, j = coupled[0]
        raise UsageError(
            f"'{linear.states.names[omitted[j]]}' is left out of the coordinates, but '{names[i]}' depends on it. "
            "Name it too."
        )
    square = np.ix_(selected, selected)
    return replace(
        linear,
        A=linear.A[square],
        B=linear.B[selected],
        C=linear.C[:, selected],
        T=linear.T[:, selected],
        f0=linear.f0[selected],
        y0=linear.y0[selected],
        states=linear.states.select(selected),
        descriptor=None,
        derivatives={},
        discrete=None,
        errors=EntryErrors(E.A[square], E.B[selected], E.C[:, selected], E.D, E.T[:, selected]),
    )


def linear_law(
    name: str,
    plant: LinearModel,
    matrices: Matrices,
    signals: tuple[Signals, Signals, Signals],
    sample_time: float,
    f0: FloatArray | None = None,
) -> LinearModel:
    """Return a sampled linear model of states, inputs and outputs, which start at the plant's operating point."""
    A, B, C, D = matrices
    states, inputs, outputs = signals
    values = [dict(zip(s.names, s.starts.tolist(), strict=True)) for s in signals]
    P, nu = B.shape
    return replace(
        plant,
        A=A, B=B, C=C, D=D, T=np.eye(P), T_u=np.zeros((P, nu)),
        f0=np.zeros(P) if f0 is None else f0,
        states=states, full_states=states, inputs=inputs, outputs=outputs, y0=states.starts,
        point=LinearizationPoint(plant.point.time, *values),
        accuracy=Accuracy(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
        errors=EntryErrors(*(np.zeros_like(m) for m in (A, B, C, D, A))),
        method=LinearizationMethod("exact", "named", 0), model=ModelInfo(name), sample_time=float(sample_time),
        descriptor=None, derivatives={}, discrete=None,
    )  # fmt: skip
