"""The model near a point: rates and outputs at displacements along the manifold and of the inputs.

The file is longer than others because all measurements near a point share its evaluations, noise and failures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fmilin.errors import ModelError, NumericalError
from fmilin.manifold.frame import Frame
from fmilin.manifold.tangent_patterns import TangentPattern, find_tangent_pattern
from fmilin.manifold.wrapping_angles import NEAR_STEP_SIZE, AngleUnwrapper
from fmilin.model.capabilities import read_event_indicators
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, OperatingPoint
from fmilin.numerics.differences.differences import Differences, EventCrossingError, Slopes, slopes
from fmilin.numerics.differences.directional import Surroundings, choose_direction
from fmilin.numerics.differences.richardson import (
    DifferenceSetting,
    difference_at_step,
    list_first_steps,
    truncation_error,
)  # fmt: skip
from fmilin.numerics.differences.sweep import are_numbers, finite_values
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS, GROUP_AGREEMENT_TOLERANCE

FAR_STEP_SIZE = 2.0**-3  # in sizes of the variables: from there the point is evaluated again
FARTHER_FACTOR = (
    8.0  # times as far: there even a solver with a loose tolerance is no longer content with its last solution
)
MIN_STEP_SIZE = 2.0**-44  # in sizes of the variables: there a solver inside with a looser tolerance has not moved
STEP_GROWTH_FACTOR = 8.0  # between the steps back to the point at which a solver inside may not have moved
ABRUPT_RATE_FACTOR = (
    8.0  # times as fast as it was seen to go, that an event indicator may go to zero, over steps so much longer
)
MIN_INDICATOR_DISTANCE = 1e-150  # of an indicator's way to zero
CONFIRMATION_STEP = 1e-4  # step, in sizes of the variables, along which a declared structure is confirmed,
STEP_IN_NOISE = 3e-2  # and where values are noisy
CLOSER_STEP_FACTOR = 2.0**-10  # of these steps, others at which rows may agree as well
SMALL_ROW_FRACTION = 1e-3  # of the largest row, a row that counts as so large there: large terms may cancel in it
MAX_UNTRIED_STEP_SIZE = 2.0**-2  # a displacement that cost the model its instance keeps others from going this far


@dataclass(eq=False)
class Observations:
    """Observations of evaluations near a point, besides their values; each evaluating function returns its own."""

    angles: AngleUnwrapper  # outputs that wrap at the point
    approach: FloatArray  # (P + nu,), parts of their way to zero that event indicators go per size of a column,
    reach: FloatArray  # (P + nu,), over steps of that column alone so long
    crossed_events: set[int] = field(default_factory=set)  # indicators that change sign there, and were not carried out
    border: float = np.inf  # displacement, in sizes of the variables, that cost the model its instance
    fastest_rate: float = 0.0  # of rates along the columns, in sizes of the states
    # (r,), how much the values at the point change between evaluations elsewhere; None where that was not measured
    change_on_return: FloatArray | None = None
    revisits: Mapping[float, FloatArray] = field(default_factory=dict)  # values near the point, by step along
    revisited_direction: FloatArray = field(default_factory=lambda: np.empty(0))  # (P + nu,), all columns together

    def copy(self) -> Observations:
        """Return the same, to which more may be added."""
        arrays = self.approach.copy(), self.reach.copy()
        return replace(
            self,
            angles=self.angles.copy(),
            approach=arrays[0],
            reach=arrays[1],
            crossed_events=set(self.crossed_events),
        )

    def in_other_coordinates(self) -> Observations:
        """Return the same without what was observed of columns."""
        same = self.copy()
        return replace(
            same, approach=0 * same.approach, reach=0 * same.reach, revisits={}, revisited_direction=np.empty(0)
        )

    @property
    def crossed(self) -> tuple[int, ...]:
        """Event indicators that change sign near the point and were not carried out."""
        return tuple(sorted(self.crossed_events))

    @property
    def turns(self) -> Mapping[int, float]:
        """By how much outputs jump that wrap at the point, by row."""
        return self.angles.list_turns()

    @property
    def doubtful_turns(self) -> tuple[int, ...]:
        """Outputs taken for angles in degrees by their jump alone."""
        return tuple(self.angles.find_doubtful())


NOTHING_OBSERVED = Observations(AngleUnwrapper(Signals(()), np.empty(0)), np.empty(0), np.empty(0))


STATE_ROUNDING_TOLERANCE = 16 * EPS  # of states, relative: points that are closer differ by rounding


class Neighbourhood:
    """Rates and outputs around a point: rows are N rates, ny outputs; columns P coordinates, nu inputs.

    A function that evaluates works with a neighbourhood of its own, :meth:`observing`, and returns its observations:
    they begin with those that it was given, and no result depends on what other functions have evaluated.
    """

    def __init__(
        self,
        evaluator: PointEvaluator,
        frame: Frame,
        point: OperatingPoint,
        base: Evaluation,
        *,
        pairs: Mapping[int, int] | None = None,
        hold_modes: bool = False,
        is_repeatable: bool = False,
    ) -> None:
        self.evaluator, self.frame, self.point = evaluator, frame, point
        self.model = model = evaluator.model
        self.pairs = frame.invariants.pairs if pairs is None else pairs
        self.base_evaluation = base
        self.base = np.concatenate((base.derivatives, base.outputs))
        self.n, self.p, self.k = len(model.states), len(frame.y0), len(point.inputs)
        self.scales = np.concatenate((frame.y_scales, model.inputs.scales(point.inputs)))
        self._row_sizes = model.states.scales(point.states), model.outputs.scales(self.base[self.n :])
        self._indicators = read_event_indicators(model, point.time, point.states, point.inputs)
        self._is_repeatable = is_repeatable  # evaluated again at the point, the model certainly returns the same
        self._holds = hold_modes  # an event that is not carried out leaves the model in its mode
        self._solved: dict[bytes, FloatArray] = {}  # states at displacements that were evaluated ahead
        count = self.p + self.k
        self.observations = Observations(AngleUnwrapper(model.outputs, base.outputs), np.zeros(count), np.zeros(count))

    def observing(self, observations: Observations | None = None) -> Neighbourhood:
        """Return the same with observations of its own: none so far, or those that were made before."""
        other = copy(self)
        other.observations = (self.observations if observations is None else observations).copy()
        return other

    def on_manifold(self) -> Neighbourhood:
        """Return the same at Psi of the point's coordinates, with the same observations.

        A point that was trimmed or given is on the manifold to a tolerance, points near it to rounding. Its values
        differ from theirs by a constant then, and second differences of every column see a jump.
        """
        # Without constraints the point is where its coordinates are.
        if not self.frame.parametrization.rows:
            return self
        try:
            x = self._displace(np.zeros(self.p + self.k), self.point.inputs)
            sizes = np.maximum(np.abs(x), self.model.states.scales(x))
            if (np.abs(x - self.point.states) <= STATE_ROUNDING_TOLERANCE * sizes).all():
                return self
            base = self.evaluator.evaluate(self.point.time, x, self.point.inputs)
        except (ModelError, NumericalError):
            # No point of the manifold is reached: the point itself has to do.
            return self
        other = copy(self)
        other.point = replace(self.point, states=x)
        other.base_evaluation, other.base = base, np.concatenate((base.derivatives, base.outputs))
        other._solved = {}
        return other

    @cached_property
    def _moves(self) -> bool:
        """Whether inputs move the manifold."""
        return bool(self.frame.x_u.any())

    def change_at_point(self) -> FloatArray:
        """Evaluate the point once more; return by how much rates and outputs differ, shape (r,)."""
        change = np.abs(self._again() - self.base)
        return np.where(np.isnan(change), np.inf, change)

    def _again(self) -> FloatArray:
        if self._is_repeatable:
            return self.base
        again = self.evaluator.evaluate_again(self.point.time, self.point.states, self.point.inputs)
        return np.concatenate((again.derivatives, again.outputs))

    def _revisit(self, direction: FloatArray | None = None) -> tuple[FloatArray, Mapping[float, FloatArray]]:
        """Return by how much rates and outputs differ when the point is evaluated again, from either side and twice.

        The second are values near it, by their step along ``direction`` (P + nu,), or one through all columns.
        """
        observations = self.observations
        d = choose_direction(self.scales) if direction is None else direction
        if observations.change_on_return is not None:
            if direction is not None and not np.array_equal(d, observations.revisited_direction):
                # Columns that are moved in groups have another direction: they are compared with values along theirs.
                visits_beside = [self._evaluate_near_point(step, d) for step in (FAR_STEP_SIZE, -FAR_STEP_SIZE)]
                observations.revisits = {step: visits[0] for step, visits in visits_beside if visits}
                observations.revisited_direction = d
            return observations.change_on_return, observations.revisits
        together = self._revisit_together(d)
        if together is not None:
            observations.change_on_return, observations.revisits = together
            observations.revisited_direction = d
            return together
        change, values = np.zeros(len(self.base)), {}
        for step, times in (
            (FAR_STEP_SIZE, 1),
            (-FAR_STEP_SIZE, 2),
        ):  # the point, and the last evaluation, after odd and even numbers of evaluations
            where, visits = self._evaluate_near_point(step, d, times)
            if visits:
                values[where] = visits[0]
                if np.isfinite(visits).all():
                    change = np.maximum(change, np.abs(visits[-1] - visits[0]))
                # Far on the other side before the way back, so that a solver inside cannot keep its last solution.
                if where > 0:
                    with np.errstate(all="ignore"):
                        finite_values(self.at, -where * FARTHER_FACTOR * d)
            change = np.maximum(change, self.change_at_point())
        observations.change_on_return, observations.revisits = change, values
        observations.revisited_direction = d
        return change, values

    def _revisit_together(self, d: FloatArray) -> tuple[FloatArray, Mapping[float, FloatArray]] | None:
        """Return the same from one batch of evaluations, which a model carries out in their order.

        Returns None where it takes no batches, or has no values at one of the points.
        """
        # Indicators are read where the model stands, after each evaluation. A model that certainly repeats itself is
        # not evaluated again, and beyond the border a batch would fail as a whole.
        takes_batches = self.model.batches and not len(self._indicators) and not self._is_repeatable
        if not takes_batches or self.observations.border < np.inf:
            return None
        far_step = FAR_STEP_SIZE
        steps = (far_step, -FARTHER_FACTOR * far_step, 0.0, -far_step, -far_step, 0.0)
        try:
            with np.errstate(all="ignore"):
                u = self.point.inputs + np.multiply.outer(steps, d[self.p :])
                x = np.array(
                    [
                        self._displace(s * d, inputs) if s else self.point.states
                        for s, inputs in zip(steps, u, strict=True)
                    ]
                )
                visits = self.evaluator.evaluate_points(np.full(len(steps), self.point.time), x, u)
                outputs = [self._unwrap(y, s * d) if s else y for s, y in zip(steps, visits.outputs, strict=True)]
        except (ModelError, NumericalError):
            return None
        values = np.concatenate((visits.derivatives, np.array(outputs)), axis=1)
        if not are_numbers(values):
            return None
        returned = np.array([values[2] - self.base, values[4] - values[3], values[5] - self.base])
        return np.abs(returned).max(axis=0, initial=0.0), {far_step: values[0], -far_step: values[3]}

    def _evaluate_near_point(self, step: float, d: FloatArray, times: int = 1) -> tuple[float, list[FloatArray]]:
        """Return a step along d, smaller where the model has no values there, and the values of each evaluation."""
        for part in (1.0, 1 / 64):
            try:
                with np.errstate(all="ignore"):
                    return step * part, [self.at(step * part * d, again=bool(i)) for i in range(times)]
            except (ModelError, NumericalError):
                continue
        return step, []

    def lag(self) -> FloatArray:
        """Return by how much rates and outputs at the point lag behind evaluations near it, shape (r,)."""
        # A solver inside that starts from its last solution is content with it as long as the equations are satisfied
        # well enough. So it is sent far away, then to a step near the point, then back: over steps of all sizes.
        change, values = self._revisit()
        lag, d, again, step = (
            np.zeros(len(self.base)),
            choose_direction(self.scales),
            partial(self.at, again=True),
            MIN_STEP_SIZE,
        )
        last = self._again()
        for far_step in values:
            shortest_step = MIN_STEP_SIZE * STEP_GROWTH_FACTOR
            # A solver that does not lag over the shortest steps moves over longer ones, too.
            while step < abs(far_step) / STEP_GROWTH_FACTOR and (lag.any() or step <= shortest_step):
                if finite_values(again, far_step * d, -np.sign(far_step) * step * d) is not None:
                    before, last = last, self._again()
                    lag = np.fmax(lag, np.abs(last - before))  # a drift from call to call is not a lag
                step *= STEP_GROWTH_FACTOR
        self.observations.change_on_return = np.maximum(change, lag)
        return lag

    def in_frame(self, frame: Frame) -> Neighbourhood:
        """Return the same in other coordinates."""
        return Neighbourhood(
            self.evaluator,
            frame,
            self.point,
            self.base_evaluation,
            pairs=self.pairs,
            hold_modes=self._holds,
            is_repeatable=self._is_repeatable,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the perturbed variables."""
        return (*self.frame.selection.signals.names, *self.model.inputs.names)

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the observed quantities: rates and outputs."""
        return (*(f"der({name})" for name in self.model.states.names), *self.model.outputs.names)

    def at(self, displacement: FloatArray, *, again: bool = False, unwrapped: bool = True) -> FloatArray:
        """Return rates and outputs at a displacement (P + nu,) on the manifold; ``again`` evaluations the model anew.

        Outputs that are angles and wrap at the point are continued beyond it where ``unwrapped``.
        """
        border = self.observations.border
        if border < np.inf and self._sizes(displacement).max() >= border:
            raise ModelError("The model is not evaluated so far from the point: an earlier evaluation there failed.")
        try:
            t, x = self.point.time, self.point.states
            u = self.point.inputs + displacement[self.p :]
            moved = displacement if self._moves else displacement[: self.p]
            # Where inputs alone move, the states keep their values to the last bit.
            if np.count_nonzero(moved):
                solved = self._solved.pop(displacement.tobytes(), None)
                x = self._displace(displacement, u) if solved is None else solved
            evaluate = self.evaluator.evaluate_again if again else self.evaluator.evaluate
            visit = evaluate(t, x, u)
            if len(self._indicators) and (crossed := self._find_crossed_indicators(displacement, t, x, u)):
                if self._holds:
                    self.observations.crossed_events.update(crossed)
                else:
                    raise EventCrossingError(f"event indicator {crossed[0] + 1} changes sign")
            outputs = self._unwrap(visit.outputs, displacement) if unwrapped else visit.outputs
            return np.concatenate((visit.derivatives, outputs))
        except ModelError as error:
            if error.costs_start and (size := float(self._sizes(displacement).max())) >= MAX_UNTRIED_STEP_SIZE:
                self.observations.border = min(border, size)
            raise

    def _unwrap(self, outputs: FloatArray, displacement: FloatArray) -> FloatArray:
        """Return outputs at a displacement; those that are angles and wrap at the point are continued beyond it."""
        part = min(NEAR_STEP_SIZE / max(float(self._sizes(displacement).max(initial=0.0)), NEAR_STEP_SIZE), 1.0)
        close = partial(self.at, part * displacement, unwrapped=False)
        return self.observations.angles.unwrap(outputs.copy(), lambda: close()[self.n :])

    def evaluate_ahead(self, displacements: Sequence[FloatArray]) -> None:
        """Evaluate the model at displacements that :meth:`at` is asked for next, together where that is faster."""
        # Event indicators are read where the model stands: it would have to return to each point. Beyond the border
        # of a model that fails there, :meth:`at` evaluates no point.
        if not self.model.batches or len(self._indicators) or self.observations.border < np.inf:
            return
        self._displace_ahead(displacements)
        points: list[tuple[float, FloatArray, FloatArray]] = []
        for displacement in displacements:
            u = self.point.inputs + displacement[self.p :]
            moved = displacement if self._moves else displacement[: self.p]
            x = self.point.states
            if np.count_nonzero(moved):
                key = displacement.tobytes()
                try:
                    x = self._solved[key] if key in self._solved else self._displace(displacement, u)
                except (ModelError, NumericalError):
                    # :meth:`at` meets the same failure, and its caller decides.
                    return
                # Without constraints nothing was solved for that is worth keeping.
                if self.frame.parametrization.rows:
                    self._solved[key] = x
            points.append((self.point.time, x, u))
        self.evaluator.evaluate_ahead(points)

    def _displace_ahead(self, displacements: Sequence[FloatArray]) -> None:
        """Solve for the states at displacements together where the model evaluates its constraints together."""
        parametrization, p = self.frame.parametrization, self.p
        if not parametrization.rows or self.model.constraints.analytic.all():
            return
        new = {d.tobytes(): d for d in displacements if d[:p].any() and d.tobytes() not in self._solved}
        # One gains nothing. Where inputs move the manifold, which is rare, points are solved for one after the other.
        if self._moves or len(new) < 2:
            return
        together = np.array(list(new.values()))
        # A displacement that is not reached with the others is sought alone.
        with suppress(ModelError, NumericalError, np.linalg.LinAlgError):
            x = parametrization.psi_together(self.frame.y0 + together[:, :p], self.point.inputs + together[:, p:])
            if x is not None:
                self._solved.update(zip(new, x, strict=True))

    def _displace(self, displacement: FloatArray, u: FloatArray) -> FloatArray:
        """Return the states (N,) on the manifold at a displacement, with inputs u."""
        return self.frame.parametrization.psi(self.frame.y0 + displacement[: self.p], inputs=u)

    def _find_crossed_indicators(self, displacement: FloatArray, *point: Any) -> list[int]:
        """Return the event indicators that change sign at a point; none are read where it is too near for that."""
        sizes = self._sizes(displacement)
        observations = self.observations
        if (sizes <= ABRUPT_RATE_FACTOR * observations.reach).all() and ABRUPT_RATE_FACTOR * (
            observations.approach @ sizes
        ) < 1.0:
            return []
        values, at_point = read_event_indicators(self.model, *point), self._indicators
        # Only a column that moves alone tells how fast it leads to an event.
        if np.count_nonzero(sizes) == 1:
            j, way = int(sizes.argmax()), np.maximum(np.abs(at_point), MIN_INDICATOR_DISTANCE)
            pace = (np.abs(values - at_point) / way).max() / sizes[j]
            observations.approach[j] = max(observations.approach[j], pace)
            observations.reach[j] = max(observations.reach[j], sizes[j])
        return np.flatnonzero((values > 0) != (at_point > 0)).tolist()

    def _sizes(self, displacement: FloatArray) -> FloatArray:
        return np.abs(displacement) / self.scales

    def terms(self, slope: FloatArray) -> FloatArray:
        """Return the size of the terms that each row sums, (r,), as far as its largest scaled slope (r,) tells."""
        # Where terms cancel a rate is compared with its state's size times the fastest so far, an output with its own.
        states, outputs = self._row_sizes
        observations = self.observations
        observations.fastest_rate = max(observations.fastest_rate, float((slope[: self.n] / states).max(initial=0.0)))
        return np.concatenate((states * observations.fastest_rate, outputs))

    def with_exact_rows(self, jacobian: Slopes) -> Slopes:
        """Write rows that are exact, in place: rates of positions, outputs that are states or inputs."""
        J, error, frame, n, p = jacobian.J, jacobian.error, self.frame, self.n, self.p
        rows, states = list(self.pairs), list(self.pairs.values())
        for row, origin in self.model.copies.items():
            if origin.kind == "state":
                rows.append(n + row)
                states.append(origin.index)
            else:
                for part in (J, error, jacobian.jump, jacobian.bend):
                    part[n + row] = 0.0
                J[n + row, p + origin.index] = 1.0
        J[rows, :p], J[rows, p:] = frame.T[states], frame.x_u[states]
        error[rows, :p], error[rows, p:] = frame.parametrization.derivative_error[states], 0.0
        jacobian.jump[rows], jacobian.bend[rows] = 0.0, 0.0
        return jacobian

    def by_differences(self, options: Differences, columns: list[int] | None = None) -> Slopes:
        """Difference all columns, or some, moving those together that no row sees together."""
        chosen = list(range(self.p + self.k)) if columns is None else columns
        pattern = self._find_pattern() if columns is None else None
        groups = [] if pattern is None else pattern.column_groups
        if pattern is not None and len(groups) < len(chosen):
            separate = pattern.separate(self.along_groups(groups, options), self.measure_groups(groups))
            slope, size = pattern.add_terms(separate.J, self.mixed_direction)
            error, _ = pattern.add_terms(separate.error, self.mixed_direction)
            if self.confirms(slope, size, error, options):
                return separate
        jacobian = self.along_groups([[j] for j in chosen], options)
        return replace(jacobian, narrow={(i, chosen[c]): ends for (i, c), ends in jacobian.narrow.items()})

    def measure_groups(self, groups: Sequence[Sequence[int]]) -> FloatArray:
        """Return by how much each column (P + nu,) moves in the direction of its group."""
        sizes = np.ones(self.p + self.k)
        for group in groups:
            if len(group) > 1:
                sizes[group] = self.scales[group]
        return sizes

    @cached_property
    def mixed_direction(self) -> FloatArray:
        """One random direction through all columns (P + nu,), along which a declared structure is confirmed."""
        return np.asarray(np.random.default_rng(1974).uniform(0.5, 1.0, len(self.scales)) * self.scales)

    def confirms(self, slope: FloatArray, size: FloatArray, error: FloatArray, options: Differences) -> bool:
        """Compare with differences along :attr:`mixed_direction`: the declared structure is a claim.

        ``slope`` (r,) is what derivatives by groups say of it, ``size`` that of their terms.
        """
        direction = self.mixed_direction
        # Where values are noisy, errors are that noise over steps of a few percent. With an error of order four the
        # fourth root of the noise is about the best step.
        noise = np.median(error[size > 0] / size[size > 0]) if size.any() else 0.0
        step = float(np.clip(noise**0.25, CONFIRMATION_STEP, STEP_IN_NOISE))
        size = size + SMALL_ROW_FRACTION * np.max(size, initial=0.0)
        count, extrapolating = len(self.base), replace(options, order=4)
        unit, nothing = np.ones(count), np.zeros(count)
        line = DifferenceSetting(
            lambda _, s: self.at(s * direction), self.base, np.ones(1), nothing, unit, extrapolating
        )
        is_confirmed, has_value = np.zeros(count, dtype=bool), False
        # Noise of single rows needs longer steps; a kink near the point, at which derivatives end, needs shorter ones.
        for h in (step, STEP_IN_NOISE, CLOSER_STEP_FACTOR * step):
            self.evaluate_ahead([s * direction for s in list_first_steps(h, extrapolating)])
            try:
                measured = difference_at_step(line, 0, h)
            except NumericalError:
                continue
            has_value = True
            bend = np.abs(measured.curvature) / np.where(size > 0, size, 1.0)
            truncation = size * truncation_error(bend, measured.h, extrapolating)
            allowed = GROUP_AGREEMENT_TOLERANCE * size + 10 * error
            # Ten times: errors are estimates. A long step excuses no more than the tolerance does.
            is_confirmed |= np.abs(measured.D - slope) <= allowed + np.minimum(10 * truncation, allowed)
            if is_confirmed.all():
                return True
        # At an event or at the border of the domain there is nothing to compare.
        return not has_value and options.side is not None

    def along_groups(self, groups: list[list[int]], options: Differences) -> Slopes:
        """Measure one column per group, (r, groups); a group of several moves each in its own scale."""
        directions = np.zeros((len(groups), self.p + self.k))
        sizes = np.ones(len(groups))
        for g, group in enumerate(groups):
            directions[g, group] = 1.0 if len(group) == 1 else self.scales[group]
            sizes[g] = self.scales[group[0]] if len(group) == 1 else 1.0

        def line(g: int, s: float) -> FloatArray:
            try:
                return self.at(s * directions[g])
            except EventCrossingError as error:
                side = "left" if s < 0 else "right"
                free = [other for other in ("left", "right") if not self._has_event(directions, abs(s), other)]
                alone = np.diag(directions[g])  # of those that move together, the event belongs to some
                moved = [j for j in groups[g] if self._has_event(alone[[j]], abs(s), side)] or groups[g]
                raise EventCrossingError(
                    f"A state event lies at the point: {error} as soon as "
                    f"{' and '.join(repr(self.columns[j]) for j in moved)} moves to the {side}"
                    f"{_suggest_remedy(options.side, free)}",
                    variable=self.columns[moved[0]],
                ) from None

        def announce(steps: Sequence[tuple[int, float]] = (), points: Sequence[FloatArray] = ()) -> None:
            self.evaluate_ahead([*(s * directions[g] for g, s in steps), *(point @ directions for point in points)])

        around = None
        # Differences of order two are quick comparisons: noise and lag are measured for the careful ones.
        if options.order == 4:
            sizes_moved = directions.sum(axis=0)
            at_point = np.concatenate((self.frame.y0, self.point.inputs)) / (sizes_moved + (sizes_moved == 0))
            values = np.array([np.abs(at_point[group]).max() for group in groups])
            far_values = self._revisit(choose_direction(sizes) @ directions)
            around = Surroundings(lambda s: self.at(s @ directions), values, *far_values, self.lag)
        try:
            return slopes(line, self.base, sizes, options, self.terms, around, announce)
        except EventCrossingError:
            # Its text names the variable already.
            raise
        except NumericalError as error:
            name = " and ".join(f"'{self.columns[j]}'" for j in groups[int(error.variable or 0)])
            raise NumericalError(f"{error} The variable that was moved is {name}.", variable=name.strip("'")) from None

    def _has_event(self, directions: FloatArray, step: float, side: str) -> bool:
        """Whether an event lies on this side of the point along one of the directions."""
        sign = 1.0 if side == "right" else -1.0
        for direction in directions:
            try:
                self.at(sign * step * direction)
            except EventCrossingError:
                return True
            except (ModelError, NumericalError):
                continue
        return False

    def _find_pattern(self) -> TangentPattern | None:
        """Return which rows may depend on which columns, as declared; None where nothing is declared, or one column."""
        connections = self.frame.invariants.connections
        if connections is None or self.p + self.k < 2:
            return None
        return find_tangent_pattern(self.model, connections, self.frame.T, self.frame.x_u)


def _suggest_remedy(side: str | None, free: list[str]) -> str:
    """Return how a sentence ends that says where an event is: which ``side`` was asked for, and which are free."""
    hold = "keep the present mode with hold_modes=True"
    if not free:
        return f". Events lie on both sides of the point: {hold}, or move the point."
    other = " or ".join(f"one_sided={side!r}" for side in free)
    if side is not None:
        return f", the requested side. Use the other one with {other}, {hold}, or move the point."
    return f". The model has two derivatives there: choose one with {other}, {hold}, or move the point."
