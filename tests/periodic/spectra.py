"""Comparison of spectra of periodic systems."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from fmilin.signals import FloatArray


def mismatch(eigenvalues: np.ndarray, exponents: np.ndarray, period: float) -> float:
    """Return the largest distance of matched values modulo 2 pi i/T, relative to the largest value or 2 pi/T.

    Characteristic exponents are determined up to multiples of 2 pi i/T: the multipliers are the same.
    """
    turn = 2.0 * np.pi / period
    distances = eigenvalues[:, None] - exponents
    distances = distances - 1j * turn * np.round(distances.imag / turn)
    size: FloatArray = np.abs(distances)
    matched = size[linear_sum_assignment(size)]
    scale = max(turn, float(np.abs(eigenvalues).max(initial=0.0)))
    return float(matched.max(initial=0.0)) / scale
