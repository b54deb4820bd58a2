"""The values and slopes of a model that a filter needs at a point, by the quickest means that the model has."""

from collections.abc import Callable, Sequence

import numpy as np

from fmilin.errors import NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.model.capabilities import compile_for, read_products
from fmilin.model.interface import Model
from fmilin.models.batch_graph import BatchGraph, batch_graph
from fmilin.signals import FloatArray, wrap_differences
from fmilin.tolerances import EPS

STEP = float(np.cbrt(EPS))  # of central differences, in sizes of what is moved

Slopes = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Rates (N,), outputs (ny,), and their slopes (N, k), (ny, k) along k directions."""


class GraphVisits:
    """By compiled code of the model's graph: everything in one call, remembered for the point."""

    def __init__(self, graph: BatchGraph, N: int, nu: int) -> None:
        self._graph, self._p, self._N, self._nu, self._key = graph, graph.parameters(1, {}), N, nu, b""
        self._code = graph.stacks.at_one_point()
        self._ends = N, int(graph.ends[1])
        if self._code is not None:
            self._code[0][1 + N + nu :] = self._p[0]

    def _at(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z = (f, c, h) and its slopes along (x, u)."""
        key = x.tobytes() + u.tobytes()
        if t != self._time or key != self._key:
            self._last, self._key, self._time = self._computed(t, x, u), key, t
        return self._last

    _time = float("nan")

    def _computed(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
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
        """Return values and slopes."""
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


class SourceVisits:
    """By the model itself: its exact products where it has them, central differences where not."""

    def __init__(self, model: Model, invariants: Invariants, turns: FloatArray) -> None:
        self._model, self._invariants = compile_for(model, 10_000), invariants
        self._turns = np.concatenate((np.zeros(len(model.states)), turns))  # of rates, which do not wrap, and outputs
        self._last: tuple[tuple[float, bytes, bytes] | None, FloatArray] = None, np.zeros((0, 0))

    def set_turn(self, output: int, turn: float) -> None:
        """Take differences of an output modulo a turn from now on; 0 for one that does not wrap."""
        self._turns[len(self._model.states) + output] = turn

    def values(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates (N,) and outputs (ny,)."""
        at = self._model.evaluate(t, x, u)
        return at.derivatives, at.outputs

    def along(self, t: float, x: FloatArray, u: FloatArray, X: FloatArray, U: FloatArray | None = None) -> Slopes:
        """Return values and slopes along the columns of X (N, k) and U (nu, k), zero without."""
        f, c = self.values(t, x, u)
        U = np.zeros((len(u), X.shape[1])) if U is None else U
        exact = read_products(self._model, t, x, u, X, U)
        given = None if exact is None else np.concatenate((exact.derivatives, exact.outputs))
        slopes = self._filled(given, lambda x, u: np.concatenate(self.values(t, x, u)), (x, u), (X, U))
        return f, c, *np.split(slopes, [len(f)])  # type: ignore[return-value]

    def surface(
        self, t: float, x: FloatArray, u: FloatArray, columns: Sequence[int] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the invariants h (m,) and their gradient H (m, N), of which ``columns`` may be all that counts."""
        h, invariants = self._invariants.values(t, x, u), self._invariants
        if invariants.connections is not None or invariants.hidden:  # formulas, or rates that need more care
            return h, invariants.gradient(t, x, u).H
        key = t, x.tobytes(), u.tobytes()
        if self._last[0] != key:
            N = len(x)
            kept = list(range(N)) if columns is None else list(columns)
            X, U, H = np.eye(N)[:, kept], np.zeros((len(u), len(kept))), np.full((len(h), N), np.nan)
            exact = read_products(self._model, t, x, u, X, U)
            given = None if exact is None else exact.residuals
            H[:, kept] = self._filled(given, lambda x, u: invariants.values(t, x, u), (x, u), (X, U))
            if columns is not None:
                return h, H
            self._last = key, H
        return h, self._last[1]

    def _filled(
        self,
        given: FloatArray | None,
        function: Callable[[FloatArray, FloatArray], FloatArray],
        at: tuple[FloatArray, FloatArray],
        along: tuple[FloatArray, FloatArray],
    ) -> FloatArray:
        """Return slopes along columns, those that are not given by central differences."""
        (x, u), (X, U), k = at, along, along[0].shape[1]
        slopes = np.full((len(function(x, u)), k), np.nan) if given is None else given.copy()
        scales = np.concatenate((self._invariants.scales, self._model.inputs.scales(u)))
        for j in np.flatnonzero(~np.isfinite(slopes).all(axis=0)):
            size = float(np.max(np.abs(np.concatenate((X[:, j], U[:, j]))) / scales, initial=0.0))
            h = STEP / max(size, 1e-300) if size else 1.0
            ahead, behind = (function(x + s * X[:, j], u + s * U[:, j]) for s in (h, -h))
            turns = self._turns if len(ahead) == len(self._turns) else np.zeros(len(ahead))
            slopes[:, j] = wrap_differences(ahead - behind, turns) / (2 * h)
        return slopes


Visits = GraphVisits | SourceVisits


def visits_of(model: Model, invariants: Invariants, turns: FloatArray) -> Visits:
    """Return the quickest visits that there are for a model; ``turns`` of its outputs, 0 for those that do not wrap."""
    graph, N, nu = batch_graph(model, ()), len(model.states), len(model.inputs)
    return SourceVisits(model, invariants, turns) if graph is None else GraphVisits(graph, N, nu)
