"""Whether a filter's own idea of its errors is right, and the noise that makes recorded data most likely."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, stats

from fmilin.design.estimation.estimator import Estimator, require_records
from fmilin.errors import NumericalError, UsageError
from fmilin.signals import FloatArray, RealArrayLike, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAG_COUNT = 20  # of autocorrelations


@dataclass(frozen=True, eq=False, repr=False)
class Filtered(TableRepr):
    """The result of a filter on recorded data: K samples, N states, m outputs; :func:`filtered` makes it."""

    _attributes = ".states, .deviations, .nis, .whiteness(), .plot()"

    times: FloatArray  #: shape (K,)
    states: FloatArray  #: shape (K, N), estimates
    deviations: FloatArray  #: shape (K, N), their standard deviations
    innovations: FloatArray  #: shape (K, m), measured less predicted; NaN where nothing was measured
    whitened: FloatArray  #: the same in independent standard deviations, shape (K, m)
    state_signals: Signals  #: of ``states``
    output_signals: Signals  #: of what was measured
    log_likelihood: float  #: of the measurements, a sum of logarithms of densities, in their units

    @implemented_in("fmilin.report.designs:show_filtered")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def nis(self) -> FloatArray:
        """Normalized innovations squared, shape (K,)."""
        return np.asarray(np.nansum(self.whitened**2, axis=1))

    @property
    def mean_nis(self) -> tuple[float, float, float]:
        """Their mean for one output, and the ends of the band in which it lies with a probability of 95 %."""
        count = int(np.isfinite(self.whitened).sum())
        low, high = (float(stats.chi2.ppf(p, count)) / count for p in (0.025, 0.975))
        return float(self.nis.sum()) / count, low, high

    def autocorrelation(self, lags: int = LAG_COUNT) -> FloatArray:
        """Return autocorrelations of ``whitened`` up to ``lags`` measurements, shape (lags + 1, m), 1 first."""
        rho = np.zeros((lags + 1, self.whitened.shape[1]))
        for i, column in enumerate(self.whitened.T):
            w = column[np.isfinite(column)]
            for k in range(min(lags + 1, len(w))):
                rho[k, i] = w[k:] @ w[: len(w) - k] / (w @ w)
        return rho

    def whiteness(self, lags: int = LAG_COUNT) -> dict[str, float]:
        """Return by output how probable autocorrelations up to ``lags`` are of white noise (Ljung and Box, 1978)."""
        n = np.isfinite(self.whitened).sum(axis=0)
        rho = self.autocorrelation(lags)[1:]
        Q = n * (n + 2) * (rho**2 / (n - np.arange(1, lags + 1)[:, None])).sum(axis=0)
        return dict(zip(self.output_signals.names, stats.chi2.sf(Q, lags).tolist(), strict=True))

    @implemented_in("fmilin.report.web.of_results:save_filtered")
    def save(self, path: str | Path) -> None:
        """Write the table and the figure to ``path`` as one HTML file. Raises UsageError for another suffix."""
        ...

    @implemented_in("fmilin.report.designs:create_filter_figure")
    def plot(self, truth: FloatArray | None = None) -> Figure:
        """Return a figure: estimates with two deviations, and ``truth``, shape (K, N), innovations, NIS."""
        ...


@kinds_checked
def filtered(kf: Estimator, inputs: RealArrayLike, measured: RealArrayLike) -> Filtered:
    """Return what a filter makes of recorded data, from its start.

    Raises UsageError when shapes do not fit.

    Parameters
    ----------
    kf : Estimator
        Begins again, and stays at the end of the data.
    inputs, measured : array, shapes (K, nu), (K, m)
        What was held over the sample that ends with each measurement, which is NaN where nothing was measured.
    """
    require_records(kf, inputs, measured)
    kf.reset()
    return Filtered(*kf.run(inputs, measured), kf.model.states, kf.model.outputs, kf.log_likelihood)


@kinds_checked
def nees(kf: Estimator, x: RealArrayLike) -> float:
    """Return the normalized estimation error squared e' P^-1 e: on average P, the number of coordinates.

    Raises UsageError when the number of states is another one; NumericalError when the covariance is singular.

    Parameters
    ----------
    kf : Estimator
    x : array, shape (N,)
        All true states, in the order of ``kf.model.states``, at the time of the estimate.
    """
    true = np.asarray(x, dtype=np.float64)
    if true.shape != kf.x.shape or not np.isfinite(true).all():
        raise UsageError(
            f"The true states have the shape {true.shape}, or are not numbers; the filter has {len(kf.x)}: "
            f"{', '.join(kf.model.states.names)}."
        )
    e = (true - kf.x)[kf.kept]
    try:
        return float(e @ np.linalg.solve(kf.covariance, e))
    except np.linalg.LinAlgError:
        raise NumericalError(
            "The filter's covariance is singular: one direction has no uncertainty. Give it process noise."
        ) from None


@kinds_checked
def tuned_noise(
    make: Callable[[Mapping[str, float]], Estimator],
    guess: Mapping[str, float],
    inputs: RealArrayLike,
    measured: RealArrayLike,
    *,
    decades: float = 4.0,
    evaluations: int = 200,
) -> dict[str, float]:
    """Return the noise, variances and spectral densities by any names, that makes recorded data most likely.

    The likelihood is that of the innovations; the Nelder-Mead method varies the logarithms. Raises UsageError
    when a guess is not positive.

    Parameters
    ----------
    make : callable
        Makes the filter of such a mapping.
    guess : mapping of str to float
        Positive numbers to begin with.
    inputs, measured : array, shapes (K, nu), (K, m)
        As for :func:`filtered`.
    decades : float
        How far from the guess is searched: a factor of ten each.
    evaluations : int
        Runs of the filter, at most.
    """
    names = list(guess)
    if not names or not (np.isfinite(decades) and decades > 0) or evaluations < 1:
        raise UsageError(
            f"{len(names)} guesses, decades={decades}, evaluations={evaluations}: give a guess, a positive number and "
            "a whole number of 1 or more."
        )
    if bad := [name for name in names if not (np.isfinite(guess[name]) and guess[name] > 0)]:
        raise UsageError(f"The guess of '{bad[0]}' is {guess[bad[0]]:g}: it must be finite and positive.")

    def noise(z: Sequence[float]) -> dict[str, float]:
        return {name: guess[name] * 10.0 ** float(v) for name, v in zip(names, z, strict=True)}

    def cost(z: FloatArray) -> float:
        kf = make(noise(z.tolist()))
        if not isinstance(kf, Estimator):
            raise UsageError(
                f"make= returned an object of the type '{type(kf).__name__}': it must return an estimator."
            )
        kf.run(inputs, measured)
        return -kf.log_likelihood

    bounds: Any = [(-decades, decades)] * len(names)
    simplex = np.vstack((np.zeros(len(names)), np.eye(len(names))))
    options: Any = {"maxfev": evaluations, "xatol": 1e-2, "fatol": 1e-2, "initial_simplex": simplex}
    best = optimize.minimize(cost, np.zeros(len(names)), method="Nelder-Mead", bounds=bounds, options=options)
    return noise(best.x.tolist())
