"""The interface of a system that needs no symbols: matrices as values on fixed places, and exact derivatives.

    M(q) q'' + G' lambda = f(q, v, u),    g(q) = 0,    G v = 0,    G q'' + b(q, v) = 0,    b = D^2 g [v, v]

(González et al. eq. 1; Spencer eq. 2.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraint
from fmilin.signals import FloatArray, Signal

IntArray = NDArray[np.intp]


class Pattern:
    """The places of a sparse matrix in the order of its values; those of a place that occurs several times add up."""

    def __init__(
        self, rows: Sequence[int] | IntArray, columns: Sequence[int] | IntArray, shape: tuple[int, int]
    ) -> None:
        self.rows = np.asarray(rows, dtype=np.intp)
        self.columns = np.asarray(columns, dtype=np.intp)
        self.shape = shape
        flat = self.columns * shape[0] + self.rows  # column by column, as CSC stores them
        self._positions, self._slots = np.unique(flat, return_inverse=True)
        self._indices = (self._positions % max(shape[0], 1)).astype(np.int32)
        counts = np.bincount(self._positions // max(shape[0], 1), minlength=shape[1])
        self._starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)

    @property
    def size(self) -> int:
        """How many values are needed."""
        return self.rows.size

    def sparse(self, values: FloatArray) -> Any:
        """Return the matrix as a scipy.sparse CSC array; entries with the value zero are kept."""
        from scipy.sparse import csc_array

        return csc_array((self._sum_duplicates(values), self._indices, self._starts), shape=self.shape)

    def dense(self, values: FloatArray) -> FloatArray:
        """Return the matrix as an array."""
        full = np.zeros(self.shape[0] * self.shape[1])
        full[self._positions] = self._sum_duplicates(values)
        return full.reshape(self.shape, order="F")

    def _sum_duplicates(self, values: FloatArray) -> FloatArray:
        return np.bincount(self._slots, weights=values, minlength=self._positions.size).astype(np.float64, copy=False)

    @classmethod
    def from_blocks(cls, parts: Sequence[tuple[Pattern, int, int]], shape: tuple[int, int]) -> Pattern:
        """Return the pattern of a matrix made of ``parts``: (pattern, first row, first column) each."""
        rows = np.concatenate([p.rows + i for p, i, _ in parts]) if parts else np.empty(0, np.intp)
        columns = np.concatenate([p.columns + j for p, _, j in parts]) if parts else np.empty(0, np.intp)
        return cls(rows, columns, shape)

    @property
    def T(self) -> Pattern:
        """The pattern of the transposed matrix, for the same values."""
        return Pattern(self.columns, self.rows, (self.shape[1], self.shape[0]))


@dataclass(frozen=True, slots=True)
class SparseDerivatives:
    """Values of the derivatives of e = f - M a - G' lambda at held a and lambda, on the patterns of the equations."""

    e_q: FloatArray  # (k,), on ``pattern_e_q`` and ``pattern_e_v``
    e_v: FloatArray  # (k,), on ``pattern_e_q`` and ``pattern_e_v``


@dataclass(frozen=True, slots=True)
class Output:
    """The value of an output, a function of q and v, with its gradient, each of shape (n,)."""

    value: float
    by_q: FloatArray
    by_v: FloatArray


class NumericEquations(ABC):
    """Lagrange's equations as numbers. All methods are for one point; time does not enter."""

    name: str
    description: str
    # n, m: numbers of coordinates and of constraints
    n: int
    m: int
    pattern_M: Pattern  # shape (n, n)
    pattern_G: Pattern  # (m, n), of G, and of d(G v)/dq, too
    pattern_e_q: Pattern  # shape (n, n)
    pattern_e_v: Pattern  # shape (n, n)
    input_matrix: FloatArray  # (n, nu), B = df/du: inputs enter f linearly
    inputs: Sequence[Signal]
    # outputs, further: the outputs by name, and quantities that may be asked for as outputs
    outputs: Mapping[str, Signal]
    further: Mapping[str, Signal]
    parameters: Mapping[str, float]  # constants that the constraints' expressions use
    independent: tuple[str, ...]  # recommended coordinates and velocities

    @abstractmethod
    def coordinates(self) -> list[Signal]:
        """Return q with start values, n of them."""

    @abstractmethod
    def velocities(self) -> list[Signal]:
        """Return v = q' with start values, n of them."""

    @abstractmethod
    def declared(self) -> list[Constraint]:
        """Return g as expressions over names, m of them: what the general linearizer and FMUs read."""

    @abstractmethod
    def mass(self, q: FloatArray) -> FloatArray:
        """Return the values of M on ``pattern_M``."""

    @abstractmethod
    def forces(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return f without inputs, shape (n,), velocity-dependent inertia forces included."""

    @abstractmethod
    def residuals(self, q: FloatArray) -> FloatArray:
        """Return g, shape (m,)."""

    @abstractmethod
    def jacobian(self, q: FloatArray) -> FloatArray:
        """Return the values of G on ``pattern_G``."""

    @abstractmethod
    def bend(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return b = D^2 g [v, v], shape (m,)."""

    @abstractmethod
    def slopes(self, q: FloatArray, v: FloatArray, a: FloatArray, multipliers: FloatArray) -> SparseDerivatives:
        """Return the derivatives of e = f - M a - G' lambda with a = q'' and lambda held."""

    @abstractmethod
    def rate_slopes(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return the values of d(G v)/dq, v held, on ``pattern_G``; d b/dv is twice that."""

    @abstractmethod
    def bend_slopes(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return the values of db/dq, v held, on ``pattern_G``."""

    @abstractmethod
    def output(self, name: str, q: FloatArray, v: FloatArray) -> Output:
        """Return one of ``outputs`` or ``further`` with its gradient."""
