"""FMI 1.0: model exchange, and what co-simulation shares with it.

The functions bear the name of the model (``pendulum_fmiGetReal``), there is no initialization mode, and the states
are known to the code alone. FMPy loads the library; each function that is called is bound here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.errors import ModelError
from fmilin.fmi.read.buffers import Group
from fmilin.fmi.read.description import Description
from fmilin.fmi.read.instance import Event, Instance
from fmilin.fmi.read.instance2 import logger_function
from fmilin.fmi.read.layout import Scalar
from fmilin.fmi.read.log import logger
from fmilin.fmi.read.platforms import fmi2_folders
from fmilin.fmi.read.settings import Setting
from fmilin.fmi.read.xml1 import with_states
from fmilin.sandbox.watchdog import done, note

__all__ = ["Instance1", "Version1"]

_pointer = ctypes.c_void_p
_size = ctypes.c_size_t
_UNDEFINED = 2**32 - 1  # fmiUndefinedValueReference: a state that is no variable


class Version1(Instance):
    """What every instance of an FMI 1.0 FMU has: names of functions, callbacks, and variables read and written."""

    prefix = "fmi"
    binaries = fmi2_folders()
    rates_function = "GetDerivatives"

    def _library(self, kind: Any, folder: Path) -> Any:
        """Load the library through one of FMPy's classes."""
        from fmpy import sharedLibraryExtension

        name = self.description.model_identifier + sharedLibraryExtension
        found = [folder / "binaries" / b / name for b in self.binaries if (folder / "binaries" / b / name).is_file()]
        return self._loaded(kind, folder, libraryPath=str(found[0]))

    def _bind(self) -> None:
        super()._bind()
        values = (_pointer, _pointer, _size, _pointer)
        self._get_real = self._checked("GetReal", values)
        self._set_real = self._checked("SetReal", values)
        self._get_integer = self._checked("GetInteger", values)
        self._setters = {kind: self._checked(f"Set{kind}", values) for kind in ("Integer", "Boolean", "String")}
        self._set_debug_logging = self._checked("SetDebugLogging", (_pointer, ctypes.c_char))

    def _named(self, name: str) -> Any:
        """Return the C function of this name."""
        return self._fmu.dll[f"{self.description.model_identifier}_{self.prefix}{name}"]

    def _callbacks(self) -> Any:
        """Return the callbacks, which are handed over by value."""
        import fmpy
        from fmpy import fmi1

        callbacks = fmi1.fmi1CallbackFunctions()
        callbacks.logger = ctypes.cast(logger_function(), fmi1.fmi1CallbackLoggerTYPE)
        callbacks.allocateMemory = ctypes.cast(fmpy.calloc, fmi1.fmi1CallbackAllocateMemoryTYPE)
        callbacks.freeMemory = ctypes.cast(fmpy.free, fmi1.fmi1CallbackFreeMemoryTYPE)
        try:
            from fmpy.logging import addLoggerProxy
        except (ImportError, OSError):  # without it '%s' stay in the messages
            return callbacks
        addLoggerProxy(ctypes.byref(callbacks))
        return callbacks

    def _made(self, function: str, arguments: Sequence[tuple[Any, Any]]) -> None:
        """Instantiate through ``function``; each argument with its type."""
        create = self._named(function)
        create.argtypes = tuple(kind for kind, _ in arguments)
        create.restype = _pointer
        self._fmu.functions_of_logger = arguments  # the code may keep pointers to them
        note(self.prefix + function)
        component = create(*(value for _, value in arguments))
        done()
        if not component:
            raise self._not_instantiated()
        self._fmu.component = component
        self.sink.known_as(component)  # the logger is told the component, not an environment

    def _free(self, function: str) -> None:
        free = self._named(function)
        free.argtypes, free.restype = (_pointer,), None
        note(self.prefix + function)
        free(self._component)
        done()

    def _apply(self, setting: Setting) -> None:
        v = setting.variable
        count = len(setting.values)
        references = (ctypes.c_uint32 * 1)(v.reference)
        if v.is_float:
            values: Any = (ctypes.c_double * count)(*setting.values)
            self._set_real(self._component or self._fmu.component, references, 1, values)
            return
        kind = "Integer" if v.type == "Enumeration" else v.type
        of_kind: dict[str, Callable[[], Any]] = {
            "Integer": lambda: (ctypes.c_int * count)(*setting.values),
            "Boolean": lambda: (ctypes.c_char * count)(*(bytes([bool(x)]) for x in setting.values)),
            "String": lambda: (ctypes.c_char_p * count)(*(str(x).encode() for x in setting.values)),
        }
        self._setters[kind](self._component or self._fmu.component, references, 1, of_kind[kind]())

    def numbers(self, scalar: Scalar, size: int) -> list[float]:
        """Read a variable of any numeric type."""
        del size
        reference = (ctypes.c_uint32 * 1)(scalar.variable.reference)
        if scalar.variable.is_float:
            real = (ctypes.c_double * 1)()
            self._get_real(self._component, reference, 1, real)
            return [real[0]]
        whole = (ctypes.c_int * 1)()
        self._get_integer(self._component, reference, 1, whole)
        return [float(whole[0])]

    def write(self, group: Group) -> None:
        """Set a group of variables from its buffer."""
        self._set_real(self._component, group.reference_address, group.count, group.address)

    def read(self, group: Group) -> None:
        """Read a group of variables into its buffer."""
        self._get_real(self._component, group.reference_address, group.count, group.address)

    def directional(self, unknowns: Group, known: Group, target: int) -> int:
        """Refuse: FMI 1.0 has no directional derivatives."""
        del unknowns, known, target
        raise NotImplementedError

    def _quieten(self) -> None:
        if logger.isEnabledFor(10):
            return
        try:
            self._set_debug_logging(self._component, b"\0")
        except ModelError as error:  # a talkative FMU is no failure
            if self.is_lost:
                raise
            self.health = 0
            logger.debug("%s: %s", self.description.source, error)


