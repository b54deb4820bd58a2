"""Which rates and outputs may depend on which coordinates and inputs, as a model's declared structure says.

A pattern follows from the structure and from which states each coordinate moves, not from the values at a point. It is
kept with the model: further points, and further calls, share it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.model.interface import Model
from fmilin.model.memory import memory_of
from fmilin.numerics.differences.coloring import column_groups, tangent_pattern
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


def find_tangent_pattern(
    model: Model, connections: NDArray[np.bool_], T: FloatArray, x_u: FloatArray
) -> TangentPattern | None:
    """Return the pattern along coordinates and inputs that move the states by T (N, P), x_u (N, nu).

    ``connections`` (m, N) says which states each constraint contains. Returns None if no structure is declared.
    """
    structure = model.structure
    if structure is None:
        return None
    patterns: dict[object, TangentPattern] = memory_of(model).setdefault("tangent patterns", {})
    key = (T.shape, *(np.packbits(part).tobytes() for part in (structure, connections, T != 0, x_u != 0)))
    if key not in patterns:
        if len(patterns) >= MAX_PATTERNS:
            patterns.pop(next(iter(patterns)))
        patterns[key] = TangentPattern(tangent_pattern(structure, connections, T, x_u))
    return patterns[key]
