"""Points of a block of a sweep, found at once: assembled from the model's start, or followed along a branch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fmilin.errors import FmilinError
from fmilin.families.branch_equations import BATCH_RULES, BatchDerivatives, BranchEquations, BranchSystem
from fmilin.families.continuation import ContinuationPoint
from fmilin.families.grid import Grid
from fmilin.linearization.reference import Reference
from fmilin.manifold.many_points import FollowedFromStart
from fmilin.manifold.point_arrays import PointBatch
from fmilin.model.interface import Model, TangentBatch
from fmilin.numerics.newton import BoolArray
from fmilin.signals import FloatArray
from fmilin.trimming.trim_request import TrimRequest

FIRST_BLOCK = 4
"""Points of the first block on a branch."""
LARGEST_BLOCK = 512
"""Points of a block."""
GROWTH = 4
"""Of a block, as long as all its points are good."""
MAX_RESIDUAL_AT_SEED = 1e-6
"""Of the equations at the seed, in sizes of their rows; a larger one belongs to a point that solves other equations."""
MAX_VOLUME_RATIO = 4.0
"""Of the determinants at neighbouring points of a branch."""

Columns = Mapping[str, FloatArray]
"""The values (k,) of what varies at k points, by name."""


@dataclass(frozen=True, eq=False)
class SolvedBatch:
    """Points of a block, what the model says there, and which of them are solved."""

    points: PointBatch
    tangents: TangentBatch | None
    is_solved: BoolArray  # (k,)
    volumes: FloatArray  # (k,), determinants of the equations


class BatchSolver(Protocol):
    """Finds the points of a block."""

    block: int
    """How many points the next block should have; changed by its caller."""

    def solve(self, x: FloatArray, u: FloatArray, columns: Columns) -> SolvedBatch | None:
        """Return the points with these values near a guess x (k, N), u (k, nu); None if the model is undefined."""

    def find_connected(self, last: tuple[FloatArray, ...], solved: SolvedBatch, columns: Columns) -> BoolArray:
        """Return which points are on the branch of the one before, the first on that of the ``last`` point, (k,).

        The last point is what varies, its states and its inputs.
        """


class AssembledPoints:
    """Points that are assembled: each from the model's start, as one alone is.

    ``parameters`` that vary move no constraint.
    """

    def __init__(
        self, model: Model, time: float, grid: Grid, settings: Mapping[str, float], parameters: Sequence[str] = ()
    ) -> None:
        states, inputs = model.states, model.inputs
        self._parameters = parameters
        self.time, self.block = time, LARGEST_BLOCK
        names = [*settings, *grid.axes]
        self._state_names = [name for name in names if states.has(name)]
        self._input_names = [name for name in names if inputs.has(name)]
        self._settings, self._model = settings, model
        self._fixed = [states.positions[name] for name in self._state_names]
        self._follow = FollowedFromStart(model, time, self._fixed)
        self.possible = self._follow.possible

    def find_connected(self, last: tuple[FloatArray, ...], solved: SolvedBatch, columns: Columns) -> BoolArray:
        """Return which points are on one branch: all, each followed from the start."""
        return np.ones(len(solved.points), dtype=bool)

    def solve(self, x: FloatArray, u: FloatArray, columns: Columns) -> SolvedBatch:
        """Return the points; the guess x, u stands where none is found, which is said."""
        count = len(x)
        inputs = np.tile(self._model.start.inputs, (count, 1))
        for name in self._input_names:
            inputs[:, self._model.inputs.positions[name]] = self._read_column(name, columns)
        targets = np.empty((count, len(self._fixed)))
        for k, name in enumerate(self._state_names):
            targets[:, k] = self._read_column(name, columns)
        states = self._follow(inputs, targets)
        is_found = np.isfinite(states).all(axis=1)
        is_solved = np.asarray(is_found & ~_are_beyond_a_turn(self._model, self._fixed, targets))
        values = {name: columns[name] for name in self._parameters}
        points = PointBatch(np.full(count, self.time), np.where(is_solved[:, None], states, x), inputs, values)
        return SolvedBatch(points, None, is_solved, np.ones(count))

    def _read_column(self, name: str, columns: Columns) -> FloatArray | float:
        return columns[name] if name in columns else self._settings[name]


def _are_beyond_a_turn(model: Model, fixed: Sequence[int], values: FloatArray) -> BoolArray:
    """Return where a fixed angle is more than a turn; a point alone warns that degrees may have been meant."""
    angles = [k for k, i in enumerate(fixed) if model.states[i].unit == "rad"]
    return np.asarray((np.abs(values[:, angles]) > 2 * np.pi).any(axis=1))


def find_pinned_states(
    model: Model, point: ContinuationPoint, coordinates: Sequence[int], fixed: Sequence[int]
) -> list[int]:
    """Return the coordinates of assembled points that stay at zero, besides the fixed ones.

    An assembled point is the one nearest to the start: what is zero there and at the seed is zero between them. Without
    them the equations would be fewer than the coordinates.
    """
    is_zero = (model.start.states == 0) & (point.point.states == 0)
    return [i for i in coordinates if i not in fixed and is_zero[i]]


class BranchPoints:
    """Points on the branch of a seed: trimmed ones, or without a request ones with these states ``fixed``."""

    def __init__(
        self,
        model: Model,
        reference: Reference,
        seed: ContinuationPoint,
        request: TrimRequest | None,
        fixed: list[int],
    ) -> None:
        self._model, self._reference, self._seed = model, reference, seed
        self._is_trimmed = request is not None
        self._fixed = fixed
        self._pinned: list[int] = []
        resting: list[int] = []
        free: list[int] = []
        if request is None:
            self._pinned = find_pinned_states(model, seed, reference.independent, fixed)
        else:
            resting = [i for i, name in enumerate(seed.linear.states.names) if name not in request.steady]
            free = [model.inputs.positions[name] for name in request.free]
        self.block = FIRST_BLOCK
        self._equations = BranchEquations(
            model,
            seed.point,
            seed.linear,
            R=np.eye(len(model.states))[reference.independent],
            fixed=[*fixed, *self._pinned],
            resting=resting,
            free=free,
            rules=BATCH_RULES,
        )

    def are_solved_by_seed(self, columns: Columns) -> bool:
        """Whether the seed, where these values vary, is a solution; of assembled points whether the only one nearby."""
        equations, states = self._equations, self._seed.point.states[None]
        is_determined = equations.rank == len(self._reference.independent) or not len(self._model.constraints)
        if not (self._is_trimmed or is_determined):
            return False
        targets = self._make_targets(1, columns)
        residuals = equations.compute_residuals(states, equations.rates_at_point[None], targets)
        return bool(np.abs(residuals).max(initial=0.0) <= MAX_RESIDUAL_AT_SEED)

    def find_connected(self, last: tuple[FloatArray, ...], solved: SolvedBatch, columns: Columns) -> BoolArray:
        """Return which points are on the branch of the one before, the first of them on that of the ``last`` point.

        Half way between two points on one branch the determinant of the equations keeps its sign, and between a few
        it hardly changes.
        """
        values = np.column_stack(list(columns.values()))
        x, u, varied = (
            _list_last_and_midpoints(before, at)
            for before, at in zip(
                (last[1], last[2], last[0]), (solved.points.states, solved.points.inputs, values), strict=True
            )
        )
        derivatives = self._make_derivatives(dict(zip(columns, varied.T, strict=True)), len(x))
        try:
            derivatives.evaluate(np.arange(len(x)), x, u)
        except (FmilinError, np.linalg.LinAlgError):
            return np.zeros(len(solved.is_solved), dtype=bool)
        with np.errstate(all="ignore"):
            volumes = derivatives.volumes
            before = np.concatenate((volumes[:1], solved.volumes[:-1]))
            ratio = solved.volumes / before
            keeps_sign = volumes[1:] * before > 0
            return np.asarray(keeps_sign & (ratio > 1 / MAX_VOLUME_RATIO) & (ratio < MAX_VOLUME_RATIO))

    def solve(self, x: FloatArray, u: FloatArray, columns: Columns) -> SolvedBatch | None:
        """Return the points nearest to a guess x (k, N), u (k, nu); None where the model does not answer there."""
        x, u = x.copy(), u.copy()
        for name, values in columns.items():
            if self._model.inputs.has(name):
                u[:, self._model.inputs.positions[name]] = values
        targets = self._make_targets(len(x), columns)
        x[:, self._fixed] = targets[:, : len(self._fixed)]
        derivatives = self._make_derivatives(columns, len(x))
        system = BranchSystem(self._equations, derivatives, u, targets)
        try:
            with np.errstate(all="ignore"):
                result = system.solve(x, u)
                volumes = derivatives.volumes
        except (FmilinError, np.linalg.LinAlgError):
            return None
        x, u = self._equations.split(result.z, u)
        is_solved = result.has_converged & derivatives.are_last(x, u)
        if not self._is_trimmed:
            is_solved = is_solved & ~_are_beyond_a_turn(self._model, self._fixed, x[:, self._fixed])
        points = PointBatch(np.full(len(x), self._seed.point.time), x, u, self._select_parameters(columns))
        return SolvedBatch(points, derivatives.tangents, is_solved, volumes)

    def _make_targets(self, count: int, columns: Columns) -> FloatArray:
        """Return the targets (k, fixed + pinned): the values of what varies, else those of the seed."""
        names = self._model.states.names
        targets = np.tile(self._seed.point.states[self._equations.fixed], (count, 1))
        for k, i in enumerate(self._fixed):
            if names[i] in columns:
                targets[:, k] = columns[names[i]]
        return targets

    def _make_derivatives(self, columns: Columns, count: int) -> BatchDerivatives:
        return BatchDerivatives(self._reference, self._equations, count, self._select_parameters(columns))

    def _select_parameters(self, columns: Columns) -> dict[str, FloatArray]:
        states, inputs = self._model.states, self._model.inputs
        return {name: values for name, values in columns.items() if not states.has(name) and not inputs.has(name)}


def _list_last_and_midpoints(last: FloatArray, values: FloatArray) -> FloatArray:
    """Return the last point's row, then the middle of each row (k, n) and the one before it."""
    rows = np.vstack((last, values))
    return np.vstack((rows[:1], (rows[1:] + rows[:-1]) / 2))


