"""The procedure: a model, a point on its manifold, independent coordinates, the slopes along them, a linear model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Unpack

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import ConstraintError, FmilinError, NumericalError
from fmilin.linear_model.builder import chosen_inputs, with_inputs, with_parameters_as_inputs
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.no_response import with_remark_on_response
from fmilin.linearization.assembly import assembled, require_accuracy
from fmilin.linearization.dependence import with_remark_on_dependence
from fmilin.linearization.findings import refuse_dead_zones, remarks_along, remarks_on, visited_at
from fmilin.linearization.request import Request
from fmilin.linearization.suitability import require_options_of_steps
from fmilin.manifold.frame import Frame, frame_at
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.operating_points import model_at, start_of
from fmilin.manifold.rank import singularity_of
from fmilin.manifold.selection import NOT_TURNING, Selection
from fmilin.manifold.slopes import TangentSlopes, in_coordinates, measure
from fmilin.manifold.steady import Motion, motion_at
from fmilin.manifold.verification import VerifiedFacts, verified_facts_of
from fmilin.model.capabilities import can_be_described, read_sparse_equations
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.model.visits import RememberingModel, one_at_a_time
from fmilin.numerics.differences.differences import Differences, EventCrossingError
from fmilin.options import Linearization, LinearizationOptions, Stepping
from fmilin.options.functions import takes_linearization
from fmilin.support.implemented_in import implemented_in

Procedure = Callable[[Model, OperatingPoint, Request], LinearModel]


@one_at_a_time
@takes_linearization
def linearize(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    linearization: Linearization | None = None,
    **options: Unpack[LinearizationOptions],
) -> LinearModel:
    """Return the linear model of a constrained model in independent coordinates.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        On the manifold, from :func:`fmilin.operating_point`; where the model starts by default.
    linearization : Linearization, optional
        How the model is linearized. Each of its options may be a keyword instead: ``outputs=["y"]``. The options are
        explained at :class:`fmilin.Linearization`.

    Returns
    -------
    LinearModel

    Notes
    -----
    A second call with the same model object is several times faster, also at another point: that states are the rates
    of others, that the motion keeps the constraints beside a point, and that all exact products agree with differences
    is remembered. Rank, conditioning, consistency, H f and H f_u at the point, and one direction of products against a
    difference are checked at every call; where one leaves doubt, everything is. The matrices are the same to the last
    bit; ``accuracy`` may show that fewer differences were compared.

    Raises
    ------
    UsageError, UnknownNameError
        When the request does not fit the model.
    ConstraintError
        When a constraint is inconsistent at the point or no invariant of the model.
    NumericalError
        When the coordinates are singular, the point is a singular configuration, the model returns NaN, or has
        a kink or an event at the point; when an entry cannot be told, unless ``keep_inaccurate``.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> lin = fl.linearize(cartesian_pendulum(length=1.0, gravity=4.0))
    >>> lin.A.shape
    (2, 2)
    >>> [complex(round(s.real, 9), round(s.imag, 9)) for s in lin.eigenvalues()]
    [-2j, 2j]
    """
    request = Request.of("linearize", linearization, options)
    return linearize_as(model, start_of(model) if point is None else point, request)


def linearize_as(model: Model, point: OperatingPoint, request: Request) -> LinearModel:
    """Return the linear model that a request describes; see :func:`linearize`."""
    inputs, outputs = request.inputs, request.outputs
    if request.parameters:
        linear = linearize_as(model, point, replace(request, parameters=()))
        return add_parameter_derivatives(model, point, linear, request)
    model = model_at(model, point)
    if inputs is not None:
        model, point = with_parameters_as_inputs(model, point, inputs)
    model = model.seen_at(point)
    chosen = None if inputs is None else chosen_inputs(model.inputs, inputs)
    model = model if outputs is None else model.with_interface(None, outputs)

    def general(model: Model, point: OperatingPoint, request: Request) -> LinearModel:
        return _linearized(model, point, request, None)[0]

    linear = _answered(model, point, request, general)
    return linear if chosen is None else with_inputs(linear, chosen)


@implemented_in("fmilin.trimming.sensitivity:add_parameter_derivatives")
def add_parameter_derivatives(
    model: Model, point: OperatingPoint, linear: LinearModel, request: Request
) -> LinearModel:
    """Return a linear model with its derivatives by the parameters of a request, along the branch of its point."""
    ...


def linearize_naively(model: Model, point: OperatingPoint) -> LinearModel | None:
    """Return what treating all states as independent says at a point; None where that fails."""
    try:
        return linearize(model.with_constraints([]), point, keep_inaccurate=True)
    except FmilinError:
        return None


def linearize_next(
    model: Model, point: OperatingPoint, request: Request, previous: Selection | None
) -> tuple[LinearModel, Selection | None]:
    """Return the linear model at the next point of a path, and the coordinates that the point after it continues."""
    carried: list[Selection] = []

    def general(model: Model, point: OperatingPoint, request: Request) -> LinearModel:
        linear, frame = _linearized(model, point, request, previous)
        carried.append(frame.selection)
        return linear

    seen = model.seen_at(point)
    linear = _answered(seen, point, request, general)
    return linear, carried[-1] if carried else None


def _answered(model: Model, point: OperatingPoint, request: Request, general: Procedure) -> LinearModel:
    """Answer a request by ``general``, unless it, or the kind of model, has a procedure of its own."""
    if request.formulation is not None:
        from fmilin.formulations.procedure import linearized

        return linearized(
            model,
            point,
            request.formulation,
            independent=request.independent or (),
            at_singularity=request.at_singularity,
            descriptor=request.descriptor,
        )
    if isinstance(model, Stepped) or (request.stepping is not None and request.stepping.lifted):
        return _by_steps(model, point, request, general)
    if request.at_singularity:
        from fmilin.linearization.lagrange import linearize_at_singularity

        return linearize_at_singularity(model, point, independent=request.independent or ())
    if (equations := read_sparse_equations(model)) is not None:
        from fmilin.linearization.lagrange import by_sparse_equations

        return by_sparse_equations(model, equations, point, request) or general(model, point, request)
    return general(model, point, request)


def _by_steps(model: Model, point: OperatingPoint, request: Request, general: Procedure) -> LinearModel:
    """Linearize a model that brings its own solver from what it answers."""
    from fmilin.identification.identify import Task, linearize_stepped

    require_options_of_steps(request)
    if not isinstance(model, Stepped):
        from fmilin.identification.sampled_model import SampledModel

        model = SampledModel(model)

    stepping = request.stepping or Stepping()
    left_out: tuple[Remark, ...] = ()
    if stepping.method != "direct":
        from fmilin.identification.unrepeatable import leave_out_unrepeatable

        model, point, left_out = leave_out_unrepeatable(model, point, stepping)

    def direct(derivatives: str | None) -> LinearModel:
        return general(model, point, request if derivatives is None else replace(request, derivatives=derivatives))

    linear = linearize_stepped(
        Task(model, point, stepping, request.independent, request.coordinates, direct, request.keep_inaccurate)
    )
    return replace(linear, warnings=(*left_out, *linear.warnings))


def _linearized(
    model: Model, point: OperatingPoint, request: Request, previous: Selection | None
) -> tuple[LinearModel, Frame]:
    """Go the general way; at a singular configuration say so, whatever went wrong there."""
    try:
        visited, base, nearby, slopes, motion = _measured(model, point, request, previous)
        frame, named = nearby.frame, request.independent or model.independent or previous
        free = request.coordinates == "partition" and not named
        if free and motion.steady and motion.steady.selection is not frame.selection:
            frame, slopes = in_coordinates(visited, point, base, frame, slopes, motion.steady.selection)
            nearby = nearby.in_frame(frame)
        remarks = [*point.remarks, *frame.remarks, *slopes.remarks, *remarks_on(visited, base, nearby, motion)]
        remarks += nearby.held_remarks
        linear = assembled(visited, point, base, frame, slopes, remarks)
        linear = _with_observed_turns(linear, nearby)
        linear = require_accuracy(linear, nearby, keep=request.keep_inaccurate)
        linear = _with_errors_of_point(linear, point, frame)
        # The equations as they are written have both branches of a kink, and no descriptor system of one side.
        one_sided = isinstance(request.derivatives, Differences) and request.derivatives.side is not None
        is_described = (request.descriptor or can_be_described(model)) and not one_sided
        if is_described and not frame.coordinates.curvature(point.states, base.derivatives).any():
            from fmilin.formulations.descriptor import with_descriptor, with_lazy_descriptor

            describe = with_descriptor if request.descriptor else with_lazy_descriptor
            linear = describe(linear, model, point, frame.coordinates.R)
            if can_be_described(model):
                from fmilin.formulations.descriptor_check import check_descriptor

                linear = check_descriptor(linear, model, point, base.derivatives)
        if (unmoved := with_remark_on_response(linear)) is not linear:
            held = request.keep_inaccurate or request.hold_modes
            linear = unmoved if held else refuse_dead_zones(unmoved, model, point)
        return linear if len(model.constraints) else with_remark_on_dependence(linear, model, point), frame
    except FmilinError as error:
        if singular := singularity_of(model, point):
            raise NumericalError(singular) from None
        if isinstance(error, ConstraintError) and can_be_described(model):
            from fmilin.formulations.descriptor_check import explain_lost_invariants

            if explained := explain_lost_invariants(error, model):
                raise explained from error
        raise


def _with_observed_turns(linear: LinearModel, nearby: Neighbourhood) -> LinearModel:
    """Return the linear model with the turns of outputs that wrap at the point, which a black box does not declare."""
    observed = nearby.observed_turns
    turns = [signal.turn or observed.get(i) for i, signal in enumerate(linear.outputs)]
    outputs = linear.outputs.with_turns(turns)
    return linear if outputs is linear.outputs else replace(linear, outputs=outputs)


def _with_errors_of_point(linear: LinearModel, point: OperatingPoint, frame: Frame) -> LinearModel:
    """Return the linear model with errors of A that include how far the point may be from the one that is meant.

    The matrices are those of the point; eigenvalues and stability are meant to be those of the equilibrium.
    """
    if point.slope_changes is None:
        return linear
    change = np.abs(frame.coordinates.R) @ point.slope_changes @ np.abs(frame.T)
    return replace(linear, errors=replace(linear.errors, A=linear.errors.A + change))


def _measured(
    model: Model, point: OperatingPoint, request: Request, previous: Selection | None
) -> tuple[RememberingModel, Evaluation, Neighbourhood, TangentSlopes, Motion]:
    """Return the model at the point, its slopes along coordinates there, and how the point moves."""
    visited = RememberingModel(model)
    if request.derivatives in ("auto", "exact"):
        visited.exact_slopes(point.time, point.states, point.inputs)  # says what the model is at the point, too
    base = visited_at(visited, point)
    facts = verified_facts_of(model, point, base)
    frame = _frame(visited, point, request, previous, facts)
    nearby = Neighbourhood(visited, frame, point, base, hold_modes=request.hold_modes)
    slopes = _slopes(model, nearby, request, facts)
    bounded = isinstance(request.derivatives, Differences)  # so are the visits that are made for it
    if not request.seek_steady:
        return visited, base, nearby, slopes, Motion()
    return visited, base, nearby, slopes, motion_at(visited, point, base, frame, slopes, spectra=not bounded)


def along_motion(model: Model, point: OperatingPoint) -> tuple[list[Remark], LinearModel | None]:
    """Say whether A stays along the motion of a point that was trimmed, and return what is linear if it does."""
    with suppress(FmilinError):
        visited, base, nearby, slopes, motion = _measured(model, point, Request(), None)
        frame = nearby.frame
        remarks = remarks_along(visited, base, frame, motion, Remark("steady", "The motion goes on as it is."))
        if any(remark.kind == "periodic" for remark in remarks) or not (motion.steady or motion.change):
            return remarks, None
        if motion.steady and motion.steady.selection is not frame.selection:
            frame, slopes = in_coordinates(visited, point, base, frame, slopes, motion.steady.selection)
        return remarks, assembled(visited, point, base, frame, slopes, remarks)
    return [], None


def _frame(
    model: RememberingModel, point: OperatingPoint, request: Request, previous: Selection | None, facts: VerifiedFacts
) -> Frame:
    """Choose coordinates: those that are named, else the author's, unless they were made for other constraints."""
    if previous is not None and previous.kind == NOT_TURNING:
        with suppress(NumericalError):
            frame = frame_at(model, point, named=previous.texts, facts=facts, inputs_too=False)
            return replace(frame, selection=replace(frame.selection, kind=NOT_TURNING))
    named: tuple[str, ...] = tuple(request.independent or ())
    advised: tuple[str, ...] = ()
    kind = request.coordinates
    if request.independent is None and kind == "partition" and len(model.constraints):
        if model.independent_by_default:
            advised = model.independent
        elif previous is None:
            named = model.independent  # as if the user had named them: refused where they are singular
    return frame_at(
        model, point, named=named, advised=advised, kind=kind, previous=previous, facts=facts, inputs_too=False
    )


def _slopes(model: Model, nearby: Neighbourhood, request: Request, facts: VerifiedFacts) -> TangentSlopes:
    try:
        slopes = measure(nearby, request.derivatives, facts)
    except EventCrossingError:
        from fmilin.linearization.findings import chattering_at

        if chattering := chattering_at(model, nearby.point):
            raise NumericalError(chattering) from None
        raise
    nearby.frame.verify_inputs(slopes.f_u, slopes.f_u_error)
    return slopes
