"""Remarks on a measured model: method, fit, order, sampling convention, sampled parts."""

from collections.abc import Sequence

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.identification.integrators import EXACT
from fmilin.model.stepping import Cadence
from fmilin.signals import FloatArray
from fmilin.tolerances import MISSES, PREDICTED

_METHODS = {
    "direct": "Derivatives were read between two steps of the model, at states that were set there (method direct).",
    "products": "The model's states cannot be set between two steps: its directional derivatives were taken where it "
    "stands, and nothing else confirms them (method direct).",
    "step": "Coordinates and inputs were displaced and one step was taken from each (method step).",
    "response": "Pulses on the inputs were answered and realized as a linear model (method response): what no input "
    "moves, or no output shows, is not in it.",
    "multisine": "The frequency response to multisines was measured and realized as a linear model (method multisine): "
    "what no input moves, or no output shows, is not in it.",
    "free motion": "The motion that the model makes by itself was realized as a linear model (method response).",
}
_GAIN = (
    "Pulses on the inputs are answered at once and never later (method {method}): the model is static, a table of "
    "gains D with no states."
)
_READINGS = {
    "at once": "Outputs belong to the moment when the input is set: y[k] = C x[k] + D u[k], before the step.",
    "end of step": "The model calculates its outputs at the end of a step only, or a part of it settles within a step "
    "(measured: an input shows in them after the step in which it acts, also in a quarter of it).",
}
MOST_VALUES = 6
NOISY = 0.01
SAME_AGAIN = 1e-9
POOR = 0.05  # errors on held-out responses that a user is warned of


class Findings:
    """Collects findings until there is a linear model."""

    def __init__(self, cadence: Cadence, inputs: Sequence[str], outputs: Sequence[str], solver: str = "") -> None:
        self._solver = solver
        self._cadence, self._inputs, self._outputs = cadence, tuple(inputs), tuple(outputs)
        self.others: list[str] = []
        self.repetition = ""
        self.stands_between = False  # between its solver's own steps: no halves can be confirmed
        self.restart()

    def restart(self) -> None:
        """Forget the findings of a method that was left."""
        self.method = ""
        self.step = self.seconds = 0.0  # of a communication step, of the longest runs where that matters
        self.error = float("nan")
        self.half_error = float("nan")
        self.noise = 0.0
        self.unmeasured = "the model does not take such steps"  # why, where it was not
        self.coarse_solver = ""  # why responses speak against the solver only; empty otherwise
        self.excess = 0.0  # the largest error on held-out responses beyond their noise
        self.reading = ""
        self.singular_values: FloatArray = np.empty(0)
        self.order = 0
        self.lifted = False
        self.integrator = EXACT  # the one that responses in half steps confirm
        self.nyquist = 0.0
        self.is_limit_of_steps = False  # whether errors of the solver were extrapolated to vanishing steps
        self.change_in_step = 0.0  # of A and B along the motion of the point, relative
        self.extra: list[Remark] = []
        self._worst = ""

    def fit(self, errors: FloatArray, step: float, noise: FloatArray) -> None:
        """Note the errors on held-out responses, output by output, and what of them is noise."""
        self.step = step
        self.error = float(np.max(errors, initial=0.0))
        self.noise = float(np.max(noise, initial=0.0))
        self.excess = float(np.sqrt(np.max(np.maximum(errors**2 - (2 * noise) ** 2, 0.0), initial=0.0)))
        self._worst = self._outputs[int(np.argmax(errors))] if errors.size else ""

    @property
    def doubt(self) -> float:
        """The error on held-out responses beyond noise, in whole steps or in halves, whichever is larger."""
        half = 0.0 if np.isnan(self.half_error) else self.half_error
        doubt = max(self.excess, float(np.sqrt(max(half**2 - (2 * self.noise) ** 2, 0.0))))
        missed = 0.0 if np.isnan(self.error) else self.error
        # noise of that size explains every miss, and then nothing was confirmed
        return max(doubt, missed) if missed > MISSES else doubt

    def remarks(self) -> list[Remark]:
        """Return all findings as remarks."""
        remarks = [Remark("sampled", text) for text in self._sampled()]
        exact = self.error <= PREDICTED and self.excess <= POOR and self.noise <= SAME_AGAIN
        if self.method in ("response", "multisine") and not self.order and exact:
            words = [_GAIN.format(method=self.method), *self._step_words(), self._solver, self._fit_words()]
            return [*remarks, Remark("method", " ".join(w for w in words if w)), *self.extra]
        how = [_METHODS.get(self.method, self.method), *self._step_words(), self._solver]
        remarks += [Remark("method", " ".join(how).strip())]
        remarks += [Remark("other-method", f"Another method was left. {text}") for text in self.others]
        remarks += [Remark("fit", self._fit_words())]
        if self.singular_values.size:
            remarks.append(Remark("order", self._order_words()))
        if self.reading:
            remarks.append(Remark("sampling", self._reading_words()))
        if self.repetition:
            remarks.append(Remark("repetition", self.repetition))
        if self.noise > NOISY and self.method in ("step", "response"):
            text = f"Equal runs differ by {100 * self.noise:.3g}% of the responses: method='multisine' averages that."
            remarks.append(Remark("noise", text))
        if self.excess > POOR:
            text = (
                f"The model misses held-out responses by {100 * self.excess:.3g}% of their size beyond noise: a "
                "kink, or motion that is not linear. Look at it before you rely on it."
            )
            remarks.append(Remark("poor-fit", text))
        return [*remarks, *self.extra]

    def _sampled(self) -> list[str]:
        if not self._cadence.sampled or self.lifted:
            return []
        what = " ".join(self._cadence.sampled)
        return [
            f"The model is SAMPLED in part. {what} A continuous model holds these parts as they are: a loop that "
            "closes through them is open in it. The discrete model over the base period: "
            "fl.Stepping(lifted=True, step=PERIOD)."
        ]

    def _step_words(self) -> list[str]:
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

    def _fit_words(self) -> str:
        if np.isnan(self.error):
            why = "there are no inputs" if not self._inputs else "there are no outputs"
            if self._inputs and self._outputs:
                why = self.unmeasured
            return f"How well the model predicts responses was not measured: {why}."
        words = f"Held-out responses to random inputs in steps of {self.step:g} s are predicted to {self.error:.1e} of "
        words += f"their size (the worst output: '{self._worst}')"
        if not np.isnan(self.half_error):
            words += f", and in half steps, which the model was not made from, to {self.half_error:.1e}"
        elif self.method not in ("direct", "products") and not (self.lifted or self.stands_between):
            words += "; half steps, which would tell an alias, are not taken by the model"
        if self.noise > SAME_AGAIN:
            words += f"; equal runs differ by {self.noise:.1e}"
        return words + "."

    def _order_words(self) -> str:
        s = self.singular_values
        kept = ", ".join(f"{v:.2e}" for v in s[max(0, self.order - MOST_VALUES) : self.order])
        out = ", ".join(f"{v:.2e}" for v in s[self.order : self.order + 3]) or "none"
        etc = "..., " if self.order > MOST_VALUES else ""
        return f"The order {self.order} was chosen from the singular values {etc}{kept} (kept) | {out}, ... (left out)."

    def _reading_words(self) -> str:
        words = _READINGS[self.reading]
        if self.reading == "end of step":
            words += (
                " Here y[k] is read at the end of step k: y[k] = C x[k] + D u[k]."
                if self.lifted
                else " C and D are those of the moment itself."
            )
        return words
