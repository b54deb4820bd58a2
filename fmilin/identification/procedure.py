"""The procedure for models that bring their own solver: which way, which step, and how well the result predicts.

Ways, the first that works: ``direct`` (derivatives read between two steps), ``step`` (coordinates displaced, one
step), ``response`` (pulses on the inputs, eigensystem realization); ``multisine`` on demand. Whatever the way,
held-out responses tell how well the result predicts, and only what is confirmed at half the step counts as continuous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.errors import NumericalError, UsageError
from fmilin.identification.by_response import ByResponse
from fmilin.identification.by_step import ByStep
from fmilin.identification.holdout import held_out
from fmilin.identification.pulses import Runner
from fmilin.identification.sampled import Continuous, sampled_from
from fmilin.identification.steps import CONFIRMED, DEFAULT, IDEAL, rounded
from fmilin.identification.words import Findings
from fmilin.linear_model import LinearModel
from fmilin.model import Model, OperatingPoint
from fmilin.stepped import Stepped, Stepping

__all__ = ["Task", "linearize_stepped"]


@dataclass(frozen=True)
class Task:
    """What is to be linearized, where and how.

    Parameters
    ----------
    model : Model
        Also a :class:`~fmilin.stepped.Stepped` one.
    point : OperatingPoint
    stepping : Stepping
    independent : sequence of str or None
        States that the user wants as coordinates.
    kind : {"partition", "tangent"}
    direct : callable
        Linearizes as a model whose derivatives can be evaluated.
    """

    model: Model
    point: OperatingPoint
    stepping: Stepping
    independent: Sequence[str] | None
    kind: str
    direct: Callable[[], LinearModel]


def linearize_stepped(task: Task) -> LinearModel:
    """Return the linear model of a model that can be stepped.

    Raises
    ------
    UsageError
        When the way or the step that was asked for does not fit the model.
    NumericalError
        When no linear model describes what the model answers: it is sampled, or does not follow small inputs.
    """
    model = task.model
    if not isinstance(model, Stepped):
        raise UsageError(f"'{model.info.name}' cannot be stepped: --way, --step and --lifted are for models that can.")
    findings = Findings(model.cadence, model.inputs.names, model.outputs.names)
    runner = Runner(model, task.point)
    begin = task.stepping.step or rounded(model.cadence.step or model.cadence.internal or DEFAULT, model.cadence)
    findings.repetition = model.make_repeatable(task.point, begin)
    ways = _Ways(task, model, runner, findings)
    linear = ways.chosen()
    return replace(linear, warnings=(*findings.remarks(), *linear.warnings))


@dataclass(frozen=True)
class _Ways:
    """The ways, each of which returns a linear model and writes its findings."""

    task: Task
    stepped: Stepped
    runner: Runner
    findings: Findings

    def chosen(self) -> LinearModel:
        """Go the way that was asked for, or the first that works."""
        way = self.task.stepping.way
        if way == "auto":
            return self._lifted() if self.task.stepping.lifted else self._first_that_works()
        if way == "direct" and self.task.stepping.lifted:
            raise UsageError("--way direct reads derivatives, which make a continuous model: leave out --lifted.")
        return {"direct": self._direct, "step": self._step, "response": self._response, "multisine": self._multisine}[
            way
        ]()

    def _lifted(self) -> LinearModel:
        settable = not self.stepped.why_not_settable(self.task.point)
        hidden = bool(self.stepped.cadence.sampled) or not settable
        return self._response() if hidden else self._step()

    def _first_that_works(self) -> LinearModel:
        """Read derivatives where that works and the responses confirm it; else measure responses."""
        reason = self.stepped.why_not_direct(self.task.point)
        if not reason:
            linear = self._direct()
            error = self.findings.error
            if not error > CONFIRMED:
                return linear
            reason = (
                f"Its derivatives make a model that is off by {100 * error:.2g}% of the responses: it has states that "
                "it does not declare, or sampled parts."
            )
        elif not self.stepped.why_not_settable(self.task.point) and not len(self.task.model.constraints):
            tried, reason = self._tried(self._step, reason)
            if tried is not None:
                return tried
        self.findings.restart()
        self.findings.detours.append(reason)
        try:
            return self._response()
        except NumericalError as error:
            hint = " Its derivatives between two steps can be had with --way direct, sampled parts frozen."
            direct = not self.stepped.why_not_direct(self.task.point)
            raise NumericalError(f"{error}{hint if direct else ''}") from None

    def _tried(self, way: Callable[[], LinearModel], before: str) -> tuple[LinearModel | None, str]:
        try:
            linear = way()
        except NumericalError as error:
            return None, f"{before} {error}"
        if self.findings.error > CONFIRMED:
            return None, f"{before} One step from displaced states is off by {100 * self.findings.error:.2g}%."
        return linear, before

    def _direct(self) -> LinearModel:
        reason = self.stepped.why_not_direct(self.task.point)
        if reason and self.task.stepping.way == "direct":
            raise UsageError(f"--way direct cannot be gone. {reason} Try --way response, which needs no states.")
        linear = self.task.direct()
        self.findings.way = "direct"
        model = Continuous(linear.A, linear.B, linear.C, linear.D, linear.f0, linear.T, 0.0)
        cadence = self.stepped.cadence
        fastest = float(np.max(np.abs(np.linalg.eigvals(linear.A)), initial=0.0)) if len(linear.A) else 0.0
        step = self.task.stepping.step or cadence.step or (IDEAL / fastest if fastest > 0 else DEFAULT)
        step = self.task.stepping.step or rounded(step, cadence)
        held = held_out(self.runner, step)
        if held is not None:
            errors = [held.errors(sampled_from(model, step, reading)) for reading in ("at once", "end of step")]
            worst = [float(np.max(e, initial=0.0)) for e in errors]
            best = int(worst[0] > 1e-6 and worst[0] > 10 * worst[1])
            self.findings.fit(errors[best], step)
            self.findings.reading = ("at once", "end of step")[best]
        return linear

    def _step(self) -> LinearModel:
        return ByStep(self.task.model, self.task.point, self.task.stepping, self.runner, self.findings).linearize(
            self.task.independent, self.task.kind
        )

    def _response(self) -> LinearModel:
        return ByResponse(self.task.model, self.task.point, self.task.stepping, self.runner, self.findings).linearize(
            self.task.independent
        )

    def _multisine(self) -> LinearModel:
        from fmilin.identification.by_multisine import ByMultisine

        return ByMultisine(self.task.model, self.task.point, self.task.stepping, self.runner, self.findings).linearize(
            self.task.independent
        )
