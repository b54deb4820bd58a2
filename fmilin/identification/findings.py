"""The findings of an identification besides the matrices, with their messages: method, fit, order, sampling."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.identification.integrators import EXACT, OneStepMethod
from fmilin.manifold.selection import Selection
from fmilin.model.stepping import Cadence
from fmilin.signals import FloatArray
from fmilin.tolerances import MAX_PREDICTION_ERROR, PREDICTION_ERROR_TOLERANCE

_METHODS = {
    "direct": "Derivatives were read between two steps of the model, at states that were set there (method direct).",
    "products": "The model's states cannot be set between two steps: its directional derivatives were computed at its "
    "present point, without confirmation (method direct).",
    "step": "Coordinates and inputs were displaced, with one step from each (method step).",
    "response": "Responses to pulses on the inputs were realized as a linear model (method response), without "
    "uncontrollable and unobservable parts.",
    "multisine": "The frequency response to multisines was measured and realized as a linear model (method multisine), "
    "without uncontrollable and unobservable parts.",
    "free motion": "The free motion of the model was realized as a linear model (method response).",
}
_GAIN = (
    "Responses to pulses on the inputs are immediate (method {method}): the model is static, a matrix of gains D "
    "without states."
)
_READINGS = {
    "at once": "Outputs belong to the moment when the input is set: y[k] = C x[k] + D u[k], before the step.",
    "end of step": "The model calculates its outputs at the end of a step only, or a part of it settles within a step "
    "(measured: an input appears in them after the step in which it acts, also in a quarter of it).",
}
MAX_SINGULAR_VALUES = 6  # that are listed as kept
MAX_QUIET_NOISE_RATIO = 0.01  # difference of equal runs, in parts of the responses, of which a user is warned
REPEATED_RUN_TOLERANCE = 1e-9  # difference of equal runs that is rounding
MAX_HELD_OUT_ERROR = 0.05  # error on held-out responses of which a user is warned


@dataclass
class Findings:
    """The findings of one method of identification before it has a linear model."""

    method: str  # the name of the way
    cadence: Cadence
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    solver: str = ""  # its settings, one sentence
    repetition: str = ""  # what it took that equal runs are equal, one sentence
    takes_halves: bool = True  # whether half a step is one: it is not where the model stands still meanwhile
    lifted: bool = False  # whether the discrete model is meant
    left_methods: list[str] = field(default_factory=list)  # why other ways were left, one sentence each
    step: float = 0.0  # of a communication step, in seconds
    seconds: float = 0.0  # of the longest runs, where that matters
    error: float = float("nan")  # the largest error on held-out responses, NaN: not measured
    half_error: float = float("nan")  # the same in half steps
    excess: float = 0.0  # the largest error on held-out responses beyond their noise
    noise: float = 0.0  # difference of equal runs, relative to the responses
    unmeasured: str = "the model does not take such steps"  # why no error was measured
    coarse_solver: str = ""  # why responses contradict the solver only; empty otherwise
    reading: str = ""  # when outputs are read, see :class:`~fmilin.identification.discrete_models.Sampled`
    singular_values: FloatArray = field(default_factory=lambda: np.empty(0))
    order: int = 0
    integrator: OneStepMethod = EXACT  # the one that responses in half steps confirm
    nyquist: float = 0.0  # the fastest motion, in parts of half the sampling frequency
    is_limit_of_steps: bool = False  # whether errors of the solver were extrapolated to vanishing steps
    change_in_step: float = 0.0  # of A and B along the motion of the point, relative
    extra: list[Remark] = field(default_factory=list)
    worst_output: str = ""
    selection: Selection | None = None  # the coordinates in which derivatives were read; None where none were

    def note_fit(self, errors: FloatArray, step: float, noise: FloatArray) -> None:
        """Note the errors on held-out responses, output by output, and how much of them is noise."""
        self.step = step
        self.error = float(np.max(errors, initial=0.0))
        self.noise = float(np.max(noise, initial=0.0))
        self.excess = float(np.sqrt(np.max(np.maximum(errors**2 - (2 * noise) ** 2, 0.0), initial=0.0)))
        self.worst_output = self.outputs[int(np.argmax(errors))] if errors.size else ""

    @property
    def doubt(self) -> float:
        """The error on held-out responses beyond noise, in whole steps or in halves, whichever is larger."""
        half = 0.0 if np.isnan(self.half_error) else self.half_error
        doubt = max(self.excess, float(np.sqrt(max(half**2 - (2 * self.noise) ** 2, 0.0))))
        missed = 0.0 if np.isnan(self.error) else self.error
        # noise of that size explains every miss, and then nothing was confirmed
        return max(doubt, missed) if missed > MAX_PREDICTION_ERROR else doubt

    def remarks(self) -> list[Remark]:
        """Return all findings as diagnostics."""
        remarks = [Remark("sampled", text) for text in self._describe_sampled_parts()]
        exact = (
            self.error <= PREDICTION_ERROR_TOLERANCE
            and self.excess <= MAX_HELD_OUT_ERROR
            and self.noise <= REPEATED_RUN_TOLERANCE
        )
        if self.method in ("response", "multisine") and not self.order and exact:
            words = [_GAIN.format(method=self.method), *self._describe_step(), self.solver, self._describe_fit()]
            return [*remarks, Remark("method", " ".join(w for w in words if w)), *self.extra]
        how = [_METHODS.get(self.method, self.method), *self._describe_step(), self.solver]
        remarks += [Remark("method", " ".join(how).strip())]
        remarks += [Remark("other-method", f"Another method was rejected. {text}") for text in self.left_methods]
        remarks += [Remark("fit", self._describe_fit())]
        if self.singular_values.size:
            remarks.append(Remark("order", self._describe_order()))
        if self.reading:
            remarks.append(Remark("sampling", self._describe_reading()))
        if self.repetition:
            remarks.append(Remark("repetition", self.repetition))
        if self.noise > MAX_QUIET_NOISE_RATIO and self.method in ("step", "response"):
            text = f"Equal runs differ by {100 * self.noise:.3g}% of the responses: method='multisine' averages that."
            remarks.append(Remark("noise", text))
        if self.excess > MAX_HELD_OUT_ERROR:
            text = (
                f"The model's error for held-out responses exceeds noise by {100 * self.excess:.3g}% of their size: a "
                "kink, or a nonlinear motion. Check it before you rely on it."
            )
            remarks.append(Remark("poor-fit", text))
        return [*remarks, *self.extra]

    def _describe_sampled_parts(self) -> list[str]:
        if not self.cadence.sampled or self.lifted:
            return []
        what = " ".join(self.cadence.sampled)
        return [
            f"The model is SAMPLED in part. {what} A continuous model holds these parts constant, so loops through "
            "them are open. The discrete model over the base period: fl.Stepping(lifted=True, step=PERIOD)."
        ]

    def _describe_step(self) -> list[str]:
        if self.method in ("", "direct", "products") or not self.step:
            return []
        words = [f"The step is {self.step:g} s."]
        if self.nyquist > 0.5:
            words.append(f"The fastest motion is at {self.nyquist:.2g} of half the sampling frequency.")
        if self.lifted:
            words.append(
                "This is the discrete model over one step: x[k+1] - x0 = f0 + A (x[k] - x0) + B (u[k] - u0), inputs "
                "held during the step."
            )
        return words

    def _describe_fit(self) -> str:
        if np.isnan(self.error):
            why = "there are no inputs" if not self.inputs else "there are no outputs"
            if self.inputs and self.outputs:
                why = self.unmeasured
            return f"The prediction error of the model was not measured: {why}."
        words = f"Held-out responses to random inputs in steps of {self.step:g} s are predicted to {self.error:.1e} of "
        words += f"their size (the worst output: '{self.worst_output}')"
        if not np.isnan(self.half_error):
            words += f", and in half steps, which were not used for the model, to {self.half_error:.1e}"
        elif self.method not in ("direct", "products") and not self.lifted and self.takes_halves:
            words += "; the model does not accept half steps, which would detect an alias"
        if self.noise > REPEATED_RUN_TOLERANCE:
            words += f"; equal runs differ by {self.noise:.1e}"
        return words + "."

    def _describe_order(self) -> str:
        s = self.singular_values
        values = ", ".join(f"{v:.2e}" for v in s[max(0, self.order - MAX_SINGULAR_VALUES) : self.order])
        out = ", ".join(f"{v:.2e}" for v in s[self.order : self.order + 3]) or "none"
        etc = "..., " if self.order > MAX_SINGULAR_VALUES else ""
        return (
            f"The order {self.order} was chosen from the singular values {etc}{values} (kept) | {out}, ... (left out)."
        )

    def _describe_reading(self) -> str:
        words = _READINGS[self.reading]
        if self.reading == "end of step":
            words += (
                " Here y[k] is read at the end of step k: y[k] = C x[k] + D u[k]."
                if self.lifted
                else " C and D are those of the moment itself."
            )
        return words
