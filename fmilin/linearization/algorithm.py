"""The linearization of a constrained model at operating points: compute, then check.

The states x of a model x' = f(t, x, u), out = c(t, x, u) lie on a manifold h(t, x, u) = 0. With independent coordinates
y = rho(x) and the local parametrization x = Psi(y) of the manifold (Spencer, chapter 2) the linear model is

    y' = f0 + A (y - y0) + B (u - u0),    out = g0 + C (y - y0) + D (u - u0),    x - x0 = T (y - y0),
    A = R f_x T,  B = R f_u,  C = c_x T,  D = c_u,    R = D rho,  T = D Psi         (sections 2.2 and 4.1).

The computation takes arrays and returns arrays, with a leading axis over the points. Whether a user may rely on them is
decided by the checks behind it: see :mod:`fmilin.linearization.checks`.

There are two sequences of these steps. :func:`compute` takes one point and computes it with care;
:func:`compute_batch` takes any number of points near a reference, which was computed with care, and calls compiled code
once for all. They share the search for steady motions, the assembly and the list of checks, and differ in

- coordinates: chosen from the rank of H at one point; those of the reference in a batch, as they are a decision, and
  arrays of one shape need the same one for all points;
- derivatives: exact or measured, and measured more carefully where a check asks for that; in a batch exact ones, which
  the compiled code returns together with f and H, so that evaluation and differentiation are one step there;
- errors: of each entry, or the same in a whole row, so that the arrays of a large batch stay small;
- doubt: a diagnostic or an error at one point; in a batch the point is then computed with care, and no doubt is stated
  that was not confirmed. So the same is said of both.

Sweeps and paths are batches; so is a point of a loop of calls, see :mod:`fmilin.linearization.plan`. Other methods than
this algorithm are chosen in :mod:`fmilin.linearization.methods`, and pass through the same checks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark, off_equilibrium
from fmilin.errors import FmilinError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.assembly import assemble, assemble_point, attach_descriptor, find_row_errors, state_accuracy
from fmilin.linearization.batch_derivatives import differentiate_batch
from fmilin.linearization.checks import CHECKS, LinearizationChecks, sort_checks
from fmilin.linearization.checks.check import NOT_CHECKED, ResultCheck
from fmilin.linearization.checks.coordinates import find_singular_points
from fmilin.linearization.evaluation import evaluate
from fmilin.linearization.failure import explain_failure, find_failed_check
from fmilin.linearization.linearization_context import (
    AssembledPoint,
    BatchResult,
    DifferentiatedPoint,
    LinearizedBatch,
    LinearizedPoint,
)
from fmilin.linearization.plan import accept_point, find_plan
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.linearization.suitability import require_dense_size
from fmilin.manifold.checks.batch_remarks import BatchRemarks, SharedRemarks
from fmilin.manifold.checks.check import Check, run_checks
from fmilin.manifold.checks.context import ExaminedPoint
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.differentiation import change_coordinates, differentiate, differentiate_carefully
from fmilin.manifold.frame import CoordinateChoice, choose_coordinates, constraint_manifold
from fmilin.manifold.manifold_verification import recall_facts, remember_facts
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.point_arrays import PointBatch, batch_points
from fmilin.manifold.point_motion import MotionBatch, find_motion, find_motions
from fmilin.manifold.selection import Selection
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, Model, OperatingPoint, TangentBatch
from fmilin.numerics.differences.differences import Differences
from fmilin.signals import FloatArray
from fmilin.tolerances import EQUILIBRIUM_RATE_TOLERANCE

REMARKS_ON_MOTION = ("off-equilibrium", "steady", "periodic", "equilibrium-not-tested")
"""Kinds of diagnostics that take increments for rates in time."""

RESULT_CHECKS = tuple(one for one in CHECKS if isinstance(one, ResultCheck))
CARING_CHECKS = tuple(one for one in RESULT_CHECKS if type(one).request_care is not ResultCheck.request_care)
DESCRIBING_CHECKS = tuple(one for one in sort_checks(CHECKS) if type(one).describe_batch is not Check.describe_batch)
"""Checks that ask for more careful derivatives, and those that describe the points of a batch: others do neither."""


def linearize_point(
    model: Model, point: OperatingPoint, request: Request, previous: Selection | None = None
) -> tuple[LinearModel, Selection]:
    """Return the linear model at a point, checked, and its coordinates, which the next point of a path continues."""
    require_dense_size(model)
    if model.map_period:
        return linearize_map(model, point, request, previous)
    # Points of a path continue the coordinates of the one before, which a plan does not know.
    plan = find_plan(model, request) if previous is None else None
    repetition = None if plan is None else plan.find_repetition()
    if plan is not None and repetition is not None:
        linear = repetition.linearize(point)
        if linear is not None:
            plan.remember_success()
            return linear, repetition.selection
    reference = None if plan is None else plan.find_reference()
    if plan is not None and reference is not None:
        result = linearize_batch(reference, batch_points([point]))
        accepted = None if result is None else accept_point(result, point)
        if accepted is not None:
            plan.remember_success()
            return accepted
    choice = describe_choice(model, request, previous)
    try:
        computed = compute(model, point, request, choice)
        linear, selection = check(computed), computed.nearby.frame.selection
    except FmilinError as error:
        raise explain_failure(error, model, point) from error.__cause__
    if plan is not None:
        plan.remember(point, linear, selection)
    return linear, selection


def linearize_batch(
    reference: Reference, points: PointBatch, tangents: TangentBatch | None = None
) -> BatchResult | None:
    """Return the linear models at points, at most :func:`limit_batch` of them; None if the reference allows no batch.

    ``tangents`` are the derivatives at the points where they were computed before; the result may refer to them.
    """
    if not reference.is_usable or reference.model.map_period:
        return None
    try:
        with np.errstate(all="ignore"):
            return check_batch(compute_batch(reference, points, tangents)) if reference.agrees else None
    except (FmilinError, np.linalg.LinAlgError):
        return None


def linearize_map(
    model: Model, point: OperatingPoint, request: Request, previous: Selection | None
) -> tuple[LinearModel, Selection]:
    """Return the linear model of a sampled model: that of its increments, checked, and the identity added to A."""
    request = replace(request, seek_steady=False)
    try:
        increments = model.evaluate(point.time, point.states, point.inputs).derivatives
        sizes = model.states.scales(point.states)
        moves = bool((np.abs(increments) > EQUILIBRIUM_RATE_TOLERANCE * sizes).any())
        if moves and len(model.constraints):
            raise UsageError(
                "The point of a sampled model with constraints is linearized where it is a fixed point: find one with "
                "fl.trim(model), or a point of period p with fl.trim(model.iterate(p))."
            )
        computed = compute(model, point, request, describe_choice(model, request, previous))
        linear, selection = check(computed), computed.nearby.frame.selection
    except FmilinError as error:
        raise explain_failure(error, model, point) from error.__cause__
    remarks = tuple(remark for remark in linear.warnings if remark.kind not in REMARKS_ON_MOTION)
    # The diagnostics on motions in time, left out above, do not apply to increments.
    if moves:
        remarks = (describe_increment(model, increments / sizes), *remarks)
    A = linear.A + np.eye(len(linear.A))
    return replace(linear, A=A, sample_time=model.map_period, warnings=remarks), selection


def describe_increment(model: Model, increments: FloatArray) -> Remark:
    """Say that a point of a map moves, and what moves most, by increments (N,) in sizes of the states."""
    i = int(np.argmax(np.abs(increments)))
    return off_equilibrium(
        f"'{model.states.names[i]}' changes within a sample",
        "f0 is what the states change by at the next sample; eigenvalues are those of this step alone.",
    )


def compute(model: Model, point: OperatingPoint, request: Request, choice: CoordinateChoice) -> LinearizedPoint:
    """Return the linear model at a point, computed with care and not checked, with what it was computed from."""
    evaluator = PointEvaluator(model)
    base = evaluate_with_derivatives(evaluator, point, request)
    facts = recall_facts(model, point, base, trusted=request.checks != "all")
    try:
        manifold = constraint_manifold(evaluator, point, facts, choice.named)
        frame = choose_coordinates(manifold, choice)
        facts = manifold.facts
        nearby = Neighbourhood(evaluator, frame, point, base, hold_modes=request.hold_modes)
        jacobians = differentiate(nearby, request.derivatives)
        first = DifferentiatedPoint(evaluator, point, facts, manifold, frame, request, base, nearby, jacobians)
        jacobians = answer_doubts(first)
        motion = follow_motion(nearby, jacobians, request, choice)
        nearby, jacobians = take_steady_coordinates(nearby, jacobians, motion, request, choice)
        linear = assemble_point(evaluator, nearby, jacobians, jacobians.observations.turns)
        linear = attach_descriptor(linear, model, nearby, request)
    except FmilinError as error:
        # A constraint that is violated, say, is the reason why coordinates cannot be chosen, or derivatives not be
        # measured.
        if request.checks != "none":
            error = find_failed_check(error, ExaminedPoint(evaluator, point, facts), choice)
        raise error from error.__cause__
    return LinearizedPoint(
        evaluator=evaluator,
        point=point,
        facts=facts,
        request=request,
        base=base,
        manifold=manifold,
        frame=frame,
        differentiated=first,
        nearby=nearby,
        jacobians=jacobians,
        motion=motion,
        linear=linear,
    )


def compute_batch(reference: Reference, points: PointBatch, tangents: TangentBatch | None = None) -> LinearizedBatch:
    """Return the linear models at points near a reference, not checked, with what they were computed from."""
    evaluator = PointEvaluator(reference.model)
    tangents, geometry, derivatives, difference = differentiate_batch(evaluator, reference, points, tangents)
    motion = follow_motions(reference, derivatives, geometry)
    if difference is not None and (gaps := difference.measure_gaps()).any():
        derivatives = derivatives.with_row_errors(np.maximum(derivatives.errors[..., 0], gaps))
        motion = follow_motions(reference, derivatives, geometry)  # some of it may be noise
    row_errors = find_row_errors(reference, derivatives, geometry)
    models = assemble(derivatives, geometry, row_errors)
    return LinearizedBatch(
        points=points,
        facts=reference.facts,
        tangents=tangents,
        geometry=geometry,
        reference=reference,
        derivatives=derivatives,
        motion=motion,
        models=models,
        evaluations=evaluator.evaluations,
        products=evaluator.directions,
    )


def answer_doubts(at: DifferentiatedPoint) -> TangentDerivatives:
    """Return the derivatives at a point, computed more carefully where a check asks for that."""
    jacobians = at.jacobians
    for one in CARING_CHECKS:
        care = one.request_care(at)
        if care is not None:
            jacobians = differentiate_carefully(at.nearby, jacobians, care)
    return jacobians


def check(at: AssembledPoint, checks: LinearizationChecks = CHECKS) -> LinearModel:
    """Return the linear model of a point with the diagnostics of all checks; raise the first error in their list.

    Of a point that was computed by another method those checks run that have a meaning there. ``checks`` is the order
    in which they run, which makes no difference to the result.
    """
    is_checked = at.request.checks != "none"
    findings = run_checks(at, [one for one in checks if is_checked or one.describes_computation])
    in_order = sort_checks(checks)
    findings.raise_first(in_order)
    remember_facts(at.model, findings.facts)
    first = [NOT_CHECKED]
    if is_checked:
        first = findings.list_remarks([one for one in in_order if one.is_reported_first])
    later_remarks = findings.list_remarks([one for one in in_order if not one.is_reported_first])
    return state_accuracy(at, (*first, *at.point.remarks, *later_remarks))


def check_batch(at: LinearizedBatch, checks: LinearizationChecks = CHECKS) -> BatchResult:
    """Return the linear models of a batch with the diagnostics of all checks, and the points that are in doubt.

    ``checks`` is the order in which they run, which makes no difference to the result. Without checks what was computed
    is said, and points of singular coordinates are in doubt: coordinates of a reference are continued as long as they
    are regular.
    """
    in_order = DESCRIBING_CHECKS if checks is CHECKS else sort_checks(checks)
    if not at.reference.is_checked:
        is_doubtful = find_singular_points(at)
        descriptions = [one.describe_batch(at, is_doubtful) for one in in_order if one.describes_computation]
        descriptions.insert(0, SharedRemarks((NOT_CHECKED,), len(at)))
    else:
        is_doubtful = np.zeros(len(at), dtype=bool)
        for one in checks:
            doubt = one.find_doubt(at)
            if doubt is not None:
                is_doubtful |= doubt
        descriptions = [one.describe_batch(at, is_doubtful) for one in in_order]
    remarks = BatchRemarks([each for each in descriptions if each is not None], len(at))
    return BatchResult(at, remarks, is_doubtful)


def evaluate_with_derivatives(evaluator: PointEvaluator, point: OperatingPoint, request: Request) -> Evaluation:
    """Return what the model says at the point; its exact derivatives, where it has them, come with that."""
    if request.derivatives in ("auto", "exact"):
        evaluator.exact_slopes(point.time, point.states, point.inputs)
    return evaluate(evaluator, point)


def describe_choice(model: Model, request: Request, previous: Selection | None) -> CoordinateChoice:
    """Return how coordinates are chosen: named ones, else the author's, unless they belong to other constraints."""
    named = tuple(request.independent or ())
    advised: tuple[str, ...] = ()
    if request.independent is None and request.coordinates == "partition" and len(model.constraints):
        if model.independent_by_default:
            advised = model.independent
        elif previous is None:
            named = model.independent  # as if the user had named them: an error where they are singular
    return CoordinateChoice(named, advised, request.coordinates, previous)


