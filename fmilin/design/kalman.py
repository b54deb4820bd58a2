"""Sampled Kalman filters on linear models: the prediction exact over a sample, the noise by its integral.

    predict   y- = y0 + f_d + Phi (y - y0) + Gamma (u - u0),         P- = Phi P Phi' + Q_d
    correct   y  = y- + L (m - m0 - C (y- - y0) - D (u - u0)),       L = P- C' (C P- C' + R)^-1

in the independent coordinates y: a filter on all states of a constrained model has directions in which nothing can
move, and estimates that leave the manifold. White noise w of the spectral density W, E[w(t) w(s)'] = W delta(t - s),
that enters through G is after one sample

    Q_d = int_0^h exp(A s) G W G' exp(A' s) ds,

which Van Loan (1978) reads off one matrix exponential: exp([[-A, G W G'], [0, A']] h) = [[., X], [0, Phi']] gives
Q_d = Phi X. exp(-A h) of a stiff plant leaves all numbers behind: there h is halved until it does not, and doubled
again by Q_d(2 h) = Q_d(h) + Phi(h) Q_d(h) Phi(h)'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import expm

from fmilin.design.laws import Savable, linear_law
from fmilin.design.noise import factor_of, measurement_covariance
from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray, Signals
from fmilin.ground.verbs import Shown
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction.transformation import discretize


def noise_through(linear: LinearModel, intensities: Mapping[str, float]) -> tuple[FloatArray, FloatArray]:
    """Return how noise enters that comes in through inputs.

    Parameters
    ----------
    linear : LinearModel
    intensities : mapping of str to float
        By input: spectral density of white noise, in the input's unit squared times seconds.

    Returns
    -------
    G : array, shape (P, k)
        The columns of B.
    W : array, shape (k, k)
        Diagonal.

    Raises
    ------
    UnknownNameError
        When there is no such input.
    UsageError
        When an intensity is negative or no number.
    """
    columns = require_intensities(linear.inputs, intensities)
    return linear.B[:, columns], np.diag(np.array(list(intensities.values()), dtype=np.float64))


def require_intensities(inputs: Signals, intensities: Mapping[str, float]) -> list[int]:
    """Return which inputs noise enters through; refuse densities that are negative or no numbers."""
    for name, value in intensities.items():
        if not (np.isfinite(value) and value >= 0):
            raise UsageError(f"The intensity of the noise of '{name}' is {value:g}: it must be finite and 0 or more.")
    return [inputs.index_of(name, "an input of the linear model") for name in intensities]


def sampled_noise(A: FloatArray, G: FloatArray, W: FloatArray, sample_time: float) -> FloatArray:
    """Return the covariance that white noise adds over one sample (Van Loan).

    Parameters
    ----------
    A : array, shape (P, P)
    G : array, shape (P, k)
    W : array, shape (k, k)
        Spectral density.
    sample_time : float
        In seconds.

    Returns
    -------
    array, shape (P, P)
        Symmetric, positive semidefinite.

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
    if not (np.isfinite(sample_time) and sample_time > 0):
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
    """A steady Kalman filter from sample to sample; :func:`kalman_filter` makes it.

    Attributes
    ----------
    linear : LinearModel
        The continuous one; its outputs are the measurements.
    sampled : LinearModel
        The same over one sample, inputs held.
    Q : array, shape (P, P)
        Covariance that the process noise adds in a sample.
    R : array, shape (m, m)
        Covariance of the measurements.
    gain : array, shape (P, m)
        L.
    predicted, covariance : array, shape (P, P)
        Of the estimate's error before and after a measurement.
    """

    linear: LinearModel
    sampled: LinearModel
    Q: FloatArray
    R: FloatArray
    gain: FloatArray
    predicted: FloatArray
    covariance: FloatArray

    @property
    def innovation_covariance(self) -> FloatArray:
        """C P- C' + R, shape (m, m)."""
        return np.asarray(self.sampled.C @ self.predicted @ self.sampled.C.T + self.R)

    def predict(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """Return the estimate a sample after ``y``, shape (P,), with the inputs ``u`` (nu,) held; absolute values."""
        s = self.sampled
        return np.asarray(s.y0 + s.f0 + s.A @ (y - s.y0) + s.B @ (u - self._u0))

    def correct(self, y: FloatArray, u: FloatArray, measured: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the estimate after a measurement, shape (P,), and the innovation, shape (m,).

        Parameters
        ----------
        y : array, shape (P,)
            What was predicted; absolute values, as all of these.
        u : array, shape (nu,)
            What was applied at that time.
        measured : array, shape (m,)
        """
        s = self.sampled
        innovation: FloatArray = measured - self._m0 - s.C @ (y - s.y0) - s.D @ (u - self._u0)
        return y + self.gain @ innovation, innovation

    def run(self, inputs: FloatArray, measured: FloatArray, start: FloatArray | None = None) -> Estimates:
        """Return what the filter makes of recorded data.

        Parameters
        ----------
        inputs : array, shape (K, nu)
            Held from each sample to the next; absolute values.
        measured : array, shape (K, m)
            At the samples, absolute values.
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

        Parameters
        ----------
        estimates : Estimates
        true : array, shape (K, P)
            The independent coordinates as they were.
        """
        e = np.asarray(true) - estimates.states
        return np.asarray(np.einsum("ki,ki->k", e, np.linalg.solve(self.covariance, e.T).T))

    def linear_model(self) -> LinearModel:
        """Return the filter as a sampled linear model: from inputs and measurements to the estimates.

        At a sample its inputs are what was held over the sample that ends, and what is measured now; its states are
        the estimates of the sample before, ``estimated.NAME``, its outputs those of now, by the names of the
        coordinates.

        Returns
        -------
        LinearModel
            With ``sample_time``.
        """
        s, plant, L = self.sampled, self.linear, self.gain
        kept = np.eye(len(s.A)) - L @ s.C
        A, B, f0 = kept @ s.A, np.hstack([kept @ s.B - L @ s.D, L]), kept @ s.f0
        read = [*plant.inputs, *plant.outputs]
        inputs = Signals(x.starting_at(v) for x, v in zip(read, (*self._u0, *self._m0), strict=True))
        states = [x.starting_at(v) for x, v in zip(s.states, s.y0.tolist(), strict=True)]
        outputs = Signals(x.starting_at(v) for x, v in zip(states, (s.y0 + f0).tolist(), strict=True))
        named = Signals(replace(x, name=f"estimated.{x.name}", aliases=()) for x in states)
        return linear_law("Kalman filter", plant, (A, B, A, B), (named, inputs, outputs), s.sample_time, f0)

    @property
    def _u0(self) -> FloatArray:
        return np.array([self.linear.point.inputs[name] for name in self.linear.inputs.names])

    @property
    def _m0(self) -> FloatArray:
        return np.array([self.linear.point.outputs[name] for name in self.linear.outputs.names])


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
    sample_time : float
        In seconds.
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
