"""A linear model as a short independent script makes it: FMPy's methods, central differences of every variable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fmpy
import numpy as np
from fmpy.fmi2 import FMU2Model

from fmilin.signals import FloatArray

__all__ = ["Script"]


class Script:
    """An FMU of FMI 2.0 for model exchange at its start; close it."""

    def __init__(self, path: Path, folder: Path) -> None:
        description = fmpy.read_model_description(str(path), validate=False)
        fmpy.extract(str(path), str(folder))
        continuous = [v for v in description.modelVariables if v.type == "Real"]
        self.states = [d.variable.derivative for d in description.derivatives]
        self.inputs = [v for v in continuous if v.causality == "input"]
        self.outputs = [v for v in continuous if v.causality == "output"]
        self.fmu: Any = FMU2Model(
            guid=description.guid,
            unzipDirectory=str(folder),
            modelIdentifier=description.modelExchange.modelIdentifier,
            instanceName="script",
        )
        self.fmu.instantiate()
        self.fmu.setupExperiment()
        self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()
        self._settle()
        self.fmu.enterContinuousTimeMode()
        self.n = len(self.states)
        self._u, self._y = ([v.valueReference for v in group] for group in (self.inputs, self.outputs))
        self.start = np.array([*self._state_values(), *(self.fmu.getReal(self._u) if self._u else [])], dtype=float)

    def _settle(self) -> None:
        """Iterate events until nothing is left to do."""
        while self.fmu.newDiscreteStates()[0]:
            pass

    def matrices(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return A, B, C, D by central differences at two steps, extrapolated."""
        columns = []
        for j, value in enumerate(self.start.tolist()):
            h = 1e-3 * max(1.0, abs(value))
            slopes = []
            for step in (h, h / 2):
                ahead, behind = self.start.copy(), self.start.copy()
                ahead[j] += step
                behind[j] -= step
                slopes.append((self._evaluate(ahead) - self._evaluate(behind)) / (2 * step))
            columns.append((4 * slopes[1] - slopes[0]) / 3)
        rows = self.n + len(self._y)
        J = np.array(columns).T if columns else np.zeros((rows, 0))
        self._evaluate(self.start)
        return J[: self.n, : self.n], J[: self.n, self.n :], J[self.n :, : self.n], J[self.n :, self.n :]

    def close(self) -> None:
        """Give it back."""
        self.fmu.terminate()
        self.fmu.freeInstance()

    def _state_values(self) -> list[float]:
        x = np.zeros(self.n)
        if self.n:
            self.fmu.getContinuousStates(x.ctypes.data_as(self._doubles), self.n)
        return x.tolist()

    def _evaluate(self, point: FloatArray) -> FloatArray:
        x, rates = np.ascontiguousarray(point[: self.n]), np.zeros(self.n)
        if self.n:
            self.fmu.setContinuousStates(x.ctypes.data_as(self._doubles), self.n)
        if self._u:
            self.fmu.setReal(self._u, point[self.n :].tolist())
        outputs = self.fmu.getReal(self._y) if self._y else []  # before the derivatives: OpenModelica's are stale after
        if self.n:
            self.fmu.getDerivatives(rates.ctypes.data_as(self._doubles), self.n)
        return np.concatenate((rates, outputs))

    @property
    def _doubles(self) -> Any:
        from ctypes import POINTER, c_double

        return POINTER(c_double)
