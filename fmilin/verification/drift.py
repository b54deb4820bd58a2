"""The motion from a point that is not an equilibrium: y0 + f0 t + A f0 t^2/2 + ... against the real one.

The undisturbed motion of the reduced model is integrated, with the noise of its rates known.
"""

import warnings
from functools import partial

import numpy as np
from scipy import linalg
from scipy.integrate import solve_ivp

from fmilin.errors import REFUSALS
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.verification import Channel, Trace, Validity
from fmilin.numerics.differences.sweep import POINTS, noise_from_table
from fmilin.numerics.steps import Rates
from fmilin.signals import FloatArray
from fmilin.tolerances import EQUILIBRIUM_RATE_TOLERANCE, VERIFIED_DRIFT_TOLERANCE
from fmilin.verification.reduced import ReducedModel
from fmilin.verification.relaxation import ResponseError
from fmilin.verification.validity import ACCEPTED_DEVIATION_RATIO

MAX_EVALUATIONS = 30_000  # for one response: a model that needs more is too stiff or too noisy for what is asked
STIFFNESS_RATIO = 300.0  # fastest decay times the horizon above which an implicit method takes over


class DeviationIntegrator:
    """Integrates the reduced model in deviations; ``fastest`` is the fastest decay of the linear model in 1/s."""

    def __init__(self, reduced: ReducedModel, fastest: float) -> None:
        self.reduced = reduced
        self._fastest = fastest
        self.noise, self.output_noise = measure_noise(reduced)
        """Of y', in sizes of the coordinates per second, shape (P,); of the outputs, in their units, shape (ny,)."""

    def integrate(
        self, rate: Rates, start: FloatArray, times: FloatArray, *, unit: float, tolerance: float
    ) -> FloatArray:
        """Return y (nt, P) from ``start`` (P,); ``unit`` is the expected deviation in sizes of the coordinates."""
        if not len(start):
            return np.zeros((len(times), 0))
        sizes, y0 = self.reduced.y_sizes * unit, self.reduced.y0
        horizon = float(times[-1] - times[0])
        floor = 20 * float(np.max(self.noise, initial=0.0)) / unit * min(horizon, 1.0)
        tolerance = float(np.clip(max(tolerance, floor), 1e-13, 1e-2))
        count = 0

        def compute_scaled_rate(t: float, eta: FloatArray) -> FloatArray:
            nonlocal count
            count += 1
            if count > MAX_EVALUATIONS:
                raise ResponseError("The nonlinear model takes too long to integrate: it is very stiff or noisy.")
            try:
                change = rate(t, y0 + eta * sizes) / sizes
            except ResponseError:
                raise
            except REFUSALS as error:
                raise ResponseError(str(error)) from None
            if not np.isfinite(change).all():
                raise ResponseError("The model returns a value that is not a number.")
            return change

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a run that diverges: its end says so
            solution = solve_ivp(
                compute_scaled_rate,
                (float(times[0]), float(times[-1])),
                (start - y0) / sizes,
                method="LSODA" if self._fastest * horizon > STIFFNESS_RATIO else "DOP853",
                t_eval=times,
                rtol=tolerance,
                atol=tolerance,
            )
        if not solution.success:
            raise ResponseError("The nonlinear model cannot be integrated any further.")
        return y0 + solution.y.T * sizes


def measure_noise(reduced: ReducedModel) -> tuple[FloatArray, FloatArray]:
    """Return the noise of scaled rates and of outputs on a tiny line near the point; 0 where it cannot be done."""
    p, nothing = len(reduced.y0), (np.zeros(len(reduced.y0)), np.zeros(len(reduced.out0)))
    line = 1e-8 * reduced.y_sizes * np.cos(np.arange(p) + 1.0)
    try:
        evaluations = [reduced.evaluate(reduced.y0 + s * line, reduced.u0) for s in range(POINTS)]
    except REFUSALS:
        return nothing
    values = np.array([np.concatenate((rates, outputs)) for rates, _, outputs in evaluations])
    if not p or not np.isfinite(values).all():
        return nothing
    noise = noise_from_table(values)
    return noise[:p] / reduced.y_sizes, noise[p:]


SHORT_HORIZON_FRACTION = 2e-4  # of the horizon: where the derivatives of the motion are compared
SHORTENING_FACTOR = 4.0
"""How much shorter it is made while that reduces the difference of derivatives: where A changes fast."""

TRIES = 6
SAMPLES = 201


def at_rest(linear: LinearModel, y_sizes: FloatArray) -> bool:
    """Whether the point is an equilibrium in these coordinates."""
    return bool((np.abs(linear.f0) <= EQUILIBRIUM_RATE_TOLERANCE * y_sizes).all())


