"""``fmilin.linearize``: from a model at an operating point to its linear model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Protocol, Unpack, runtime_checkable

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, UnknownNameError, UsageError
from fmilin.linear_model.builder import find_inputs, with_inputs, with_parameters_as_inputs
from fmilin.linear_model.delay_channels import add_shared_inputs
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.linearization.algorithm import compute, describe_choice
from fmilin.linearization.assembly import assemble_point
from fmilin.linearization.checks.motion import report_motion
from fmilin.linearization.methods import linearize_by_method
from fmilin.linearization.request import Request
from fmilin.linearization.suitability import DELAYED_DERIVATIVES
from fmilin.manifold.checks import FRAME_CHECKS
from fmilin.manifold.checks.check import run_checks
from fmilin.manifold.differentiation import change_coordinates
from fmilin.manifold.operating_points import apply_point_parameters, assemble_start
from fmilin.manifold.selection import Selection
from fmilin.model.capabilities import HasDelays, HasSamples, delay_wires, model_at_input_limits
from fmilin.model.declarations import note_declarations
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.model.memory import with_outputs
from fmilin.options import Linearization, LinearizationOptions
from fmilin.options.function_options import takes_linearization
from fmilin.support.implemented_in import implemented_in

CONSTANT_PAST = (
    "The point is not an equilibrium: delayed signals count as constant before it, which they are not where the motion "
    "reaches them."
)


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
    of others, that the motion keeps the constraints near a point, and that all exact products agree with differences
    is remembered. Rank, conditioning, consistency, H f and H f_u at the point, and one direction of products against a
    difference are checked at every call; where one leaves doubt, everything is. The matrices are the same to the last
    bit until compiled code takes the place of slower code, which changes their rounding: from then on, and of FMUs from
    the second call on, a point is computed as many points are together (as in :func:`fmilin.linearize_along`), and
    alone where a check has a doubt. ``accuracy`` may show that fewer differences were compared.

    Raises
    ------
    UsageError, UnknownNameError
        When the request does not fit the model.
    ConstraintError
        When a constraint is inconsistent at the point or no invariant of the model.
    NumericalError
        When the coordinates are singular, the point is a singular configuration, the model returns NaN, or has
        a kink or an event at the point; when an entry is inaccurate, unless ``keep_inaccurate``.

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
    return linearize_request(model, assemble_start(model) if point is None else point, request)


@runtime_checkable
class LinearizesSamples(Protocol):
    """A model of continuous and sampled parts: its linear model is that from sample to sample."""

    def linearize_samples(self, point: OperatingPoint, request: Request) -> LinearModel:
        """Return the discrete linear model at a point."""
        ...


def linearize_samples(model: HasSamples, point: OperatingPoint, request: Request) -> LinearModel:
    """Return the linear model of a model with samples at a point."""
    if not isinstance(model, LinearizesSamples):
        raise TypeError(f"{type(model).__name__} is sampled, but has no linear model from sample to sample.")
    return model.linearize_samples(point, request)


def linearize_request(model: Model, point: OperatingPoint, request: Request) -> LinearModel:
    """Return the linear model that a request describes; see :func:`linearize`."""
    if request.delays:
        return linearize_with_dead_time(model, point, request)
    inputs, outputs = request.inputs, request.outputs
    if request.parameters and isinstance(model, HasDelays | HasSamples):
        raise UsageError(DELAYED_DERIVATIVES)
    if request.parameters:
        linear = linearize_request(model, point, replace(request, parameters=()))
        return add_parameter_derivatives(model, point, linear, request)
    if isinstance(model, HasSamples):
        return linearize_samples(model, point, request)
    if isinstance(model, HasDelays):
        return linearize_between_delays(model, point, request)
    model = apply_point_parameters(model, point)
    if inputs is not None:
        model, point = with_parameters_as_inputs(model, point, inputs)
    model = model_at_input_limits(model, point)
    chosen = None if inputs is None else find_inputs(model.inputs, inputs)
    model = model if outputs is None else with_outputs(model, outputs)
    with note_declarations(model):
        linear, _ = linearize_by_method(model, point, request)
    return linear if chosen is None else with_inputs(linear, chosen)


def linearize_with_dead_time(model: Model, point: OperatingPoint, request: Request) -> LinearModel:
    """Return the linear model with the delays of a request: on wires of a system, of inputs, and of outputs."""
    if request.parameters:
        raise UsageError(DELAYED_DERIVATIVES)
    delayed, signal_delays = delay_wires(model, request.delays)
    linear = linearize_request(delayed, point, replace(request, delays={}))
    inputs: dict[str, float] = {}
    outputs: dict[str, float] = {}
    for name, seconds in signal_delays.items():
        is_input, is_output = linear.inputs.has(name), linear.outputs.has(name)
        if is_input and is_output:
            raise UsageError(
                f"'{name}' is an input and an output of the linear model: lin.with_delays(inputs={{...}}, "
                "outputs={...}) says which of them has the delay."
            )
        if not is_input and not is_output:
            names = (*linear.inputs.names, *linear.outputs.names)
            raise UnknownNameError.among(name, names, "an input or output of the linear model, to be delayed")
        (inputs if is_input else outputs)[name] = seconds
    if not signal_delays:
        return linear
    late = linear.with_delays(inputs=inputs, outputs=outputs)
    return late if not outputs else note_constant_past(late)


def note_constant_past(linear: DelayedLinearModel) -> DelayedLinearModel:
    """Return a linear model of a point that moves with a warning about the past of its delayed signals."""
    if linear.is_equilibrium is not False or any(warning.kind == "delays" for warning in linear.warnings):
        return linear
    return linear.with_fields(warnings=(*linear.warnings, Remark("delays", CONSTANT_PAST)))


def linearize_between_delays(model: HasDelays, point: OperatingPoint, request: Request) -> DelayedLinearModel:
    """Return the linear model of a model with delays: that of the model between them, closed by the delays."""
    cut = model.cut_delays(point)
    requested_inputs, requested_outputs = request.inputs, request.outputs
    m = len(cut.channels)
    inputs, outputs = cut.model.inputs.names, cut.model.outputs.names
    count_u, count_y = len(inputs) - m, len(outputs) - (m - len(cut.shared_inputs))
    chosen_inputs_before = list(inputs[:count_u] if requested_inputs is None else requested_inputs)
    chosen_outputs = list(outputs[:count_y] if requested_outputs is None else requested_outputs)
    between = replace(
        request,
        inputs=[*chosen_inputs_before, *inputs[count_u:]],
        outputs=[*chosen_outputs, *outputs[count_y:]],
    )
    core = linearize_request(cut.model, cut.point, between)
    core, channels = add_shared_inputs(core, cut.channels, cut.shared_inputs)
    seconds = dict(zip(cut.channels, cut.seconds, strict=True))
    linear = note_constant_past(DelayedLinearModel.of_core(core, channels, [seconds[channel] for channel in channels]))
    late = {name: seconds for name, seconds in cut.of_inputs.items() if linear.inputs.has(name)}
    return linear.with_delays(inputs=late) if late else linear


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
    return linearize_by_method(model_at_input_limits(model, point), point, request, previous)


def along_motion(model: Model, point: OperatingPoint) -> tuple[list[Remark], LinearModel | None]:
    """Say whether A stays along the motion of a point that was trimmed, and return what is linear if it does."""
    with suppress(FmilinError):
        request = Request()
        at = compute(model, point, request, describe_choice(model, request, None))
        run_checks(at, FRAME_CHECKS).raise_first(FRAME_CHECKS)
        remarks = report_motion(
            model, at.base, at.frame, at.motion, Remark("steady", "The motion continues unchanged.")
        )
        stays = at.motion.steady[0] or at.motion.change.is_compared[0]
        if not stays or any(remark.kind == "periodic" for remark in remarks):
            return remarks, None
        linear = at.linear
        other = at.motion.selections.get(0, at.nearby.frame.selection)
        if other is not at.nearby.frame.selection:
            nearby, jacobians = change_coordinates(at.nearby, at.jacobians, other)
            linear = assemble_point(at.evaluator, nearby, jacobians, at.observations.turns)
        return remarks, replace(linear, warnings=tuple(remarks))
    return [], None
