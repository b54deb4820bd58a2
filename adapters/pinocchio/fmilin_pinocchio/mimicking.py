"""Joints that follow others: q = k q_leader + c, a constraint. Pinocchio's own reader leaves them free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.adapters import read_urdf
from fmilin.errors import ModelError
from fmilin.signals import FloatArray
from fmilin_pinocchio.names import Joint, joints_of

__all__ = ["Couplings", "Mimic", "mimics_in"]


@dataclass(frozen=True)
class Mimic:
    """One joint follows another."""

    follower: str
    leader: str
    ratio: float
    offset: float

    @property
    def name(self) -> str:
        """Return the name of the constraint."""
        return f"{self.follower}.mimic"


def mimics_in(path: Path, robot: Any) -> tuple[tuple[Mimic, ...], tuple[str, ...]]:
    """Return which joint follows which in a URDF file, and diagnostics; fixed joints follow none.

    Raises
    ------
    ModelError
        When a joint with several degrees of freedom follows or is followed.
    """
    if b"<mimic" not in path.read_bytes():
        return (), ()
    joints = {joint.name: joint for joint in joints_of(robot)}
    mimics, remarks = [], []
    for joint in read_urdf(path).joints:
        mimic = joint.mimic
        if mimic is None or joint.name not in joints:
            continue
        if mimic.joint not in joints:
            remarks.append(f"The joint '{joint.name}' mimics '{mimic.joint}', which does not move: it moves freely.")
            continue
        for name in (joint.name, mimic.joint):
            if joints[name].sizes[1] != 1:
                raise ModelError(
                    f"The joint '{joint.name}' mimics '{mimic.joint}': both must have one degree of freedom."
                )
        mimics.append(Mimic(joint.name, mimic.joint, mimic.multiplier, mimic.offset))
    return tuple(mimics), tuple(remarks)


class Couplings:
    """The constraints of joints that follow others.

    Parameters
    ----------
    mimics : sequence of Mimic
    joints : sequence of Joint
    n : int
        Number of velocities.

    Attributes
    ----------
    G : array, shape (m, n)
        Constant.
    units : list of str
    """

    def __init__(self, mimics: Sequence[Mimic], joints: Sequence[Joint], n: int) -> None:
        by_name = {joint.name: joint for joint in joints}
        self.mimics = tuple(mimics)
        self._pairs = [(by_name[mimic.follower], by_name[mimic.leader]) for mimic in mimics]
        self.units = ["m" if follower.kind == "slide" else "rad" for follower, _ in self._pairs]
        self.G = np.zeros((len(self.mimics), n))
        for row, mimic, (follower, leader) in zip(self.G, self.mimics, self._pairs, strict=True):
            row[follower.v] += 1.0
            row[leader.v] -= mimic.ratio

    def gaps(self, q: FloatArray) -> FloatArray:
        """Return q_follower - k q_leader - c, (m,); of unbounded joints the nearest of all turns."""
        gaps = np.empty(len(self.mimics))
        for i, (mimic, (follower, leader)) in enumerate(zip(self.mimics, self._pairs, strict=True)):
            gap = _position(follower, q) - mimic.ratio * _position(leader, q) - mimic.offset
            turns = "unbounded" in (follower.kind, leader.kind)
            gaps[i] = (gap + np.pi) % (2 * np.pi) - np.pi if turns else gap
        return gaps

    def followed(self, q: FloatArray) -> FloatArray:
        """Return the position with all followers where their leaders ask for; one may follow another that follows."""
        q = q.copy()
        for _ in self.mimics:
            for mimic, (follower, leader) in zip(self.mimics, self._pairs, strict=True):
                wanted = mimic.ratio * _position(leader, q) + mimic.offset
                if follower.kind == "unbounded":
                    q[follower.q : follower.q + 2] = np.cos(wanted), np.sin(wanted)
                else:
                    q[follower.q] = wanted
        return q


def _position(joint: Joint, q: FloatArray) -> float:
    if joint.kind == "unbounded":
        return float(np.arctan2(q[joint.q + 1], q[joint.q]))
    return float(q[joint.q])
