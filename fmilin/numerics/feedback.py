"""Closing a loop, and deciding whether a matrix is stable beyond the rounding of its eigenvalues.

The loop is L = C (lambda - A)^-1 B + D with positive feedback u = K y, so that the critical point is det(1 - K L) = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

Matrix = NDArray[Any]  # real or complex

ROUNDING_FACTOR = 10.0  # times eps |A| (Frobenius): the backward error that an eigenvalue solver is granted
BOUNDARY_DISTANCE = 1e-3  # relative to |A|: eigenvalues that are tested for rounding; the nearest three always are


@dataclass(frozen=True)
class StateSpace:
    """A linear system: continuous with ``sample_time`` 0, where lambda is s; z otherwise."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    sample_time: float = 0.0

    @property
    def order(self) -> int:
        """The number of states."""
        return len(self.A)

    def balance(self) -> StateSpace:
        """Scale the states by powers of two, so that rows and columns of A are of like size."""
        from scipy.linalg import matrix_balance

        if not self.order:
            return self
        A, (scale, _) = matrix_balance(self.A, permute=False, separate=True)
        return StateSpace(A, self.B / scale[:, None], self.C * scale, self.D, self.sample_time)

    def response(self, point: complex) -> NDArray[np.complex128]:
        """Return the transfer matrix at s or z."""
        return np.asarray(self.C @ np.linalg.solve(point * np.eye(self.order) - self.A, self.B) + self.D)

    def gain(self, frequency: float) -> float:
        """Return the largest singular value of the transfer matrix of a continuous system at a frequency in rad/s."""
        if not (self.B.shape[1] and len(self.C)):
            return 0.0
        return float(np.linalg.norm(self.D if np.isinf(frequency) else self.response(1j * frequency), 2))

    def plus(self, other: StateSpace, sign: float = 1.0) -> StateSpace:
        """Return the sum of two systems side by side."""
        from scipy.linalg import block_diag

        A, C = block_diag(self.A, other.A), np.hstack((self.C, sign * other.C))
        return StateSpace(A, np.vstack((self.B, other.B)), C, self.D + sign * other.D, self.sample_time)

    def minus(self, other: StateSpace) -> StateSpace:
        """Return the difference of two systems."""
        return self.plus(other, -1.0)


def measure_stability(A: Matrix, sample_time: float) -> float:
    """Return how far the eigenvalue nearest to the stability limit is inside, relative to the largest eigenvalue."""
    if not len(A):
        return 1.0
    values = np.linalg.eigvals(A)
    if sample_time:
        return float(1.0 - np.abs(values).max())
    return float(-values.real.max() / (np.abs(values).max() or 1.0))


def close_loop(loop: StateSpace, factor: complex | Matrix = 1.0) -> Matrix | None:
    """Return the matrix of the closed loop u = K y, K being ``factor``; None where 1 - K D is singular."""
    M = invert_return_difference(loop, factor)
    return None if M is None else loop.A + loop.B @ M @ loop.C


def invert_return_difference(loop: StateSpace, factor: complex | Matrix) -> Matrix | None:
    """Return (1 - K D)^-1 K; None where 1 - K D is singular to rounding."""
    K = factor * np.eye(len(loop.D)) if np.ndim(factor) == 0 else np.asarray(factor)
    product = K @ loop.D
    difference = np.eye(len(loop.D)) - product
    smallest = np.linalg.svd(difference, compute_uv=False).min(initial=1.0)
    if smallest <= ROUNDING_FACTOR * len(product) * EPS * (1.0 + float(np.linalg.norm(product))):
        return None
    return np.asarray(np.linalg.solve(difference, K))


def decide_stability(A: Matrix, sample_time: float, errors: FloatArray | None = None) -> bool | None:
    """Return whether all eigenvalues are inside the stability limit; None where rounding, or ``errors`` of A, decides.

    An eigenvalue near the limit counts where no matrix within the backward error of the eigenvalue solver has one
    on it: the smallest singular value of A - lambda at the nearest point of the limit tells. A bound by the condition
    of single eigenvalues would reject stable Jordan blocks: their computed eigenvalues scatter far.
    """
    from scipy.linalg import matrix_balance

    n = len(A)
    if not n:
        return True
    if not np.isfinite(A).all():
        return None
    balanced, (scale, _) = matrix_balance(A, permute=False, separate=True)
    values = np.linalg.eigvals(balanced).astype(np.complex128)
    if sample_time:
        inside = 1.0 - np.abs(values)
        nearest = np.exp(1j * np.angle(values))
    else:
        inside = -values.real
        nearest = 1j * values.imag
    size = float(np.linalg.norm(balanced))
    rounding = ROUNDING_FACTOR * EPS * size
    if errors is not None:
        rounding += float(np.linalg.norm(errors * scale / scale[:, None]))
    by_distance = np.argsort(np.abs(inside))
    tested = [k for rank, k in enumerate(by_distance) if rank < 3 or abs(inside[k]) <= BOUNDARY_DISTANCE * size]
    for point in {complex(nearest[k].real, abs(nearest[k].imag)) for k in tested} | {
        complex(nearest[k].real, -abs(nearest[k].imag)) for k in tested if np.iscomplexobj(A)
    }:
        smallest = np.linalg.svd(balanced - point * np.eye(n), compute_uv=False)[-1]
        if smallest <= rounding:
            return None
    return bool((inside > 0).all())
