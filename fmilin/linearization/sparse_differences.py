"""Sparse derivatives by differences, of large models that declare which rates depend on which states.

Columns of which no row depends on two are moved together, as the general algorithm does
(:meth:`fmilin.manifold.neighbourhood.Neighbourhood.by_differences`): what costs less is that only declared entries are
stored. The coloring is kept with the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.manifold.branches import require_no_joint_kink
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.model.interface import Model
from fmilin.model.memory import find_memory
from fmilin.model.sparse_model_derivatives import SparseJacobian
from fmilin.numerics.differences.coloring import column_groups
from fmilin.numerics.differences.differences import Differences
from fmilin.numerics.sparse_rows import reduce_rows
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS

if TYPE_CHECKING:
    from scipy import sparse

MAX_GROUPS = 64
"""Groups of columns up to which their differences are taken here. A row that depends on all states has as many as there
are states: the general algorithm, which moves each alone, takes no longer then."""


@dataclass(frozen=True, eq=False)
class GroupedPattern:
    """The entries that a model declares, (N + ny, N + nu) row by row, and groups of columns that are moved together."""

    indices: NDArray[np.intp]  # columns of the entries
    indptr: NDArray[np.intp]
    rows: NDArray[np.intp]  # and their rows
    groups: list[list[int]]
    group_of_column: NDArray[np.intp]

    @classmethod
    def of_structure(cls, structure: NDArray[np.bool_]) -> GroupedPattern:
        """Return the pattern of a declared structure."""
        rows, indices = np.nonzero(structure)
        indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(structure)))))
        groups = column_groups(structure)
        group_of_column = np.empty(structure.shape[1], dtype=np.intp)
        for number, group in enumerate(groups):
            group_of_column[group] = number
        return cls(indices, indptr.astype(np.intp), rows, groups, group_of_column)

    def attach(self, entries: FloatArray) -> sparse.csr_array[Any]:
        """Return the matrix with these entries."""
        from scipy import sparse

        shape = len(self.indptr) - 1, len(self.group_of_column)
        return sparse.csr_array((entries, self.indices.copy(), self.indptr.copy()), shape=shape)


@dataclass(frozen=True, eq=False)
class SparseSlopes:
    """Derivatives by differences, and errors of the same entries."""

    derivatives: SparseJacobian
    errors: FloatArray


def find_grouped_pattern(model: Model) -> GroupedPattern | None:
    """Return the entries that a model declares; None where it declares none, or its columns form too many groups."""
    structure = model.structure
    if structure is None:
        return None
    memory = find_memory(model).setdefault("grouped pattern", {})
    key = (structure.shape, np.packbits(structure).tobytes())
    if key not in memory:
        memory.clear()
        # Columns that one row depends on are all in different groups.
        is_thin = structure.sum(axis=1).max(initial=0) <= MAX_GROUPS
        memory[key] = GroupedPattern.of_structure(structure) if is_thin else None
    pattern: GroupedPattern | None = memory[key]
    return pattern if pattern is not None and len(pattern.groups) <= MAX_GROUPS else None


def difference_sparsely(nearby: Neighbourhood, pattern: GroupedPattern, *, is_checked: bool) -> SparseSlopes | None:
    """Return derivatives by differences near a point in coordinates that are all states.

    None where the general algorithm is to examine it: the two sides of the point differ, a slope holds near the point
    only, or the declared structure is refuted. Raises KinkError where derivatives along several columns together jump.
    """
    options = Differences()
    together = nearby.along_groups(pattern.groups, options)
    if together.jump.any() or together.narrow:
        return None
    columns, rows = pattern.indices, pattern.rows
    groups = pattern.group_of_column[columns]
    moved = nearby.measure_groups(pattern.groups)[columns]
    entries, errors = together.J[rows, groups] / moved, together.error[rows, groups] / moved
    direction = nearby.mixed_direction
    terms = entries * direction[columns]
    slope, size, error = (
        reduce_rows(np.add, parts, pattern.indptr) for parts in (terms, np.abs(terms), errors * direction[columns])
    )
    if not nearby.confirms(slope, size, error, options):
        return None
    if not _write_exact_rows(nearby, pattern, entries, errors):
        return None
    if is_checked:
        largest = reduce_rows(np.maximum, np.abs(entries) * nearby.scales[columns], pattern.indptr)
        require_no_joint_kink(nearby, largest)
    no_rows = np.empty(0, dtype=np.intp)
    return SparseSlopes(SparseJacobian(pattern.attach(entries), 0, pattern.groups, no_rows), errors)


def _write_exact_rows(nearby: Neighbourhood, pattern: GroupedPattern, entries: FloatArray, errors: FloatArray) -> bool:
    """Write, in place, rates of positions and outputs that are states or inputs; False where one is not declared."""
    n = nearby.n
    exact = {row: (state, EPS) for row, state in nearby.pairs.items()}
    for row, copy in nearby.model.copies.items():
        exact[n + row] = (copy.index, EPS) if copy.kind == "state" else (n + copy.index, 0.0)
    for row, (column, error) in exact.items():
        part = slice(pattern.indptr[row], pattern.indptr[row + 1])
        is_itself = pattern.indices[part] == column
        if not is_itself.any():
            return False
        entries[part], errors[part] = is_itself, np.where(is_itself, error, 0.0)
    return True
