"""The excitation of both models, its duration, and the nonlinear response as the linear one plus a deviation.

With z = y - y0 = a L + e, L the linear response to amplitude one and a the amplitude,

    e' = A e + g(t),    g = F(z, u) - A z - B u,    e(0) = 0,

and g is evaluated along the last z (Picard's iteration with the linear model as its kernel, as in waveform relaxation).
Each sweep takes one evaluation per node and multiplies the error of e by about the relative deviation. The linear
part is integrated exactly: no step follows its fast modes, and its stiffness does no harm. A right linear model has g
of second order in a, whatever the nodes.
"""

from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.interpolate import CubicSpline

from fmilin.errors import REFUSALS, NumericalError
from fmilin.linear_model.model import LinearModel
from fmilin.numerics.steps import runge_kutta_step
from fmilin.signals import FloatArray
from fmilin.verification.reduced import ReducedModel

MAX_FREQUENCIES = 5
PERIODS = 2.0  # of the slowest mode that counts; one that merely decays is followed for 2 pi time constants
MAX_PERIODS = 40.0  # of the fastest mode that swings
ALL_PERIODS, LEAST_PERIODS = 300.0, 4.0
"""Of that mode in all responses together, and at least in each: many coordinates are followed for a shorter time."""

SLOW_RATE_FRACTION = 5e-3  # modes slower than this fraction of the fastest that swings do not count
ZERO = 1e-6  # eigenvalues below this fraction of the largest are zero
OSCILLATION_RATIO = 0.1  # imaginary part over modulus above which a mode swings; one that merely decays limits nothing
GROWTH = 20.0  # by which an unstable mode may grow


@dataclass(frozen=True, slots=True)
class Excitation:
    """An offset of a coordinate, a step or a sine of an input, of amplitude one."""

    kind: Literal["offset", "step", "sine"]
    index: int  # of the coordinate or input
    frequency: float = 0.0  # in rad/s, of a sine

    def offset(self, size: int) -> FloatArray:
        """Return the initial deviation of the coordinates, shape (size,)."""
        dy = np.zeros(size)
        if self.kind == "offset":
            dy[self.index] = 1.0
        return dy

    def input_change(self, t: float, size: int) -> FloatArray:
        """Return the deviation of the inputs at a time, shape (size,)."""
        du = np.zeros(size)
        if self.kind == "step":
            du[self.index] = 1.0
        elif self.kind == "sine":
            du[self.index] = np.sin(self.frequency * t)
        return du


def choose_horizon(linear: LinearModel, y_sizes: FloatArray) -> float:
    """Return how long to look, in seconds: two periods of the slowest mode that counts, unless others end it."""
    A = linear.A * y_sizes / y_sizes[:, None]
    norm = float(np.linalg.norm(A, 2)) if A.size else 0.0
    eigenvalues = linear.eigenvalues()
    counting, swinging = _modes(eigenvalues, norm)
    if not len(counting):
        return 2 * np.pi / norm if norm > 0 else 1.0
    periods = np.where(_swings(eigenvalues), PERIODS, 1.0) * 2 * np.pi
    rates = np.abs(eigenvalues)
    horizon = float(np.max(periods[rates >= counting[0]] / rates[rates >= counting[0]]))
    if swinging > 0:
        responses = len(linear.states) + (MAX_FREQUENCIES + 1) * len(linear.inputs)
        periods_of_each = float(np.clip(ALL_PERIODS / max(responses, 1), LEAST_PERIODS, MAX_PERIODS))
        horizon = min(horizon, periods_of_each * 2 * np.pi / swinging)
    growth = float(np.max(eigenvalues.real, initial=0.0))
    return min(horizon, float(np.log(GROWTH)) / growth) if growth > 0 else horizon


def slowest_period(linear: LinearModel) -> float:
    """Return the period of the slowest mode that swings, in seconds; 0 when none does."""
    eigenvalues = linear.eigenvalues()
    counting, _ = _modes(eigenvalues[_swings(eigenvalues)])
    return 2 * np.pi / float(counting[0]) if len(counting) else 0.0


def fastest_period(linear: LinearModel) -> float:
    """Return the period of the fastest mode that swings, in seconds; 0 when none does."""
    _, swinging = _modes(linear.eigenvalues())
    return 2 * np.pi / swinging if swinging > 0 else 0.0


def _modes(eigenvalues: NDArray[np.complex128], norm: float = 0.0) -> tuple[FloatArray, float]:
    """Return the rates of the modes that count, slowest first, and the rate of the fastest that swings."""
    rates = np.abs(eigenvalues)
    fastest = float(np.max(rates, initial=0.0))
    swinging = float(np.max(rates[_swings(eigenvalues)], initial=0.0))
    return np.sort(rates[rates > max(ZERO * max(fastest, norm), SLOW_RATE_FRACTION * swinging)]), swinging


def _swings(eigenvalues: NDArray[np.complex128]) -> NDArray[np.bool_]:
    return np.abs(eigenvalues.imag) > OSCILLATION_RATIO * np.abs(eigenvalues)


