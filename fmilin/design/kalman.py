"""Sampled Kalman filters on linear models, exact over a sample; optimal feedback and filters along periodic motions.

    predict   y- = y0 + f_d + Phi (y - y0) + Gamma (u - u0),         P- = Phi P Phi' + Q_d
    correct   y  = y- + L (m - m0 - C (y- - y0) - D (u - u0)),       L = P- C' (C P- C' + R)^-1

in the independent coordinates y. White noise w, E[w(t) w(s)'] = W delta(t - s), that enters through G is after a sample
Q_d = int_0^h exp(A s) G W G' exp(A' s) ds = Phi X, of exp([[-A, G W G'], [0, A']] h) = [[., X], [0, Phi']] (Van Loan
1978). For stiff plants h is halved, and doubled again by Q_d(2 h) = Q_d(h) + Phi(h) Q_d(h) Phi(h)'.

The Hamiltonian [[A, -G], [-Q, -A']] of -S' = A' S + S A - S G S + Q leads from one end of an interval to the other,
x_1 = F x_0 - W l_1 and l_0 = H x_0 + F' l_1 with l = S x: three matrices that follow for two intervals from those of
each, and for a period that is doubled until all time to come is in H, which then is S (structured doubling; Chu, Fan,
Lin and Wang, International Journal of Control 77, 2004). Nothing grows on the way, as exponentials of the Hamiltonian
would. A filter is the regulator of the transposed system, whose time runs backwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from scipy.linalg import expm

from fmilin.design.laws import Savable, linear_law
from fmilin.design.measurement import factor_of, measurement_covariance
from fmilin.families.periodic.model import PeriodicModel
from fmilin.ground import FloatArray, NumericalError, Shown, Signals, UsageError, as_numbers
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction.transformation import discretize
from fmilin.motion.periodic.fourier import Interpolant
from fmilin.motion.periodic.transition import factors


def noise_through(linear: LinearModel, intensities: Mapping[str, float]) -> tuple[FloatArray, FloatArray]:
    """Return how noise enters ``linear`` through inputs: columns G of B, shape (P, k), and W, shape (k, k), diagonal.

    ``intensities`` are spectral densities of white noise, in the input's unit squared times seconds.

    UsageError, UnknownNameError: when an intensity is negative or no number, or there is no such input.
    """
    columns = require_intensities(linear.inputs, intensities)
    return linear.B[:, columns], np.diag(np.array(list(intensities.values()), dtype=np.float64))


def require_intensities(inputs: Signals, intensities: Mapping[str, float]) -> list[int]:
    """Return which inputs noise enters through; refuse densities that are negative or no numbers."""
    for name, value in intensities.items():
        if not (np.isfinite(as_numbers(value, f"The intensity of the noise of '{name}'")) and value >= 0):
            raise UsageError(f"The intensity of the noise of '{name}' is {value:g}: it must be finite and 0 or more.")
    return [inputs.index_of(name, "an input of the linear model") for name in intensities]


def sampled_noise(A: FloatArray, G: FloatArray, W: FloatArray, sample_time: float) -> FloatArray:
    """Return the covariance that white noise adds over one sample (Van Loan): shape (P, P), positive semidefinite.

    Raises UsageError when the sample time is not positive.

    Parameters
    ----------
    A, G, W : array, shapes (P, P), (P, k), (k, k)
        W is the spectral density.
    sample_time : float, in seconds

    Examples
    --------
    >>> import numpy as np
    >>> from fmilin.design import sampled_noise
    >>> sampled_noise(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]]), np.array([[3.0]]), 1.0)
    array([[1. , 1.5],
           [1.5, 3. ]])
    """
    if not (np.isfinite(as_numbers(sample_time, "The sample time")) and sample_time > 0):
        raise UsageError(f"A sample time of {sample_time:g} s does not exist: give a positive one, in seconds.")
    P = len(A)
    halvings = max(0, int(np.ceil(np.log2(max(float(np.linalg.norm(A, 1)) * sample_time, 1.0)))))
    E = expm(np.block([[-A, G @ W @ G.T], [np.zeros((P, P)), A.T]]) * (sample_time / 2**halvings))
    Phi = E[P:, P:].T
    Q: FloatArray = Phi @ E[:P, P:]
    for _ in range(halvings):
        Q, Phi = Q + Phi @ Q @ Phi.T, Phi @ Phi
    return (Q + Q.T) / 2


@dataclass(frozen=True, eq=False)
class Estimates:
    """What a filter made of measured data."""

    states: FloatArray  # (K, P), of the independent coordinates after each measurement, absolute
    innovations: FloatArray  # (K, m), measurement less its prediction


@dataclass(frozen=True, eq=False, repr=False)
class KalmanFilter(Shown, Savable):
    """A steady Kalman filter from sample to sample; :func:`kalman_filter` makes it."""

    linear: LinearModel  #: the continuous one; its outputs are the measurements
    sampled: LinearModel  #: the same over one sample, inputs held
    Q: FloatArray  #: shape (P, P); covariance that the process noise adds in a sample
    R: FloatArray  #: shape (m, m); covariance of the measurements
    gain: FloatArray  #: L, shape (P, m)
    predicted: FloatArray  #: shape (P, P), covariance of the estimate's error before a measurement
    covariance: FloatArray  #: shape (P, P), of that after it

    @property
    def innovation_covariance(self) -> FloatArray:
        """C P- C' + R, shape (m, m)."""
        return np.asarray(self.sampled.C @ self.predicted @ self.sampled.C.T + self.R)

    def predict(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """Return the estimate a sample after ``y``, shape (P,), with the inputs ``u`` (nu,) held; absolute values."""
        s = self.sampled
        return np.asarray(s.y0 + s.f0 + s.A @ (y - s.y0) + s.B @ (u - self.linear.u0))

    def correct(self, y: FloatArray, u: FloatArray, measured: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the estimate after what was ``measured``, shape (m,), and the innovation, shape (m,).

        ``y``, shape (P,), is what was predicted, ``u``, shape (nu,), what was applied at that time; absolute values.
        """
        s = self.sampled
        innovation: FloatArray = measured - self.linear.g0 - s.C @ (y - s.y0) - s.D @ (u - self.linear.u0)
        return y + self.gain @ innovation, innovation

    def run(self, inputs: FloatArray, measured: FloatArray, start: FloatArray | None = None) -> Estimates:
        """Return what the filter makes of recorded data.

        Raises UsageError when shapes do not fit.

        Parameters
        ----------
        inputs, measured : array, shapes (K, nu), (K, m)
            At the samples, absolute values; inputs are held from each sample to the next.
        start : array, shape (P,), optional
            What is predicted for the first sample; that of the operating point by default.
        """
        inputs, measured = np.asarray(inputs, dtype=np.float64), np.asarray(measured, dtype=np.float64)
        K, (m, nu) = len(measured), self.sampled.D.shape
        if inputs.shape != (K, nu) or measured.shape != (K, m):
            raise UsageError(
                f"Inputs are of the shape {inputs.shape} and measurements of {measured.shape}; the filter needs "
                f"(K, {nu}) and (K, {m})."
            )
        y = self.sampled.y0 if start is None else np.asarray(start, dtype=np.float64)
        states, innovations = np.empty((K, len(y))), np.empty((K, m))
        for k in range(K):
            states[k], innovations[k] = self.correct(y, inputs[k], measured[k])
            y = self.predict(states[k], inputs[k])
        return Estimates(states, innovations)

    def nees(self, estimates: Estimates, true: FloatArray) -> FloatArray:
        """Return the normalized estimation errors squared e' P^-1 e, shape (K,): on average P where all is right.

        ``true``, shape (K, P), are the independent coordinates as they were, ``estimates`` those of :meth:`run`.
        """
        e = np.asarray(true) - estimates.states
        return np.asarray(np.einsum("ki,ki->k", e, np.linalg.solve(self.covariance, e.T).T))

    def linear_model(self) -> LinearModel:
        """Return the filter as a sampled linear model: from inputs and measurements to the estimates.

        At a sample its inputs are what was held over the sample that ends, and what is measured now; its states are
        the estimates of the sample before, ``estimated.NAME``, its outputs those of now, by the names of the
        coordinates.
        """
        s, plant, L = self.sampled, self.linear, self.gain
        kept = np.eye(len(s.A)) - L @ s.C
        A, B, f0 = kept @ s.A, np.hstack([kept @ s.B - L @ s.D, L]), kept @ s.f0
        read = [*plant.inputs, *plant.outputs]
        inputs = Signals(x.starting_at(v) for x, v in zip(read, (*plant.u0, *plant.g0), strict=True))
        states = [x.starting_at(v) for x, v in zip(s.states, s.y0.tolist(), strict=True)]
        outputs = Signals(x.starting_at(v) for x, v in zip(states, (s.y0 + f0).tolist(), strict=True))
        named = Signals(replace(x, name=f"estimated.{x.name}", aliases=()) for x in states)
        return linear_law("Kalman filter", plant, (A, B, A, B), (named, inputs, outputs), s.sample_time, f0)


def kalman_filter(
    linear: LinearModel,
    sample_time: float,
    *,
    process: Mapping[str, float] | FloatArray,
    measured: Mapping[str, float] | FloatArray,
    held: bool = False,
) -> KalmanFilter:
    """Return the steady sampled Kalman filter of a linear model.

    Raises UsageError or UnknownNameError when a name is unknown, an output has no variance, or a variance is not
    positive; NumericalError when there is no stable filter: something unstable cannot be seen, or noise reaches no
    undamped mode.

    Parameters
    ----------
    linear : LinearModel
        Continuous; its outputs are measured: choose them, or make them by :func:`measurement`.
    sample_time : float, in seconds
    process : mapping of str to float, or array of shape (P, P)
        By input: the spectral density of white noise that enters through it (unit squared times seconds), or, with
        ``held``, the variance of noise that is constant over each sample (unit squared). As an array: Q_d itself.
    measured : mapping of str to float, or array of shape (m, m)
        By output: the variance of a sample's noise. Every output needs one.
    held : bool
        Whether process noise is held over each sample.
    """
    import control

    sampled = discretize(linear, sample_time)
    R = measurement_covariance(linear.outputs, measured)
    if isinstance(process, Mapping):
        G, W = noise_through(sampled if held else linear, process)
        Q = G @ W @ G.T if held else sampled_noise(linear.A, G, W, sample_time)
    else:
        Q = np.asarray(process, dtype=np.float64)
    P = len(sampled.A)
    factor_of(Q, P, "The covariance of the process noise")
    try:
        predicted, _, _ = control.dare(sampled.A.T, sampled.C.T, Q, R, method="scipy")
    except (control.ControlArgument, control.ControlDimension, np.linalg.LinAlgError, ValueError) as error:
        raise NumericalError(
            f"There is no steady Kalman filter: {error}. Something that does not decay is seen by none of "
            f"{', '.join(linear.outputs.names)}, or no noise reaches it."
        ) from None
    predicted = np.real((predicted + predicted.T) / 2)
    S = sampled.C @ predicted @ sampled.C.T + R
    gain = np.linalg.solve(S, sampled.C @ predicted).T
    I_LC = np.eye(P) - gain @ sampled.C
    if np.max(np.abs(np.linalg.eigvals(sampled.A @ I_LC)), initial=0.0) >= 1.0:
        raise NumericalError(
            "There is no stable steady Kalman filter: something that does not decay is seen by none of "
            f"{', '.join(linear.outputs.names)}, or no noise reaches it."
        )
    covariance = I_LC @ predicted @ I_LC.T + gain @ R @ gain.T
    return KalmanFilter(linear, sampled, Q, R, gain, predicted, covariance)


DOUBLINGS = 60
AT_REST = 1e-14  # relative: a change of S in twice the time by which it has converged

Passage = tuple[FloatArray, FloatArray, FloatArray]  # F, W, H, each (..., P, P)


def periodic_riccati(A: FloatArray, G: FloatArray, Q: FloatArray, period: float) -> FloatArray:
    """Return S (m, P, P) at m equally spaced times, with which A - G S is stable; ``A``, ``G``, ``Q`` are (m, P, P).

    NumericalError: when there is none.
    """
    m, P = A.shape[:2]
    hamiltonian = np.block([[A, -G], [-Q, -np.swapaxes(A, 1, 2)]])
    steps = factors(Interpolant(hamiltonian), period, m)
    b, c, d = steps[:, :P, P:], steps[:, P:, :P], steps[:, P:, P:]
    each = np.linalg.inv(d)
    parts: Passage = (np.swapaxes(each, 1, 2), -b @ each, -each @ c)
    while len(parts[0]) > m:
        F, W, H = parts
        parts = _joined((F[0::2], W[0::2], H[0::2]), (F[1::2], W[1::2], H[1::2]))
    S = np.empty((m, P, P))
    S[0] = _for_ever(parts)
    for k in range(m - 1, 0, -1):
        F, W, H = (part[k] for part in parts)
        S[k] = H + F.T @ S[(k + 1) % m] @ np.linalg.solve(np.eye(P) + W @ S[(k + 1) % m], F)
    return (S + np.swapaxes(S, 1, 2)) / 2


def _joined(first: Passage, then: Passage) -> Passage:
    """Return the passage through two intervals, one after the other."""
    (F, W, H), (F_, W_, H_) = first, then
    both = np.linalg.solve(np.eye(F.shape[-1]) + W @ H_, np.concatenate((F, W), axis=-1))
    through, back = np.split(both, 2, axis=-1)
    over = np.swapaxes(F_, -1, -2)
    return F_ @ through, W_ + F_ @ back @ over, H + np.swapaxes(F, -1, -2) @ H_ @ through


def _for_ever(parts: Passage) -> FloatArray:
    whole: Passage = reduce(_joined, zip(*parts, strict=True))
    with np.errstate(all="ignore"):
        for _ in range(DOUBLINGS):
            before, whole = whole[2], _joined(whole, whole)
            if not np.isfinite(whole[2]).all():
                break
            if np.abs(whole[2] - before).max() <= AT_REST * np.abs(whole[2]).max():
                return whole[2]
    raise NumericalError("Riccati's equation has no solution that repeats itself and makes the system stable.")


@dataclass(frozen=True, eq=False, repr=False)
class PeriodicGain(Shown):
    """What :func:`periodic_lqr` and :func:`periodic_kalman_filter` return."""

    #: shape (m, nu, P) or (m, P, ny); K of the regulator u = u0(t) - K(t) (y - y0(t)), or L of the filter, at the
    #: times of the periodic model
    gain: FloatArray
    #: shape (m, P, P); the solution of Riccati's equation: what is still to be paid for a deviation, or the filter's
    #: covariance
    riccati: FloatArray
    #: with A - B K, or A - L C: ``closed.floquet()`` says how fast deviations, or errors, die out
    closed: PeriodicModel

    def at(self, time: float) -> FloatArray:
        """Return the gain at a ``time`` in seconds, shape (nu, P) or (P, ny): the harmonics of the samples say it."""
        phase = np.array((time - self.closed.times[0]) / self.closed.period)
        return Interpolant(self.gain)(phase)


def periodic_lqr(periodic: PeriodicModel, state_cost: FloatArray, input_cost: FloatArray) -> PeriodicGain:
    """Return the state feedback along a periodic motion that costs least: the integral of y' Q y + u' R u.

    Raises UsageError when shapes do not fit, R is not positive definite, or the coordinates do not come back to
    themselves; NumericalError when no feedback makes the motion stable, or the cost does not see what is neutral or
    grows.

    Parameters
    ----------
    periodic : PeriodicModel
    state_cost, input_cost : array, shapes (P, P), (nu, nu)
        Q and R of the independent coordinates and inputs.
    """
    Q, R = np.asarray(state_cost, dtype=np.float64), np.asarray(input_cost, dtype=np.float64)
    P, nu = len(periodic.states), len(periodic.inputs)
    if Q.shape != (P, P) or R.shape != (nu, nu):
        raise UsageError(f"The costs are of the shapes {Q.shape} and {R.shape}; they need {(P, P)} and {(nu, nu)}.")
    if nu == 0 or np.linalg.eigvalsh(R + R.T).min() <= 0:
        raise UsageError("The cost of the inputs must be positive definite, and there must be inputs.")
    over_B = np.linalg.solve(R, np.swapaxes(periodic.B, 1, 2))
    every = np.broadcast_to(Q, periodic.A.shape)
    what = f"no feedback through {', '.join(periodic.inputs.names)} reaches it, or the cost does not see it"
    S = _solved(periodic, periodic.A, periodic.B @ over_B, every, what)
    K = over_B @ S
    return _checked(periodic, K, S, periodic.B @ K, what)


def periodic_kalman_filter(
    periodic: PeriodicModel, *, process: Mapping[str, float], measured: Mapping[str, float]
) -> PeriodicGain:
    """Return the Kalman filter along a periodic motion, y_hat' = A y_hat + B u + L (out - C y_hat - D u).

    Raises UsageError or UnknownNameError when a name is unknown, an output has no noise, or a density is negative;
    NumericalError when there is no stable filter: something that grows cannot be seen, or noise reaches nothing that is
    neutral.

    Parameters
    ----------
    periodic : PeriodicModel
        Its outputs are measured.
    process, measured : mapping of str to float
        Spectral densities of white noise, in the unit squared times seconds, by input and by output (each needs one).
    """
    R = measurement_covariance(periodic.outputs, measured)
    columns = require_intensities(periodic.inputs, process)
    G = periodic.B[:, :, columns]
    noise = G * np.array(list(process.values()), dtype=np.float64) @ np.swapaxes(G, 1, 2)
    over_C = np.linalg.solve(R, periodic.C)
    backwards = -np.arange(len(periodic.A))
    dual = [np.swapaxes(M, 1, 2)[backwards] for M in (periodic.A, np.swapaxes(over_C, 1, 2) @ periodic.C, noise)]
    what = f"{', '.join(periodic.outputs.names) or 'no output'} does not see it, or no noise reaches it"
    covariance = _solved(periodic, dual[0], dual[1], dual[2], what)[backwards]
    L = covariance @ np.swapaxes(over_C, 1, 2)
    return _checked(periodic, L, covariance, L @ periodic.C, what)


def _solved(periodic: PeriodicModel, A: FloatArray, G: FloatArray, Q: FloatArray, what: str) -> FloatArray:
    periodic.require_closed("Riccati's equation")
    try:
        return periodic_riccati(A, G, Q, periodic.period)
    except (NumericalError, np.linalg.LinAlgError):
        raise NumericalError(f"Something grows or is neutral along the motion, and stays so: {what}.") from None


def _checked(periodic: PeriodicModel, gain: FloatArray, S: FloatArray, back: FloatArray, what: str) -> PeriodicGain:
    closed = replace(periodic, A=periodic.A - back, symmetries={}, f0=None)
    if not closed.floquet().margin < 0:
        raise NumericalError(f"Something grows or is neutral along the motion, and stays so: {what}.")
    return PeriodicGain(gain, S, closed)
