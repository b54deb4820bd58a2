"""A first guess of states that have no start value of their own, from the start values of other variables.

In models of fluids, states are amounts (mass, energy) while levels, pressures and temperatures have start values. What
constants determine is computed first; then one variable after the other takes its start value, states' advice and
``fixed`` ones first, and every equation with a single unknown left gives that.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from fmilin.models import DaeGraph
from fmilin.signals import FloatArray, Signals

__all__ = ["guess_start_values"]

STEPS = 30  # of Newton's iteration for one unknown in one equation
REACHED = 1e-12


def guess_start_values(
    graph: DaeGraph, order: Sequence[int], fixed: Set[int], conditions: Any, free: Sequence[str]
) -> DaeGraph:
    """Return the graph with start values that satisfy its equations as far as one unknown at a time can.

    Parameters
    ----------
    graph : DaeGraph
    order : sequence of int
        Which of (x, z) take their start values, the first ones first.
    fixed : set of int
        Those of them that are fixed: zeros are start values of these, and stand for missing ones elsewhere.
    conditions : SX, shape (m, 1)
        Initial equations.
    free : sequence of str
        Parameters that these determine.
    """
    spread = _Spread(graph, conditions, [graph.parameters.positions[name] for name in free])
    spread.spread()
    for j in order:
        if spread.y[j] != 0.0 or j in fixed:
            spread.take(j)
    n = len(graph.states)
    if not spread.is_finite():  # friction divides by a slip that follows from velocities at rest
        for j in (*range(n), *range(n + len(graph.algebraic), 2 * n + len(graph.algebraic))):
            spread.take(j)
    x, z = spread.y[:n], spread.y[n : n + len(graph.algebraic)]
    return replace(
        graph,
        states=_starting(graph.states, x),
        algebraic=_starting(graph.algebraic, z),
        parameters=_starting(graph.parameters, spread.parameters),
    )


def _starting(signals: Signals, values: FloatArray) -> Signals:
    return Signals(
        signal.with_start(float(value) if np.isfinite(value) else signal.start)
        for signal, value in zip(signals, values, strict=True)
    )


class _Spread:
    """The values of (x, z, x') determined so far, and the equations that have one unknown left."""

    def __init__(self, graph: DaeGraph, conditions: Any, free: Sequence[int]) -> None:
        v, given = ca.vertcat(graph.x, graph.z, graph.dx), [graph.time, graph.u, graph.p]
        residuals = ca.vertcat(graph.residuals, conditions)
        J = ca.jacobian(residuals, ca.vertcat(v, *(graph.p[k] for k in free)))
        rows, columns = J.sparsity().get_triplet()
        self._graph, self._free, self._count = graph, np.array(free, dtype=int), v.numel()
        self._function = ca.Function("guess", [*given, v], [residuals, J])
        self._entry = {pair: k for k, pair in enumerate(zip(rows, columns, strict=True))}
        self._open: list[set[int]] = [set() for _ in range(J.shape[0])]
        self._where: list[set[int]] = [set() for _ in range(J.shape[1])]
        for i, j in self._entry:
            self._open[i].add(j)
            self._where[j].add(i)
        self.determined: set[int] = set()
        starts = graph.states.starts, graph.algebraic.starts, np.zeros(len(graph.states)), graph.values[self._free]
        self.y = np.concatenate(starts)
        self._ready = {i for i, row in enumerate(self._open) if len(row) == 1}

    @property
    def parameters(self) -> FloatArray:
        """All parameters, those that are free as far as they are known."""
        values = self._graph.values.copy()
        values[self._free] = self.y[self._count :]
        return values

    def is_finite(self) -> bool:
        """Whether all equations have a value at the start values found so far."""
        residuals, _ = self._function(0.0, self._graph.inputs.starts, self.parameters, self.y[: self._count])
        return bool(np.isfinite(residuals.full()).all())

    def take(self, j: int) -> None:
        """Let a variable have its value, and what follows from it."""
        if j in self.determined:
            return
        self._close(j)
        self.spread()

    def spread(self) -> None:
        """Solve equations with one unknown until there is none left."""
        while self._ready:
            pairs: dict[int, int] = {}
            for i in sorted(self._ready):
                if len(self._open[i]) == 1:
                    pairs.setdefault(next(iter(self._open[i])), i)
            self._ready.clear()
            if pairs:
                self._solve(pairs)
            for j in pairs:
                self._close(j)

    def _close(self, j: int) -> None:
        self.determined.add(j)
        for i in self._where[j]:
            self._open[i].discard(j)
            if len(self._open[i]) == 1:
                self._ready.add(i)

    def _solve(self, pairs: dict[int, int]) -> None:
        """Solve one equation for each unknown; where that fails, it keeps its start value."""
        columns, rows = np.array(list(pairs)), np.array(list(pairs.values()))
        entries = np.array([self._entry[i, j] for j, i in pairs.items()])
        begin = self.y[columns].copy()
        for _ in range(STEPS):
            r, J = self._function(0.0, self._graph.inputs.starts, self.parameters, self.y[: self._count])
            slopes = np.array(J.nonzeros())[entries]
            with np.errstate(all="ignore"):
                step = -r.full().ravel()[rows] / slopes
            step = np.where(np.isfinite(step), step, np.sign(np.nan_to_num(r.full().ravel()[rows])))  # q |q| at 0
            self.y[columns] += step
            if np.all(np.abs(step) <= REACHED * np.maximum(np.abs(self.y[columns]), 1.0)):
                return
        left = np.abs(step) > 1e-6 * np.maximum(np.abs(self.y[columns]), 1.0)
        self.y[columns[left]] = begin[left]
