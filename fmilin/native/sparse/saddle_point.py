"""The matrix [[M, G'], [G, 0]] of sparse equations of motion: assembled, factorized, and what it says exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray
from fmilin.native.sparse.pattern import Pattern
from fmilin.numerics.saddle_point.factors import Factors
from fmilin.numerics.saddle_point.sparse import LARGEST_DENSE, regular_factors

__all__ = ["SaddleFactors", "SaddlePoint"]


class SaddlePoint:
    """[[M, G'], [G, 0]] (v'; lambda) = (b1; b2), for one pattern and any number of points.

    Shapes: M (n, n), G (m, n). ``subject``: for the message when it is singular.
    """

    def __init__(self, M: Pattern, G: Pattern, subject: str) -> None:
        n, m = self._n, _ = M.shape[0], G.shape[0]
        single = np.flatnonzero(np.bincount(G.rows, minlength=m)[G.rows] == 1)
        self._single = single, G.rows[single], G.columns[single]
        self._subject = subject
        self.pattern = Pattern.joined([(M, 0, 0), (G.T, 0, n), (G, n, 0)], (n + m, n + m))

    def factorized(self, mass: FloatArray, jacobian: FloatArray) -> SaddleFactors:
        """Return the factors at one point, from the values of M and G."""
        values = np.concatenate((mass, jacobian, jacobian))
        is_small = self.pattern.shape[0] <= LARGEST_DENSE
        W = self.pattern.dense(values) if is_small else self.pattern.sparse(values)
        places, rows, columns = self._single
        return SaddleFactors(
            regular_factors(W, self._subject, estimate=is_small), columns, self._n + rows, jacobian[places]
        )


@dataclass(frozen=True)
class SaddleFactors:
    """The factorized matrix; what a constraint on a single coordinate says is taken from it alone.

    A coordinate that is held then has the acceleration zero, not one of 1e-17: rounding is no motion.
    """

    factors: Factors
    # columns, rows: coordinates that a constraint determines alone, and the places of these constraints in the
    # right-hand side
    columns: NDArray[np.intp]
    rows: NDArray[np.intp]
    entries: FloatArray  # their entries of G

    def solve(self, right: FloatArray) -> FloatArray:
        """Return (v'; lambda) for a right-hand side of shape (n + m,) or (n + m, k)."""
        w = self.factors.solve(right)
        w[self.columns] = (right[self.rows].T / self.entries).T
        return w
