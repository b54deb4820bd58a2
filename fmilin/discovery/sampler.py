"""Random states around a point and the rates there: a model that keeps a constraint keeps it everywhere."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fmilin.errors import ModelError, NumericalError, UsageError
from fmilin.model.capabilities import read_event_indicators
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.numerics.differences.sweep import noise_level
from fmilin.signals import FloatArray

INITIAL_SAMPLING_RADIUS = 0.5  # how far around the point samples are taken at first, in sizes of the states
MIN_SAMPLING_RADIUS = 1e-3
NOISE_FACTOR = 20  # difference of rates, in sizes of the model's noise, that is more than noise
ANGLE_SAMPLING_RADIUS = 2.0
"""How far around the point angles are sampled, in rad: sums of several sines are nearly dependent on a short way."""


class Stopped(Exception):  # noqa: N818 - no error
    """The caller stops the evaluations."""


@dataclass
class Sampler:
    """Asks a model for its rates around a point, and counts."""

    model: Model
    point: OperatingPoint
    excite: float = 1.0  # how far inputs are moved, in their sizes
    # evaluations, rejected: requested points, and those at which the model has no values
    visits: int = 0
    failures: int = 0
    noise: float = 0.0  # of the rates, relative to the largest one; rounding where the model has none of its own
    stop: Callable[[], bool] = lambda: False  # called before evaluations; true raises Stopped
    reach: FloatArray = field(init=False)  # (N,), how far around the point each state is sampled, in its unit
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._why = ""
        if isinstance(self.model, Stepped) and (reason := self.model.why_not_direct(self.point)):
            raise UsageError(
                f"'{self.model.info.name}' has its own solver, and the search for constraints needs rates at chosen "
                f"states. {reason} Use its model-exchange interface, or the measured linear model."
            )
        self.random = np.random.default_rng(16)
        self.sizes = self.model.states.scales(self.point.states)
        self.reach = INITIAL_SAMPLING_RADIUS * self.sizes
        self.input_sizes = self.excite * self.model.inputs.scales(self.point.inputs)
        self._require_rates()
        x = self.states(1)[0]
        f = self.rates_at_fixed_inputs(x[None])[0]
        self.visits += 9
        noise = noise_level(lambda s: self._rates(s, self.point.inputs), x, self.sizes)
        relative = noise / np.maximum(np.abs(f), 1e-3 * np.abs(f).max(initial=1e-300))
        self.noise = float(np.nan_to_num(relative.max(initial=0.0), nan=0.0, posinf=0.0))

    def _require_rates(self) -> None:
        """Sample closer to the point where the model cannot answer far from it."""
        while (self.reach > MIN_SAMPLING_RADIUS * self.sizes).any():
            x = self.states(6)
            if np.isfinite(self.rates(x, self.inputs(6))).all(axis=1).sum() >= 4:
                return
            self.reach = self.reach / 4
        explanation = f" It says: {self._why}" if self._why else ""
        raise NumericalError(
            f"'{self.model.info.name}' provides no rates at states near its point, so constraints cannot be found. "
            f"Give another point: fl.operating_point(model, {{'NAME': VALUE}}).{explanation}"
        )

    def states(self, count: int) -> FloatArray:
        """Return random states around the point, shape (count, N)."""
        return self.point.states + self.reach * self.random.uniform(-1.0, 1.0, (count, len(self.reach)))

    def inputs(self, count: int) -> FloatArray:
        """Return random inputs, shape (count, nu)."""
        displacements = self.random.uniform(-1.0, 1.0, (count, len(self.input_sizes)))
        return self.point.inputs + self.input_sizes * displacements

    def rates_at_fixed_inputs(self, x: FloatArray) -> FloatArray:
        """Return the rates at x (m, N) with the inputs of the point, shape (m, N)."""
        return self.rates(x, np.tile(self.point.inputs, (len(x), 1)))

    def rates(self, x: FloatArray, u: FloatArray, *, later: float = 0.0) -> FloatArray:
        """Return the rates (m, N) at x (m, N), u (m, nu), ``later`` s after the point; NaN where there is no answer."""
        if self.stop():
            raise Stopped
        self.visits += len(x)
        rates = np.array([self._rates(s, v, later) for s, v in zip(x, u, strict=True)]).reshape(x.shape)
        self.failures += int((~np.isfinite(rates).all(axis=1)).sum())
        return rates

    def _rates(self, x: FloatArray, u: FloatArray, later: float = 0.0) -> FloatArray:
        try:
            return self.model.evaluate(self.point.time + later, x, u).derivatives.copy()
        except (ModelError, NumericalError) as error:
            self._why = str(error)
            return np.full(len(x), np.nan)

    def subtract_beyond_noise(self, f: FloatArray, reference: FloatArray) -> FloatArray:
        """Return f - held, zero where that is no more than noise."""
        change = f - reference
        return np.where(np.abs(change) <= self.estimate_noise(reference), 0.0, change)

    def estimate_noise(self, rates: FloatArray) -> FloatArray:
        """Return the largest difference of rates that is noise, where they are ``held``."""
        return NOISE_FACTOR * self.noise * np.abs(rates)

    def widen(self, angles: frozenset[int]) -> None:
        """Sample angles over most of a turn, where the model can answer there."""
        previous_reach = self.reach.copy()
        self.reach[sorted(angles)] = ANGLE_SAMPLING_RADIUS
        if np.isfinite(self.rates_at_fixed_inputs(self.states(6))).all(axis=1).sum() < 4:
            self.reach = previous_reach

    def crosses_events(self) -> bool:
        """Whether event indicators have another sign at some sampled states than at the point."""
        t, u = self.point.time, self.point.inputs
        try:
            signs = read_event_indicators(self.model, t, self.point.states, u) > 0
            if not len(signs):
                return False
            return any(((read_event_indicators(self.model, t, x, u) > 0) != signs).any() for x in self.states(8))
        except (ModelError, NumericalError):
            return False
