"""Harmonic state space: y = Y_0 + sum_k Y_kc cos kWt + Y_ks sin kWt whose coefficients move slowly (Wereley 1990).

With A(t) = sum A_k e^(ikWt) the complex coefficients obey Y_j' = sum_k A_(j-k) Y_k - i j W Y_j; here the real ones of
cosine and sine are the states, so that the matrices are real. Its eigenvalues are the exponents, shifted by i k W: the
middle ones are good, those at the ends of the truncation are not.
"""

from __future__ import annotations

import numpy as np

from fmilin.ground.signals import FloatArray, Signal, Signals
from fmilin.motion.periodic.fourier import ComplexArray, matrix_of_harmonic


def harmonic_matrix(samples: FloatArray, count: int) -> FloatArray:
    """Return what a product with samples (m, r, c) makes of harmonics up to ``count``, real: (r (2n+1), c (2n+1))."""
    orders = range(-count, count + 1)
    blocks = np.block([[matrix_of_harmonic(samples, j - k) for k in orders] for j in orders])
    r, c = samples.shape[1:]
    blocks = blocks.reshape(r * len(orders), c * len(orders))
    return np.asarray((_mixed(count, r, inverse=True) @ blocks @ _mixed(count, c)).real)


def turning(order: int, count: int, speed: float) -> FloatArray:
    """Return what the turning of the harmonics adds to A, real: -i j W in the complex coefficients."""
    complex_part = np.diag(np.repeat(-1j * speed * np.arange(-count, count + 1), order))
    return np.asarray((_mixed(count, order, inverse=True) @ complex_part @ _mixed(count, order)).real)


def harmonic_signals(signals: Signals, count: int) -> Signals:
    """Return names for mean, cosines and sines of signals, all of one harmonic together."""
    labels = ["0", *(f"{part}{k}" for k in range(1, count + 1) for part in ("c", "s"))]
    return Signals(Signal(f"{signal.name}.{label}", signal.unit) for label in labels for signal in signals)


def _mixed(count: int, size: int, *, inverse: bool = False) -> ComplexArray:
    """Return how complex coefficients -n ... n follow from mean, cosines and sines, for ``size`` signals each."""
    U = np.zeros((2 * count + 1, 2 * count + 1), dtype=np.complex128)
    U[count, 0] = 1.0
    for k in range(1, count + 1):
        U[count + k, 2 * k - 1 : 2 * k + 1] = 0.5, -0.5j
        U[count - k, 2 * k - 1 : 2 * k + 1] = 0.5, 0.5j
    return np.asarray(np.kron(np.linalg.inv(U) if inverse else U, np.eye(size)))