def excitations(linear: LinearModel, horizon: float) -> list[Excitation]:
    """Return all excitations: an offset per coordinate; a step and a few sines per input."""
    chosen = [Excitation("offset", j) for j in range(len(linear.states))]
    frequencies = choose_frequencies(linear.eigenvalues(), horizon) if len(linear.states) else []
    for k in range(len(linear.inputs)):
        chosen.append(Excitation("step", k))
        chosen += [Excitation("sine", k, frequency) for frequency in frequencies]
    return chosen


def choose_frequencies(eigenvalues: NDArray[np.complex128], horizon: float) -> list[float]:
    """Return a few frequencies around the model's own: those of its modes, half the lowest and twice the highest."""
    counting, _ = _modes(eigenvalues)
    base_frequency = 2 * np.pi / horizon
    mode_frequencies = counting[(counting > 0.25 * base_frequency) & (counting < MAX_PERIODS * base_frequency)]
    distinct = [w for i, w in enumerate(mode_frequencies) if i == 0 or w > 1.1 * mode_frequencies[i - 1]]
    if not distinct:
        return [2 * base_frequency]
    if len(distinct) > MAX_FREQUENCIES - 2:
        spread = np.linspace(0, len(distinct) - 1, MAX_FREQUENCIES - 2).round().astype(int)
        distinct = [distinct[i] for i in spread]
    return [float(w) for w in (0.5 * distinct[0], *distinct, 2.0 * distinct[-1])]


def linear_response(linear: LinearModel, excitation: Excitation, times: FloatArray) -> FloatArray:
    """Return y, x, out (nt, P + N + ny) for amplitude one on an even grid from 0, exact by a matrix exponential."""
    P, nu = len(linear.states), len(linear.inputs)
    M = np.zeros((P + 2, P + 2))
    M[:P, :P] = linear.A
    w = np.zeros(P + 2)
    w[:P] = excitation.offset(P)
    if excitation.kind != "offset":
        M[:P, P] = linear.B[:, excitation.index]
        M[P, P + 1], M[P + 1, P] = excitation.frequency, -excitation.frequency
        w[P], w[P + 1] = (1.0, 0.0) if excitation.kind == "step" else (0.0, 1.0)
    step = linalg.expm(M * (times[1] - times[0]))
    y = np.empty((len(times), P))
    for i in range(len(times)):
        y[i] = w[:P]
        w = step @ w
    u = np.array([excitation.input_change(t, nu) for t in times]).reshape(len(times), nu)
    return np.hstack((y, y @ linear.T.T + u @ linear.T_u.T, y @ linear.C.T + u @ linear.D.T))


COMPARISON_POINTS_PER_NODE = 4  # points between two nodes at which responses are compared
RUNGE_KUTTA_STABILITY_LIMIT = 2.5  # step times the fastest rate up to which the Runge-Kutta formula is stable
MAX_DEVIATION_RATIO = 3.0  # deviation, relative to the response, beyond which further sweeps lead nowhere


class ResponseError(NumericalError):
    """The nonlinear model has no response at this amplitude: it or its coordinates end."""


@dataclass(frozen=True, eq=False)
class Deviation:
    """Nonlinear less linear response, of y, all x and the outputs."""

    values: FloatArray  # (nt, P + N + ny), at the fine times, for the amplitude itself
    settled: bool  # whether another sweep would change little


