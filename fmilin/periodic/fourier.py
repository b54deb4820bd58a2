"""Matrices that repeat, as trigonometric polynomials through equally spaced samples, and the harmonic state space.

The polynomials converge faster than any power of the number of samples (Trefethen, Spectral methods in MATLAB, chapter
3). In the harmonic state space (Wereley 1990) y = Y_0 + sum_k Y_kc cos kWt + Y_ks sin kWt with coefficients that move
slowly: with A(t) = sum A_k e^(ikWt) the complex ones obey Y_j' = sum_k A_(j-k) Y_k - i j W Y_j. Its eigenvalues are
the exponents, shifted by i k W: the middle ones are good, those at the ends of the truncation are not.
"""

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray, Signal, Signals

ComplexArray = NDArray[np.complex128]


def coefficients(samples: FloatArray | ComplexArray) -> ComplexArray:
    """Return the Fourier coefficients (m, ...) of m samples, in the order of :func:`harmonics`."""
    return np.asarray(np.fft.fft(samples, axis=0) / len(samples))


def harmonics(count: int) -> NDArray[np.intp]:
    """Return the orders k of e^(ikWt), shape (count,): 0, 1, ..., -1."""
    return np.round(np.fft.fftfreq(count, 1 / count)).astype(np.intp)


def matrix_of_harmonic(samples: FloatArray | ComplexArray, k: int) -> ComplexArray:
    """Return the coefficient of e^(ikWt), zeros beyond what the samples tell."""
    if abs(k) > (len(samples) - 1) // 2:
        return np.zeros(samples.shape[1:], dtype=np.complex128)
    return np.asarray(coefficients(samples)[k])


class Interpolant:
    """The trigonometric polynomial through samples (m, ...) at phases 0, 1/m, ..., which are parts of a period."""

    def __init__(self, samples: FloatArray) -> None:
        self._shape, m = samples.shape[1:], len(samples)
        c = coefficients(samples.reshape(m, -1))[: m // 2 + 1]
        c[1:] *= 2
        if m % 2 == 0:
            c[-1] /= 2  # of the highest harmonic the samples tell the cosine alone
        # Harmonics that are rounding are left out: most motions have few.
        size = np.abs(c).max(axis=1, initial=0.0)
        self._orders = np.flatnonzero(size > 1e-17 * size.max(initial=0.0))
        self._c = c[self._orders]

    def __call__(self, phases: FloatArray) -> FloatArray:
        """Return the values at phases of any shape, with this shape in front."""
        turns = 2 * np.pi * np.multiply.outer(phases.ravel(), self._orders)
        values = np.cos(turns) @ self._c.real - np.sin(turns) @ self._c.imag
        return np.asarray(values.reshape(*phases.shape, *self._shape))


def derivative(samples: FloatArray, period: float) -> FloatArray:
    """Return the rates of change at the samples, shape (m, ...)."""
    m = len(samples)
    orders = harmonics(m).astype(np.float64)
    # An even number of samples shows the cosine of the highest harmonic alone, which has no slope there.
    if m % 2 == 0:
        orders[m // 2] = 0.0
    shape = (m, *([1] * (samples.ndim - 1)))
    rate = np.fft.ifft(np.fft.fft(samples, axis=0) * (2j * np.pi / period * orders).reshape(shape), axis=0)
    return np.asarray(rate.real)


def with_upper_harmonics_mistaken(samples: FloatArray, signs: FloatArray) -> FloatArray:
    """Return samples with the upper fifth of their harmonics taken for a constant of such ``signs`` (...)."""
    # Harmonics beyond those that m samples tell are mistaken for lower ones (aliasing), and where coefficients decay
    # they are smaller than the last reported ones: that changes the accuracy only.
    m = len(samples)
    c = np.fft.fft(samples, axis=0)
    upper = np.abs(harmonics(m)) > 2 * m // 5
    tail = np.abs(c[upper]).sum(axis=0) / m
    c[upper] = 0.0
    return np.asarray(np.fft.ifft(c, axis=0).real + signs * tail)


def harmonic_matrix(samples: FloatArray, count: int) -> FloatArray:
    """Return what a product with samples (m, r, c) makes of harmonics up to ``count``, real: (r (2n+1), c (2n+1))."""
    orders = range(-count, count + 1)
    blocks = np.block([[matrix_of_harmonic(samples, j - k) for k in orders] for j in orders])
    r, c = samples.shape[1:]
    blocks = blocks.reshape(r * len(orders), c * len(orders))
    return np.asarray((_compute_mixing(count, r, inverse=True) @ blocks @ _compute_mixing(count, c)).real)


def compute_rotation_terms(order: int, count: int, speed: float) -> FloatArray:
    """Return what the turning of the harmonics adds to A, real: -i j W in the complex coefficients."""
    complex_part = np.diag(np.repeat(-1j * speed * np.arange(-count, count + 1), order))
    return np.asarray((_compute_mixing(count, order, inverse=True) @ complex_part @ _compute_mixing(count, order)).real)


def harmonic_signals(signals: Signals, count: int) -> Signals:
    """Return names for mean, cosines and sines of signals, all of one harmonic together."""
    labels = ["0", *(f"{part}{k}" for k in range(1, count + 1) for part in ("c", "s"))]
    return Signals(Signal(f"{signal.name}.{label}", signal.unit) for label in labels for signal in signals)


def _compute_mixing(count: int, size: int, *, inverse: bool = False) -> ComplexArray:
    """Return how complex coefficients -n ... n follow from mean, cosines and sines, for ``size`` signals each."""
    U = np.zeros((2 * count + 1, 2 * count + 1), dtype=np.complex128)
    U[count, 0] = 1.0
    for k in range(1, count + 1):
        U[count + k, 2 * k - 1 : 2 * k + 1] = 0.5, -0.5j
        U[count - k, 2 * k - 1 : 2 * k + 1] = 0.5, 0.5j
    return np.asarray(np.kron(np.linalg.inv(U) if inverse else U, np.eye(size)))
