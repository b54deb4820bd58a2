"""Noise of a plant, as a sampled filter sees it.

White noise w of the spectral density W, E[w(t) w(s)'] = W delta(t - s), that enters through G is after one sample

    Q_d = int_0^h exp(A s) G W G' exp(A' s) ds,

which Van Loan (1978) reads off one matrix exponential: exp([[-A, G W G'], [0, A']] h) = [[., X], [0, Phi']] gives
Q_d = Phi X. exp(-A h) of a stiff plant leaves all numbers behind: there h is halved until it does not, and doubled
again by Q_d(2 h) = Q_d(h) + Phi(h) Q_d(h) Phi(h)'.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import expm

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.linear_model.model import LinearModel

__all__ = ["noise_through", "sampled_noise"]


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
    for name, value in intensities.items():
        if not (np.isfinite(value) and value >= 0):
            raise UsageError(f"The intensity of the noise of '{name}' is {value:g}: it must be finite and 0 or more.")
    columns = [linear.inputs.index_of(name, "an input of the linear model") for name in intensities]
    return linear.B[:, columns], np.diag(np.array(list(intensities.values()), dtype=np.float64))


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
