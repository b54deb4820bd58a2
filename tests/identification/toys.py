"""Plants with known answers that can be stepped, without any FMU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from fmilin import Constraint, Evaluation, Model, OperatingPoint
from fmilin.adapters import ModelInfo
from fmilin.constraints import Constraints
from fmilin.errors import NumericalError
from fmilin.model.stepping import Cadence, Response, Stepped
from fmilin.signals import FloatArray, Signals


@dataclass(frozen=True)
class Linear:
    """x' = A x + B u, y = C x + D u."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray

    def over(self, step: float) -> tuple[FloatArray, FloatArray]:
        n, k = self.B.shape
        M = np.zeros((n + k, n + k))
        M[:n, :n], M[:n, n:] = self.A, self.B
        E = linalg.expm(M * step)
        return E[:n, :n], E[:n, n:]


def oscillators(frequencies: Sequence[float], damping: float = 0.05, *, D: bool = False) -> Linear:
    """Some oscillators, two inputs, two outputs."""
    n = len(frequencies)
    w = np.array(frequencies)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.diag(w**2), -np.diag(2 * damping * w)]])
    signs = (-1.0) ** np.arange(n)
    B = np.vstack((np.zeros((n, 2)), np.stack((np.ones(n), signs), axis=1)))
    C = np.vstack((np.concatenate((np.ones(n), np.zeros(n))), np.concatenate((np.zeros(n), signs))))
    return Linear(A, B, C, np.array([[0.0, 0.0], [0.5, 0.0]]) if D else np.zeros((2, 2)))


Filter = Callable[[FloatArray], FloatArray]


class Toy(Model, Stepped):
    """A linear plant that hides its states, reads its outputs early or late, and may be noisy or sampled.

    Parameters
    ----------
    plant : Linear
    stale : bool
        Whether outputs are calculated at the end of steps only.
    noise : float
        Standard deviation of the outputs' noise, never the same twice.
    bend : float
        A cubic term on every input.
    kink : float
        Of the absolute value of every input.
    smallest : float
        Steps below are refused.
    period : float or None
        The input is sampled at multiples of this period.
    offset : FloatArray or None
        A constant rate of the states: the plant is no equilibrium.
    """

    def __init__(
        self,
        plant: Linear,
        *,
        stale: bool = False,
        noise: float = 0.0,
        bend: float = 0.0,
        kink: float = 0.0,
        smallest: float = 0.0,
        period: float | None = None,
        offset: FloatArray | None = None,
        cadence: Cadence | None = None,
        outputs: int | None = None,
    ) -> None:
        self.plant, self.stale, self.noise, self.bend = plant, stale, noise, bend
        self.kink = kink
        self.smallest, self.period, self.offset = smallest, period, offset
        self.cadence = cadence or Cadence(step=0.05)
        self.info = ModelInfo("toy")
        self.states = Signals()
        self.inputs = Signals(f"u{i + 1}" for i in range(plant.B.shape[1]))
        self.outputs = Signals(f"y{i + 1}" for i in range(len(plant.C) if outputs is None else outputs))
        self.constraints = Constraints((), self.states, self.inputs)
        self.start = OperatingPoint(0.0, np.empty(0), np.zeros(len(self.inputs)))
        self.copies = {}
        self.steps = 0
        self._random = np.random.default_rng(5)

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        raise AssertionError("a toy is only stepped")

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        return self

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        return self

    def respond(self, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        if step < self.smallest:
            raise NumericalError("the toy refuses such steps")
        n, ny = len(self.plant.A), len(self.outputs)
        x, used, t = np.zeros(n), np.zeros(len(self.inputs)), 0.0
        shown = np.zeros(ny)
        Ad, Bd = self.plant.over(step)
        drift = np.zeros(n)
        if self.offset is not None:
            drift = Linear(self.plant.A, self.offset[:, None], self.plant.C, self.plant.D).over(step)[1][:, 0]
        at_once, after = np.empty((len(inputs), ny)), np.empty((len(inputs), ny))
        for k, u in enumerate(inputs):
            effective = u + self.bend * u**3 + self.kink * np.abs(u)
            if self.period is None or abs(t / self.period - round(t / self.period)) < 1e-9:
                used = effective
            at_once[k] = shown if self.stale else self._outputs(x, used, ny)
            x = Ad @ x + Bd @ used + drift
            t += step
            after[k] = shown = self._outputs(x, used, ny)
        self.steps += len(inputs)
        return Response(at_once, after, np.empty((len(inputs), 0)))

    def advance(self, point: OperatingPoint, to: float, step: float | None = None) -> OperatingPoint:
        raise AssertionError("a toy stays where it is")

    def why_not_direct(self, point: OperatingPoint) -> str:
        return "It declares no states."

    def why_not_settable(self, point: OperatingPoint) -> str:
        return "It declares no states."

    def _outputs(self, x: FloatArray, u: FloatArray, ny: int) -> FloatArray:
        y: FloatArray = (self.plant.C @ x + self.plant.D @ u)[:ny]
        return y + self.noise * self._random.standard_normal(ny)


def transfer(A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray, s: complex) -> np.ndarray:
    """C (s - A)^-1 B + D: the same in all coordinates."""
    return np.asarray(C @ np.linalg.solve(s * np.eye(len(A)) - A, B.astype(complex)) + D)


class ByEuler(Toy):
    """A toy whose solver is Euler's method: in steps of ``internal`` seconds, or what is left of a step."""

    internal = 1e-3

    def respond(self, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        count = max(1, round(step / self.internal))
        n = len(self.plant.A)
        one, Ad, Bd = np.eye(n) + step / count * self.plant.A, np.eye(n), np.zeros_like(self.plant.B)
        for _ in range(count):
            Ad, Bd = one @ Ad, one @ Bd + step / count * self.plant.B
        x, at_once, after = np.zeros(n), [], []
        for u in inputs:
            at_once.append(self._outputs(x, u, len(self.outputs)))
            x = Ad @ x + Bd @ u
            after.append(self._outputs(x, u, len(self.outputs)))
        self.steps += len(inputs)
        return Response(np.array(at_once), np.array(after), np.empty((len(inputs), 0)))
