"""A solver with steps of its own: between them a model stands still, whatever communication steps it is asked for.

Such a model is a discrete one over its own step. It is noticed by communication steps that move nothing while others
do, at equal distances, the inputs displaced once and held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import linalg

from fmilin.ground.errors import FmilinError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import INACCURATE, ROUNDING
from fmilin.linear_model.model import LinearModel, relative_error
from fmilin.linearization.identification.impulse_response import Runner

LOOKS = tuple(8.0**k for k in range(1, -5, -1))  # lengths of communication steps, in suggested ones, of the looks
COUNT, LONG = 128, 200  # communication steps of a look, and of what confirms a step
FEWEST = 4  # moves that show a rhythm
PART = 1e-2  # by which inputs are displaced, in their sizes; times OTHER where a rhythm is confirmed
OTHER = 3.0


def own_step(runner: Runner, suggested: float) -> float | None:
    """Return the solver's own step, in seconds, where the model stands still between two; None where it does not."""
    still = np.zeros((FEWEST, len(runner.scales)))
    once, again = (runner.run(still, suggested).after for _ in range(2))
    runner.is_noisy = not np.array_equal(once, again, equal_nan=True)
    if runner.is_noisy:  # noise moves it always
        return None
    for part in LOOKS:
        try:
            step = part * suggested
            moves = _moves(runner, step, COUNT, PART)
            gaps = np.diff(moves)
            if len(moves) >= FEWEST and gaps.max() >= 2 and gaps.max() - gaps.min() <= 1:
                own = next((own for own in _candidates(runner, moves, step) if _is_confirmed(runner, own)), None)
                if own is not None:
                    return own
        except FmilinError:  # it takes no such steps
            continue
    return None


def _moves(runner: Runner, step: float, count: int, part: float) -> np.ndarray:
    """Return the numbers of the communication steps in which an output or a state moves, beyond rounding."""
    seen = runner.run(np.tile(part * runner.scales, (count, 1)), step)
    shown = np.hstack((seen.after, seen.states))
    size = ROUNDING * np.max(np.abs(shown), axis=0, initial=0.0)
    return 1 + np.flatnonzero((np.abs(np.diff(shown, axis=0)) > size).any(axis=1))


def _candidates(runner: Runner, moves: np.ndarray, step: float) -> Iterator[float]:
    """Yield steps of this rhythm: what the model suggests, the roundest numbers, whole fractions of a second."""
    count, span = len(moves) - 1, float(moves[-1] - moves[0])
    least, most, mean = (step * (span + late) / count for late in (-1.0, 1.0, 0.0))
    cadence = runner.stepped.cadence
    rounded = (float(f"{mean:.{digits}g}") for digits in range(1, 7))
    for own in (cadence.internal, cadence.step, *rounded, 1.0 / round(1.0 / mean) if mean < 1.0 else None):
        if own and least <= own <= most:
            yield own


def _is_confirmed(runner: Runner, own: float) -> bool:
    """Whether every such step moves the model, and every second of half its length, whatever the inputs' size."""
    for parts in (1, 2):
        gaps = np.diff(_moves(runner, own / parts, LONG, OTHER * PART))
        if len(gaps) < FEWEST - 1 or (gaps != parts).any():
            return False
    return True


def with_own_step(linear: LinearModel, own: float, *, stands: bool) -> LinearModel:
    """Return the model with what its solver's own step leaves open: what Euler's methods would make of one step."""
    # (exp(A h) - 1)/h and (1 - exp(-A h))/h are the plants of which the explicit and the implicit one make this model.
    n, k = linear.B.shape
    M = np.zeros((n + k, n + k))
    M[:n, :n], M[:n, n:] = linear.A, linear.B
    ahead, back = (sign * (linalg.expm(sign * own * M) - np.eye(n + k)) / own for sign in (1.0, -1.0))
    off: FloatArray = np.maximum(np.abs(ahead - M), np.abs(back - M))[:n]
    errors = replace(
        linear.errors, A=np.maximum(linear.errors.A, off[:, :n]), B=np.maximum(linear.errors.B, off[:, n:])
    )
    A, B = relative_error(errors.A, linear.A), relative_error(errors.B, linear.B)
    what = "stands still between its own steps of" if stands else "takes no shorter steps than"
    text = (
        f"The model {what} {own:.6g} s: it is discrete, and was identified so; the continuous model agrees with it at "
        f"these steps, inputs held over each. The plant behind the solver may differ by {max(A, B):.1e}, as it does "
        "with Euler's method: which method is inside cannot be told."
    )
    remark = Remark("accuracy" if max(A, B) > INACCURATE else "solver", text)
    return replace(
        linear, errors=errors, accuracy=replace(linear.accuracy, A=A, B=B), warnings=(remark, *linear.warnings)
    )
