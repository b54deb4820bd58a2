"""FMI 2.0: instances for model exchange and for co-simulation."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import ClassVar

from fmilin.fmi.platforms import fmi2_folders
from fmilin.fmi.read.buffers import SCALARS, Group
from fmilin.fmi.read.component import Call
from fmilin.fmi.read.instance import Event, Instance
from fmilin.fmi.read.log import Callbacks, callbacks
from fmilin.fmi.read.settings import Assignment
from fmilin.fmi.read.stepped_instance import SteppedInstance


class _EventInfo(ctypes.Structure):
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
        info = _EventInfo()
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
