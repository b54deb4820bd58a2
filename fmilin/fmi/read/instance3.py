"""FMI 3.0: instances for model exchange and for co-simulation, the clocks of the latter."""

import ctypes
import os
from collections.abc import Callable, Sequence
from math import floor
from pathlib import Path
from typing import Any, ClassVar

from fmilin.errors import NumericalError
from fmilin.fmi.platforms import fmi3_folders
from fmilin.fmi.read.buffers import Group
from fmilin.fmi.read.component import Call, LogSink
from fmilin.fmi.read.description import ModelDescription, Variable, is_true
from fmilin.fmi.read.instance import Event, Instance
from fmilin.fmi.read.settings import Assignment
from fmilin.fmi.read.stepped_instance import SteppedInstance

_log_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
_INTEGERS = ("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")


class Instance3(Instance):
    """One instance of an FMI 3.0 FMU."""

    prefix = "fmi3"
    binaries = fmi3_folders()
    rates_function = "GetContinuousStateDerivatives"
    truth = ctypes.c_bool
    types: ClassVar = {
        "Float64": ("Float64", ctypes.c_double),
        "Float32": ("Float32", ctypes.c_float),
        **{kind: (kind, getattr(ctypes, f"c_{kind.lower()}")) for kind in _INTEGERS},
        "Enumeration": ("Int64", ctypes.c_int64),
        "Boolean": ("Boolean", ctypes.c_bool),
        "String": ("String", ctypes.c_char_p),
    }

    def _instantiate(self) -> bool:
        return self.component.create("InstantiateModelExchange", *self._identity(), *self._environment())

    def _identity(self) -> tuple[Any, ...]:
        """Return names, resources, and that the FMU is invisible and may speak."""
        d, resources = self.description, f"{self._folder / 'resources'}{os.sep}"
        return d.model_name.encode(), d.token.encode(), resources.encode(), self.truth(0), self.truth(1)

    def _environment(self) -> tuple[Any, ...]:
        """Return the environment, of which there is none, and the function that takes messages."""

        def log(_: int | None, status: int, category: bytes, message: bytes) -> None:
            self.sink.take(status, category, message)

        self._log = _log_type(log)  # the code keeps a pointer to it
        return ctypes.c_void_p(), self._log

    def _enter_initialization(self, time: float, settings: Sequence[Assignment]) -> None:
        structural = [s for s in settings if s.is_structural]
        if structural:
            self.component.call("EnterConfigurationMode")
            for setting in structural:
                self._apply(setting)
            self.component.call("ExitConfigurationMode")
        for setting in settings:
            if not setting.is_structural:
                self._apply(setting)
        without, nothing = self.truth(0), ctypes.c_double(0.0)
        self.component.call("EnterInitializationMode", *self._tolerance(), ctypes.c_double(time), without, nothing)

    def _iterate(self) -> Event:
        again, terminate, nominals, values, scheduled = (self.truth() for _ in range(5))
        time = ctypes.c_double()
        answers = (again, terminate, nominals, values, scheduled, time)
        self.component.call("UpdateDiscreteStates", *(ctypes.byref(a) for a in answers))
        return Event(again.value, terminate.value, time.value if scheduled.value else None)

    def _located(self, variable: Variable, numbers: Any) -> tuple[Any, ...]:
        return (*super()._located(variable, numbers), ctypes.c_size_t(len(numbers)))

    def _get_or_set(self, verb: str, group: Group) -> Call:
        return self.component.bound(f"{verb}{group.type}", *_referred(group), group.pointer, group.size)

    def directional(self, unknowns: Group, knowns: Group, target: ctypes.c_void_p) -> Call:
        """Return the call for derivatives along the seed in ``knowns``; see :class:`Instance`."""
        variables = *_referred(unknowns), *_referred(knowns)
        seed = knowns.doubles_pointer, knowns.size
        return self.component.bound("GetDirectionalDerivative", *variables, *seed, target, unknowns.size)

    @property
    def adjoint(self) -> Callable[[Group, Group, ctypes.c_void_p], Call] | None:
        """What returns the call for adjoint derivatives; see :class:`Instance`."""
        flag = "providesAdjointDerivatives"
        return self._adjoint if is_true(self.description.capabilities, flag) else None

    def _adjoint(self, unknowns: Group, knowns: Group, target: ctypes.c_void_p) -> Call:
        variables = *_referred(unknowns), *_referred(knowns)
        seed = unknowns.doubles_pointer, unknowns.size
        return self.component.bound("GetAdjointDerivative", *variables, *seed, target, knowns.size)

    def _number_of_event_indicators(self) -> int:
        return self._count("GetNumberOfEventIndicators")

    def _refused_number(self) -> int | None:
        number = self._count("GetNumberOfContinuousStates")
        return None if number == self._number_of_states else number

    def _count(self, function: str) -> int:
        number = ctypes.c_size_t()
        self.component.call(function, ctypes.byref(number))
        return number.value


