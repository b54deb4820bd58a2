"""The numbers of a connected system at a point: inputs of all members, evaluated members, derivatives through loops."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from fmilin.composition.algebraic_loops import (
    Jacobians,
    LoopSolver,
    MemberSlopes,
    depends_at_once,
    input_slopes,
    require_solvable,
)
from fmilin.composition.members import Indices, Members, MemberView, Planner, Settled, Visits, VisitStep, Wires
from fmilin.composition.system_declaration import in_member
from fmilin.errors import FmilinError, NumericalError
from fmilin.model.capabilities import compile_model, read_products
from fmilin.signals import FloatArray
from fmilin.tolerances import LOOP_GAP_TOLERANCE

MAX_SOLVED_POINTS = 256  # points with solved loops, so that the same point has the same last digit again


class CoupledMembers(Members):
    """Members and wires."""

    def __init__(self, parts: Sequence[MemberView], wires: Wires) -> None:
        super().__init__(parts)
        self.wires = wires
        self.depends = [depends_at_once(part.name, part.model) for part in parts]
        self._steps: list[VisitStep] = []
        self._loops: dict[int, LoopSolver] = {}
        self._warm = np.concatenate([np.empty(0), *(part.model.start.inputs for part in parts)])
        self._solved: dict[tuple[float, bytes, bytes], FloatArray] = {}
        self._last: tuple[tuple[float, bytes, bytes], Jacobians | None] | None = None
        self._latest: tuple[tuple[float, bytes, bytes], Settled] | None = None
        self._uncompiled: CoupledMembers | None = None  # that this is a view of: its members change their mode, too
        self._plan()

    @property
    def loops(self) -> list[list[str]]:
        """The inputs of every algebraic loop, by name."""
        return [self._names(step) for step in self._steps if step.loop is not None]

    def _plan(self) -> None:
        ins, outs = (
            np.repeat(np.arange(len(self.parts)), [s.stop - s.start for s in slices]).astype(np.intp)
            for slices in (self.inputs, self.outputs)
        )
        free = np.zeros(self.size[2], dtype=bool)
        free[self.copies[0]] = True
        self._owners = ins, outs
        self._steps = Planner(self._owners, self.wires.sources, self.depends, free).steps()
        self._loops = {i: LoopSolver(self._names(step)) for i, step in enumerate(self._steps) if step.loop is not None}

    def _names(self, step: VisitStep) -> list[str]:
        """Return the inputs of a loop, by name."""
        return [] if step.loop is None else [self.wires.names[v] for v in step.loop.inputs]

    def forget(self) -> None:
        """Forget what was found at points: the members are in another mode now."""
        self._solved.clear()
        self._last = self._latest = None
        if self._uncompiled is not None:
            self._uncompiled.forget()

    def compile_for_evaluations(self, evaluations: int) -> CoupledMembers:
        """Return the same of members that are compiled as soon as that pays; these itself where none ever is."""
        parts = tuple(MemberView(part.name, compile_model(part.model, evaluations)) for part in self.parts)
        if all(part.model is former.model for part, former in zip(parts, self.parts, strict=True)):
            return self
        view = copy(self)
        view.parts, view._uncompiled = parts, self
        view.depends, view._warm = [matrix.copy() for matrix in self.depends], self._warm.copy()
        view._solved, view._last, view._latest = {}, None, None
        view._plan()
        return view

    def settle(self, t: float, x: FloatArray, w: FloatArray) -> Settled:
        """Find all inputs at a point, loops included, and evaluation every member there."""
        key = (t, x.tobytes(), w.tobytes())
        v = self.wires.external(w)
        if self._loops:
            loose = self.wires.connected_inputs
            v[loose] = self._solved.get(key, self._warm)[loose]
        visit = Visits(self, t, x, v)
        for number, step in enumerate(self._steps):
            if step.loop is not None:
                self._close(number, step, visit, solved=key in self._solved)
            elif step.member >= 0:
                visit.at(step.member)
            if len(step.settles):
                visit.inputs[step.settles] = self.wires.compute_inputs(step.settles, visit.outputs)
        connected = self.wires.connected_inputs
        fed = self.wires.compute_inputs(connected, visit.outputs)
        if not np.array_equal(fed, v[connected]):  # mostly they are equal, and only then cheap
            gaps = _compute_gaps(fed, v[connected])
            if not (gaps <= LOOP_GAP_TOLERANCE).all():
                return self._again(int(np.argmax(~(gaps <= LOOP_GAP_TOLERANCE))), t, x, w)
        if self._loops:
            self._warm = v.copy()
            if len(self._solved) >= MAX_SOLVED_POINTS:
                self._solved.pop(next(iter(self._solved)))
            self._solved[key] = self._warm
        settled = Settled(v, visit.outputs, visit.rates)
        self._latest = (key, settled)
        return settled

    def further_solutions(self, t: float, x: FloatArray, w: FloatArray) -> list[tuple[list[str], FloatArray]]:
        """Return loops that have other solutions at a point, with those solutions, shape (solutions, loop inputs)."""
        base, random = self.settle(t, x, w).inputs, np.random.default_rng(2028)
        solutions: list[FloatArray] = []
        for factor in (1.0, -1.0, 10.0, -10.0):
            self._solved.clear()
            self._warm = base + factor * np.maximum(1.0, np.abs(base)) * random.uniform(0.5, 1.5, len(base))
            try:
                solutions.append(self.settle(t, x, w).inputs)
            except FmilinError:
                continue
        self._solved.clear()
        self._warm = base
        several = []
        for step in self._steps:
            if step.loop is not None:
                which = step.loop.inputs
                distinct_solutions = [
                    v[which] for v in solutions if not np.allclose(v[which], base[which], rtol=1e-6, atol=1e-6)
                ]
                if distinct_solutions:
                    several.append((self._names(step), np.array([base[which], *distinct_solutions])))
        return several

    def _again(self, gap: int, t: float, x: FloatArray, w: FloatArray) -> Settled:
        """Plan anew: an output depends on inputs of which nothing was seen where the system was connected."""
        v = int(self.wires.connected_inputs[gap])
        member = int(self._owners[1][self.wires.sources[v]])
        if self.depends[member].all():
            raise NumericalError(
                f"The input '{self.wires.names[v]}' differs from the output of '{self.parts[member].name}' that feeds "
                "it: two evaluations of this member at the same point differ."
            )
        self.depends[member][...] = True
        self._plan()
        return self.settle(t, x, w)

    def _close(self, number: int, step: VisitStep, visit: Visits, *, solved: bool) -> None:
        assert step.loop is not None  # noqa: S101 - settle() has looked
        which, members = step.loop.inputs, step.loop.members

        def answer(v: FloatArray) -> FloatArray:
            visit.inputs[which] = v
            for member in members:
                visit.at(member)
            return self.wires.compute_inputs(which, visit.outputs)

        def slopes(v: FloatArray) -> FloatArray:
            visit.inputs[which] = v
            return self._loop_slopes(which, members, visit)

        start = visit.inputs[which].copy()
        if solved and (np.abs(answer(start) - start) <= LOOP_GAP_TOLERANCE * np.maximum(1.0, np.abs(start))).all():
            return
        visit.inputs[which] = self._loops[number].solve(start, answer, slopes)

    def _loop_slopes(self, which: Indices, members: Sequence[int], visit: Visits) -> FloatArray:
        """Return K D of a loop, shape (loop, loop)."""
        KD = np.zeros((len(which), len(which)))
        for member in members:
            input_range = self.inputs[member]
            columns = np.flatnonzero((which >= input_range.start) & (which < input_range.stop))
            rows = np.flatnonzero(self._owners[1][self.wires.sources[which]] == member)
            if not len(columns) or not len(rows):
                continue
            part = self.parts[member]
            at = (visit.t, visit.x[self.states[member]], visit.inputs[input_range])
            with in_member(part.name):
                D = input_slopes(part.model, at, which[columns] - input_range.start)
            outputs = self.wires.sources[which[rows]] - self.outputs[member].start
            KD[np.ix_(rows, columns)] = self.wires.factors[which[rows], None] * D[outputs]
        return KD

    def jacobians(self, t: float, x: FloatArray, w: FloatArray) -> Jacobians | None:
        """Return the exact derivatives of all members at a point; None where one of them has none."""
        key = (t, x.tobytes(), w.tobytes())
        if self._last is None or self._last[0] != key:
            latest = self._latest  # mostly this point has just been evaluated
            settled = latest[1] if latest is not None and latest[0] == key else self.settle(t, x, w)
            self._last = (key, self._jacobians(settled, t, x))
        return self._last[1]

    def _jacobians(self, at: Settled, t: float, x: FloatArray) -> Jacobians | None:
        members: list[MemberSlopes] = []
        blocks = zip(self.parts, self.states, self.inputs, self.outputs, strict=True)
        for part, states, inputs, outputs in blocks:
            n, k = states.stop - states.start, inputs.stop - inputs.start
            directions = np.eye(n + k)
            with in_member(part.name):
                products = read_products(part.model, t, x[states], at.inputs[inputs], directions[:n], directions[n:])
            if products is None:
                return None
            jacobian = np.concatenate((products.derivatives, products.outputs))
            members.append(MemberSlopes(jacobian[:, :n], jacobian[:, n:], states, inputs, outputs))
        around = self._around([m.over_inputs[m.states.stop - m.states.start :] for m in members])
        return Jacobians(members, self.wires.feeds, self.wires.leads, self._build_loop_inverse(around), self.size)

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

    def require_solvable(self, t: float, x: FloatArray, w: FloatArray) -> None:
        """Reject loops with det(I - K D) = 0 at a point; differences show it where there are no exact derivatives."""
        if self.jacobians(t, x, w) is not None:
            return
        visit = Visits(self, t, x, self.settle(t, x, w).inputs.copy())
        for step in self._steps:
            if step.loop is not None:
                KD = self._loop_slopes(step.loop.inputs, step.loop.members, visit)
                require_solvable(KD, self._names(step))

    def _build_loop_inverse(self, KD: Any) -> Any:
        if KD is None:
            return lambda columns: columns
        for step in self._steps:
            if step.loop is not None:
                which = step.loop.inputs
                require_solvable(KD[which][:, which].toarray(), self._names(step))
        if not KD.nnz:
            return lambda columns: columns
        if not np.isfinite(KD.data).all():  # a member knows some derivatives only: whatever hangs on them is unknown
            return lambda columns: np.full(columns.shape, np.nan)
        closing = sparse.eye_array(KD.shape[0], format="csc") - KD.tocsc()
        try:
            return sparse.linalg.splu(closing).solve
        except RuntimeError:
            raise NumericalError(
                "The algebraic loops of the system have no unique solution: det(I - K D) = 0. Break one of them."
            ) from None

    def compute_member_points(self, t: float, x: FloatArray, w: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Return the states and the inputs of every member at a point of the system."""
        at = self.settle(t, x, w)
        return [(x[s].copy(), at.inputs[k].copy()) for s, k in zip(self.states, self.inputs, strict=True)]


def _compute_gaps(fed: FloatArray, values: FloatArray) -> FloatArray:
    """Return how far every connected input is from what feeds it, relative to its size; none if both are unknown."""
    gaps: FloatArray = np.abs(fed - values) / np.maximum(1.0, np.abs(fed))
    return np.where(np.isnan(fed) & np.isnan(values), 0.0, gaps)
