"""The members of a connected system, and where the states, inputs and outputs of each stand among all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fmilin.model.interface import Model

__all__ = ["Members", "Part"]


class Part(NamedTuple):
    """A member: its name, and a view of it whose outputs are those that anybody wants."""

    name: str
    model: Model


class Members:
    """Members side by side.

    ``size``: how many states, inputs and outputs they have together. ``copies`` (2, k): outputs that are states, and
    those states.
    """

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
