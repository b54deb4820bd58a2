"""Consistent start values: what is ``fixed`` first, initial equations with them, then as many others as can be kept.

Constraints, initial equations and the algebraic equations are solved together for the states that are not held and for
the algebraic unknowns, by Newton's iteration with steps of least norm from the start values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from fmilin.adapters import DaeEngine
from fmilin.errors import ConstraintError
from fmilin.signals import FloatArray

__all__ = ["Starting", "chosen_rows"]

ITERATIONS = 60
CONSISTENT = 1e-9  # residuals, in sizes of their derivatives and of the unknowns
STANDSTILL = 1e-8  # a step, in sizes of the unknowns, that leads nowhere
CHEAP = 1e3  # how much rather an algebraic unknown moves than a state, in their sizes
GROWTH = 4.0  # of the longest step of unknowns, as long as residuals decrease as the derivatives predict
PATIENCE = 10  # steps of the states that are as long as allowed, before longer ones are. Lower: joints turn over
GAIN = 0.5  # part of the decrease of the residuals that the derivatives predict
SHORTEST_STEP = 1e-9  # part of a damped step
DECREASE = 1e-4  # of the residuals over a whole damped step, at least
PARAMETER_STEP = 0.5  # of its start value, by which a parameter moves in one step. Looser: solutions without meaning
RANK = 1e-10  # singular values below this part of the largest count as zero
SINGULAR_UNKNOWNS = 1e13  # condition number above which equations do not determine the unknowns
ROUNDED = 1e-13  # of the terms of a sum: what is left below it counts as zero. Looser: derivatives are lost
NOISE = 1e-10  # of its size: a velocity below it stands still. Looser: friction is stuck where it slides
WELL = 0.02  # of a row of the null space: what is left of it besides the rows that were chosen before


@dataclass(frozen=True)
class Point:
    """States and algebraic unknowns, with what is left of the equations."""

    x: FloatArray
    w: FloatArray
    free: FloatArray  # parameters that the initial equations determine
    worst: float
    equation: str

    def without_noise(self, x_sizes: FloatArray, w_sizes: FloatArray) -> Point:
        """Return the same with zeros for what only rounding tells from zero, in sizes of states and unknowns."""
        x = np.where(np.abs(self.x) < NOISE * x_sizes, 0.0, self.x)
        w = np.where(np.abs(self.w) < NOISE * w_sizes, 0.0, self.w)
        return replace(self, x=x, w=w)


class Starting:
    """The start of a model with reduced equations.

    Parameters
    ----------
    engine : DaeEngine
    conditions : SX, shape (m, 1)
        Zero at the start, over the engine's graph: initial equations, algebraic variables with ``fixed``.
    names : sequence of str
        Of these conditions.
    free : sequence of str
        Parameters that the conditions determine.
    is_damped : bool
        Whether steps are shortened until the residuals become smaller.
    """

    def __init__(
        self,
        engine: DaeEngine,
        conditions: Any,
        names: Sequence[str],
        free: Sequence[str],
        *,
        is_damped: bool = False,
    ) -> None:
        self._is_damped = is_damped
        system, graph = engine.reduced, engine.graph
        self._engine, self.count = engine, len(graph.states)
        self._p = graph.values.copy()
        places = [graph.parameters.positions[name] for name in free]
        self._free = np.array(places, dtype=int)
        own = [*system.solved, *system.invariants]
        written = engine.express(list(conditions.elements())) if conditions.numel() else []
        rows = ca.vertcat(ca.SX(0, 1), *(row.value for row in own), *written)
        self._names = [*(row.name for row in own), *names]
        self._own = len(own)
        self._solved = len(system.solved)
        unknowns = ca.vertcat(graph.x, system.unknowns)
        slopes = ca.jacobian(rows, ca.vertcat(unknowns, *(graph.p[k] for k in places)))
        of_unknowns = ca.jacobian_sparsity(rows, ca.vertcat(system.unknowns, *(graph.p[k] for k in places)))
        self._of_states = np.setdiff1d(np.arange(rows.numel()), of_unknowns.get_triplet()[0])
        self._function = ca.Function("start", [graph.time, system.u, graph.p, unknowns], [rows, slopes])
        sizes = [max(s.nominal or 0.0, abs(s.start), 1.0) for s in graph.states]
        start = np.abs(self._p[self._free])
        of_parameters = np.where(start > 0.0, start, 1.0)
        self._sizes = np.concatenate((sizes, system.sizes * CHEAP, of_parameters * CHEAP))

    def set_parameter(self, name: str, value: float) -> None:
        """Change a parameter of the equations that they do not determine."""
        self._p[self._engine.graph.parameters.positions[name]] = value

    def first(self) -> Point:
        """Return where the search begins."""
        engine = self._engine
        return Point(
            engine.states.starts.astype(float), engine.reduced.guess.astype(float), self._p[self._free], np.inf, ""
        )

    def _values(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return residuals and their derivatives by states, unknowns and parameters, in sizes of these."""
        p, count = self._p.copy(), self._sizes.size - self._free.size
        p[self._free] = y[count:]
        r, J = self._function(0.0, self._engine.inputs.starts, p, y[:count])
        slopes = J.full() * self._sizes
        # The root of a sum of squares has no derivative where currents start, at zero: the others lead away from there.
        return r.full().ravel(), np.where(np.isfinite(slopes), slopes, 0.0)

    def _point(self, y: FloatArray, residuals: FloatArray, names: Sequence[str]) -> Point:
        n, count = self.count, self._sizes.size - self._free.size
        k = int(residuals.argmax()) if residuals.size else -1
        worst = (float(residuals[k]), str(names[k])) if residuals.size else (0.0, "")
        return Point(y[:n].copy(), y[n:count].copy(), y[count:].copy(), *worst)

    def closed(self, begin: Point, held: Sequence[int]) -> Point:
        """Return the nearest point at which the equations hold that contain states alone."""
        return self.solved(begin, [*held, *range(self.count, self._sizes.size)], self._of_states)

    def solved(self, begin: Point, held: Sequence[int], rows: Any = slice(None)) -> Point:
        """Return the nearest point at which everything (``rows``) holds, the states ``held`` where they are.

        Parameters first go in short steps: the curve of a lightning impulse has solutions for its time constants that
        a long step reaches and that mean nothing. Others are far from their start values.
        """
        if self._free.size:
            point = self._iterate(begin, held, rows, PARAMETER_STEP)
            if point.worst <= CONSISTENT:
                return point
        return self._iterate(begin, held, rows, CHEAP)

    def _iterate(self, begin: Point, held: Sequence[int], rows: Any, parameter_step: float) -> Point:
        """Return where Newton's iteration ends; parameters move by parts of their sizes in one step.

        A damped step is shorter where the residuals grow: whole steps jump between the two limits of an amplifier.
        """
        free = np.setdiff1d(np.arange(self._sizes.size), np.asarray(held, dtype=int))
        names = np.array(self._names, dtype=object)[rows]
        y, best = np.concatenate((begin.x, begin.w, begin.free)), replace(begin, worst=np.inf)
        is_at_standstill = False  # a small speed, which a small step reaches, is not a standstill
        reach = CHEAP  # of unknowns in one step: the derivative of a voltage at an open switch is 1e10
        reach_of_states = 1.0
        limited = 0  # steps in a row that were too long for the states
        predicted = 0.0
        before = np.inf
        for _ in range(ITERATIONS):
            r, J = (values[rows] for values in self._values(y))
            if not (np.isfinite(r).all() and np.isfinite(J).all()):
                break
            scales = np.maximum(np.abs(J).max(axis=1, initial=0.0), 1e-300)
            rounding = ROUNDED * (np.abs(J) @ np.abs(y / self._sizes))
            residuals = np.maximum(np.abs(r) - rounding, 0.0) / np.maximum(scales, 1e-12)
            now = self._point(y, residuals, names)
            is_as_predicted = now.worst <= before - GAIN * predicted
            reach = reach * GROWTH if is_as_predicted and predicted > 0.0 else CHEAP
            limited = limited + 1 if is_as_predicted and predicted > 0.0 else 0
            reach_of_states = reach_of_states * GROWTH if limited > PATIENCE else 1.0
            best = min(best, now, key=lambda point: point.worst)
            step = np.linalg.lstsq(J[:, free] / scales[:, None], -r / scales, rcond=RANK)[0]
            is_state, is_parameter = free < self.count, free >= self._sizes.size - self._free.size
            of_states = float(np.abs(step[is_state]).max(initial=0.0))
            of_parameters = float(np.abs(step[is_parameter]).max(initial=0.0)) * CHEAP
            of_unknowns = float(np.abs(step[~is_state & ~is_parameter]).max(initial=0.0))
            size = max(of_states, of_unknowns, of_parameters)
            longest = max(of_states / reach_of_states, of_unknowns / reach, of_parameters / parameter_step)
            if size <= STANDSTILL and now.worst > CONSISTENT and is_at_standstill:
                break
            is_at_standstill = size <= STANDSTILL
            if now.worst <= CONSISTENT and size <= 1e-6:
                y[free] += step * self._sizes[free]
                polished = self._point(y, np.abs(self._values(y)[0][rows]) / scales, names)
                return min(polished, now, key=lambda point: point.worst)
            move = step * self._sizes[free] / max(1.0, longest)
            before = now.worst
            predicted = before / longest if longest > 1.0 else 0.0
            y[free] += move * (self._damping(y, free, move, rows, scales) if self._is_damped else 1.0)
        return best

    def _largest_residual(self, y: FloatArray, rows: Any, scales: FloatArray) -> float:
        """Return the size of the residuals; infinity or NaN where one has no value."""
        return float(np.abs(self._values(y)[0][rows] / scales).max(initial=0.0))

    def _damping(self, y: FloatArray, free: Any, move: FloatArray, rows: Any, scales: FloatArray) -> float:
        """Return the largest of 1, 1/2, 1/4, ... of a step with which the residuals become smaller."""
        before, factor = self._largest_residual(y, rows, scales), 1.0
        while factor > SHORTEST_STEP:
            there = y.copy()
            there[free] += factor * move
            if self._largest_residual(there, rows, scales) <= (1.0 - DECREASE * factor) * before:
                return factor
            factor /= 2.0
        return factor

    def holds(self, point: Point, conditions: Sequence[Any]) -> list[bool]:
        """Return which conditions hold there."""
        return [bool(value) for value in self.values_at(point, conditions)]

    def values_at(self, point: Point, expressions: Sequence[Any]) -> list[float]:
        """Return the values of expressions there."""
        system, graph = self._engine.reduced, self._engine.graph
        written = self._engine.express([ca.SX(expression) for expression in expressions])
        given = [graph.time, system.u, graph.p, ca.vertcat(graph.x, system.unknowns)]
        p = self._p.copy()
        p[self._free] = point.free
        values = ca.Function("values", given, [ca.vertcat(ca.SX(0, 1), *written)])
        inputs = self._engine.inputs.starts
        found: list[float] = values(0.0, inputs, p, np.concatenate((point.x, point.w))).full().ravel().tolist()
        return found

    def motions(self, point: Point, *, conditions: bool) -> FloatArray:
        """Return the directions of the states (N, P) that the equations, and the conditions, leave free."""
        _, J = self._values(self._vector(point))
        J = J if conditions else J[: self._own, : self._sizes.size - self._free.size]
        scales = np.maximum(np.abs(J).max(axis=1, initial=0.0), 1e-300)
        J = self._without_unknowns(J / scales[:, None])
        scales = np.maximum(np.abs(J).max(axis=1, initial=0.0), 1e-300)
        _, s, V = np.linalg.svd(J / scales[:, None])
        rank = int((s > RANK * s.max(initial=0.0)).sum())
        T: FloatArray = V[rank:].T[: self.count]
        return T

    def sizes_of_unknowns(self, point: Point, x_sizes: FloatArray) -> FloatArray:
        """Return how far algebraic unknowns move with states of these sizes: 1 at most, and where they do not.

        Forces in a mechanism of micrometres are small, and no rounding.
        """
        _, J = self._values(self._vector(point))
        J = J[: self._solved] / self._sizes
        n, last = self.count, self.count + point.w.size
        followed = np.linalg.lstsq(J[:, n:last], J[:, :n], rcond=None)[0]
        moves: FloatArray = (np.abs(followed) * x_sizes).max(axis=1, initial=0.0)
        return np.where(moves > 0.0, np.minimum(moves, 1.0), 1.0)

    def _without_unknowns(self, J: FloatArray) -> FloatArray:
        """Return the derivatives by states and parameters of what holds when the unknowns have followed.

        Unknowns may be larger than states by many powers of ten, as currents of diodes are than their voltages: the
        states would be lost in a null space of both. Where the unknowns are not determined, the derivatives by all.
        """
        n, solved = self.count, self._solved
        unknowns = slice(n, n + solved)
        W = J[:solved, unknowns]
        sizes = np.maximum(np.abs(W).max(axis=0, initial=0.0), 1e-300)
        if solved and np.linalg.cond(W / sizes) > SINGULAR_UNKNOWNS:
            return J
        others = np.delete(J, np.arange(n, n + solved), axis=1)
        followed = np.linalg.solve(W / sizes, others[:solved])
        reduced: FloatArray = others[solved:] - (J[solved:, unknowns] / sizes) @ followed
        rounding = ROUNDED * (np.abs(others[solved:]) + np.abs(J[solved:, unknowns] / sizes) @ np.abs(followed))
        return np.where(np.abs(reduced) > rounding, reduced, 0.0)

    def consistent(self, order: Sequence[Sequence[int]], begin: Point | None = None) -> Point:
        """Return the start: fixed states held, then as many others as possible.

        Parameters
        ----------
        order : sequence of sequence of int
            States in groups, those with the most important start values first; the first group is fixed. The nearest
            point is searched for with the groups held that say something, and the states of the last one, bodies
            where there are joints, follow.
        begin : Point, optional
            A point near it, with the start values that can be kept; by default that of the model.

        Raises
        ------
        ConstraintError
            When there is none; the message names the equation that is farthest from being satisfied.
        """
        first = self.first() if begin is None else begin
        point = self.solved(first, range(self.count))
        fixed, written, inner, _ = order
        if point.worst <= CONSISTENT:
            return self._close_exactly(point, fixed)
        point = self._near(first, fixed, written, inner)
        if point.worst > CONSISTENT:
            raise ConstraintError(
                f"No consistent start of '{self._engine.info.name}' was found: '{point.equation}' is left with "
                f"{point.worst:.3g}. Check the start values with 'fixed = true' and the initial equations: too many "
                "may be given, or start values far from any solution.",
                residuals={point.equation: point.worst},
            )
        groups = [list(group) for group in order]
        while any(groups):  # where not all can be kept, those that matter least are given up
            kept_point = self._keep(point, first, fixed, [i for group in groups for i in group])
            if kept_point is not None:
                return kept_point
            while groups and not groups[-1]:
                groups.pop()
            groups.pop()
        return point

    def _close_exactly(self, point: Point, fixed: Sequence[int]) -> Point:
        """Return a consistent point with less rounding in the equations that contain states alone.

        A speed of a micro-mechanism, 1e-9, would be lost among its joints, which are at rest to within the tolerance.
        """
        residuals, slopes = (values[self._of_states] for values in self._values(self._vector(point)))
        scales = np.maximum(np.abs(slopes).max(axis=1, initial=0.0), 1e-300)
        if float(np.abs(residuals / scales).max(initial=0.0)) <= ROUNDED:
            return point
        other = self.solved(self.closed(point, fixed), range(self.count))
        return other if other.worst <= point.worst else point

    def _vector(self, point: Point) -> FloatArray:
        return np.concatenate((point.x, point.w, point.free))

    def _near(self, first: Point, fixed: Sequence[int], written: Sequence[int], inner: Sequence[int]) -> Point:
        """Return a consistent point near the start values that the model writes, else near those of its joints.

        Newton's iteration ends at the solution that is nearest to where it begins: a rope hangs where the model says
        so.
        """
        attempts = [[*fixed, *written, *inner], [*fixed, *inner], [*fixed]]
        if written:
            attempts.insert(1, [*fixed, *written])
        best = replace(first, worst=np.inf)
        for held in attempts:
            near = self.closed(first, held) if len(held) < self.count else first
            point = self.solved(replace(near, x=self.closed(near, fixed).x), fixed)
            if point.worst <= CONSISTENT:
                return point
            best = min(best, point, key=lambda point: point.worst)
        return best

    def _keep(self, point: Point, first: Point, fixed: Sequence[int], order: Sequence[int]) -> Point | None:
        """Return the point at which as many states of ``order`` as can be have their start values; None without any."""
        T = self.motions(point, conditions=True)
        rest = [i for i in order if i not in fixed]
        kept = [*fixed, *(i for i in chosen_rows(T, [*fixed, *rest]) if i not in fixed and i in rest)]
        if not np.abs(point.x[kept] - first.x[kept]).max(initial=0.0) > 0:
            return point
        x = point.x.copy()
        x[kept] = first.x[kept]
        other = self.solved(replace(point, x=x), kept)
        return other if other.worst <= CONSISTENT else None


def chosen_rows(T: FloatArray, order: Sequence[int]) -> list[int]:
    """Return P rows of T (N, P): the first ones in ``order`` that are well independent of those before."""
    chosen: list[int] = []
    basis = np.zeros((0, T.shape[1]))
    for least in (WELL, RANK):
        for i in order:
            if len(chosen) == T.shape[1]:
                return chosen
            if i in chosen:
                continue
            rest = T[i] - (T[i] @ basis.T) @ basis
            rest = rest - (rest @ basis.T) @ basis
            size = float(np.linalg.norm(rest))
            if size > least * max(float(np.linalg.norm(T[i])), 1e-300) and size > RANK:
                chosen.append(i)
                basis = np.vstack((basis, rest / size))
    return chosen
