"""What both models are excited with, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.ground.signals import FloatArray
from fmilin.linear_model.model import LinearModel

MOST_FREQUENCIES = 5
PERIODS = 2.0  # of the slowest mode that counts; one that merely decays is followed for 2 pi time constants
MOST_PERIODS = 40.0  # of the fastest mode that swings

ALL_PERIODS, LEAST_PERIODS = 300.0, 4.0
"""Of that mode in all responses together, and at least in each: many coordinates are followed for a shorter time."""

SLOW = 5e-3  # modes slower than this fraction of the fastest that swings do not count
ZERO = 1e-6  # eigenvalues below this fraction of the largest are zero
SWINGS = 0.1  # imaginary part over modulus above which a mode swings; one that merely decays limits nothing
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


def horizon_of(linear: LinearModel, y_sizes: FloatArray) -> float:
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
        responses = len(linear.states) + (MOST_FREQUENCIES + 1) * len(linear.inputs)
        periods_of_each = float(np.clip(ALL_PERIODS / max(responses, 1), LEAST_PERIODS, MOST_PERIODS))
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
    return np.sort(rates[rates > max(ZERO * max(fastest, norm), SLOW * swinging)]), swinging


def _swings(eigenvalues: NDArray[np.complex128]) -> NDArray[np.bool_]:
    return np.abs(eigenvalues.imag) > SWINGS * np.abs(eigenvalues)


def excitations(linear: LinearModel, horizon: float) -> list[Excitation]:
    """Return all excitations: an offset per coordinate; a step and a few sines per input."""
    chosen = [Excitation("offset", j) for j in range(len(linear.states))]
    frequencies = _frequencies(linear.eigenvalues(), horizon) if len(linear.states) else []
    for k in range(len(linear.inputs)):
        chosen.append(Excitation("step", k))
        chosen += [Excitation("sine", k, frequency) for frequency in frequencies]
    return chosen


def _frequencies(eigenvalues: NDArray[np.complex128], horizon: float) -> list[float]:
    """Return a few frequencies around the model's own: those of its modes, half the lowest and twice the highest."""
    counting, _ = _modes(eigenvalues)
    whole = 2 * np.pi / horizon
    own = counting[(counting > 0.25 * whole) & (counting < MOST_PERIODS * whole)]
    distinct = [w for i, w in enumerate(own) if i == 0 or w > 1.1 * own[i - 1]]
    if not distinct:
        return [2 * whole]
    if len(distinct) > MOST_FREQUENCIES - 2:
        spread = np.linspace(0, len(distinct) - 1, MOST_FREQUENCIES - 2).round().astype(int)
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
