"""Transmission zeros followed along a grid.

Zeros pass through infinity, where the first derivative of an output that an input moves changes its sign: from one end
of the real axis to the other. Distances on the Riemann sphere follow them there. At such a point there is one less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from fmilin.families.tracking import find_neighbour
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray

Complex = NDArray[np.complex128]

HALF_PLANE_CROSSING_WEIGHT = 0.5  # cost of a continuation from one half plane to the other: pairs have mirror images


@dataclass(frozen=True, eq=False)
class ZeroTracks:
    """Zeros of a family, shape (number of points, largest number of zeros); a column is one zero."""

    zeros: Complex  # NaN where there is no linear model, or fewer zeros
    errors: FloatArray


def track_zeros(models: Iterable[tuple[int, LinearModel]], shape: tuple[int, ...]) -> ZeroTracks:
    """Return the zeros of models, by their numbers in a grid, each column one zero.

    A point continues the nearest one before it along the last axis, else the axis before, by distance.
    """
    size = int(np.prod(shape))
    zeros: dict[int, Complex] = {}
    errors: dict[int, FloatArray] = {}
    last: dict[int, Complex] = {}  # of each column the zero here, or where there was one before
    for number, linear in models:
        structure = linear.zero_structure()
        before = find_neighbour(shape, number, last)
        columns = np.zeros(0, dtype=np.complex128) if before is None else last[before]
        positions = _continue(columns, structure.zeros)
        count = max([len(columns), *(k + 1 for k in positions.tolist())])
        row, row_errors = np.full(count, np.nan, dtype=np.complex128), np.full(count, np.nan)
        row[positions], row_errors[positions] = structure.zeros, structure.errors
        zeros[number], errors[number] = row, row_errors
        earlier = np.concatenate((columns, np.full(count - len(columns), np.nan)))
        last[number] = np.where(np.isnan(row), earlier, row)
    width = max((len(row) for row in zeros.values()), default=0)
    tracks = ZeroTracks(np.full((size, width), np.nan, dtype=np.complex128), np.full((size, width), np.nan))
    for number, row in zeros.items():
        tracks.zeros[number, : len(row)] = row
        tracks.errors[number, : len(row)] = errors[number]
    return tracks


def _continue(columns: Complex, zeros: Complex) -> NDArray[np.intp]:
    """Return the column of each zero; those that continue none get new ones."""
    positions = np.full(len(zeros), -1, dtype=np.intp)
    if len(columns) and len(zeros):
        sizes = np.abs(np.concatenate((columns, zeros)))
        unit = float(np.median(sizes)) or 1.0
        lengths = np.hypot(unit, np.abs(columns))[:, None] * np.hypot(unit, np.abs(zeros))
        cost = unit * np.abs(columns[:, None] - zeros) / lengths  # half the chord on the Riemann sphere
        cost = cost + HALF_PLANE_CROSSING_WEIGHT * (np.sign(columns.imag)[:, None] * np.sign(zeros.imag) < 0)
        old, new = linear_sum_assignment(cost)
        positions[new] = old
    fresh = np.flatnonzero(positions < 0)
    positions[fresh] = len(columns) + np.arange(len(fresh))
    return positions
