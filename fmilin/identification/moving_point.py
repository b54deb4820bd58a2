"""The way at a point that moves by itself: responses that are much shorter than its motion.

Deviations from a motion x(t) obey A(t), and a long record shows an average of A along it. The linear model has A at the
point itself. Pulses in m steps and responses of later ones give the generalized Hankel matrix H = O R of a time-varying
model, with rank n (Shokoohi and Silverman 1987), where records of one pulse would have a higher one.

Inputs and outputs of a time-varying model do not determine A: new coordinates T(t) add T' T^-1 to it. So A is
determined where outputs and declared states are enough to be coordinates: z[k+1] = Phi_k z[k], and Phi is extrapolated
back to k = 0. Where they are fewer, a model of short records is off by about what responses change by within the time
constant of the fastest motion: that is the stated error, and above the limit there is no linear model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.discrete_models import Continuous, find_continuous_model, sample_model
from fmilin.identification.experiments import Experiments
from fmilin.identification.realization import Realized, count_significant, find_reading, measure_pulses, realize
from fmilin.identification.repeatability import SMALL_PULSE_SIZE, find_change
from fmilin.identification.time_varying import (
    ModelAtPoint,
    align_models,
    extrapolate_to_vanishing_steps,
    largest_differences,
    measure_difference,
)
from fmilin.identification.way import MeasuredWay
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray
from fmilin.tolerances import INACCURATE_ENTRY_ERROR, MAX_ENTRY_ERROR

WINDOW = 8  # steps of a record that tells the order
MAX_ADJUSTMENTS = 6  # of steps, until a record is about as long as a time constant
MAX_STEPS_BEFORE = 400  # a record that is compared with the first
MAX_STEP_EXPONENT, MIN_STEP_EXPONENT = 6, -8  # powers of two, of the steps of records, in the step that suits the model
_CHANGES = {
    "smooth": "The point moves, and responses change along its motion:",
    "event": "The point moves, and an event follows in which responses change:",
}


class MovingPoint(MeasuredWay):
    """Linearizes by pulses at a point along the motion of which responses change."""

    name = "response"
    option = "response"
    what = "Responses to pulses at a point that moves"

    def why_not(self) -> str:
        """Return that the discrete model is meant, or that responses do not change along the motion of the point."""
        if self.stepping.lifted or self.experiments.cadence.sampled:
            return "The discrete model over a step has no rates."
        return "" if self._find_change() else "Responses do not change along the motion of the point."

    def _find_change(self) -> str:
        return self.experiments.once("change", lambda: find_change(self.experiments, self.setting.begin))

    def identify(self) -> LinearModel:
        """Return the linear model at the point itself."""
        experiments, findings = self.experiments, self.findings
        change = self._find_change()
        shortens = not experiments.cadence.internal
        estimate = self._estimate(change, shortens=shortens)
        findings.step, findings.order = estimate.step, len(estimate.model.A)
        findings.reading = find_reading(experiments, estimate.step, [])
        findings.unmeasured = "the point moves, and the model is valid at its beginning only"
        sampled = sample_model(estimate.model, estimate.step, findings.reading)
        coordinates, S, _ = self.choose_coordinates(Realized(sampled, sampled, np.empty(0), float("nan")))
        model = estimate.model.in_coordinates(S)
        inverse = np.linalg.inv(S)
        size, back = np.abs(S), np.abs(inverse)
        off = estimate.errors
        errors = replace(off, A=size @ off.A @ back, B=size @ off.B, C=off.C @ back, T=off.T @ back, f0=0 * off.f0)
        if estimate.rows is None:  # the motion of hidden states is that of the outputs
            drifting = self.measure_drift(sample_model(model, estimate.step, findings.reading), coordinates)
            model = replace(model, f0=find_continuous_model(drifting).f0)
            which = "hidden states"
        else:
            names = (*self.model.outputs.names, *self.model.states.names)
            which = "the coordinates " + ", ".join(f"'{names[row]}'" for row in estimate.rows)
            findings.is_limit_of_steps = shortens
            findings.change_in_step = estimate.change_in_step
        text = (
            f"{_CHANGES[change]} A and B are those at the point itself, from short "
            f"records in steps of {estimate.step:.3g} s, in {which}. Two estimates differ by {estimate.change:.1e}."
        )
        findings.extra.append(Remark("accuracy" if estimate.change > INACCURATE_ENTRY_ERROR else "fit", text))
        return self.name_model(model, errors, coordinates, "responses", estimate.step)

    def _estimate(self, change: str, *, shortens: bool) -> ModelAtPoint:
        """Return the model at the point; ``shortens``: whether the model takes steps of any length."""
        experiments, step, order = self.experiments, self.setting.begin, self.stepping.order
        if change == "event":  # records that end before it
            amplitudes = SMALL_PULSE_SIZE * experiments.scales
            chosen = order or _find_order(experiments, amplitudes, step, shortens=False)
            return _realize_short_records(experiments, amplitudes, step, chosen, shortens=False, later=False)
        amplitudes = experiments.choose_amplitudes(step)
        chosen = order or _find_order(experiments, amplitudes, step, shortens=shortens)
        if not chosen:
            raise NumericalError(
                "The point moves, and the responses to inputs do not determine a model. Choose another point, or let "
                "it settle first (fl.snapshots(model, times=[T]))."
            )
        powers = range(MAX_STEP_EXPONENT, MIN_STEP_EXPONENT - 1, -1) if shortens else range(1)
        limit = extrapolate_to_vanishing_steps(experiments, amplitudes, step, chosen, powers)
        if limit is None:  # outputs and declared states are fewer than the states that responses show
            return _realize_short_records(experiments, amplitudes, step, chosen, shortens=shortens)
        if not limit.change <= MAX_ENTRY_ERROR:
            raise _moves_too_fast(limit.change, hidden=False)
        return limit


def _find_order(experiments: Experiments, amplitudes: FloatArray, step: float, *, shortens: bool) -> int:
    """Return the rank of the generalized Hankel matrix, the largest over steps of several lengths."""
    most = 0
    nu = len(amplitudes)
    # the given step, and two much longer ones: a slow part is invisible within a short window
    for power in (0, 3, MAX_STEP_EXPONENT) if shortens else (0,):
        # pulses up and down of two sizes for each input and begin; a record has two windows of steps
        experiments.require(4 * nu * WINDOW, 8 * nu * WINDOW**2, 2.0**power * step)
        try:
            most = max(most, _find_rank(experiments, amplitudes, 2.0**power * step))
        except FmilinError:
            continue
    return most


def _find_rank(experiments: Experiments, amplitudes: FloatArray, step: float) -> int:
    blocks, errors = [], []
    for first in range(WINDOW):
        markov = measure_pulses(experiments, amplitudes, step, 2 * WINDOW - first + 1, first=first)
        # seen from the end of the window on: row i shows step WINDOW + i
        rows = slice(WINDOW - first - 1, 2 * WINDOW - first - 1)
        blocks.append(markov.Y[rows])
        errors.append(markov.errors[rows])
    H, E = (np.concatenate(parts, axis=2) for parts in (blocks, errors))  # (WINDOW, rows, WINDOW nu)
    sizes = np.max(np.abs(H), axis=(0, 2))
    if not np.isfinite(H).all() or not sizes.any():
        return 0
    scales = np.where(sizes > 0, sizes, 1.0)[:, None]
    columns = np.tile(amplitudes / np.max(amplitudes), WINDOW)
    shape = (WINDOW * len(sizes), len(columns))
    scaled = (H / scales * columns).reshape(shape)
    noise = (E / scales * columns).reshape(shape)
    return count_significant(np.asarray(np.linalg.svd(scaled, compute_uv=False), dtype=np.float64), 3.0 * noise, shape)


def _realize_short_records(
    experiments: Experiments, amplitudes: FloatArray, step: float, order: int, *, shortens: bool, later: bool = True
) -> ModelAtPoint:
    """Return the model of the first record; what later ones differ by is its error.

    Later ones begin after a time constant and after two, or, without ``later``, after the first.
    """
    count = 2 * order + 4
    model = None
    for _ in range(MAX_ADJUSTMENTS if shortens else 1):  # records about as long as the fastest time constant
        try:
            model = _realize(experiments, amplitudes, step, order)
        except FmilinError:
            step = step / 4
            continue
        fastest = float(np.max(np.abs(np.linalg.eigvals(model.A)), initial=0.0))
        if not shortens or not fastest or 0.5 < fastest * count * step < 2.0:
            break
        # at most a factor of 16 at once: eigenvalues of a poor record are rough
        step = float(np.clip(1.0 / (fastest * count), step / 16, 16 * step))
    if model is None:
        raise _moves_too_fast(float("nan"))
    model = _realize(experiments, amplitudes, step, order)
    fastest = float(np.max(np.abs(np.linalg.eigvals(model.A)), initial=0.0))
    constant = round(1.0 / (fastest * step)) if fastest else count  # steps of a time constant
    starts = [min(max(count, part * constant), MAX_STEPS_BEFORE) for part in (1, 2)] if later else [count]
    try:
        later_models = [
            align_models(_realize(experiments, amplitudes, step, order, first=first), model, count * step)
            for first in starts
        ]
        change = max(measure_difference(model, other, count * step) for other in later_models)
    except FmilinError:
        raise _moves_too_fast(float("nan")) from None
    if not change <= MAX_ENTRY_ERROR:
        raise _moves_too_fast(change)
    off = largest_differences(model, later_models)
    errors = {name: np.maximum(getattr(off, name), change * _largest_of_rows(getattr(model, name))) for name in "ABC"}
    return ModelAtPoint(model, replace(off, **errors), step, change, None)


def _largest_of_rows(matrix: FloatArray) -> FloatArray:
    return np.broadcast_to(np.max(np.abs(matrix), axis=1, keepdims=True, initial=0.0), matrix.shape)


def _realize(experiments: Experiments, amplitudes: FloatArray, step: float, order: int, first: int = 0) -> Continuous:
    markov = measure_pulses(experiments, amplitudes, step, 2 * order + 4, first=first)
    if not np.isfinite(markov.Y).all():
        raise NumericalError(f"The response of the model to pulses is NaN in steps of {step:g} s.")
    realized = realize(markov, len(experiments.model.outputs), None, order, amplitudes)
    return find_continuous_model(realized.model)


def _moves_too_fast(change: float, *, hidden: bool = True) -> NumericalError:
    amount = f" by {100 * change:.3g}%" if np.isfinite(change) else ""
    what = "a time constant: they determine no linear model of hidden states" if hidden else "a few steps"
    advice = ", or as many outputs as there are states" if hidden else ""
    return NumericalError(
        f"The point moves by itself, and its responses change{amount} along that motion, within {what}. Let it settle "
        "first (fl.snapshots(model, times=[T])), choose another point, or use model exchange "
        f"(interface='me'){advice}."
    )
