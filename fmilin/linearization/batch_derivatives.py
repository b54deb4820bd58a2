"""Derivatives at the points of a batch, in the coordinates of a reference, and estimates of their errors."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.linearization.evaluation import evaluate
from fmilin.linearization.reference import Mask, Reference
from fmilin.manifold.comparison import (
    SMALL_STEP,
    compare_directional_derivatives,
    confirm_procedure,
    random_direction,
)
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.differentiation import row_sizes
from fmilin.manifold.frame import CoordinateChoice, choose_coordinates, constraint_manifold
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.point_arrays import PointBatch
from fmilin.model.evaluator import POINTS_AT_ONCE, PointEvaluator
from fmilin.model.interface import OperatingPoint, TangentBatch
from fmilin.numerics.differences.richardson import Slopes
from fmilin.numerics.rounding import estimate_rounding, move_some_bits
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS

DERIVATIVES_AT_ONCE = 2**18  # that are computed together: what fits into the processor's cache
MAX_DIFFERENCED_NUMBERS = 2**16  # the same of differences, of which arrays have several values each
LARGEST_DIFFERENCED_BATCH = 64  # points: more take no less time each, and one in doubt stops the others
POINTS_PER_SAMPLE = 32  # of so many points one shows what rounding changes, and what a difference leaves open


def limit_batch(reference: Reference) -> int:
    """Return how many points are linearized together at most."""
    model = reference.model
    if reference.is_differenced:
        rows = len(model.states) + len(model.outputs) + len(model.constraints)
        columns = len(model.states) + len(model.inputs)
        return max(1, min(LARGEST_DIFFERENCED_BATCH, MAX_DIFFERENCED_NUMBERS // max(1, rows * columns)))
    derivatives = (len(model.states) + len(model.outputs)) * (len(reference.independent) + len(model.inputs))
    return max(POINTS_AT_ONCE, DERIVATIVES_AT_ONCE // max(1, derivatives))


class DirectionalDifference:
    """A difference along one direction at some points of a batch, which is evaluated when it is read, or before."""

    def __init__(
        self,
        reference: Reference,
        points: PointBatch,
        tangents: TangentBatch,
        geometry: LocalParametrization,
        samples: NDArray[np.intp],
    ) -> None:
        """Take ``points``, those with the numbers ``samples`` of the batch of ``tangents`` and ``geometry``."""
        independent = reference.independent
        p, T = len(independent), tangents.T[samples]
        self._reference, self._tangents, self._samples = reference, tangents, samples
        self._points, self._scales = points, geometry.scales[samples]
        self._relative_errors = geometry.relative_error_of_derivatives[samples]
        direction = random_direction(self._scales.shape[1]) * self._scales
        # Both sides are computed together: compiled code takes hardly longer for some more points.
        displacement = np.concatenate((SMALL_STEP * direction, -SMALL_STEP * direction))
        both = np.concatenate((np.arange(len(points)),) * 2)
        guess = points.states[both] + (T[both] @ displacement[:, :p, None])[..., 0]
        guess[:, independent] = points.states[both][:, independent] + displacement[:, :p]
        moved, self._is_reached = geometry.reach(guess, samples[both], points.inputs[both] + displacement[:, p:])
        self._evaluation = geometry.equations.expect(moved)

    def measure_gaps(self) -> FloatArray:
        """Return gaps to the derivatives that are not noise, (k, N + ny), infinite where they count."""
        tangents, samples, reference = self._tangents, self._samples, self._reference
        J = np.concatenate((tangents.derivatives[samples], tangents.outputs[samples]), axis=1)
        base = np.concatenate((tangents.rates[samples], tangents.values[samples]), axis=1)
        values, count = np.concatenate(self._evaluation.read(), axis=1), len(samples)
        ahead, behind, is_reached = values[:count], values[count:], self._is_reached[:count] & self._is_reached[count:]
        precision = EPS / SMALL_STEP if reference.facts.precision is None else reference.facts.precision
        agrees, gaps = compare_directional_derivatives(J, self._scales, (ahead, base, behind), precision)
        if reference.has_exact_procedure:
            gaps = np.zeros_like(gaps)
            if tangents.smooth and not reference.varied:
                agrees |= is_reached & ~agrees & self._confirm_within_noise(J, is_reached & ~agrees)
        return np.where((is_reached & agrees)[:, None], gaps, np.inf)

    def _confirm_within_noise(self, J: FloatArray, is_disputed: Mask) -> Mask:
        """Return at which disputed points noise explains the gap of derivatives J (k, N + ny, P + nu).

        It is judged as at a point that is linearized alone. At the first other one the rest remain in doubt.
        """
        is_confirmed = np.zeros_like(is_disputed)
        for k in np.flatnonzero(is_disputed).tolist():
            none, error = np.zeros_like(J[k]), self._relative_errors[k] * row_sizes(J[k], self._scales[k])
            exact = Slopes(J[k], error, none, none)
            with suppress(FmilinError):
                is_confirmed[k] = confirm_exact_procedure(self._reference, self._points[k : k + 1], exact)
            if not is_confirmed[k]:
                break
        return is_confirmed


def confirm_exact_procedure(reference: Reference, points: PointBatch, exact: Slopes) -> bool:
    """Return whether differences confirm exact derivatives at a batch of one point, within their measured noise."""
    evaluator, selection = PointEvaluator(reference.point_model), reference.selection
    point = OperatingPoint(float(points.time[0]), points.states[0], points.inputs[0])
    manifold = constraint_manifold(evaluator, point, reference.facts, ())
    frame = choose_coordinates(manifold, CoordinateChoice(kind=reference.request.coordinates, previous=selection))
    if list(frame.selection.independent or ()) != reference.independent:
        return False
    nearby = Neighbourhood(evaluator, frame, point, evaluate(evaluator, point))
    return confirm_procedure(nearby, exact, is_smooth=True) is not None


class DifferentiatedBatch(NamedTuple):
    """The derivatives of a model at a batch of points."""

    tangents: TangentBatch
    geometry: LocalParametrization  # the manifold near the points
    derivatives: TangentDerivatives  # with errors of their rows
    difference: DirectionalDifference | None  # that they are still to be compared with


def differentiate_batch(
    evaluator: PointEvaluator, reference: Reference, points: PointBatch, tangents: TangentBatch | None = None
) -> DifferentiatedBatch:
    """Return what the model answers at points, with derivatives and their errors.

    ``tangents`` is what it answers, where that was computed before. The difference at one point is evaluated with the
    next points, those along its motion, say.
    """
    if reference.is_differenced:
        return difference_batch(evaluator, reference, points)
    tangents, rounding = differentiate_with_rounding(reference, points, tangents)
    evaluator.evaluations += len(points) + (0 if rounding is None else len(rounding.again.rates))
    if not reference.has_exact_procedure:
        evaluator.directions += points.states.size + points.inputs.size
    geometry = LocalParametrization.of_batch(evaluator, points, tangents, reference.rows)
    derivatives = TangentDerivatives.of_batch(tangents, geometry)
    errors = estimate_row_errors(tangents, geometry, derivatives, rounding)
    difference = None
    is_trusted = reference.request.derivatives != "auto" or (tangents.smooth and reference.facts.procedure)
    if reference.is_checked and not is_trusted:
        # A kink may lie at any point.
        samples = choose_samples(len(points)) if tangents.smooth else np.arange(len(points))
        difference = DirectionalDifference(reference, points[samples], tangents, geometry, samples)
        if len(points) > 1:
            gaps, difference = difference.measure_gaps(), None
            errors = np.maximum(errors, _spread_samples(gaps, len(points)) if tangents.smooth else gaps)
    return DifferentiatedBatch(tangents, geometry, derivatives.with_row_errors(errors), difference)


def difference_batch(evaluator: PointEvaluator, reference: Reference, points: PointBatch) -> DifferentiatedBatch:
    """Return differences at points with their errors, which are infinite where a point is to be examined alone."""
    measured = reference.measure(evaluator, points)
    tangents = measured.tangents
    geometry = LocalParametrization.of_batch(
        evaluator,
        points,
        tangents,
        reference.rows,
        H_error=measured.gradient_errors,
        differencing=reference.differencing,
    )
    derivatives = TangentDerivatives.of_batch(tangents, geometry, "differences")
    errors = (measured.errors * geometry.scales[:, None]).max(axis=2, initial=0.0)
    if geometry.dependent_states:
        errors = errors + (measured.along_states @ geometry.T_errors).max(axis=2, initial=0.0)
    errors[measured.is_doubtful] = np.inf
    return DifferentiatedBatch(tangents, geometry, derivatives.with_row_errors(errors), None)


def choose_samples(count: int) -> NDArray[np.intp]:
    """Return which of so many points show what rounding changes, and what a difference leaves open."""
    if count <= 3:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, max(3, count // POINTS_PER_SAMPLE)).astype(int))


@dataclass(frozen=True, eq=False)
class RoundingSamples:
    """Derivatives at some points of a batch, computed again some bits further on, on one side or on both."""

    samples: NDArray[np.intp]  # (j,), numbers of the points
    again: TangentBatch  # at j points, or at 2 j

    def measure(self, tangents: TangentBatch, scales: FloatArray) -> FloatArray:
        """Return what rounding changes in rows of derivatives, (j, N + ny), in sizes (k, P + nu) of y and u."""
        count, columns = len(self.samples), scales[self.samples, None]
        rows = []
        pairs = (self.again.derivatives, tangents.derivatives), (self.again.outputs, tangents.outputs)
        for other, J in pairs:
            sides = [other[i : i + count] for i in range(0, len(other), count)]
            change = estimate_rounding([J[self.samples], *sides])
            rows.append((change * columns).max(axis=2, initial=0.0))
        return np.concatenate(rows, axis=1)


def differentiate_with_rounding(
    reference: Reference, points: PointBatch, tangents: TangentBatch | None
) -> tuple[TangentBatch, RoundingSamples | None]:
    """Return the derivatives at points, and what shows their rounding where it has to be measured.

    The points some bits further on are computed in the same call: compiled code takes hardly longer for some more.
    """
    procedure = reference.procedure if reference.is_checked else None
    is_measured = reference.is_checked and (reference.facts.procedure or (procedure is not None and procedure.smooth))
    if not is_measured:
        return reference.differentiate(points) if tangents is None else tangents, None
    count = len(points)
    samples = choose_samples(count)
    x = points.states[samples]
    bits = move_some_bits(x, reference.model.states.scales(x)) - x
    both_sides = procedure is not None and procedure.points > 1  # as at one point
    sides = (x + bits, x - bits) if both_sides else (x + bits,)
    moved = replace(points[np.tile(samples, len(sides))], states=np.concatenate(sides))
    if tangents is not None:
        return tangents, RoundingSamples(samples, reference.differentiate(moved))
    all_tangents = reference.differentiate(points.joined(moved))
    return all_tangents[:count], RoundingSamples(samples, all_tangents[count:])


def estimate_row_errors(
    tangents: TangentBatch,
    geometry: LocalParametrization,
    derivatives: TangentDerivatives,
    rounding: RoundingSamples | None,
) -> FloatArray:
    """Return estimated errors of the rows of derivatives, in sizes of y and u, shape (k, N + ny).

    A difference along one direction may show larger ones.
    """
    sizes = np.concatenate((derivatives.rate_sizes.largest, derivatives.output_sizes.largest), axis=1)
    relative = geometry.relative_error_of_derivatives
    errors = sizes * relative[:, None]
    if rounding is not None:
        errors = np.fmax(errors, _spread_samples(rounding.measure(tangents, geometry.scales), len(errors)))
    return errors


def _spread_samples(rows: FloatArray, count: int) -> FloatArray:
    """Return for each of so many points the largest of the three nearest samples, which ``rows`` are of."""
    if len(rows) == count <= 1:
        return rows
    padded = np.pad(rows, ((1, 1), (0, 0)), mode="edge")
    largest = np.fmax(np.fmax(padded[:-2], padded[1:-1]), padded[2:])
    return np.asarray(largest[np.linspace(0, len(rows) - 1, count).round().astype(int)])
