"""The linear model of a model that no input moves, or that shows nothing: its free motion, or that there is nothing.

With inputs held, x[k+1] = A x[k] + d and y[k] = C x[k]: the differences y[k+1] - y[k] = C A^k d are the Markov
parameters of a model whose only input is d, and are realized as pulses are.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.discrete_models import Sampled, continuous_of, sampled_from
from fmilin.identification.experiments import Markov
from fmilin.identification.pulse_responses import LONG, SHORT, ByResponse, before_growth
from fmilin.identification.realization import Realized, realize
from fmilin.identification.step_size import fitting_step, given_step, has_halves
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray
from fmilin.tolerances import CONFIRMED, MOVES, PREDICTED, TOO_INACCURATE, VANISHED

MOST_FREE = 20  # the highest order that one motion can tell
GONE = 1e-6  # a motion of this size beside the first one is rounding and the solver's noise
SUSTAINED = 1e-3  # damping, and distance from a multiple of a frequency, that are none
ELSEWHERE = 1.001  # times its start values: another start
_TUNED = " Tunable parameters can be taken as inputs (inputs=)."


class ByFreeMotion(ByResponse):
    """Linearizes by the motion that the model makes by itself."""

    def linearize(self, independent: Sequence[str] | None) -> LinearModel:
        """Return the linear model."""

        def attempt(step: float) -> tuple[Sampled, float]:
            return self._without_input(self._seen(step, SHORT).model), float("nan")

        step = fitting_step(attempt, self.runner, given_step(self.stepping, self.runner))
        realized = self._realized_at(step)
        own = realized.model
        findings = self.findings
        findings.method, findings.step, findings.lifted = "free motion", step, self.stepping.lifted
        findings.order, findings.singular_values = own.order, realized.singular_values
        findings.extra.append(self._remark(own.order))
        coordinates, S, S_half = self._coordinates(realized, independent)
        sampled, half = (self._without_input(m) for m in (own.in_coordinates(S), realized.half.in_coordinates(S_half)))
        model, other = (sampled, half) if self.stepping.lifted else (continuous_of(sampled), continuous_of(half))
        errors = replace(model, **{name: np.abs(getattr(model, name) - getattr(other, name)) for name in "ABCDT"})
        return self.named(model, errors, coordinates, "free motion", step)

    def _seen(self, step: float, count: int, order: int | None = None) -> Realized:
        """Realize the differences of a run."""
        both = self.runner.once(("free", step, count), lambda: [self._differences(step, count) for _ in range(2)])
        ny, nu = len(self.model.outputs), 1
        nothing = np.zeros((ny, nu))
        markov = before_growth(Markov(nothing, both[0], np.abs(both[0] - both[1]), "at once", step))
        return realize(markov, ny, None, order, np.ones(1))

    def _differences(self, step: float, count: int) -> FloatArray:
        """Return the changes of outputs and states from step to step, shape (count, ny + N, 1); 0 where rounding."""
        run = self.runner.run(self._still(count + 1), step)
        states = np.vstack((self.point.states, run.states[:-1]))
        seen = np.hstack((run.at_once, states))
        if not np.isfinite(seen).all():
            raise NumericalError(
                f"The model moves to infinity within {count} steps of {step:g} s. Take a smaller step=."
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
        self.runner.require(20, 15 * LONG, step)
        most = self._seen(step, LONG)
        if not most.model.order:
            return most
        h = step / 2 if not self.stepping.lifted and has_halves(step, self.runner.cadence) else step
        seen = self._differences(h, SHORT)[:, : len(self.model.outputs) + len(self.model.states), 0]
        tries = range(1, min(most.model.order, MOST_FREE) + 1) if self.stepping.order is None else [self.stepping.order]
        tried = [self._seen(step, LONG, n) for n in tries]
        off = np.array([self._misfit(r.model, h, seen) for r in tried])
        best = float(np.min(off))
        if not best <= TOO_INACCURATE:
            raise self._refusal(f"its motion in half steps is missed by {100 * best:.3g}%")
        number = int(np.flatnonzero(off <= max(2.0 * best, PREDICTED))[0])
        chosen = tried[number]
        self.findings.half_error = float(off[number])
        self._require_linear(chosen.model, step)
        return chosen

    @staticmethod
    def _refusal(why: str) -> NumericalError:
        return NumericalError(
            f"The model moves by itself, but not as a linear model does: {why}. Let it come to rest first "
            "(fl.snapshots(model, times=[T])), or take another point."
        )

    def _require_linear(self, model: Sampled, step: float) -> None:
        """Refuse a motion that goes on otherwise, or is another one from another start."""
        # Any motion is that of a linear model of sufficient order for a while, a limit cycle for ever: by multiples of
        # one frequency. What differs between two motions of a linear model obeys the same A and C.
        if cycle := _limit_cycle(np.linalg.eigvals(model.A), step):
            raise self._refusal(f"a limit cycle of about {cycle:.3g} rad/s, as multiples of that frequency tell")
        rows, power = [], np.vstack((model.C, model.T))
        for _ in range(4 * LONG):
            rows.append(power)
            power = power @ model.A
        shown = np.array(rows)
        try:
            once = self._differences(step, len(shown))[:, :, 0]
        except FmilinError:  # it ends, or grows beyond all numbers, before that
            return
        if (late := _departs(shown @ model.B[:, 0], once)) is not None:
            raise self._refusal(f"after {late * step:.3g} s it goes on otherwise than one of order {model.order}")
        try:
            base = self.runner.run(self._still(len(shown)), step).at_once
            inputs = np.tile(self.point.inputs, (len(shown), 1))
            moved = self.runner.stepped.respond_elsewhere(ELSEWHERE, self.point, inputs, step).at_once
        except FmilinError:  # it has no other start
            return
        change, shown = moved - base, shown[:, : base.shape[1]]
        if np.linalg.norm(change[:SHORT]) > GONE * np.linalg.norm(once[:SHORT]):
            x = np.linalg.lstsq(shown[:LONG].reshape(-1, model.order), change[:LONG].ravel(), rcond=1e-10)[0]
            if _departs(shown @ x, change) is not None:
                raise self._refusal(
                    f"from start values {ELSEWHERE} times as large it is another one than order {model.order} can "
                    "make; a limit cycle, or an oscillation whose frequency depends on its size"
                )

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
        why = f"The model has no {' and no '.join(self.missing)}, and its states cannot be set"
        tuned = "" if self.model.inputs or not self.model.moves_parameters else _TUNED
        if not order:
            return Remark(
                "no-response",
                f"{why}; it is at rest or shows nothing of its motion, so the linear model has no states (order 0). "
                f"Export it with inputs and outputs, or for model exchange.{tuned}",
            )
        return Remark("no-response", f"{why}: the linear model is that of its free motion from the point.{tuned}")


def _departs(predicted: FloatArray, seen: FloatArray) -> int | None:
    """Return the first step from which a motion is missed, relative to what it is by then; None if it never is."""
    largest = np.linalg.norm(seen[:SHORT])
    for first in range(0, len(seen) - SHORT + 1, SHORT):
        part = slice(first, first + SHORT)
        size = np.linalg.norm(seen[part])
        if not np.isfinite(size) or size <= GONE * largest:
            return None
        if not np.linalg.norm(predicted[part] - seen[part]) <= CONFIRMED * size:
            return first
    return None


def _limit_cycle(eigenvalues: np.ndarray, step: float) -> float:
    """Return the frequency of an undamped oscillation beside multiples of itself, in rad/s; 0 without any."""
    values = np.log(eigenvalues[np.abs(eigenvalues) > VANISHED].astype(complex))
    values = values[values.imag > 0] / step
    for w in values.imag[np.abs(values.real) < SUSTAINED * values.imag]:
        multiples = np.abs(values.imag / w - np.maximum(1.0, np.round(values.imag / w))) < SUSTAINED
        if np.count_nonzero(multiples) > 1:
            return float(w)
    return 0.0
