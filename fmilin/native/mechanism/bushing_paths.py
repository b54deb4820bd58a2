"""Bushings as paths: their deflections as sums of rows, and a spring along each eigenvector of their matrices.

The six deflections are the second origin in the axes of the first frame, and half of what is antisymmetric in the
rotation of the second frame, sin(angle) times its axis:

    l_i = a_i' (p_2 - p_1),     l_(3 + i) = (a_k' b_j - a_j' b_k)/2,     (i, j, k) cyclic.

With K = sum k_m w_m w_m' a stiffness is as many springs as it has eigenvectors, each along the length w_m' l.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.native.mechanism.elements import Bushing
from fmilin.native.mechanism.markers import Markers
from fmilin.native.mechanism.rows import Key, Rows

NOTHING = 1e-14  # of the largest eigenvalue


class SpringPath(NamedTuple):
    """A spring and a damper along a weighted sum of rows."""

    name: str
    rows: list[tuple[Key, float]]
    stiffness: float
    damping: float


def spring_paths(bushing: Bushing, markers: Markers, rows: Rows) -> tuple[list[SpringPath], dict[Key, int]]:
    """Return the springs along eigenvectors, and the points from which rows along lines measure."""
    bodies = (bushing.first, bushing.second)
    base, end = (
        markers.point(body, placement.position)
        for body, placement in zip(bodies, (bushing.first_placement, bushing.second_placement), strict=True)
    )
    a = [markers.direction(bushing.first, tuple(axis)) for axis in bushing.first_placement.R.T.tolist()]
    b = [markers.direction(bushing.second, tuple(axis)) for axis in bushing.second_placement.R.T.tolist()]
    deflections: list[list[tuple[Key, float]]] = [[(rows.line(bodies, end, e), 1.0)] for e in a]
    bases = {key: base for ((key, _),) in deflections}
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        deflections.append([(rows.hinge(bodies, (a[k], b[j])), 0.5), (rows.hinge(bodies, (a[j], b[k])), -0.5)])
    paths: list[SpringPath] = []
    for is_damper, matrix in enumerate((bushing.stiffness, bushing.damping)):
        for value, w in _modes(np.array(matrix)):
            along = [(key, weight * c) for c, part in zip(w, deflections, strict=True) if c for key, weight in part]
            laws = (0.0, value) if is_damper else (value, 0.0)
            paths.append(SpringPath(f"{bushing.name}[{len(paths) + 1}]", along, *laws))
    return paths, bases


def _modes(matrix: NDArray[np.float64]) -> Iterator[tuple[float, list[float]]]:
    """Return the eigenvalues that are not zero, and their eigenvectors; the axes where the matrix is diagonal."""
    diagonal = not (matrix - np.diag(np.diag(matrix))).any()
    values, vectors = (np.diag(matrix), np.eye(6)) if diagonal else np.linalg.eigh(matrix)
    for value, w in zip(values.tolist(), vectors.T.tolist(), strict=True):
        if abs(value) > NOTHING * np.abs(values).max():
            yield value, w
