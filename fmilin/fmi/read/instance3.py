"""FMI 3.0 model exchange."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fmilin.fmi.read.buffers import Group
from fmilin.fmi.read.description import Variable
from fmilin.fmi.read.instance import Event, Instance
from fmilin.fmi.read.layout import Scalar
from fmilin.fmi.read.platforms import fmi3_folders
from fmilin.fmi.read.settings import Setting
from fmilin.sandbox.watchdog import done, note

__all__ = ["Instance3"]

_pointer = ctypes.c_void_p
_size = ctypes.c_size_t


class Instance3(Instance):
    """One instance of an FMI 3.0 FMU."""

    prefix = "fmi3"
    binaries = fmi3_folders()
    rates_function = "GetContinuousStateDerivatives"

    def _load(self, folder: Path) -> Any:
        from fmpy.fmi3 import FMU3Model

        return self._loaded(FMU3Model, folder)

    def _bind(self) -> None:
        super()._bind()
        values = (_pointer, _pointer, _size, _pointer, _size)
        self._getters = {kind: self._checked(f"Get{kind}", values) for kind in ("Float64", "Float32")}
        self._setters = {kind: self._checked(f"Set{kind}", values) for kind in ("Float64", "Float32")}
        self._get_directional = self._function(
            "GetDirectionalDerivative",
            (_pointer, _pointer, _size, _pointer, _size, _pointer, _size, _pointer, _size),
        )

    def _instantiate(self) -> None:
        def log(_: int | None, status: int, category: bytes, message: bytes) -> None:
            self.sink.take(status, category, message)

        try:
            self._fmu.instantiate(loggingOn=True, logMessage=log)
        except Exception:  # noqa: BLE001 - FMPy's own class for a null pointer
            raise self._not_instantiated() from None

    def _enter_initialization(self, time: float, settings: Sequence[Setting]) -> None:
        structural = [s for s in settings if s.is_structural]
        if structural:
            self._fmu.enterConfigurationMode()
            for setting in structural:
                self._apply(setting)
            self._fmu.exitConfigurationMode()
        for setting in settings:
            if not setting.is_structural:
                self._apply(setting)
        self._fmu.enterInitializationMode(startTime=time)

    def _iterate(self) -> Event:
        again, terminate, _, _, scheduled, time = self._fmu.updateDiscreteStates()
        return Event(again, terminate, time if scheduled else None)

    def _apply(self, setting: Setting) -> None:
        kind = "Int64" if setting.variable.type == "Enumeration" else setting.variable.type
        getattr(self._fmu, f"set{kind}")([setting.variable.reference], list(setting.values))

    def numbers(self, scalar: Scalar, size: int) -> list[float]:
        """Read a variable of any numeric type: all its elements."""
        kind = "Int64" if scalar.variable.type == "Enumeration" else scalar.variable.type
        getter = getattr(self._fmu, f"get{kind}")
        return [float(v) for v in getter([scalar.variable.reference], nValues=size)]

    def values(self, variable: Variable, size: int) -> list[Any]:
        """Read a variable of any type: all its elements."""
        kind = "Int64" if variable.type == "Enumeration" else variable.type
        return list(getattr(self._fmu, f"get{kind}")([variable.reference], nValues=size))

    def write(self, group: Group) -> None:
        """Set a group of variables from its buffer."""
        group.before_writing()
        self._setters[group.type](self._component, group.reference_address, group.count, group.address, group.size)

    def read(self, group: Group) -> None:
        """Read a group of variables into its buffer."""
        self._getters[group.type](self._component, group.reference_address, group.count, group.address, group.size)
        group.after_reading()

    def directional(self, unknowns: Group, known: Group, target: int) -> int:
        """Write the derivatives of ``unknowns`` along the seed in ``known`` to ``target``; see :class:`Instance`."""
        note("fmi3GetDirectionalDerivative")
        status: int = self._get_directional(
            self._component,
            unknowns.reference_address,
            unknowns.count,
            known.reference_address,
            known.count,
            known.float64_address,
            known.size,
            target,
            unknowns.size,
        )
        done()
        return status

    def _number_of_event_indicators(self) -> int:
        number: int = self._fmu.getNumberOfEventIndicators()
        return number

    def _refused_number(self) -> int | None:
        number: int = self._fmu.getNumberOfContinuousStates()
        return None if number == self._number_of_states else number
