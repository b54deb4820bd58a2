"""Operating values of measured angles over the grid of a schedule: they go on beyond half a turn between its points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.design.schedule_check import ScheduleTable
from fmilin.signals import FloatArray, wrap_differences


def unwrap_angles(table: ScheduleTable, first: int, turns: FloatArray) -> ScheduleTable:
    """Return the table with values of angles, from column ``first`` on, nearest to those of a neighbour in the grid."""
    if not turns.any():
        return table
    columns = slice(first, first + len(turns))
    rows = table.rows.copy()
    shape = tuple(len(axis) for axis in table.axes)
    numbers = table.numbers.reshape(shape)
    last: int | None = None
    for index in np.ndindex(shape):
        number = int(numbers[index])
        if not table.good[number]:
            continue
        steps = [tuple(k - (d == axis) for d, k in enumerate(index)) for axis in range(len(shape)) if index[axis] > 0]
        neighbours = [int(numbers[step]) for step in steps if table.good[numbers[step]]]
        reference = neighbours[0] if neighbours else last
        if reference is not None:
            change = wrap_differences(rows[number, columns] - rows[reference, columns], turns)
            rows[number, columns] = rows[reference, columns] + change
        last = number
    return replace(table, rows=rows)
