"""The points of a sweep in order: those that can be solved at once in batches, others one by one; what came of each."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from fmilin.composition.loop_transfer import linearize_loop_transfer, require_wires
from fmilin.errors import FmilinError, ModelCrashError, NumericalError
from fmilin.families.batch_runs import BatchRuns
from fmilin.families.branch_follower import BranchFollower, SweptPoint
from fmilin.families.continuation import ContinuationPoint
from fmilin.families.family_builder import build_outcome
from fmilin.families.folds import FoldError
from fmilin.families.open_models import OpenModels
from fmilin.families.rows import PointOutcome, Template
from fmilin.families.sweep_plan import SweepPlan
from fmilin.linear_model.builder import find_inputs, with_inputs
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import add_parameter_derivatives
from fmilin.linearization.suitability import require_suitable_model
from fmilin.model.capabilities import HasSamples, remove_delays
from fmilin.model.interface import Model
from fmilin.trimming.sensitivity import make_parameters_adjustable

MIN_BATCH_POINTS = 3
"""Of a run, that are left: fewer are computed one by one."""


class PointSolver:
    """Computes points of a plan; it holds the open models, which begin again after a crash of theirs."""

    def __init__(self, plan: SweepPlan) -> None:
        self.plan = plan
        self._models = OpenModels(plan)
        self._follower = BranchFollower(plan, self._models)

    @property
    def base(self) -> Model:
        """The model with the parameters of its source."""
        return self._models.base

    @cached_property
    def _batch_runs(self) -> BatchRuns:
        """The solver for runs of points together."""
        plan = self.plan
        parameters = [name for name in plan.grid.axes if self._models.find_kind(name) == "parameter"]
        return BatchRuns(self.base, plan.grid, parameters, plan.how, plan.point.collect_values(self.base))

    @property
    def assembles_together(self) -> bool:
        """Whether many points are assembled at once, each of them from the model's start and not from another one."""
        plan, time = self.plan, self.plan.point.time
        if plan.point.trim is not None or plan.loop_at or not self.base.batches or isinstance(self.base, HasSamples):
            return False
        return self._batch_runs.can_assemble(self.base.start.time if time is None else time)

    def check(self) -> None:
        """Raise an error for what cannot be computed at any point, before the first one."""
        plan, base, values = self.plan, self.base, self.plan.grid.values(0)
        require_wires(base, plan.loop_at)
        require_suitable_model(base, plan.how)
        for name, value in values.items():
            for signals in (base.states, base.inputs):
                if name in signals.positions_of_negatives:
                    signals.index_of(name)  # raises: an axis has the sign of its state or input
            if self._models.find_kind(name) == "parameter":
                self._models.require_parameter(name, value)
        if plan.how.inputs is not None:
            find_inputs(base.inputs, plan.how.inputs)
        if plan.how.parameters:
            make_parameters_adjustable(base, base.start, plan.how.parameters)
        for name in plan.how.independent or ():
            if "=" not in name and base.states.find_signed(name) is None:
                base.states.index_of(name, "a state of the model")
        if plan.point.trim is not None:
            request, guess = self._follower.request_trim(values)
            model = self._models.find(values)
            request.check(remove_delays(model)).check_guess(remove_delays(model), guess)

    def close(self) -> None:
        """Close the models that were opened here."""
        self._models.close()

    def solve(
        self, numbers: Iterable[int], predecessor: ContinuationPoint | None
    ) -> Iterator[tuple[Sequence[PointOutcome], ContinuationPoint | None]]:
        """Yield what comes of the points in order, and the last one that was solved: the next starts from it."""
        self._follower.leave_fold()
        remaining = deque(numbers)
        one_by_one = False
        while remaining:
            if predecessor is not None and len(remaining) >= MIN_BATCH_POINTS and not one_by_one:
                try:
                    for outcomes, last in self._solve_in_batches(tuple(remaining), predecessor):
                        predecessor = last
                        for _ in range(len(outcomes)):
                            remaining.popleft()
                        yield outcomes, predecessor
                except ModelCrashError:  # one by one it will show at which point
                    one_by_one = True
            if remaining:
                outcome, point = self._solve_alone(remaining.popleft(), predecessor)
                if point is not None:
                    predecessor = point
                    self._follower.leave_fold()
                yield [outcome], predecessor

    def _solve_in_batches(
        self, numbers: tuple[int, ...], predecessor: ContinuationPoint
    ) -> Iterator[tuple[Sequence[PointOutcome], ContinuationPoint]]:
        """Yield the first of these points from batches, none where these cannot be used."""
        if self._follower.is_at_fold or self.plan.loop_at or isinstance(self.base, HasSamples):
            return
        request = None
        if self.plan.point.trim is not None:
            request = self._follower.request_trim(self.plan.grid.values(numbers[0]))[0].check(self.base)
        model = self._models.find(predecessor.values)
        yield from self._batch_runs.solve(numbers, predecessor, request, model)

    def _solve_alone(
        self, number: int, predecessor: ContinuationPoint | None
    ) -> tuple[PointOutcome, ContinuationPoint | None]:
        """Return what comes of a point, and the point; None if it failed."""
        values = self.plan.grid.values(number)
        try:
            swept = self._follower.find(values, predecessor)
            linear = self._complete(values, swept)
        except FmilinError as error:
            kind = "fold" if isinstance(error, FoldError) else type(error).__name__
            return PointOutcome(number, " ".join(str(error).split()), kind=kind), None
        parameters = [name for name in values if self._models.find_kind(name) == "parameter"]
        template = Template.of(linear, tuple(dict.fromkeys((*linear.point.parameters, *parameters))))
        return build_outcome(number, linear, template, described=self.plan.how.descriptor), swept.point

    def _complete(self, values: Mapping[str, float], swept: SweptPoint) -> LinearModel:
        """Return the linear model that is requested at a point: of a loop, with some inputs, with derivatives."""
        plan, how, point, linear = self.plan, self.plan.how, swept.point.point, swept.point.linear
        if plan.loop_at:
            model = self._models.find(values)
            linear = linearize_loop_transfer(model, plan.loop_at, point, how, continuous=plan.continuous)
        if how.inputs is not None:
            linear = with_inputs(linear, find_inputs(linear.inputs, how.inputs))
        if how.parameters and not plan.loop_at:
            linear = add_parameter_derivatives(self._models.find(values), point, linear, how)
        if not all(np.isfinite(matrix).all() for matrix in (linear.A, linear.B, linear.C, linear.D, linear.T)):
            raise NumericalError("The linear model has entries that are not finite numbers.")
        return replace(linear, warnings=(*linear.warnings, *swept.warnings))