def _referred(group: Group) -> tuple[Any, Any]:
    return group.references_pointer, group.count


_SIMULTANEOUS = 1e-9  # times closer than this, in parts of a clock's interval, are the same


class SteppedInstance3(SteppedInstance, Instance3):
    """One instance of an FMI 3.0 FMU for co-simulation."""

    save_function, restore_function, free_function = "GetFMUState", "SetFMUState", "FreeFMUState"
    save_flag = "canGetAndSetFMUState"

    def __init__(self, folder: Path, description: ModelDescription, number_of_states: int, sink: LogSink) -> None:
        clocks = [v for v in description.looked_through() if v.type == "Clock"]
        self._has_event_mode = bool(clocks) and is_true(description.capabilities, "hasEventMode")
        self._ticking = [v for v in clocks if v.causality == "input" and v.interval]
        self._has_own_events = any(v.causality != "input" for v in clocks)
        self._begin = 0.0
        super().__init__(folder, description, number_of_states, sink)

    def _instantiate(self) -> bool:
        self._begin = self._time
        has_events = self.truth(self._has_event_mode), self.truth(self._has_event_mode)  # it may return early for one
        nothing_between = ctypes.c_void_p(), ctypes.c_size_t(0)  # no intermediate variables
        arguments = *self._identity(), *has_events, *nothing_between, *self._environment()
        return self.component.create("InstantiateCoSimulation", *arguments, ctypes.c_void_p())  # no updates either

    def _start(self) -> None:
        """Settle in event mode, if there is one; the FMU's own clocks tick in the first step, once inputs are set."""
        if self._has_event_mode and not self._has_own_events:
            self._settle()

    def _do_step(self, time: float, step: float) -> None:
        if not self._has_event_mode:
            self._advance(time, step)
            return
        end = time + step
        while time < end - _SIMULTANEOUS * step:
            due = [v.reference for v in self._ticking if self._ticks(v.interval or 0.0, v.shift, time)[0]]
            if due:
                references = (ctypes.c_uint32 * len(due))(*due)
                active = (ctypes.c_bool * len(due))(*[True] * len(due))
                self.component.call("SetClock", references, ctypes.c_size_t(len(due)), active)
            if self._iterated(f"at t = {time:g} s"):
                self.component.health = 3
                raise self._ended()
            times = [self._ticks(v.interval or 0.0, v.shift, time)[1] for v in self._ticking]
            if self.next_event is not None and self.next_event > time:
                times.append(self.next_event)
            nearest = min(times, default=end)
            until = end if nearest > end - _SIMULTANEOUS * (end - time) else nearest
            self.component.call("EnterStepMode")
            reached = self._advance(time, until - time)
            self.component.call("EnterEventMode")
            time = until if reached is None else reached

    def _advance(self, time: float, step: float) -> float | None:
        """Take one step; return the time that it reaches, where the FMU has an event of its own before its end."""
        forgets = self.truth(1)  # no step is taken back: told otherwise, some FMUs save and go back at every step
        needs_event, terminates, returns_early = (self.truth() for _ in range(3))
        reached = ctypes.c_double()
        answers = (ctypes.byref(a) for a in (needs_event, terminates, returns_early, reached))
        given = ctypes.c_double(time), ctypes.c_double(step), forgets
        self.component.run((self.component.bound("DoStep", *given, *answers),))
        if terminates.value:
            self.component.health = 3  # nothing but freeing is allowed now
            raise self._ended()
        if not returns_early.value:
            return None
        if not (self._has_event_mode and time < reached.value <= time + step * (1 + _SIMULTANEOUS)):
            raise NumericalError(
                f"'{self.description.source}' returns early from a step of {step:g} s at t = {time:g} s, and says that "
                f"it has reached {reached.value:g} s. Take a smaller step=."
            )
        return reached.value

    def _ticks(self, interval: float, shift: float, time: float) -> tuple[bool, float]:
        """Return whether a clock ticks at a time, and when it ticks next after it."""
        first = self._begin + shift
        passed = (time - first) / interval
        number = floor(passed + _SIMULTANEOUS)
        if number < 0:
            return False, first
        return abs(passed - number) <= _SIMULTANEOUS * max(1.0, number), first + (number + 1) * interval
