"""Runs of points computed all at once where the source is a graph: assembled or trimmed, and linearized.

From the seed on, in blocks that double: each is guessed on the line through the last two points, corrected by Newton's
iteration with exact slopes, and linearized in the seed's coordinates. The equations are

    h(x) = 0,    x_held = given,    R f(x, u) = 0 where rates rest,

reduced to the subspaces in which they are regular at the seed, so that what they leave open stays as it is guessed. The
seed itself is solved, too: where it does not come out as the point-by-point procedure found it, no batch is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.families.continuation import Seed
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import EQUILIBRIUM
from fmilin.manifold.continuation import KEPT
from fmilin.manifold.rank import independent_rows
from fmilin.model.interface import Model
from fmilin.native.batch_graph import BatchGraph, Stack
from fmilin.points.request import TrimRequest

__all__ = ["Batch", "Solved"]

ROUNDS = 10
"""Steps of Newton's iteration."""

SETTLED = 1e-11
"""Residuals at the end, scaled, over the largest entry of the scaled equations."""

AGREES = 1e-9
"""Matrices at the seed against those of the point-by-point procedure, over their largest entries."""

REGULAR = 1e-8
"""Singular values of the equations at the seed below this part of the largest are zero."""

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Solved:
    """Points of a batch that are solved."""

    x: FloatArray  # shape (k, N)
    u: FloatArray  # shape (k, nu)
    # ``A`` to ``T``, ``f0``, ``y0``, ``out0``, ``accuracy`` and ``error_A``, ..., (k, ...)
    parts: Mapping[str, FloatArray]
    fine: NDArray[np.bool_]  # shape (k,)


