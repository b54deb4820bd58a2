"""Columns of [A B] that are regular together show that every combination of the states can change, to first order."""

from __future__ import annotations

import math

import numpy as np

from fmilin.manifold.rank import MAX_REGULAR_CONDITION_NUMBER, is_regular
from fmilin.signals import FloatArray
from fmilin.tolerances import ROUNDING_TOLERANCE

NEAREST_FRACTION = 0.5
"""Of the distance at which a matrix may be singular, 1 / |M^-1|: within it the inverse is at most twice as large."""


class RegularColumns:
    """As many columns of [A B] as there are states, and a matrix of them that was found to be regular.

    With the inverse X of that matrix M0 and |M - M0| |X| <= 1/2 in Frobenius norms, M is regular, and its condition
    number is at most 2 |M| |X|: one pass over the entries replaces an inverse at each point. Farther away the inverse
    is computed, and M takes the place of M0.
    """

    def __init__(self, both: FloatArray, scales: FloatArray, columns: list[int]) -> None:
        """Take [A B] (N, N + nu) along variables of such sizes at a point, where these columns are regular."""
        count = len(both)
        self._columns = np.array(columns, dtype=np.intp)
        self._both, self._weights = both, np.zeros(both.shape)
        self._inverse_norm = self._norm = math.inf
        self.eigenvalue_time: float | None = None  # that was computed for A near this matrix
        entries = np.abs(both) * scales
        # One visible entry in each row and each of these columns shows that all have one.
        self._rows = np.concatenate((np.arange(count), entries[:, columns].argmax(axis=0)))
        self._visible_columns = np.concatenate((entries.argmax(axis=1), self._columns))
        self._remember(both, scales)

    def are_regular(
        self, both: FloatArray, entries: FloatArray, errors: FloatArray, scales: FloatArray, largest: FloatArray
    ) -> bool:
        """Whether no combination of the states is immovable, beyond doubt.

        ``entries`` are those of [A B] in the sizes ``scales``, ``errors`` (N,) of its rows, and ``largest`` the largest
        in each row.
        """
        rows = self._rows
        visible = entries[rows, self._visible_columns]
        if not (visible > np.maximum(errors, ROUNDING_TOLERANCE * largest)[rows]).all():
            return False
        gap = (both - self._both) * self._weights
        distance = math.sqrt(np.vdot(gap, gap))
        is_near = distance * self._inverse_norm <= NEAREST_FRACTION
        if is_near and 2 * (self._norm + distance) * self._inverse_norm <= MAX_REGULAR_CONDITION_NUMBER:
            return True
        if not is_regular((both * scales)[:, self._columns]):
            return False
        self._remember(both, scales)
        return True

    def _remember(self, both: FloatArray, scales: FloatArray) -> None:
        """Take [A B] as that from which distances are measured."""
        self._both = both.copy()
        self.eigenvalue_time = None
        largest = np.abs((both * scales)[:, self._columns]).max(axis=1, keepdims=True)
        self._weights = scales / largest
        matrix = (both * self._weights)[:, self._columns]
        self._norm = float(np.linalg.norm(matrix))
        try:
            self._inverse_norm = float(np.linalg.norm(np.linalg.inv(matrix)))
        except np.linalg.LinAlgError:
            self._inverse_norm = math.inf
