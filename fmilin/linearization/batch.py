"""Linear models at many points at once: the steps of :mod:`fmilin.linearization.algorithm` with arrays.

The points are linearized in the coordinates of a reference, which was linearized alone. Checks look at all points
together; a point at which one of them has a doubt is linearized and examined alone, so that the same is said of a point
in a batch as of the point alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.linearization.assembly import Arrays, assemble_batch
from fmilin.linearization.batch_remarks import BatchRemarks, join_remarks
from fmilin.linearization.checks import CHECKS
from fmilin.linearization.checks.check import accept_batch, check_batch
from fmilin.linearization.context import LinearizedBatch, Mask
from fmilin.linearization.reference import Reference
from fmilin.manifold.batch_parametrization import POINTS_AT_ONCE, BatchParametrization, PointBatch
from fmilin.manifold.comparison import SMALL_STEP, compare_slopes, random_direction
from fmilin.manifold.motion import MotionBatch, find_motions
from fmilin.manifold.slopes import rounding_of, some_bits_further
from fmilin.model.interface import TangentBatch
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

DERIVATIVES_AT_ONCE = 2**18  # that are computed together: what fits into the processor's cache
POINTS_PER_SAMPLE = 32  # of so many points one shows what rounding changes, and what a difference leaves open


@dataclass(frozen=True, eq=False)
class BatchResult:
    """What is said of the linear models at k points, and which of them are to be examined alone."""

    diagnostics: BatchRemarks
    is_doubtful: Mask


def linearize_batch(
    reference: Reference, points: PointBatch, arrays: Arrays, tangents: TangentBatch | None = None
) -> BatchResult | None:
    """Write the linear models at points into arrays (k, ...), by name; None if the reference allows no batch.

    ``tangents`` are the derivatives at the points where they were computed before.
    """
    if not reference.is_usable:
        return None
    results = []
    try:
        with np.errstate(all="ignore"):
            if not reference.agrees:
                return None
            for part in _split(reference, len(points)):
                written = {name: array[part] for name, array in arrays.items()}
                derivatives = reference.differentiate(points[part]) if tangents is None else tangents[part]
                at = compute_batch(reference, points[part], written, derivatives)
                results.append(check_batch(CHECKS, at) if reference.is_checked else accept_batch(CHECKS, at))
    except (FmilinError, np.linalg.LinAlgError):
        return None
    diagnostics = join_remarks([remarks for remarks, _ in results])
    return BatchResult(diagnostics, np.concatenate([is_doubtful for _, is_doubtful in results]))


def compute_batch(reference: Reference, points: PointBatch, arrays: Arrays, tangents: TangentBatch) -> LinearizedBatch:
    """Write the linear models at points into arrays, not checked, and return what they were computed from."""
    model = reference.model
    geometry = BatchParametrization(model, points, tangents, reference.rows)
    errors = estimate_row_errors(reference, points, tangents, geometry)
    assemble_batch(arrays, reference, points, tangents, geometry, errors=errors)
    if reference.is_checked and reference.request.seek_steady:
        motion = find_motions(model, tangents, geometry, errors[:, : len(model.states)])
    else:
        motion = MotionBatch.not_searched(np.full(len(points), -1), len(reference.kept))
    return LinearizedBatch(reference, points, tangents, geometry, errors, motion, arrays)


def _split(reference: Reference, count: int) -> list[slice]:
    derivatives = reference.tangents_at_point.derivatives[0].size + reference.tangents_at_point.outputs[0].size
    size = max(POINTS_AT_ONCE, DERIVATIVES_AT_ONCE // max(1, derivatives))
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


def estimate_row_errors(
    reference: Reference, points: PointBatch, tangents: TangentBatch, geometry: BatchParametrization
) -> FloatArray:
    """Return estimated errors of the rows of derivatives, in sizes of y and u, shape (k, N + ny).

    They are infinite where derivatives contradict a difference along one direction.
    """
    count, facts = len(points), reference.facts
    samples = np.unique(np.linspace(0, count - 1, min(count, max(3, count // POINTS_PER_SAMPLE))).astype(int))
    sizes = np.concatenate((geometry.slopes.sizes, geometry.output_slopes.sizes), axis=1)
    relative = 8 * EPS * geometry.condition_number + geometry.relative_error_of_T
    errors = sizes * relative[:, None]
    if not reference.is_checked:
        return errors
    if facts.procedure or (reference.procedure is not None and reference.procedure.smooth):
        rounding = measure_rounding(reference, points, tangents, geometry, samples)
        errors = np.fmax(errors, _spread_samples(rounding, count))
    if reference.request.derivatives == "auto" and not (tangents.smooth and facts.procedure):
        compared_points = samples if tangents.smooth else np.arange(count)  # a kink may lie at any point
        gaps = compare_with_differences(reference, points, tangents, geometry, compared_points)
        errors = np.maximum(errors, _spread_samples(gaps, count) if tangents.smooth else gaps)
    return errors


def measure_rounding(
    reference: Reference,
    points: PointBatch,
    tangents: TangentBatch,
    geometry: BatchParametrization,
    samples: NDArray[np.intp],
) -> FloatArray:
    """Return what rounding changes in rows of derivatives at some points, computed again some bits further on."""
    x, scales, count = points.states[samples], geometry.scales[samples, None], len(samples)
    bits = some_bits_further(x, geometry.sizes[samples]) - x
    both_sides = reference.procedure is not None and reference.procedure.points > 1  # as at one point
    sides = 2 if both_sides else 1
    moved = replace(points[np.tile(samples, sides)], states=np.concatenate((x + bits, x - bits)[:sides]))
    again = reference.differentiate(moved)
    rows = []
    for other, J in (again.derivatives, tangents.derivatives), (again.outputs, tangents.outputs):
        change = rounding_of([J[samples], *(other[i : i + count] for i in range(0, sides * count, count))])
        rows.append((change * scales).max(axis=2, initial=0.0))
    return np.concatenate(rows, axis=1)


def compare_with_differences(
    reference: Reference,
    points: PointBatch,
    tangents: TangentBatch,
    geometry: BatchParametrization,
    samples: NDArray[np.intp],
) -> FloatArray:
    """Return gaps to a difference along one direction that are not noise, (k, N + ny), infinite where they count."""
    kept = reference.kept
    p, scales, points, T = len(kept), geometry.scales[samples], points[samples], tangents.T[samples]
    direction = random_direction(scales.shape[1]) * scales
    J = np.concatenate((tangents.derivatives[samples], tangents.outputs[samples]), axis=1)
    base = np.concatenate((tangents.rates[samples], tangents.values[samples]), axis=1)
    values, is_reached = [], np.ones(len(points), dtype=bool)
    for sign in (SMALL_STEP, -SMALL_STEP):
        guess = points.states + sign * (T @ direction[:, :p, None])[..., 0]
        guess[:, kept] = points.states[:, kept] + sign * direction[:, :p]
        moved, good = geometry.reach(guess, samples, points.inputs + sign * direction[:, p:])
        values.append(np.concatenate(geometry.evaluate(moved), axis=1))
        is_reached &= good
    precision = EPS / SMALL_STEP if reference.facts.precision is None else reference.facts.precision
    agrees, gaps = compare_slopes(J, scales, (values[0], base, values[1]), precision)
    return np.where((is_reached & agrees)[:, None], 0.0 if reference.has_exact_procedure else gaps, np.inf)


def _spread_samples(rows: FloatArray, count: int) -> FloatArray:
    """Return for each of so many points the largest of the three nearest samples, which ``rows`` are of."""
    padded = np.pad(rows, ((1, 1), (0, 0)), mode="edge")
    largest = np.fmax(np.fmax(padded[:-2], padded[1:-1]), padded[2:])
    return np.asarray(largest[np.linspace(0, len(rows) - 1, count).round().astype(int)])
