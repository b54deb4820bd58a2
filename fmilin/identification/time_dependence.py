"""Whether a later pulse is answered as the first one is: a point that moves, an event, a multistep method."""

from __future__ import annotations

import numpy as np

from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.experiments import Runner, relative_change
from fmilin.signals import FloatArray
from fmilin.tolerances import CHANGES_ALONG_MOTION, INACCURATE

PULSE = 1e-3  # of the sizes of inputs, of pulses that tell whether responses change
ROWS_COMPARED = 20  # steps of the responses that are compared with later ones
NO_CHANGE = 1e-9  # of responses, that is rounding
GLANCE = 4  # steps that show whether the point moves at all
SCALES = (1.0, 8.0, 64.0)  # times the step of these


def find_change(runner: Runner, step: float) -> str:
    """Return how responses change along a motion of the outputs: "" not at all, "smooth", or by an "event".

    A smooth change shows in short records, too. Where these show none, a change in long ones is that of an event.
    """
    nu = len(runner.scales)
    smooth = False
    for scale in SCALES:
        h = scale * step
        still = np.zeros((GLANCE, nu))
        try:
            shown = runner.run(still, h).after
            size = np.max(np.abs(shown), axis=0)
            if not (np.ptp(shown, axis=0) > CHANGES_ALONG_MOTION * size).any():
                continue
            if not runner.affords("whether responses change along the motion", 6 * nu, 8 * nu * ROWS_COMPARED, h):
                return ""
            for j, amplitude in enumerate((PULSE * runner.scales).tolist()):
                first, again = (_respond_to_pulse(runner, j, amplitude, h, 0, ROWS_COMPARED) for _ in range(2))
                later = _respond_to_pulse(runner, j, amplitude, h, ROWS_COMPARED, ROWS_COMPARED)
                rounding = float(np.max(np.finfo(float).eps * size / (amplitude * _largest(first, size)), initial=0.0))
                noise = 10.0 * max(relative_change(again, first), rounding)
                change = relative_change(later, first)
                if change > max(CHANGES_ALONG_MOTION, noise):
                    return "smooth" if smooth or scale == SCALES[0] else "event"
                smooth |= change > max(NO_CHANGE, noise)
        except FmilinError:  # it takes no such steps, or leaves what it can do
            continue
    return ""


def require_equal_steps(runner: Runner, step: float) -> None:
    """Raise a NumericalError if the first step is answered otherwise than the second, as multistep methods do."""
    for j, amplitude in enumerate((PULSE * runner.scales).tolist()):
        first, again, later = (
            _respond_to_pulse(runner, j, amplitude, step, begin, ROWS_COMPARED) for begin in (0, 0, 1)
        )
        change = relative_change(later, first)
        if change > max(INACCURATE, 10.0 * relative_change(again, first)):
            raise NumericalError(
                f"The same pulse of '{runner.model.inputs.names[j]}' is answered otherwise in the second step of "
                f"{step:.6g} s than in the first, by {100 * change:.2g}%: the solver inside starts with another method "
                "(a multistep method), or something happens in a step. Take model exchange (interface='me'), or the "
                "discrete model (fl.Stepping(lifted=True)).",
                variable=runner.model.inputs.names[j],
            )


def _largest(response: FloatArray, size: FloatArray) -> FloatArray:
    largest = np.max(np.abs(response), axis=0, initial=0.0)
    return np.where(largest > 0, largest, np.where(size > 0, size, 1.0))


def _respond_to_pulse(runner: Runner, j: int, amplitude: float, step: float, first: int, count: int) -> FloatArray:
    """Return what a unit pulse on input j in step ``first`` moves the outputs by from there on, (count, ny)."""
    deviations = np.zeros((first + count, len(runner.scales)))
    deviations[first, j] = amplitude
    return runner.odd(deviations, step, amplitude).after[first:]
