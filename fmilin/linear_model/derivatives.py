"""How a linear model changes with a parameter, and what that does to its eigenvalues.

Simple eigenvalues: dl/dp = w' (dA/dp) v / w' v with the left and right eigenvectors. Those that coincide form a group:
with bases W, V of its invariant subspaces the eigenvalues of (W' V)^-1 W' (dA/dp) V, where A is a multiple of the unit
matrix on it; where it is defective, each would move by a root of dp, and only the mean of the group has a derivative.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.linear_model.subspaces import Complex, eigenvectors, groups_of, on_subspace

GROUPED = 1e-6  # distance of eigenvalues that belong to one group, relative to the largest; twofold ones split by 1e-8
DEFECTIVE = 1e-6  # what A is on a group beside a multiple of the unit matrix, relative to the largest eigenvalue


@dataclass(frozen=True, eq=False)
class MatrixErrors:
    """Estimated absolute errors of the entries of a derivative; each array has the shape of its matrix."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray


@dataclass(frozen=True, eq=False)
class Derivative:
    """Derivatives by one parameter, per unit of it, the point following where it is trimmed or has to close loops.

    Attributes
    ----------
    A, B, C, D : array, shapes (P, P), (P, nu), (ny, P), (ny, nu)
    states : array, shape (N,)
        How the point's states move: as the trim has it where the point was trimmed, else the dependent ones alone.
    inputs : array, shape (nu,)
        How its inputs move: those that the trim solved for.
    value : float
        The parameter at the point, in its unit.
    errors : MatrixErrors
    """

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    states: FloatArray
    inputs: FloatArray
    value: float
    errors: MatrixErrors = field(repr=False)


def eigenvalue_derivatives(A: FloatArray, slopes: list[FloatArray]) -> tuple[Complex, list[list[int]]]:
    """Return dl/dp, shape (P, k), for sorted eigenvalues and dA/dp, k of them; and the groups that are defective."""
    if not len(A):
        return np.zeros((0, len(slopes)), dtype=np.complex128), []
    values, left, right = eigenvectors(A)
    order = np.lexsort((values.imag, values.real))
    values, left, right = (a[..., order] for a in (values, left, right))
    with np.errstate(divide="ignore", invalid="ignore"):  # of groups, which follow
        sizes = np.einsum("ij,ij->j", np.conj(left), right)
        moved = [np.einsum("ij,ij->j", np.conj(left), slope @ right) / sizes for slope in slopes]
    derivatives, defective = np.array(moved, dtype=np.complex128).reshape(len(slopes), len(A)).T.copy(), []
    largest = float(np.max(np.abs(values), initial=0.0)) or 1.0
    for group in groups_of(values, np.full(len(values), GROUPED * largest / 2)):
        if len(group) == 1:
            continue
        others = np.delete(values, group)
        _, V = on_subspace(A, values[group], others)
        _, W = on_subspace(A.T, values[group].conj(), others.conj())
        own = np.linalg.solve(np.conj(W).T @ V, np.conj(W).T)
        block = own @ A @ V
        spread = np.linalg.norm(block - np.trace(block) / len(group) * np.eye(len(group)))
        is_defective = spread > DEFECTIVE * largest
        if is_defective:
            defective.append(group)
        for j, block in enumerate(own @ np.reshape(slopes, (-1, *A.shape)) @ V):
            if is_defective:
                derivatives[group, j] = np.trace(block) / len(group)
            else:
                moves = np.linalg.eigvals(block)
                derivatives[group, j] = moves[np.lexsort((moves.imag, moves.real))]
    return derivatives, defective
