"""The procedure for models that bring their own solver: which method, which step, and how well the result predicts.

Methods, the first that works: ``direct`` (derivatives read between two steps), ``step`` (coordinates displaced, one
step), ``response`` (pulses on the inputs, eigensystem realization); ``multisine`` on demand.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from fmilin.diagnostics import Remark, discrete_states_remarks, model_remarks
from fmilin.errors import FmilinError, KinkError, ModelError, NumericalError, UsageError
from fmilin.identification.discrete_models import Continuous, sampled_from
from fmilin.identification.displaced_states import ByStep
from fmilin.identification.experiments import Runner
from fmilin.identification.findings import Findings
from fmilin.identification.integrators import EXACT
from fmilin.identification.pulse_responses import ByResponse
from fmilin.identification.solver_step import own_step, whole_step, with_integrator, with_own_step
from fmilin.identification.step_size import COUNT, IDEAL, held_out, rounded, solver_noise, usable_step
from fmilin.identification.validation import is_coarse_solver, solver_error, with_accuracy_required, with_solver_error
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.no_response import dead_zone_error, dead_zone_text, has_no_response, with_remark_on_response
from fmilin.model.capabilities import read_discrete_states, read_products
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Cadence, Stepped
from fmilin.options import Stepping
from fmilin.tolerances import COARSE_SOLVER, CONFIRMED, MISSES, PREDICTED

Method = TypeVar("Method")

FAR_OFF = 0.05  # how far, in sizes of the states, a point that moves by itself may get while responses are compared

logger = logging.getLogger("fmilin.identification")


@dataclass(frozen=True)
class Task:
    """What is to be linearized, where and how."""

    model: Model  # also a :class:`~fmilin.model.stepping.Stepped` one
    point: OperatingPoint
    stepping: Stepping
    independent: Sequence[str] | None  # states that the user wants as coordinates
    kind: str
    direct: Callable[[str | None], LinearModel]  # linearizes by ``derivatives`` of a kind, or None: as asked for
    keep_inaccurate: bool = False  # whether a model that nothing moves is wanted even where larger pushes move it


def linearize_stepped(task: Task) -> LinearModel:
    """Return the linear model of a model that can be stepped."""
    model = task.model
    if not isinstance(model, Stepped):
        raise UsageError(
            f"'{model.info.name}' cannot be stepped: method=, step= and lifted= are for models that can. Leave them "
            "out."
        )
    if model.constraints.prescribing:
        _require_derivatives(task)
    jumping = inputs_that_may_jump(model)
    moved: Model = model
    point = task.point
    if len(jumping) < len(model.inputs):
        moved = model.with_interface(inputs=[model.inputs.names[j] for j in jumping])
        point = replace(point, inputs=point.inputs[jumping])
    runner = Runner(moved, point, task.stepping.amplitude, task.stepping.budget)
    try:
        return _linearized(task, runner)
    except NumericalError as error:
        if isinstance(error, KinkError) or not runner.left_out:
            raise
        raise NumericalError(f"{error} {runner.remark}", variable=error.variable) from None


def inputs_that_may_jump(model: Model) -> list[int]:
    """Return the positions of inputs that neither prescribe a motion nor are rates of inputs that do.

    An input is held during a step. One that prescribes a motion would jump without the impulse of its rate, and the
    responses would be those of a model that has left its constraints.
    """
    smooth = set(model.constraints.prescribing)
    rates = model.inputs.rates
    for j in list(smooth):
        while (j := rates.get(j, -1)) >= 0:
            smooth.add(j)
    return [j for j in range(len(model.inputs)) if j not in smooth]


def _require_derivatives(task: Task) -> None:
    """Raise a UsageError if a model with a prescribed motion is to be linearized from steps."""
    stepping = task.stepping
    if stepping.method not in ("auto", "direct") or stepping.lifted:
        names = ", ".join(f"'{task.model.inputs.names[j]}'" for j in task.model.constraints.prescribing)
        raise UsageError(
            f"The inputs {names} prescribe a motion, and steps in which they jump lead away from the constraints. "
            "Leave out method= and lifted=, so that derivatives are read, or take model exchange (interface='me')."
        )


def _linearized(task: Task, runner: Runner) -> LinearModel:
    model, stepped = task.model, runner.stepped
    begin = task.stepping.step or usable_step(runner)
    repetition = stepped.make_repeatable(runner.point, begin)
    runner.cadence, how_steps = _with_own_step(runner, begin)
    begin = task.stepping.step or usable_step(runner)
    findings = Findings(runner.cadence, model.inputs.names, model.outputs.names, stepped.how_it_solves())
    findings.repetition, findings.stands_between = repetition, bool(how_steps)
    if len(model.inputs) and not len(runner.scales):
        findings.unmeasured = "all inputs prescribe a motion and cannot jump between steps"
    methods = _Methods(task, runner, findings, begin)
    linear = methods.chosen()
    if findings.method in ("direct", "step") and (how := stepped.how_states_are_set()):
        findings.extra.append(Remark("method", how))
    if findings.coarse_solver and findings.method in ("direct", "products"):
        text = (
            f"The model's own solver is coarse: {findings.coarse_solver}. The derivatives were trusted, not the "
            "responses. A smaller solver_tolerance= may help."
        )
        findings.extra.append(Remark("solver", text))
        findings.excess = 0.0
    if runner.reduced:
        text = (
            f"Inputs were moved by {runner.reduced:.1g} of their sizes only: more is not answered in proportion, "
            "as by a limiter. The linear model holds that near the point."
        )
        findings.extra.append(Remark("narrow", text))
    if dead := runner.in_dead_zone:
        if has_no_response(linear) and not task.keep_inaccurate:
            raise dead_zone_error(dead)
        findings.extra.append(
            Remark("stuck", f"{dead_zone_text(dead)} The linear model is that of the model as it stands.")
        )
    if findings.excess > MISSES and task.stepping.method != "direct":
        raise NumericalError(
            f"The responses belong to no linear model that was found: held-out responses are missed by "
            f"{100 * findings.excess:.3g}% of their size beyond noise. Take another method= or step=, or another "
            "operating point."
        )
    linear = _with_errors_of_responses(linear, runner, findings, task)
    if findings.method not in ("direct", "products") and runner.cadence.internal and not task.stepping.lifted:
        linear = with_own_step(
            linear,
            runner.cadence.internal,
            what=how_steps or "takes no shorter steps than",
            integrator=task.stepping.integrator,
            keep=task.keep_inaccurate,
            change_in_step=findings.change_in_step,
        )
    stated = {str(warning) for warning in linear.warnings}
    own = [*discrete_states_remarks({} if task.stepping.lifted else read_discrete_states(model))]
    own += model_remarks(model.notes)
    rest = [remark for remark in own if str(remark) not in stated]
    return with_remark_on_response(replace(linear, warnings=(*findings.remarks(), *linear.warnings, *rest)))


def _with_errors_of_responses(linear: LinearModel, runner: Runner, findings: Findings, task: Task) -> LinearModel:
    """Return the linear model with its solver's error, and what was left out; refuse what is too inaccurate."""
    sampled = task.stepping.lifted or bool(runner.stepped.cadence.sampled)
    is_measured = findings.method in ("step", "response", "multisine", "free motion")
    responds = is_measured and not sampled
    if responds and findings.integrator is not EXACT:
        linear = with_integrator(linear, runner, findings)
    compares = responds and findings.integrator is EXACT and not findings.is_limit_of_steps
    difference = solver_error(runner, findings.step) if compares else None
    if difference is not None and difference.change > findings.doubt:
        linear = with_solver_error(linear, difference)
    if is_measured:
        # The estimates of displaced states hold what they take for noise, and half a step confirms the result: a large
        # one is told, and is not an error. Neither is one of a discrete model, which nothing else is made of.
        keep = task.keep_inaccurate or findings.method == "step" or sampled
        linear = with_accuracy_required(linear, keep=keep)
    if runner.left_out:
        findings.extra.append(Remark("accuracy", f"This is a first answer. {runner.remark}"))
    return linear


