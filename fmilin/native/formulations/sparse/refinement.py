"""Sparse systems solved twice over: residuals in extended precision win back what a factorization loses.

The stiffness of finite elements grows with the fourth power of their number against that of the slowest motion, and a
factorization in double precision loses as many digits. A residual with more digits, solved for with the same factors,
corrects the solution until it is right to double precision, as long as the factors have one digit right (Wilkinson;
Higham, Accuracy and Stability of Numerical Algorithms, chapter 12). Where the machine's long double is no longer than
a double, nothing is gained and nothing lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fmilin.numerics.saddle_point.sparse import SparseFactors

__all__ = ["EXTENDED", "RefinedFactors", "extended"]

EXTENDED = float(np.finfo(np.longdouble).eps)
"""What the residuals are rounded to."""

MOST = 4
"""Corrections; one is enough unless the matrix is very stiff."""

GAIN = 0.1
"""A correction that is not smaller than this part of the one before gains nothing."""


def extended(matrix: Any) -> Any:
    """Return a sparse matrix with entries in extended precision, real or complex."""
    return matrix.astype(np.clongdouble if np.iscomplexobj(matrix) else np.longdouble)


class RefinedFactors:
    """LU factors of a sparse matrix given in extended precision, with iterative refinement.

    Shapes: W (k, k), from :func:`extended` parts. ``what``: for the message when it is singular.
    """

    def __init__(self, W: Any, what: str) -> None:
        self._W = W.tocsr()
        self._kind = np.complex128 if np.iscomplexobj(W) else np.float64
        self._factors = SparseFactors(W.tocsc().astype(self._kind), what)

    def solve(self, right: Any) -> Any:
        """Return W^-1 right, for right (k,) or (k, j), in double precision."""
        right = extended(np.asarray(right))
        x = extended(self._factors.solve(right.astype(self._kind)))
        before = np.inf
        for _ in range(MOST):
            change = self._factors.solve((right - self._W @ x).astype(self._kind))
            size = float(np.max(np.abs(change), initial=0.0))
            if not size < GAIN * before:
                break  # what is left is the residual's own rounding, or the factors have no digit right
            x, before = x + change, size
            if size <= np.finfo(float).eps * float(np.max(np.abs(x), initial=0.0)):
                break
        return x.astype(self._kind)
