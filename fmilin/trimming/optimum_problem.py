"""The problem of the best point that satisfies equations: a preference and bounds, as functions of the unknowns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.constraints.expression_functions import build_function
from fmilin.constraints.expressions import parse
from fmilin.signals import FloatArray
from fmilin.trimming.equilibrium_equations import Equations
from fmilin.trimming.unknowns import Reading


@dataclass(frozen=True, eq=False)
class Preference:
    """A number that is to be small, with its gradient, of readings (k,)."""

    name: str
    readings: tuple[Reading, ...]
    value: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Limit:
    """Bounds of something that is read."""

    reading: Reading
    low: float
    high: float

    def beyond(self, value: float) -> float:
        """Return how far a value is beyond the bounds, in sizes; negative below them, 0 inside."""
        return (min(value - self.low, 0.0) + max(value - self.high, 0.0)) / self.reading.size


def as_near_as_possible(goals: Sequence[Reading]) -> Preference:
    """Return half the sum of squares of what readings are off, in their sizes."""
    values = np.array([r.value for r in goals])
    sizes = np.array([r.size for r in goals])
    return Preference(
        "the sum of squares of the residuals",
        tuple(goals),
        lambda y: float(np.sum(((y - values) / sizes) ** 2)) / 2,
        lambda y: (y - values) / sizes**2,
    )


def prefer_interior(limits: Sequence[Limit]) -> Preference:
    """Return half the sum of squares of what is beyond the limits, in sizes."""

    def beyond(y: FloatArray) -> FloatArray:
        return np.array([limit.beyond(v) for limit, v in zip(limits, y.tolist(), strict=True)])

    sizes = np.array([limit.reading.size for limit in limits])
    readings = tuple(limit.reading for limit in limits)
    return Preference("bounds", readings, lambda y: float(np.sum(beyond(y) ** 2)) / 2, lambda y: beyond(y) / sizes)


def expression_preference(text: str, read: Callable[[str], Reading]) -> Preference:
    """Return an expression as a preference; ``read`` says what its names mean."""
    expression = parse(text)
    functions, readings = build_function(expression), tuple(map(read, expression.names))
    return Preference(text, readings, lambda y: float(functions.values(y)[0]), lambda y: functions.jacobian(y)[0])


class Problem:
    """The preference and the bounds as functions of the unknowns, with one evaluation to the model for all of them."""

    def __init__(self, equations: Equations, preference: Preference, limits: Sequence[Limit], *, exact: bool) -> None:
        self.preference, self.limits, self.exact = preference, tuple(limits), exact
        read = [replace(r, value=0.0) for r in (*preference.readings, *(limit.reading for limit in limits))]
        self.equations = equations.with_targets([*equations.targets, *read])
        self.m, self.k = len(equations.rows), len(preference.readings)
        self.sizes = self.equations.sizes[self.m :]
        self._low, self._high = (np.array([getattr(each, side) for each in limits]) for side in ("low", "high"))
        self._slopes: tuple[bytes, FloatArray] | None = None

    def rows(self, z: FloatArray) -> FloatArray:
        """Return the residuals of the equations, then what is read, in sizes."""
        # SLSQP knows no NaN: a large residual turns it back.
        return np.nan_to_num(self.equations.values(z), nan=1e10)

    def slopes(self, z: FloatArray) -> FloatArray:
        """Return the derivatives of :meth:`rows`, zeros where there are none."""
        if self._slopes is None or self._slopes[0] != z.tobytes():
            self._slopes = z.tobytes(), np.nan_to_num(self.equations.jacobian(z, exact=self.exact)[0])
        return self._slopes[1]

    def read(self, z: FloatArray) -> FloatArray:
        """Return what is read, in units: (k,) of the preference, then of the limits."""
        return np.asarray(self.rows(z)[self.m :] * self.sizes)

    def value(self, z: FloatArray) -> float:
        """Return the preference, very large where it is not defined."""
        value = self.preference.value(self.read(z)[: self.k])
        return value if np.isfinite(value) else 1e300

    def gradient(self, z: FloatArray) -> FloatArray:
        """Return the gradient of the preference."""
        slope = np.nan_to_num(self.preference.gradient(self.read(z)[: self.k]))
        return np.asarray((slope * self.sizes[: self.k]) @ self.slopes(z)[self.m : self.m + self.k])

    def margins(self, z: FloatArray) -> FloatArray:
        """Return how far what is read is inside its bounds, in sizes."""
        y, s = self.read(z)[self.k :], self.sizes[self.k :]
        low, high = self._low, self._high
        return np.concatenate((((y - low) / s)[np.isfinite(low)], ((high - y) / s)[np.isfinite(high)]))

    def margin_slopes(self, z: FloatArray) -> FloatArray:
        """Return the derivatives of :meth:`margins`."""
        J = self.slopes(z)[self.m + self.k :]
        return np.concatenate((J[np.isfinite(self._low)], -J[np.isfinite(self._high)]))

    def beyond(self, z: FloatArray) -> list[float]:
        """Return how far what is read is beyond its bounds, in sizes."""
        return [limit.beyond(v) for limit, v in zip(self.limits, self.read(z)[self.k :].tolist(), strict=True)]
