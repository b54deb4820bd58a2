"""The linear model of a model that no input moves, or that shows nothing: its free motion, or that there is nothing.

With inputs held, x[k+1] = A x[k] + d and y[k] = C x[k] around the point, so that the differences y[k+1] - y[k] =
C A^k d are the Markov parameters of a model whose only input is d. They are realized as pulses are. At rest nothing
moves, and the linear model has no states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import MISSES, MOVES, PREDICTED
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.identification.by_response import LONG, SHORT, ByResponse
from fmilin.linearization.identification.impulse_response import Markov
from fmilin.linearization.identification.realize import Realized, realize
from fmilin.linearization.identification.result import Measured, linear_model
from fmilin.linearization.identification.sampled import Sampled, continuous_of, sampled_from
from fmilin.linearization.identification.steps import base_period, fitting_step

_TUNED = " Tunable parameters can be taken as inputs (--inputs NAME)."


@dataclass(frozen=True)
class ByFreeMotion(ByResponse):
    """Linearizes by the motion that the model makes by itself."""

    def linearize(self, independent: Sequence[str] | None) -> LinearModel:
        """Return the linear model."""
        step = self._fitting()
        realized = self._realized_at(step)
        discrete = realized.model
        findings = self.findings
        findings.method, findings.step, findings.lifted = "free motion", step, self.stepping.lifted
        findings.order, findings.singular_values = discrete.order, realized.singular_values
        findings.extra.append(self._remark(discrete.order))
        coordinates, S, S_half = self._coordinates(realized, independent)
        sampled, half = (
            self._without_input(m) for m in (discrete.in_coordinates(S), realized.half.in_coordinates(S_half))
        )
        model, other = (sampled, half) if self.stepping.lifted else (continuous_of(sampled), continuous_of(half))
        errors = replace(model, **{name: np.abs(getattr(model, name) - getattr(other, name)) for name in "ABCDT"})
        outputs = self.runner.run(self._still(1), step).at_once[0]
        steps = self.runner.stepped.steps
        return linear_model(Measured(model, errors, "free motion", steps), coordinates, self.model, self.point, outputs)

    def _fitting(self) -> float:
        cadence = self.runner.stepped.cadence
        if self.stepping.step is not None:
            return self.stepping.step
        if self.stepping.lifted:
            return base_period(None, cadence)

        def attempt(step: float) -> tuple[Sampled, float]:
            return self._without_input(self._seen(step, SHORT).model), float("nan")

        return fitting_step(attempt, self.runner, cadence)

    def _seen(self, step: float, count: int, order: int | None = None) -> Realized:
        """Realize the differences of a run."""
        once, again = (self._differences(step, count) for _ in range(2))
        ny, nu = len(self.model.outputs), 1
        nothing = np.zeros((ny, nu))
        markov = Markov(nothing, once, np.abs(once - again), nothing, "at once", step)
        return realize(markov, ny, None, order, np.ones(1))

    def _differences(self, step: float, count: int) -> FloatArray:
        """Return the changes of outputs and states from step to step, shape (count, ny + N, 1); 0 where rounding."""
        run = self.runner.run(self._still(count + 1), step)
        states = np.vstack((self.point.states, run.states[:-1]))
        seen = np.hstack((run.at_once, states))
        if not np.isfinite(seen).all():
            raise NumericalError(
                f"The model moves to infinity within {count} steps of {step:g} s. Take a smaller --step."
            )
        sizes = np.concatenate((self.model.outputs.scales(run.at_once[0]), self.model.states.scales(self.point.states)))
        change = np.diff(seen, axis=0)
        return np.where(np.max(np.abs(change), axis=0) > MOVES * step * sizes, change, 0.0)[:, :, None]

    def _still(self, count: int) -> FloatArray:
        return np.zeros((count, len(self.runner.scales)))

    def _without_input(self, model: Sampled) -> Sampled:
        """Return the model whose pulse was its own drift, with the inputs it has, none of which moves it."""
        nu = len(self.runner.scales)
        B, D = np.zeros((model.order, nu)), np.zeros((len(model.C), nu))
        return replace(model, B=B, D=D, drift=model.B[:, 0])

    def _realized_at(self, step: float) -> Realized:
        """Return the smallest order that predicts the motion in half steps, which it was not made from, as any does."""
        most = self._seen(step, LONG)
        if not most.model.order:
            return most
        h = step if self.stepping.lifted else step / 2
        seen = self._differences(h, SHORT)[:, : len(self.model.outputs) + len(self.model.states), 0]
        orders = range(1, most.model.order + 1) if self.stepping.order is None else [self.stepping.order]
        tried = [self._seen(step, LONG, n) for n in orders]
        off = np.array([self._misfit(r.model, h, seen) for r in tried])
        best = float(np.min(off))
        if not best <= MISSES:
            raise NumericalError(
                f"The model moves by itself, but as no linear one: its motion is missed by {100 * best:.3g}%. Let it "
                "come to rest first (--simulate-to T), or take another point."
            )
        return tried[int(np.flatnonzero(off <= max(2.0 * best, PREDICTED))[0])]

    def _misfit(self, model: Sampled, step: float, seen: FloatArray) -> float:
        try:
            free = self._without_input(model)
            half = free if self.stepping.lifted else sampled_from(continuous_of(free), step, "at once")
        except NumericalError:
            return float("inf")
        C = np.vstack((half.C, half.T))
        predicted, x = np.empty_like(seen), half.drift
        for k in range(len(seen)):
            predicted[k] = C @ x
            x = half.A @ x
        size = np.linalg.norm(seen)
        off = float(np.linalg.norm(seen - predicted) / size) if size else 0.0
        return off if np.isfinite(off) else float("inf")

    def _remark(self, order: int) -> Remark:
        missing = [
            word for word, signals in (("inputs", self.model.inputs), ("outputs", self.model.outputs)) if not signals
        ]
        why = f"The model has no {' and no '.join(missing)}, and its states cannot be set"
        tuned = "" if self.model.inputs or not self.model.moves_parameters else _TUNED
        if not order:
            return Remark(
                "no-response",
                f"{why}; it is at rest or shows nothing of its motion, so the linear model has no states (order 0). "
                f"Export it with inputs and outputs, or for model exchange.{tuned}",
            )
        return Remark("no-response", f"{why}: the linear model is that of its free motion from the point.{tuned}")
