"""Which derivatives and outputs depend on which states and inputs, as the model description declares it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fmilin.fmi.read.description import Unknown
from fmilin.fmi.read.layout import Layout, Scalar

__all__ = ["declared_structure"]


_LARGEST = 50_000_000
"""Entries of a structure; above it would take more memory than it saves time."""


def declared_structure(layout: Layout, outputs: Sequence[Scalar], inputs: NDArray[np.intp]) -> NDArray[np.bool_] | None:
    """Return the declared structure of ``(derivatives, outputs)`` over ``(states, inputs)``.

    ``outputs``: the chosen ones, ny of them. ``inputs`` (nu,): positions of the chosen inputs. Returns (N + ny, N +
    nu): a claim of the FMU, no proof. None when nothing is declared. A dependency on an array is one on each of its
    elements; what is not declared may depend on everything.
    """
    description = layout.description
    unknowns = {u.variable.reference: u for u in (*description.outputs, *description.derivatives)}
    if all(u.dependencies is None for u in unknowns.values()):
        return None
    n = len(layout.states)
    width = n + len(layout.inputs)
    if (n + len(outputs)) * width > _LARGEST:
        return None
    columns: dict[tuple[int, int], list[int]] = {}  # lists: in odd descriptions an input is a state, too
    for i, s in enumerate((*layout.states, *layout.inputs)):
        columns.setdefault(s.key, []).append(i)
    chosen = np.concatenate((np.arange(n), n + inputs))
    structure = np.ones((n + len(outputs), width), dtype=bool)
    rows: dict[int, NDArray[np.bool_]] = {}  # the elements of an array share theirs
    for row, scalar in enumerate((*layout.derivatives, *outputs)):
        unknown = unknowns.get(scalar.variable.reference)
        if scalar.key in columns:  # it is a state or an input itself
            structure[row] = False
            structure[row, columns[scalar.key]] = True
        elif unknown is not None and unknown.dependencies is not None:
            reference = scalar.variable.reference
            if reference not in rows:
                rows[reference] = _row(layout, unknown, columns, width)
            structure[row] = rows[reference]
    return structure[:, chosen]


def _row(layout: Layout, unknown: Unknown, columns: dict[tuple[int, int], list[int]], width: int) -> NDArray[np.bool_]:
    row = np.zeros(width, dtype=bool)
    known = {s.key for v in unknown.dependencies or () if v.is_float for s in layout.scalars(v)}
    row[[i for key in known for i in columns.get(key, ())]] = True
    return row
