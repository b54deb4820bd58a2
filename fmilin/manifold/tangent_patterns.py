"""Which rates and outputs may depend on which coordinates and inputs, as a model's declared structure says.

A pattern follows from the structure and from which states each coordinate moves, not from the values at a point. It is
kept with the model: further points, and further calls, share it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.model.interface import Model
from fmilin.model.memory import find_memory
from fmilin.numerics.differences.coloring import column_groups, list_entries, tangent_pattern
from fmilin.numerics.differences.richardson import Slopes
from fmilin.signals import FloatArray

MAX_PATTERNS = 16  # of one model: a path along which coordinates change has as many at a time, rarely more


class TangentPattern:
    """Which rows may depend on which columns, (N + ny, P + nu), not to be written to; and the columns' coloring."""

    def __init__(self, depends: NDArray[np.bool_]) -> None:
        depends.setflags(write=False)
        self.depends = depends

    @cached_property
    def column_groups(self) -> list[list[int]]:
        """Groups of columns that may be displaced together, since no row depends on two of them."""
        return column_groups(self.depends)

    @cached_property
    def _entries(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Rows, columns and groups of all entries, column by column."""
        rows, columns = list_entries(self.depends)
        group_of_column = np.empty(self.depends.shape[1], dtype=np.intp)
        for g, group in enumerate(self.column_groups):
            group_of_column[group] = g
        return rows, columns, group_of_column[columns]

    def separate(self, together: Slopes, sizes: FloatArray) -> Slopes:
        """Give each row's slope along a group (r, groups) to the one column of it that the row depends on.

        ``sizes`` (P + nu,) are displacements of the columns in the directions of their groups.
        """
        rows, columns, groups = self._entries
        sizes_of_entries = sizes[columns]
        parts = []
        for part in (together.J, together.error, together.jump, together.bend):
            separate = np.zeros(self.depends.shape)
            separate[rows, columns] = part[rows, groups] / sizes_of_entries
            parts.append(separate)
        narrow = {}
        if together.narrow:  # rare, and the table has an entry for each dependence of a large model
            column_of = dict(zip(zip(rows.tolist(), groups.tolist(), strict=True), columns.tolist(), strict=True))
            narrow = {(i, column_of[i, g]): ends for (i, g), ends in together.narrow.items() if (i, g) in column_of}
        return Slopes(parts[0], parts[1], parts[2], parts[3], narrow)

    def add_terms(self, matrix: FloatArray, direction: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the product (r,) of a matrix of this pattern with a direction, and the sum of its terms' sizes."""
        rows, columns, _ = self._entries
        terms = matrix[rows, columns] * direction[columns]
        count = len(self.depends)
        sums = np.bincount(rows, terms, count).astype(np.float64)
        return sums, np.bincount(rows, np.abs(terms), count).astype(np.float64)


def find_tangent_pattern(
    model: Model, connections: NDArray[np.bool_], T: FloatArray, x_u: FloatArray
) -> TangentPattern | None:
    """Return the pattern along coordinates and inputs that move the states by T (N, P), x_u (N, nu).

    ``connections`` (m, N) says which states each constraint contains. Returns None if no structure is declared.
    """
    structure = model.structure
    if structure is None:
        return None
    patterns: dict[object, TangentPattern] = find_memory(model).setdefault("tangent patterns", {})
    key = (T.shape, *(np.packbits(part).tobytes() for part in (structure, connections, T != 0, x_u != 0)))
    if key not in patterns:
        if len(patterns) >= MAX_PATTERNS:
            patterns.pop(next(iter(patterns)))
        patterns[key] = TangentPattern(tangent_pattern(structure, connections, T, x_u))
    return patterns[key]
