"""Which states are coordinates of an estimate, and which rows of the constraints determine the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.errors import FmilinError, NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.rank import ROW_ROUNDING_TOLERANCE, TINY
from fmilin.signals import FloatArray

PIVOT_TOLERANCE = 1e-9  # pivots of the normalized gradient below this count as zero
VANISHING_ROW_TOLERANCE = 1e-9  # part of its usual norm up to which a row of the gradient says nothing at a point


@dataclass
class CoordinateSplit:
    """Which states are coordinates, and which rows of h determine the others."""

    coordinates: list[int]
    dependent: list[int]
    rows: list[int]

    def __post_init__(self) -> None:
        # as compiled code takes them
        self.numbers = np.array([*self.coordinates, *self.dependent, *self.rows], dtype=np.float64)
        self.square, self.opposite = np.ix_(self.rows, self.dependent), np.ix_(self.rows, self.coordinates)


class RowTerms:
    """How large the terms are that the rows of the gradient H of the invariants are sums of, in sizes of the states.

    A row that is rounding of its terms is not a constraint: its norm tells nothing, and it must not be normalized. The
    derivative of |q|^2 = 1 along rates that keep it is such a row everywhere.
    """

    def __init__(self, invariants: Invariants, t: float, x: FloatArray, u: FloatArray) -> None:
        self._invariants = invariants
        self.usual = self._usual_sizes(t, x, u)

    def at(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the sizes of the terms at a point, (m,); infinite for rows that are rounding wherever tried."""
        terms = self._invariants.gradient(t, x, u).reference
        return np.where(
            self.usual > 0, np.maximum(terms, VANISHING_ROW_TOLERANCE / ROW_ROUNDING_TOLERANCE * self.usual), np.inf
        )

    def _usual_sizes(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the largest norm of each row at the point and at points and inputs near it; 0 where all is rounding.

        A hidden row may vanish at rest: speeds and inputs are varied, too. Points near the manifold serve as well.
        """
        random = np.random.default_rng(4)
        scales, largest = self._invariants.scales, np.zeros(len(self._invariants))
        input_scales = self._invariants.model.inputs.scales(u)
        for amount in (0.0, 1e-3, 0.1, 0.1):
            moved = x + amount * scales * random.uniform(-1, 1, len(x))
            varied = u + amount * input_scales * random.uniform(-1, 1, len(u))
            try:
                gradient = self._invariants.gradient(t, moved, varied)
            except FmilinError:  # outside the domain of the model
                continue
            norms = np.linalg.norm(gradient.H * scales, axis=1)
            floor = np.maximum(
                ROW_ROUNDING_TOLERANCE * gradient.reference, 10 * np.linalg.norm(gradient.error * scales, axis=1)
            )
            largest = np.fmax(largest, np.where(norms > floor, norms, 0.0))
        return largest


def choose_chart(
    H: FloatArray, scales: FloatArray, count: int, terms: FloatArray, fixed: Sequence[int] = ()
) -> CoordinateSplit:
    """Return the best chart by elimination with complete pivoting of H (m, N), of rank ``count``.

    ``terms`` (m,) are the sizes of what the rows are sums of: a row that is rounding of them is left out.
    """
    A = H * scales
    sizes = np.linalg.norm(A, axis=1)
    is_row = sizes > np.maximum(ROW_ROUNDING_TOLERANCE * terms, TINY)
    A = np.where(is_row[:, None], A / np.where(is_row, sizes, 1.0)[:, None], 0.0)
    A[:, list(fixed)] = 0.0
    rows, dependent = [], []
    for _ in range(count):
        i, j = np.unravel_index(int(np.argmax(np.abs(A))), A.shape)
        if not abs(A[i, j]) > PIVOT_TOLERANCE:
            raise NumericalError(
                "The estimate is at a singular configuration: no choice of coordinates is regular there. Begin again "
                "elsewhere with reset()."
            )
        A = A - np.outer(A[:, j] / A[i, j], A[i])
        A[i], A[:, j] = 0.0, 0.0
        rows.append(int(i))
        dependent.append(int(j))
    coordinates = [k for k in range(H.shape[1]) if k not in dependent]
    return CoordinateSplit(coordinates, sorted(dependent), sorted(rows))
