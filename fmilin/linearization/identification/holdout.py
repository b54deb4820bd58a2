"""Held-out responses: random inputs that no identification has seen, against the prediction of a linear model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import FmilinError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import QUIET
from fmilin.linearization.identification.impulse_response import Runner, relative_change
from fmilin.linearization.identification.sampled import Sampled

COUNT = 60
PART = 0.3  # of the amplitudes of single pulses: many steps add up


@dataclass(frozen=True)
class HeldOut:
    """One held-out experiment: every input moves at every step, up and down by turns."""

    inputs: FloatArray  # (K, nu), deviations
    # at_once, after: (K, ny), deviations of the outputs, even terms taken out
    at_once: FloatArray
    after: FloatArray
    step: float
    # (ny,), what equal runs differ by, relative to each output's response: no model can predict better
    noise: FloatArray

    def errors(self, model: Sampled) -> FloatArray:
        """Return the error of each output, (ny,), relative to its own response; 0 of one that stays far more quiet."""
        measured = self.at_once if model.reading == "at once" else self.after
        off = np.linalg.norm(measured - model.response(self.inputs), axis=0)
        size = np.linalg.norm(measured, axis=0)
        largest = float(np.max(size, initial=0.0))
        responding = size > QUIET * largest
        errors: FloatArray = np.where(
            responding, off / np.where(responding, size, 1.0), np.where(off > QUIET * largest, 1.0, 0.0)
        )
        return np.where(np.isfinite(errors), errors, np.inf)

    def error(self, model: Sampled) -> float:
        """Return the largest of :meth:`errors`."""
        return float(np.max(self.errors(model), initial=0.0))


def solver_noise(runner: Runner, held: HeldOut) -> float:
    """Return how much held-out responses change when every step is taken as two, relative; 0 where it cannot be told.

    The inputs are the same at all times, so that only the model's own solver makes a difference.
    """
    inputs = np.repeat(held.inputs, 2, axis=0)
    try:
        up, down = (runner.run(sign * inputs, held.step / 2).after[1::2] for sign in (1.0, -1.0))
    except FmilinError:
        return 0.0
    change = relative_change((up - down) / 2, held.after)
    return change if np.isfinite(change) else 0.0


def held_out(runner: Runner, step: float, seed: int = 8) -> HeldOut | None:
    """Measure one; None when there are no inputs or outputs, or the model does not take such steps."""
    nu, ny = len(runner.scales), len(runner.model.outputs)
    if not nu or not ny:
        return None
    random = np.random.default_rng(seed)
    try:
        amplitudes = runner.choose_amplitudes(step)
        inputs = random.uniform(-1.0, 1.0, (COUNT, nu)) * amplitudes * PART
        up, down, again = (runner.run(sign * inputs, step) for sign in (1.0, -1.0, 1.0))
    except FmilinError:
        return None
    answer = (up.after - down.after) / 2
    # half the difference of two has the noise of two runs, as half the difference of up and down has
    noise, size = np.linalg.norm(up.after - again.after, axis=0) / 2, np.linalg.norm(answer, axis=0)
    relative = np.where(size > 0, noise / np.where(size > 0, size, 1.0), 0.0)
    return HeldOut(inputs, (up.at_once - down.at_once) / 2, answer, step, relative)
