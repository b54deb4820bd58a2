"""FMI 3.0 model exchange."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from fmilin.fmi.read.buffers import Group
from fmilin.fmi.read.component import Call
from fmilin.fmi.read.description import Variable, is_true
from fmilin.fmi.read.instance import Event, Instance
from fmilin.fmi.read.platforms import fmi3_folders
from fmilin.fmi.read.settings import Setting

__all__ = ["Instance3"]

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

    def _enter_initialization(self, time: float, settings: Sequence[Setting]) -> None:
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
        return self.component.bound(
            f"{verb}{group.type}", group.references_pointer, group.count, group.pointer, group.size
        )

    def directional(self, unknowns: Group, known: Group, target: ctypes.c_void_p) -> Call:
        """Return the call for derivatives along the seed in ``known``; see :class:`Instance`."""
        return self.component.bound(
            "GetDirectionalDerivative",
            unknowns.references_pointer,
            unknowns.count,
            known.references_pointer,
            known.count,
            known.doubles_pointer,
            known.size,
            target,
            unknowns.size,
        )

    @property
    def adjoint(self) -> Callable[[Group, Group, ctypes.c_void_p], Call] | None:
        """What returns the call for adjoint derivatives; see :class:`Instance`."""
        flag = "providesAdjointDerivatives"
        return self._adjoint if is_true(self.description.capabilities, flag) else None

    def _adjoint(self, unknowns: Group, known: Group, target: ctypes.c_void_p) -> Call:
        return self.component.bound(
            "GetAdjointDerivative",
            unknowns.references_pointer,
            unknowns.count,
            known.references_pointer,
            known.count,
            unknowns.doubles_pointer,
            unknowns.size,
            target,
            known.size,
        )

    def _number_of_event_indicators(self) -> int:
        return self._told("GetNumberOfEventIndicators")

    def _refused_number(self) -> int | None:
        number = self._told("GetNumberOfContinuousStates")
        return None if number == self._number_of_states else number

    def _told(self, function: str) -> int:
        number = ctypes.c_size_t()
        self.component.call(function, ctypes.byref(number))
        return number.value
