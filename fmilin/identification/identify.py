"""Linear models of models that bring their own solver and can only be run in steps.

:func:`identify` is for such a model what differentiation is for one with derivatives: from a model, a point and options
to the linear model with the errors of its entries. The ways to it are classes with the same methods, chosen here.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark, discrete_states_remarks, model_remarks
from fmilin.errors import FmilinError, KinkError, ModelError, NumericalError, UsageError
from fmilin.identification.derivative_methods import DirectionalDerivatives, ReadDerivatives
from fmilin.identification.displaced_states import DisplacedStates
from fmilin.identification.experiments import Experiments
from fmilin.identification.integrators import EXACT
from fmilin.identification.moving_point import MovingPoint
from fmilin.identification.pulse_responses import PulseResponses
from fmilin.identification.repeatability import leave_out_unrepeatable
from fmilin.identification.solver_step import find_solver_step, find_whole_step, with_integrator, with_solver_step
from fmilin.identification.step_size import find_usable_step
from fmilin.identification.validation import measure_solver_error, with_accuracy_required, with_solver_error
from fmilin.identification.way import IdentificationOptions, Setting, Way, inputs_that_may_jump
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.no_response import dead_zone_error, dead_zone_text, has_no_response, with_remark_on_response
from fmilin.manifold.selection import Selection
from fmilin.model.capabilities import read_discrete_states
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Cadence, Stepped
from fmilin.tolerances import MAX_PREDICTION_ERROR, OTHER_STEPS_ERROR_TOLERANCE

__all__ = ["IdentificationOptions", "identify"]

logger = logging.getLogger("fmilin.identification")


def identify(
    model: Model, point: OperatingPoint, options: IdentificationOptions
) -> tuple[LinearModel, Selection | None]:
    """Return the linear model, with errors, of a model that is run in steps, and its coordinates.

    The next point of a path continues these; they are None where responses were measured. A model with events and no
    steps of its own is run over its sampling period.
    """
    if not isinstance(model, Stepped):
        from fmilin.identification.sampled_model import SampledModel

        model = SampledModel(model)
    notes: tuple[Remark, ...] = ()
    if options.stepping.method != "direct":
        model, notes = leave_out_unrepeatable(model, point, options.stepping)
    if model.constraints.prescribing:
        _require_derivatives(model, options)
    experiments = _prepare_experiments(model, point, options)
    try:
        way, linear = _choose_way(_prepare_setting(model, point, options, experiments))
        linear = _finish(way, linear)
    except NumericalError as error:
        if isinstance(error, KinkError) or not experiments.left_out:
            raise
        raise NumericalError(f"{error} {experiments.remark}", variable=error.variable) from None
    return replace(linear, warnings=(*notes, *linear.warnings)), way.findings.selection


def _require_derivatives(model: Model, options: IdentificationOptions) -> None:
    """Raise a UsageError if a model with a prescribed motion is to be linearized from steps."""
    if options.stepping.method not in ("auto", "direct") or options.stepping.lifted:
        names = ", ".join(f"'{model.inputs.names[j]}'" for j in model.constraints.prescribing)
        raise UsageError(
            f"The inputs {names} prescribe a motion, and steps in which they jump violate the constraints. Leave out "
            "method= and lifted=, so that derivatives are read, or take model exchange (interface='me')."
        )


def _prepare_experiments(model: Model, point: OperatingPoint, options: IdentificationOptions) -> Experiments:
    """Return experiments with the inputs that may jump between steps."""
    jumping = inputs_that_may_jump(model)
    if len(jumping) < len(model.inputs):
        model = model.with_interface(inputs=[model.inputs.names[j] for j in jumping])
        point = replace(point, inputs=point.inputs[jumping])
    return Experiments(model, point, options.stepping.amplitude, options.stepping.budget)


def _prepare_setting(
    model: Model, point: OperatingPoint, options: IdentificationOptions, experiments: Experiments
) -> Setting:
    """Find a step that the model takes, what makes its runs equal, and the steps of its own solver."""
    begin = options.stepping.step or find_usable_step(experiments)
    repetition = experiments.stepped.make_repeatable(experiments.point, begin)
    experiments.cadence, between_steps = _find_cadence(experiments, begin)
    begin = options.stepping.step or find_usable_step(experiments)
    return Setting(model, point, options, experiments, begin, repetition, between_steps)


def _find_cadence(experiments: Experiments, begin: float) -> tuple[Cadence, str]:
    """Return the steps of a model with its solver's own one, and how it takes steps other than that."""
    cadence = experiments.cadence
    if cadence.sampled or cadence.period:
        return cadence, ""
    still, first = np.zeros((1, len(experiments.scales))), cadence.declared or begin
    if first != begin:
        try:
            experiments.run(still, first)
        except FmilinError:  # it declares a step that it does not take
            first = begin
    try:
        experiments.run(still, first / 2)
    except FmilinError:
        return replace(cadence, internal=cadence.internal or first), ""
    experiments.looked = False
    if not experiments.affords("responses", *experiments.attempt, begin):
        return cadence, ""
    experiments.looked = True
    if len(experiments.scales) and (whole_step := find_whole_step(experiments, first)):
        experiments.takes_whole_steps = True
        return replace(cadence, internal=whole_step), "takes whole steps, for any given length, of"
    internal = find_solver_step(experiments, begin)
    if internal:
        return replace(cadence, internal=internal), "is constant between its own steps of"
    return cadence, ""


