"""Linear models of FMUs: chains of masses with and without directional derivatives and declared dependencies."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.fmu import by_fmpy, by_pyfmi
from benchmarks.fmu_masses import Case
from benchmarks.fmu_springs import springs_fmu
from benchmarks.peers.ways import TOOLS, Way
from fmilin.signals import FloatArray

__all__ = ["FmuKind", "dense_blocks", "join_blocks", "ways_of_fmu"]


NEARBY = 1e-9
"""From one call to the next and back: nothing that was computed for the same point is remembered."""


@dataclass(frozen=True)
class FmuKind:
    """What an FMU provides."""

    directional: bool
    declared: bool

    @property
    def title(self) -> str:
        derivatives = "directional derivatives" if self.directional else "no derivatives"
        return f"FMU, {derivatives}, {'declared dependencies' if self.declared else 'no dependencies'}"

    def case(self, size: int, folder: Path) -> Case:
        return springs_fmu(size, folder, directional=self.directional, declared=self.declared)


def ways_of_fmu(kind: FmuKind) -> list[Way]:
    """Return the ways to the matrix [A B; C D], the first one that of fmilin."""
    return [
        Way(TOOLS["fmilin"], partial(_by_fmilin, kind), join_blocks),
        Way(TOOLS["FMPy"], partial(_by_fmpy, kind)),
        Way(TOOLS["PyFMI"], partial(_by_pyfmi, kind), dense_blocks),
        Way(TOOLS["CasADi"], partial(_by_casadi, kind), dense_blocks),
    ]


def join_blocks(linear: fl.LinearModel) -> FloatArray:
    return np.block([[linear.A, linear.B], [linear.C, linear.D]])


@contextmanager
def _by_fmilin(kind: FmuKind, size: int, folder: Path) -> Iterator[Callable[[], Any]]:
    with fl.load(kind.case(size, folder).path) as model:
        start = fl.operating_point(model)
        points = cycle([start, replace(start, states=start.states + NEARBY)])
        yield lambda: fl.linearize(model, next(points))


@contextmanager
def _by_fmpy(kind: FmuKind, size: int, folder: Path) -> Iterator[Callable[[], Any]]:
    import fmpy

    case = kind.case(size, folder)
    fmpy.read_model_description(str(case.path))  # the references are at hand below; a user gets them here
    with by_fmpy(case, "at a point" if kind.directional else "differences") as ask:
        firsts = cycle([0.0, NEARBY])
        yield (lambda: ask(next(firsts))) if kind.directional else ask


@contextmanager
def _by_pyfmi(kind: FmuKind, size: int, folder: Path) -> Iterator[Callable[[], Any]]:
    with by_pyfmi(kind.case(size, folder), structured=kind.declared) as script:
        if script is None:
            raise ModuleNotFoundError("PyFMI is not installed.")
        firsts = cycle([0.0, NEARBY])

        def linearize() -> Any:
            script.move(next(firsts))
            return script.linearize()

        yield linearize


@contextmanager
def _by_casadi(kind: FmuKind, size: int, folder: Path) -> Iterator[Callable[[], Any]]:
    """As the documentation of DaeBuilder has it: exact where the FMU provides directional derivatives."""
    import casadi

    case = kind.case(size, folder)
    with TemporaryDirectory(dir=folder) as unpacked:
        with zipfile.ZipFile(case.path) as archive:
            archive.extractall(unpacked)
        dae = casadi.DaeBuilder("m", unpacked)
        blocks = ["jac_ode_x", "jac_ode_u", "jac_y_x", "jac_y_u"]
        function = dae.create("J", ["x", "u"], blocks, {"enable_fd": not kind.directional})
        x, u = casadi.DM(dae.start(dae.x())), casadi.DM(dae.start(dae.u()))
        yield lambda: function(x, u)


def dense_blocks(blocks: Any) -> FloatArray:
    A, B, C, D = (np.asarray(block.full() if hasattr(block, "full") else _dense(block)) for block in blocks)
    return np.block([[A, B], [C, D]])


def _dense(block: Any) -> FloatArray:
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block, dtype=np.float64)
