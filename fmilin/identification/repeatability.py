"""Whether responses repeat: in equal runs, in later steps of a point that moves, and in the second step of a solver.

Outputs that differ between equal runs show a clock of the computer, a counter, or a random number.
"""

from __future__ import annotations

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.experiments import Experiments, relative_change
from fmilin.identification.step_size import find_usable_step
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Response
from fmilin.options import Stepping
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, INACCURATE_ENTRY_ERROR, MOTION_RESPONSE_TOLERANCE, UNREPEATABLE_DIFFERENCE_RATIO

SMALL_PULSE_SIZE = 1e-3  # of the sizes of inputs, of pulses that tell whether responses change
STEPS_COMPARED = 20  # steps of the responses that are compared with later ones
RESPONSE_CHANGE_TOLERANCE = 1e-9  # of responses, that is rounding
STILL_STEPS = 4  # that show whether the point moves at all
SCALES = (1.0, 8.0, 64.0)  # times the step of these
CALL_COUNT, RUN_COUNT = 8, 3  # steps of a run, and equal runs, in which an output may differ
INPUT_PUSH_SIZE = 1e-2  # by which inputs are moved in between, in their sizes


def find_change(experiments: Experiments, step: float) -> str:
    """Return how responses change along a motion of the outputs: "" not at all, "smooth", or by an "event".

    A smooth change shows in short records, too. Where these show none, a change in long ones is that of an event.
    """
    nu = len(experiments.scales)
    smooth = False
    for scale in SCALES:
        h = scale * step
        still = np.zeros((STILL_STEPS, nu))
        try:
            outputs = experiments.run(still, h).after
            size = np.max(np.abs(outputs), axis=0)
            if not (np.ptp(outputs, axis=0) > MOTION_RESPONSE_TOLERANCE * size).any():
                continue
            # three pulses for each input, up and down, over as many steps as are compared and the steps before
            if not experiments.affords("whether responses change along the motion", 6 * nu, 8 * nu * STEPS_COMPARED, h):
                return ""
            for j, amplitude in enumerate((SMALL_PULSE_SIZE * experiments.scales).tolist()):
                first, again = (experiments.respond_to_pulse(j, amplitude, h, STEPS_COMPARED).after for _ in range(2))
                later = experiments.respond_to_pulse(j, amplitude, h, STEPS_COMPARED, STEPS_COMPARED).after
                rounding = float(np.max(EPS * size / (amplitude * _largest(first, size)), initial=0.0))
                # two equal runs show noise once: ten times that is certain
                noise = 10.0 * max(relative_change(again, first), rounding)
                change = relative_change(later, first)
                if change > max(MOTION_RESPONSE_TOLERANCE, noise):
                    return "smooth" if smooth or scale == SCALES[0] else "event"
                smooth |= change > max(RESPONSE_CHANGE_TOLERANCE, noise)
        except FmilinError:  # it takes no such steps, or leaves what it can do
            continue
    return ""


def require_equal_steps(experiments: Experiments, step: float) -> None:
    """Raise a NumericalError if the first step is answered otherwise than the second, as multistep methods do."""
    for j, amplitude in enumerate((SMALL_PULSE_SIZE * experiments.scales).tolist()):
        first, again, later = (
            experiments.respond_to_pulse(j, amplitude, step, STEPS_COMPARED, begin).after for begin in (0, 0, 1)
        )
        change = relative_change(later, first)
        # two equal runs show noise once: ten times that is certain
        if change > max(INACCURATE_ENTRY_ERROR, 10.0 * relative_change(again, first)):
            raise NumericalError(
                f"The same pulse of '{experiments.model.inputs.names[j]}' has different responses in the first and "
                f"second step of {step:.6g} s, by {100 * change:.2g}%: the solver inside starts with another method "
                "(a multistep method), or an event occurs in a step. Use model exchange (interface='me'), or the "
                "discrete model (fl.Stepping(lifted=True)).",
                variable=experiments.model.inputs.names[j],
            )


def _largest(response: FloatArray, size: FloatArray) -> FloatArray:
    largest = np.max(np.abs(response), axis=0, initial=0.0)
    return np.where(largest > 0, largest, np.where(size > 0, size, 1.0))


def leave_out_unrepeatable(model: Model, point: OperatingPoint, stepping: Stepping) -> tuple[Model, tuple[Remark, ...]]:
    """Return the model without outputs that differ between equal runs, with a diagnostic that names them."""
    names = find_unrepeatable(model, point, stepping) if len(model.outputs) > 1 else []
    if not names:
        return model, ()
    repeatable = [name for name in model.outputs.names if name not in names]
    listed = ", ".join(f"'{name}'" for name in names)
    text = (
        f"Left out of the outputs: {listed}. Equal runs from the same state return other values for them, as from a "
        "clock, a counter or a random number; the other outputs repeat."
    )
    return model.with_interface(None, repeatable), (Remark("unrepeatable", text),)


def find_unrepeatable(model: Model, point: OperatingPoint, stepping: Stepping) -> list[str]:
    """Return the outputs with values that differ between equal runs by as much as inputs move them; not all outputs."""
    experiments = Experiments(model, point)
    still = np.zeros((CALL_COUNT, len(experiments.scales)))
    pushed = still.copy()
    pushed[: CALL_COUNT // 2] = INPUT_PUSH_SIZE * experiments.scales
    try:
        step = stepping.step or find_usable_step(experiments)
        experiments.stepped.make_repeatable(point, step)
        if experiments.stepped.repeats:
            return []
        runs: list[FloatArray] = []
        pushed_runs: list[FloatArray] = []
        for _ in range(RUN_COUNT):
            runs.append(_join_outputs(experiments.run(still, step)))
            pushed_runs.append(_join_outputs(experiments.run(pushed, step)))
    except FmilinError:
        return []
    base, moved = np.array(runs), np.array(pushed_runs)
    with np.errstate(invalid="ignore"):  # NaN repeats
        spread = np.maximum(np.ptp(base, axis=0), np.ptp(moved, axis=0)).max(axis=0)
        response = np.abs(moved.mean(axis=0) - base.mean(axis=0)).max(axis=0)
    changes = np.nan_to_num(spread) > 0
    # noise above which a response stands is left to the ways for noisy models, and so is noise in all outputs
    if not changes.any() or changes.all():
        return []
    is_unrepeatable = changes & (spread > UNREPEATABLE_DIFFERENCE_RATIO * response)
    return [name for name, out in zip(model.outputs.names, is_unrepeatable.tolist(), strict=True) if out]


def _join_outputs(response: Response) -> FloatArray:
    return np.concatenate((response.at_once, response.after))