# Which way is taken


def _choose_way(setting: Setting) -> tuple[Way, LinearModel]:
    """Return the way that the options name, or the first one that responses confirm, and its linear model."""
    stepping = setting.stepping
    if stepping.method == "auto" and not stepping.lifted:
        return _take_first_that_works(setting)
    if stepping.method == "direct" and stepping.lifted:
        raise UsageError("method='direct' reads derivatives, which make a continuous model. Leave out lifted=True.")
    way = _take_named(setting)
    way.require_possible()
    return way, way.identify()


def _take_named(setting: Setting) -> Way:
    """Return the way that the options name; of a discrete model, the one that the model allows."""
    method = setting.stepping.method
    if method == "auto":
        is_hidden = bool(setting.experiments.cadence.sampled) or setting.stepped.why_not_settable(setting.point)
        method = "response" if is_hidden else "step"
    if method == "direct":
        derivatives, products = ReadDerivatives(setting), DirectionalDerivatives(setting)
        return products if derivatives.why_not() and not products.why_not() else derivatives
    if method == "step":
        return DisplacedStates(setting)
    if method == "multisine":
        from fmilin.identification.multisine import Multisines

        return Multisines(setting)
    return _take_responses(setting)


def _take_responses(setting: Setting) -> Way:
    """Return the way by responses that the model and the point allow."""
    if not setting.has_channels:
        from fmilin.identification.free_motion import FreeMotion

        return FreeMotion(setting)
    moving = MovingPoint(setting)
    return PulseResponses(setting) if moving.why_not() else moving


def _take_first_that_works(setting: Setting) -> tuple[Way, LinearModel]:
    """Read derivatives where responses confirm them; else displace states; else measure responses."""
    failures: list[str] = []
    derivatives = ReadDerivatives(setting)
    ways: list[Way] = []
    if len(setting.model.states):
        ways = [derivatives, DirectionalDerivatives(setting), DisplacedStates(setting)]
    for way in ways:
        why_not = way.why_not()
        if not why_not:
            linear, reason = _try(way)
            if linear is not None:
                # what is said of directional derivatives holds why states were not set
                way.findings.left_methods += [] if way.reads_derivatives else failures
                return way, linear
            failures.append(reason)
        elif way is derivatives:  # that the other methods are impossible is not reported
            failures.append(why_not)
        if setting.model.constraints.prescribing:
            raise NumericalError(
                f"The inputs prescribe a motion, which requires derivatives, and these cannot be read. {failures[0]} "
                "Use model exchange (interface='me')."
            )
    logger.info("trying: responses to pulses on the inputs")
    way = _take_responses(setting)
    way.findings.left_methods += failures
    try:
        return way, way.identify()
    except NumericalError as error:
        if not ways or derivatives.why_not():
            raise
        hint = "Its derivatives between two steps follow from method='direct', sampled parts frozen."
        raise NumericalError(f"{error} {hint}", variable=error.variable) from None


