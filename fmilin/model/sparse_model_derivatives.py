"""Derivatives of a large model at a point, of which only the entries are stored that are not zero by its structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.support.dataclass import dataclass

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, eq=False)
class SparseJacobian:
    """Exact derivatives of rates, then outputs, along all states, then all inputs.

    Entries that are stored may be zero at a point; those that are not are zero everywhere.
    """

    J: sparse.csr_array[Any]  # shape (N + ny, N + nu)
    directions: int  # along which the model was differentiated
    groups: list[list[int]]  # of columns, no two of which stand in one row, but for the full rows
    full_rows: NDArray[np.intp]  # rows that depend on so many columns that these would share no group
