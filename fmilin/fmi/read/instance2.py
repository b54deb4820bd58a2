"""FMI 2.0 model exchange."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.fmi.read.buffers import Group
from fmilin.fmi.read.instance import Event, Instance
from fmilin.fmi.read.layout import Scalar
from fmilin.fmi.read.log import deliver
from fmilin.fmi.read.platforms import fmi2_folders
from fmilin.fmi.read.settings import Setting
from fmilin.sandbox.watchdog import done, note

__all__ = ["Instance2", "logger_function"]

_pointer = ctypes.c_void_p
_size = ctypes.c_size_t


class Instance2(Instance):
    """One instance of an FMI 2.0 FMU."""

    prefix = "fmi2"
    binaries = fmi2_folders()
    rates_function = "GetDerivatives"

    def _load(self, folder: Path) -> Any:
        from fmpy import sharedLibraryExtension
        from fmpy.fmi2 import FMU2Model

        name = self.description.model_identifier + sharedLibraryExtension
        found = [folder / "binaries" / b / name for b in self.binaries if (folder / "binaries" / b / name).is_file()]
        return self._loaded(FMU2Model, folder, libraryPath=str(found[0]))

    def _bind(self) -> None:
        super()._bind()
        values = (_pointer, _pointer, _size, _pointer)
        self._get_real = self._checked("GetReal", values)
        self._set_real = self._checked("SetReal", values)
        self._get_directional = self._function(
            "GetDirectionalDerivative", (_pointer, _pointer, _size, _pointer, _size, _pointer, _pointer)
        )

    def _instantiate(self) -> None:
        self._callbacks = _callbacks(self.sink.number)
        try:
            self._fmu.instantiate(callbacks=self._callbacks, loggingOn=True)
        except Exception:  # noqa: BLE001 - FMPy's own class for a null pointer
            raise self._not_instantiated() from None

    def _enter_initialization(self, time: float, settings: Sequence[Setting]) -> None:
        self._fmu.setupExperiment(startTime=time)
        for setting in settings:
            self._apply(setting)
        self._fmu.enterInitializationMode()

    def _iterate(self) -> Event:
        again, terminate, _, _, scheduled, time = self._fmu.newDiscreteStates()
        return Event(again, terminate, time if scheduled else None)

    def _apply(self, setting: Setting) -> None:
        kind = "Integer" if setting.variable.type == "Enumeration" else setting.variable.type
        getattr(self._fmu, f"set{kind}")([setting.variable.reference], list(setting.values))

    def numbers(self, scalar: Scalar, size: int) -> list[float]:
        """Read a variable of any numeric type."""
        del size
        getter = self._fmu.getReal if scalar.variable.is_float else self._fmu.getInteger
        return [float(v) for v in getter([scalar.variable.reference])]

    def write(self, group: Group) -> None:
        """Set a group of variables from its buffer."""
        group.before_writing()
        self._set_real(self._component, group.reference_address, group.count, group.address)

    def read(self, group: Group) -> None:
        """Read a group of variables into its buffer."""
        self._get_real(self._component, group.reference_address, group.count, group.address)
        group.after_reading()

    def directional(self, unknowns: Group, known: Group, target: int) -> int:
        """Write the derivatives of ``unknowns`` along the seed in ``known`` to ``target``; see :class:`Instance`."""
        note("fmi2GetDirectionalDerivative")
        status: int = self._get_directional(
            self._component,
            unknowns.reference_address,
            unknowns.count,
            known.reference_address,
            known.count,
            known.float64_address,
            target,
        )
        done()
        return status

    def _number_of_event_indicators(self) -> int:
        return self.description.event_indicators

    def _refused_number(self) -> int | None:
        """Ask for the states: FMI 2.0 has no function for their number.

        Code that checks the number refuses a wrong one; code that does not check writes beyond it, into
        room that is kept free for that.
        """
        declared = self._number_of_states
        buffer = self._state_buffer()
        status = self._ask_for_states(self._component, buffer.ctypes.data, declared)
        if status in (0, 1):
            beyond = int(np.count_nonzero(~np.isnan(buffer[declared:])))
            return declared + beyond if beyond else None
        refusal = self.failure("GetContinuousStates", status)
        # The component is lost anyway: find the number that it wants, for the message.
        for number in range(declared + 65):
            if number != declared and self._ask_for_states(self._component, buffer.ctypes.data, number) == 0:
                return number
        if declared:
            raise refusal
        return None  # a model without states that refuses to be asked for them: nothing is missing


def _callbacks(number: int) -> Any:
    """Return the callbacks for one instance, which is known to the logger by ``number``."""
    import fmpy
    from fmpy import fmi2

    callbacks = fmi2.fmi2CallbackFunctions()
    callbacks.logger = logger_function()
    # The C functions themselves, not Python functions that call them.
    callbacks.allocateMemory = ctypes.cast(fmpy.calloc, fmi2.fmi2CallbackAllocateMemoryTYPE)
    callbacks.freeMemory = ctypes.cast(fmpy.free, fmi2.fmi2CallbackFreeMemoryTYPE)
    callbacks.componentEnvironment = number
    try:
        from fmpy.logging import addLoggerProxy
    except (ImportError, OSError):  # FMPy ships it for some platforms only; without it '%s' stay in the messages
        return callbacks
    addLoggerProxy(ctypes.byref(callbacks))
    return callbacks


def logger_function() -> Any:
    """Return the one C callback of this process: FMPy's proxy keeps a single one, so it must never be freed."""
    if not _kept:
        from fmpy.fmi2 import fmi2CallbackLoggerTYPE

        def log(environment: int | None, _: bytes, status: int, category: bytes, message: bytes) -> None:
            deliver(environment, status, category, message)

        _kept.append(fmi2CallbackLoggerTYPE(log))
    return _kept[0]


_kept: list[Any] = []
