"""Evaluations of the model along the motion of points and near it, for the search for steady motions.

Two sources answer. :class:`ContinuedBatch` evaluates all points of a batch together, in coordinates that are states;
:class:`ContinuedPoint` follows one point of any model, in any coordinates, with the parametrization of the manifold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import chain, repeat, starmap
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, NumericalError
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.frame import Frame
from fmilin.manifold.manifold_equations import VectorizedEquations
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.point_arrays import PointBatch
from fmilin.manifold.rank import independent_rows
from fmilin.model.capabilities import has_graph, read_event_indicators
from fmilin.model.evaluator import POINTS_AT_ONCE, PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass

STEP = 2.0**-13  # of the difference that shows the second A, in sizes of the coordinates
SHORT_STEP = 2.0**-17  # of a one-sided difference with a small curvature error
PARTS = (1.0, 0.3, 0.1)  # of the path further on that are tried, the whole first: not all coordinates lead so far
SHORTER_PARTS = (0.03, 0.01)  # such parts in nonlinear coordinates: angles turn by less than a round
NONLINEAR_STEP = 2.0**-5  # part of the step of a difference that is taken in nonlinear coordinates
STEPS_AT_ONCE = 4  # of a batch of any size that are evaluated together
ZEROS = repeat(0.0)

Mask = NDArray[np.bool_]
Subset = slice | NDArray[np.intp]
Times = Sequence[FloatArray]
Curvature = FloatArray | float
Offsets = Iterable[FloatArray | float]
BatchStep = tuple[FloatArray, FloatArray, FloatArray]  # from states (k, N) by dy (k, P), so much later (k,)


class PointsAhead(NamedTuple):
    """Points further along the motion."""

    later: FloatArray  # (k,), how much later, in s
    x: FloatArray  # (k, N)
    f: FloatArray  # (k, N), the rates x'
    rates: FloatArray  # (k, P), the rates y'
    good: Mask  # (k,), where all of this could be evaluated


class ContinuedMotion(ABC):
    """Evaluations of the model along uniform motions of k points, and near them."""

    exact: bool = False  # whether rates and derivatives have rounding errors only

    @abstractmethod
    def select(self, subset: NDArray[np.intp]) -> ContinuedMotion:
        """Return the same for some of the points."""

    @abstractmethod
    def advance(
        self, path: FloatArray, times: Times, curvature: Curvature = 0.0, offsets: Offsets = ZEROS
    ) -> Iterable[PointsAhead]:
        """Continue for each of the times (k,) with y' = path, y'' = curvature, then offset, each (k, P).

        The time is shorter where the coordinates do not lead so far.
        """

    @abstractmethod
    def displace(self, ahead: PointsAhead, displacements: Sequence[FloatArray]) -> Iterable[PointsAhead]:
        """Evaluate the model at coordinates displaced by (k, P) from points further on."""

    @abstractmethod
    def depends_on_time(self, later: FloatArray) -> Mask:
        """Say where any bit of the model's answer near the points is another so much later (k,)."""

    def advance_and_displace(
        self, path: FloatArray, times: Times, displacements: Sequence[FloatArray], offset: FloatArray | None
    ) -> Iterator[PointsAhead]:
        """Yield the points at each of the times; then the last one, displaced by each of the (k, P).

        With an ``offset`` (k, P), the last one displaced by it follows, and that one with each of the displacements.
        """
        for ahead in self.advance(path, times):
            yield ahead
        yield from self.displace(ahead, displacements)
        if offset is not None:
            (displaced,) = self.displace(ahead, [offset])
            yield displaced
            yield from self.displace(displaced, displacements)

    def advance_with_derivatives(
        self, path: FloatArray, times: Times, curvature: FloatArray, direction: FloatArray
    ) -> Iterator[tuple[PointsAhead, FloatArray]]:
        """Yield the points further on, and the derivatives (k, P) of y' along a direction (k, P) there."""
        for after in self.advance(path, times, curvature, [SHORT_STEP * direction] * len(times)):
            (before,) = self.displace(after, [-2 * SHORT_STEP * direction])
            yield _average(after, before)

    def compute_A(self, ahead: PointsAhead, sizes: FloatArray, subset: Mask) -> FloatArray:
        """Return A (j, P, P) at some points further on, by one-sided differences along coordinates of such sizes."""
        displaced = self.displace(ahead, [SHORT_STEP * unit * sizes for unit in np.eye(sizes.shape[1])])
        columns = [(after.rates - ahead.rates) / SHORT_STEP for after in displaced]
        return (np.stack(columns, axis=2) / sizes[:, None])[subset]

    @property
    def step(self) -> float:
        """The step of a difference, in sizes of the coordinates: one-sided where the model is exact, else central."""
        return SHORT_STEP if self.exact else STEP

    def list_displacements(self, direction: FloatArray) -> list[FloatArray]:
        """Return by what a point is displaced for derivatives along a direction (k, P)."""
        return [self.step * direction] if self.exact else [self.step * direction, -self.step * direction]

    def differentiate(self, ahead: PointsAhead, displaced: Sequence[PointsAhead]) -> tuple[FloatArray, Mask]:
        """Return the derivatives (k, P) of y' along a direction, and where they could be evaluated.

        ``displaced`` are the points at each of the displacements from ``ahead``.
        """
        after, before, width = displaced[0], displaced[-1], 2 * self.step
        if self.exact:
            before, width = ahead, self.step
        return (after.rates - before.rates) / width, after.good & before.good


