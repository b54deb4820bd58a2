"""One point of a sweep after the other: open the model once, assemble or trim, linearize, say what came of it."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np

from fmilin.composition.loop_transfer import loop_transfer_as, require_wires
from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError, UnknownNameError
from fmilin.families.batch_runs import BatchRuns
from fmilin.families.continuation import (
    Balance,
    ContinuationPoint,
    Fold,
    FoldError,
    Turning,
    correct_by_chord,
    fold_between,
)
from fmilin.families.family_builder import outcome_of
from fmilin.families.plan import Plan
from fmilin.families.rows import Outcome, Template
from fmilin.linear_model.builder import chosen_inputs, with_inputs
from fmilin.linearization.linearize import add_parameter_derivatives, linearize_next
from fmilin.linearization.suitability import require_suitable_model
from fmilin.loading.load import load_as
from fmilin.manifold.operating_points import model_at
from fmilin.manifold.selection import Selection
from fmilin.model.capabilities import read_sparse_equations
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.signals import FloatArray
from fmilin.trimming.algorithm import search
from fmilin.trimming.procedure import point_of
from fmilin.trimming.request import PointRequest, TrimRequest
from fmilin.trimming.sensitivity import make_parameters_adjustable

OPEN_MODELS = 4  # models with other parameters that stay open
MIN_BATCH_POINTS = 3  # points of a run that are left: fewer are computed one by one
LOST = "From the point before, this one could not be followed: it was searched for, and may lie on another branch."
HALVINGS = 6  # how often the step from one point to the next is halved


Reached = tuple[ContinuationPoint, tuple[Remark, ...]]  # with what is to be said of how it was


class Solver:
    """What computes points: it holds the open model."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._models: OrderedDict[tuple[tuple[str, float], ...], Model] = OrderedDict()
        self._own = not isinstance(plan.source, Model)
        self.base = self._shown(self._loaded({}))
        self._barrier: Fold | None = None  # a fold that the points of this run lie behind
        self._turning: tuple[Fold, Turning] | None = None  # its branch around it

    @cached_property
    def _batch_runs(self) -> BatchRuns:
        """What solves runs of points at once."""
        plan = self.plan
        varied = [n for n in plan.grid.axes if self._kind(n) == "parameter"]
        return BatchRuns(self.base, plan.grid, varied, plan.how, plan.point.values_of(self.base))

    @property
    def assembles_together(self) -> bool:
        """Whether many points are assembled at once, each of them from the model's start and not from another one."""
        plan, time = self.plan, self.plan.point.time
        if plan.point.trim is not None or plan.loop_at or not self.base.batches:
            return False
        return self._batch_runs.can_assemble(self.base.start.time if time is None else time)

    def check(self) -> None:
        """Refuse what can be seen to be wrong before the first point."""
        plan, first = self.plan, self.plan.grid.values(0)
        require_wires(self.base, plan.loop_at)
        require_suitable_model(self.base, plan.how)
        for name in first:
            for signals in (self.base.states, self.base.inputs):
                if name in signals.positions_of_negatives:
                    signals.index_of(name)  # raises: an axis has the sign of its state or input
            if self._kind(name) == "parameter":
                self._refuse_unless_parameter(name, first[name])
        if plan.how.inputs is not None:
            chosen_inputs(self.base.inputs, plan.how.inputs)
        if plan.how.parameters:
            make_parameters_adjustable(self.base, self.base.start, plan.how.parameters)
        for name in plan.how.independent or ():
            if "=" not in name and self.base.states.find_signed(name) is None:
                self.base.states.index_of(name, "a state of the model")
        if plan.point.trim is not None:
            request, guess = self._request(first)
            request.checked(self._model(first)).checked_guess(self._model(first), guess)

    def close(self) -> None:
        """Give back the models that were opened here."""
        for model in self._models.values():
            model.close()
        if self._own:
            self.base.close()

    def solve(
        self, numbers: Iterable[int], predecessor: ContinuationPoint | None
    ) -> Iterator[tuple[Sequence[Outcome], ContinuationPoint | None]]:
        """Yield what comes of the points in order, and the last one that was solved: the next starts from it."""
        self._barrier = None
        left = deque(numbers)
        while left:
            if predecessor is not None and len(left) >= MIN_BATCH_POINTS:
                for outcomes, last in self._solve_in_batches(tuple(left), predecessor):
                    predecessor = last
                    for _ in range(len(outcomes)):
                        left.popleft()
                    yield outcomes, predecessor
            if left:
                outcome, reached = self._point(left.popleft(), predecessor)
                if reached is not None:
                    predecessor, self._barrier = reached, None
                yield [outcome], predecessor

    def _solve_in_batches(
        self, numbers: tuple[int, ...], predecessor: ContinuationPoint
    ) -> Iterator[tuple[Sequence[Outcome], ContinuationPoint]]:
        """Yield the first of these points from batches, none where these cannot be used."""
        if self._barrier is not None or self.plan.loop_at:
            return
        request = None
        if self.plan.point.trim is not None:
            request = self._request(self.plan.grid.values(numbers[0]))[0].checked(self.base)
        yield from self._batch_runs.outcomes(numbers, predecessor, request, self._model(predecessor.values))

    # -- one point ---------------------------------------------------------------------------------------

    def _point(self, number: int, predecessor: ContinuationPoint | None) -> tuple[Outcome, ContinuationPoint | None]:
        values = self.plan.grid.values(number)
        try:
            solution, remarks = self._reached(values, predecessor)
            linear = solution.linear
            how = self.plan.how
            if self.plan.loop_at:
                linear = loop_transfer_as(
                    self._model(values), self.plan.loop_at, solution.point, how, continuous=self.plan.continuous
                )
            if how.inputs is not None:
                linear = with_inputs(linear, chosen_inputs(linear.inputs, how.inputs))
            if how.parameters and not self.plan.loop_at:
                linear = add_parameter_derivatives(self._model(values), solution.point, linear, how)
            linear = replace(linear, warnings=(*linear.warnings, *remarks))
            if not all(np.isfinite(m).all() for m in (linear.A, linear.B, linear.C, linear.D, linear.T)):
                raise NumericalError("The linear model has entries that are no finite numbers.")
        except FmilinError as error:
            kind = "fold" if isinstance(error, FoldError) else type(error).__name__
            return Outcome(number, " ".join(str(error).split()), kind=kind), None
        names = dict.fromkeys((*linear.point.parameters, *(n for n in values if self._kind(n) == "parameter")))
        template = Template.of(linear, tuple(names))
        return outcome_of(number, linear, template, described=self.plan.how.descriptor), solution

    def _reached(self, values: Mapping[str, float], predecessor: ContinuationPoint | None) -> Reached:
        if self.plan.point.trim is None:
            model = self._model(values)
            point = point_of(model, self._point_request(values))
            return self._linearized(model, point, values, predecessor), ()
        if predecessor is None:
            predecessor = self._begun(values)
            solution = None if predecessor is None else self._continued(values, predecessor, HALVINGS)
            try:
                return solution or self._searched(values, None), ()
            except FmilinError:
                if predecessor is None:
                    raise
        fold = self._barrier
        if fold is None:
            solution = self._continued(values, predecessor, HALVINGS)
            if solution is not None:
                return solution, ()
            ends = fold_between(predecessor, values, lambda v, s: self._continued(v, s, 1), self._volume)
            if not isinstance(ends, Fold):
                solution = self._continued(values, ends, HALVINGS)
                return solution or self._searched(values, None), () if solution else (Remark("branch", LOST),)
            fold = self._barrier = ends
        sizes = self.base.states.scales(fold.last.point.states)
        solution, around = self._beyond(values, fold)
        return solution, (Remark("branch", fold.to(solution, sizes, around=around)),)

    def _beyond(self, values: Mapping[str, float], fold: Fold) -> tuple[ContinuationPoint, bool]:
        """Return a point beyond the fold, searched from the plan's guess or around it, and whether it was that way."""
        try:
            return self._searched(values, None), False
        except FmilinError as error:
            for start in self._around(values, fold):
                with suppress(FmilinError):
                    return self._searched(values, start), True
            raise FoldError(fold.sentence, str(error)) from None

    def _around(self, values: Mapping[str, float], fold: Fold) -> Iterator[ContinuationPoint]:
        """Yield points near those with these values on the branch around the fold; none unless one value varies."""
        varied = [n for n, value in values.items() if value != fold.before.values[n]]
        if len(varied) != 1:
            return
        if self._turning is None or self._turning[0] is not fold:
            self._turning = fold, self._turning_at(fold, values, varied[0])
        states = len(self.base.states)
        for z in self._turning[1].crossings(values[varied[0]]):
            point = replace(fold.last.point, states=z[:states], inputs=z[states:-1])
            yield replace(fold.last, point=point)

    def _turning_at(self, fold: Fold, values: Mapping[str, float], name: str) -> Turning:
        """Return the branch around a fold along which ``name`` is solved for."""
        others = {n: v for n, v in values.items() if n != name}
        model, kind = self._model(others), self._kind(name)
        request = self._request(others)[0].checked(model)
        states, inputs = model.states.names, model.inputs.names
        free = request.free if kind == "state" else (*request.free, name)

        def vector(point: OperatingPoint, value: float) -> FloatArray:
            return np.array([*point.states, *point.inputs, value])

        def led(leader: int, guess: FloatArray) -> FloatArray:
            fixed = {**request.fixed, states[leader]: float(guess[leader])}
            every = dict(zip((*states, *inputs, name), guess.tolist(), strict=True))
            start = {n: v for n, v in every.items() if n not in fixed and (n in states or n in free)}
            point = search(model, replace(request, fixed=fixed, free=free), start, anywhere=True, explain=False)
            z = vector(point, 0.0)
            z[-1] = point.parameters[name] if kind == "parameter" else z[(*states, *inputs).index(name)]
            return z

        leaders = [i for i, state in enumerate(states) if state not in request.fixed and state != name]
        passed = [vector(end.point, end.values[name]) for end in (fold.before, fold.last)]
        return Turning(passed, model.states.scales(fold.last.point.states), leaders, led)

    def _begun(self, values: Mapping[str, float]) -> ContinuationPoint | None:
        """Return the point with what varies as the model's own start has it; None where that is none, or no other.

        A search that begins far from the first point may assemble the mechanism in another configuration.
        """
        if self.plan.point.guess:
            return None
        start = self.base.start
        begin: dict[str, float] = dict(zip(self.base.states.names, start.states.tolist(), strict=True))
        begin |= zip(self.base.inputs.names, start.inputs.tolist(), strict=True)
        begin |= {**self.base.parameters, **self.plan.point.settings}
        if any(name not in begin for name in values):
            return None
        begin = {name: float(begin[name]) for name in values}
        if begin == dict(values):
            return None
        with suppress(FmilinError):
            return self._searched(begin, None)
        return None

    def _continued(
        self, values: Mapping[str, float], predecessor: ContinuationPoint, halvings: int
    ) -> ContinuationPoint | None:
        """Return the point at ``values`` on the branch of ``predecessor``, in halved steps where need be."""
        solution = self._corrected(values, predecessor)
        if solution is not None or halvings == 0:
            return solution
        middle = {name: (predecessor.values[name] + value) / 2 for name, value in values.items()}
        between = self._continued(middle, predecessor, halvings - 1)
        return None if between is None else self._continued(values, between, halvings - 1)

    def _corrected(self, values: Mapping[str, float], predecessor: ContinuationPoint) -> ContinuationPoint | None:
        """Return the point by one chord from ``predecessor``; by a search from there where the chord does not apply."""
        try:
            model = self._model(values)
            request = self._request(values)[0].checked(model)
            if self.plan.how.parameters or not self._chord_applies(model, request, predecessor):
                return self._searched(values, predecessor)  # whose point says how it is trimmed, for derivatives
            assert predecessor.selection is not None  # noqa: S101 - _chord_applies says so
            balance = Balance(model, request, predecessor.linear, predecessor.selection)
            point = correct_by_chord(model, request, predecessor, balance)
            return None if point is None else self._linearized(model, point, values, predecessor)
        except FmilinError:
            return None

    @staticmethod
    def _chord_applies(model: Model, request: TrimRequest, predecessor: ContinuationPoint) -> bool:
        if predecessor.point.slope_changes is not None:
            return False  # several solutions meet there: each point says how far it may be
        free_inputs = all(model.inputs.has(name) for name in request.free)
        alike = predecessor.linear.inputs.names == model.inputs.names and predecessor.linear.sample_time == 0
        steady = predecessor.selection is not None and set(request.steady) <= set(predecessor.linear.states.names)
        return free_inputs and alike and steady and request.is_plain and read_sparse_equations(model) is None

    def _volume(self, predecessor: ContinuationPoint) -> float:
        model = self._model(predecessor.values)
        request = self._request(predecessor.values)[0].checked(model)
        if not self._chord_applies(model, request, predecessor) or predecessor.selection is None:
            return 0.0
        return Balance(model, request, predecessor.linear, predecessor.selection).volume

    def _searched(self, values: Mapping[str, float], predecessor: ContinuationPoint | None) -> ContinuationPoint:
        """Return the point by a search of its own, from the plan's guess or from ``predecessor``."""
        model = self._model(values)
        request, guess = self._request(values)
        if predecessor is not None:
            fixed = request.checked(model).fixed
            states = zip(model.states.names, predecessor.point.states.tolist(), strict=True)
            inputs = zip(model.inputs.names, predecessor.point.inputs.tolist(), strict=True)
            guess = {n: v for n, v in states if n not in fixed} | {n: v for n, v in inputs if n in request.free}
        point = search(model, request, guess, anywhere=self.plan.point.project, explain=False)
        return self._linearized(model_at(model, point), point, values, predecessor)

    def _linearized(
        self, model: Model, point: OperatingPoint, values: Mapping[str, float], predecessor: ContinuationPoint | None
    ) -> ContinuationPoint:
        previous: Selection | None = None if predecessor is None else predecessor.selection
        linear, selection = linearize_next(model, point, self.plan.how, previous)
        if given := {n: v for n, v in values.items() if self._kind(n) == "parameter"}:
            named = replace(linear.point, parameters={**linear.point.parameters, **given})
            linear = replace(linear, point=named)
        return ContinuationPoint(dict(values), point, linear, selection)

    def _request(self, values: Mapping[str, float]) -> tuple[TrimRequest, dict[str, float]]:
        """Return what is asked of a point besides its parameters, and where its search starts."""
        request, guess = self.plan.point.trim_of(self.base)
        varied = {n: v for n, v in values.items() if self._kind(n) != "parameter"}
        return replace(request, fixed={**request.fixed, **varied}), guess

    def _point_request(self, values: Mapping[str, float]) -> PointRequest:
        """Return what is asked of the point with these values."""
        point = self.plan.point
        return replace(point, settings={**point.settings, **values})

    # -- the model ---------------------------------------------------------------------------------------

    def _kind(self, name: str) -> Literal["state", "input", "parameter"]:
        states, inputs = self.base.states, self.base.inputs
        return "state" if states.has(name) else "input" if inputs.has(name) else "parameter"

    def _model(self, values: Mapping[str, float]) -> Model:
        """Return the model with the parameters among ``values``; of a stepped one also with its start states."""
        at_start = ("parameter", "state") if isinstance(self.base, Stepped) else ("parameter",)
        changed = {n: v for n, v in values.items() if self._kind(n) in at_start}
        if not changed:
            return self.base
        key = tuple(changed.items())
        if key not in self._models:
            self._models[key] = self._shown(self._loaded(changed))
            while len(self._models) > OPEN_MODELS:
                self._models.popitem(last=False)[1].close()
        self._models.move_to_end(key)
        return self._models[key]

    def _loaded(self, parameters: Mapping[str, float]) -> Model:
        """Return the model with these parameters: changed where the source can, loaded anew where it cannot."""
        plan = self.plan
        if parameters and (self.base.parameters or not isinstance(plan.source, str)):
            return self.base.with_parameters(parameters)
        if isinstance(plan.source, Model):
            own = {n: v for n, v in plan.point.settings.items() if n in plan.source.parameters}
            return plan.source.with_parameters(own)
        return load_as(plan.source, plan.load, self._point_request(parameters))

    def _shown(self, model: Model) -> Model:
        """Return the model with the outputs that are wanted, and with parameters among the inputs that are."""
        further = [n for n in self.plan.how.inputs or () if model.moves_parameters and not model.inputs.has(n)]
        inputs, outputs = [*model.inputs.names, *further] if further else None, self.plan.how.outputs
        return model if inputs is None and outputs is None else model.with_interface(inputs, outputs)

    def _refuse_unless_parameter(self, name: str, value: float) -> None:
        try:
            self._model({name: value})
        except UnknownNameError as error:
            model = self.base
            names = [*model.states.positions, *model.inputs.positions, *model.parameters, *error.suggestions]
            raise UnknownNameError.among(name, names, "a state, an input or a parameter of the model") from None
        except FmilinError as error:
            if not self.base.parameters and isinstance(self.plan.source, Model):
                raise
            if self.base.parameters and name in self.base.parameters:
                return  # this value is not possible; others may be
            raise error from None
