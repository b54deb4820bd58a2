"""Runs of points of a sweep solved all at once, as far as the model answers for many points, and linearized as a batch.

From the seed on, in blocks that grow: each is guessed on the line through the last two points and corrected by
Newton's iteration along the manifold. With coordinates y, x = Psi(y), and the free inputs the equations are

    x_held = given,    R f(x, u) = 0 where rates rest,

and every step goes along the tangent T and back to the manifold along the dependent states. They are reduced to the
subspaces in which they are regular at the seed, so that what they leave open stays as it is guessed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmilin.errors import FmilinError
from fmilin.families.batch_equations import FIRST_BLOCK, GROWTH, LARGEST_BLOCK, AssembledPoints, BatchEquations, Line
from fmilin.families.continuation import ContinuationPoint
from fmilin.families.grid import Grid
from fmilin.families.rows import Layout, Outcome, OutcomeBlock, Template
from fmilin.linear_model.builder import chosen_inputs
from fmilin.linearization.algorithm import linearize_batch
from fmilin.linearization.batch_derivatives import limit_batch
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.points import PointBatch
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.trimming.request import TrimRequest


class BatchRuns:
    """Runs of points of one plan, for a model with the wanted outputs.

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
        self._chosen = None if how.inputs is None else chosen_inputs(model.inputs, how.inputs)
        self._assembly: AssembledPoints | None = None

    def outcomes(
        self, numbers: Sequence[int], seed: ContinuationPoint, request: TrimRequest | None, own: Model
    ) -> Iterator[tuple[Sequence[Outcome], ContinuationPoint]]:
        """Yield outcomes of the first numbers of a run, block by block, as far as batches go; the seed behind each.

        The first starts from ``seed``, whose parameters ``own`` has; without a (checked) request points are assembled.
        """
        reference = Reference(
            self._model, self._how, seed.point, seed.linear, seed.selection, own=own, varied=self._parameters
        )
        if not self._fits(seed, request) or not reference.is_usable:
            return
        if request is None:
            if not self._parameters and (assembly := self._assemble_at(seed.point.time)).possible:
                yield from self._blocks(assembly, reference, list(numbers), seed)
                return
            if seed.point.remarks:  # how it was assembled: each of the others may have to say its own
                return
        try:
            held = {**self._settings, **self._grid.axes} if request is None else request.fixed
            positions = [self._model.states.positions[name] for name in held if self._model.states.has(name)]
            equations = BatchEquations(self._model, reference, seed, request, positions)
            if not equations.hold_at(self._given([], seed)):
                return
        except (FmilinError, np.linalg.LinAlgError):
            return
        yield from self._blocks(equations, reference, list(numbers), seed)

    def can_assemble(self, time: float) -> bool:
        """Whether points are assembled at once, each from the model's start."""
        return not self._parameters and self._assemble_at(time).possible

    def _assemble_at(self, time: float) -> AssembledPoints:
        if self._assembly is None or self._assembly.time != time:
            self._assembly = AssembledPoints(self._model, time, self._grid, self._settings)
        return self._assembly

    def _fits(self, seed: ContinuationPoint, request: TrimRequest | None) -> bool:
        if request is None:
            return True
        if seed.point.slope_changes is not None:  # a multiple root: each point says how far it may be
            return False
        free = all(self._model.inputs.has(name) for name in request.free)
        return free and request.checked(self._model).is_plain and set(request.steady) <= set(seed.linear.states.names)

    def _blocks(
        self,
        equations: BatchEquations | AssembledPoints,
        reference: Reference,
        numbers: list[int],
        seed: ContinuationPoint,
    ) -> Iterator[tuple[Sequence[Outcome], ContinuationPoint]]:
        parameters = tuple(dict.fromkeys((*seed.linear.point.parameters, *self._parameters)))
        line, template = Line(seed), Template.of(seed.linear, parameters)
        layout, shown = Layout(template), template
        if self._chosen is not None:
            shown = replace(template, inputs=template.inputs.select(self._chosen))
        largest = limit_batch(reference)
        while numbers:
            block = numbers[: min(equations.block, largest)]
            given = self._given(block, seed)
            solved, answer = equations.solved(*line.guess(given), given), None
            if solved is not None and solved.good.any():
                answer = linearize_batch(reference, solved.points, solved.tangents)
            good = 0
            if solved is not None and answer is not None:
                same = equations.connected(line.last, solved, given)
                good = int(np.argmin([*(solved.good & ~answer.is_doubtful & same), False]))
            if solved is None or answer is None or not good:
                if equations.block == 1:
                    equations.block = FIRST_BLOCK
                    return
                equations.block = max(1, min(equations.block, len(block)) // GROWTH)
                continue
            line.add(given, solved.points, good)
            method = ("exact", seed.linear.method.coordinates)
            models = answer.models[:good]
            models.stored["parameters"] = self._list_parameters(template, solved.points[:good], seed)
            last = models.read_point(good - 1)
            linear = layout.extract(last, seed.linear.states, method, answer.diagnostics[good - 1])
            if self._chosen is not None:
                models = models.with_inputs(self._chosen)
            numbered = np.array(block[:good], dtype=np.intp)
            outcomes = OutcomeBlock(numbered, models, shown, seed.linear.states, method, answer.diagnostics)
            x, u = solved.points.states[good - 1].copy(), solved.points.inputs[good - 1].copy()
            point = OperatingPoint(seed.point.time, x, u, dict(linear.point.parameters))
            seed = replace(seed, values=self._grid.values(block[good - 1]), point=point, linear=linear)
            yield outcomes, seed
            numbers = numbers[good:]
            equations.block = min(GROWTH * equations.block, LARGEST_BLOCK) if good == len(block) else good

    @staticmethod
    def _list_parameters(template: Template, points: PointBatch, seed: ContinuationPoint) -> FloatArray:
        """Return the parameters of points (k, np); those that do not vary are as at the seed."""
        own, parameters = seed.linear.point.parameters, np.empty((len(points), len(template.parameters)))
        for column, name in enumerate(template.parameters):
            parameters[:, column] = points.parameters.get(name, own.get(name, np.nan))
        return parameters

    def _given(self, numbers: list[int], seed: ContinuationPoint) -> dict[str, FloatArray]:
        """Return what varies at these points, by name; at the seed where there are none."""
        if not numbers:
            return {name: np.array([value]) for name, value in seed.values.items()}
        return {name: np.asarray(self._grid.column(name)).reshape(-1)[numbers] for name in self._grid.axes}
