"""FMI 3.0: instances for model exchange and for co-simulation, the clocks of the latter."""

from collections.abc import Callable, Sequence
from math import floor
from pathlib import Path
from typing import ClassVar

import numpy as np

from fmilin.errors import ModelError, NumericalError
from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.host_programs import Instruction, Operation, ValueType
from fmilin.fmi.platforms import Machine
from fmilin.fmi.read.buffers import Group, copy_references
from fmilin.fmi.read.component import LogSink
from fmilin.fmi.read.description import ModelDescription, is_true
from fmilin.fmi.read.instance import Instance
from fmilin.fmi.read.settings import Assignment
from fmilin.fmi.read.stepped_instance import SteppedInstance
from fmilin.signals import FloatArray

_INTEGERS = ("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")


class Instance3(Instance):
    """One instance of an FMI 3.0 FMU."""

    version = 3
    types: ClassVar = {
        "Float64": ValueType.FLOAT64,
        "Float32": ValueType.FLOAT32,
        **{kind: ValueType[kind.upper()] for kind in _INTEGERS},
        "Enumeration": ValueType.INT64,
        "Boolean": ValueType.BOOLEAN,
        "String": ValueType.TEXT,
    }

    def _instantiate(self) -> bool:
        return self._create(self._resources())

    def _resources(self) -> str:
        return self.component.folder_name(self._folder / "resources")

    def _enter_initialization(self, time: float, settings: Sequence[Assignment]) -> None:
        structural = [s for s in settings if s.is_structural]
        if structural:
            self.component.call(Operation.ENTER_CONFIGURATION)
            for setting in structural:
                self._apply(setting)
            self.component.call(Operation.EXIT_CONFIGURATION)
        for setting in settings:
            if not setting.is_structural:
                self._apply(setting)
        self._initialize(time)

    @property
    def adjoint(self) -> Callable[[Group, Group, FloatArray], Instruction] | None:
        """The function that returns the call for adjoint derivatives; see :class:`Instance`."""
        flag = "providesAdjointDerivatives"
        return self._adjoint if is_true(self.description.capabilities, flag) else None

    def _adjoint(self, unknowns: Group, knowns: Group, target: FloatArray) -> Instruction:
        arguments = unknowns.references, knowns.references, unknowns.values, target
        return self.component.bound(Operation.ADJOINT, *arguments)

    def _number_of_event_indicators(self) -> int:
        return self._count(Operation.COUNT_EVENT_INDICATORS)

    def _refused_number(self) -> int | None:
        number = self._count(Operation.COUNT_STATES)
        return None if number == self._number_of_states else number

    def _count(self, operation: Operation) -> int:
        number = self.arena.copy(np.zeros(1, dtype=np.int64))
        self.component.call(operation, number)
        count = int(number[0])
        if not 0 <= count <= self.arena.size // number.itemsize:
            raise ModelError(
                f"The FMU '{self.description.source}' gives {count} as a number of states or event indicators, which "
                "is not possible. Ask its author, or export it again with another tool version."
            )
        return count


_SIMULTANEOUS_TIME_TOLERANCE = 1e-9  # times closer than this, in parts of a clock's interval, are the same


class SteppedInstance3(SteppedInstance, Instance3):
    """One instance of an FMI 3.0 FMU for co-simulation."""

    save_flag = "canGetAndSetFMUState"

    def __init__(
        self,
        folder: Path,
        description: ModelDescription,
        number_of_states: int,
        sink: LogSink,
        arena: Arena,
        machine: Machine,
    ) -> None:
        clocks = [v for v in description.scan_variables() if v.type == "Clock"]
        self._has_event_mode = bool(clocks) and is_true(description.capabilities, "hasEventMode")
        self._ticking = [v for v in clocks if v.causality == "input" and v.interval]
        self._has_own_events = any(v.causality != "input" for v in clocks)
        self._begin = 0.0
        super().__init__(folder, description, number_of_states, sink, arena, machine)

    def _instantiate(self) -> bool:
        self._begin = self._time
        has_event_mode, may_return_early = 4, 8
        return self._create(self._resources(), has_event_mode | may_return_early if self._has_event_mode else 0)

    def _start(self) -> None:
        """Settle in event mode, if there is one; the FMU's own clocks tick in the first step, once inputs are set."""
        if self._has_event_mode and not self._has_own_events:
            self._settle()

    def _do_step(self, time: float, step: float) -> None:
        if not self._has_event_mode:
            self._advance(time, step)
            return
        end = time + step
        while time < end - _SIMULTANEOUS_TIME_TOLERANCE * step:
            due = [v.reference for v in self._ticking if self._ticks(v.interval or 0.0, v.shift, time)[0]]
            if due:
                active = self.arena.copy(np.ones(len(due), dtype=np.int64))
                references = copy_references(self.arena, due)
                self.component.call(Operation.SET_VALUES, references, active, kind=ValueType.CLOCK)
            if self._iterated(f"at t = {time:g} s"):
                self.component.health = 3
                raise self._ended()
            times = [self._ticks(v.interval or 0.0, v.shift, time)[1] for v in self._ticking]
            if self.next_event is not None and self.next_event > time:
                times.append(self.next_event)
            nearest = min(times, default=end)
            until = end if nearest > end - _SIMULTANEOUS_TIME_TOLERANCE * (end - time) else nearest
            self.component.call(Operation.ENTER_STEP_MODE)
            reached = self._advance(time, until - time)
            self.component.call(Operation.ENTER_EVENT_MODE)
            time = until if reached is None else reached

    def _advance(self, time: float, step: float) -> float | None:
        """Take one step; return the time that it reaches, where the FMU has an event of its own before its end."""
        answers = self._take_step(time, step)
        self._require_whole_step(time, step, answers)
        _, _, returns_early, reached = answers.tolist()
        return float(reached) if returns_early else None

    def _require_whole_step(self, time: float, step: float, answers: FloatArray) -> None:
        """Raise the error for a step that ends the simulation, or ends early without an event."""
        _, terminates, returns_early, reached = answers.tolist()
        if terminates:
            self.component.health = 3  # nothing but freeing is allowed now
            raise self._ended()
        if returns_early and not (
            self._has_event_mode and time < reached <= time + step * (1 + _SIMULTANEOUS_TIME_TOLERANCE)
        ):
            raise NumericalError(
                f"'{self.description.source}' returns early from a step of {step:g} s at t = {time:g} s, and reports "
                f"that it has reached {reached:g} s. Use a smaller step=."
            )

    @property
    def steps_together(self) -> bool:
        """Whether there are no events between steps."""
        return not self._has_event_mode

    def _ticks(self, interval: float, shift: float, time: float) -> tuple[bool, float]:
        """Return whether a clock ticks at a time, and when it ticks next after it."""
        first = self._begin + shift
        passed = (time - first) / interval
        number = floor(passed + _SIMULTANEOUS_TIME_TOLERANCE)
        if number < 0:
            return False, first
        return abs(passed - number) <= _SIMULTANEOUS_TIME_TOLERANCE * max(1.0, number), first + (number + 1) * interval
