"""The members of a connected system: where each stands among all, how they are wired, and how they are visited.

Connections in numbers: v = K y + L w + v_0, with one entry in each row of K and L together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fmilin.connected.names import in_member
from fmilin.connected.plan import Indices
from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Evaluation, Model


class Part(NamedTuple):
    """A member: its name, and a view of it whose outputs are those that anybody wants."""

    name: str
    model: Model


class Members:
    """Members side by side; ``copies`` (2, k): outputs that are states, and those states."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        models = [part.model for part in parts]
        self.states = _slices([len(m.states) for m in models])
        self.inputs = _slices([len(m.inputs) for m in models])
        self.outputs = _slices([len(m.outputs) for m in models])
        n, nu, ny = (slices[-1].stop if slices else 0 for slices in (self.states, self.inputs, self.outputs))
        self.size: tuple[int, int, int] = (n, nu, ny)
        copied = [
            (s.start + i, x.start + c.index)
            for m, s, x in zip(models, self.outputs, self.states, strict=True)
            for i, c in m.copies.items()
            if c.kind == "state"
        ]
        self.copies = np.array(copied, dtype=np.intp).reshape(-1, 2).T


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


@dataclass(frozen=True)
class Wires:
    """What feeds every input of every member, all arrays of shape (nv,)."""

    sources: Indices  # the output that does; -1 where none does
    inputs: Indices  # the input of the system that does; -1 where none does
    # factors, offsets: of the one or the other; where neither does the offset is the value itself
    factors: FloatArray
    offsets: FloatArray
    names: tuple[str, ...]  # of the inputs, for messages

    def external(self, w: FloatArray) -> FloatArray:
        """Return the inputs with nothing but those of the system in them, shape (nv,)."""
        v = self.offsets.copy()
        outside = self.inputs >= 0
        v[outside] += self.factors[outside] * w[self.inputs[outside]]
        return v

    def fed(self, which: Indices, outputs: FloatArray) -> FloatArray:
        """Return what outputs make of the inputs ``which``."""
        values: FloatArray = self.factors[which] * outputs[self.sources[which]] + self.offsets[which]
        return values

    def feeds(self, outputs: FloatArray) -> FloatArray:
        """Return K times columns."""
        return self._times(self.sources, outputs)

    def leads(self, inputs: FloatArray) -> FloatArray:
        """Return L times columns."""
        return self._times(self.inputs, inputs)

    def _times(self, source: Indices, columns: FloatArray) -> FloatArray:
        products = np.zeros((len(source), columns.shape[1]))
        rows = np.flatnonzero(source >= 0)
        products[rows] = self.factors[rows, None] * columns[source[rows]]
        return products

    def selections(self, outputs: int, inputs: int) -> tuple[Any, Any]:
        """Return K (nv, ``outputs``) and L (nv, ``inputs``), sparse."""
        matrices = []
        for which, width in ((self.sources, outputs), (self.inputs, inputs)):
            rows = np.flatnonzero(which >= 0)
            matrices.append(sparse.csr_array((self.factors[rows], (rows, which[rows])), shape=(len(which), width)))
        return matrices[0], matrices[1]


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
            evaluation: Evaluation = part.model.evaluate(self.t, self.x[c.states[member]], v.copy())
        self._seen[member] = held
        self.outputs[c.outputs[member]] = evaluation.outputs
        self.rates[c.states[member]] = evaluation.derivatives
