"""Instances of FMI 1.0 and FMI 2.0, for model exchange and for co-simulation.

Functions of FMI 1.0 bear the name of the model (``pendulum_fmiGetReal``), there is no initialization mode, and states
are known to the code alone; in co-simulation none is visible, and none can be saved.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fmilin.fmi.platforms import fmi2_folders
from fmilin.fmi.read.buffers import SCALARS, Group, pointer_to
from fmilin.fmi.read.component import Call, Callbacks, LoadedCode, callbacks
from fmilin.fmi.read.description import ModelDescription
from fmilin.fmi.read.instance import Event, Instance
from fmilin.fmi.read.model_structure import with_states
from fmilin.fmi.read.settings import Assignment
from fmilin.fmi.read.stepped_instance import SteppedInstance

_UNDEFINED = 2**32 - 1  # fmiUndefinedValueReference: a state that is no variable


class Version1(Instance):
    """What every instance of an FMI 1.0 FMU has: names of functions, callbacks, and variables read and written."""

    prefix = "fmi"
    binaries = fmi2_folders()
    truth = ctypes.c_bool
    types: ClassVar = SCALARS | {"Boolean": ("Boolean", ctypes.c_bool)}

    def _component(self, library: Path) -> LoadedCode:
        return LoadedCode(library, self.prefix, self.sink, f"{self.description.model_identifier}_")

    def _made(self, function: str, *arguments: Any) -> bool:
        """Instantiate through ``function``; the callbacks are handed over by value."""
        self._callbacks = callbacks(Callbacks)  # the code may keep pointers to them
        made = self.component.create(function, *arguments, self._callbacks, self.truth(1))
        if made:
            self.sink.known_as(self.component.handle.value or 0)  # the logger is told the component
        return made

    def directional(self, unknowns: Group, knowns: Group, target: ctypes.c_void_p) -> Call:
        """Refuse: FMI 1.0 has no directional derivatives."""
        raise NotImplementedError

    def _exit_initialization(self) -> None:
        """Do nothing: there is no such mode."""

    def _set_logging(self, categories: Sequence[bytes], *, on: bool) -> None:
        self.component.call("SetDebugLogging", self.truth(on))


class _EventInfo(ctypes.Structure):
    """The struct fmiEventInfo of FMI 1.0."""

    _flags = ("converged", "references_changed", "values_changed", "terminate", "upcoming")
    _fields_ = (*zip(_flags, [ctypes.c_bool] * 5, strict=True), ("next_time", ctypes.c_double))


class Instance1(Version1):
    """One instance of an FMI 1.0 FMU for model exchange."""

    tells_states = True
    nominals_function = "GetNominalContinuousStates"
    frees_with = "FreeModelInstance"

    def _instantiate(self) -> bool:
        return self._made("InstantiateModel", self.description.model_name.encode(), self.description.token.encode())

    def described(self) -> ModelDescription:
        """Return the description with the states that the code has."""
        numbers = np.full(self._number_of_states, _UNDEFINED, dtype=np.uint32)
        if numbers.size:
            ask = self.component.bound("GetStateValueReferences", pointer_to(numbers), ctypes.c_size_t(numbers.size))
            if self.component.first_bad((ask,)) is not None:  # it only serves names
                numbers[:] = _UNDEFINED
        return with_states(self.description, numbers.tolist())

    def pass_event(self, inputs: Sequence[Group] = ()) -> bool:
        """Carry out an event at the point that is held; return whether the FMU asks to end the simulation."""
        self._standing = None
        for group in inputs:
            self.write(group)
        return self._iterated(f"at t = {self._time:g} s")

    def completed_step(self) -> tuple[bool, bool]:
        """Say that a step was accepted; return whether the FMU asks for an event, and to end the simulation."""
        self._states = None  # the step may have changed them
        wants_event = self.truth()
        self.component.call("CompletedIntegratorStep", ctypes.byref(wants_event))
        return bool(wants_event.value), False

    def _enter_initialization(self, time: float, settings: Sequence[Assignment]) -> None:
        self.component.call("SetTime", ctypes.c_double(time))
        for setting in settings:
            self._apply(setting)
        self._first = _EventInfo()
        without_tolerance = self.truth(0), ctypes.c_double(0.0)
        self.component.call("Initialize", *without_tolerance, ctypes.byref(self._first))

    def _start(self) -> None:
        """Iterate events until the first continuous-time instant, if the initialization left any."""
        first = self._answer(self._first)
        if first.terminate:
            raise self._terminates_at_its_start()
        self.next_event = first.next_time
        if first.again:
            self._settle()
        self._check_number_of_states()

    def _iterate(self) -> Event:
        info = _EventInfo()
        self.component.call("EventUpdate", self.truth(0), ctypes.byref(info))
        return self._answer(info)

    @staticmethod
    def _answer(info: _EventInfo) -> Event:
        return Event(not info.converged, bool(info.terminate), float(info.next_time) if info.upcoming else None)


_WITHOUT_LIMIT = 0.0  # milliseconds that the FMU may wait for its tool


class SteppedInstance1(SteppedInstance, Version1):
    """One instance of an FMI 1.0 FMU for co-simulation."""

    save_function = restore_function = free_function = save_flag = ""
    frees_with = "FreeSlaveInstance"

    def _instantiate(self) -> bool:
        d = self.description
        texts = (d.model_name, d.token, self._folder.as_uri(), "application/x-fmu-sharedlibrary")
        not_visible_or_interactive = self.truth(0), self.truth(0)
        limit = ctypes.c_double(_WITHOUT_LIMIT)
        return self._made("InstantiateSlave", *(t.encode() for t in texts), limit, *not_visible_or_interactive)

    def _enter_initialization(self, time: float, settings: Sequence[Assignment]) -> None:
        for setting in settings:
            self._apply(setting)
        self.component.call("InitializeSlave", ctypes.c_double(time), self.truth(0), ctypes.c_double(0.0))

    def _terminate(self) -> None:
        self.component.call("TerminateSlave")

    def _iterate(self) -> Event:
        """Answer that nothing happens: events are the FMU's own affair."""
        return Event(again=False, terminate=False, next_time=None)


