"""Which measured outputs of a black box wrap: each is followed over more than a turn along the manifold.

An output of a graph says itself where it wraps. Of a black box the output is increased by small steps, along its
gradient; where it jumps by a turn against its slope, the jump is enclosed, and must be a turn to EXACT_TURN_TOLERANCE.
"""

from __future__ import annotations

import numpy as np

from fmilin.design.estimation.filter_motion import ManifoldStepper
from fmilin.design.estimation.slopes import SourceEvaluator
from fmilin.errors import FmilinError
from fmilin.manifold.wrapping_angles import (
    EXACT_TURN_TOLERANCE,
    MAX_TURNS,
    NEAR_STEP_SIZE,
    NEAR_TURN_FRACTION,
    list_turns,
)
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray

STEPS_PER_TURN = 16
# With constraints: a step must not leave the manifold before the coordinates change, where dependent states move by
# BENT times as much. On a circle that is 0.03 radii before its end.
STEPS_ON_MANIFOLD = 64
TURNS = 1.5  # that an output is followed
LONGEST_STEP = 1.0  # in sizes of the coordinates: an output that needs longer ones is not the angle of a coordinate
MAX_OUTPUTS = 8  # that are followed
MAX_COORDINATES = 30  # of a model: each slope takes two evaluations for each of them
MAX_HALVINGS = 60


def search_turns(motion: ManifoldStepper, model: Model, point: OperatingPoint, turns: FloatArray) -> FloatArray:
    """Return the turns of the outputs (m,), those of a black box that are found to wrap included."""
    evaluator = motion.evaluator
    if not isinstance(evaluator, SourceEvaluator) or len(motion.chart.coordinates) > MAX_COORDINATES:
        return turns
    units = model.outputs.units
    unknown = [i for i, turn in enumerate(turns.tolist()) if not turn and i not in model.copies]
    rows = [i for i in unknown if list_turns(units[i])]
    turns = turns.copy()
    chart, switches = motion.chart, motion.switches
    for i in rows[:MAX_OUTPUTS]:
        for turn in list_turns(units[i]):
            motion.chart = chart
            evaluator.set_turn(i, turn)  # derivatives are those near a wrap, too
            try:
                jump = _follow(motion, point, i, turn)
            except (FmilinError, np.linalg.LinAlgError):  # the way leads out of the domain of the model
                jump = 0.0
            evaluator.set_turn(i, jump)
            if jump:
                turns[i] = jump
                break
    motion.chart, motion.switches = chart, switches
    return turns


def _follow(motion: ManifoldStepper, point: OperatingPoint, i: int, turn: float) -> float:
    """Return the jump of output ``i`` by turns, 0 if there is none on the way."""
    t, x, u = point.time, point.states, point.inputs
    steps = STEPS_ON_MANIFOLD if motion.chart.dependent else STEPS_PER_TURN
    increase = turn / steps
    for _ in range(int(TURNS * steps)):
        coordinates = motion.chart.coordinates
        sizes = motion.scales[coordinates]
        T = motion.tangent(t, x, u)
        outputs, _, gradients = motion.evaluator.along(t, x, u, T)[1:]
        slope = gradients[i] * sizes
        steepness = float(slope @ slope)
        if not (np.isfinite(steepness) and steepness > 0) or increase / np.sqrt(steepness) > LONGEST_STEP:
            return 0.0
        step = sizes * slope * (increase / steepness)
        ahead = x + T @ step
        ahead[coordinates] = x[coordinates] + step
        ahead = motion.on_manifold(t, ahead, u)
        change = float(motion.evaluator.values(t, ahead, u)[1][i] - outputs[i])
        count = round((change - increase) / turn)
        if count and abs(change - increase - count * turn) <= NEAR_TURN_FRACTION * turn:
            return _enclose(motion, point, (x, ahead), i, turn)
        x = ahead
        motion.choose_coordinates(t, x, u, np.eye(len(coordinates)))
    return 0.0


def _enclose(
    motion: ManifoldStepper, point: OperatingPoint, ends: tuple[FloatArray, FloatArray], i: int, turn: float
) -> float:
    """Return the jump of an output between two points by bisection, 0 unless it is a number of whole turns."""
    t, u = point.time, point.inputs
    below, above = ends
    value, last = (float(motion.evaluator.values(t, x, u)[1][i]) for x in ends)
    for _ in range(MAX_HALVINGS):
        if np.max(np.abs(above - below) / motion.scales) <= NEAR_STEP_SIZE:
            break
        middle = motion.on_manifold(t, (below + above) / 2, u)
        between = float(motion.evaluator.values(t, middle, u)[1][i])
        if abs(between - value) > turn / 2:
            above, last = middle, between
        else:
            below, value = middle, between
    count = abs(round((last - value) / turn))
    is_turn = 0 < count <= MAX_TURNS[turn] and abs(abs(last - value) - count * turn) <= EXACT_TURN_TOLERANCE * turn
    return count * turn if is_turn else 0.0
