"""FMI 3.0 co-simulation; with event mode where the FMU has clocks, else the FMU handles its own events.

With event mode the FMU stands in it between two steps, where every input may be set. What is due happens when a step
begins: clocks that the importer has to activate tick, discrete states are updated, and the step goes no further than
to the next tick (FMI 3.0.1 sections 2.2.9, 4.1.2 and 4.2.1).
"""

from __future__ import annotations

import ctypes
from math import floor
from pathlib import Path

from fmilin.fmi.read.cosimulation.instance import SteppedInstance
from fmilin.fmi.read.description import Description, is_true
from fmilin.fmi.read.instance3 import Instance3
from fmilin.fmi.read.log import LogSink
from fmilin.ground.errors import NumericalError

__all__ = ["SteppedInstance3"]

_SIMULTANEOUS = 1e-9
"""Times closer than this, in parts of a clock's interval, are the same."""


class SteppedInstance3(SteppedInstance, Instance3):
    """One instance of an FMI 3.0 FMU for co-simulation."""

    save_function, restore_function, free_function = "GetFMUState", "SetFMUState", "FreeFMUState"
    save_flag = "canGetAndSetFMUState"

    def __init__(self, folder: Path, description: Description, number_of_states: int, sink: LogSink) -> None:
        clocks = [v for v in description.looked_through() if v.type == "Clock"]
        self._has_event_mode = bool(clocks) and is_true(description.capabilities, "hasEventMode")
        self._ticking = [v for v in clocks if v.causality == "input" and v.interval]
        self._has_own_events = any(v.causality != "input" for v in clocks)
        self._begin = 0.0
        super().__init__(folder, description, number_of_states, sink)

    def _instantiate(self) -> bool:
        self._begin = self._time
        return self.component.create(
            "InstantiateCoSimulation",
            *self._identity(),
            self.truth(self._has_event_mode),
            self.truth(self._has_event_mode),  # it may return early from a step, for an event of its own
            ctypes.c_void_p(),  # no intermediate variables
            ctypes.c_size_t(0),
            *self._environment(),
            ctypes.c_void_p(),  # no intermediate updates
        )

    def _start(self) -> None:
        """Settle in event mode, where there is one; what is due at the start happens in the first step.

        Clocks that the FMU ticks itself would tick here, before the inputs of the first step are set.
        """
        if self._has_event_mode and not self._has_own_events:
            self._settle()

    def _do_step(self, time: float, step: float) -> None:
        if not self._has_event_mode:
            self._advance(time, step)
            return
        end = time + step
        while time < end - _SIMULTANEOUS * step:
            self._update(time)
            until = self._next_due(time, end)
            self.component.call("EnterStepMode")
            reached = self._advance(time, until - time)
            self.component.call("EnterEventMode")
            time = until if reached is None else reached

    def _advance(self, time: float, step: float) -> float | None:
        """Take one step; return the time that it reaches, where the FMU has an event of its own before its end."""
        # ``noSetFMUStatePriorToCurrentPoint``: no step is taken back. Told otherwise, some FMUs save and go back at
        # every step. That a run starts anew from a saved state is no rollback.
        forgets = self.truth(1)
        needs_event, terminates, returns_early = (self.truth() for _ in range(3))
        reached = ctypes.c_double()
        answers = (needs_event, terminates, returns_early, reached)
        arguments = (ctypes.c_double(time), ctypes.c_double(step), forgets, *(ctypes.byref(a) for a in answers))
        self.component.run((self.component.bound("DoStep", *arguments),))
        if terminates.value:
            self.component.health = 3  # nothing but freeing is allowed now
            raise self._ended()
        if not returns_early.value:
            return None
        if not (self._has_event_mode and time < reached.value <= time + step * (1 + _SIMULTANEOUS)):
            raise NumericalError(
                f"'{self.description.source}' returns early from a step of {step:g} s at t = {time:g} s, and says that "
                f"it has reached {reached.value:g} s. Take a smaller --step."
            )
        return reached.value

    def _update(self, time: float) -> None:
        """Let the clocks tick that are due, and the discrete states follow."""
        due = [v.reference for v in self._ticking if self._ticks(v.interval or 0.0, v.shift, time)[0]]
        if due:
            references = (ctypes.c_uint32 * len(due))(*due)
            active = (ctypes.c_bool * len(due))(*[True] * len(due))
            self.component.call("SetClock", references, ctypes.c_size_t(len(due)), active)
        if self._iterated(f"at t = {time:g} s"):
            self.component.health = 3
            raise self._ended()

    def _next_due(self, time: float, end: float) -> float:
        """Return when the next clock ticks or the FMU's next event is due, ``end`` at the latest."""
        times = [self._ticks(v.interval or 0.0, v.shift, time)[1] for v in self._ticking]
        if self.next_event is not None and self.next_event > time:
            times.append(self.next_event)
        nearest = min(times, default=end)
        return end if nearest > end - _SIMULTANEOUS * (end - time) else nearest

    def _ticks(self, interval: float, shift: float, time: float) -> tuple[bool, float]:
        """Return whether a clock ticks at a time, and when it ticks next after it."""
        first = self._begin + shift
        passed = (time - first) / interval
        number = floor(passed + _SIMULTANEOUS)
        if number < 0:
            return False, first
        return abs(passed - number) <= _SIMULTANEOUS * max(1.0, number), first + (number + 1) * interval
