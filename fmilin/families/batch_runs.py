"""Runs of points of a sweep solved all at once, as far as the model answers for many points, and linearized as a batch.

From the seed on, in blocks that grow: each is guessed on the line through the last two points and corrected by Newton's
method along the manifold. The equations are those of :mod:`fmilin.families.branch_equations`, reduced to the directions
in which they are regular at the seed, so that what they leave undetermined stays as it is guessed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fmilin.errors import FmilinError
from fmilin.families.batch_solvers import (
    FIRST_BLOCK,
    GROWTH,
    LARGEST_BLOCK,
    AssembledPoints,
    BatchSolver,
    BranchLine,
    BranchPoints,
    Columns,
    SolvedBatch,
)
from fmilin.families.continuation import ContinuationPoint, can_continue
from fmilin.families.grid import Grid
from fmilin.families.rows import Layout, OutcomeBlock, PointOutcome, Template
from fmilin.linear_model.builder import find_inputs
from fmilin.linearization.algorithm import linearize_batch
from fmilin.linearization.batch_derivatives import limit_batch
from fmilin.linearization.linearization_context import BatchResult
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.point_arrays import PointBatch
from fmilin.model.interface import Model, OperatingPoint
from fmilin.models.batch_graph import may_move_constraints
from fmilin.signals import FloatArray
from fmilin.trimming.trim_request import TrimRequest


@dataclass(frozen=True, eq=False)
class LinearizedBlock:
    """Points of a block with their linear models."""

    solved: SolvedBatch
    linearized: BatchResult
    count: int
    """Of the first points, all of which are solved, on the branch, and linearized without a doubt."""


class BatchRuns:
    """Runs of points of one plan, for a model with the requested outputs.

    ``parameters`` vary, and ``settings`` are states and inputs that are the same everywhere.
    """

    def __init__(
        self,
        model: Model,
        grid: Grid,
        parameters: Sequence[str],
        how: Request,
        settings: Mapping[str, float],
    ) -> None:
        self._model, self._grid, self._how, self._settings = model, grid, how, settings
        self._parameters = tuple(parameters)
        self._chosen_inputs = None if how.inputs is None else find_inputs(model.inputs, how.inputs)
        self._assembly: AssembledPoints | None = None
        self._is_differentiable: bool | None = None  # not asked yet

    def can_assemble(self, time: float) -> bool:
        """Whether points are assembled at once, each from the model's start."""
        return not self._may_move_constraints and self._get_assembly(time).possible

    @cached_property
    def _may_move_constraints(self) -> bool:
        """Whether the manifold may differ between points; else parameters do not matter to where points are."""
        return bool(self._parameters) and may_move_constraints(self._model, self._parameters)

    def solve(
        self, numbers: Sequence[int], seed: ContinuationPoint, request: TrimRequest | None, seed_model: Model
    ) -> Iterator[tuple[Sequence[PointOutcome], ContinuationPoint]]:
        """Yield outcomes of the first numbers of a run, block by block, as far as batches go; the seed behind each.

        The first starts from ``seed``, with the parameters of ``seed_model``; without a (checked) request points are
        assembled.
        """
        reference = Reference(
            self._model,
            self._how,
            seed.point,
            seed.linear,
            seed.selection,
            point_model=seed_model,
            varied=self._parameters,
        )
        if not reference.is_usable or not self._can_differentiate(reference):
            return
        solver = self._make_solver(reference, seed, request)
        if solver is not None:
            yield from self._solve_blocks(solver, reference, list(numbers), seed)

    def _can_differentiate(self, reference: Reference) -> bool:
        """Whether the model differentiates a batch of these points. It is asked once: it may have no such procedure."""
        if self._is_differentiable is None:
            try:
                self._is_differentiable = reference.is_differentiable_in_batches
            except (FmilinError, np.linalg.LinAlgError):
                return False  # at this seed
        return self._is_differentiable

    def _make_solver(
        self, reference: Reference, seed: ContinuationPoint, request: TrimRequest | None
    ) -> BatchSolver | None:
        """Return what finds the points that follow a seed; None where each has to be found alone."""
        if request is not None and not can_continue(self._model, request, seed):
            return None
        if request is None and self.can_assemble(seed.point.time):
            return self._get_assembly(seed.point.time)
        if request is None and seed.point.remarks:
            return None  # they say how the seed was assembled: each of the others may have to say its own
        fixed = {**self._settings, **self._grid.axes} if request is None else request.fixed
        positions = [self._model.states.positions[name] for name in fixed if self._model.states.has(name)]
        try:
            points = BranchPoints(self._model, reference, seed, request, positions)
            columns = {name: np.array([value]) for name, value in seed.values.items()}
            return points if points.are_solved_by_seed(columns) else None
        except (FmilinError, np.linalg.LinAlgError):
            return None

    def _get_assembly(self, time: float) -> AssembledPoints:
        if self._assembly is None or self._assembly.time != time:
            self._assembly = AssembledPoints(self._model, time, self._grid, self._settings, self._parameters)
        return self._assembly

    def _solve_blocks(
        self, solver: BatchSolver, reference: Reference, numbers: list[int], seed: ContinuationPoint
    ) -> Iterator[tuple[Sequence[PointOutcome], ContinuationPoint]]:
        template = Template.of(seed.linear, tuple(dict.fromkeys((*seed.linear.point.parameters, *self._parameters))))
        line, limit = BranchLine(seed), limit_batch(reference)
        while numbers:
            tried = numbers[: min(solver.block, limit)]
            columns = self._read_columns(tried)
            block = _solve_block(solver, reference, line, columns)
            if block is None:
                if solver.block == 1:
                    solver.block = FIRST_BLOCK
                    return
                solver.block = max(1, min(solver.block, len(tried)) // GROWTH)
                continue
            solved_numbers = tried[: block.count]
            line.add(columns, block.solved.points, block.count)
            outcomes, seed = self._describe(block, solved_numbers, template, seed)
            yield outcomes, seed
            numbers = numbers[block.count :]
            is_complete = block.count == len(tried)
            solver.block = min(GROWTH * solver.block, LARGEST_BLOCK) if is_complete else block.count

    def _describe(
        self, block: LinearizedBlock, numbers: Sequence[int], template: Template, seed: ContinuationPoint
    ) -> tuple[OutcomeBlock, ContinuationPoint]:
        """Return what came of the points of a block, and the last of them, from which the next ones start."""
        points, last = block.solved.points, block.count - 1
        diagnostics, models = block.linearized.diagnostics, block.linearized.models[: block.count]
        models.stored["parameters"] = self._list_parameters(template, points[: block.count], seed)
        method = (seed.linear.method.derivatives, seed.linear.method.coordinates)
        linear = Layout(template).extract(models.read_point(last), seed.linear.states, method, diagnostics[last])
        x, u = points.states[last].copy(), points.inputs[last].copy()
        point = OperatingPoint(seed.point.time, x, u, dict(linear.point.parameters))
        end = replace(seed, values=self._grid.values(numbers[-1]), point=point, linear=linear)
        if self._chosen_inputs is not None:  # the next points start from a linear model with all inputs
            models = models.with_inputs(self._chosen_inputs)
            template = replace(template, inputs=template.inputs.select(self._chosen_inputs))
        outcomes = OutcomeBlock(
            np.array(numbers, dtype=np.intp), models, template, seed.linear.states, method, diagnostics
        )
        return outcomes, end

    @staticmethod
    def _list_parameters(template: Template, points: PointBatch, seed: ContinuationPoint) -> FloatArray:
        """Return the parameters of points (k, np); those that do not vary are as at the seed."""
        values, seed_values = np.empty((len(points), len(template.parameters))), seed.linear.point.parameters
        for column, name in enumerate(template.parameters):
            values[:, column] = points.parameters.get(name, seed_values.get(name, np.nan))
        return values

    def _read_columns(self, numbers: list[int]) -> Columns:
        return {name: np.asarray(self._grid.column(name)).reshape(-1)[numbers] for name in self._grid.axes}


def _solve_block(
    solver: BatchSolver, reference: Reference, line: BranchLine, columns: Columns
) -> LinearizedBlock | None:
    """Return the points with these values and their linear models; None if the first of them has to be found alone."""
    x, u = line.guess(columns)
    solved = solver.solve(x, u, columns)
    if solved is None or not solved.is_solved.any():
        return None
    linearized = linearize_batch(reference, solved.points, solved.tangents)
    if linearized is None:
        return None
    is_connected = solver.find_connected(line.last, solved, columns)
    is_good = solved.is_solved & ~linearized.is_doubtful & is_connected
    count = len(is_good) if is_good.all() else int(np.argmin(is_good))
    return LinearizedBlock(solved, linearized, count) if count else None
