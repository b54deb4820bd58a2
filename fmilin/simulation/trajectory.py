"""The result of a simulation, with names, and with what happened on the way.

As CSV the first column is time, and there is one more for each quantity, by name; inputs are read from such files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import UnknownNameError, UsageError
from fmilin.model.interface import OperatingPoint
from fmilin.signals import FloatArray, Signals
from fmilin.simulation.inputs import InputTable
from fmilin.support.files import read_file
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.linear_model.model import LinearModel


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of independent coordinates on the way."""

    time: float  # in seconds
    before: tuple[str, ...]  # the coordinates
    after: tuple[str, ...]  # the coordinates
    # condition_before, condition_after: their condition numbers at this point
    condition_before: float
    condition_after: float


@dataclass(frozen=True, eq=False, slots=True)
class EventRecord:
    """An event that was passed."""

    time: float  # in seconds
    cause: str  # ``"event indicator 2"``, ``"time"``, ``"step"`` (the model asked for it after a step), ``"input"``
    jumped: tuple[str, ...] = ()  # the states that changed


@dataclass(frozen=True, slots=True)
class Statistics:
    """The cost of a simulation."""

    steps: int  # accepted steps
    evaluations: int  # evaluations of the model
    projections: int  # steps after which the state was moved back onto the manifold


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(TableRepr):
    """K samples of a motion."""

    _attributes = ".times, .states, .outputs, .drift, .events, .plot()"

    #: shape (K,); in seconds, never decreasing; at an event there is a sample before and one after it
    times: FloatArray
    states: FloatArray  #: shape (K, N); dependent ones included
    inputs: FloatArray  #: shape (K, nu)
    outputs: FloatArray  #: shape (K, ny)
    state_signals: Signals  #: names and units of the columns
    input_signals: Signals  #: names and units of the columns
    output_signals: Signals  #: names and units of the columns
    drift: FloatArray  #: shape (K, m); the invariants h(t, x), which would all be zero, in the units of the constraints
    invariants: tuple[str, ...]  #: m names for them: declared constraints, then hidden ones
    energy: FloatArray  #: shape (K,) or (0,); empty where it was not asked for
    stabilization: str  #: its name
    method: str  #: the integrator
    switches: tuple[Switch, ...]  #: changes of independent coordinates (local form only)
    events: tuple[EventRecord, ...]  #: in order of time
    statistics: Statistics  #: what it took
    parameters: tuple[tuple[str, float], ...] = ()  #: those changed from the model's own values
    remarks: tuple[Remark, ...] = ()  #: on the run
    model_name: str = ""  #: of the model that moved; titles of pictures have it
    #: (lowest, highest) of inputs that a regulator set; pictures have them
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @implemented_in("fmilin.report.trajectory_report:show_trajectory")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def formulation(self) -> str:
        """The old name of ``stabilization``."""
        return self.stabilization

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, name: str) -> FloatArray:
        """Return the course of a state, output or input, shape (K,)."""
        if not isinstance(name, str):
            raise UsageError(
                f"A trajectory must be indexed by a name, not by an object of the type '{type(name).__name__}': its "
                "samples are .times, .states and .outputs."
            )
        groups = _groups(self)
        for signals, values in groups:
            if signals.has(name):
                return values[:, signals.positions[name]]
        names = [n for signals, _ in groups for n in signals.positions]
        raise UnknownNameError.among(name, names, "a state, output or input of the trajectory")

    @implemented_in("fmilin.report.motion_pictures:draw_motion")
    def plot(
        self,
        *names: str,
        linear: LinearModel | None = None,
        limits: Mapping[str, tuple[float, float]] | None = None,
    ) -> Figure:
        """Return the courses of states, outputs and inputs by name, a panel for each unit, inputs in panels of theirs.

        Without names the outputs (else the states), and all inputs. A ``linear`` model goes next to it from the same
        start with the same inputs; ``limits`` of signals, those of a closed loop among them, are drawn as lines.
        Signals of one unit with offsets far beyond their motions have panels of their own. Events are marked.
        """
        ...

    def point(self, index: int = -1) -> OperatingPoint:
        """Return sample number ``index``, by default the last one, as an operating point: to linearize or to go on."""
        return OperatingPoint(
            float(self.times[index]), self.states[index].copy(), self.inputs[index].copy(), dict(self.parameters)
        )

    @property
    def largest_drift(self) -> float:
        """The largest ``|h|`` of all samples, in the units of its constraint."""
        return float(np.max(np.abs(self.drift), initial=0.0))


TIME = "time"


def _groups(of: Trajectory) -> tuple[tuple[Signals, FloatArray], ...]:
    return (of.state_signals, of.states), (of.output_signals, of.outputs), (of.input_signals, of.inputs)


def trajectory_as_csv(trajectory: Trajectory) -> bytes:
    """Return time, states, outputs, inputs and energy as CSV, each name once; numbers read back to the last bit."""
    columns: dict[str, FloatArray] = {TIME: trajectory.times}
    for signals, values in _groups(trajectory):
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
        text = read_file(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"Cannot read the inputs from '{path}': {getattr(error, 'strerror', None) or error}."
        ) from None
    rows = [row for row in csv.reader(io.StringIO(text, newline=None), skipinitialspace=True) if row]
    if not rows:
        raise UsageError(
            f"'{path}' is empty. A table of inputs starts with a head line: time, then the names of inputs."
        )
    head = [name.strip() for name in rows[0]]
    if TIME not in head:
        raise UsageError(
            f"'{path}' has no column '{TIME}' (its head line: {', '.join(head)[:200]}). Add a column of the times."
        )
    numbers = np.array([_numbers(row, len(head), line, path) for line, row in enumerate(rows[1:], 2)])
    numbers = numbers.reshape(len(rows) - 1, len(head))
    time_column = head.index(TIME)
    names = tuple(name for i, name in enumerate(head) if i != time_column)
    try:
        return InputTable(numbers[:, time_column], names, np.delete(numbers, time_column, axis=1))
    except UsageError as error:
        raise UsageError(f"'{path}': {error}") from None


def _numbers(row: list[str], count: int, line: int, path: str | Path) -> list[float]:
    if len(row) != count:
        raise UsageError(f"'{path}', line {line}: {len(row)} values for {count} columns. Give one value per column.")
    numbers = []
    for value in row:
        try:
            numbers.append(float(value))
        except ValueError:
            raise UsageError(
                f"'{path}', line {line}: '{value.strip()}' is not a number. Write for example 1.5 or -2e-3."
            ) from None
    return numbers
