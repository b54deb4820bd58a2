"""One channel of a model, from an input to an output: whether it answers, and where its paths end."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fmilin.discovery.states import find_reachable
from fmilin.errors import FmilinError
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import operating_point
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray

ZERO = 1e-9  # of a transfer function, relative to the sum of the absolute values of its terms
FREQUENCIES = 5  # at which it is examined, anywhere in the complex plane
Matrices = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class ExplainedChannel:
    """The question whether an input moves an output."""

    model: Model
    point: OperatingPoint
    input: str
    output: str
    request: Request  # how it is linearized

    def linearize(self, model: Model | None = None, point: OperatingPoint | None = None) -> LinearModel | None:
        """Return the linear model of the channel, or None."""
        try:
            return linearize_request(
                model or self.model,
                point or self.point,
                replace(self.request, inputs=[self.input], outputs=[self.output]),
            )
        except FmilinError:
            return None

    def responds(self, model: Model | None = None, point: OperatingPoint | None = None) -> bool:
        """Whether the output moves when the input does."""
        linear = self.linearize(model, point)
        return linear is not None and has_response((linear.A, linear.B, linear.C, linear.D))

    def displace_point(self, model: Model, values: Mapping[str, float]) -> OperatingPoint | None:
        """Return the point with other values of states, inputs and time, on the manifold, or None."""
        point, inputs = self.point, self.point.inputs.copy()
        states = {name: value for name, value in values.items() if model.states.has(name)}
        for name, value in values.items():
            if model.inputs.has(name):
                inputs[model.inputs.positions[name]] = value
        time = values.get("time", point.time)
        try:
            consistent_states = (
                operating_point(model, {**self.independent_states, **states}, time=time).states
                if len(model.constraints)
                else None
            )
        except FmilinError:
            return None
        x = point.states.copy() if consistent_states is None else consistent_states
        for name, value in states.items():
            x[model.states.positions[name]] = value
        return OperatingPoint(time, x, inputs, model.start.parameters)

    @property
    def independent_states(self) -> dict[str, float]:
        """The independent states at the point."""
        linear = self.linearize()
        names = self.model.states.names if linear is None else linear.states.names
        return {n: float(self.point.states[self.model.states.index_of(n)]) for n in names}


def has_response(matrices: Matrices) -> bool:
    """Whether C (s - A)^-1 B + D is not zero, but for rounding."""
    A, B, C, D = matrices
    random, scale = np.random.default_rng(34), max(float(np.abs(A).max(initial=0.0)), 1.0)
    if any(np.isnan(M).any() for M in matrices):
        return False
    for s in scale * (random.uniform(0.5, 2.0, FREQUENCIES) + 1j * random.uniform(-1.0, 1.0, FREQUENCIES)):
        resolvent = np.linalg.inv(s * np.eye(len(A)) - A)
        size = np.abs(C) @ np.abs(resolvent) @ np.abs(B) + np.abs(D)
        if (np.abs(C @ resolvent @ B + D) > ZERO * np.maximum(size, 1e-200)).any():
            return True
    return False


def find_reached_states(A: FloatArray, B: FloatArray) -> NDArray[np.bool_]:
    """Return which states something moves, by entries that are not zero."""
    return find_reachable(np.asarray((B != 0).any(axis=1)), np.asarray(A != 0))


def clear_inaccurate_entries(linear: LinearModel) -> LinearModel:
    """Return the linear model with zeros where entries are not larger than their errors."""
    E = linear.errors
    clean = {n: np.where(np.abs(getattr(linear, n)) > 2 * getattr(E, n), getattr(linear, n), 0.0) for n in "ABCD"}
    return replace(linear, **clean)  # type: ignore[arg-type]
