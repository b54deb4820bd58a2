"""Machines that pass events: a wheel without a rim that rolls down a slope, a converter that is switched."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from fmilin.model.stepping import Hybrid, Passage
from fmilin.signals import FloatArray
from tests.by_hand import FunctionModel, Parts


class RimlessWheel(FunctionModel, Hybrid):
    """McGeer's: an inverted pendulum on one spoke, q'' = sin q, until the next one hits the slope and takes over."""

    def __init__(self, slope: float = 0.08, half: float = 0.3) -> None:
        self.slope, self.half = slope, half
        super().__init__(Parts(["q", "w"], [0.0, 0.4], lambda t, s, u: np.array([s[1], np.sin(s[0])])))

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([x[0] - self.slope - self.half])

    def restart(self) -> None:
        pass

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        if x[0] < self.slope + self.half - 1e-9:
            return Passage(x)
        return Passage(np.array([x[0] - 2 * self.half, np.cos(2 * self.half) * x[1]]))


class BuckConverter(FunctionModel, Hybrid):
    """Of Fossas and Olivar (IEEE Transactions on Circuits and Systems I 43, 1996): the voltage's error meets a ramp."""

    PERIOD, L, C, R, GAIN, WANTED, LOW, HIGH = 400e-6, 20e-3, 47e-6, 22.0, 8.4, 11.3, 3.8, 8.2

    def __init__(self, supply: float, closed: bool = True) -> None:
        self.on, self.number, self.closed = False, 0, closed

        def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
            v, i = s
            return np.array([(i - v / self.R) / self.C, (supply * self.on - v) / self.L])

        super().__init__(Parts(["v", "i"], [12.0, 0.55], rates))

    def ramp(self, t: float) -> float:
        return self.LOW + (self.HIGH - self.LOW) * (t / self.PERIOD - self.number)

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([self.GAIN * (x[0] - self.WANTED) - self.ramp(t)])

    def restart(self) -> None:
        self.on, self.number = False, 0

    def next_event_time(self) -> float | None:
        return (self.number + 1) * self.PERIOD

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        if t >= (self.number + 1) * self.PERIOD:
            self.on, self.number = False, self.number + 1
        else:
            self.on = self.GAIN * (x[0] - self.WANTED) <= self.ramp(t) + 1e-9
        return Passage(x)


class CompassWalker(FunctionModel, Hybrid):
    """Two legs with a mass at the hip and small ones at the feet, on a slope; a, b: the leg that stands, that swings.

    The simplest walker (Garcia, Chatterjee, Ruina and Coleman 1998); at the impact the momentum about the foot that
    lands and that of the leg behind about the hip stay. Feet that meet the ground as the legs pass do not stick.
    """

    def __init__(self, slope: float = 0.009, feet: float = 1e-3) -> None:
        self.slope, self.feet = slope, feet
        super().__init__(Parts(["a", "b", "da", "db"], [0.15, -0.15, -0.17, 0.0], self.rates))

    def rates(self, t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        (a, b, da, db), m = s, self.feet
        M = np.array([[1 + m, -m * np.cos(a - b)], [-m * np.cos(a - b), m]])
        F = [
            m * np.sin(a - b) * db**2 + (1 + m) * np.sin(a - self.slope),
            -m * (np.sin(a - b) * da**2 + np.sin(b - self.slope)),
        ]
        return np.array([da, db, *np.linalg.solve(M, F)])

    def landed(self, x: FloatArray) -> FloatArray:
        """Return what an impact makes of a state: angles from the slope's normal, the legs change places."""
        a, b, da, _ = x
        c = np.cos(a - b)
        da = c * da / (1 + self.feet * (1 - c**2))
        return np.array([b, a, da, c * da])

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([x[0] + x[1]])

    def restart(self) -> None:
        pass

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        return Passage(self.landed(x) if x[0] < -0.05 and abs(x[0] + x[1]) < 1e-9 else x)

    def stride(self, angle: float, rate: float) -> FloatArray:
        """Return angle and rate of the leg that stands after the next impact, from those after one: by scipy."""
        start = [angle, -angle, rate, np.cos(2 * angle) * rate]

        def passing(_: float, s: FloatArray) -> float:
            return float(s[0] + s[1])

        run = solve_ivp(
            lambda t, s: self.rates(t, s, s), (0, 6), start, "DOP853", events=passing, rtol=1e-12, atol=1e-13
        )
        impact = next(s for s in np.asarray(run.y_events)[0] if s[0] < -0.05)
        return np.asarray(self.landed(impact)[[0, 2]])
