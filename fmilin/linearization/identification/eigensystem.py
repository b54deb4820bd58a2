"""The eigensystem realization algorithm (Juang and Pappa 1985): from Markov parameters to matrices.

With Markov parameters Y_k = C A^(k-1) B, k = 1, 2, ..., and block Hankel matrices

    H(k) = [Y_(k+1) Y_(k+2) ...; Y_(k+2) Y_(k+3) ...; ...],    H(0) = P diag(s) Q',

the realization of order n from the n largest singular values s is

    A = s^-1/2 P' H(1) Q s^-1/2,   B = s^1/2 Q' E_nu,   C = E_ny' P s^1/2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import ROUNDING

MOST = 60  # the highest order that is tried
LARGE, OVERSAMPLING, POWERS = 400, 40, 2
"""Rows and columns from which only a leading part is computed; directions beyond that part; power iterations."""


@dataclass(frozen=True)
class Hankel:
    """H(0) taken apart, from which realizations of every order follow."""

    singular_values: FloatArray  # (r,), falling; of the scaled Hankel matrix
    P: FloatArray
    Q: FloatArray
    next: FloatArray
    row_scales: FloatArray
    column_scales: FloatArray

    @classmethod
    def of(cls, markov: FloatArray, row_scales: FloatArray, column_scales: FloatArray) -> Hankel:
        """Build it from Markov parameters Y_1, Y_2, ... (K, ny, nu) and the sizes of outputs and inputs."""
        Y = markov / row_scales[:, None] * column_scales[None, :]
        K, ny, nu = Y.shape
        rows = K // 2
        columns = K - rows
        blocks = np.lib.stride_tricks.sliding_window_view(Y, columns, axis=0)  # (rows + 1, ny, nu, columns)
        tall = np.moveaxis(blocks, 3, 2)  # (i, ny, j, nu): Y_(i + j + 1)
        H0 = tall[:rows].reshape(rows * ny, columns * nu)
        H1 = tall[1 : rows + 1].reshape(rows * ny, columns * nu)
        P, s, Qt = _leading(H0)
        return cls(s, P, Qt.T, H1, row_scales, column_scales)

    def realization(self, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return A, B, C of order n, in the sizes of the data."""
        ny, nu = len(self.row_scales), len(self.column_scales)
        P, Q, root = self.P[:, :n], self.Q[:, :n], np.sqrt(self.singular_values[:n])
        A = (P.T @ self.next @ Q) / root[:, None] / root[None, :]
        B = root[:, None] * Q.T[:, :nu] / self.column_scales
        C = P[:ny] * root * self.row_scales[:, None]
        return A, B, C


def _leading(H: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the singular value decomposition, of a large matrix its leading :data:`MOST` values alone.

    By random projections with power iterations (Halko, Martinsson and Tropp 2011, algorithms 4.4 and 5.1).
    """
    if min(H.shape) <= LARGE:
        P, s, Qt = np.linalg.svd(H, full_matrices=False)
        return P, s, Qt
    basis = np.linalg.qr(H @ np.random.default_rng(2011).standard_normal((H.shape[1], MOST + OVERSAMPLING)))[0]
    for _ in range(POWERS):
        basis = np.linalg.qr(H @ np.linalg.qr(H.T @ basis)[0])[0]
    P, s, Qt = np.linalg.svd(basis.T @ H, full_matrices=False)
    return basis @ P, s, Qt


def significant(singular_values: FloatArray, noise: FloatArray, shape: tuple[int, int]) -> int:
    """Return how many singular values of an m x n matrix exceed what noise e in it makes, e (sqrt(m) + sqrt(n))."""
    if not singular_values.size or singular_values[0] == 0:
        return 0
    size = float(np.sqrt(np.mean(noise**2))) if noise.size else 0.0
    rounding = ROUNDING * float(singular_values[0])
    floor = max(size * (np.sqrt(shape[0]) + np.sqrt(shape[1])), rounding * np.sqrt(max(shape)))
    return min(int(np.count_nonzero(singular_values > floor)), MOST)