def _with_own_step(runner: Runner, begin: float) -> tuple[Cadence, str]:
    """Return what is known of the model's steps with its solver's own step, and how it takes others than that."""
    cadence = runner.cadence
    if cadence.sampled or cadence.period:
        return cadence, ""
    still, first = np.zeros((1, len(runner.scales))), cadence.declared or begin
    if first != begin:
        try:
            runner.run(still, first)
        except FmilinError:  # it declares a step that it does not take
            first = begin
    try:
        runner.run(still, first / 2)
    except FmilinError:
        return replace(cadence, internal=cadence.internal or first), ""
    runner.looked = False
    if not runner.affords("responses", *runner.attempt, begin):
        return cadence, ""
    runner.looked = True
    if len(runner.scales) and (own := whole_step(runner, first)):
        runner.takes_whole_steps = True
        return replace(cadence, internal=own), "takes whole steps, whatever length it is told, of"
    own = own_step(runner, begin)
    return (replace(cadence, internal=own), "stands still between its own steps of") if own else (cadence, "")


@dataclass(frozen=True)
class _Methods:
    """The methods, each of which returns a linear model and writes its findings."""

    task: Task
    runner: Runner
    findings: Findings
    begin: float

    def chosen(self) -> LinearModel:
        """Follow the method of the request, or the first that works."""
        method = self.task.stepping.method
        if method == "auto":
            return self._lifted() if self.task.stepping.lifted else self._first_that_works()
        if method == "direct" and self.task.stepping.lifted:
            raise UsageError("method='direct' reads derivatives, which make a continuous model. Leave out lifted=True.")
        ways = {"direct": self._direct, "step": self._step, "response": self._response, "multisine": self._multisine}
        return ways[method]()

    def _lifted(self) -> LinearModel:
        settable = not self.runner.stepped.why_not_settable(self.runner.point)
        hidden = bool(self.runner.cadence.sampled) or not settable
        return self._response() if hidden else self._step()

    def _first_that_works(self) -> LinearModel:
        """Read derivatives where the responses confirm them; else displace states; else measure responses."""
        reasons = [self.runner.stepped.why_not_direct(self.runner.point)] if len(self.task.model.states) else []
        if not reasons:
            return self._response()
        if not reasons[0]:
            tried, reasons[0] = self._tried(self._direct, "Derivatives read between two steps", measured=False)
            if tried is not None:
                return tried
        if self.task.model.constraints.prescribing:
            raise NumericalError(
                f"The inputs prescribe a motion, so only derivatives can be read, and they cannot be. {reasons[0]} "
                "Take model exchange (interface='me')."
            )
        if self._provides_products():
            tried, why = self._tried(self._by_products, "Directional derivatives at the communication point")
            if tried is not None:
                return tried
            reasons.append(why)
        if self._can_displace():
            tried, why = self._tried(self._step, "One step from displaced states")
            if tried is not None:
                self.findings.others += reasons
                return tried
            reasons.append(why)
        self.findings.others += reasons
        logger.info("trying: responses to pulses on the inputs")
        try:
            return self._response()
        except NumericalError as error:
            if self.runner.stepped.why_not_direct(self.runner.point):
                raise
            hint = "Its derivatives between two steps follow from method='direct', sampled parts frozen."
            raise NumericalError(f"{error} {hint}", variable=error.variable) from None

    @property
    def _has_channels(self) -> bool:
        """Whether there are inputs to move, and something to see."""
        return bool(len(self.runner.scales)) and bool(len(self.task.model.outputs))

    def _can_displace(self) -> bool:
        if self.runner.stepped.why_not_settable(self.runner.point):
            return False
        return not len(self.task.model.constraints) or not self.runner.stepped.why_not_direct(self.runner.point)

    def _provides_products(self) -> bool:
        """Whether the model answers directional derivatives where it stands, though its states cannot be set."""
        model, point = self.task.model, self.task.point
        if not len(model.states) or len(model.constraints):
            return False
        n, k = len(point.states), len(point.inputs)
        try:
            return read_products(model, point.time, point.states, point.inputs, np.eye(n), np.zeros((k, n))) is not None
        except FmilinError:
            return False

    def _tried(
        self, method: Callable[[], LinearModel], what: str, *, measured: bool = True
    ) -> tuple[LinearModel | None, str]:
        """Follow a method; None with a reason when it fails, or responses (``measured``: or none) speak against it."""
        logger.info("trying: %s", what[0].lower() + what[1:])
        try:
            linear = method()
        except KinkError:  # no method finds a linear model of both sides
            raise
        except (NumericalError, ModelError) as error:
            self.findings.restart()
            return None, str(error)
        off = self.findings.error
        if off <= CONFIRMED or self.findings.coarse_solver or (np.isnan(off) and not (measured and self._has_channels)):
            return linear, ""
        self.findings.restart()
        said = "could not be compared with responses" if np.isnan(off) else f"is off by {100 * off:.3g}% of responses"
        why = "hidden states, sampled parts, or outputs that are old between steps"
        return None, f"{what}: the model {said} ({why})."

    def _direct(self) -> LinearModel:
        reason = self.runner.stepped.why_not_direct(self.runner.point)
        if reason and self.task.stepping.method == "direct":
            if self._provides_products():
                return self._by_products()
            raise UsageError(f"method='direct' is not possible. {reason} Try method='response', which needs no states.")
        return self._compared(self.task.direct(None), "direct")

    def _by_products(self) -> LinearModel:
        return self._compared(self.task.direct("exact"), "products")

    def _compared(self, linear: LinearModel, method: str) -> LinearModel:
        """Note how well a continuous model predicts held-out responses."""
        self.findings.method = method
        moved = inputs_that_may_jump(self.task.model)
        model = Continuous(linear.A, linear.B[:, moved], linear.C, linear.D[:, moved], linear.f0, linear.T, 0.0)
        cadence = self.runner.cadence
        fastest = float(np.max(np.abs(np.linalg.eigvals(linear.A)), initial=0.0)) if len(linear.A) else 0.0
        step = self.task.stepping.step
        if step is None:
            step = self.begin if cadence.step or not fastest else max(rounded(IDEAL / fastest, cadence), self.begin)
        self._compare(model, step)
        moving = float(np.max(np.abs(linear.f0) / linear.states.scales(linear.y0), initial=0.0))
        if self.findings.error > CONFIRMED and moving * step * COUNT > FAR_OFF and not cadence.sampled:
            self._compare(model, rounded(FAR_OFF / (moving * COUNT), cadence))
        coarse = self.findings.error > CONFIRMED and not self.findings.coarse_solver and not cadence.sampled
        if coarse and method == "direct" and is_coarse_solver(self.runner, self.begin):
            self.findings.coarse_solver = (
                f"its responses miss what its derivatives say by {100 * self.findings.error:.2g}%, no farther than "
                f"Euler's method would in steps of {self.begin:g} s"
            )
        return linear

    def _compare(self, model: Continuous, step: float) -> None:
        """Note how well a model predicts held-out responses in steps of ``step``."""
        if not self.runner.affords("responses", *self.runner.attempt, step):
            self.findings.unmeasured = "that takes too long"
            return
        held = held_out(self.runner, step)
        if held is not None:
            errors = [held.errors(sampled_from(model, step, reading)) for reading in ("at once", "end of step")]
            worst = [float(np.max(e, initial=0.0)) for e in errors]
            best = int(worst[0] > PREDICTED and worst[0] > 10 * worst[1])
            self.findings.fit(errors[best], step, held.noise)
            if self.findings.error > CONFIRMED:
                noise = solver_noise(self.runner, held)
                if self.findings.error <= COARSE_SOLVER * noise:
                    self.findings.coarse_solver = (
                        f"its responses change by {100 * noise:.2g}% when a step is taken as two"
                    )
            self.findings.reading = ("at once", "end of step")[best]

    def _step(self) -> LinearModel:
        return self._by(ByStep).linearize(self.task.independent, self.task.kind)

    def _response(self) -> LinearModel:
        if not self._has_channels:
            from fmilin.identification.free_motion import ByFreeMotion

            return self._by(ByFreeMotion).linearize(self.task.independent)
        return self._by(ByResponse).linearize(self.task.independent)

    def _multisine(self) -> LinearModel:
        from fmilin.identification.multisine import ByMultisine

        return self._by(ByMultisine).linearize(self.task.independent)

    def _by(self, kind: Callable[..., Method]) -> Method:
        return kind(self.task.model, self.task.point, self.task.stepping, self.runner, self.findings)
