"""The motion from a point that is no equilibrium: y0 + f0 t + A f0 t^2/2 + ... against the real one."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from fmilin.ground.errors import FmilinError, ModelCrashError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import DRIFT_AGREES, EQUILIBRIUM
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.verification import Channel, Trace, Validity
from fmilin.motion.verifying.integration import Integrator
from fmilin.motion.verifying.relaxation import ResponseError
from fmilin.motion.verifying.validity import ACCEPTED

__all__ = ["at_rest", "drift_channel"]

SHORT = 2e-4
"""Of the horizon: where the slopes of the motion are compared."""

SHORTER = 4.0
"""How much shorter it is made, as long as that brings the slopes together: where A changes fast along the motion."""

TRIES = 6

SAMPLES = 201


def at_rest(linear: LinearModel, y_sizes: FloatArray) -> bool:
    """Whether the point is an equilibrium in these coordinates."""
    return bool((np.abs(linear.f0) <= EQUILIBRIUM * y_sizes).all())


def drift_channel(linear: LinearModel, integrator: Integrator, horizon: float) -> Channel:
    """Follow the undisturbed motion and compare it with what the linear model predicts.

    The first two coefficients of the deviation in t must vanish: f0 and A f0. Where the model depends on
    time itself the second need not, as no linear model of constant coefficients knows about that.
    """
    try:
        error, worst = _slope_error(linear, integrator, horizon)
        validity, trace = _followed(linear, integrator, horizon)
    except ResponseError as failure:
        return Channel("drift", "time", "s", None, SHORT * horizon, np.inf, np.nan, DRIFT_AGREES, str(failure))
    passed = error <= DRIFT_AGREES
    return Channel(
        "drift",
        "time",
        "s",
        None,
        SHORT * horizon,
        error,
        np.nan,
        DRIFT_AGREES,
        linear.states.names[worst],
        validity if passed else None,
        trace,
    )


def _slope_error(linear: LinearModel, integrator: Integrator, horizon: float) -> tuple[float, int]:
    """Return the relative error of f0 and A f0, and the coordinate with the larger one, in the limit of short times."""
    found = _slope_error_over(linear, integrator, SHORT * horizon, 1.0)
    for k in range(1, TRIES):
        if found[0] <= DRIFT_AGREES:
            break
        part = SHORTER**-k
        shorter = _slope_error_over(linear, integrator, part * SHORT * horizon, part)
        if shorter[0] > 0.9 * found[0]:
            break
        found = shorter
    return found


def _slope_error_over(linear: LinearModel, integrator: Integrator, h: float, part: float) -> tuple[float, int]:
    """Return the same from the motion over h, ``part`` of the longest."""
    r = integrator.reduced
    t0 = r.point.time
    times = t0 + h * np.array([0.0, 0.25, 0.5, 1.0])
    unit = max(h * float(np.max(np.abs(r.f0) / r.y_sizes)), 1e-12)
    real = integrator.solved(r.moving_rate, r.y0, times, unit=unit, tolerance=1e-12) - r.y0
    predicted = predicted_motion(linear, times - t0)
    s = np.array([0.25, 0.5, 1.0])
    deviation = (real - predicted)[1:] / r.y_sizes
    e = np.linalg.solve(np.stack((s, s**2, s**3), axis=1), deviation)  # e1 s + e2 s^2 + e3 s^3
    first = np.abs(e[0]) / unit
    bend = h * h / 2 * float(np.max(np.abs(linear.A @ linear.f0) / r.y_sizes))
    second = (
        np.abs(e[1]) / max(bend, 1e-3 * part * unit) if not _depends_on_time(integrator, h) else np.zeros(len(r.y0))
    )
    error = np.maximum(first, second)
    return float(np.max(error)), int(np.argmax(error))


def _depends_on_time(integrator: Integrator, h: float) -> bool:
    r = integrator.reduced
    try:
        later = r.moving_rate(r.point.time + h, r.y0)
    except ModelCrashError:
        raise
    except FmilinError:
        return True
    return bool(np.max(np.abs(later - r.f0) / r.y_sizes) > 1e-9 * np.max(np.abs(r.f0) / r.y_sizes))


def _followed(linear: LinearModel, integrator: Integrator, horizon: float) -> tuple[Validity, Trace]:
    r = integrator.reduced
    duration, real = horizon, None
    for _ in range(8):
        times = np.linspace(0.0, duration, SAMPLES)
        unit = max(duration * float(np.max(np.abs(r.f0) / r.y_sizes)), 1e-12)
        try:
            real = integrator.solved(r.moving_rate, r.y0, r.point.time + times, unit=unit, tolerance=1e-6) - r.y0
            break
        except ResponseError:
            duration /= 4
    if real is None:
        raise ResponseError("The motion cannot be followed.")
    predicted = predicted_motion(linear, times)
    size = np.maximum.accumulate(np.max(np.abs(predicted) / r.y_sizes, axis=1))
    apart = np.abs(real - predicted) / r.y_sizes
    off = np.flatnonzero(apart.max(axis=1) > ACCEPTED * size)
    last = int(off[0]) - 1 if len(off) else len(times) - 1
    limiting = linear.states.names[int(np.argmax(apart[last + 1]))] if len(off) else ""
    shown = int(np.argmax(np.max(np.abs(predicted) / r.y_sizes, axis=0)))
    signal = linear.states[shown]
    trace = Trace(signal.name, signal.unit, duration, times, predicted[:, shown], real[:, shown])
    return Validity(float(times[max(last, 0)]), at_least=not len(off), limited_by=limiting), trace


def predicted_motion(linear: LinearModel, times: FloatArray) -> FloatArray:
    """Return y - y0 of ``y' = f0 + A (y - y0)`` at ``times`` from the start, shape (nt, P)."""
    P = len(linear.f0)
    M = np.zeros((P + 1, P + 1))
    M[:P, :P], M[:P, P] = linear.A, linear.f0
    return np.array([linalg.expm(M * t)[:P, P] for t in times])
