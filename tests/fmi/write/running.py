"""An FMU run through FMPy's thin layer over the C functions, both versions in the same words."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from fmpy import extract, read_model_description
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import (
    FMU2Model,
    FMU2Slave,
    calloc,
    fmi2CallbackAllocateMemoryTYPE,
    fmi2CallbackFreeMemoryTYPE,
    fmi2CallbackFunctions,
    fmi2CallbackLoggerTYPE,
    free,
)
from fmpy.fmi3 import FMU3Model, FMU3Slave

from fmilin.signals import FloatArray

__all__ = ["FMICallException", "Running"]


class Running:
    """An instance of an FMU; ``messages`` collects what it logs."""

    def __init__(self, path: Path, *, token: str | None = None, co_simulation: bool = False) -> None:
        self.description = read_model_description(str(path))
        self.is_fmi2 = self.description.fmiVersion == "2.0"
        self.reference = {v.name: v.valueReference for v in self.description.modelVariables}
        self.states = [u.variable.derivative.name for u in self.description.derivatives]
        self.nx = len(self.states)
        self.messages: list[str] = []
        self._folder = tempfile.TemporaryDirectory()
        extract(str(path), unzipdir=self._folder.name)
        kinds = (FMU2Slave, FMU3Slave) if co_simulation else (FMU2Model, FMU3Model)
        interface = self.description.coSimulation if co_simulation else self.description.modelExchange
        self.fmu: Any = kinds[not self.is_fmi2](
            guid=token or self.description.guid,
            unzipDirectory=self._folder.name,
            modelIdentifier=(interface or self.description.coSimulation).modelIdentifier,
            instanceName="one",
        )
        self._callbacks: Any = None
        try:
            self._instantiate()
        except Exception:
            self.fmu.freeLibrary()
            self._folder.cleanup()
            raise

    def _instantiate(self) -> None:
        if not self.is_fmi2:
            self.fmu.instantiate(logMessage=lambda _env, _status, _category, text: self.messages.append(text.decode()))
            return
        self._callbacks = fmi2CallbackFunctions()
        self._callbacks.logger = fmi2CallbackLoggerTYPE(
            lambda _env, _name, _status, _category, text: self.messages.append(text.decode())
        )
        self._callbacks.allocateMemory = fmi2CallbackAllocateMemoryTYPE(calloc)
        self._callbacks.freeMemory = fmi2CallbackFreeMemoryTYPE(free)
        self.fmu.instantiate(callbacks=self._callbacks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.fmu.freeInstance()
        self._folder.cleanup()

    def enter_initialization(self, time: float = 0.0) -> None:
        if self.is_fmi2:
            self.fmu.setupExperiment(startTime=time)
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=time)

    def start(self, time: float = 0.0) -> Self:
        """Go to continuous-time mode."""
        self.enter_initialization(time)
        self.fmu.exitInitializationMode()
        self.update_discrete_states()
        self.fmu.enterContinuousTimeMode()
        return self

    def start_stepping(self, time: float = 0.0) -> Self:
        """Go to step mode, in co-simulation."""
        self.enter_initialization(time)
        self.fmu.exitInitializationMode()
        return self

    def step(self, time: float, size: float) -> None:
        self.fmu.doStep(time, size)

    def slopes(self, *names: str) -> list[float]:
        """Return the time derivatives of outputs, in co-simulation."""
        references, orders = [self.reference[n] for n in names], [1] * len(names)
        ask = self.fmu.getRealOutputDerivatives if self.is_fmi2 else self.fmu.getOutputDerivatives
        return list(ask(references, orders))

    def update_discrete_states(self) -> tuple[Any, ...]:
        actual = self.fmu.newDiscreteStates() if self.is_fmi2 else self.fmu.updateDiscreteStates()
        return tuple(actual)

    def get(self, *names: str) -> list[float]:
        references = [self.reference[n] for n in names]
        return list(self.fmu.getReal(references) if self.is_fmi2 else self.fmu.getFloat64(references))

    def set(self, **values: float) -> None:
        references = [self.reference[n] for n in values]
        (self.fmu.setReal if self.is_fmi2 else self.fmu.setFloat64)(references, list(values.values()))

    def set_states(self, x: Sequence[float] | FloatArray) -> None:
        self.fmu.setContinuousStates((ctypes.c_double * len(x))(*x), len(x))

    def get_states(self) -> list[float]:
        x = (ctypes.c_double * self.nx)()
        self.fmu.getContinuousStates(x, self.nx)
        return list(x)

    def nominals(self) -> list[float]:
        x = (ctypes.c_double * self.nx)()
        self.fmu.getNominalsOfContinuousStates(x, self.nx)
        return list(x)

    def derivatives(self) -> list[float]:
        dx = (ctypes.c_double * self.nx)()
        (self.fmu.getDerivatives if self.is_fmi2 else self.fmu.getContinuousStateDerivatives)(dx, self.nx)
        return list(dx)

    def product(self, unknowns: Sequence[str], knowns: Sequence[str], direction: Sequence[float]) -> list[float]:
        """Return a directional derivative."""
        rows, columns = [self.reference[n] for n in unknowns], [self.reference[n] for n in knowns]
        return list(self.fmu.getDirectionalDerivative(rows, columns, list(direction)))

    def adjoint(self, unknowns: Sequence[str], knowns: Sequence[str], direction: Sequence[float]) -> list[float]:
        """Return an adjoint derivative; FMI 3.0 only."""
        rows, columns = [self.reference[n] for n in unknowns], [self.reference[n] for n in knowns]
        return list(self.fmu.getAdjointDerivative(rows, columns, list(direction), nSensitivity=len(columns)))

    def jacobian(self, unknowns: Sequence[str], knowns: Sequence[str]) -> FloatArray:
        """Return partial derivatives, one call per known."""
        columns = [self.product(unknowns, [k], [1.0]) for k in knowns]
        return np.array(columns, dtype=np.float64).reshape(len(knowns), len(unknowns)).T
