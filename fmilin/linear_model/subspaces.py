"""Eigenvectors, invariant subspaces and Gramians of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray

Complex = NDArray[np.complex128]


def eigenvectors(A: FloatArray) -> tuple[Complex, Complex, Complex]:
    """Return eigenvalues, left and right eigenvectors as columns, all of length 1."""
    from scipy.linalg import eig

    result: Any = eig(A, left=True, right=True)
    return result[0].astype(np.complex128), result[1].astype(np.complex128), result[2].astype(np.complex128)


def groups_of(values: Complex, radius: FloatArray) -> list[list[int]]:
    """Return the connected groups of eigenvalues whose discs overlap."""
    remaining, groups = set(range(len(values))), []
    while remaining:
        group, waiting = [], [remaining.pop()]
        while waiting:
            i = waiting.pop()
            group.append(i)
            near = [j for j in remaining if abs(values[i] - values[j]) <= radius[i] + radius[j]]
            remaining.difference_update(near)
            waiting += near
        groups.append(sorted(group))
    return groups


def on_subspace(A: FloatArray, inside: Complex, outside: Complex) -> tuple[Complex, Complex]:
    """Return A on the invariant subspace of some eigenvalues, and an orthonormal basis of it."""
    from scipy.linalg import schur

    def chosen(value: complex) -> bool:
        return bool(np.abs(inside - value).min() < np.abs(outside - value).min(initial=np.inf))

    result: Any = schur(A.astype(np.complex128), output="complex", sort=chosen)  # type: ignore[call-overload]
    (T, Q), count = result[:2], int(result[2])
    return T[:count, :count], Q[:, :count]


def lyapunov(A: Complex | FloatArray, Q: Complex | FloatArray, *, sampled: bool) -> Any:
    """Return X with A X + X A' + Q = 0; of a sampled motion with A X A' - X + Q = 0."""
    from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov

    return solve_discrete_lyapunov(A, Q) if sampled else solve_continuous_lyapunov(A, -Q)
