"""The way by multisines, for models too noisy for pulses: the frequency response, and a subspace fit of it.

All M/2 - 1 frequencies and all inputs are excited at once, with Schroeder's phases that are orthogonal from experiment
to experiment, until the motion is periodic. Inputs are held during each step: the quotient of the transforms is
G(exp(i w)) of the discrete model itself. Its inverse transform gives Markov parameters wrapped around; their Hankel
matrix has the true column space (McKelvey, Akcay and Ljung 1996, algorithm 1); B and D follow by least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.errors import NumericalError
from fmilin.identification.discrete_models import Sampled
from fmilin.identification.pulse_responses import RealizedWay
from fmilin.identification.realization import MAX_ORDER, Realized, align_realization, find_reading
from fmilin.identification.step_size import read_given_step
from fmilin.identification.validation import run_holdout
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray
from fmilin.tolerances import SMALLEST_DIVISOR

LENGTH = 256  # M, steps per period
PERIODS = 8  # of all experiments together; each has at least MIN_PERIODS
MIN_PERIODS = 3  # their spread is the noise
MAX_SETTLING_PERIODS = 6  # periods at most until the motion must be periodic
PERIODICITY_TOLERANCE = 1e-3  # periods must not differ by more than this, beyond noise, relative to the answer
MIN_LOSS_RATIO = 0.1  # mean square left by a fit, in sizes of noise: below, no higher order can be identified
MAX_NUMBERS = 640  # rows and columns of the wrapped Hankel matrix, about
PART = 0.1  # amplitude of a multisine, in sizes of the inputs, where nothing smaller is wanted


@dataclass(frozen=True)
class _Frequencies:
    """G at M frequencies around the unit circle, and its standard errors."""

    G: np.ndarray  # shape (M, ny, nu), complex
    half: np.ndarray  # the same from half of the periods: the change of a model with it estimates its error
    errors: FloatArray


class Multisines(RealizedWay):
    """Linearizes by frequency response."""

    name = "multisine"
    option = "multisine"
    what = "Responses to multisines"

    def identify(self) -> LinearModel:
        """Return the linear model."""
        step = read_given_step(self.stepping, self.experiments) or self.setting.begin
        nu = len(self.experiments.scales)
        periods = max(MIN_PERIODS, -(-PERIODS // nu))
        self.experiments.require(2 * nu, 2 * nu * LENGTH * (MAX_SETTLING_PERIODS + periods), step)
        amplitudes = self.experiments.choose_amplitudes(step).tolist()
        # 20 steps: long enough to see at which instant the outputs are read
        pulses = [self.experiments.pulse(j, a, step, 20) for j, a in enumerate(amplitudes)]
        reading = find_reading(self.experiments, step, pulses)
        waves = _orthogonal(LENGTH, nu) * (PART * self.experiments.scales)[None, :, None]  # (experiments, nu, M)
        settling, spectra = MAX_SETTLING_PERIODS, []
        for wave in waves:
            answers, settling = self._periods(wave, step, reading, settling, periods)
            spectra.append(np.fft.fft(answers, axis=1))
        answered = np.stack(spectra, axis=3)  # (periods, M, ny + N, experiments)
        excited = np.moveaxis(np.fft.fft(waves, axis=2), 2, 0)  # (M, experiments, nu)
        G = np.swapaxes(np.linalg.solve(excited[None], np.swapaxes(answered, 2, 3)), 2, 3)
        error = np.std(G, axis=0) / np.sqrt(periods - 1)
        frequencies = _Frequencies(np.mean(G, axis=0), np.mean(G[: max(1, periods // 2)], axis=0), error)
        holdout = run_holdout(self.experiments, step)
        realized = self._fit(frequencies, step, reading)
        self.note_realization(realized, holdout)
        return self.make_linear(realized, "multisine")

    def _periods(self, w: FloatArray, step: float, reading: str, settling: int, periods: int) -> tuple[FloatArray, int]:
        """Return the answers to w (nu, M) once periodic, (periods, M, ny + N), and the periods that this took."""
        deviations = np.tile(w.T, (settling + periods, 1))
        up, down = self.experiments.run(deviations, step), self.experiments.run(-deviations, step)
        outputs = [(r.at_once if reading == "at once" else r.after) for r in (up, down)]
        states = [np.vstack((np.tile(self.point.states, (1, 1)), r.states[:-1])) for r in (up, down)]
        responses = [
            np.hstack(pair).reshape(settling + periods, LENGTH, -1) for pair in zip(outputs, states, strict=True)
        ]
        answers = (responses[0] - responses[1]) / 2
        self._require_periodic(answers[settling:], (responses[0] + responses[1])[settling:] / 2)
        apart = np.linalg.norm(answers - answers[-1], axis=1)
        # noise is seen after the settling periods; a thousandth of what counts as periodic is nothing
        settled = apart <= 2 * np.max(apart[settling:], axis=0) + 1e-3 * PERIODICITY_TOLERANCE * np.linalg.norm(
            answers[-1], axis=0
        )
        first = int(np.argmax(settled.all(axis=1)))
        return answers[settling:], min(settling, first + 1)

    def _require_periodic(self, answers: FloatArray, rest: FloatArray) -> None:
        """Tell a transient from noise: noise is the same in half the sum of both runs, where the answer cancels."""
        moving = np.linalg.norm(np.std(answers, axis=0), axis=0)
        noise = np.linalg.norm(np.std(rest, axis=0), axis=0)
        size = np.linalg.norm(np.mean(answers, axis=0), axis=0)
        bad = (moving > 2 * noise + PERIODICITY_TOLERANCE * size) | ~np.isfinite(size)
        if bad.any():
            i = int(np.argmax(bad))
            names = (*self.model.outputs.names, *self.model.states.names)
            raise NumericalError(
                f"'{names[i]}' does not become periodic within {MAX_SETTLING_PERIODS} periods of {LENGTH} steps: the "
                "model is unstable, integrates, or is damped too lightly for a frequency response in steps of this "
                "size. Use method='response', or a larger step=."
            )

    def _fit(self, frequencies: _Frequencies, step: float, reading: str) -> Realized:
        ny = len(self.model.outputs)
        rows = np.max(np.abs(frequencies.G), axis=(0, 2))
        rows = np.where(rows > 0, rows, 1.0)
        columns = self.experiments.scales
        G = frequencies.G / rows[:, None] * columns[None, :]
        noise = frequencies.errors / rows[:, None] * columns[None, :]
        P, s = _column_space(G)
        size = float(np.sqrt(np.mean(noise**2))) / np.sqrt(LENGTH)
        # singular values of noise are about 2 sigma sqrt(M/2), here twice that; 1e-13 is rounding of the largest
        floor = max(2.0 * size * 2 * np.sqrt(LENGTH / 2), 1e-13 * float(s[0]))
        # 40: the time of a fit grows with the third power of the order
        most = max(1, min(int(np.count_nonzero(s > floor)), 40))
        orders = [self.stepping.order] if self.stepping.order is not None else range(1, most + 1)
        # entries without noise are exact to 1e-9 of their row: rounding of the solver, not infinitely good
        weights = 1.0 / np.maximum(noise, 1e-9)
        fits: list[_Fit] = []
        for n in orders:
            fits.append(_subspace(G, P, n, weights))
            if fits[-1].leaves_nothing:
                break
        best = fits[int(np.argmin([fit.criterion for fit in fits]))]

        def build_sampled(fit: _Fit) -> Sampled:
            A, B, C, D = fit.matrices
            C, D = C * rows[:, None], D * rows[:, None] / columns[None, :]
            return Sampled(A, B / columns[None, :], C[:ny], D[:ny], step, reading, C[ny:], np.zeros(len(A)))

        G_half = frequencies.half / rows[:, None] * columns[None, :]
        half = _subspace(G_half, _column_space(G_half)[0], len(best.matrices[0]), weights)
        model = build_sampled(best)
        return Realized(model, align_realization(build_sampled(half), model), s[: MAX_ORDER + 1], float("nan"))


@dataclass(frozen=True)
class _Fit:
    matrices: tuple[FloatArray, FloatArray, FloatArray, FloatArray]
    criterion: float  # Akaike's: negative log likelihood with the noise level unknown, a parameter per number
    leaves_nothing: bool  # whether what is left is far below noise and rounding


def _multisine(length: int) -> FloatArray:
    """Return one period of all frequencies below half the sampling frequency, Schroeder's phases, largest value 1."""
    count = length // 2 - 1
    m = np.arange(1, count + 1)
    phases = -np.pi * m * (m - 1) / count
    k = np.arange(length)[:, None]
    wave = np.sum(np.cos(2 * np.pi * m * k / length + phases), axis=1)
    # the transform must not vanish at frequency 0 and at half the sampling frequency: their quotients are used, too
    wave = wave + 1.0 + (-1.0) ** np.arange(length)
    return np.asarray(wave / np.max(np.abs(wave)))


