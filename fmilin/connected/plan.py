"""In which order members are visited: each once with its right inputs, sooner where that is needed to know them.

What an output depends on at once decides the order. A member whose outputs are states needs no visit for them; one
whose needed outputs do not depend on inputs that are still unknown is visited with whatever those inputs hold; what
then is left is an algebraic loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

Indices = NDArray[np.intp]
Depends = NDArray[np.bool_]


@dataclass(frozen=True)
class Loop:
    """Inputs that are found together, by Newton's method."""

    inputs: Indices  # among all inputs of all members
    members: tuple[int, ...]  # those visited for it


@dataclass(frozen=True)
class VisitStep:
    """Visit a member, or solve a loop; then some inputs are known."""

    member: int  # -1 for a loop, and for the beginning
    final: bool  # whether all inputs of the member are known
    loop: Loop | None
    settles: Indices  # connected inputs that can be computed after it


def planned(
    owners: tuple[Indices, Indices], sources: Indices, depends: Sequence[Depends], free: Depends
) -> list[VisitStep]:
    """Return the steps that end with every member visited at its right inputs.

    ``owners`` (nv,), (ny,): the member of every input and output. ``sources`` (nv,): the output that feeds it, or -1.
    ``depends`` (ny_i, nv_i): which outputs hang on which inputs at once. ``free`` (ny,): states, known without a visit.
    """
    return _Planner(owners, sources, depends, free).steps()


class _Planner:
    def __init__(
        self, owners: tuple[Indices, Indices], sources: Indices, depends: Sequence[Depends], free: Depends
    ) -> None:
        self.of_input, self.of_output = owners
        self.sources, self.depends = sources, depends
        self.inputs = [np.flatnonzero(self.of_input == m) for m in range(len(depends))]
        self.outputs = [np.flatnonzero(self.of_output == m) for m in range(len(depends))]
        self.known_inputs = sources < 0
        self.known_outputs = free.copy()
        used = np.zeros(len(free), dtype=bool)
        used[sources[sources >= 0]] = True
        self.used = used

    def steps(self) -> list[VisitStep]:
        steps = [VisitStep(-1, final=False, loop=None, settles=self._learned())]
        open_ = set(range(len(self.depends)))
        while open_:
            ready = [m for m in sorted(open_) if self.known_inputs[self.inputs[m]].all()]
            if ready:
                for m in ready:
                    open_.discard(m)
                    self.known_outputs[self.outputs[m]] = True
                    steps.append(VisitStep(m, final=True, loop=None, settles=self._learned()))
            elif (early := self._early(open_)) is not None:
                steps.append(VisitStep(early, final=False, loop=None, settles=self._learned()))
            else:
                loop = self._loop()
                self.known_outputs[self.sources[loop.inputs]] = True
                others = np.setdiff1d(self._learned(), loop.inputs)  # its own inputs stay as they were found
                steps.append(VisitStep(-1, final=False, loop=loop, settles=others))
        return steps

    def _learned(self) -> Indices:
        """Return the inputs whose source has become known, and take them as known."""
        learned = ~self.known_inputs
        learned[learned] = self.known_outputs[self.sources[learned]]
        self.known_inputs |= learned
        return np.flatnonzero(learned)

    def _early(self, open_: set[int]) -> int | None:
        """Return a member that tells something needed before all its inputs are known; mark what it tells."""
        for m in sorted(open_):
            rows = self.outputs[m]
            waiting = ~(self.depends[m][:, ~self.known_inputs[self.inputs[m]]]).any(axis=1)
            news = rows[waiting & ~self.known_outputs[rows] & self.used[rows]]
            if len(news):
                self.known_outputs[rows[waiting]] = True
                return m
        return None

    def _loop(self) -> Loop:
        """Return a set of unknown inputs that depend on each other and on nothing else that is unknown."""
        unknown = np.flatnonzero(~self.known_inputs)
        position = {int(v): i for i, v in enumerate(unknown)}
        rows, columns = [], []
        for i, v in enumerate(unknown):
            y = self.sources[v]
            m = int(self.of_output[y])
            row = self.depends[m][int(np.searchsorted(self.outputs[m], y))]
            for u in self.inputs[m][row]:
                if int(u) in position:
                    rows.append(i)
                    columns.append(position[int(u)])
        n = len(unknown)
        graph = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n))
        count, label = connected_components(graph, directed=True, connection="strong")
        outside = np.zeros(count, dtype=bool)
        for i, j in zip(rows, columns, strict=True):
            outside[label[i]] |= label[i] != label[j]
        chosen = unknown[label == int(np.flatnonzero(~outside)[0])]
        members = sorted({int(self.of_output[self.sources[v]]) for v in chosen})
        return Loop(chosen, tuple(members))