def follow_motion(
    nearby: Neighbourhood, jacobians: TangentDerivatives, request: Request, choice: CoordinateChoice
) -> MotionBatch:
    """Return how the point moves, and coordinates in which its motion is steady, so that A stays the same along it."""
    needs_coordinates = are_coordinates_free(nearby, request, choice) and len(nearby.frame.manifold.H) > 0
    if not request.seek_steady or (request.checks == "none" and not needs_coordinates):
        return MotionBatch.not_searched(np.array([-1]), len(nearby.frame.y0))
    is_bounded = isinstance(request.derivatives, Differences)  # so are the evaluations that are made for it
    base = nearby.base_evaluation
    return find_motion(nearby.evaluator, nearby.point, base, nearby.frame, jacobians, spectra=not is_bounded)


def follow_motions(
    reference: Reference, derivatives: TangentDerivatives, geometry: LocalParametrization
) -> MotionBatch:
    """Return how the points of a batch move; points that may be steady in other coordinates remain open."""
    if reference.is_checked and reference.request.seek_steady:
        return find_motions(reference.model, derivatives, geometry)
    return MotionBatch.not_searched(np.full(len(geometry), -1), len(reference.independent))


def are_coordinates_free(nearby: Neighbourhood, request: Request, choice: CoordinateChoice) -> bool:
    """Whether neither the user, nor the author of the model, nor the point before on a path says which are taken."""
    is_named = request.independent or nearby.model.independent or choice.previous
    return request.coordinates == "partition" and not is_named


def take_steady_coordinates(
    nearby: Neighbourhood,
    jacobians: TangentDerivatives,
    motion: MotionBatch,
    request: Request,
    choice: CoordinateChoice,
) -> tuple[Neighbourhood, TangentDerivatives]:
    """Return the same in coordinates in which the motion is steady, unless others were asked for."""
    if not are_coordinates_free(nearby, request, choice) or 0 not in motion.selections:
        return nearby, jacobians
    return change_coordinates(nearby, jacobians, motion.selections[0])
