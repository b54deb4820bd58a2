"""FMI 2.0: instances for model exchange and for co-simulation."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from fmilin.fmi.platforms import fmi2_folders
from fmilin.fmi.read.buffers import SCALARS, Group, pointer_to
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

    def _get_or_set(self, verb: str, group: Group) -> Call:
        return self.component.bound(f"{verb}Real", group.references_pointer, group.count, group.pointer)

    def directional(self, unknowns: Group, knowns: Group, target: ctypes.c_void_p) -> Call:
        """Return the call for derivatives along the seed in ``knowns``; see :class:`Instance`."""
        rows, columns = (g.references_pointer for g in (unknowns, knowns))
        return self.component.bound(
            "GetDirectionalDerivative", rows, unknowns.count, columns, knowns.count, knowns.doubles_pointer, target
        )

    def _refused_number(self) -> int | None:
        """Ask for the states: FMI 2.0 has no function for their number."""
        # Code that checks the number refuses a wrong one; other code writes beyond it, into room kept free for that.
        declared = self._number_of_states
        buffer = self._state_buffer()

        def refused(number: int) -> tuple[int, str] | None:
            ask = self.component.bound("GetContinuousStates", pointer_to(buffer), ctypes.c_size_t(number))
            return self.component.first_bad((ask,))

        refusal = refused(declared)
        if refusal is None:
            beyond = int(np.count_nonzero(~np.isnan(buffer[declared:])))
            return declared + beyond if beyond else None
        failure = self.component.failure("GetContinuousStates", refusal[0])
        # The component is lost anyway: find the number that it wants, for the message.
        for number in range(declared + 65):
            if number != declared and refused(number) is None:
                return number
        if declared:
            raise failure
        return None  # a model without states that refuses to be asked for them: nothing is missing


class SteppedInstance2(SteppedInstance, Instance2):
    """One instance of an FMI 2.0 FMU for co-simulation."""

    save_function, restore_function, free_function = "GetFMUstate", "SetFMUstate", "FreeFMUstate"
    save_flag = "canGetAndSetFMUstate"
    interface = 1  # fmi2CoSimulation

    def _do_step(self, time: float, step: float) -> None:
        # ``noSetFMUStatePriorToCurrentPoint``: no step is taken back. Told otherwise, some FMUs save and go back at
        # every step. That a run starts anew from a saved state is no rollback.
        forgets = self.truth(1)
        self.component.run((self.component.bound("DoStep", ctypes.c_double(time), ctypes.c_double(step), forgets),))