def _try(way: Way) -> tuple[LinearModel | None, str]:
    """Return the linear model, or None and the reason: an error, or responses that contradict it."""
    logger.info("trying: %s", way.what[0].lower() + way.what[1:])
    try:
        linear = way.identify()
    except KinkError:  # no way finds a linear model of both sides
        raise
    except (NumericalError, ModelError) as error:
        return None, str(error)
    findings = way.findings
    if findings.error <= OTHER_STEPS_ERROR_TOLERANCE or findings.coarse_solver:
        return linear, ""
    is_unmeasured = bool(np.isnan(findings.error))
    if is_unmeasured and not (way.needs_responses and way.setting.has_channels):
        return linear, ""
    verdict = (
        "could not be compared with responses"
        if is_unmeasured
        else f"is off by {100 * findings.error:.3g}% of responses"
    )
    return (
        None,
        f"{way.what}: the model {verdict} (hidden states, sampled parts, or outputs that are old between steps).",
    )


# Additions to the linear model of every method


def _finish(way: Way, linear: LinearModel) -> LinearModel:
    """Return the linear model with the errors of the solver inside, its integrator, and all findings as diagnostics."""
    experiments, findings, options = way.experiments, way.findings, way.setting.options
    if experiments.reduced:
        text = (
            f"Inputs were moved by {experiments.reduced:.1g} of their sizes only: larger changes have no proportional "
            "response, as with a limiter. The linear model is valid near the point."
        )
        findings.extra.append(Remark("narrow", text))
    if dead := experiments.in_dead_zone:
        if has_no_response(linear) and not options.keep_inaccurate:
            raise dead_zone_error(dead)
        text = f"{dead_zone_text(dead)} The linear model is that of the model in its present state."
        findings.extra.append(Remark("stuck", text))
    if findings.excess > MAX_PREDICTION_ERROR and options.stepping.method != "direct":
        raise NumericalError(
            "No linear model reproduces the responses: the error for held-out responses exceeds noise by "
            f"{100 * findings.excess:.3g}% of their size. Choose another method= or step=, or another operating point."
        )
    if not way.reads_derivatives:
        linear = _with_solver(way, linear)
    if experiments.left_out:
        findings.extra.append(Remark("accuracy", f"This is a first result. {experiments.remark}"))
    internal = experiments.cadence.internal
    if not way.reads_derivatives and internal and not options.stepping.lifted:
        linear = with_solver_step(
            linear,
            internal,
            what=way.setting.between_steps or "takes no shorter steps than",
            integrator=options.stepping.integrator,
            keep=options.keep_inaccurate,
            change_in_step=findings.change_in_step,
        )
    stated = {str(warning) for warning in linear.warnings}
    remarks = [*discrete_states_remarks({} if options.stepping.lifted else read_discrete_states(way.model))]
    remarks += model_remarks(way.model.notes)
    rest = [remark for remark in remarks if str(remark) not in stated]
    return with_remark_on_response(replace(linear, warnings=(*findings.remarks(), *linear.warnings, *rest)))


def _with_solver(way: Way, linear: LinearModel) -> LinearModel:
    """Return a measured linear model with the error of the solver inside; raise if it is too inaccurate."""
    experiments, findings, options = way.experiments, way.findings, way.setting.options
    is_sampled = options.stepping.lifted or bool(experiments.cadence.sampled)
    if not is_sampled and findings.integrator is not EXACT:
        linear = with_integrator(linear, experiments, findings)
    elif not is_sampled and not findings.is_limit_of_steps:
        difference = measure_solver_error(experiments, findings.step)
        if difference is not None and difference.change > findings.doubt:
            linear = with_solver_error(linear, difference)
    # A discrete model of a sampled part is returned with large errors, too: nothing else is made of it.
    keep = options.keep_inaccurate or way.keeps_inaccurate or is_sampled
    return with_accuracy_required(linear, keep=keep)
