"""Eigenvalues of E z' = A z + B u, how well rounding leaves them, and the state-space of some of them.

The first 2n entries of z are (dq, dv). Infinite eigenvalues are welcome. The state-space of a choice of eigenvalues
comes from the right and left deflating subspaces, by the QZ decomposition (Moler and Stewart), reordered: with bases V
and W of both,

    (W' E V) zeta' = (W' A V) zeta + W' B u,

since W' E and W' A do not see the other subspace.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.errors import NumericalError
from fmilin.formulations.spectrum import ComplexArray
from fmilin.signals import FloatArray

__all__ = ["Eigenpairs", "Pencil", "eigenpairs", "state_space"]


@dataclass(frozen=True, eq=False)
class Pencil:
    """E z' = A z + B u.

    Parameters
    ----------
    E, A : array, shape (k, k)
    B : array, shape (k, nu)
    n : int
        z starts with dq (n,) and dv (n,).
    """

    E: FloatArray
    A: FloatArray
    B: FloatArray
    n: int


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """All eigenvalues of a pencil, sorted by modulus, infinite ones last.

    Parameters
    ----------
    values : array of complex, shape (k,)
    vectors : array of complex, shape (k, k)
        Right eigenvectors, of unit length.
    errors : array, shape (k,)
        A bound on what a backward stable algorithm makes of each eigenvalue: eps (|A| + |s| |E|) |y| |x| / |y' E x|.
    """

    values: ComplexArray
    vectors: ComplexArray
    errors: FloatArray


def eigenpairs(pencil: Pencil) -> Eigenpairs:
    """Return all eigenvalues by QZ.

    Raises
    ------
    NumericalError
        When QZ does not converge, or the pencil holds NaN.
    """
    A, E = pencil.A, pencil.E
    try:
        found: Any = linalg.eig(A, E, left=True, right=True, homogeneous_eigvals=True)
    except (linalg.LinAlgError, ValueError) as error:
        raise NumericalError(f"The eigenvalues cannot be found: {error}.") from error
    (alpha, beta), left, right = found
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        values = np.where(beta == 0, complex(np.inf, 0), alpha / np.where(beta == 0, 1, beta))
        size = np.where(beta == 0, np.inf, np.abs(values))
        overlap = np.abs(np.einsum("ij,ij->j", left.conj(), E @ right))
        lengths = np.linalg.norm(left, axis=0) * np.linalg.norm(right, axis=0)
        backward = np.finfo(float).eps * (np.linalg.norm(A, 2) + size * np.linalg.norm(E, 2))
        errors = np.where(
            np.isfinite(size) & (overlap > 0), backward * lengths / np.where(overlap > 0, overlap, 1), np.nan
        )
    order = np.lexsort((values.imag, size))
    vectors = right / np.linalg.norm(right, axis=0)
    return Eigenpairs(values[order].astype(np.complex128), vectors[:, order].astype(np.complex128), errors[order])


def state_space(pencil: Pencil, chosen: ComplexArray, S: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return A, B and T of the motion that belongs to some eigenvalues, in the coordinates y = S (dq, dv).

    Parameters
    ----------
    pencil : Pencil
    chosen : array of complex, shape (p,)
        Eigenvalues, complex ones with their conjugates.
    S : array, shape (p, 2n)

    Returns
    -------
    tuple of array
        A (p, p), B (p, nu), and T (2n, p) with (dq, dv) = T y.

    Raises
    ------
    NumericalError
        When the eigenvalues cannot be kept apart from the others.
    """
    V = _deflating(pencil.A, pencil.E, chosen)
    W = _deflating(pencil.A.T, pencil.E.T, chosen)
    mass, seen = W.T @ pencil.E @ V, V[: 2 * pencil.n]
    to_y = S @ seen
    back = linalg.inv(to_y) if len(to_y) else to_y
    A = to_y @ linalg.solve(mass, W.T @ pencil.A @ V) @ back if len(to_y) else np.zeros((0, 0))
    B = to_y @ linalg.solve(mass, W.T @ pencil.B) if len(to_y) else np.zeros((0, pencil.B.shape[1]))
    return A, B, seen @ back


def _deflating(A: FloatArray, E: FloatArray, chosen: ComplexArray) -> FloatArray:
    """Return an orthonormal basis of the right deflating subspace of the eigenvalues nearest to ``chosen``."""

    def nearest(alpha: ComplexArray, beta: ComplexArray) -> NDArray[np.bool_]:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values = np.where(beta == 0, np.inf, alpha / np.where(beta == 0, 1, beta))
        free, taken = np.ones(len(values), dtype=bool), np.zeros(len(values), dtype=bool)
        for s in chosen:
            distance = np.where(free & np.isfinite(values), np.abs(values - s), np.inf)
            i = int(np.argmin(distance))
            free[i], taken[i] = False, True
        return taken

    if not len(chosen):
        return np.zeros((len(A), 0))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            sort: Any = nearest  # called once, with all alpha and beta
            *_, Z = linalg.ordqz(A, E, sort=sort, output="real")
    except (linalg.LinAlgError, ValueError, RuntimeWarning) as error:
        raise NumericalError(
            f"The true and the spurious eigenvalues lie so close together that no state-space can be made of the true "
            f"ones alone ({error}). Use the formulation mcs."
        ) from error
    return np.asarray(Z[:, : len(chosen)], dtype=np.float64)
