"""Sums and extremes over the stored entries of each row of a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray


def reduce_rows(operation: np.ufunc, entries: FloatArray, indptr: NDArray[np.integer[Any]]) -> FloatArray:
    """Return ``operation`` over the stored entries of each row, as ``np.maximum``; 0 for rows without any.

    >>> reduce_rows(np.maximum, np.array([3.0, 1.0]), np.array([0, 2, 2]))
    array([3., 0.])
    """
    result = np.zeros(len(indptr) - 1)
    filled = np.flatnonzero(np.diff(indptr) > 0)
    if len(filled):
        result[filled] = operation.reduceat(entries, indptr[filled])
    return result
