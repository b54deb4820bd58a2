"""Trajectories and inputs as CSV: the first column is time, one more for each quantity, by name."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.motion.simulation.inputs import InputTable
from fmilin.motion.simulation.trajectory import Trajectory

__all__ = ["TIME", "read_inputs", "trajectory_as_csv"]

TIME = "time"


def trajectory_as_csv(trajectory: Trajectory) -> bytes:
    """Return the samples as CSV with a head line: time, states, outputs, inputs, and the energy if there is one.

    A quantity that has the same name in two of these groups stands there once. Every number can be read back
    to the last bit.
    """
    columns: dict[str, FloatArray] = {TIME: trajectory.times}
    for signals, values in (
        (trajectory.state_signals, trajectory.states),
        (trajectory.output_signals, trajectory.outputs),
        (trajectory.input_signals, trajectory.inputs),
    ):
        for name, column in zip(signals.names, values.T, strict=True):
            columns.setdefault(name, column)
    if trajectory.energy.size:
        columns.setdefault("energy", trajectory.energy)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(np.column_stack(list(columns.values())).tolist())
    return text.getvalue().encode("utf-8")


def read_inputs(path: str | Path) -> InputTable:
    """Read a table of inputs: a column ``time`` and one for each input that it is about."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"Cannot read the inputs from '{path}': {getattr(error, 'strerror', None) or error}."
        ) from None
    rows = [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row]
    if not rows:
        raise UsageError(f"'{path}' is empty. A table of inputs has a head line: time, then the names of inputs.")
    head = [name.strip() for name in rows[0]]
    if TIME not in head:
        raise UsageError(f"'{path}' has no column '{TIME}' (its head line: {', '.join(head)[:200]}).")
    numbers = np.array([_numbers(row, len(head), line, path) for line, row in enumerate(rows[1:], 2)])
    numbers = numbers.reshape(len(rows) - 1, len(head))
    place = head.index(TIME)
    names = tuple(name for i, name in enumerate(head) if i != place)
    try:
        return InputTable(numbers[:, place], names, np.delete(numbers, place, axis=1))
    except UsageError as error:
        raise UsageError(f"'{path}': {error}") from None


def _numbers(row: list[str], count: int, line: int, path: str | Path) -> list[float]:
    if len(row) != count:
        raise UsageError(f"'{path}', line {line}: {len(row)} values for {count} columns.")
    try:
        return [float(value) for value in row]
    except ValueError:
        wrong = next(value for value in row if not _is_number(value))
        raise UsageError(f"'{path}', line {line}: '{wrong.strip()}' is no number.") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