class BranchLine:
    """The last two points on a branch; the line through them guesses the next ones, linear in what varies."""

    def __init__(self, seed: ContinuationPoint) -> None:
        self._names = list(seed.values)
        self._ends = [(np.array(list(seed.values.values())), seed.point.states, seed.point.inputs)]

    def add(self, columns: Columns, points: PointBatch, count: int) -> None:
        """Take in the last two of so many points."""
        for k in range(max(0, count - 2), count):
            values = np.array([columns[name][k] for name in self._names])
            self._ends.append((values, points.states[k], points.inputs[k]))
        self._ends = self._ends[-2:]

    @property
    def last(self) -> tuple[FloatArray, ...]:
        """The varied quantities, states and inputs at the last point."""
        return self._ends[-1]

    def guess(self, columns: Columns) -> tuple[FloatArray, FloatArray]:
        """Return states (k, N) and inputs (k, nu) to begin with."""
        values = np.column_stack([columns[name] for name in self._names])
        first_values, first_states, first_inputs = self._ends[0]
        last_values, last_states, last_inputs = self._ends[-1]
        step = last_values - first_values
        parts = (values - last_values) @ step / max(float(step @ step), 1e-300)
        states = last_states + parts[:, None] * (last_states - first_states)
        inputs = last_inputs + parts[:, None] * (last_inputs - first_inputs)
        return states, inputs