def _average(after: PointsAhead, before: PointsAhead) -> tuple[PointsAhead, FloatArray]:
    """Return the points between those on both sides, and the derivatives (k, P) of y' there."""
    x, f, rates = (after.x + before.x) / 2, (after.f + before.f) / 2, (after.rates + before.rates) / 2
    derivatives = (after.rates - before.rates) / (2 * SHORT_STEP)
    return PointsAhead(after.later, x, f, rates, after.good & before.good), derivatives


@dataclass(frozen=True, eq=False)
class ContinuedBatch(ContinuedMotion):
    """The model further along the motions of a batch in kept states: all points are evaluated together."""

    model: Model
    parametrization: LocalParametrization
    numbers: NDArray[np.intp]  # (k,), of the points of the parametrization, in their order

    @cached_property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether the equations of the model are available."""
        return has_graph(self.model)

    @cached_property
    def points(self) -> PointBatch:
        """The points."""
        points = self.parametrization.points
        # All points: large arrays are not copied.
        return points if len(self.numbers) == len(points) else points[self.numbers]

    @cached_property
    def T(self) -> FloatArray:
        """The tangents at the points, shape (k, N, P)."""
        T = self.parametrization.T
        # All points: not copied either.
        return T if len(self.numbers) == len(T) else T[self.numbers]

    def select(self, subset: NDArray[np.intp]) -> ContinuedBatch:
        """Return the same for some of the points."""
        return replace(self, numbers=self.numbers[subset])

    def advance(
        self, path: FloatArray, times: Times, curvature: Curvature = 0.0, offsets: Offsets = ZEROS
    ) -> Iterator[PointsAhead]:
        """Continue in y, from the tangent."""
        steps, x = [], self.points.states
        for t, offset in zip(times, offsets, strict=False):
            dy = t[:, None] * path + t[:, None] ** 2 / 2 * curvature + offset
            steps.append((x, dy, t))
        return self._evaluate(steps)

    def displace(self, ahead: PointsAhead, displacements: Sequence[FloatArray]) -> Iterator[PointsAhead]:
        """Move y, from the tangent there."""
        return self._evaluate([(ahead.x, displacement, ahead.later) for displacement in displacements])

    def advance_and_displace(
        self, path: FloatArray, times: Times, displacements: Sequence[FloatArray], offset: FloatArray | None
    ) -> Iterator[PointsAhead]:
        """Move y from the points themselves, so that no evaluation waits for another one."""
        offsets = list(displacements)
        if offset is not None:
            offsets += [offset, *(offset + displacement for displacement in displacements)]
        along = [np.zeros_like(path)] * len(times)
        return self.advance(path, [*times, *[times[-1]] * len(offsets)], offsets=[*along, *offsets])

    def advance_with_derivatives(
        self, path: FloatArray, times: Times, curvature: FloatArray, direction: FloatArray
    ) -> Iterator[tuple[PointsAhead, FloatArray]]:
        """Move y to both sides from the points themselves."""
        step = SHORT_STEP * direction
        both = self.advance(path, [t for t in times for _ in range(2)], curvature, [step, -step] * len(times))
        return starmap(_average, zip(both, both, strict=True))

    def depends_on_time(self, later: FloatArray) -> Mask:
        """Compare the rates."""
        parametrization, points = self.parametrization, self.points
        steps = STEP * parametrization.y_sizes[self.numbers]
        near = replace(points, states=points.states + (self.T @ steps[..., None])[..., 0])
        then = replace(near, time=near.time + later)
        if len(points) == 1:  # of more points, compiled code may round the first half of a batch unlike the second
            (rates,), (rates_later,) = np.split(parametrization.equations.evaluate(near.joined(then))[0], 2)
            return np.array([(rates != rates_later).any()])
        rates, _ = parametrization.equations.evaluate(near)
        rates_later, _ = parametrization.equations.evaluate(then)
        return np.asarray((rates != rates_later).any(axis=1))

    def compute_A(self, ahead: PointsAhead, sizes: FloatArray, subset: Mask) -> FloatArray:
        """Return the model's own A; by differences where it has none."""
        points = self.points[subset]
        further = replace(points, time=points.time + ahead.later[subset], states=ahead.x[subset])
        A = self.parametrization.equations.compute_A(further)
        return super().compute_A(ahead, sizes, subset) if A is None else A

    def _evaluate(self, steps: Sequence[BatchStep]) -> Iterator[PointsAhead]:
        """Yield the model at coordinates dy (k, P) from states (k, N), so much later (k,).

        A call costs as much as many points, but the arrays of all steps of a large batch fit into no cache.
        """
        at_once = max(STEPS_AT_ONCE, POINTS_AT_ONCE // len(self.numbers))
        for first in range(0, len(steps), at_once):
            yield from self._evaluate_together(steps[first : first + at_once])

    def _evaluate_together(self, steps: Sequence[BatchStep]) -> list[PointsAhead]:
        parametrization, count = self.parametrization, len(self.numbers)
        independent = parametrization.independent
        near = np.concatenate([x for x, _, _ in steps])
        dy = np.concatenate([step for _, step, _ in steps])
        later = np.concatenate([t for _, _, t in steps])
        guess = near + np.concatenate([(self.T @ step[..., None])[..., 0] for _, step, _ in steps])
        guess[:, independent] = near[:, independent] + dy
        reached, good = parametrization.reach(guess, np.concatenate((self.numbers,) * len(steps)))
        ahead = PointBatch(reached.time + later, reached.states, reached.inputs, reached.parameters)
        f, _ = parametrization.equations.evaluate(ahead)
        rates, good = f[:, independent], good & np.isfinite(f).all(axis=1)
        slices = [slice(i, i + count) for i in range(0, len(near), count)]
        return [PointsAhead(later[s], reached.states[s], f[s], rates[s], good[s]) for s in slices]


def continue_batch(
    evaluator: PointEvaluator, point: OperatingPoint, frame: Frame, derivatives: TangentDerivatives
) -> ContinuedBatch | None:
    """Return one point as a batch of one, where equations of the model answer for many points at once."""
    t, x, u, independent = point.time, point.states, point.inputs, frame.selection.independent
    model = evaluator.model
    # A batch solves for the constraints at the time of the point: they must not depend on time.
    if independent is None or not model.batches or frame.invariants.moving:
        return None
    # It needs exact derivatives, and sees no events on the way: ContinuedPoint does without, and sees them.
    if evaluator.exact_slopes(t, x, u) is None or len(read_event_indicators(model, t, x, u)):
        return None
    gradient = frame.invariants.gradient(t, x)
    rows = independent_rows(gradient.scaled, len(x) - len(independent), len(model.constraints))
    points = PointBatch(np.array([t]), x[None], u[None])
    equations = VectorizedEquations(evaluator, independent)
    H, sizes = gradient.H[None], frame.invariants.scales[None]
    parametrization = LocalParametrization(equations, points, frame.coordinates, rows, H, sizes, T=derivatives.T)
    return ContinuedBatch(model, parametrization, np.arange(1))


class ContinuedPoint(ContinuedMotion):
    """The model further along the motion of one point; none beyond an event, or the border of the domain."""

    def __init__(self, evaluator: PointEvaluator, point: OperatingPoint, frame: Frame) -> None:
        self._evaluator, self._point, self._frame = evaluator, point, frame
        self._model = model = evaluator.model
        self._before = read_event_indicators(model, point.time, point.states, point.inputs) > 0
        self._is_linear = frame.coordinates.is_linear
        self.exact = has_graph(model) and self._is_linear  # a short step shows too little where coordinates are curved

    def select(self, subset: NDArray[np.intp]) -> ContinuedPoint:
        """Return the same: there is one point."""
        return self

    def advance(
        self, path: FloatArray, times: Times, curvature: Curvature = 0.0, offsets: Offsets = ZEROS
    ) -> Iterator[PointsAhead]:
        """Continue in y, from the tangent."""
        ways = [
            self._shorten(path, float(later), curvature, offset)
            for (later,), offset in zip(times, offsets, strict=False)
        ]
        first_steps = [next(way) for way in ways]
        self._evaluate_ahead([(*step, None) for step in first_steps])
        for step, shorter in zip(first_steps, ways, strict=True):
            yield self._evaluate_first(chain((step,), shorter))

    def _shorten(
        self, path: FloatArray, later: float, curvature: Curvature, offset: FloatArray | float
    ) -> Iterator[tuple[FloatArray, float]]:
        """Yield the coordinates after a time, then after parts of it: not all coordinates lead so far."""
        for part in PARTS if self._is_linear else (*PARTS, *SHORTER_PARTS):
            t = part * later
            yield self._frame.y0 + (t * path + t**2 / 2 * curvature + offset)[0], t

    def displace(self, ahead: PointsAhead, displacements: Sequence[FloatArray]) -> Iterator[PointsAhead]:
        """Move y, from the states further on."""
        y, near, later = self._frame.coordinates.values(ahead.x[0]), ahead.x[0], float(ahead.later[0])
        steps = [(y + displacement, later) for (displacement,) in displacements]
        self._evaluate_ahead([(*step, near) for step in steps])
        for step in steps:
            yield self._evaluate_first([step], near)

    def advance_with_derivatives(
        self, path: FloatArray, times: Times, curvature: FloatArray, direction: FloatArray
    ) -> Iterator[tuple[PointsAhead, FloatArray]]:
        """Evaluate the points on one side together, then those on the other, which follow from the states reached."""
        if not self._takes_batches:
            yield from super().advance_with_derivatives(path, times, curvature, direction)
            return
        step = SHORT_STEP * direction
        reached = list(self.advance(path, times, curvature, [step] * len(times)))
        values = self._frame.coordinates.values
        further_points = [(values(after.x[0]) - 2 * step[0], float(after.later[0]), after.x[0]) for after in reached]
        self._evaluate_ahead(further_points)
        for after in reached:
            (before,) = self.displace(after, [-2 * step])
            yield _average(after, before)

    def depends_on_time(self, later: FloatArray) -> Mask:
        """Compare rates, residuals and event indicators; True where they cannot be evaluated."""
        t, x, u, model = self._point.time, self._point.states, self._point.inputs, self._model
        nearby = x + self._frame.T @ (STEP * self._frame.y_scales)  # the way from there to the manifold costs more
        answers = []
        try:
            for time in (t, t + float(later[0])):
                evaluation = self._evaluator.evaluate(time, nearby, u)
                indicators = read_event_indicators(model, time, nearby, u)
                answers.append((evaluation.derivatives, evaluation.residuals, indicators))
        except (ModelError, NumericalError):
            return np.array([True])
        return np.array([not all(np.array_equal(*parts) for parts in zip(*answers, strict=True))])

    @property
    def step(self) -> float:
        """A shorter step in nonlinear coordinates, as of Euler's angles near their pole."""
        return super().step if self._is_linear else NONLINEAR_STEP * super().step

    @property
    def _takes_batches(self) -> bool:
        """Whether points are evaluated together: with constraints each of them is solved for, one after the other."""
        return self._model.batches and not len(self._before) and not self._frame.parametrization.rows

    def _evaluate_ahead(self, steps: Sequence[tuple[FloatArray, float, FloatArray | None]]) -> None:
        """Evaluate the model together at coordinates, so much later, that are reached from states near them."""
        if len(steps) < 2 or not self._takes_batches:
            return
        t, u, psi = self._point.time, self._point.inputs, self._frame.parametrization.psi
        finite = [step for step in steps if np.isfinite(step[0]).all()]
        # A point that fails is evaluated again alone, where a shorter part of the way is tried.
        with suppress(ModelError, NumericalError):
            states = [psi(y, time=t + later, near=near) for y, later, near in finite]
            self._evaluator.evaluate_ahead([(t + step[1], x, u) for step, x in zip(finite, states, strict=True)])

    def _evaluate_first(self, steps: Iterable[tuple[FloatArray, float]], near: FloatArray | None = None) -> PointsAhead:
        """Evaluate the model at the first coordinates, so much later, that can be reached; none from NaN."""
        steps = [] if near is not None and np.isnan(near).any() else steps
        # Where no point is reached a shorter part may be; a model that fails is not called again.
        with suppress(ModelError):
            for y, later in steps:
                with suppress(NumericalError):
                    return self._evaluate(y, later, near)
        nothing = np.full((1, len(self._point.states)), np.nan)
        return PointsAhead(np.zeros(1), nothing, nothing, np.full((1, len(self._frame.y0)), np.nan), np.array([False]))

    def _evaluate(self, y: FloatArray, later: float, near: FloatArray | None) -> PointsAhead:
        t, u = self._point.time, self._point.inputs
        x = self._frame.parametrization.psi(y, time=t + later, near=near)
        f = self._evaluator.evaluate(t + later, x, u).derivatives
        if not np.isfinite(f).all():
            raise NumericalError("The model is not defined at later times of the motion.")
        if len(self._before) and ((read_event_indicators(self._model, t + later, x, u) > 0) != self._before).any():
            raise NumericalError("An event lies on the path of the motion.")
        rates = self._frame.coordinates.jacobian(x) @ f
        return PointsAhead(np.array([later]), x[None], f[None], rates[None], np.array([True]))
