"""One point of a sweep after the other: assembled, or followed along the branch of trimmed points of the one before.

A trimmed point is corrected from its predecessor. If that fails, the step is halved; if no halving helps, the branch
may turn back before the point: then the fold is located, and points beyond it are searched for.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError
from fmilin.families.continuation import ContinuationPoint, can_continue, compute_volume, correct_by_chord
from fmilin.families.folds import BranchAroundFold, Fold, FoldError, locate_fold
from fmilin.families.open_models import OpenModels
from fmilin.families.sweep_plan import SweepPlan
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize_next, linearize_request
from fmilin.manifold.operating_points import apply_point_parameters
from fmilin.model.capabilities import HasSamples, remove_delays
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.trimming.request_point import find_point
from fmilin.trimming.search_algorithm import search
from fmilin.trimming.trim_request import TrimRequest

MAX_HALVINGS = 6
"""Of the step from one point to the next."""
LOST = (
    "The branch could not be followed from the previous point to this one: it was found by a search, and may lie on "
    "another branch."
)


@dataclass(frozen=True)
class SweptPoint:
    """A point of a sweep, and warnings about the way on which it was found."""

    point: ContinuationPoint
    warnings: tuple[Remark, ...] = ()


class BranchFollower:
    """Finds and linearizes the points of a plan one by one. A fold is remembered until a point beyond it is left."""

    def __init__(self, plan: SweepPlan, models: OpenModels) -> None:
        self._plan, self._models = plan, models
        self._fold: Fold | None = None  # the next points lie behind it
        self._around: tuple[Fold, BranchAroundFold] | None = None

    @property
    def is_at_fold(self) -> bool:
        """Whether a fold lies between the last point that was found and the next one."""
        return self._fold is not None

    def leave_fold(self) -> None:
        """Forget the fold: the next point starts from one beyond it, or from another run."""
        self._fold = None

    def find(self, values: Mapping[str, float], predecessor: ContinuationPoint | None) -> SweptPoint:
        """Return the point with these values, linearized; FmilinError if no such point exists."""
        if isinstance(self._models.base, HasSamples):
            return self._find_sampled(values, predecessor)
        if self._plan.point.trim is None:
            model = self._models.find(values)
            point = find_point(model, self._plan.request_point(values))
            return SweptPoint(self._linearize(model, point, values, predecessor))
        if predecessor is None:
            return self._find_first(values)
        return self._find_next(values, predecessor)

    def request_trim(self, values: Mapping[str, float]) -> tuple[TrimRequest, dict[str, float]]:
        """Return what is requested of a point besides its parameters, and where its search starts."""
        request, guess = self._plan.point.build_trim(self._models.base)
        varied = {name: value for name, value in values.items() if self._models.find_kind(name) != "parameter"}
        return replace(request, fixed={**request.fixed, **varied}), guess

    def _find_sampled(self, values: Mapping[str, float], predecessor: ContinuationPoint | None) -> SweptPoint:
        """Return the point of a system with sampled members: trimmed, if requested, as the system without samples.

        Its linear model, from sample to sample, does not solve the equations of the next trimmed point.
        """
        model = self._models.find(values)
        undelayed = remove_delays(model)
        if self._plan.point.trim is None:
            point = find_point(undelayed, self._plan.request_point(values))
        else:
            request, guess = self.request_trim(values)
            if predecessor is not None:
                states = zip(undelayed.states.names, predecessor.point.states.tolist(), strict=True)
                guess |= {name: value for name, value in states if name not in request.fixed}
            point = search(undelayed, request, guess, anywhere=self._plan.point.project, explain=False)
        linear = linearize_request(model, point, replace(self._plan.how, inputs=None))
        return SweptPoint(ContinuationPoint(dict(values), point, self._name_parameters(linear, values), None))

    # -- the first point, and the next ones ------------------------------------------------------------

    def _find_first(self, values: Mapping[str, float]) -> SweptPoint:
        start = self._find_start(values)
        point = None if start is None else self._follow(values, start, MAX_HALVINGS)
        if point is not None:
            return SweptPoint(point)
        try:
            return SweptPoint(self._search(values, None))
        except FmilinError:
            if start is None:
                raise
            return self._find_beyond_obstacle(values, start)

    def _find_start(self, values: Mapping[str, float]) -> ContinuationPoint | None:
        """Return the point at the model's start values of what varies; None if they are undefined or unchanged.

        A search that begins far from the first point may assemble the mechanism in another configuration.
        """
        if self._plan.point.guess:
            return None
        base = self._models.base
        values_at_start: dict[str, float] = dict(zip(base.states.names, base.start.states.tolist(), strict=True))
        values_at_start |= zip(base.inputs.names, base.start.inputs.tolist(), strict=True)
        values_at_start |= {**base.parameters, **self._plan.point.settings}
        if any(name not in values_at_start for name in values):
            return None
        start = {name: float(values_at_start[name]) for name in values}
        if start == dict(values):
            return None
        with suppress(FmilinError):
            return self._search(start, None)
        return None

    def _find_next(self, values: Mapping[str, float], predecessor: ContinuationPoint) -> SweptPoint:
        if self._fold is None:
            point = self._follow(values, predecessor, MAX_HALVINGS)
            if point is not None:
                return SweptPoint(point)
        return self._find_beyond_obstacle(values, predecessor)

    # -- along a branch --------------------------------------------------------------------------------

    def _follow(
        self, values: Mapping[str, float], predecessor: ContinuationPoint, halvings: int
    ) -> ContinuationPoint | None:
        """Return the point at ``values`` on the branch of ``predecessor``, in steps that are halved where needed."""
        point = self._correct(values, predecessor)
        if point is not None or halvings == 0:
            return point
        middle = {name: (predecessor.values[name] + value) / 2 for name, value in values.items()}
        between = self._follow(middle, predecessor, halvings - 1)
        return None if between is None else self._follow(values, between, halvings - 1)

    def _correct(self, values: Mapping[str, float], predecessor: ContinuationPoint) -> ContinuationPoint | None:
        """Return the point by one chord from ``predecessor``; by a search from there where a chord cannot be used."""
        try:
            model = self._models.find(values)
            request = self.request_trim(values)[0].check(model)
            # For derivatives by parameters a point has to say how it was trimmed, as one from a search does.
            if self._plan.how.parameters or not can_continue(model, request, predecessor):
                return self._search(values, predecessor)
            point = correct_by_chord(model, request, predecessor)
            return None if point is None else self._linearize(model, point, values, predecessor)
        except FmilinError:
            return None

    def _search(self, values: Mapping[str, float], predecessor: ContinuationPoint | None) -> ContinuationPoint:
        """Return the point by a search that starts at the plan's guess or at ``predecessor``."""
        model = self._models.find(values)
        request, guess = self.request_trim(values)
        if predecessor is not None:
            fixed, point = request.check(model).fixed, predecessor.point
            states = zip(model.states.names, point.states.tolist(), strict=True)
            inputs = zip(model.inputs.names, point.inputs.tolist(), strict=True)
            guess = {name: value for name, value in states if name not in fixed}
            guess |= {name: value for name, value in inputs if name in request.free}
        point = search(model, request, guess, anywhere=self._plan.point.project, explain=False)
        return self._linearize(apply_point_parameters(model, point), point, values, predecessor)

    def _linearize(
        self, model: Model, point: OperatingPoint, values: Mapping[str, float], predecessor: ContinuationPoint | None
    ) -> ContinuationPoint:
        previous = None if predecessor is None else predecessor.selection
        linear, selection = linearize_next(model, point, self._plan.how, previous)
        return ContinuationPoint(dict(values), point, self._name_parameters(linear, values), selection)

    def _name_parameters(self, linear: LinearModel, values: Mapping[str, float]) -> LinearModel:
        """Return a linear model with the parameters that vary among those of its point."""
        parameters = {name: value for name, value in values.items() if self._models.find_kind(name) == "parameter"}
        if not parameters:
            return linear
        return replace(linear, point=replace(linear.point, parameters={**linear.point.parameters, **parameters}))

    # -- beyond what a branch cannot pass --------------------------------------------------------------

    def _find_beyond_obstacle(self, values: Mapping[str, float], predecessor: ContinuationPoint) -> SweptPoint:
        """Return a point that cannot be followed from ``predecessor``: say which fold is between them, if one is."""
        if self._fold is None:
            end = locate_fold(predecessor, values, lambda at, last: self._follow(at, last, 1), self._compute_volume)
            if isinstance(end, ContinuationPoint):
                point = self._follow(values, end, MAX_HALVINGS)
                if point is not None:
                    return SweptPoint(point)
                return SweptPoint(self._search(values, None), (Remark("branch", LOST),))
            self._fold = end
        fold = self._fold
        point, is_around = self._find_beyond_fold(values, fold)
        sizes = self._models.base.states.scales(fold.last.point.states)
        sentence = fold.describe_later_point(point, sizes, around=is_around)
        return SweptPoint(point, (Remark("branch", sentence),))

    def _compute_volume(self, predecessor: ContinuationPoint) -> float:
        model = self._models.find(predecessor.values)
        return compute_volume(model, self.request_trim(predecessor.values)[0].check(model), predecessor)

    def _find_beyond_fold(self, values: Mapping[str, float], fold: Fold) -> tuple[ContinuationPoint, bool]:
        """Return a point from the plan's guess, or one on the branch around the fold, and whether it is that one."""
        try:
            return self._search(values, None), False
        except FmilinError as error:
            for start in self._guess_around_fold(values, fold):
                with suppress(FmilinError):
                    return self._search(values, start), True
            raise FoldError(fold.sentence, str(error)) from None

    def _guess_around_fold(self, values: Mapping[str, float], fold: Fold) -> Iterator[ContinuationPoint]:
        """Yield points near those with these values on the branch around the fold; none unless one value varies."""
        varied = [name for name, value in values.items() if value != fold.before.values[name]]
        if len(varied) != 1:
            return
        if self._around is None or self._around[0] is not fold:
            self._around = fold, self._make_fold_branch(fold, values, varied[0])
        states = len(self._models.base.states)
        for z in self._around[1].find_crossings(values[varied[0]]):
            point = replace(fold.last.point, states=z[:states], inputs=z[states:-1])
            yield replace(fold.last, point=point)

    def _make_fold_branch(self, fold: Fold, values: Mapping[str, float], name: str) -> BranchAroundFold:
        """Return the branch around a fold, along which ``name`` is solved for."""
        constant = {n: value for n, value in values.items() if n != name}
        model, kind = self._models.find(constant), self._models.find_kind(name)
        request = self.request_trim(constant)[0].check(model)
        states, inputs = model.states.names, model.inputs.names
        free = request.free if kind == "state" else (*request.free, name)

        def join(point: OperatingPoint, value: float) -> FloatArray:
            return np.array([*point.states, *point.inputs, value])

        def solve(leader: int, guess: FloatArray) -> FloatArray:
            fixed = {**request.fixed, states[leader]: float(guess[leader])}
            guesses = dict(zip((*states, *inputs, name), guess.tolist(), strict=True))
            start = {n: value for n, value in guesses.items() if n not in fixed and (n in states or n in free)}
            point = search(model, replace(request, fixed=fixed, free=free), start, anywhere=True, explain=False)
            z = join(point, 0.0)
            z[-1] = point.parameters[name] if kind == "parameter" else z[(*states, *inputs).index(name)]
            return z

        leaders = [i for i, state in enumerate(states) if state not in request.fixed and state != name]
        approach = [join(end.point, end.values[name]) for end in (fold.before, fold.last)]
        return BranchAroundFold(approach, model.states.scales(fold.last.point.states), leaders, solve)
