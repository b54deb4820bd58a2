"""What a block of a sweep solves for: loops to close, or the equations of an equilibrium, at many points at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError, NumericalError
from fmilin.families.continuation import NEWTON_RULES, ContinuationPoint, is_solved
from fmilin.families.grid import Grid
from fmilin.linearization.reference import Reference
from fmilin.manifold.many_points import FollowedFromStart
from fmilin.manifold.points import PointBatch
from fmilin.model.interface import Model, TangentBatch
from fmilin.numerics.newton import BoolArray, IntArray, follow_zeros
from fmilin.signals import FloatArray
from fmilin.trimming.request import TrimRequest

FIRST_BLOCK = 4
LARGEST_BLOCK = 512
GROWTH = 4  # of a block, as long as all its points are good
SOLVED = (
    1e-6  # residuals at the seed, as the procedure for one point left them, over the largest entry of the equations
)
SHORT = 1e-13  # a row of the equations, beside the longest one, that is rounding
VOLUME = 4.0  # how much the determinant of the equations may change from one point to the next on a branch
REGULAR = 1e-8  # singular values of the equations at the seed below this part of the largest are zero


@dataclass(frozen=True, eq=False)
class Solved:
    """Points of a block, what the model says there, and which of them are solved."""

    points: PointBatch
    tangents: TangentBatch | None
    good: NDArray[np.bool_]
    volumes: FloatArray  # (k,), determinants of the equations


class AssembledPoints:
    """Points that are assembled: each from the model's start, as one alone is."""

    def __init__(self, model: Model, time: float, grid: Grid, settings: Mapping[str, float]) -> None:
        states, inputs = model.states, model.inputs
        self.time, self.block = time, LARGEST_BLOCK
        self._names = [name for name in (*settings, *grid.axes) if states.has(name)]
        self._settings, self._model = settings, model
        self._driven = [name for name in (*settings, *grid.axes) if inputs.has(name)]
        self._held = [states.positions[name] for name in self._names]
        self._follow = FollowedFromStart(model, time, self._held)
        self.possible = self._follow.possible

    def connected(self, _last: object, solved: Solved, _given: object) -> NDArray[np.bool_]:
        """Return which points are on one branch: all, each followed from the start."""
        return np.ones(len(solved.points), dtype=bool)

    def solved(self, x: FloatArray, u: FloatArray, given: Mapping[str, FloatArray]) -> Solved:
        """Return the points; the guess x, u serves where none is found, which is said."""
        count = len(x)
        u = np.tile(self._model.start.inputs, (count, 1))
        for name in self._driven:
            u[:, self._model.inputs.positions[name]] = given[name] if name in given else self._settings[name]
        columns = [given[n] if n in given else np.full(count, self._settings[n]) for n in self._names]
        targets = np.stack(columns, axis=1) if columns else np.zeros((count, 0))
        states = self._follow(u, targets)
        good = np.asarray(np.isfinite(states).all(axis=1) & ~_turned(self._model, self._held, targets))
        points = PointBatch(np.full(count, self.time), np.where(good[:, None], states, x), u)
        return Solved(points, None, good, np.ones(count))


def _turned(model: Model, held: Sequence[int], values: FloatArray) -> NDArray[np.bool_]:
    """Say where a held angle is more than a turn, which is remarked on: it may have been meant in degrees."""
    angles = [k for k, i in enumerate(held) if model.states[i].unit == "rad"]
    return np.asarray((np.abs(values[:, angles]) > 2 * np.pi).any(axis=1))


