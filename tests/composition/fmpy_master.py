"""A co-simulation of real FMUs, stepped through FMPy: what the linear model of a co-simulation is held against."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from fmilin.signals import FloatArray

__all__ = ["Stepped", "seen_limit"]


class Stepped:
    """FMUs of FMI 2.0 for co-simulation under a Jacobi or Gauss-Seidel master.

    Parameters
    ----------
    fmus : mapping of str to Path
    wires : sequence of (str, str)
        ``("a.y", "b.u")``.
    starts : mapping of str to float
        ``a.x``.
    """

    def __init__(self, fmus: Mapping[str, Path], wires: Sequence[tuple[str, str]], starts: Mapping[str, float]) -> None:
        import fmpy
        from fmpy.fmi2 import FMU2Slave

        self.wires = [(a.split(".", 1), b.split(".", 1)) for a, b in wires]
        self.starts, self.folders, self.slaves, self.references = starts, [], {}, {}
        for name, path in fmus.items():
            described = fmpy.read_model_description(str(path))
            folder = fmpy.extract(str(path))
            self.folders.append(folder)
            self.references[name] = {v.name: v.valueReference for v in described.modelVariables}
            slave: Any = FMU2Slave(
                guid=described.guid,
                unzipDirectory=folder,
                modelIdentifier=described.coSimulation.modelIdentifier,
                instanceName=name,
            )
            slave.instantiate()
            self.slaves[name] = slave

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for slave in self.slaves.values():
            slave.freeInstance()
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)

    def run(self, step: float, count: int, *, order: Sequence[str] = ()) -> FloatArray:
        """Return what all connected outputs are after each step, shape (count, wires); Jacobi without an order."""
        for name, slave in self.slaves.items():
            slave.reset()
            slave.setupExperiment(startTime=0.0, tolerance=1e-10)
            for text, value in self.starts.items():
                member, variable = text.split(".", 1)
                if member == name:
                    slave.setReal([self.references[name][variable]], [value])
            slave.enterInitializationMode()
            slave.exitInitializationMode()
        held = np.array([self._read(source) for source, _ in self.wires])
        rows = np.empty((count, len(self.wires)))
        for k in range(count):
            before = held.copy()
            for name in order or self.slaves:
                given = held if order else before
                for value, (_, (member, variable)) in zip(given, self.wires, strict=True):
                    if member == name:
                        self.slaves[name].setReal([self.references[name][variable]], [float(value)])
                self.slaves[name].doStep(currentCommunicationPoint=k * step, communicationStepSize=step)
                for i, (source, _) in enumerate(self.wires):
                    if source[0] == name:
                        held[i] = self._read(source)
            rows[k] = held
        return rows

    def _read(self, source: Sequence[str]) -> float:
        return float(self.slaves[source[0]].getReal([self.references[source[0]][source[1]]])[0])

    def growth(self, step: float, *, count: int = 400, order: Sequence[str] = ()) -> float:
        """Return by which factor a step multiplies what is there, in the end: the slope of log |outputs|."""
        sizes = np.log(np.linalg.norm(self.run(step, count, order=order), axis=1))
        late = np.arange(count // 2, count)
        return float(np.exp(np.polyfit(late, sizes[late], 1)[0]))


def seen_limit(system: Stepped, low: float, high: float, *, order: Sequence[str] = (), count: int = 400) -> float:
    """Return the step at which the outputs begin to grow, by bisection between two steps."""
    for _ in range(12):
        middle = 0.5 * (low + high)
        if system.growth(middle, order=order, count=count) <= 1.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
