"""The values and derivatives of a model that a filter needs at a point, by the quickest means that the model has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy

import numpy as np

from fmilin.errors import NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.model.capabilities import compile_model, read_products, read_tangents
from fmilin.model.interface import Model, TangentBatch
from fmilin.models.batch_graph import BatchGraph, batch_graph
from fmilin.signals import FloatArray, wrap_differences
from fmilin.tolerances import EPS

STEP = float(np.cbrt(EPS))  # of central differences, in sizes of what is moved

Slopes = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Rates (N,), outputs (ny,), and their derivatives (N, k), (ny, k) along k directions."""


class GraphEvaluator:
    """By compiled code of the model's graph: everything in one call, remembered for the point."""

    def __init__(self, graph: BatchGraph, N: int, nu: int) -> None:
        self._graph, self._p, self._N, self._nu, self._key = graph, graph.parameters(1, {}), N, nu, b""
        self._code = graph.stacks.at_one_point()
        self._ends = N, int(graph.ends[1])
        if self._code is not None:
            self._code[0][1 + N + nu :] = self._p[0]

    def fork(self) -> GraphEvaluator:
        """Return the same with memory of its own, for another thread."""
        return GraphEvaluator(self._graph, self._N, self._nu)

    def _at(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z = (f, c, h) and its derivatives along (x, u)."""
        key = x.tobytes() + u.tobytes()
        if t != self._time or key != self._key:
            self._last, self._key, self._time = self._compute(t, x, u), key, t
        return self._last

    _time = float("nan")

    def _compute(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self._code is not None:
            s, z, J, fill = self._code
            s[0], s[1 : 1 + self._N], s[1 + self._N : 1 + self._N + self._nu] = t, x, u
            if fill():
                return z.copy(), J.copy()
        try:
            z, J = self._graph.stacks(t, x[None], u[None], self._p)
        except np.linalg.LinAlgError:
            raise NumericalError(
                f"The rates are not determined at t = {t:.6g} s: the matrix that multiplies accelerations and "
                "multipliers is singular at the estimate.",
                condition_number=float("inf"),
            ) from None
        return z[0], J[0]

    def values(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates and outputs."""
        z, (n, m) = self._at(t, x, u)[0], self._ends
        return z[:n], z[n:m]

    def along(self, t: float, x: FloatArray, u: FloatArray, X: FloatArray, U: FloatArray | None = None) -> Slopes:
        """Return values and derivatives."""
        (z, J), (n, m) = self._at(t, x, u), self._ends
        moved = J[:m, :n] @ X
        if U is not None and len(U):
            moved += J[:m, n:] @ U
        return z[:n], z[n:m], moved[:n], moved[n:]

    def surface(
        self, t: float, x: FloatArray, u: FloatArray, columns: Sequence[int] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return h and H."""
        (z, J), m = self._at(t, x, u), self._ends[1]
        return z[m:], J[m:, : self._N]

    def compute_points(self, t: float, X: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates (k, N) and outputs (k, ny) at states X (k, N)."""
        return join_points(self.values(t, x, u) for x in X)

    def compute_surfaces(
        self, t: float, X: FloatArray, u: FloatArray, columns: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return h (k, m) and H (k, m, N) at states X (k, N)."""
        return join_points(self.surface(t, x, u, columns) for x in X)


class SourceEvaluator:
    """By the model itself: its exact products where it has them, central differences where not.

    Of a model with quick batches, an FMU above all, a point or all points of a batch are one request, with the
    derivatives along all states and inputs: a message to another process takes longer than a column of derivatives.
    """

    def __init__(self, model: Model, invariants: Invariants, turns: FloatArray) -> None:
        self._model, self._invariants = compile_model(model, 10_000), invariants
        self._turns = np.concatenate((np.zeros(len(model.states)), turns))  # of rates, which do not wrap, and outputs
        nothing = np.zeros(0), np.zeros((0, 0))
        self._last: tuple[tuple[float, bytes, bytes] | None, tuple[FloatArray, FloatArray]] = None, nothing
        self._batch: tuple[tuple[float, bytes, bytes], TangentBatch] | None = None  # the last point of a batch of one
        self._asks_in_batches, self._measures_in_batches = self._model.batches, False

    def fork(self) -> SourceEvaluator:
        """Return the same with memory of its own."""
        other = copy(self)
        other._turns = self._turns.copy()
        return other

    def _differentiate(self, t: float, X: FloatArray, u: FloatArray) -> TangentBatch | None:
        """Return values and derivatives along all states and inputs at states X (k, N); None without batches."""
        if not self._asks_in_batches:
            return None
        count, N = X.shape
        inputs = np.broadcast_to(u, (count, len(u)))
        batch = read_tangents(self._model, np.full(count, t), X, inputs, range(N))
        self._measures_in_batches = batch is None
        if batch is None or not (np.isfinite(batch.derivatives).all() and np.isfinite(batch.outputs).all()):
            self._asks_in_batches = False  # no derivatives, or none along parameters
            return None
        return batch

    def _at(self, t: float, x: FloatArray, u: FloatArray) -> TangentBatch | None:
        """Return the same at one point, the last one without a question."""
        key = t, x.tobytes(), u.tobytes()
        if self._batch is None or self._batch[0] != key:
            batch = self._differentiate(t, x[None], u)
            if batch is None:
                return None
            self._batch = key, batch
        return self._batch[1]

    def set_turn(self, output: int, turn: float) -> None:
        """Take differences of an output modulo a turn from now on; 0 for one that does not wrap."""
        self._turns[len(self._model.states) + output] = turn

    def values(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates (N,) and outputs (ny,)."""
        if self._batch is not None and self._batch[0] == (t, x.tobytes(), u.tobytes()):
            return self._batch[1].rates[0], self._batch[1].values[0]
        at = self._model.evaluate(t, x, u)
        return at.derivatives, at.outputs

    def along(self, t: float, x: FloatArray, u: FloatArray, X: FloatArray, U: FloatArray | None = None) -> Slopes:
        """Return values and derivatives along the columns of X (N, k) and U (nu, k), zero without."""
        batch = self._at(t, x, u)
        if batch is not None:
            n = len(x)
            parts = batch.derivatives[0], batch.outputs[0]
            F, C = (part[:, :n] @ X + (0.0 if U is None else part[:, n:] @ U) for part in parts)
            return batch.rates[0], batch.values[0], F, C
        U = np.zeros((len(u), X.shape[1])) if U is None else U
        exact = read_products(self._model, t, x, u, X, U)

        def values(x: FloatArray, u: FloatArray) -> FloatArray:
            at = self._model.evaluate_points(np.full(len(x), t), x, u)
            return np.hstack((at.derivatives, at.outputs))

        exact_values = None if exact is None else np.concatenate((exact.derivatives, exact.outputs))
        here, slopes = self._complete(exact_values, values, (x, u), (X, U))
        if here is None:
            here = np.concatenate(self.values(t, x, u))
        n = len(x)
        return here[:n], here[n:], slopes[:n], slopes[n:]

    def surface(
        self, t: float, x: FloatArray, u: FloatArray, columns: Sequence[int] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the invariants h (m,) and their gradient H (m, N), of which ``columns`` may be all that counts."""
        invariants = self._invariants
        if self._needs_care:
            return invariants.values(t, x, u), invariants.gradient(t, x, u).H
        batch = self._at(t, x, u)
        if batch is not None:
            return batch.residuals[0], batch.gradient[0]
        chosen = list(range(len(x))) if columns is None else list(columns)
        key = t, x.tobytes(), u.tobytes()
        if self._last[0] == key:
            return self._last[1]
        X, U = np.eye(len(x))[:, chosen], np.zeros((len(u), len(chosen)))
        exact = read_products(self._model, t, x, u, X, U)
        if exact is None and self._model.batches:
            residuals, gradients = self._measure_surfaces(t, x[None], u, chosen)
            h, H = residuals[0], gradients[0]
        else:

            def values(x: FloatArray, u: FloatArray) -> FloatArray:
                return np.array([invariants.values(t, *point) for point in zip(x, u, strict=True)])

            exact_values = None if exact is None else exact.residuals
            here, slopes = self._complete(exact_values, values, (x, u), (X, U))
            h, H = invariants.values(t, x, u) if here is None else here, np.full((len(slopes), len(x)), np.nan)
            H[:, chosen] = slopes
        if columns is None:
            self._last = key, (h, H)
        return h, H

    @property
    def _needs_care(self) -> bool:
        """Whether constraints are formulas, or have rates that are not declared."""
        return self._invariants.connections is not None or bool(self._invariants.hidden)

    def compute_points(self, t: float, X: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates (k, N) and outputs (k, ny) at states X (k, N)."""
        if len(X) == 1 or not self._model.batches:
            return join_points(self.values(t, x, u) for x in X)
        at = self._model.evaluate_points(np.full(len(X), t), X, np.broadcast_to(u, (len(X), len(u))))
        return at.derivatives, at.outputs

    def compute_surfaces(
        self, t: float, X: FloatArray, u: FloatArray, columns: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return h (k, m) and H (k, m, N) at states X (k, N), of which ``columns`` may be all that counts."""
        batch = None if len(X) == 1 or self._needs_care else self._differentiate(t, X, u)
        if batch is not None:
            return batch.residuals, batch.gradient
        if len(X) > 1 and self._measures_in_batches and not self._needs_care:
            return self._measure_surfaces(t, X, u, columns)
        return join_points(self.surface(t, x, u, columns) for x in X)

    def _measure_surfaces(
        self, t: float, X: FloatArray, u: FloatArray, columns: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return h (k, m) and H (k, m, N) at states X (k, N) by differences, all in one question."""
        count, N = X.shape
        chosen = list(columns)
        h = STEP * self._invariants.scales[chosen]
        moves = np.zeros((len(chosen), N))
        moves[range(len(chosen)), chosen] = h
        here = X[:, None]
        points = np.concatenate((here, here + moves, here - moves), axis=1).reshape(-1, N)
        inputs = np.broadcast_to(u, (len(points), len(u)))
        at = self._model.evaluate_points(np.full(len(points), t), points, inputs)
        residuals, ahead, behind = np.split(at.residuals.reshape(count, 1 + 2 * len(h), -1), [1, 1 + len(h)], axis=1)
        H = np.full((count, residuals.shape[2], N), np.nan)
        H[..., chosen] = np.swapaxes((ahead - behind) / (2 * h[:, None]), 1, 2)
        return residuals[:, 0], H

    def _complete(
        self,
        exact_values: FloatArray | None,
        function: Callable[[FloatArray, FloatArray], FloatArray],
        at: tuple[FloatArray, FloatArray],
        along: tuple[FloatArray, FloatArray],
    ) -> tuple[FloatArray | None, FloatArray]:
        """Return derivatives along columns, measured where not given, and the values where measured, else None."""
        if exact_values is None:
            return self._measure(function, at, along)
        columns = np.flatnonzero(~np.isfinite(exact_values).all(axis=0))
        if not len(columns):
            return None, exact_values
        X, U = along
        slopes = exact_values.copy()
        here, slopes[:, columns] = self._measure(function, at, (X[:, columns], U[:, columns]))
        return here, slopes

    def _measure(
        self,
        function: Callable[[FloatArray, FloatArray], FloatArray],
        at: tuple[FloatArray, FloatArray],
        along: tuple[FloatArray, FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Return a ``function`` of many points, and its derivatives along columns by central differences."""
        (x, u), X, U = at, along[0].T, along[1].T
        scales = np.concatenate((self._invariants.scales, self._model.inputs.scales(u)))
        sizes = np.max(np.abs(np.hstack((X, U))) / scales, axis=1, initial=0.0)
        h = np.where(sizes > 0, STEP / np.maximum(sizes, 1e-300), 1.0)[:, None]
        points = np.vstack((x, x + h * X, x - h * X)), np.vstack((u, u + h * U, u - h * U))
        here, ahead, behind = np.split(function(*points), [1, 1 + len(h)])
        turns = self._turns if ahead.shape[1] == len(self._turns) else np.zeros(ahead.shape[1])
        return here[0], (wrap_differences(ahead - behind, turns) / (2 * h)).T


def join_points(points: Iterable[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Return two quantities at points, (k, ...) each."""
    first, second = zip(*points, strict=True)
    return np.array(first), np.array(second)


ManifoldEvaluator = GraphEvaluator | SourceEvaluator


def make_evaluator(model: Model, invariants: Invariants, turns: FloatArray) -> ManifoldEvaluator:
    """Return the quickest evaluator of a model; ``turns`` of its outputs, 0 for those that do not wrap."""
    graph, N, nu = batch_graph(model, ()), len(model.states), len(model.inputs)
    return SourceEvaluator(model, invariants, turns) if graph is None else GraphEvaluator(graph, N, nu)
