"""Model-exchange FMUs without continuous states, run from sample to sample: instances that wait in event mode.

The instance looks like one for co-simulation. At a sample it stands in event mode before the event iteration, so that
inputs and discrete states can be set; a step carries out all events from there to the end of the step, which is
exclusive. Its end is entered in event mode again: what ticks there belongs to the next step.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fmilin.errors import ModelError
from fmilin.fmi.client.host_programs import Operation, ValueType
from fmilin.fmi.read.buffers import copy_references
from fmilin.fmi.read.description import ModelDescription
from fmilin.fmi.read.early_instances import Instance2
from fmilin.fmi.read.instance import Instance
from fmilin.fmi.read.instance3 import Instance3, SteppedInstance3
from fmilin.fmi.read.stepped_instance import SteppedInstance
from fmilin.signals import FloatArray

SIMULTANEOUS_EVENT_TOLERANCE = 1e-9  # in parts of a step: events closer to its end than this are those of the next one
_MAX_EVENTS_IN_STEP = 10_000


class SampledInstance(SteppedInstance):
    """The common base of such instances of all versions of FMI."""

    stepped = False
    lead = 0.0  # in seconds, by which the FMU's time is ahead: its first sample is not at its start

    def _start(self) -> None:
        """Stay in event mode, at the first sample."""
        if not self.lead:
            return
        self._carry_out_events(self._time)
        self._enter_next_instant(self._time + self.lead)

    def _do_step(self, time: float, step: float) -> None:
        start = time + self.lead
        end, instant = start + step, start
        for _ in range(_MAX_EVENTS_IN_STEP):
            next_event = self._carry_out_events(instant)
            is_last = next_event is None or next_event > end - SIMULTANEOUS_EVENT_TOLERANCE * step
            instant = end if is_last or next_event is None else next_event
            self._enter_next_instant(instant)
            if is_last:
                return
        raise ModelError(
            f"'{self.description.source}' schedules more than {_MAX_EVENTS_IN_STEP} events in a sample of {step:g} s. "
            "Give another sample_interval=."
        )

    def find_event_times(self, count: int) -> FloatArray:
        """Carry out up to ``count`` events from the present one on; return the times of those after it."""
        instant, times = self._time + self.lead, []
        for _ in range(count):
            next_event = self._carry_out_events(instant)
            if next_event is None:
                break
            times.append(next_event)
            self._enter_next_instant(next_event)
            instant = next_event
        return np.array(times)

    def _carry_out_events(self, time: float) -> float | None:
        """Iterate events at the present instant; return when the next one is due."""
        self._activate_clocks(time)
        if self._iterated(f"at t = {time:g} s"):
            raise self._ended()
        due = [self.next_event, self._find_next_tick(time)]
        return min((t for t in due if t is not None and t > time), default=None)

    def _enter_next_instant(self, time: float) -> None:
        self.component.call(Operation.ENTER_CONTINUOUS_TIME_MODE)
        numbers = self.arena.copy(np.array([time]))
        self.component.call(Operation.SET_TIME, numbers)
        self.component.call(Operation.ENTER_EVENT_MODE)

    def _activate_clocks(self, time: float) -> None:
        """Activate the clocks that tick at a time; there are none before FMI 3.0."""

    def _find_next_tick(self, time: float) -> float | None:
        """Return when the next clock ticks after a time."""
        return None

    @property
    def steps_together(self) -> bool:
        """Whether nothing has to be done between two steps: there are events."""
        return False


class SampledInstance2(SampledInstance, Instance2):
    """One instance of an FMI 2.0 FMU."""

    save_flag: ClassVar[str] = "canGetAndSetFMUstate"


class SampledInstance3(SampledInstance, SteppedInstance3):
    """One instance of an FMI 3.0 FMU with its clocks."""

    def _instantiate(self) -> bool:
        self._begin = self._time
        return Instance3._instantiate(self)

    def _activate_clocks(self, time: float) -> None:
        due = [v.reference for v in self._ticking if self._ticks(v.interval or 0.0, v.shift, time)[0]]
        if due:
            active = self.arena.copy(np.ones(len(due), dtype=np.int64))
            self.component.call(Operation.SET_VALUES, copy_references(self.arena, due), active, kind=ValueType.CLOCK)

    def _find_next_tick(self, time: float) -> float | None:
        return min((self._ticks(v.interval or 0.0, v.shift, time)[1] for v in self._ticking), default=None)


def class_of_sampled_instances(description: ModelDescription) -> type[Instance]:
    """Return the class for a version of the standard."""
    if description.fmi_version.startswith("1"):
        raise ModelError(
            f"'{description.source}' is an FMI 1.0 FMU for model exchange: its discrete states cannot be set. Export "
            "it as FMI 2.0 or 3.0."
        )
    return SampledInstance3 if description.fmi_version.startswith("3") else SampledInstance2
