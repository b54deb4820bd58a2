"""A point of a connected system with its members visited there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.connected.members import Members
from fmilin.connected.names import in_member
from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Evaluation

__all__ = ["Settled", "Visits"]


@dataclass(frozen=True)
class Settled:
    """A point with all inputs known."""

    inputs: FloatArray  # (nv,), of all members
    outputs: FloatArray  # shape (ny,)
    rates: FloatArray  # shape (N,)


class Visits:
    """The members at one point; each is visited once per set of inputs."""

    def __init__(self, members: Members, t: float, x: FloatArray, inputs: FloatArray) -> None:
        self.t, self.x, self.inputs = t, x, inputs
        self.outputs = np.full(members.size[2], np.nan)
        self.rates = np.empty(members.size[0])
        self._members = members
        self._seen: dict[int, bytes] = {}
        rows, states = members.copies
        self.outputs[rows] = x[states]

    def at(self, member: int) -> None:
        """Visit a member with what its inputs hold now."""
        c = self._members
        v = self.inputs[c.inputs[member]]
        if self._seen.get(member) == (held := v.tobytes()):
            return
        part = c.parts[member]
        with in_member(part.name):
            found: Evaluation = part.model.evaluate(self.t, self.x[c.states[member]], v.copy())
        self._seen[member] = held
        self.outputs[c.outputs[member]] = found.outputs
        self.rates[c.states[member]] = found.derivatives
