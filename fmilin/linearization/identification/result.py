"""From a measured discrete or continuous model to a LinearModel with names and accuracy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fmilin.ground.signals import FloatArray, Signal, Signals
from fmilin.linear_model.builder import IndependentCoordinates, Slopes, built, point_of
from fmilin.linear_model.model import LinearModel
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

    values = (np.zeros(n) if hidden else point.states).tolist()
    held = replace(
        point_of(model, point, outputs), states=dict(zip(coordinates.full_states.names, values, strict=True))
    )
    c = coordinates
    own = IndependentCoordinates(c.states, c.full_states, c.y0, T, T_error, c.kind, c.conditioning, c.residual)
    slopes = Slopes(M.A, M.B, M.C, M.D, f0, doubt(E.A, M.A), doubt(E.B, M.B), doubt(E.C, M.C), doubt(E.D, M.D))
    method, sample_time = (measured.method, measured.evaluations, 0), M.step if isinstance(M, Sampled) else 0.0
    return built(model, own, slopes, held, method, sample_time=sample_time)
