"""The way by pulses: responses to pulses on each input, realized as a discrete model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.discrete_models import Continuous, Sampled, compute_entry_differences
from fmilin.identification.experiments import relative_change
from fmilin.identification.realization import (
    MIN_STEPS,
    Realized,
    before_growth,
    is_out_of_proportion,
    measure_pulses,
    realize,
)
from fmilin.identification.repeatability import require_equal_steps
from fmilin.identification.step_size import find_fitting_step, read_given_step
from fmilin.identification.validation import HeldOut, run_holdout
from fmilin.identification.way import MeasuredWay
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray
from fmilin.tolerances import INACCURATE_ENTRY_ERROR, OTHER_STEPS_ERROR_TOLERANCE, ROUNDING_TOLERANCE

SHORT_RUN_STEPS, LONG_RUN_STEPS = 60, 200  # steps of a run: while a step is searched for, and at last
MAX_REDUCTIONS, REDUCTION_FACTOR = 4, 1 / 30  # of pulses that lead an unstable plant far away
MAX_HANKEL_ENTRIES = 1_000_000  # numbers: its singular values then take a second or so
MIN_RADIANS = 3.0  # of a motion that runs must show, to tell it where the model errs
MIN_RECORD_ANGLE = 0.1  # radians of the fastest motion: a record that is shorter shows but the beginning of any motion


class RealizedWay(MeasuredWay):
    """A way that realizes measured responses as a discrete model."""

    def why_not(self) -> str:
        """Return that there are no inputs to move, or no outputs to see."""
        if missing := self.setting.missing_channels:
            return f"'{self.model.info.name}' has no {' and no '.join(missing)}, so there are no responses to inputs."
        return ""

    def note_realization(self, realized: Realized, holdout: HeldOut | None) -> None:
        """Note the order, what it was chosen from, and how well responses are predicted."""
        findings = self.findings
        findings.step, findings.reading = realized.model.step, realized.model.reading
        findings.order, findings.singular_values = realized.model.order, realized.singular_values
        if holdout is not None:
            findings.note_fit(holdout.errors(realized.model), holdout.step, holdout.noise)
        if realized.significant is not None and realized.model.order > realized.significant:
            text = (
                f"Of the {realized.model.order} requested directions, only {realized.significant} exceed noise and "
                "rounding: the other eigenvalues are meaningless. Choose a smaller order=."
            )
            findings.extra.append(Remark("order-beyond-noise", text))

    def make_linear(self, realized: Realized, method: str) -> LinearModel:
        """Return the linear model of a realization, discrete or continuous as the user wants it."""
        coordinates, S, S_half = self.choose_coordinates(realized)
        sampled = self.measure_drift(realized.model.in_coordinates(S), coordinates)
        half = replace(realized.half.in_coordinates(S_half), drift=sampled.drift)
        if sampled.drift.any():
            self.findings.excess = max(self.findings.excess, self._measure_change_along_motion(sampled))
        if self.stepping.lifted:
            return self.name_model(sampled, compute_entry_differences(sampled, half), coordinates, method, sampled.step)
        model = self.confirm(sampled)
        self._note_short_record(model, sampled.step)
        return self.name_model(model, self._estimate_errors(model, half), coordinates, method, sampled.step)

    def _measure_change_along_motion(self, model: Sampled) -> float:
        """Return how a pulse that comes later is answered otherwise, where the point moves; relative."""
        deviations = np.zeros((2 * SHORT_RUN_STEPS, len(self.experiments.scales)))
        deviations[SHORT_RUN_STEPS] = self.experiments.choose_amplitudes(model.step)
        up, down = (self.experiments.run(sign * deviations, model.step) for sign in (1.0, -1.0))
        part = "at_once" if model.reading == "at once" else "after"
        one, other = getattr(up, part), getattr(down, part)
        answer, total = np.linalg.norm(one - other), np.linalg.norm(one)
        smallest = ROUNDING_TOLERANCE * total / OTHER_STEPS_ERROR_TOLERANCE
        if not np.isfinite(total) or answer <= smallest:  # the point has run away by then
            return 0.0
        return relative_change(model.response(deviations), (one - other) / 2)

    def _estimate_errors(self, model: Continuous, half: Sampled) -> Continuous:
        try:
            other = self.convert_to_continuous(half)
        except FmilinError:
            other = replace(model, A=np.zeros_like(model.A), B=np.zeros_like(model.B))
        off = compute_entry_differences(model, other)
        # one sample of rounding may be small by chance in an entry: what entries have in common is a floor
        floors = {name: np.maximum(getattr(off, name), _root_mean_square(getattr(off, name))) for name in "ABC"}
        return replace(off, **floors, f0=np.abs(model.f0 - other.f0))

    def _note_short_record(self, model: Continuous, step: float) -> None:
        """Warn when runs are far shorter than any motion, or show but the beginning of some in a model that errs."""
        if not len(model.A):
            return
        values, seconds = np.abs(np.linalg.eigvals(model.A)), self.findings.seconds
        slow = int(np.count_nonzero(values * seconds < MIN_RADIANS))
        if slow and seconds and self.findings.doubt > INACCURATE_ENTRY_ERROR:
            text = (
                f"The runs are {seconds:.3g} s long and contain only the beginning of {slow} slower motions: the "
                f"accuracy of the model below {MIN_RADIANS / seconds:.2g} rad/s is unknown. Use a longer step= if "
                "that matters."
            )
            self.findings.extra.append(Remark("short-record", text))
        if self.stepping.step is None:
            return
        fastest = float(np.max(values))
        if fastest * step * LONG_RUN_STEPS < MIN_RECORD_ANGLE:
            text = (
                f"The {LONG_RUN_STEPS} steps of {step:g} s of a run are far shorter than the fastest motion that was "
                f"found ({fastest:.3g} rad/s): slower motions may be missing. Use a longer step=, or leave it out."
            )
            self.findings.extra.append(Remark("short-record", text))


class PulseResponses(RealizedWay):
    """Linearizes by pulses on the inputs, at a point along the motion of which responses do not change."""

    name = "response"
    option = "response"
    what = "Responses to pulses on the inputs"

    def identify(self) -> LinearModel:
        """Return the linear model."""
        experiments = self.experiments
        is_sampled = self.stepping.lifted or bool(experiments.cadence.sampled)
        if experiments.cadence.internal and not is_sampled and not experiments.is_noisy:
            require_equal_steps(experiments, experiments.cadence.internal)
        step = self._choose_step()
        nu = len(experiments.scales)
        what = f"runs of {LONG_RUN_STEPS} steps, which show slower motions"
        count = LONG_RUN_STEPS if experiments.affords(what, 4 * nu, 4 * nu * LONG_RUN_STEPS, step) else SHORT_RUN_STEPS
        self.findings.seconds = count * step
        realized, holdout = self._realize(step, count, errors=True)
        self.note_realization(realized, holdout)
        return self.make_linear(realized, "responses")

    def _choose_step(self) -> float:
        def attempt(step: float) -> tuple[Sampled, float]:
            realized, _ = self._realize(step, SHORT_RUN_STEPS, errors=False)
            return realized.model, realized.error

        cadence = self.experiments.cadence
        is_given = self.stepping.step or cadence.sampled or cadence.period
        return find_fitting_step(
            attempt, self.experiments, read_given_step(self.stepping, self.experiments) if is_given else None
        )

    def _realize(self, step: float, count: int, *, errors: bool) -> tuple[Realized, HeldOut | None]:
        experiments, model = self.experiments, self.model
        rows = max(1, (len(model.outputs) + len(model.states)) * max(1, len(experiments.scales)))
        count = max(MIN_STEPS, min(count, int(2 * np.sqrt(MAX_HANKEL_ENTRIES / rows))))
        markov = measure_pulses(experiments, experiments.choose_amplitudes(step), step, count, errors=errors)
        # Pulses may lead an unstable plant so far away that it is not linear: try smaller ones.
        for _ in range(MAX_REDUCTIONS if errors and not experiments.is_noisy else 0):
            is_far_away = is_out_of_proportion(markov)
            if not is_far_away.any() or not experiments.reduce_amplitudes(step, REDUCTION_FACTOR):
                break
            smaller = measure_pulses(experiments, experiments.choose_amplitudes(step), step, count)
            if not is_out_of_proportion(smaller).sum() < is_far_away.sum():
                break
            markov = smaller
        if not np.isfinite(markov.Y).all():
            raise NumericalError(
                f"The response of the model to pulses of its inputs is NaN within {count} steps of {step:g} s. Choose "
                "another point, or a smaller step=."
            )
        markov = before_growth(markov)
        holdout = run_holdout(experiments, step)
        error = None if holdout is None else holdout.error
        amplitudes = experiments.choose_amplitudes(step)
        return realize(markov, len(model.outputs), error, self.stepping.order, amplitudes), holdout


def _root_mean_square(matrix: FloatArray) -> float:
    return float(np.sqrt(np.mean(matrix**2))) if matrix.size else 0.0
