"""The numbers of a connected system at a point: inputs of all members found, members visited, slopes through loops.

Members x_i' = f_i(x_i, v_i), y_i = g_i(x_i, v_i); every input v_j is fed by one output, ``factor * y + offset``, by an
input of the system, or held: v = K y + L w + v_0 with one entry in each row of K and L together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fmilin.composition.feedthrough import depends_at_once, input_slopes
from fmilin.composition.loops import LoopSolver, require_solvable
from fmilin.composition.names import in_member
from fmilin.composition.plan import Indices, Step, planned
from fmilin.composition.slopes import Jacobians, MemberSlopes
from fmilin.errors import FmilinError, NumericalError
from fmilin.model.interface import Evaluation, Model
from fmilin.signals import FloatArray
from fmilin.tolerances import LOOP_CLOSED

__all__ = ["Coupling", "Part", "Settled", "Wires"]

REMEMBERED = 256
"""Points whose loops are known, so that the same point has the same last digit again."""


class Part(NamedTuple):
    """A member: its name, and a view of it whose outputs are those that anybody wants."""

    name: str
    model: Model


@dataclass(frozen=True)
class Wires:
    """What feeds every input of every member, all arrays of shape (nv,).

    Attributes
    ----------
    sources : array of int
        The output that does; -1 where none does.
    inputs : array of int
        The input of the system that does; -1 where none does.
    factors, offsets : array
        Of the one or the other; where neither does the offset is the value itself.
    names : tuple of str
        Of the inputs, for messages.
    """

    sources: Indices
    inputs: Indices
    factors: FloatArray
    offsets: FloatArray
    names: tuple[str, ...]


@dataclass(frozen=True)
class Settled:
    """A point with all inputs known.

    Attributes
    ----------
    inputs : array, shape (nv,)
        Of all members.
    outputs : array, shape (ny,)
    rates : array, shape (N,)
    """

    inputs: FloatArray
    outputs: FloatArray
    rates: FloatArray


class Coupling:
    """Members and wires.

    Parameters
    ----------
    parts : sequence of Part
    wires : Wires
    """

    def __init__(self, parts: Sequence[Part], wires: Wires) -> None:
        self.parts, self.wires = tuple(parts), wires
        models = [part.model for part in parts]
        self.states = _slices([len(m.states) for m in models])
        self.inputs = _slices([len(m.inputs) for m in models])
        self.outputs = _slices([len(m.outputs) for m in models])
        self._ny = sum(len(m.outputs) for m in models)
        self._n = sum(len(m.states) for m in models)
        copied = [
            (s.start + i, x.start + c.index)
            for m, s, x in zip(models, self.outputs, self.states, strict=True)
            for i, c in m.copies.items()
            if c.kind == "state"
        ]
        self._copies = np.array(copied, dtype=np.intp).reshape(-1, 2).T
        self._depends = [depends_at_once(part.name, part.model) for part in parts]
        self._steps: list[Step] = []
        self._loops: dict[int, LoopSolver] = {}
        self._warm = np.concatenate([np.empty(0), *(m.start.inputs for m in models)])
        self._solved: dict[tuple[float, bytes, bytes], FloatArray] = {}
        self._last: tuple[tuple[float, bytes, bytes], Jacobians | None] | None = None
        self._latest: tuple[tuple[float, bytes, bytes], Settled] | None = None
        self._plan()

    @property
    def loops(self) -> list[list[str]]:
        """The inputs of every algebraic loop, by name."""
        return [[self.wires.names[v] for v in s.loop.inputs] for s in self._steps if s.loop is not None]

    @property
    def size(self) -> tuple[int, int, int]:
        """How many states, inputs and outputs all members have."""
        return self._n, len(self.wires.sources), self._ny

    def _plan(self) -> None:
        owners = tuple(
            np.repeat(np.arange(len(self.parts)), [s.stop - s.start for s in slices]).astype(np.intp)
            for slices in (self.inputs, self.outputs)
        )
        free = np.zeros(self._ny, dtype=bool)
        free[self._copies[0]] = True
        self._owners = owners
        self._steps = planned((owners[0], owners[1]), self.wires.sources, self._depends, free)
        self._loops = {
            i: LoopSolver([self.wires.names[v] for v in step.loop.inputs])
            for i, step in enumerate(self._steps)
            if step.loop is not None
        }

    def forget(self) -> None:
        """Forget what was found at points: the members are in another mode now."""
        self._solved.clear()
        self._last = self._latest = None

    # -- values ------------------------------------------------------------------------------------------

    def settle(self, t: float, x: FloatArray, w: FloatArray) -> Settled:
        """Find all inputs at a point, loops included, and visit every member there.

        Raises
        ------
        NumericalError
            When an algebraic loop has no solution near the last one.
        """
        key = (t, x.tobytes(), w.tobytes())
        v = self._external(w)
        if self._loops:
            loose = self.wires.sources >= 0
            v[loose] = self._solved.get(key, self._warm)[loose]
        visit = _Visits(self, t, x, v)
        for number, step in enumerate(self._steps):
            if step.loop is not None:
                self._close(number, step, visit, known=key in self._solved)
            elif step.member >= 0:
                visit.at(step.member)
            self._pass_on(step.known, visit)
        gaps = self._gaps(visit)
        if gaps.size and not (gaps <= LOOP_CLOSED).all():
            return self._again(int(np.argmax(~(gaps <= LOOP_CLOSED))), t, x, w)
        if self._loops:
            self._warm = v.copy()
            if len(self._solved) >= REMEMBERED:
                self._solved.pop(next(iter(self._solved)))
            self._solved[key] = self._warm
        found = Settled(v, visit.outputs, visit.rates)
        self._latest = (key, found)
        return found

    def further_solutions(self, t: float, x: FloatArray, w: FloatArray) -> list[tuple[list[str], FloatArray]]:
        """Return loops that have other solutions at a point, with those solutions, shape (solutions, loop inputs)."""
        base, random = self.settle(t, x, w).inputs, np.random.default_rng(2028)
        found: list[FloatArray] = []
        for factor in (1.0, -1.0, 10.0, -10.0):
            self._solved.clear()
            self._warm = base + factor * np.maximum(1.0, np.abs(base)) * random.uniform(0.5, 1.5, len(base))
            try:
                found.append(self.settle(t, x, w).inputs)
            except FmilinError:
                continue
        self._solved.clear()
        self._warm = base
        told = []
        for step in self._steps:
            if step.loop is not None:
                which = step.loop.inputs
                others = [v[which] for v in found if not np.allclose(v[which], base[which], rtol=1e-6, atol=1e-6)]
                if others:
                    told.append(([self.wires.names[v] for v in which], np.array([base[which], *others])))
        return told

    def _external(self, w: FloatArray) -> FloatArray:
        wires = self.wires
        v = wires.offsets.copy()
        outside = wires.inputs >= 0
        v[outside] += wires.factors[outside] * w[wires.inputs[outside]]
        return v

    def _pass_on(self, known: Indices, visit: _Visits) -> None:
        if len(known):
            visit.inputs[known] = self._fed(known, visit.outputs)

    def _fed(self, which: Indices, outputs: FloatArray) -> FloatArray:
        wires = self.wires
        found: FloatArray = wires.factors[which] * outputs[wires.sources[which]] + wires.offsets[which]
        return found

    def _gaps(self, visit: _Visits) -> FloatArray:
        """Return how far every connected input is from what feeds it, relative to its size."""
        which = np.flatnonzero(self.wires.sources >= 0)
        fed, held = self._fed(which, visit.outputs), visit.inputs[which]
        gaps: FloatArray = np.abs(fed - held) / np.maximum(1.0, np.abs(fed))
        return np.where(np.isnan(fed) & np.isnan(held), 0.0, gaps)

    def _again(self, gap: int, t: float, x: FloatArray, w: FloatArray) -> Settled:
        """Plan anew: an output depends on inputs of which nothing was seen where the system was connected."""
        v = int(np.flatnonzero(self.wires.sources >= 0)[gap])
        member = int(self._owners[1][self.wires.sources[v]])
        if self._depends[member].all():
            raise NumericalError(
                f"The input '{self.wires.names[v]}' differs from the output of '{self.parts[member].name}' that feeds "
                "it: this member does not answer the same twice at the same point."
            )
        self._depends[member][...] = True
        self._plan()
        return self.settle(t, x, w)

    def _close(self, number: int, step: Step, visit: _Visits, *, known: bool) -> None:
        assert step.loop is not None  # noqa: S101 - settle() has looked
        which, members = step.loop.inputs, step.loop.members

        def answer(v: FloatArray) -> FloatArray:
            visit.inputs[which] = v
            for member in members:
                visit.at(member)
            return self._fed(which, visit.outputs)

        def slopes(v: FloatArray) -> FloatArray:
            visit.inputs[which] = v
            return self._loop_slopes(which, members, visit)

        start = visit.inputs[which].copy()
        if known and (np.abs(answer(start) - start) <= LOOP_CLOSED * np.maximum(1.0, np.abs(start))).all():
            return
        visit.inputs[which] = self._loops[number].solve(start, answer, slopes)

    def _loop_slopes(self, which: Indices, members: Sequence[int], visit: _Visits) -> FloatArray:
        """Return K D of a loop, shape (loop, loop)."""
        found = np.zeros((len(which), len(which)))
        for member in members:
            own = self.inputs[member]
            columns = np.flatnonzero((which >= own.start) & (which < own.stop))
            rows = np.flatnonzero(self._owners[1][self.wires.sources[which]] == member)
            if not len(columns) or not len(rows):
                continue
            part = self.parts[member]
            at = (visit.t, visit.x[self.states[member]], visit.inputs[own])
            with in_member(part.name):
                D = input_slopes(part.model, at, which[columns] - own.start)
            outputs = self.wires.sources[which[rows]] - self.outputs[member].start
            found[np.ix_(rows, columns)] = self.wires.factors[which[rows], None] * D[outputs]
        return found

    # -- slopes ------------------------------------------------------------------------------------------

    def jacobians(self, t: float, x: FloatArray, w: FloatArray) -> Jacobians | None:
        """Return the exact slopes of all members at a point; None where one of them has none.

        Raises
        ------
        NumericalError
            When det(I - K D) = 0.
        """
        key = (t, x.tobytes(), w.tobytes())
        if self._last is None or self._last[0] != key:
            self._last = (key, self._jacobians(self._settled_at(key, w), t, x))
        return self._last[1]

    def _settled_at(self, key: tuple[float, bytes, bytes], w: FloatArray) -> Settled:
        """Return the last point, if it is this one: it has mostly just been evaluated."""
        if self._latest is not None and self._latest[0] == key:
            return self._latest[1]
        return self.settle(key[0], np.frombuffer(key[1]), w)

    def _jacobians(self, at: Settled, t: float, x: FloatArray) -> Jacobians | None:
        members: list[MemberSlopes] = []
        places = zip(self.parts, self.states, self.inputs, self.outputs, strict=True)
        for part, states, inputs, outputs in places:
            n, k = states.stop - states.start, inputs.stop - inputs.start
            seeds = np.eye(n + k)
            with in_member(part.name):
                found = part.model.products(t, x[states], at.inputs[inputs], seeds[:n], seeds[n:])
            if found is None:
                return None
            own = np.concatenate((found.derivatives, found.outputs))
            members.append(MemberSlopes(own[:, :n], own[:, n:], states, inputs, outputs))
        around = self._around([m.over_inputs[m.states.stop - m.states.start :] for m in members])
        return Jacobians(members, self._feeds, self._leads, self._closed(around), self.size)

    def _feeds(self, outputs: FloatArray) -> FloatArray:
        """Return K times columns."""
        found = np.zeros((len(self.wires.sources), outputs.shape[1]))
        rows = np.flatnonzero(self.wires.sources >= 0)
        found[rows] = self.wires.factors[rows, None] * outputs[self.wires.sources[rows]]
        return found

    def _leads(self, inputs: FloatArray) -> FloatArray:
        """Return L times columns."""
        found = np.zeros((len(self.wires.inputs), inputs.shape[1]))
        rows = np.flatnonzero(self.wires.inputs >= 0)
        found[rows] = self.wires.factors[rows, None] * inputs[self.wires.inputs[rows]]
        return found

    def _around(self, D: Sequence[FloatArray]) -> Any:
        """Return K D, sparse; None where it is zero."""
        wires, nv = self.wires, len(self.wires.sources)
        entries: list[tuple[FloatArray, Indices, Indices]] = []
        fed = np.flatnonzero(wires.sources >= 0)
        for i in [i for i, block in enumerate(D) if block.any()]:
            rows = fed[self._owners[1][wires.sources[fed]] == i]
            values = wires.factors[rows, None] * D[i][wires.sources[rows] - self.outputs[i].start]
            r, col = np.nonzero(values)
            entries.append((values[r, col], rows[r], col + self.inputs[i].start))
        if not entries:
            return None
        data, at, columns = (np.concatenate(part) for part in zip(*entries, strict=True))
        return sparse.csr_array((data, (at, columns)), shape=(nv, nv))

    def selections(self, count: int) -> tuple[Any, Any]:
        """Return K (nv, ny) and L (nv, ``count``), sparse."""
        wires, nv = self.wires, len(self.wires.sources)
        found = []
        for which, width in ((wires.sources, self._ny), (wires.inputs, count)):
            rows = np.flatnonzero(which >= 0)
            found.append(sparse.csr_array((wires.factors[rows], (rows, which[rows])), shape=(nv, width)))
        return found[0], found[1]

    def require_solvable(self, t: float, x: FloatArray, w: FloatArray) -> None:
        """Refuse loops with det(I - K D) = 0 at a point; differences show it where there are no exact slopes.

        Raises
        ------
        NumericalError
            That names the inputs.
        """
        if self.jacobians(t, x, w) is not None:
            return
        visit = _Visits(self, t, x, self.settle(t, x, w).inputs.copy())
        for step in self._steps:
            if step.loop is not None:
                KD = self._loop_slopes(step.loop.inputs, step.loop.members, visit)
                require_solvable(KD, [self.wires.names[v] for v in step.loop.inputs])

    def _closed(self, KD: Any) -> Any:
        if KD is None:
            return lambda columns: columns
        for step in self._steps:
            if step.loop is not None:
                which = step.loop.inputs
                require_solvable(KD[which][:, which].toarray(), [self.wires.names[v] for v in which])
        if not KD.nnz:
            return lambda columns: columns
        if not np.isfinite(KD.data).all():  # a member knows some slopes only: whatever hangs on them is unknown
            return lambda columns: np.full(columns.shape, np.nan)
        closing = sparse.eye_array(KD.shape[0], format="csc") - KD.tocsc()
        try:
            return sparse.linalg.splu(closing).solve
        except RuntimeError:
            raise NumericalError(
                "The algebraic loops of the system have no solution, or many: det(I - K D) = 0. Break one of them."
            ) from None

    def structure(self, count: int) -> tuple[Any, Any, Any, Any, Any]:
        """Return which entries A, B, C, D may have, and which inputs of members hang on which (states, inputs w).

        Returns
        -------
        tuple of sparse arrays of 0 and 1
            A, B, C, D and an array of shape (nv, N + count).
        """
        blocks: list[list[NDArray[np.bool_]]] = [[], [], [], []]
        for part, depends in zip(self.parts, self._depends, strict=True):
            model = part.model
            n, declared = len(model.states), model.structure
            shape = (n + len(model.outputs), n + len(model.inputs))
            full = np.ones(shape, dtype=bool) if declared is None else declared.copy()
            for row, copy in model.copies.items():
                full[n + row] = False
                full[n + row, copy.index + (0 if copy.kind == "state" else n)] = True
            if declared is None:
                full[n:, n:] &= depends
            for block, matrix in zip(blocks, (full[:n, :n], full[:n, n:], full[n:, :n], full[n:, n:]), strict=True):
                block.append(matrix)
        joined: list[Any] = [sparse.block_diag([b.astype(float) for b in block], format="csr") for block in blocks]
        A, B, C, D = joined
        K, L = (abs(matrix) for matrix in self.selections(count))
        direct = _pattern(sparse.hstack([K @ C, L], format="csr"))
        reached, loop = direct, _pattern(K @ D)
        while True:
            more = _pattern(direct + loop @ reached)
            if more.nnz == reached.nnz:
                return A, B, C, D, reached
            reached = more

    def evaluated_members(self, t: float, x: FloatArray, w: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Return the states and the inputs of every member at a point of the system."""
        at = self.settle(t, x, w)
        return [(x[s].copy(), at.inputs[k].copy()) for s, k in zip(self.states, self.inputs, strict=True)]


class _Visits:
    """The members at one point; each is visited once per set of inputs."""

    def __init__(self, coupling: Coupling, t: float, x: FloatArray, inputs: FloatArray) -> None:
        self.t, self.x, self.inputs = t, x, inputs
        self.outputs = np.full(coupling.size[2], np.nan)
        self.rates = np.empty(coupling.size[0])
        self._coupling = coupling
        self._seen: dict[int, bytes] = {}
        rows, states = coupling._copies
        self.outputs[rows] = x[states]

    def at(self, member: int) -> None:
        """Visit a member with what its inputs hold now."""
        c = self._coupling
        v = self.inputs[c.inputs[member]]
        if self._seen.get(member) == (held := v.tobytes()):
            return
        part = c.parts[member]
        with in_member(part.name):
            found: Evaluation = part.model.evaluate(self.t, self.x[c.states[member]], v.copy())
        self._seen[member] = held
        self.outputs[c.outputs[member]] = found.outputs
        self.rates[c.states[member]] = found.derivatives


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


def _pattern(matrix: Any) -> Any:
    found = matrix.tocsr()
    found.eliminate_zeros()
    found.data[:] = 1.0
    return found