class _EventInfo2(ctypes.Structure):
    """The struct fmi2EventInfo."""

    _flags = ("again", "terminate", "nominals_changed", "values_changed", "scheduled")
    _fields_ = (*zip(_flags, [ctypes.c_int] * 5, strict=True), ("next_time", ctypes.c_double))


class _Callbacks(Callbacks):
    """The struct fmi2CallbackFunctions."""

    _fields_ = (("environment", ctypes.c_void_p),)  # type: ignore[assignment]  # ctypes adds them to the base's


class Instance2(Instance):
    """One instance of an FMI 2.0 FMU."""

    prefix = "fmi2"
    binaries = fmi2_folders()
    truth = ctypes.c_int
    types: ClassVar = SCALARS | {"Boolean": ("Boolean", ctypes.c_int)}
    interface = 0  # fmi2ModelExchange

    def _instantiate(self) -> bool:
        self._callbacks = callbacks(_Callbacks)
        self._callbacks.environment = self.sink.number
        d, resources = self.description, (self._folder / "resources").as_uri()
        identity = d.model_name.encode(), ctypes.c_int(self.interface), d.token.encode(), resources.encode()
        invisible_and_talkative = self.truth(0), self.truth(1)
        return self.component.create("Instantiate", *identity, ctypes.byref(self._callbacks), *invisible_and_talkative)

    def _enter_initialization(self, time: float, settings: Sequence[Assignment]) -> None:
        without, nothing = self.truth(0), ctypes.c_double(0.0)
        self.component.call("SetupExperiment", *self._tolerance(), ctypes.c_double(time), without, nothing)
        for setting in settings:
            self._apply(setting)
        self.component.call("EnterInitializationMode")

    def _iterate(self) -> Event:
        info = _EventInfo2()
        self.component.call("NewDiscreteStates", ctypes.byref(info))
        return Event(bool(info.again), bool(info.terminate), info.next_time if info.scheduled else None)

    def directional(self, unknowns: Group, knowns: Group, target: ctypes.c_void_p) -> Call:
        """Return the call for derivatives along the seed in ``knowns``; see :class:`Instance`."""
        rows, columns = (g.references_pointer for g in (unknowns, knowns))
        return self.component.bound(
            "GetDirectionalDerivative", rows, unknowns.count, columns, knowns.count, knowns.doubles_pointer, target
        )


class SteppedInstance2(SteppedInstance, Instance2):
    """One instance of an FMI 2.0 FMU for co-simulation."""

    save_function, restore_function, free_function = "GetFMUstate", "SetFMUstate", "FreeFMUstate"
    save_flag = "canGetAndSetFMUstate"
    interface = 1  # fmi2CoSimulation
