"""Whether responses that disagree with a model's derivatives are those of a coarse solver, and of nothing else.

The model's own derivatives are integrated from the point as a solver of first order would, and exactly: hidden states
and sampled parts are missing in both. Where the responses are no farther from the exact motion than Euler's methods are
in the same steps, the derivatives say what the plant does, and the responses what the solver makes of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fmilin.ground.errors import FmilinError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import CONFIRMED
from fmilin.linearization.identification.holdout import PART
from fmilin.linearization.identification.impulse_response import Runner, relative_change
from fmilin.numerics.runge_kutta import runge_kutta_step

COUNT = 40  # steps
IMPLICIT = 12  # fixed-point iterations of the implicit method
COARSEST = 0.3  # how far Euler's methods may be from the exact motion, relative, to tell anything


def is_coarse_solver(runner: Runner, step: float) -> bool:
    """Whether a solver of first order, in steps of ``step``, would disagree with the derivatives as the model does."""
    nu = len(runner.scales)
    try:
        amplitudes = PART * runner.choose_amplitudes(step)
        deviations = np.random.default_rng(27).uniform(-1.0, 1.0, (COUNT, nu)) * amplitudes
        up, down = (runner.run(sign * deviations, step).after for sign in (1.0, -1.0))
        exact, explicit, implicit = (_motion(runner, deviations, step, m) for m in (_runge_kutta, _explicit, _implicit))
    except FmilinError:
        return False
    for count in (COUNT, COUNT // 2, COUNT // 4, COUNT // 8):
        seen, true = (up - down)[:count] / 2, exact[:count]
        euler = max(_apart(motion[:count], true) for motion in (explicit, implicit))
        if euler <= COARSEST:
            return _apart(seen, true) <= max(euler, CONFIRMED)
    return False


def _apart(one: FloatArray, other: FloatArray) -> float:
    """Return how far motions are from each other, relative to either: one of them may show what the other does not."""
    return max(relative_change(one, other), relative_change(other, one))


def _motion(runner: Runner, deviations: FloatArray, step: float, method: Callable[..., FloatArray]) -> FloatArray:
    """Return how outputs deviate at the end of each step, (K, ny), even terms taken out."""
    model, point = runner.model, runner.point
    ends = []
    for sign in (1.0, -1.0):
        x, seen = point.states, []
        for deviation in deviations:
            u = point.inputs + sign * deviation
            x = method(lambda x, u=u: model.evaluate(point.time, x, u).derivatives, x, step)
            seen.append(model.evaluate(point.time, x, u).outputs)
        ends.append(np.array(seen))
    return np.asarray(ends[0] - ends[1], dtype=np.float64) / 2


def _explicit(f: Callable[[FloatArray], FloatArray], x: FloatArray, h: float) -> FloatArray:
    return x + h * f(x)


def _implicit(f: Callable[[FloatArray], FloatArray], x: FloatArray, h: float) -> FloatArray:
    end = x
    for _ in range(IMPLICIT):
        end = x + h * f(end)
    return end


def _runge_kutta(f: Callable[[FloatArray], FloatArray], x: FloatArray, h: float) -> FloatArray:
    return runge_kutta_step(lambda _, y: f(y), 0.0, x, h, f(x))
