"""What a filter asks of a model at a point, and the motion over one sample, with exact slopes and what noise adds.

Coordinates are P of the states, y = R x; the others solve h(t, x) = 0, so that an error e of the estimate means
x = Psi(y + e). Over a substep of length s, the method of Runge and Kutta (order 4) makes of x and its tangent T = DPsi

    x+ = Psi(R x_4),    Phi = R X_4,    X' = f_x X along all four stages, X(0) = T,

the derivative of the method. Noise of the spectral density W that enters through G adds, to the same order,

    Q = sum_ij V_i V_j' s^(i+j+1) / (i+j+1),    V_i = A^i R G W^(1/2) / i!,    A = R f_x T,

whose factor needs no difference of covariances: the matrix of 1 / (i+j+1) has one of Cholesky's. Where the coordinates
determine the others badly, the best ones are chosen by elimination with complete pivoting, and an error moves by
R_new T_old.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dgeqrf, dgesv

from fmilin.ground import FloatArray, NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.model.interface import Model
from fmilin.native.batch_graph import BatchGraph, batch_graph
from fmilin.numerics.steps import runge_kutta_step

STEP = float(np.cbrt(np.finfo(np.float64).eps))  # of central differences, in sizes of what is moved

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

    def __init__(self, model: Model, invariants: Invariants) -> None:
        self._model, self._invariants = model.compiled_for(10_000), invariants
        self._last: tuple[tuple[float, bytes, bytes] | None, FloatArray] = None, np.zeros((0, 0))

    def values(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates (N,) and outputs (ny,)."""
        at = self._model.evaluate(t, x, u)
        return at.derivatives, at.outputs

    def along(self, t: float, x: FloatArray, u: FloatArray, X: FloatArray, U: FloatArray | None = None) -> Slopes:
        """Return values and slopes along the columns of X (N, k) and U (nu, k), zero without."""
        f, c = self.values(t, x, u)
        U = np.zeros((len(u), X.shape[1])) if U is None else U
        exact = self._model.products(t, x, u, X, U)
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
            exact = self._model.products(t, x, u, X, U)
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
            slopes[:, j] = (ahead - behind) / (2 * h)
        return slopes


Visits = GraphVisits | SourceVisits


def visits_of(model: Model, invariants: Invariants) -> Visits:
    """Return the quickest visits that there are for a model."""
    graph, N, nu = batch_graph(model, ()), len(model.states), len(model.inputs)
    return SourceVisits(model, invariants) if graph is None else GraphVisits(graph, N, nu)


TERMS = 4  # powers of A in the integral of the noise: as exact as Runge and Kutta's method
BENT = 4.0  # slopes of dependent states, in sizes of the states, above which other coordinates are looked for
ITERATIONS = 12  # Newton's steps back to the manifold
QUADRATIC = 1e-9  # a step of Newton's method, in sizes of the states, after which the next would be rounding
SETTLED = 1e-8  # of a change of the estimate, in standard deviations: the iteration of the IEKF ends
NO_PIVOT = 1e-9  # a pivot of the normalized gradient below this is none
_POWERS = np.arange(TERMS + 1)
_FACTORIAL = np.cumprod([1.0, *range(1, TERMS + 1)])
HILBERT = np.linalg.cholesky(1.0 / (_POWERS[:, None] + _POWERS + 1.0))


def triangular(rows: FloatArray) -> FloatArray:
    """Return the lower triangular S (P, P) with S S' = rows' rows, for rows (k, P)."""
    k, P = rows.shape
    if k < P:
        rows = np.concatenate((rows, np.zeros((P - k, P))))
    factored = dgeqrf(rows)[0][:P]
    return np.asarray(np.tril(factored.T))


@dataclass
class Chart:
    """Which states are coordinates, and which rows of h determine the others."""

    kept: list[int]
    others: list[int]
    rows: list[int]

    def __post_init__(self) -> None:
        self.square, self.opposite = np.ix_(self.rows, self.others), np.ix_(self.rows, self.kept)


