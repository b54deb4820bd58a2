"""Small models written by hand for tests: no codegen, no FMU, nothing that the tested code shares with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin import Constraint, Evaluation, Model, OperatingPoint
from fmilin.adapters import ModelInfo
from fmilin.constraints import Constraints
from fmilin.model.interface import Copy
from fmilin.signals import FloatArray, Signal, Signals

Rates = Callable[[float, FloatArray, FloatArray], FloatArray]
Jacobians = Callable[[float, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass
class Parts:
    """What a FunctionModel is made of."""

    states: Sequence[str | Signal]
    start: Sequence[float]
    rates: Rates
    inputs: Sequence[str | Signal] = ()
    outputs: Sequence[str] = ()
    output: Rates | None = None
    constraints: Sequence[str | Constraint] = ()
    jacobians: Jacobians | None = None
    """(t, x, u) -> d(rates, outputs)/dx and d(rates, outputs)/du."""
    parameters: Mapping[str, float] | None = None
    observed: Mapping[str, Callable[[float, FloatArray, FloatArray], float]] | None = None
    copies: Mapping[int, Copy] | None = None


class FunctionModel(Model):
    """A Model out of Python functions."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.info = ModelInfo("by hand")
        self.states, self.inputs, self.outputs = Signals(parts.states), Signals(parts.inputs), Signals(parts.outputs)
        self.copies = dict(parts.copies or {})
        self.start = OperatingPoint(0.0, np.array(parts.start, dtype=float), np.zeros(len(self.inputs)))
        observed = parts.observed or {}
        self.constraints = Constraints(
            [Constraint.from_text(c) if isinstance(c, str) else c for c in parts.constraints],
            self.states,
            self.inputs,
            parameters=parts.parameters,
            other=lambda name: name if name in observed else None,
        )

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        out = np.empty(0) if self.parts.output is None else np.asarray(self.parts.output(t, x, u), dtype=float)
        z = np.array([(self.parts.observed or {})[name](t, x, u) for name in self.constraints.observed])
        return Evaluation(np.array(self.parts.rates(t, x, u), dtype=float), out, self.constraints.residuals(t, x, u, z))

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        if self.parts.jacobians is None:
            return None
        Jx, Ju = self.parts.jacobians(t, x, u)
        J = Jx @ dx + Ju @ du
        n = len(self.states)
        residuals = np.full((len(self.constraints), dx.shape[1]), np.nan)
        if not self.constraints.observed:
            partials = self.constraints.partials(t, x, u, np.empty(0))
            residuals = partials.states @ dx + partials.inputs @ du
        return Evaluation(J[:n], J[n:], residuals)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        raise NotImplementedError

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        raise NotImplementedError


def pendulum(
    *,
    angle: float = 0.0,
    rate: float = 0.0,
    length: float = 1.3,
    gravity: float = 9.81,
    mass: float = 2.0,
    exact: bool = False,
) -> FunctionModel:
    """Cartesian pendulum x, y, vx, vy, y up, angle from hanging; horizontal force F; out: x-acceleration.

    The rates use the multiplier that keeps d^2/dt^2 (x^2 + y^2) = 0, for any x^2 + y^2.
    """

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        x, y, vx, vy = s
        F = u[0] if len(u) else 0.0
        ax, ay = F / mass, -gravity
        mu = (x * ax + y * ay + vx**2 + vy**2) / (x**2 + y**2)
        return np.array([vx, vy, ax - mu * x, ay - mu * y])

    def jacobians(t: float, s: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        h = 1e-30
        Jx = np.stack([rates_complex(s + 1j * h * e, u).imag / h for e in np.eye(4)], axis=1)
        Ju = np.stack([rates_complex(s, u + 1j * h * e).imag / h for e in np.eye(1)], axis=1)
        return np.vstack((Jx, Jx[2:3])), np.vstack((Ju, Ju[2:3]))

    def rates_complex(s: np.ndarray, u: np.ndarray) -> np.ndarray:
        x, y, vx, vy = s
        ax, ay = u[0] / mass, -gravity
        mu = (x * ax + y * ay + vx**2 + vy**2) / (x**2 + y**2)
        return np.array([vx + 0j, vy + 0j, ax - mu * x, ay - mu * y])

    s, c = np.sin(angle), np.cos(angle)
    start = [length * s, -length * c, length * rate * c, length * rate * s]
    return FunctionModel(
        Parts(
            ["x", "y", "vx", "vy"],
            start,
            rates,
            inputs=["F"],
            outputs=["ax"],
            output=lambda t, s, u: rates(t, s, u)[2:3],
            constraints=["x^2 + y^2 - L^2"],
            parameters={"L": length},
            jacobians=jacobians if exact else None,
        )
    )


def lags(n: int) -> FunctionModel:
    """A row of lags, each pulled by its neighbours and all by one input."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        pull = np.sin(np.diff(s, prepend=s[0], append=s[-1]))
        return np.asarray(u - s - 3 * s**3 + np.diff(pull))

    start = [0.1 * (i % 7) for i in range(n)]
    parts = Parts([f"x{i}" for i in range(n)], start, rates, inputs=["u"], outputs=["y"])
    parts.output = lambda t, s, u: s[n // 2 : n // 2 + 1] ** 2
    model = FunctionModel(parts)
    i = np.arange(n)
    model.structure = np.zeros((n + 1, n + 1), dtype=bool)
    model.structure[:n, :n] = np.abs(i[:, None] - i) <= 1
    model.structure[:n, n], model.structure[n, n // 2] = True, True
    return model
