"""Slopes of a connected system at a point: those of its members, and what connections make of them.

    dy = C dx + D dv,  dv = K dy + L dw   =>   (I - K D) dv = K C dx + L dw

Each member's matrices meet only the columns in which something of it moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fmilin.ground.signals import FloatArray

Solve = Callable[[FloatArray], FloatArray]


class MemberSlopes(NamedTuple):
    """What one member says of itself, and where it stands among all."""

    over_states: FloatArray  # (n + ny, n), A above C
    over_inputs: FloatArray  # (n + ny, nv), B above D
    states: slice
    inputs: slice
    outputs: slice

    def add(self, matrix: FloatArray, along: FloatArray, rates: FloatArray | None, outputs: FloatArray) -> None:
        """Add ``matrix`` times ``along`` to rates and outputs; without rates ``matrix`` has the rows of outputs."""
        moved = _moved(along)
        if moved is None or not matrix.shape[0]:
            return
        products = _product(matrix, along[:, moved])
        if rates is not None:
            n = self.states.stop - self.states.start
            rates[self.states, moved] += products[:n]
            products = products[n:]
        outputs[self.outputs, moved] += products


def _moved(along: FloatArray) -> slice | np.ndarray | None:
    """Return the columns that are not zero: as a slice where they are neighbours, None where there are none."""
    if not along.shape[0]:
        return None
    bits = np.ascontiguousarray(along).view(np.uint64)  # quicker than asking every number whether it is zero
    columns = np.flatnonzero(np.bitwise_or.reduce(bits, axis=0))
    if not len(columns):
        return None
    first, last = int(columns[0]), int(columns[-1])
    return slice(first, last + 1) if last - first + 1 == len(columns) else columns


def _product(matrix: FloatArray, along: FloatArray) -> FloatArray:
    """Return a product in which what is unknown (NaN) spreads only where it is met."""
    product: FloatArray = matrix @ along
    if np.isfinite(product.sum()):  # one number tells of all; a sum that overflows goes the long way, too
        return product
    unknown = np.isnan(matrix).astype(float) @ (along != 0) + (matrix != 0).astype(float) @ np.isnan(along)
    return np.where(unknown > 0, np.nan, np.nan_to_num(matrix) @ np.nan_to_num(along))


@dataclass(frozen=True)
class Jacobians:
    """All slopes at one point."""

    members: Sequence[MemberSlopes]
    feeds: Solve  # K times columns of outputs, shape (nv, k)
    leads: Solve  # L times columns of inputs of the system
    closed: Solve  # (I - K D)^-1 times columns
    sizes: tuple[int, int, int]  # states, inputs and outputs of all members

    def through(self, dx: FloatArray, du: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how all rates, outputs and inputs of members change, shapes (N, k), (ny, k) and (nv, k)."""
        k = dx.shape[1]
        rates, outputs = np.zeros((self.sizes[0], k)), np.zeros((self.sizes[2], k))
        for m in self.members:
            m.add(m.over_states, dx[m.states], rates, outputs)
        dv = self.closed(self.feeds(outputs) + self.leads(du))
        for m in self.members:
            m.add(m.over_inputs, dv[m.inputs], rates, outputs)
        return rates, outputs, dv

    def spread(self, rates: FloatArray, outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what errors of members' slopes become: dv is wrong by |S K| times those of the outputs."""
        SK = np.abs(self.closed(self.feeds(np.eye(self.sizes[2]))))
        moved = SK @ outputs
        rates, outputs = rates.copy(), outputs.copy()
        for m in self.members:
            m.add(np.abs(m.over_inputs), moved[m.inputs], rates, outputs)
        return rates, outputs