class Motion:
    """A model on its manifold, from sample to sample; N states, P coordinates."""

    limits: ClassVar = {
        "ITERATIONS": ITERATIONS, "QUADRATIC": QUADRATIC, "BENT": BENT, "NO_PIVOT": NO_PIVOT, "SETTLED": SETTLED
    }  # fmt: skip
    weights = HILBERT

    def __init__(
        self,
        visits: Visits,
        chart: Chart,
        scales: FloatArray,
        *,
        noise: tuple[FloatArray, FloatArray],
        substeps: int,
        held: Sequence[int] = (),
    ) -> None:
        self.visits, self.chart, self.scales = visits, chart, scales
        self.noise = noise  # (N, k) and (nu, k): directions of states and inputs, times the root of the density
        self.substeps = substeps
        self.held = list(held)  # states that are always coordinates
        self.switches = 0

    def on_manifold(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the point with the coordinates of x that lies on the manifold."""
        chart = self.chart
        if not chart.others:
            return x
        x, scales = x.copy(), self.scales[chart.others]
        for _ in range(ITERATIONS):
            h, H = self.visits.surface(t, x, u, chart.others)
            *_, step, singular = dgesv(H[chart.square], h[chart.rows])
            if singular or not np.isfinite(step).all():
                break
            x[chart.others] -= step
            if np.max(np.abs(step) / scales) <= QUADRATIC:
                return x
        raise NumericalError(
            f"No point of the manifold belongs to the estimate at t = {t:.6g} s: the sample time is too long, or the "
            "estimate is far off. Shorten the sample time, or begin again with reset()."
        )

    def tangent(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return T = dx/dy, shape (N, P)."""
        chart = self.chart
        T = np.zeros((len(x), len(chart.kept)))
        T[chart.kept, range(len(chart.kept))] = 1.0
        if chart.others:
            H = self.visits.surface(t, x, u)[1]
            T[chart.others] = -dgesv(H[chart.square], H[chart.opposite])[2]
        return T

    def moved(self, t: float, x: FloatArray, u: FloatArray, S: FloatArray) -> FloatArray:
        """Choose other coordinates where these have become bad; return the factor S of the covariance in them."""
        chart = self.chart
        if not chart.others:
            return S
        T = self.tangent(t, x, u)
        if np.max(np.abs(T[chart.others]) * self.scales[chart.kept] / self.scales[chart.others][:, None]) <= BENT:
            return S
        other = chosen(self.visits.surface(t, x, u)[1], self.scales, len(chart.others), self.held)
        if other.kept == chart.kept:
            return S
        self.chart, self.switches = other, self.switches + 1
        return triangular((T[other.kept] @ S).T)

    def predicted(
        self, t: float, x: FloatArray, u: FloatArray, S: FloatArray, sample_time: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the states and the factor of the covariance a sample later, inputs held."""
        s = sample_time / self.substeps
        for k in range(self.substeps):
            x, Phi, V = self.substep(t + k * s, x, u, s)
            S = triangular(np.concatenate(((Phi @ S).T, V.T)))
            S = self.moved(t + (k + 1) * s, x, u, S)
        return x, S

    def substep(self, t: float, x: FloatArray, u: FloatArray, s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x+ (N,), Phi (P, P), and the factor of Q, shape (P, k (TERMS + 1))."""
        kept, P = self.chart.kept, len(self.chart.kept)
        T = self.tangent(t, x, u)
        f1, _, F1, _ = self.visits.along(t, x, u, *self._with_noise(T, len(u)))
        K1 = F1[:, :P]
        f2, _, K2, _ = self.visits.along(t + s / 2, x + s / 2 * f1, u, T + s / 2 * K1)
        f3, _, K3, _ = self.visits.along(t + s / 2, x + s / 2 * f2, u, T + s / 2 * K2)
        f4, _, K4, _ = self.visits.along(t + s, x + s * f3, u, T + s * K3)
        x = x + s / 6 * (f1 + 2 * (f2 + f3) + f4)
        Phi = (T + s / 6 * (K1 + 2 * (K2 + K3) + K4))[kept]
        return self.on_manifold(t + s, x, u), Phi, noise_factor(K1[kept], (F1[:, P:] + self.noise[0])[kept], s)

    def _with_noise(self, T: FloatArray, nu: int) -> tuple[FloatArray, FloatArray]:
        """Return the directions of the coordinates, then those of the noise."""
        X_w, U_w = self.noise
        return np.hstack((T, np.zeros_like(X_w))), np.hstack((np.zeros((nu, T.shape[1])), U_w))

    def transition(self, t: float, x: FloatArray, u: FloatArray, sample_time: float) -> tuple[FloatArray, FloatArray]:
        """Return Phi (P, P) and the factor of Q over a sample with the slopes at its start held."""
        kept, P = self.chart.kept, len(self.chart.kept)
        F = self.visits.along(t, x, u, *self._with_noise(self.tangent(t, x, u), len(u)))[2]
        A, s = F[kept, :P], sample_time / self.substeps
        V = noise_factor(A, (F[:, P:] + self.noise[0])[kept], s)
        step = np.asarray(sum(np.linalg.matrix_power(A * s, i) / _FACTORIAL[i] for i in _POWERS))
        Phi, total = step, V
        for _ in range(self.substeps - 1):
            Phi, total = step @ Phi, triangular(np.concatenate(((step @ total).T, V.T)))
        return Phi, total

    def later(self, t: float, x: FloatArray, u: FloatArray, sample_time: float) -> FloatArray:
        """Return the states alone a sample later."""
        s = sample_time / self.substeps
        for at in t + s * np.arange(self.substeps):
            f1 = self.visits.values(at, x, u)[0]
            x = runge_kutta_step(lambda t, x: self.visits.values(t, x, u)[0], at, x, s, f1)
            x = self.on_manifold(at + s, x, u)
        return x


def noise_factor(A: FloatArray, G: FloatArray, s: float) -> FloatArray:
    """Return a factor of what white noise through G (P, k) adds in s seconds of y' = A y, shape (P, k (TERMS + 1))."""
    terms = [G * np.sqrt(s)]
    for i in range(1, TERMS + 1):
        terms.append(A @ terms[-1] * (s / i))
    V = np.stack(terms)  # (TERMS + 1, P, k)
    return np.concatenate(list(np.tensordot(HILBERT.T, V, axes=1)), axis=1)


def chosen(H: FloatArray, scales: FloatArray, count: int, held: Sequence[int] = ()) -> Chart:
    """Return the best chart by elimination with complete pivoting of H (m, N), of rank ``count``."""
    A = H * scales
    sizes = np.linalg.norm(A, axis=1)
    A = A / np.where(sizes > 0, sizes, 1.0)[:, None]
    A[:, list(held)] = 0.0
    rows, others = [], []
    for _ in range(count):
        i, j = np.unravel_index(int(np.argmax(np.abs(A))), A.shape)
        if not abs(A[i, j]) > NO_PIVOT:
            raise NumericalError(
                "The estimate is at a singular configuration: no choice of coordinates is regular there. Begin again "
                "elsewhere with reset()."
            )
        A = A - np.outer(A[:, j] / A[i, j], A[i])
        A[i], A[:, j] = 0.0, 0.0
        rows.append(int(i))
        others.append(int(j))
    kept = [k for k in range(H.shape[1]) if k not in others]
    return Chart(kept, sorted(others), sorted(rows))
