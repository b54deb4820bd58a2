"""What a sweep runs over: values by name, every combination of them or one value of each at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray


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


def grid_over(vary: Mapping[str, Sequence[float] | FloatArray], *, zipped: bool = False) -> Grid:
    """Return the grid over these values, checked."""
    if not vary:
        raise UsageError(
            "There is nothing to vary: give at least one name with its values (--vary NAME=FROM:TO:COUNT)."
        )
    axes: dict[str, FloatArray] = {}
    for name, given in vary.items():
        try:
            values = np.atleast_1d(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError):
            raise UsageError(f"The values of '{name}' are no numbers. Give a list of them.") from None
        if values.ndim != 1 or not len(values):
            raise UsageError(f"The values of '{name}' make no axis: give at least one number, in one row.")
        if bad := [i for i, v in enumerate(values) if not np.isfinite(v)]:
            raise UsageError(f"Value {bad[0] + 1} of '{name}' is {values[bad[0]]}: give finite numbers.")
        if len(np.unique(values)) < len(values) and not zipped:
            raise UsageError(f"The values of '{name}' have one twice. Give each once.")
        values.flags.writeable = False
        axes[name] = values
    sizes = {name: len(values) for name, values in axes.items()}
    if zipped and len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in sizes.items())
        raise UsageError(f"Axes that are walked together need equally many values: {listed}.")
    return Grid(axes, zipped)


def grid_through(columns: Mapping[str, FloatArray]) -> tuple[Grid, list[int]]:
    """Return the grid on which points lie, and the number of each on it, from the values of every axis, each (n,).

    Of one axis, and where not every combination is there once, the grid is the list of points as it is given.
    """
    table = np.column_stack(list(columns.values()))
    levels = [np.unique(values, return_inverse=True) for values in columns.values()]
    full = Grid({name: values for name, (values, _) in zip(columns, levels, strict=True)})
    if len(columns) < 2 or full.size != len(table) or len(np.unique(table, axis=0)) < len(table):
        return Grid(dict(columns), zipped=True), list(range(len(table)))
    return full, [int(k) for k in np.ravel_multi_index([indices for _, indices in levels], full.shape)]