def _orthogonal(length: int, count: int) -> FloatArray:
    """Return ``count`` experiments with ``count`` multisines each, shape (experiments, inputs, length)."""
    # Amplitudes form an orthogonal matrix at every frequency, by phases 2 pi e j / count (Dobrowiecki, Schoukens and
    # Guillaume 2006); the two at which a real signal has no phase take the signs of a regular one.
    spectrum = np.fft.rfft(_multisine(length))
    e = np.arange(count)
    turned = np.exp(-2j * np.pi * np.outer(e, e) / count)
    signs = np.where(np.eye(count, dtype=bool), 1.0, -1.0 / max(count, 2))
    spectra = turned[:, :, None] * spectrum
    spectra[:, :, [0, -1]] = signs[:, :, None] * spectrum[[0, -1]].real
    waves = np.fft.irfft(spectra, n=length, axis=2)
    return np.asarray(waves / np.max(np.abs(waves), axis=2, keepdims=True).max(axis=(0, 1)))


def _column_space(G: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """Return the left singular vectors and the singular values of the wrapped Hankel matrix."""
    impulse = np.fft.ifft(G, axis=0).real  # (M, ny, nu): h[0] is D and what wraps around
    M, ny, nu = impulse.shape
    rows = min(M // 2, max(MAX_NUMBERS // ny, 2))
    columns = min(M - rows, max(MAX_NUMBERS // nu, 2))
    H = np.array([[impulse[1 + i + j] for j in range(columns - 1)] for i in range(rows)])  # (i, j, ny, nu)
    tall = np.moveaxis(H, 2, 1).reshape(rows * ny, (columns - 1) * nu)
    P, s, _ = np.linalg.svd(tall, full_matrices=False)
    return P, s


def _subspace(G: np.ndarray, P: FloatArray, n: int, weights: FloatArray) -> _Fit:
    """Return the model of order n, by weighted least squares."""
    M, ny, nu = G.shape
    A = np.asarray(np.linalg.lstsq(P[:-ny, :n], P[ny:, :n], rcond=None)[0], dtype=np.float64)
    C = P[:ny, :n]
    z = np.exp(2j * np.pi * np.arange(M) / M)
    resolvent = np.linalg.inv(z[:, None, None] * np.eye(n) - A)
    CR = C @ resolvent  # (M, ny, n)
    regressor = np.concatenate((CR, np.broadcast_to(np.eye(ny), (M, ny, ny))), axis=2)
    B, D, loss = np.empty((n, nu)), np.empty((ny, nu)), 0.0
    for j in range(nu):
        W = weights[:, :, j].reshape(-1, 1)
        weighted_regressor = regressor.reshape(M * ny, n + ny) * W
        weighted_target = G[:, :, j].reshape(-1) * W[:, 0]
        stacked = np.vstack((weighted_regressor.real, weighted_regressor.imag))
        target = np.concatenate((weighted_target.real, weighted_target.imag))
        solution = np.linalg.lstsq(stacked, target, rcond=None)[0]
        B[:, j], D[:, j] = solution[:n], solution[n:]
        loss += float(np.sum((target - stacked @ solution) ** 2))
    count = 2 * M * ny * nu
    criterion = count * float(np.log(max(loss, SMALLEST_DIVISOR) / count)) + 2.0 * n * (ny + nu)
    return _Fit((A, B, C, D), criterion, loss < MIN_LOSS_RATIO * count)