def drift_channel(linear: LinearModel, integrator: DeviationIntegrator, horizon: float) -> Channel:
    """Follow the undisturbed motion and compare it with what the linear model predicts, f0 and A f0."""
    channel = partial(Channel, "drift", "time", "s", None, SHORT_HORIZON_FRACTION * horizon)
    try:
        smallest = _measure_slope_error(linear, integrator, SHORT_HORIZON_FRACTION * horizon, 1.0)
        for k in range(1, TRIES):
            if smallest[0] <= VERIFIED_DRIFT_TOLERANCE:
                break
            part = SHORTENING_FACTOR**-k
            shorter = _measure_slope_error(linear, integrator, part * SHORT_HORIZON_FRACTION * horizon, part)
            if shorter[0] > 0.9 * smallest[0]:
                break
            smallest = shorter
        error, worst = smallest
        validity, trace = _follow_motion(linear, integrator, horizon)
    except ResponseError as failure:
        return channel(np.inf, np.nan, VERIFIED_DRIFT_TOLERANCE, str(failure))
    valid = validity if error <= VERIFIED_DRIFT_TOLERANCE else None
    return channel(error, np.nan, VERIFIED_DRIFT_TOLERANCE, linear.states.names[worst], valid, trace)


def _measure_slope_error(
    linear: LinearModel, integrator: DeviationIntegrator, h: float, part: float
) -> tuple[float, int]:
    """Return the same from the motion over h, ``part`` of the longest."""
    r = integrator.reduced
    t0 = r.point.time
    times = t0 + h * np.array([0.0, 0.25, 0.5, 1.0])
    unit = max(h * float(np.max(np.abs(r.f0) / r.y_sizes)), 1e-12)
    real = integrator.integrate(r.evaluate_rate, r.y0, times, unit=unit, tolerance=1e-12) - r.y0
    predicted = predict_motion(linear, times - t0)
    s = np.array([0.25, 0.5, 1.0])
    deviation = (real - predicted)[1:] / r.y_sizes
    e = np.linalg.solve(np.stack((s, s**2, s**3), axis=1), deviation)  # e1 s + e2 s^2 + e3 s^3
    first = np.abs(e[0]) / unit
    curvature = h * h / 2 * float(np.max(np.abs(linear.A @ linear.f0) / r.y_sizes))
    second = (
        np.abs(e[1]) / max(curvature, 1e-3 * part * unit)
        if not _depends_on_time(integrator, h)
        else np.zeros(len(r.y0))
    )
    error = np.maximum(first, second)
    return float(np.max(error)), int(np.argmax(error))


def _depends_on_time(integrator: DeviationIntegrator, h: float) -> bool:
    r = integrator.reduced
    try:
        later = r.evaluate_rate(r.point.time + h, r.y0)
    except REFUSALS:
        return True
    return bool(np.max(np.abs(later - r.f0) / r.y_sizes) > 1e-9 * np.max(np.abs(r.f0) / r.y_sizes))


def _follow_motion(linear: LinearModel, integrator: DeviationIntegrator, horizon: float) -> tuple[Validity, Trace]:
    r = integrator.reduced
    duration, real = horizon, None
    for _ in range(8):
        times = np.linspace(0.0, duration, SAMPLES)
        unit = max(duration * float(np.max(np.abs(r.f0) / r.y_sizes)), 1e-12)
        try:
            real = integrator.integrate(r.evaluate_rate, r.y0, r.point.time + times, unit=unit, tolerance=1e-6) - r.y0
            break
        except ResponseError:
            duration /= 4
    if real is None:
        raise ResponseError("The motion cannot be followed by integration.")
    predicted = predict_motion(linear, times)
    size = np.maximum.accumulate(np.max(np.abs(predicted) / r.y_sizes, axis=1))
    apart = np.abs(real - predicted) / r.y_sizes
    off = np.flatnonzero(apart.max(axis=1) > ACCEPTED_DEVIATION_RATIO * size)
    last = int(off[0]) - 1 if len(off) else len(times) - 1
    limiting = linear.states.names[int(np.argmax(apart[last + 1]))] if len(off) else ""
    strongest = int(np.argmax(np.max(np.abs(predicted) / r.y_sizes, axis=0)))
    signal = linear.states[strongest]
    trace = Trace(signal.name, signal.unit, duration, times, predicted[:, strongest], real[:, strongest])
    return Validity(float(times[max(last, 0)]), at_least=not len(off), limited_by=limiting), trace


def predict_motion(linear: LinearModel, times: FloatArray) -> FloatArray:
    """Return y - y0 of ``y' = f0 + A (y - y0)`` at ``times`` from the start, shape (nt, P)."""
    P = len(linear.f0)
    M = np.zeros((P + 1, P + 1))
    M[:P, :P], M[:P, P] = linear.A, linear.f0
    return np.array([linalg.expm(M * t)[:P, P] for t in times])
