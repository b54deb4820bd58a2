"""Derivatives of the accelerations of chains of bodies: open ones, and ones with the last link welded to the ground."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.mechanism import chain_of
from benchmarks.mechanism_peers import Pinocchio, chain
from benchmarks.peers.ways import TOOLS, Way
from fmilin.models.mechanism import Mechanism, MechanismDescription
from fmilin.signals import FloatArray

__all__ = ["WAYS_OF_CLOSED_CHAIN", "WAYS_OF_OPEN_CHAIN"]

TIME_STEP = 1e-4
"""Of MuJoCo's discrete model, in s; the derivatives of the accelerations are read out of it."""


@contextmanager
def open_chain(links: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    model = Mechanism(chain_of(links))
    yield lambda: fl.linearize(model)


def make_closed_chain(links: int) -> Mechanism:
    return chain(links, (("ground", f"link{links - 1}"),))


@contextmanager
def closed_chain(links: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    model = make_closed_chain(links)
    yield lambda: fl.linearize(model)


@contextmanager
def open_chain_by_pinocchio(links: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    peer = Pinocchio(chain_of(links))
    q, v, zero = np.full(links, 0.1), np.zeros(links), np.zeros(links)

    def derivatives() -> Any:
        peer.pin.computeABADerivatives(peer.model, peer.data, q, v, zero)
        return peer.data.ddq_dq, peer.data.ddq_dv

    yield derivatives


@contextmanager
def closed_chain_by_pinocchio(links: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    model = make_closed_chain(links)
    peer = Pinocchio(model.description)
    x, zero = model.start.states, np.zeros(links)

    def derivatives() -> Any:
        by_position, by_velocity, *_ = peer.visit(x[:links], x[links:], zero)
        return by_position, by_velocity

    yield derivatives


def _reduce_by_pinocchio(derivatives: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return the rows of A of fmilin's independent velocities; in Pinocchio, users project by themselves."""
    links = len(derivatives[0])
    model = make_closed_chain(links)
    linear = fl.linearize(model)
    rows = [model.states.positions[name] - links for name in linear.states.names[len(linear.states) // 2 :]]
    return np.asarray((np.hstack(derivatives) @ linear.T)[rows])


@contextmanager
def open_chain_by_mujoco(links: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    import mujoco

    model = mujoco.MjModel.from_xml_string(write_mjcf(chain_of(links)))
    data = mujoco.MjData(model)
    data.qpos[:] = 0.1
    A = np.zeros((2 * links, 2 * links))

    def derivatives() -> Any:
        mujoco.mjd_transitionFD(model, data, 1e-6, 1, A, None, None, None)
        return A

    yield derivatives


@contextmanager
def open_chain_by_drake(links: int, folder: Path) -> Iterator[Callable[[], Any]]:
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.systems.framework import InputPortSelection, OutputPortSelection
    from pydrake.systems.primitives import Linearize

    plant = MultibodyPlant(time_step=0.0)
    path = folder / f"chain{links}.xml"
    path.write_text(write_mjcf(chain_of(links), options=False), encoding="utf-8")
    Parser(plant).AddModels(path)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    positions: FloatArray = np.full(links, 0.1)
    plant.SetPositions(context, positions)
    ports = InputPortSelection.kNoInput, OutputPortSelection.kNoOutput
    yield lambda: Linearize(plant, context, *ports, equilibrium_check_tolerance=np.inf)


def write_mjcf(description: MechanismDescription, *, options: bool = True) -> str:
    """Return a chain of pins about z as a model of MuJoCo.

    ``options``: the time step, gravity and no contacts, which Drake does not read; its gravity is the same by default.
    """
    gravity = " ".join(map(repr, map(float, description.gravity)))
    parts = [f'<mujoco model="{description.name}"><compiler angle="radian"/>']
    if options:
        parts.append(
            f'<option timestep="{TIME_STEP}" gravity="{gravity}" integrator="Euler"><flag contact="disable"/></option>'
        )
    parts.append("<worldbody>")
    for joint, body in zip(description.joints, description.bodies, strict=True):
        matrix = joint.placement.matrix
        place = " ".join(f"{value:.17g}" for value in matrix[:3, 3])
        axes = " ".join(f"{value:.17g}" for value in matrix[:3, :2].T.ravel())
        center = " ".join(f"{value:.17g}" for value in body.center)
        moments = " ".join(f"{value:.17g}" for value in np.diag(np.asarray(body.J)))
        parts.append(
            f'<body name="{body.name}" pos="{place}" xyaxes="{axes}"><joint name="{joint.name}" axis="0 0 1"/>'
            f'<inertial pos="{center}" mass="{body.mass:.17g}" diaginertia="{moments}"/>'
        )
    return "".join([*parts, "</body>" * len(description.bodies), "</worldbody></mujoco>"])


def _accelerations(linear: fl.LinearModel) -> FloatArray:
    return linear.A[len(linear.A) // 2 :]


def _accelerations_by_drake(linear: Any) -> FloatArray:
    A = np.asarray(linear.A())
    return A[len(A) // 2 :]


def _accelerations_of_discrete(A: FloatArray) -> FloatArray:
    n = len(A) // 2
    return np.asarray((A - np.eye(2 * n))[n:] / TIME_STEP)


WAYS_OF_OPEN_CHAIN = [
    Way(TOOLS["fmilin"], open_chain, _accelerations),
    Way(TOOLS["Pinocchio"], open_chain_by_pinocchio, np.hstack, "computeABADerivatives"),
    Way(TOOLS["MuJoCo"], open_chain_by_mujoco, _accelerations_of_discrete, "mjd_transitionFD"),
    Way(TOOLS["Drake"], open_chain_by_drake, _accelerations_by_drake, "Linearize"),
]

WAYS_OF_CLOSED_CHAIN = [
    Way(TOOLS["fmilin"], closed_chain, _accelerations),
    Way(TOOLS["Pinocchio"], closed_chain_by_pinocchio, _reduce_by_pinocchio, "constraint dynamics"),
]
