"""Linear models of a mechanism at many points: by the recursion, and from some hundred points on by compiled code.

The compiled code is the recursion written down (:mod:`fmilin.models.mechanism.tracing`), for several points at a time.
Where the configuration is close to singular the recursion has the last word.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Model, OperatingPoint, TangentStack
from fmilin.native.batch_graph import PartitionedSlopes, StatePartition, batch_graph
from fmilin.native.mechanism.linear import Choice, LocalForm, Matrices, MechanismEquations, matrices_of
from fmilin.native.mechanism.system import Solution

COMPILED_FROM = 500  # points, of all calls together, from which on compiled code is made: that takes seconds once
BLOCK = 32  # points whose slopes on all states are held at a time: what fits into the processor's cache
FAR = 1e6  # slopes of dependent states beyond this are looked at by the recursion


class ManyPoints:
    """The linear models of a mechanism, which counts its points; ``solve`` takes states (k, N), inputs (k, nu)."""

    def __init__(
        self,
        model: Model,
        equations: MechanismEquations,
        solve: Callable[[FloatArray, FloatArray], Solution],
        recursion: Callable[[FloatArray, FloatArray, Choice], TangentStack],
    ) -> None:
        self._model, self._equations, self._solve, self._recursion = model, equations, solve, recursion
        self._count = 0

    def __call__(
        self,
        first: OperatingPoint,
        points: tuple[FloatArray, FloatArray],
        choice: Choice,
        *,
        threads: int = 1,
        compiled: bool | None = None,
    ) -> Matrices:
        """Return the matrices at points x (k, N) and u (k, nu)."""
        x, u = points
        self._count += len(x)
        wanted = compiled if compiled is not None else self._count >= COMPILED_FROM
        partition = self._partition(first, choice) if wanted else None
        if partition is not None:
            return self._compiled(partition, points, choice, threads)
        if compiled:
            raise UsageError(
                f"There is no compiled code for '{self._model.info.name}': it takes a C compiler (cc, gcc or clang on "
                "the PATH, or named by the environment variable CC) and the mechanism's own constraints. Leave out "
                "compiled=True."
            )
        return matrices_of(self._equations, lambda some: self._solve(x[some], u[some]), len(x), choice, threads=threads)

    def tangents(self, points: tuple[FloatArray, FloatArray], choice: Choice) -> TangentStack:
        """Return values, constraints and slopes along the states of a choice."""
        x, u = points
        self._count += len(x)
        first = OperatingPoint(0.0, x[0], u[0])
        partition = self._partition(first, choice) if self._count >= COMPILED_FROM else None
        return self._recursion(x, u, choice) if partition is None else partition.at(0.0, x, u).tangents

    def _partition(self, first: OperatingPoint, choice: Choice) -> StatePartition | None:
        """Return the compiled slopes; None where the recursion is to be taken."""
        graph = batch_graph(self._model, ())
        if graph is None or not graph.stacks.compile():
            return None
        try:
            return StatePartition(graph, self._model, choice.states, first)
        except NumericalError:  # the first point is singular: the recursion says how
            return None

    def _compiled(
        self, partition: StatePartition, points: tuple[FloatArray, FloatArray], choice: Choice, threads: int
    ) -> Matrices:
        x, u = points
        if not partition.others:
            return self._block(partition.at(0.0, x, u, threads=threads), points, choice)
        n, k, p = x.shape[1], len(x), len(choice.states)
        ny, width = len(self._model.outputs), p + u.shape[1]
        shapes = {"derivatives": (n, width), "outputs": (ny, width), "T": (n, p), "rates": (n,), "values": (ny,)}
        stacks = {name: np.empty((k, *shape)) for name, shape in shapes.items()}

        def work(some: slice) -> None:
            models = self._block(partition.at(0.0, x[some], u[some]), (x[some], u[some]), choice)
            for name, stack in stacks.items():
                stack[some] = getattr(models, name)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, (slice(i, i + BLOCK) for i in range(0, k, BLOCK))))
        return Matrices(choice, **stacks)

    def _block(self, along: PartitionedSlopes, points: tuple[FloatArray, FloatArray], choice: Choice) -> Matrices:
        stack = along.stack
        models = Matrices(choice, along.along(stack.f_z), along.along(stack.c_z), along.T, stack.f, stack.c)
        doubtful = np.flatnonzero(~(along.size <= FAR) | ~np.isfinite(stack.f).all(axis=1))
        if not len(doubtful):
            return models
        x, u = points
        exact = LocalForm(self._equations, self._solve(x[doubtful], u[doubtful]), choice).matrices()
        for name in (f.name for f in fields(Matrices) if f.name != "choice"):
            getattr(models, name)[doubtful] = getattr(exact, name)
        return models