class Batch:
    """Solves points beside a seed.

    ``held``: states whose values are given.
    """

    def __init__(
        self, graph: BatchGraph, model: Model, seed: Seed, request: TrimRequest | None, held: list[int]
    ) -> None:
        assert seed.selection is not None  # noqa: S101 - the caller has looked
        self._graph, self._seed, self._held = graph, seed, held
        self._t = seed.point.time
        states = model.states
        self.n, self.k = len(states), len(model.inputs)
        self.R = seed.selection.coordinates.R
        self._x_scales = states.scales(seed.point.states)
        self._u_scales = model.inputs.scales(seed.point.inputs)
        self._y_scales = np.abs(self.R) @ self._x_scales
        names = seed.linear.states.names
        trimmed = request is not None
        self._rest = [i for i, name in enumerate(names) if request is not None and name not in request.steady]
        self._free = [self.n + model.inputs.positions[n] for n in request.free] if request is not None else []
        # An assembled point is the one nearest to the start: what is zero there and at the seed stays zero.
        zero = (model.start.states == 0) & (seed.point.states == 0)
        self._pinned = [] if trimmed else [i for i in (seed.selection.kept or ()) if i not in held and zero[i]]
        here = self._stack(seed.point.states[None], seed.point.inputs[None], self._parameters({}, 1))
        Hs = here.h_z[0, :, : self.n] * self._x_scales
        sizes = np.linalg.norm(Hs, axis=1)
        self._h_sizes = np.where(sizes > 0, sizes, 1.0)
        self._rows = independent_rows(Hs / self._h_sizes[:, None], self.n - len(self.R), len(Hs))
        residual, J = self._equations(here, seed.point.states[None], self._values(seed.values, 1))
        U, sigma, Vt = np.linalg.svd(J[0])
        rank = int(np.count_nonzero(sigma > REGULAR * sigma.max(initial=0.0)))
        self._U, self._V = U[:, :rank], Vt[:rank].T
        self._size = max(float(np.abs(J[0]).max(initial=0.0)), 1.0)
        whole = trimmed or not len(model.constraints) or rank == self.n  # else there is a nearest one to look for
        self.usable = whole and self._agrees(here) and bool(np.abs(residual).max(initial=0.0) <= 1e-6 * self._size)

    def _agrees(self, here: Stack) -> bool:
        parts, _ = self._linear(here, self._seed.point.states[None])
        for name in ("A", "B", "C", "D", "T"):
            known = getattr(self._seed.linear, name)
            if known.shape != parts[name][0].shape:
                return False
            gap = float(np.abs(parts[name][0] - known).max(initial=0.0))
            if not gap <= AGREES * max(float(np.abs(known).max(initial=0.0)), 1e-12):
                return False
        return True

    # -- many points -------------------------------------------------------------------------------------

    def solved(
        self, guess: tuple[FloatArray, FloatArray], values: Mapping[str, FloatArray], inputs: Mapping[int, FloatArray]
    ) -> Solved:
        """Return the points nearest to a guess.

        Shapes: guess (k, N), (k, nu). ``values``, each (k,): what varies, by name: states that are held, and
        parameters. ``inputs``, each (k,): inputs that vary, by position.
        """
        x, u = guess[0].copy(), guess[1].copy()
        for j, given in inputs.items():
            u[:, j] = given
        if self._held:
            x[:, self._held] = self._held_values(values, len(x))
        p = self._parameters(values, len(x))
        fine = np.zeros(len(x), dtype=bool)
        stack = self._stack(x, u, p)
        for _ in range(ROUNDS):
            residual, J = self._equations(stack, x, values)
            with np.errstate(invalid="ignore", over="ignore"):
                fine = np.abs(residual).max(axis=1, initial=0.0) <= SETTLED * self._size
            if fine.all() or not np.isfinite(J).all():
                break
            dz = np.linalg.solve(self._U.T @ J @ self._V, (residual @ self._U)[..., None])[..., 0] @ self._V.T
            x = x - dz[:, : self.n] * self._x_scales
            u[:, [j - self.n for j in self._free]] -= dz[:, self.n :] * self._u_scales[[j - self.n for j in self._free]]
            stack = self._stack(x, u, p)
        parts, well = self._linear(stack, x)
        return Solved(x, u, parts, fine & well)

    def _stack(self, x: FloatArray, u: FloatArray, p: FloatArray) -> Stack:
        return self._graph(self._t, x, u, p)

    def _parameters(self, values: Mapping[str, FloatArray], count: int) -> FloatArray:
        given = {name: self._values(self._seed.values, count)[name] for name in self._seed.values}
        given |= values
        return self._graph.parameters(count, {n: v for n, v in given.items() if n in self._graph.names})

    @staticmethod
    def _values(values: Mapping[str, float], count: int) -> dict[str, FloatArray]:
        return {name: np.full(count, value) for name, value in values.items()}

    def _held_values(self, values: Mapping[str, FloatArray], count: int) -> FloatArray:
        names = list(self._seed.linear.point.states)
        known = self._seed.point.states
        return np.column_stack([values.get(names[i], np.full(count, known[i])) for i in self._held])

    def _equations(
        self, stack: Stack, x: FloatArray, values: Mapping[str, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return scaled residuals (k, m) and their slopes (k, m, N + free)."""
        count, columns = len(x), [*range(self.n), *self._free]
        scales = np.concatenate((self._x_scales, self._u_scales))[columns]
        rows, slopes = [stack.h[:, self._rows] / self._h_sizes[self._rows]], []
        slopes.append(stack.h_z[:, self._rows][:, :, columns] / self._h_sizes[self._rows][:, None])
        if self._held:
            rows.append((x[:, self._held] - self._held_values(values, count)) / self._x_scales[self._held])
            slopes.append(self._unit(self._held, count, len(columns)))
        if self._pinned:
            gap = x[:, self._pinned] - self._seed.point.states[self._pinned]
            rows.append(gap / self._x_scales[self._pinned])
            slopes.append(self._unit(self._pinned, count, len(columns)))
        if self._rest:
            R, sizes = self.R[self._rest], self._y_scales[self._rest]
            rows.append(stack.f @ R.T / sizes)
            slopes.append(R @ stack.f_z[:, :, columns] / sizes[:, None])
        return np.concatenate(rows, axis=1), np.concatenate(slopes, axis=1) * scales

    def _unit(self, places: list[int], count: int, width: int) -> FloatArray:
        unit = np.zeros((len(places), width))
        unit[np.arange(len(places)), places] = 1.0 / self._x_scales[places]
        return np.broadcast_to(unit, (count, *unit.shape))

    # -- the linear models -------------------------------------------------------------------------------

    def _linear(self, stack: Stack, x: FloatArray) -> tuple[dict[str, FloatArray], NDArray[np.bool_]]:
        """Return the linear models in the seed's coordinates, and whether these are regular."""
        n, R, count = self.n, self.R, len(x)
        p = len(R)
        H = stack.h_z[:, self._rows, :n]
        Hs = H * self._x_scales
        sizes = np.linalg.norm(Hs, axis=2, keepdims=True)
        square = np.empty((count, n, n))
        square[:, :p] = R * self._x_scales / self._y_scales[:, None]
        square[:, p:] = Hs / np.where(sizes > 0, sizes, 1.0)
        condition = np.linalg.cond(square) if n else np.ones(count)
        well = condition <= KEPT
        square[~well] = np.eye(n)
        T = np.linalg.inv(square)[:, :, :p] * self._x_scales[:, None] / self._y_scales
        f_x, f_u, c_x, c_u = stack.f_z[..., :n], stack.f_z[..., n:], stack.c_z[..., :n], stack.c_z[..., n:]
        A, B, C = R @ f_x @ T, R @ f_u, c_x @ T
        error = 8 * EPS * condition[:, None, None]
        parts = {
            "A": A,
            "B": B,
            "C": C,
            "D": c_u,
            "T": T,
            "f0": stack.f @ R.T,
            "y0": x @ R.T,
            "out0": stack.c,
            "error_A": error * (np.abs(R) @ np.abs(f_x) @ np.abs(T)),
            "error_B": error * np.abs(B),
            "error_C": error * (np.abs(c_x) @ np.abs(T)),
            "error_D": error * np.abs(c_u),
            "error_T": error * np.abs(T),
        }
        residual = np.abs(stack.h / self._h_sizes).max(axis=1, initial=0.0)
        parts["accuracy"] = np.column_stack(
            (
                *(_relative(parts[f"error_{m}"], parts[m]) for m in "ABCDT"),
                np.where(parts["f0"].any(axis=1), EPS, 0.0),
                residual,
                condition,
            )
        )
        finite = [np.isfinite(part).all(axis=tuple(range(1, part.ndim))) for part in parts.values()]
        return parts, np.logical_and.reduce([well, *finite])

    def speeds(self, solved: FloatArray) -> FloatArray:
        """Return how fast the fastest coordinate moves, in its size per second, shape (k,)."""
        return np.asarray(np.abs(solved / self._y_scales).max(axis=1, initial=0.0))

    def rests(self, f0: FloatArray) -> NDArray[np.bool_]:
        """Return where nothing moves."""
        return self.speeds(f0) <= EQUILIBRIUM


def _relative(error: FloatArray, matrix: FloatArray) -> FloatArray:
    worst, largest = error.max(axis=(1, 2), initial=0.0), np.abs(matrix).max(axis=(1, 2), initial=0.0)
    return np.asarray(np.where(largest > 0, worst / np.where(largest > 0, largest, 1.0), worst))
