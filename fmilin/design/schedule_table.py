"""Rows of numbers over one to three scheduling variables: linear in each between the points of a grid with holes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fmilin.families.grid import Grid, around
from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray


@dataclass(frozen=True, eq=False)
class ScheduleTable:
    """What a schedule looks up."""

    grid: Grid  # of the family
    over: tuple[str, ...]  # its axes, in the order of the scheduling variables
    rows: FloatArray  # (points, width)
    good: NDArray[np.bool_]  # (points,)
    reasons: Sequence[str]  # why a point has no row

    @property
    def axes(self) -> tuple[FloatArray, ...]:
        """The values of every scheduling variable, ascending."""
        return tuple(np.sort(self.grid.axes[name]) for name in self.over)

    @property
    def numbers(self) -> NDArray[np.intp]:
        """The points in the order of these axes, the last one fastest."""
        names = list(self.grid.axes)
        numbers = np.arange(self.grid.size).reshape(self.grid.shape).transpose([names.index(n) for n in self.over])
        for d, name in enumerate(self.over):
            numbers = np.take(numbers, np.argsort(self.grid.axes[name]), axis=d)
        return numbers.ravel()

    @property
    def first(self) -> FloatArray:
        """The values of the first point with a row, shape (k,)."""
        values = self.grid.values(int(next(k for k in self.numbers if self.good[k])))
        return np.array([values[name] for name in self.over])

    def nearest(self, at: FloatArray) -> FloatArray:
        """Return the values inside the grid's ranges that are nearest, shape (k,)."""
        axes = zip(at, self.axes, strict=True)
        return np.array([min(v, a[-1]) if v >= a[0] else a[0] for v, a in axes])  # of NaN the first

    def corners(self, at: FloatArray) -> dict[int, float]:
        """Return the points around and their weights, none of them zero."""
        return around(self.grid, dict(zip(self.over, at.tolist(), strict=True)))

    def weights(self, at: FloatArray) -> dict[int, float]:
        """Return the points around and their weights; refuse what is outside, and where a point around is missing."""
        where = ", ".join(f"{name} = {v:g}" for name, v in zip(self.over, at.tolist(), strict=True))
        if (self.nearest(at) != at).any():
            ranges = ", ".join(f"{n} from {a[0]:g} to {a[-1]:g}" for n, a in zip(self.over, self.axes, strict=True))
            raise UsageError(
                f"The schedule is asked at {where}, outside its range: {ranges}. Sweep a larger range, keep the plant "
                "inside this one, or choose outside='nearest', which holds the gains of its edge."
            )
        weights = self.corners(at)
        for number in weights:
            if not self.good[number]:
                corner = ", ".join(f"{name} = {v:g}" for name, v in self.grid.values(number).items())
                raise NumericalError(
                    f"The schedule has a hole at {where}: it has nothing at {corner}. {self.reasons[number]}"
                )
        return weights

    def row(self, at: FloatArray) -> FloatArray:
        """Return the interpolated row, shape (width,)."""
        weights = self.weights(at)
        return np.asarray(np.array(list(weights.values())) @ self.rows[list(weights)])

    def slopes(self, at: FloatArray) -> FloatArray:
        """Return how the row moves with each scheduling variable, by the next points on both sides: (width, k)."""
        columns = []
        for d, axis in enumerate(self.axes):
            below = max(int(np.searchsorted(axis, at[d], side="left")) - 1, 0)
            above = min(int(np.searchsorted(axis, at[d], side="right")), len(axis) - 1)
            ends = [np.where(np.arange(len(at)) == d, axis[j], at) for j in (below, above)]
            columns.append((self.row(ends[1]) - self.row(ends[0])) / (axis[above] - axis[below]))
        return np.array(columns).T

    def between(self, most: int = 4000) -> FloatArray:
        """Return values to look at, shape (points, k): those of the grid and the middles, fewer of very many."""
        lines = [np.sort(np.concatenate((a, (a[1:] + a[:-1]) / 2))) for a in self.axes]
        every = np.array(list(product(*lines)))
        return every[:: -(-len(every) // most)]
