"""Responses of sampled models: both maps are iterated, so that the nonlinear response needs no approximation.

    z[k+1] = z[k] + R(F(x) - x) - f0,    x = Psi(y0 + z[k], u0 + du[k]),    z = y - y0,

and z[k+1] = A z[k] + B du[k]. The increment at the point itself is subtracted, as rates of continuous models are.
"""

from __future__ import annotations

from itertools import accumulate, repeat

import numpy as np

from fmilin.errors import REFUSALS
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray
from fmilin.verification.reduced import ReducedModel
from fmilin.verification.relaxation import (
    GROWTH,
    PERIODS,
    Deviation,
    Excitation,
    Relaxation,
    ResponseError,
    choose_frequencies,
)

MIN_SAMPLE_COUNT, MAX_SAMPLE_COUNT = 8, 400
"""Samples that responses are followed for: at least, and at most."""
MIN_MULTIPLIER = 1e-8
"""Modulus of an eigenvalue below which a mode is over within a sample: its rate is not asked for."""


class MapResponses(Relaxation):
    """Responses of a reduced map around those of its linear model, sample by sample."""

    def __init__(self, reduced: ReducedModel, linear: LinearModel, samples: int, cost: float) -> None:
        self.reduced, self.linear, self.cost = reduced, linear, cost
        self.times = np.linspace(0.0, samples * linear.sample_time, samples + 1)

    @property
    def sweep_points(self) -> int:
        """Number of points at which a response evaluates the model."""
        return len(self.times)

    def compute_gains(self, count: int, sizes: FloatArray) -> list[FloatArray]:
        """Return matrices by which the linear model amplifies deviations, at ``count`` times, in these sizes."""
        A = self.linear.A * sizes / sizes[:, None]
        step = np.linalg.matrix_power(A, max(1, (len(self.times) - 1) // count))
        return list(accumulate(repeat(step, count), np.matmul))

    def linear_response(self, excitation: Excitation) -> FloatArray:
        """Return what the linear model answers to amplitude one at the samples, shape (nt, P + N + ny)."""
        linear = self.linear
        y = excitation.offset(len(linear.states))
        rows = []
        for t in self.times:
            du = excitation.input_change(t, len(linear.inputs))
            rows.append(np.concatenate((y, linear.T @ y + linear.T_u @ du, linear.C @ y + linear.D @ du)))
            y = linear.A @ y + linear.B @ du
        return np.array(rows)

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
        """Return the deviation at an amplitude; it is exact, whatever the number of sweeps."""
        del sweeps, close, first
        return Deviation(self.integrate_response(excitation, amplitude) - amplitude * unit, settled=True)

    def integrate_response(self, excitation: Excitation, amplitude: float) -> FloatArray:
        """Return the response (nt, P + N + ny) of the map."""
        r = self.reduced
        z = amplitude * excitation.offset(len(r.y0))
        rows = []
        near: FloatArray = r.x0 + r.psi.derivative @ z
        for t in self.times:
            du = amplitude * excitation.input_change(t, len(r.u0))
            try:
                change, x, out = r.evaluate(r.y0 + z, r.u0 + du, near)
            except REFUSALS as error:
                raise ResponseError(str(error)) from None
            row = np.concatenate((z, x - r.x0, out - r.out0))
            if not (np.isfinite(row).all() and np.isfinite(change).all()):
                raise ResponseError("The model returns a value that is not a number.")
            rows.append(row)
            near = x
            z = z + change
        return np.array(rows)


def count_samples(linear: LinearModel, horizon: float | None) -> int:
    """Return how many samples to follow: two periods of the slowest mode, fewer where modes grow."""
    h = linear.sample_time
    if horizon is not None:
        return int(np.clip(np.ceil(horizon / h), 1, MAX_SAMPLE_COUNT))
    rates = _compute_rates(linear)
    moving = np.abs(rates)[np.abs(rates) * h > 2 * np.pi / MAX_SAMPLE_COUNT]
    if not len(moving):
        return MIN_SAMPLE_COUNT
    duration = PERIODS * 2 * np.pi / float(moving.min())
    growth = float(np.max(rates.real, initial=0.0))
    if growth > 0:
        duration = min(duration, float(np.log(GROWTH)) / growth)
    return int(np.clip(np.ceil(duration / h), MIN_SAMPLE_COUNT, MAX_SAMPLE_COUNT))


def list_map_excitations(linear: LinearModel, samples: int) -> list[Excitation]:
    """Return an offset per coordinate; a step and a few sines per input, below half of the sampling frequency."""
    h = linear.sample_time
    chosen = [Excitation("offset", j) for j in range(len(linear.states))]
    rates = _compute_rates(linear)
    frequencies = choose_frequencies(rates, samples * h) if len(rates) else []
    frequencies = [w for w in frequencies if w * h < np.pi] or [np.pi / (4 * h)]
    for k in range(len(linear.inputs)):
        chosen.append(Excitation("step", k))
        chosen += [Excitation("sine", k, frequency) for frequency in frequencies]
    return chosen


def _compute_rates(linear: LinearModel) -> np.ndarray:
    """Return log(z)/h of the eigenvalues z that are not zero."""
    multipliers = linear.eigenvalues() if len(linear.states) else np.zeros(0, dtype=complex)
    multipliers = multipliers[np.abs(multipliers) > MIN_MULTIPLIER]
    return np.asarray(np.log(multipliers.astype(complex)) / linear.sample_time)
