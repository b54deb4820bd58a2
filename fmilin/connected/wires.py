"""Connections in numbers: v = K y + L w + v_0, with one entry in each row of K and L together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fmilin.connected.plan import Indices
from fmilin.ground.signals import FloatArray

__all__ = ["Wires"]


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
        found: FloatArray = self.factors[which] * outputs[self.sources[which]] + self.offsets[which]
        return found

    def feeds(self, outputs: FloatArray) -> FloatArray:
        """Return K times columns."""
        return self._times(self.sources, outputs)

    def leads(self, inputs: FloatArray) -> FloatArray:
        """Return L times columns."""
        return self._times(self.inputs, inputs)

    def _times(self, source: Indices, columns: FloatArray) -> FloatArray:
        found = np.zeros((len(source), columns.shape[1]))
        rows = np.flatnonzero(source >= 0)
        found[rows] = self.factors[rows, None] * columns[source[rows]]
        return found

    def selections(self, outputs: int, inputs: int) -> tuple[Any, Any]:
        """Return K (nv, ``outputs``) and L (nv, ``inputs``), sparse."""
        found = []
        for which, width in ((self.sources, outputs), (self.inputs, inputs)):
            rows = np.flatnonzero(which >= 0)
            found.append(sparse.csr_array((self.factors[rows], (rows, which[rows])), shape=(len(which), width)))
        return found[0], found[1]
