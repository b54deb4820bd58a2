"""The linearization of a model without constraints at one point after another, in the coordinates of a reference.

It is :func:`fmilin.linearization.algorithm.compute_batch` with its checks for one point where all states are
coordinates, T = I and no condition number is left to compute, in arrays without an axis over points: a batch of one
spends nine tenths of its time on the objects of a batch. The same is evaluated and compared, in two messages to an FMU.
Where a check would have a doubt, where eigenvalues would be compared, or where the model answers something unusual,
there is no result here, and the batch of one decides.

It skips checks of a batch that cannot fail here:

- those of constraints, as there are none, and of conditioning, as (R; H) is a permutation;
- the accuracy of the entries as long as no difference shows an error: errors are 9 eps of the largest entry of a row
  then, which is less than the check allows;
- the search for other coordinates in which a motion is steady: without constraints there are none;
- singular values for states that depend on each other, near a matrix that is regular: see :class:`RegularColumns`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fmilin.diagnostics import Remark, model_remarks, rate_of_change
from fmilin.errors import FmilinError
from fmilin.linear_model.accuracy import comparable_sizes
from fmilin.linear_model.model import LinearizationMethod, LinearModel
from fmilin.linearization.checks.motion import change_remarks, motion_remark
from fmilin.linearization.evaluation import MAX_USABLE_SIZE
from fmilin.linearization.reference import Reference
from fmilin.linearization.regular_columns import RegularColumns
from fmilin.linearization.repeated_fields import MatrixRowErrors, ModelSignals, RepeatedFields
from fmilin.manifold.comparison import SMALL_STEP, judge_difference, random_direction
from fmilin.manifold.continued_motion import STEP
from fmilin.manifold.selection import Selection
from fmilin.manifold.unconstrained_motion import (
    AT_REST_CODE,
    NOT_DECIDED_CODE,
    FreePoint,
    MotionComparison,
    find_fastest_state,
    plan_comparison,
)
from fmilin.manifold.uniform import COMPARISON_TIME, MAX_TURNING_COORDINATES, Change
from fmilin.model.capabilities import has_graph
from fmilin.model.interface import Evaluation, OperatingPoint
from fmilin.model.point_derivatives import HasPointDerivatives, ValuesWithJacobian
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import CONSTANT_JACOBIAN_TOLERANCE, EPS, INACCURATE_ENTRY_ERROR

RELATIVE_ERROR = 8 * EPS + EPS  # of exact derivatives along all states: of the products, and of T
MAX_PAUSE = 64  # calls without an attempt, however often one was in vain


@dataclass(frozen=True, eq=False)
class AnsweredPoint:
    """A point with the answers of the model and their sizes."""

    time: float
    states: FloatArray
    inputs: FloatArray
    answer: ValuesWithJacobian
    scales: FloatArray  # of states, then inputs
    entries: FloatArray  # the size of the derivatives in these, (N + ny, N + nu)
    largest: FloatArray  # of each of their rows
    terms: FloatArray  # the sum of each of their rows


@dataclass(frozen=True, eq=False)
class NearbyPoints:
    """Points near one that are evaluated in one message, the point itself last."""

    answers: Evaluation
    motion: int  # how many of them are for the motion, or show whether the model depends on time
    along_direction: slice  # those on both sides along one direction through all columns


class Examination(NamedTuple):
    """The results of evaluations near a point."""

    errors: FloatArray  # (N + ny,), of rows of derivatives
    change: Change  # of A along the motion
    evaluations: int


class RepeatedLinearization:
    """The linearization of points near a reference, where all states are coordinates."""

    def __init__(self, reference: Reference, model: HasPointDerivatives, selection: Selection) -> None:
        """Take a reference with regular columns of [A B], and its coordinates."""
        self.selection = selection
        self._reference, self._differentiable, self._model = reference, model, reference.model
        linear, states, inputs = reference.linear, reference.model.states, reference.model.inputs
        count = len(states)
        self._count = count
        self._nominal_sizes = states.scales()
        scales = np.concatenate((states.scales(linear.y0), inputs.scales(reference.point.inputs)))
        self._regular = RegularColumns(np.hstack((linear.A, linear.B)), scales, reference.regular_columns)
        self._compares = reference.request.derivatives == "auto"
        self._direction = random_direction(len(scales))
        precision = reference.facts.precision
        self._precision = EPS / SMALL_STEP if precision is None else precision
        pairs = reference.facts.pairs or {}
        self._positions = np.array(list(pairs), dtype=np.intp)
        self._speeds = np.array(list(pairs.values()), dtype=np.intp)
        # rows and columns of an entry, and where the error of its row stands among those along states, then inputs
        total = len(linear.A) + len(linear.C)
        path = [(i + count * (name in "CD"), j + count * (name in "BD"), name in "BD") for name, i, j in reference.path]
        self._path_rows = np.array([row for row, _, _ in path], dtype=np.intp)
        self._path_columns = np.array([column for _, column, _ in path], dtype=np.intp)
        self._path_errors = np.array([row + total * along_inputs for row, _, along_inputs in path], dtype=np.intp)
        zeros = reference.zeros
        self._zeros = {
            "A": zeros[:count, :count],
            "B": zeros[:count, count:],
            "C": zeros[count:, :count],
            "D": zeros[count:, count:],
        }
        self._attempts_in_vain = 0  # one after the other
        self._pause = 0  # calls from now on without an attempt

    @classmethod
    def of_reference(cls, reference: Reference) -> RepeatedLinearization | None:
        """Return that of a reference; None where points need more than it computes."""
        model = reference.model
        if not isinstance(model, HasPointDerivatives) or len(model.constraints) or has_graph(model):
            return None
        if reference.is_differenced:
            return None
        if not (reference.is_usable and reference.is_checked and reference.agrees and reference.request.seek_steady):
            return None
        facts = reference.facts
        if reference.has_exact_procedure or facts.mode or reference.has_point_notes or not model.batches:
            return None
        count = len(model.states)
        selection = reference.selection
        if selection is None or not count or reference.independent != list(range(count)):
            return None
        if not reference.regular_columns:
            return None
        return cls(reference, model, selection)

    def linearize(self, point: OperatingPoint) -> LinearModel | None:
        """Return the linear model at a point; None where a batch of one is to decide."""
        if self._pause or point.slope_changes is not None:
            self._pause = max(0, self._pause - 1)
            return None
        try:
            with np.errstate(all="ignore"):
                linear = self._linearize(point)
        except FmilinError:
            linear = None
        if linear is not None:
            self._attempts_in_vain = 0
        else:
            self._attempts_in_vain += 1
            self._pause = min(2**self._attempts_in_vain - 2, MAX_PAUSE)  # one doubt may be that of this point
        return linear

    def _linearize(self, point: OperatingPoint) -> LinearModel | None:
        at = self._answer(point)
        if at is None:
            return None
        fastest = find_fastest_state(at.answer.rates, at.scales[: self._count], at.terms[: self._count])
        examined = None if fastest == NOT_DECIDED_CODE else self._examine(at, fastest)
        if examined is None:
            return None
        row_errors = self._find_row_errors(at, examined.errors)
        if not (self._are_states_independent(at, row_errors) and self._is_connected(at, row_errors)):
            return None
        motion = self._describe_motion(at, fastest, examined.change)
        remarks = (*point.remarks, *motion, *model_remarks(self._model.notes))
        return self._build(point, at, row_errors, remarks, 1 + examined.evaluations)

    def _examine(self, at: AnsweredPoint, fastest: int) -> Examination | None:
        """Evaluate the model near a point, and compare; None where it is not as expected."""
        errors = RELATIVE_ERROR * at.largest
        comparison = self._plan_motion(at, errors, fastest)
        nearby = self._evaluate_nearby(at, comparison, is_at_rest=fastest == AT_REST_CODE)
        gaps = None if nearby is None or not self._repeats_itself(at, nearby) else self._measure_gaps(at, nearby)
        if nearby is None or gaps is None:
            return None
        evaluations = len(nearby.answers.derivatives)
        if gaps.any():
            errors = np.maximum(errors, gaps)
            if not self._are_accurate(at, errors):
                return None
            if comparison is not None:  # some of the motion may be noise
                comparison = self._plan_motion(at, errors, fastest)
                nearby = self._evaluate_nearby(at, comparison, is_at_rest=False)
                if nearby is None:
                    return None
                evaluations += len(nearby.answers.derivatives)
        # How A changes with time at rest is a question for the whole procedure.
        if fastest == AT_REST_CODE and self._depends_on_time(nearby):
            return None
        change = self._measure_change(comparison, nearby)
        return None if change is None else Examination(errors, change, evaluations)

    def _measure_change(self, comparison: MotionComparison | None, nearby: NearbyPoints) -> Change | None:
        """Return how A changes along the motion; None where eigenvalues are to be compared."""
        if comparison is None:
            return Change.not_compared(1)
        part, when = comparison.measure_change(nearby.answers.derivatives[: nearby.motion])
        is_changing = part > CONSTANT_JACOBIAN_TOLERANCE and self._count <= MAX_TURNING_COORDINATES
        if is_changing and comparison.may_turn(self._model.states.units):
            return None
        return Change(np.array([part]), np.array([when]), np.zeros(1, dtype=bool))

    def _answer(self, point: OperatingPoint) -> AnsweredPoint | None:
        """Return the model's answer at a point; None where it has none, or one that is not finite."""
        model, count = self._model, self._count
        x, u = np.array(point.states, dtype=np.float64), np.array(point.inputs, dtype=np.float64)
        answer = self._differentiable.differentiate_point(point.time, x, u)
        if answer is None:
            return None
        scales = np.concatenate((model.states.scales(x), model.inputs.scales(u)))
        entries = np.abs(answer.J)
        entries *= scales
        largest, terms = entries.max(axis=1), entries.sum(axis=1)
        if not math.isfinite(float(terms.sum()) + float(np.abs(answer.rates).sum())):
            return None
        answer.J[:count] += 0.0  # a zero is printed without a sign
        return AnsweredPoint(point.time, x, u, answer, scales, entries, largest, terms)

    def _plan_motion(self, at: AnsweredPoint, errors: FloatArray, fastest: int) -> MotionComparison | None:
        """Return where A is compared along the motion; None at rest, and where it is not compared."""
        if fastest == AT_REST_CODE:
            return None
        count, rates = self._count, at.answer.rates
        point = FreePoint(
            states=at.states,
            rates=rates,
            A=at.answer.J[:count, :count],
            entries=at.entries[:count, :count],
            errors=errors[:count],
            largest=at.largest[:count],
            sizes=at.scales[:count],
            relative_rates=np.abs(rates) / self._nominal_sizes,
        )
        return plan_comparison(point)

    def _evaluate_nearby(
        self, at: AnsweredPoint, comparison: MotionComparison | None, *, is_at_rest: bool
    ) -> NearbyPoints | None:
        """Evaluate the model along the motion, along one direction, and at the point again; None if it cannot be."""
        count = self._count
        states, times = np.empty((0, count)), np.empty(0)
        if comparison is not None:
            states, times = comparison.states, comparison.later
        elif is_at_rest and not self._model.autonomous:
            states = np.array([at.states + STEP * at.scales[:count]] * 2)
            times = np.array([0.0, self._choose_time(at)])
        motion = len(states)
        sides = 2 * self._compares
        x, u = np.empty((motion + sides + 1, count)), np.empty((motion + sides + 1, len(at.inputs)))
        t = np.full(len(x), at.time)
        x[:motion], x[motion:] = states, at.states
        t[:motion] += times
        u[:] = at.inputs
        if self._compares:
            displacement = SMALL_STEP * (self._direction * at.scales)
            x[motion] += displacement[:count]
            x[motion + 1] -= displacement[:count]
            u[motion] += displacement[count:]
            u[motion + 1] -= displacement[count:]
        answers = self._model.evaluate_points(t, x, u)
        if not math.isfinite(float(np.abs(answers.derivatives).sum())):
            return None
        return NearbyPoints(answers, motion, slice(motion, motion + sides))

    def _choose_time(self, at: AnsweredPoint) -> float:
        """Return how much later the model is evaluated at rest: the time of the fastest eigenvalue, or of the last one.

        It only says how far to look ahead: that of another point serves as long as A is hardly another one.
        """
        if self._regular.eigenvalue_time is None:
            modulus = float(np.abs(np.linalg.eigvals(at.answer.J[: self._count, : self._count])).max())
            self._regular.eigenvalue_time = COMPARISON_TIME / modulus if modulus > 0 else COMPARISON_TIME
        return self._regular.eigenvalue_time

    def _depends_on_time(self, nearby: NearbyPoints) -> bool:
        """Whether any bit of the rates near a point at rest is another one later."""
        now, *later = nearby.answers.derivatives[: nearby.motion]
        return any((now != rates).any() for rates in later)

    def _repeats_itself(self, at: AnsweredPoint, nearby: NearbyPoints) -> bool:
        """Whether the model answers the same after all other evaluations, in numbers that say something."""
        first, again, rates = at.answer, nearby.answers, at.answer.rates
        if not ((again.derivatives[-1] == rates).all() and (again.outputs[-1] == first.outputs).all()):
            return False
        largest = max(float(np.abs(values).max(initial=0.0)) for values in (rates, first.outputs))
        return largest < MAX_USABLE_SIZE and bool((rates[self._positions] == at.states[self._speeds]).all())

    def _measure_gaps(self, at: AnsweredPoint, nearby: NearbyPoints) -> FloatArray | None:
        """Return what a difference along one direction shows of the errors (N + ny,); None where it disagrees."""
        if not self._compares:
            return np.zeros(len(at.largest))
        answers, sides = nearby.answers, nearby.along_direction
        ahead, behind = np.concatenate((answers.derivatives[sides], answers.outputs[sides]), axis=1)
        base = np.concatenate((at.answer.rates, at.answer.outputs))
        products = at.answer.J @ (self._direction * at.scales)
        # the rounding of a sum over all columns, and ten times as much inside of the model
        noise = 10 * len(at.scales) * self._precision * (at.largest + np.abs(base))
        agrees, gaps = judge_difference(products, (ahead, base, behind), at.largest, noise)
        return gaps if agrees.all() else None

    def _are_accurate(self, at: AnsweredPoint, errors: FloatArray) -> bool:
        """Whether errors (N + ny,) of rows are small relative to their largest entries."""
        sizes = np.concatenate((at.scales[: self._count], self._model.outputs.scales(at.answer.outputs)))
        return bool((errors <= INACCURATE_ENTRY_ERROR * comparable_sizes(at.largest, errors, sizes)).all())

    def _find_row_errors(self, at: AnsweredPoint, errors: FloatArray) -> MatrixRowErrors:
        """Return the errors of the rows of the matrices, as :func:`fmilin.linearization.assembly.find_row_errors`."""
        count = self._count
        of_T = EPS * at.scales[:count]
        along_states, along_inputs = errors.copy(), errors.copy()
        if len(self._positions):
            along_states[self._positions], along_inputs[self._positions] = of_T[self._speeds], 0.0
        for row, copy in self._model.copies.items():
            along_states[count + row] = of_T[copy.index] if copy.kind == "state" else 0.0
            along_inputs[count + row] = 0.0
        return MatrixRowErrors(
            along_states[:count], along_inputs[:count], along_states[count:], along_inputs[count:], of_T
        )

    def _are_states_independent(self, at: AnsweredPoint, errors: MatrixRowErrors) -> bool:
        """Whether every combination of the states can change, beyond doubt."""
        count = self._count
        return self._regular.are_regular(
            at.answer.J[:count], at.entries[:count], np.maximum(errors.A, errors.B), at.scales, at.largest[:count]
        )

    def _is_connected(self, at: AnsweredPoint, errors: MatrixRowErrors) -> bool:
        """Whether the entries of a path from an input to an output are larger than their errors."""
        row_errors = np.concatenate((errors.A, errors.C, errors.B, errors.D))[self._path_errors]
        return bool((at.entries[self._path_rows, self._path_columns] > row_errors).all())

    def _describe_motion(self, at: AnsweredPoint, fastest: int, change: Change) -> list[Remark]:
        if fastest == AT_REST_CODE:
            return []
        names = self._model.states.names
        motion = rate_of_change(names[fastest], float(at.answer.rates[fastest]), float(at.scales[fastest]))
        return change_remarks(motion_remark(motion, constrained=False), change)

    def _build(
        self,
        point: OperatingPoint,
        at: AnsweredPoint,
        row_errors: MatrixRowErrors,
        remarks: Sequence[Remark],
        evaluations: int,
    ) -> LinearModel:
        """Return the linear model, most fields of which are computed when they are read."""
        model, count, answer = self._model, self._count, at.answer
        own_point = replace(point, states=at.states, inputs=at.inputs, parameters=dict(point.parameters))
        signals = ModelSignals(model.states, model.inputs, model.outputs)
        coordinates = self.selection.signals
        source = RepeatedFields(signals, coordinates, own_point, answer, at.scales, row_errors, self._zeros)
        method = self._reference.linear.method
        J = answer.J.copy()
        return LinearModel.with_deferred_fields(
            source,
            A=J[:count, :count],
            B=J[:count, count:],
            C=J[count:, :count],
            D=J[count:, count:],
            f0=answer.rates.copy(),
            y0=at.states.copy(),
            full_states=model.states,
            inputs=model.inputs,
            outputs=model.wrapped_outputs,
            method=LinearizationMethod(method.derivatives, method.coordinates, evaluations, J.shape[1]),
            model=model.info,
            warnings=tuple(remarks),
            derivatives={},
        )
