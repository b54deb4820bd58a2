"""Outputs that differ between equal runs: a clock of the computer, a counter, a random number."""

from __future__ import annotations

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError
from fmilin.identification.experiments import Runner
from fmilin.identification.step_size import usable_step
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Response, Stepped
from fmilin.options import Stepping
from fmilin.tolerances import UNREPEATABLE

CALLS, RUNS = 8, 3  # steps of a run, and equal runs
PUSH = 1e-2  # by which inputs are moved in between, in their sizes


def leave_out_unrepeatable(
    model: Model, point: OperatingPoint, stepping: Stepping
) -> tuple[Model, OperatingPoint, tuple[Remark, ...]]:
    """Return the model without outputs that differ between equal runs, with a remark that names them."""
    if not isinstance(model, Stepped) or len(model.outputs) < 2:
        return model, point, ()
    names = find_unrepeatable(model, point, stepping)
    if not names:
        return model, point, ()
    kept = [name for name in model.outputs.names if name not in names]
    listed = ", ".join(f"'{name}'" for name in names)
    text = (
        f"Left out of the outputs: {listed}. Equal runs from the same state give other values there, as a clock of the "
        "computer, a counter or a random number does, and the other outputs repeat."
    )
    return model.with_interface(None, kept), point, (Remark("unrepeatable", text),)


def find_unrepeatable(model: Model, point: OperatingPoint, stepping: Stepping) -> list[str]:
    """Return the outputs whose values differ between equal runs by as much as inputs move them; not all outputs."""
    runner = Runner(model, point)
    still = np.zeros((CALLS, len(runner.scales)))
    pushed = still.copy()
    pushed[: CALLS // 2] = PUSH * runner.scales
    try:
        step = stepping.step or usable_step(runner)
        runner.stepped.make_repeatable(point, step)
        if runner.stepped.repeats:
            return []
        runs, moved = [], []
        for _ in range(RUNS):
            runs.append(_shown(runner.run(still, step)))
            moved.append(_shown(runner.run(pushed, step)))
    except FmilinError:
        return []
    base, answers = np.array(runs), np.array(moved)
    with np.errstate(invalid="ignore"):  # what is no number at all repeats
        spread = np.maximum(np.ptp(base, axis=0), np.ptp(answers, axis=0)).max(axis=0)
        response = np.abs(answers.mean(axis=0) - base.mean(axis=0)).max(axis=0)
    changes = np.nan_to_num(spread) > 0
    # noise that a response stands above is left to the methods for noisy models, and so is noise in all outputs
    if not changes.any() or changes.all():
        return []
    out = changes & (spread > UNREPEATABLE * response)
    return [name for name, left in zip(model.outputs.names, out.tolist(), strict=True) if left]


def _shown(response: Response) -> np.ndarray:
    return np.concatenate((response.at_once, response.after))