class BatchEquations:
    """The equations of a point in coordinates y and free inputs, by the seed's procedure; ``held`` states are given."""

    def __init__(
        self,
        model: Model,
        reference: Reference,
        seed: ContinuationPoint,
        request: TrimRequest | None,
        held: list[int],
    ) -> None:
        self._model, self._reference, self._seed = model, reference, seed
        self._kept, self._n = reference.kept, len(model.states)
        self._x_scales = model.states.scales(seed.point.states)
        self._y_scales = self._x_scales[self._kept]
        self._held, self._names = held, [model.states.names[i] for i in held]
        names = seed.linear.states.names
        self._rest = [i for i, name in enumerate(names) if request is not None and name not in request.steady]
        self._free = [model.inputs.positions[name] for name in request.free] if request is not None else []
        self._u_scales = model.inputs.scales(seed.point.inputs)[self._free]
        # An assembled point is the one nearest to the start: what is zero there and at the seed stays zero.
        zero = (model.start.states == 0) & (seed.point.states == 0)
        self._pinned = [] if request is not None else [i for i in self._kept if i not in held and zero[i]]
        self._trimmed = request is not None
        self._U = self._V = np.zeros((0, 0))
        self._weights: FloatArray | float = 1.0  # of the rows
        self._size, self.block = 1.0, FIRST_BLOCK
        #: number of rows that vanish at a solution; steps back to the manifold follow them
        self.rows = len(held) + len(self._pinned) + len(self._rest)
        self.sizes = np.concatenate((self._x_scales, self._u_scales))  # of the unknowns: states, then free inputs

    def hold_at(self, given: Mapping[str, FloatArray]) -> bool:
        """Whether the seed solves them, and they determine what is to be determined; where they are regular is kept."""
        here = self._make_points(self._seed.point.states[None], self._seed.point.inputs[None], given)
        residual, J = self._residual(here, self._reference.differentiate(here), given)
        # A slow state beside a fast one has short rows: not because it is free.
        lengths = np.linalg.norm(J[0], axis=1)
        self._weights = np.where(lengths > SHORT * lengths.max(initial=0.0), 1.0 / np.fmax(lengths, 1e-300), 1.0)
        residual, J = residual * self._weights, J * self._weights[:, None]
        U, sigma, Vt = np.linalg.svd(J[0])
        rank = int(np.count_nonzero(sigma > REGULAR * sigma.max(initial=0.0)))
        self._U, self._V = U[:, :rank], Vt[:rank].T
        self._size = max(float(np.abs(J[0]).max(initial=0.0)), 1.0)
        whole = self._trimmed or rank == len(self._kept) or not len(self._model.constraints)
        return whole and bool(np.abs(residual).max(initial=0.0) <= SOLVED * self._size)

    def connected(
        self, last: tuple[FloatArray, ...], solved: Solved, given: Mapping[str, FloatArray]
    ) -> NDArray[np.bool_]:
        """Return which points are on the branch of the one before, the first of them on that of the ``last`` point.

        Half way between two points on one branch the determinant of the equations keeps its sign, and between a few
        it hardly changes.
        """
        ends = solved.points.states, solved.points.inputs, np.column_stack(list(given.values()))
        every = (np.vstack((before, at)) for before, at in zip((*last[1:], last[0]), ends, strict=True))
        # The last point, and all that lie half way.
        x, u, varied = (np.vstack((a[:1], (a[1:] + a[:-1]) / 2)) for a in every)
        named = dict(zip(given, varied.T, strict=True))
        stack = self._make_points(x, u, named)
        try:
            J = self._residual(stack, self._reference.differentiate(stack), named)[1]
        except (FmilinError, np.linalg.LinAlgError):
            return np.zeros(len(solved.good), dtype=bool)
        with np.errstate(all="ignore"):
            middle = np.linalg.det(self._U.T @ J @ self._V)
            before = np.concatenate((middle[:1], solved.volumes[:-1]))
            ratio = solved.volumes / before
            return np.asarray((middle[1:] * before > 0) & (ratio > 1 / VOLUME) & (ratio < VOLUME))

    def solved(self, x: FloatArray, u: FloatArray, given: Mapping[str, FloatArray]) -> Solved | None:
        """Return the points nearest to a guess x (k, N), u (k, nu); None where the model does not answer there."""
        x, u = x.copy(), u.copy()
        for name, values in given.items():
            if self._model.inputs.has(name):
                u[:, self._model.inputs.positions[name]] = values
        for i, name in zip(self._held, self._names, strict=True):
            x[:, i] = given.get(name, x[:, i])
        system = BatchSystem(self, u, given)
        try:
            with np.errstate(all="ignore"):
                result = follow_zeros(system, self.join(x, u), NEWTON_RULES)
                points, tangents, J = system.read_last(result.z)
                volumes = np.linalg.det(self._U.T @ J @ self._V)
        except (FmilinError, np.linalg.LinAlgError):
            return None
        good = result.has_converged & system.is_last(result.z)
        if not self._trimmed:
            good = good & ~_turned(self._model, self._held, points.states[:, self._held])
        return Solved(points, tangents, np.asarray(good), volumes)

    def join(self, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the unknowns (k, n) of states (k, N) and inputs (k, nu)."""
        return np.hstack((x, u[:, self._free]))

    def split(self, z: FloatArray, inputs: FloatArray, given: Mapping[str, FloatArray]) -> PointBatch:
        """Return the points of unknowns z (k, n), with the ``inputs`` (k, nu) that are not free."""
        u = inputs.copy()
        u[:, self._free] = z[:, self._n :]
        return self._make_points(z[:, : self._n], u, given)

    def evaluate(
        self, points: PointBatch, given: Mapping[str, FloatArray]
    ) -> tuple[FloatArray, TangentBatch, FloatArray]:
        """Return residuals and steps back to the manifold, in sizes, what the model says, and the Jacobians."""
        tangents = self._reference.differentiate(points)
        residual, J = self._residual(points, tangents, given)
        back = self._reference.back(tangents) / self._x_scales[self._reference.dependent]
        return np.hstack((residual / self._size, back)), tangents, J

    def correct(self, T: FloatArray, J: FloatArray, r: FloatArray) -> FloatArray:
        """Return steps (k, n) along the tangents T (k, N, P), and back along the dependent states."""
        dependent = self._reference.dependent
        regular = self._U.T @ J @ self._V  # of positive determinant at the seed
        right = (r[:, : self.rows] * self._size) @ self._U
        dz = np.linalg.solve(regular, right[..., None])[..., 0] @ self._V.T
        p = len(self._kept)
        dx = -(T @ (dz[:, :p] * self._y_scales)[..., None])[..., 0]
        dx[:, dependent] -= r[:, self.rows :] * self._x_scales[dependent]
        return np.hstack((dx, -dz[:, p:] * self._u_scales))

    def _make_points(self, x: FloatArray, u: FloatArray, given: Mapping[str, FloatArray]) -> PointBatch:
        states, inputs = self._model.states, self._model.inputs
        varied = {name: values for name, values in given.items() if not states.has(name) and not inputs.has(name)}
        return PointBatch(np.full(len(x), self._seed.point.time), x, u, varied)

    def _residual(
        self, points: PointBatch, tangents: TangentBatch, given: Mapping[str, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return scaled residuals (k, m) and their slopes along y and the free inputs (k, m, P + free)."""
        x, p, count = points.states, len(self._kept), len(points)
        start = self._seed.point.states
        fixed = [*self._held, *self._pinned]
        wanted = np.tile(start[fixed], (count, 1))
        for column, name in enumerate(self._names):
            wanted[:, column] = given.get(name, wanted[:, column])
        rows = [(x[:, fixed] - wanted) / self._x_scales[fixed]]
        still = np.zeros((count, len(fixed), len(self._free)))
        slopes = [np.concatenate((tangents.T[:, fixed] * self._y_scales / self._x_scales[fixed, None], still), axis=2)]
        if self._rest:
            kept, sizes = [self._kept[i] for i in self._rest], self._y_scales[self._rest]
            rows.append(tangents.rates[:, kept] / sizes)
            J = tangents.derivatives[:, kept]
            A, B = J[..., :p] * self._y_scales, J[..., [p + j for j in self._free]] * self._u_scales
            slopes.append(np.concatenate((A, B), axis=2) / sizes[:, None])
        weights = np.asarray(self._weights)
        return np.concatenate(rows, axis=1) * weights, np.concatenate(slopes, axis=1) * weights[..., None]


class BatchSystem:
    """The equations at k points, for Newton's method without damping.

    The unknowns are the states and the free inputs; the residuals are those of the equations, and the steps of the
    dependent states back to the manifold. Both and their derivatives come from one evaluation of the model.
    """

    def __init__(self, equations: BatchEquations, inputs: FloatArray, given: Mapping[str, FloatArray]) -> None:
        self._equations, self._inputs, self._given = equations, inputs, given
        count, width = len(inputs), len(equations.sizes)
        self.low, self.high = np.full(width, -np.inf), np.full(width, np.inf)
        self._z = np.full((count, width), np.nan)
        self._tangents: TangentBatch | None = None
        self._J = np.zeros((count, 0, 0))

    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the residuals and the way back to the manifold, in sizes."""
        given = {name: values[points] for name, values in self._given.items()}
        r, tangents, J = self._equations.evaluate(self._equations.split(z, self._inputs[points], given), given)
        if self._tangents is None or len(points) == len(self._z):
            self._tangents, self._J = tangents, J
        else:
            self._tangents = self._tangents.corrected(points, tangents)
            self._J[points] = J
        self._z[points] = z
        return r

    def differentiate(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return where the derivatives, which came with the residuals, are finite."""
        return np.asarray(np.isfinite(self._J[points]).all(axis=(1, 2)))

    def correct(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return steps along the tangent, and back along the dependent states."""
        if self._tangents is None:
            raise NumericalError("The equations are to be evaluated before they are solved.")
        T = self._tangents.T if len(points) == len(self._z) else self._tangents.T[points]
        J = self._J if len(points) == len(self._z) else self._J[points]
        return self._equations.correct(T, J, r)

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return the largest component of each step, in sizes of states and inputs."""
        return np.asarray(np.max(np.abs(step) / self._equations.sizes, axis=1, initial=0.0))

    def is_zero(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return where residuals, distance from the manifold and the step that would follow are small."""
        return is_solved(self, points, r, self._equations.rows)

    def is_last(self, z: FloatArray) -> BoolArray:
        """Return which points (k, n) are those of the last evaluation, (k,)."""
        return np.asarray((self._z == z).all(axis=1))

    def read_last(self, z: FloatArray) -> tuple[PointBatch, TangentBatch, FloatArray]:
        """Return the points z (k, n), and what the model says there with the Jacobians (k, m, n)."""
        if self._tangents is None:
            raise NumericalError("The equations are to be evaluated before they are read.")
        return self._equations.split(z, self._inputs, self._given), self._tangents, self._J


class Line:
    """The last points on the way, through which the next ones are guessed: linear in what varies."""

    def __init__(self, seed: ContinuationPoint) -> None:
        self._names = list(seed.values)
        self._at = [(np.array(list(seed.values.values())), seed.point.states, seed.point.inputs)]

    def add(self, given: Mapping[str, FloatArray], points: PointBatch, count: int) -> None:
        """Take in the last two of so many points."""
        for k in range(max(0, count - 2), count):
            values = np.array([given[name][k] for name in self._names])
            self._at.append((values, points.states[k], points.inputs[k]))
        self._at = self._at[-2:]

    @property
    def last(self) -> tuple[FloatArray, ...]:
        """What varies, states and inputs at the last point."""
        return self._at[-1]

    def guess(self, given: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Return states (k, N) and inputs (k, nu) to begin with."""
        wanted = np.column_stack([given[name] for name in self._names])
        s1, x1, u1 = self._at[-1]
        s0, x0, u0 = self._at[0]
        step = s1 - s0
        far = (wanted - s1) @ step / max(float(step @ step), 1e-300)
        return x1 + far[:, None] * (x1 - x0), u1 + far[:, None] * (u1 - u0)
