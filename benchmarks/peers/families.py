"""Linear models at many points, undeclared constraints, and motions that repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import pi
from pathlib import Path
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.fmu import by_fmpy, by_pyfmi
from benchmarks.fmu_masses import Case
from benchmarks.fmu_springs import springs_fmu
from benchmarks.mechanism import chain_of
from benchmarks.mechanism_peers import Pinocchio
from benchmarks.peers.fmus import dense_blocks
from benchmarks.peers.ways import TOOLS, Way
from benchmarks.periodic import chain as driven_chain
from fmilin.models.mechanism import Mechanism
from fmilin.signals import FloatArray
from fmilin.systems import four_bar

__all__ = [
    "WAYS_OF_DISCOVERY",
    "WAYS_OF_ORBIT",
    "WAYS_OF_SWEEP_OF_FMU",
    "WAYS_OF_SWEEP_OF_MECHANISM",
]

STATES = 20
"""Of the FMU that is swept."""
LINKS = 6
"""Of the mechanism that is swept."""
PERIOD = 2 * pi / 1.3
"""Of the force on the driven chain."""


@contextmanager
def sweep_of_fmu(points: int, folder: Path) -> Iterator[Callable[[], Any]]:
    with fl.load(_swept(folder).path) as model:
        yield lambda: fl.sweep(model, {"x[1]": _displacements(points)})


@contextmanager
def sweep_by_fmpy(points: int, folder: Path) -> Iterator[Callable[[], Any]]:
    with by_fmpy(_swept(folder), "at a point") as ask:
        yield lambda: [ask(value) for value in _displacements(points)]


@contextmanager
def sweep_by_pyfmi(points: int, folder: Path) -> Iterator[Callable[[], Any]]:
    with by_pyfmi(_swept(folder)) as script:
        if script is None:
            raise ModuleNotFoundError("PyFMI is not installed.")

        def sweep() -> Any:
            models = []
            for value in _displacements(points):
                script.move(value)
                models.append(script.linearize())
            return models

        yield sweep


@contextmanager
def sweep_of_mechanism(points: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    model = Mechanism(chain_of(LINKS))
    yield lambda: fl.sweep(model, {"pin0.q": _angles(points)})


@contextmanager
def sweep_by_pinocchio(points: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    peer = Pinocchio(chain_of(LINKS))
    zero = np.zeros(LINKS)

    def sweep() -> Any:
        slopes = []
        for angle in _angles(points):
            q = np.full(LINKS, 0.1)
            q[0] = angle
            peer.pin.computeABADerivatives(peer.model, peer.data, q, zero, zero)
            slopes.append((peer.data.ddq_dq.copy(), peer.data.ddq_dv.copy()))
        return slopes

    yield sweep


@contextmanager
def discovery(loops: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    model = four_bar(loops).with_constraints([])
    yield lambda: fl.discover(model)


@contextmanager
def orbit(masses: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    model = driven_chain(masses)

    def exponents() -> Any:
        motion = fl.periodic_orbit(model, period=PERIOD)
        return fl.linearize_periodic(motion.model, motion).floquet()

    yield exponents


def _swept(folder: Path) -> Case:
    return springs_fmu(STATES, folder, directional=True, declared=True)


def _displacements(points: int) -> FloatArray:
    return np.linspace(0.0, 0.5, points)


def _angles(points: int) -> FloatArray:
    return np.linspace(0.1, 0.6, points)


def _join_family(family: fl.LinearFamily) -> FloatArray:
    return np.block([[family.A, family.B], [family.C, family.D]])


WAYS_OF_SWEEP_OF_FMU = [
    Way(TOOLS["fmilin"], sweep_of_fmu, _join_family),
    Way(TOOLS["FMPy"], sweep_by_fmpy),
    Way(TOOLS["PyFMI"], sweep_by_pyfmi, lambda models: np.array([dense_blocks(blocks) for blocks in models])),
]
WAYS_OF_SWEEP_OF_MECHANISM = [
    Way(TOOLS["fmilin"], sweep_of_mechanism, lambda family: family.A[:, LINKS:]),
    Way(
        TOOLS["Pinocchio"],
        sweep_by_pinocchio,
        lambda slopes: np.array([np.hstack(pair) for pair in slopes]),
        "computeABADerivatives",
    ),
]
WAYS_OF_DISCOVERY = [Way(TOOLS["fmilin"], discovery)]
WAYS_OF_ORBIT = [Way(TOOLS["fmilin"], orbit)]
