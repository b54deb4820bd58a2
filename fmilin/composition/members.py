"""The members of a connected system: where each stands among all, their wires v = K y + L w + v_0, and their order.

Each member is evaluated once with its right inputs, and earlier where a result without them is needed. The direct
dependencies of the outputs decide the order; members without an order form a loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from fmilin.composition.system_declaration import in_member
from fmilin.model.interface import Evaluation, Model
from fmilin.signals import FloatArray

Indices = NDArray[np.intp]
Depends = NDArray[np.bool_]


@dataclass(frozen=True)
class AlgebraicLoop:
    """Inputs that are found together, by Newton's method."""

    inputs: Indices  # among all inputs of all members
    members: tuple[int, ...]  # those evaluated for it


@dataclass(frozen=True)
class VisitStep:
    """Evaluate a member, or solve a loop; then some inputs are known."""

    member: int  # -1 for a loop, and for the beginning
    final: bool  # whether all inputs of the member are known
    loop: AlgebraicLoop | None
    settles: Indices  # connected inputs that can be computed after it


class Planner:
    """The order of evaluations that ends with every member evaluated at its right inputs.

    ``owners`` (nv,), (ny,): the member of every input and output. ``sources`` (nv,): the output that feeds it, or -1.
    ``depends`` (ny_i, nv_i): which outputs hang on which inputs at once. ``free`` (ny,): states, known without an
    evaluation.
    """

    def __init__(
        self, owners: tuple[Indices, Indices], sources: Indices, depends: Sequence[Depends], free: Depends
    ) -> None:
        self.of_input, self.of_output = owners
        self.sources, self.depends = sources, depends
        self.inputs = [np.flatnonzero(self.of_input == m) for m in range(len(depends))]
        self.outputs = [np.flatnonzero(self.of_output == m) for m in range(len(depends))]
        self.known_inputs = sources < 0
        self.known_outputs = free.copy()
        self.used = np.zeros(len(free), dtype=bool)
        self.used[sources[sources >= 0]] = True

    def steps(self) -> list[VisitStep]:
        """Return them."""
        steps = [VisitStep(-1, final=False, loop=None, settles=self._update_known_inputs())]
        open_ = set(range(len(self.depends)))
        while open_:
            ready = [m for m in sorted(open_) if self.known_inputs[self.inputs[m]].all()]
            if ready:
                for m in ready:
                    open_.discard(m)
                    self.known_outputs[self.outputs[m]] = True
                    steps.append(VisitStep(m, final=True, loop=None, settles=self._update_known_inputs()))
            elif (early := self._early(open_)) is not None:
                steps.append(VisitStep(early, final=False, loop=None, settles=self._update_known_inputs()))
            else:
                loop = self._loop()
                self.known_outputs[self.sources[loop.inputs]] = True
                settled_inputs = np.setdiff1d(
                    self._update_known_inputs(), loop.inputs
                )  # its own inputs stay as they were found
                steps.append(VisitStep(-1, final=False, loop=loop, settles=settled_inputs))
        return steps

    def _update_known_inputs(self) -> Indices:
        """Return the inputs with a newly known source, and mark them as known."""
        learned = ~self.known_inputs
        learned[learned] = self.known_outputs[self.sources[learned]]
        self.known_inputs |= learned
        return np.flatnonzero(learned)

    def _early(self, open_: set[int]) -> int | None:
        """Return a member that tells something needed before all its inputs are known; mark what it tells."""
        for m in sorted(open_):
            rows = self.outputs[m]
            waiting = ~(self.depends[m][:, ~self.known_inputs[self.inputs[m]]]).any(axis=1)
            if len(rows[waiting & ~self.known_outputs[rows] & self.used[rows]]):
                self.known_outputs[rows[waiting]] = True
                return m
        return None

    def _loop(self) -> AlgebraicLoop:
        """Return a set of unknown inputs that depend on each other and on nothing else that is unknown."""
        unknown = np.flatnonzero(~self.known_inputs)
        position = {int(v): i for i, v in enumerate(unknown)}
        rows, columns = [], []
        for i, v in enumerate(unknown):
            y = self.sources[v]
            m = int(self.of_output[y])
            for u in self.inputs[m][self.depends[m][int(np.searchsorted(self.outputs[m], y))]]:
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
        return AlgebraicLoop(chosen, tuple(sorted({int(self.of_output[self.sources[v]]) for v in chosen})))


class MemberView(NamedTuple):
    """A member: its name, and a view of it with the outputs that are needed."""

    name: str
    model: Model


class Members:
    """Members side by side; ``copies`` (2, k): outputs that are states, and those states."""

    def __init__(self, parts: Sequence[MemberView]) -> None:
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
    return [slice(a, b) for a, b in pairwise(np.cumsum([0, *sizes]).tolist())]


@dataclass(frozen=True)
class Wires:
    """The sources of all inputs of all members, arrays of shape (nv,)."""

    sources: Indices  # the output that does; -1 where none does
    inputs: Indices  # the input of the system that does; -1 where none does
    # factors, offsets: of the one or the other; where neither does the offset is the value itself
    factors: FloatArray
    offsets: FloatArray
    names: tuple[str, ...]  # of the inputs, for messages

    def external(self, w: FloatArray) -> FloatArray:
        """Return the inputs with nothing but those of the system in them, shape (nv,)."""
        v = self.offsets.copy()
        outside, factors, inputs = self._outside
        v[outside] += factors * w[inputs]
        return v

    @cached_property
    def _outside(self) -> tuple[Indices, FloatArray, Indices]:
        """The inputs that inputs of the system feed, their factors, and those inputs of the system."""
        outside = np.flatnonzero(self.inputs >= 0)
        return outside, self.factors[outside], self.inputs[outside]

    @cached_property
    def connected_inputs(self) -> Indices:
        """The inputs that outputs feed."""
        return np.flatnonzero(self.sources >= 0)

    def compute_inputs(self, which: Indices, outputs: FloatArray) -> FloatArray:
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
    """The members at one point; each is evaluated once per set of inputs."""

    def __init__(self, members: Members, t: float, x: FloatArray, inputs: FloatArray) -> None:
        self.t, self.x, self.inputs = t, x, inputs
        self.outputs = np.full(members.size[2], np.nan)
        self.rates = np.empty(members.size[0])
        self._members = members
        self._evaluated_inputs: dict[int, bytes] = {}
        rows, states = members.copies
        self.outputs[rows] = x[states]

    def at(self, member: int) -> None:
        """Evaluate a member with the present values of its inputs."""
        c = self._members
        v = self.inputs[c.inputs[member]]
        if self._evaluated_inputs.get(member) == (input_bytes := v.tobytes()):
            return
        part = c.parts[member]
        with in_member(part.name):
            evaluation: Evaluation = part.model.evaluate(self.t, self.x[c.states[member]], v.copy())
        self._evaluated_inputs[member] = input_bytes
        self.outputs[c.outputs[member]] = evaluation.outputs
        self.rates[c.states[member]] = evaluation.derivatives
