"""The undisturbed motion of the reduced model, by integration, and the noise of its rates."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

from fmilin.ground.errors import FmilinError, ModelCrashError
from fmilin.ground.signals import FloatArray
from fmilin.motion.verifying.reduced import Reduced
from fmilin.motion.verifying.relaxation import ResponseError
from fmilin.numerics.differences.noise import POINTS, noise_from_table

__all__ = ["Integrator"]

MOST_EVALUATIONS = 30_000
"""For one response: a model that needs more is too stiff or too noisy for what is asked."""

STIFF = 300.0
"""Fastest decay times the horizon above which an implicit method takes over."""


class Integrator:
    """Integrates the reduced model in deviations.

    ``fastest``: the fastest decay of the linear model in 1/s.
    """

    def __init__(self, reduced: Reduced, fastest: float) -> None:
        self.reduced = reduced
        self._fastest = fastest
        self.noise, self.output_noise = _noise(reduced)
        """Of y', in sizes of the coordinates per second, shape (P,); of the outputs, in their units, shape (ny,)."""

    def solved(
        self,
        rate: Callable[[float, FloatArray], FloatArray],
        start: FloatArray,
        times: FloatArray,
        *,
        unit: float,
        tolerance: float,
    ) -> FloatArray:
        """Return y at ``times``, shape (nt, P).

        Shapes: start (P,), times (nt,). ``unit``: the size of the deviations to be expected, in sizes of the
        coordinates. ``tolerance``: of the integration, relative to ``unit``.
        """
        if not len(start):
            return np.zeros((len(times), 0))
        sizes, y0 = self.reduced.y_sizes * unit, self.reduced.y0
        horizon = float(times[-1] - times[0])
        floor = 20 * float(np.max(self.noise, initial=0.0)) / unit * min(horizon, 1.0)
        tolerance = float(np.clip(max(tolerance, floor), 1e-13, 1e-2))
        count = 0

        def scaled_rate(t: float, eta: FloatArray) -> FloatArray:
            nonlocal count
            count += 1
            if count > MOST_EVALUATIONS:
                raise ResponseError("The nonlinear model takes too long to integrate: it is very stiff or noisy.")
            try:
                change = rate(t, y0 + eta * sizes) / sizes
            except ModelCrashError:
                raise
            except ResponseError:
                raise
            except FmilinError as error:
                raise ResponseError(str(error)) from None
            if not np.isfinite(change).all():
                raise ResponseError("The model returns no number.")
            return change

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a run that diverges: its end says so
            solution = solve_ivp(
                scaled_rate,
                (float(times[0]), float(times[-1])),
                (start - y0) / sizes,
                method="LSODA" if self._fastest * horizon > STIFF else "DOP853",
                t_eval=times,
                rtol=tolerance,
                atol=tolerance,
            )
        if not solution.success:
            raise ResponseError("The nonlinear model cannot be integrated any further.")
        y: FloatArray = y0 + solution.y.T * sizes
        return y


def _noise(reduced: Reduced) -> tuple[FloatArray, FloatArray]:
    """Measure the noise of scaled rates and of outputs on a tiny line beside the point; 0 where it cannot be done."""
    p, nothing = len(reduced.y0), (np.zeros(len(reduced.y0)), np.zeros(len(reduced.out0)))
    line = 1e-8 * reduced.y_sizes * np.cos(np.arange(p) + 1.0)
    try:
        visits = [reduced.visited(reduced.y0 + s * line, reduced.u0) for s in range(POINTS)]
    except ModelCrashError:
        raise
    except FmilinError:
        return nothing
    values = np.array([np.concatenate((rates, outputs)) for rates, _, outputs in visits])
    if not p or not np.isfinite(values).all():
        return nothing
    noise = noise_from_table(values)
    return noise[:p] / reduced.y_sizes, noise[p:]