class Relaxation:
    """Responses of the reduced model around those of the linear one; a point takes ``cost`` evaluations."""

    def __init__(self, reduced: ReducedModel, linear: LinearModel, duration: float, nodes: int, cost: float) -> None:
        self.reduced, self.linear, self.cost = reduced, linear, cost
        self.times = np.linspace(0.0, duration, COMPARISON_POINTS_PER_NODE * nodes + 1)
        self._node_samples = slice(None, None, COMPARISON_POINTS_PER_NODE)
        p = len(linear.states)
        M = np.zeros((3 * p, 3 * p))
        M[:p, :p], M[:p, p : 2 * p], M[p : 2 * p, 2 * p :] = linear.A, np.eye(p), np.eye(p)
        h = float(self.times[1])
        F = linalg.expm(M * h) if p else M
        self._step, self._constant, self._ramp = F[:p, :p], F[:p, p : 2 * p], F[:p, 2 * p :] / h

    def linear_response(self, excitation: Excitation) -> FloatArray:
        """Return what the linear model answers to amplitude one at the fine times, shape (nt, P + N + ny)."""
        return linear_response(self.linear, excitation, self.times)

    def affordable(self, end: float) -> int:
        """Return how many sweeps may be made until so many evaluations of the model."""
        return max(0, int((end - self.reduced.evaluations) // (self.sweep_points * self.cost)))

    def compute_gains(self, count: int, sizes: FloatArray) -> list[FloatArray]:
        """Return matrices by which the linear model amplifies deviations, at ``count`` times, in these sizes."""
        step = linalg.expm(self.times[-1] / count * self.linear.A * sizes / sizes[:, None])
        return list(accumulate(repeat(step, count), np.matmul))

    @property
    def sweep_points(self) -> int:
        """Number of points at which a sweep evaluates the model."""
        return len(self.times[self._node_samples])

    def deviation(
        self,
        excitation: Excitation,
        unit: FloatArray,
        amplitude: float,
        *,
        sweeps: int,
        close: float,
        first: FloatArray | None = None,
    ) -> Deviation:
        """Return the deviation at an amplitude, from the linear response ``unit`` (nt, P + N + ny) to amplitude one.

        Sweeps end when one changes the deviation by less than ``close``, relatively; ``first`` is a guess of it.
        """
        r, linear = self.reduced, self.linear
        p = len(r.y0)
        nodes, nu = self.times[self._node_samples], len(r.u0)
        L = amplitude * unit[self._node_samples, :p]
        du = amplitude * np.array([excitation.input_change(t, nu) for t in nodes]).reshape(len(nodes), nu)
        n = len(r.x0)
        e = np.zeros((len(self.times), p)) if first is None else first[:, :p]
        curvature = np.zeros((len(nodes), n))  # of x, beyond its tangent
        if first is not None:
            curvature = (first[:, p : p + n] - e @ linear.T.T)[self._node_samples]
        size = float(np.max(np.abs(L) / r.y_sizes, initial=0.0)) or 1.0
        rest = np.zeros((len(nodes), 0))
        settled = False
        for _ in range(sweeps):
            rest = np.array(
                [self._rest(z, u, b) for z, u, b in zip(L + e[self._node_samples], du, curvature, strict=True)]
            )
            curvature = rest[:, p : p + n]
            rest = CubicSpline(nodes, rest)(self.times)
            new = self._integrate_driven(rest[:, :p])
            change = float(np.max(np.abs(new - e) / r.y_sizes, initial=0.0))
            e = new
            largest = float(np.max(np.abs(e) / r.y_sizes, initial=0.0))
            settled = change <= close * largest or largest == 0.0
            if settled or largest > MAX_DEVIATION_RATIO * size:
                break
        signals = np.hstack((e, e @ linear.T.T, e @ linear.C.T))
        signals[:, p:] += rest[:, p:]
        return Deviation(signals, settled)

    def integrate_response(self, excitation: Excitation, amplitude: float) -> FloatArray:
        """Return the response (nt, P + N + ny) where sweeps would not settle, by Runge-Kutta steps: for a picture."""
        r, nodes = self.reduced, self.times[self._node_samples]
        h, nu = float(nodes[1]), len(r.u0)
        if h * float(np.max(np.abs(self.linear.eigenvalues()), initial=0.0)) > RUNGE_KUTTA_STABILITY_LIMIT:
            raise ResponseError("The linear model is too stiff for these steps of time.")

        def evaluate(t: float, z: FloatArray) -> tuple[FloatArray, FloatArray]:
            du = amplitude * excitation.input_change(t, nu)
            rest = self._rest(z, du, np.zeros(len(r.x0)))
            p, linear = len(z), self.linear
            predicted = (linear.A @ z + linear.B @ du, linear.T @ z + linear.T_u @ du, linear.C @ z + linear.D @ du)
            rates_and_motion = rest + np.concatenate(predicted)
            return rates_and_motion[:p], np.concatenate((z, rates_and_motion[p:]))

        z = amplitude * excitation.offset(len(r.y0))
        node_values = []
        for t in nodes:
            k1, here = evaluate(t, z)
            node_values.append(here)
            if t == nodes[-1]:
                break
            z = runge_kutta_step(lambda s, y: evaluate(s, y)[0], t, z, h, k1)
        return CubicSpline(nodes, np.array(node_values))(self.times)

    def _rest(self, z: FloatArray, du: FloatArray, bend: FloatArray) -> FloatArray:
        """Return what the linear model leaves of y', x (``bend`` is a guess of it) and out, shape (P + N + ny,)."""
        r, linear = self.reduced, self.linear
        try:
            near = r.x0 + r.psi.derivative @ z + linear.T_u @ du + bend
            rate, x, out = r.evaluate(r.y0 + z, r.u0 + du, near)
        except REFUSALS as error:
            raise ResponseError(str(error)) from None
        remainder = np.concatenate(
            (
                rate - linear.A @ z - linear.B @ du,
                x - r.x0 - linear.T @ z - linear.T_u @ du,
                out - r.out0 - linear.C @ z - linear.D @ du,
            )
        )
        if not np.isfinite(remainder).all():
            raise ResponseError("The model returns a value that is not a number.")
        return remainder

    def _integrate_driven(self, g: FloatArray) -> FloatArray:
        """Return e of e' = A e + g from rest, g straight between the fine times; shape (nt, P)."""
        e = np.zeros_like(g)
        push = g[:-1] @ self._constant.T + np.diff(g, axis=0) @ self._ramp.T
        for k in range(len(push)):
            e[k + 1] = self._step @ e[k] + push[k]
        return e
