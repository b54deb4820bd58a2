"""Sampled Kalman filters on linear models: the prediction exact over a sample, the noise by its integral.

    predict   y- = y0 + f_d + Phi (y - y0) + Gamma (u - u0),         P- = Phi P Phi' + Q_d
    correct   y  = y- + L (m - m0 - C (y- - y0) - D (u - u0)),       L = P- C' (C P- C' + R)^-1

in the independent coordinates y. White noise w, E[w(t) w(s)'] = W delta(t - s), that enters through G is after a sample
Q_d = int_0^h exp(A s) G W G' exp(A' s) ds = Phi X, of exp([[-A, G W G'], [0, A']] h) = [[., X], [0, Phi']] (Van Loan
1978). For stiff plants h is halved, and doubled again by Q_d(2 h) = Q_d(h) + Phi(h) Q_d(h) Phi(h)'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import expm

from fmilin.design.laws import Savable, linear_law
from fmilin.design.measurement import factor_of, measurement_covariance
from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray, Signals, as_numbers
from fmilin.ground.verbs import Shown
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction.transformation import discretize


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

    Parameters
    ----------
    A, G, W : array, shapes (P, P), (P, k), (k, k)
        W is the spectral density.
    sample_time : float, in seconds

    Raises
    ------
    UsageError
        When the sample time is not positive.

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

        Parameters
        ----------
        inputs, measured : array, shapes (K, nu), (K, m)
            At the samples, absolute values; inputs are held from each sample to the next.
        start : array, shape (P,), optional
            What is predicted for the first sample; that of the operating point by default.

        Raises
        ------
        UsageError
            When shapes do not fit.
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

    Raises
    ------
    UsageError, UnknownNameError
        When a name is unknown, an output has no variance, or a variance is not positive.
    NumericalError
        When there is no stable filter: something unstable cannot be seen, or noise reaches no undamped mode.
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