class _EventInfo(ctypes.Structure):
    """The struct fmiEventInfo of FMI 1.0."""

    _fields_ = (
        ("converged", ctypes.c_char),
        ("references_changed", ctypes.c_char),
        ("values_changed", ctypes.c_char),
        ("terminate", ctypes.c_char),
        ("upcoming", ctypes.c_char),
        ("next_time", ctypes.c_double),
    )


class Instance1(Version1):
    """One instance of an FMI 1.0 FMU for model exchange."""

    nominals_function = "GetNominalContinuousStates"

    def _load(self, folder: Path) -> Any:
        from fmpy.fmi1 import FMU1Model

        return self._library(FMU1Model, folder)

    def _bind(self) -> None:
        super()._bind()
        self._initialize = self._checked("Initialize", (_pointer, ctypes.c_char, ctypes.c_double, _pointer))
        self._update = self._checked("EventUpdate", (_pointer, ctypes.c_char, _pointer))
        self._completed = self._checked("CompletedIntegratorStep", (_pointer, _pointer))
        self._get_references = self._checked("GetStateValueReferences", (_pointer, _pointer, _size))
        self._terminate = self._checked("Terminate", (_pointer,))

    def begin(self, time: float, settings: Sequence[Setting]) -> None:
        """Go from nothing to continuous-time mode at the start time; see :meth:`Instance.begin`."""
        self.sink.forget()
        self.health = 0
        self._instantiate()
        self._component = self._fmu.component
        try:
            self._enter_initialization(time, settings)
            self._first = _EventInfo()
            self._initialize(self._component, b"\0", 0.0, ctypes.addressof(self._first))
            for setting in settings:
                if setting.variable.causality == "input":
                    self._apply(setting)
            self._start()
            self._quieten()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Terminate and free the component; see :meth:`Instance.end`."""
        if self._component is None:
            return
        try:
            if self.is_usable:
                self._terminate(self._component)
        except ModelError as error:  # the way out must not stop here
            logger.warning("%s: %s", self.description.source, error)
        finally:
            if not self.is_lost:
                self._free("FreeModelInstance")
            self._component = self._fmu.component = None

    def described(self) -> Description:
        """Return the description with the states that the code has."""
        references: Any = np.full(self._number_of_states, _UNDEFINED, dtype=np.uint32)
        if references.size:
            self._get_references(self._component, references.ctypes.data, references.size)
        return with_states(self.description, references.tolist())

    def pass_event(self, inputs: Sequence[Group] = ()) -> bool:
        """Carry out an event at the point that is held; return whether the FMU asks to end the simulation."""
        for group in inputs:
            self.write(group)
        return self._iterated(f"at t = {self._time:g} s")

    def completed_step(self) -> tuple[bool, bool]:
        """Say that a step was accepted; return whether the FMU asks for an event, and to end the simulation."""
        wants_event = ctypes.c_char(b"\0")
        self._completed(self._component, ctypes.addressof(wants_event))
        return wants_event.value != b"\0", False

    # ------------------------------------------------------------------ details

    def _instantiate(self) -> None:
        from fmpy.fmi1 import fmi1CallbackFunctions

        name, token = self.description.model_name.encode(), self.description.token.encode()
        self._made(
            "InstantiateModel",
            (
                (ctypes.c_char_p, name),
                (ctypes.c_char_p, token),
                (fmi1CallbackFunctions, self._callbacks()),
                (ctypes.c_char, b"\1"),
            ),
        )

    def _enter_initialization(self, time: float, settings: Sequence[Setting]) -> None:
        self._set_time(self._component, time)
        self._time = time
        for setting in settings:
            self._apply(setting)

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
        self._update(self._component, b"\0", ctypes.addressof(info))
        return self._answer(info)

    @staticmethod
    def _answer(info: _EventInfo) -> Event:
        upcoming = info.upcoming != b"\0"
        return Event(info.converged == b"\0", info.terminate != b"\0", float(info.next_time) if upcoming else None)

    def _number_of_event_indicators(self) -> int:
        return self.description.event_indicators

    def _refused_number(self) -> int | None:
        """Ask for the states, with room for more than are declared: code that has more may write them."""
        declared = self._number_of_states
        buffer = self._state_buffer()
        self._get_states(self._component, buffer.ctypes.data, declared)
        beyond = int(np.count_nonzero(~np.isnan(buffer[declared:])))
        return declared + beyond if beyond else None
