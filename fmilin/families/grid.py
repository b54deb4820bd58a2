"""The grid of a sweep: values by name, every combination of them or one value of each at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import UnknownNameError, UsageError
from fmilin.signals import FloatArray, RealArray


@dataclass(frozen=True)
class Grid:
    """Points of a sweep, numbered in the order of a row-major array: the last axis runs fastest."""

    axes: Mapping[str, FloatArray]  # each (n,), values by name, in the order given
    zipped: bool = False  # the axes are walked together, all of one length: the shape is (n,)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has; (n,) of a zipped one."""
        sizes = tuple(len(values) for values in self.axes.values())
        return sizes[:1] if self.zipped else sizes

    @property
    def size(self) -> int:
        """The number of points."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def dimensions(self) -> tuple[str, ...]:
        """A name for every dimension of the arrays."""
        return ("point",) if self.zipped and len(self.axes) != 1 else tuple(self.axes)

    def index(self, number: int) -> tuple[int, ...]:
        """Return the indices of a point on the grid."""
        return tuple(int(i) for i in np.unravel_index(number, self.shape))

    def values(self, number: int) -> dict[str, float]:
        """Return the values at a point, by name."""
        index = self.index(number)
        at = index * len(self.axes) if self.zipped else index
        return {name: float(values[i]) for (name, values), i in zip(self.axes.items(), at, strict=True)}

    def column(self, name: str) -> FloatArray:
        """Return the value of one axis at every point, shape as the grid."""
        if self.zipped:
            return self.axes[name]
        index = list(self.axes).index(name)
        shape = [1] * len(self.shape)
        shape[index] = -1
        return np.broadcast_to(self.axes[name].reshape(shape), self.shape)

    def before(self, number: int) -> int | None:
        """Return the neighbour that a point starts from: one step back on the last axis that allows it."""
        index = list(self.index(number))
        for d in reversed(range(len(index))):
            if index[d] > 0:
                index[d] -= 1
                return int(np.ravel_multi_index(index, self.shape))
        return None


def build_grid(vary: Mapping[str, Sequence[float] | RealArray], *, zipped: bool = False) -> Grid:
    """Return the grid over these values, checked."""
    if not vary or not isinstance(vary, Mapping):
        raise UsageError("No quantity is varied: give at least one name with its values, vary={'NAME': [V1, V2]}.")
    axes: dict[str, FloatArray] = {}
    for name, numbers in vary.items():
        try:
            values = np.atleast_1d(np.asarray(numbers, dtype=np.float64))
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"The values of '{name}' are not numbers. Give a list of them.") from None
        if values.ndim != 1 or not len(values):
            raise UsageError(f"The values of '{name}' do not form an axis: give at least one number, in one row.")
        if bad := [i for i, v in enumerate(values) if not np.isfinite(v)]:
            raise UsageError(f"Value {bad[0] + 1} of '{name}' is {values[bad[0]]}: all entries must be finite numbers.")
        if len(np.unique(values)) < len(values) and not zipped:
            raise UsageError(f"The values of '{name}' contain a value twice. Give each once.")
        values.flags.writeable = False
        axes[name] = values
    sizes = {name: len(values) for name, values in axes.items()}
    if zipped and len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in sizes.items())
        raise UsageError(f"Axes that are combined value by value need the same number of values: {listed}.")
    return Grid(axes, zipped)


def locate_on_grid(columns: Mapping[str, FloatArray]) -> tuple[Grid, list[int]]:
    """Return the grid on which points lie, and the number of each on it, from the values of every axis, each (n,).

    Of one axis, and where not every combination is there once, the grid is the list of points as it is given.
    """
    table = np.column_stack(list(columns.values()))
    levels = [np.unique(values, return_inverse=True) for values in columns.values()]
    full = Grid({name: values for name, (values, _) in zip(columns, levels, strict=True)})
    if len(columns) < 2 or full.size != len(table) or len(np.unique(table, axis=0)) < len(table):
        return Grid(dict(columns), zipped=True), list(range(len(table)))
    return full, [int(k) for k in np.ravel_multi_index([indices for _, indices in levels], full.shape)]


# Between the points of a grid: weights of the points around, and how far off that is where the answer is known.


@dataclass(frozen=True)
class LeftOut:
    r"""Interpolation at points of the grid from the points on both sides, against the linear model there."""

    # A, B, C, D: (\\*shape), largest error over the largest entry of the matrix, the largest over all axes; NaN at the
    # ends of all axes and adjacent to failed points. Computed with half of the family's points: a bound for the family
    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray

    @property
    def largest(self) -> float:
        """Of all matrices and points; NaN where no point could be left out."""
        values = np.concatenate([np.ravel(getattr(self, f.name)) for f in fields(self)])
        return float(np.nanmax(values)) if np.isfinite(values).any() else float("nan")


def compute_interpolation_errors(matrices: Mapping[str, FloatArray], grid: Grid, kinds: NDArray[np.intp]) -> LeftOut:
    """Return the error of linear interpolation at every inner point, between points of one and the same kind."""
    entries = (slice(None),) * len(grid.shape)
    errors = {}
    for name, matrix in matrices.items():
        error = errors_of_neighbours(matrix, grid, kinds, entries).max(axis=(-2, -1), initial=0.0)
        size = np.abs(matrix).max(axis=(-2, -1), initial=0.0)
        nothing = np.where((kinds >= 0) & (max(grid.shape) > 2), 0.0, np.nan)  # to be off by
        errors[name] = error / np.where(size > 0, size, 1.0) if matrix.size else nothing
    return LeftOut(**errors)


def errors_of_neighbours(
    matrices: FloatArray, grid: Grid, kinds: NDArray[np.intp], part: tuple[slice, ...]
) -> FloatArray:
    """Return how far matrices (*shape, r, c) in a part of the grid are from between their neighbours, NaN at ends."""
    part_matrices, same = matrices[part], kinds[part]
    worst = np.full(part_matrices.shape, np.nan)
    for d, (values, cut) in enumerate(zip(_lines(grid), part, strict=True)):
        v = values[cut].reshape(-1, *[1] * (part_matrices.ndim - 1))
        w = (v[1:-1] - v[:-2]) / (v[2:] - v[:-2])
        values_along, kind, target = (np.moveaxis(array, d, 0) for array in (part_matrices, same, worst))
        usable = (kind[1:-1] == kind[:-2]) & (kind[1:-1] == kind[2:]) & (kind[1:-1] >= 0)
        error = np.abs((1 - w) * values_along[:-2] + w * values_along[2:] - values_along[1:-1])
        target[1:-1] = np.fmax(target[1:-1], np.where(usable[..., None, None], error, np.nan))
    return worst


def entry_errors(
    matrices: Mapping[str, FloatArray], grid: Grid, kinds: NDArray[np.intp], numbers: Sequence[int]
) -> dict[str, FloatArray]:
    """Return the largest error of linear interpolation, entry by entry, when each point is left out; NaN of none."""
    index = np.unravel_index(list(numbers), grid.shape)
    part = tuple(slice(max(int(i.min()) - 1, 0), int(i.max()) + 2) for i in index)
    inside = tuple(i - cut.start for i, cut in zip(index, part, strict=True))
    each = {name: errors_of_neighbours(matrix, grid, kinds, part)[inside] for name, matrix in matrices.items()}
    return {name: np.fmax.reduce(errors, axis=0) for name, errors in each.items()}


def around(grid: Grid, values: Mapping[str, float]) -> dict[int, float]:
    """Return the points of the grid around these values, and their weights, which are linear in every axis."""
    for name in values:
        if name not in grid.axes:
            raise UnknownNameError.among(name, grid.axes, "an axis of the family")
    if missing := [name for name in grid.axes if name not in values]:
        raise UsageError(f"The value of '{missing[0]}' is missing: the family runs over {', '.join(grid.axes)}.")
    if grid.zipped and len(grid.axes) > 1:
        raise UsageError("A family along a list of points has nothing between them: interpolate in one over a grid.")
    sides = [_side(name, np.asarray(axis), float(values[name])) for name, axis in grid.axes.items()]
    weights: dict[int, float] = {}
    for corner in product(*sides):
        number = int(np.ravel_multi_index([i for i, _ in corner], grid.shape))
        weights[number] = float(np.prod([w for _, w in corner]))
    return weights


def _side(name: str, axis: FloatArray, value: float) -> list[tuple[int, float]]:
    order = np.argsort(axis)
    low, high = axis[order[0]], axis[order[-1]]
    if not low <= value <= high:
        raise UsageError(f"{name} = {value:g} is outside the family, which has {low:g} to {high:g}.")
    i = int(np.searchsorted(axis[order], value))
    if axis[order[i]] == value:
        return [(int(order[i]), 1.0)]
    a, b = int(order[i - 1]), int(order[i])
    w = float((value - axis[a]) / (axis[b] - axis[a]))
    return [(a, 1 - w), (b, w)]


def _lines(grid: Grid) -> list[FloatArray]:
    """Return the values along every dimension of the arrays."""
    if grid.zipped and len(grid.axes) > 1:
        return [np.arange(grid.size, dtype=np.float64)]
    return [np.asarray(values) for values in grid.axes.values()]
