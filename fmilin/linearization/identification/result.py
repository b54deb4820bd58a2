"""From a measured discrete or continuous model to a LinearModel with names and accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray, Signal, Signals
from fmilin.linear_model.builder import IndependentCoordinates, Slopes, built
from fmilin.linear_model.model import LinearModel, Point
from fmilin.linearization.identification.sampled import Continuous, Sampled
from fmilin.model.interface import Model, OperatingPoint


@dataclass(frozen=True)
class Coordinates:
    """What the states of a measured model are called."""

    states: Signals
    full_states: Signals
    y0: FloatArray  # shape (n,)
    kind: str  # as in :class:`~fmilin.linear_model.model.Method`
    conditioning: float = 1.0
    residual: float = 0.0

    @classmethod
    def hidden(cls, order: int) -> Coordinates:
        """Return coordinates without a meaning of their own."""
        signals = Signals(Signal(f"z[{i + 1}]", description="identified, balanced") for i in range(order))
        return cls(signals, signals, np.zeros(order), "identified")

    @classmethod
    def of_states(cls, chosen: list[int], point: OperatingPoint, model: Model) -> Coordinates:
        """Return some of the declared states."""
        return cls(model.states.select(chosen), model.states, point.states[chosen], "identified")


@dataclass(frozen=True)
class Measured:
    """A discrete or continuous model with errors of the same shapes, ready to be named."""

    matrices: Sampled | Continuous
    errors: Sampled | Continuous
    method: str
    evaluations: int
    misfit: float = 0.0  # error on held-out responses beyond noise, relative: no entry is more accurate than that


def linear_model(
    measured: Measured, coordinates: Coordinates, model: Model, point: OperatingPoint, outputs: FloatArray
) -> LinearModel:
    """Put names, the point and accuracies to a measured model; outputs (ny,), at the point."""
    M, E = measured.matrices, measured.errors
    n = len(M.A)
    hidden = coordinates.full_states is coordinates.states
    T, T_error = (np.eye(n), np.zeros((n, n))) if hidden else (M.T, E.T)
    f0 = M.drift if isinstance(M, Sampled) else M.f0

    def doubt(error: FloatArray, matrix: FloatArray) -> FloatArray:
        return np.maximum(error, measured.misfit * np.abs(matrix))

    held = Point(
        time=point.time,
        states=dict(
            zip(coordinates.full_states.names, (np.zeros(n) if hidden else point.states).tolist(), strict=True)
        ),
        inputs=dict(zip(model.inputs.names, point.inputs.tolist(), strict=True)),
        outputs=dict(zip(model.outputs.names, outputs.tolist(), strict=True)),
        parameters=dict(point.parameters),
    )
    return built(
        model,
        IndependentCoordinates(
            coordinates.states,
            coordinates.full_states,
            coordinates.y0,
            T,
            T_error,
            coordinates.kind,
            condition_number=coordinates.conditioning,
            residual=coordinates.residual,
        ),
        Slopes(
            M.A,
            M.B,
            M.C,
            M.D,
            f0,
            A_error=doubt(E.A, M.A),
            B_error=doubt(E.B, M.B),
            C_error=doubt(E.C, M.C),
            D_error=doubt(E.D, M.D),
        ),
        held,
        (measured.method, measured.evaluations, 0),
        sample_time=M.step if isinstance(M, Sampled) else 0.0,
    )
