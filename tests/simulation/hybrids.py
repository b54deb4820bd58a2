"""Small models with events, written by hand."""

from __future__ import annotations

import numpy as np

from fmilin.model.stepping import Hybrid, Passage
from fmilin.signals import FloatArray
from tests.by_hand import FunctionModel, Parts


class Ball(FunctionModel, Hybrid):
    """A ball that falls with 10 m/s2 and keeps a part of its speed at each bounce on a floor at 0."""

    def __init__(self, height: float = 5.0, restitution: float = 0.5) -> None:
        super().__init__(Parts(["x", "v"], [height, 0.0], lambda t, s, u: np.array([s[1], -10.0])))
        self.restitution = restitution
        self.bounces = 0
        self.restarts = 0

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return x[:1].copy()

    def restart(self) -> None:
        self.bounces = 0
        self.restarts += 1

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        if x[0] > 0 or x[1] > 0:
            return Passage(x)
        self.bounces += 1
        return Passage(np.array([0.0, -self.restitution * x[1]]))


class StoppedPendulum(FunctionModel, Hybrid):
    """A Cartesian pendulum of 1 m and 10 m/s2 that hits a rigid stop at x = 0 and comes back."""

    def __init__(self, angle: float) -> None:
        def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
            x, y, vx, vy = s
            mu = (vx**2 + vy**2 - 10.0 * y) / (x**2 + y**2)
            return np.array([vx, vy, -mu * x, -10.0 - mu * y])

        start = [np.sin(angle), -np.cos(angle), 0.0, 0.0]
        super().__init__(Parts(["x", "y", "vx", "vy"], start, rates, constraints=["x^2 + y^2 - 1"]))

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([1.0, x[0]])

    def restart(self) -> None:
        pass

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        if x[2] > 0:
            return Passage(x)
        return Passage(np.array([x[0], x[1], -x[2], -x[3]]))


class Clockwork(FunctionModel, Hybrid):
    """x' = the number of full seconds that have passed, by events in time; ends at 4 s."""

    def __init__(self) -> None:
        self.seconds = 0
        super().__init__(Parts(["x"], [0.0], lambda t, s, u: np.array([float(self.seconds)])))

    def restart(self) -> None:
        self.seconds = 0

    def next_event_time(self) -> float | None:
        return self.seconds + 1.0

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        self.seconds += 1
        return Passage(x, terminates=self.seconds == 4)


class Chatter(FunctionModel, Hybrid):
    """Its rate has the opposite sign on each side of zero: it stays there and switches without end."""

    def __init__(self) -> None:
        self.sign = -1.0
        super().__init__(Parts(["x"], [1.0], lambda t, s, u: np.array([self.sign])))

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return x.copy()

    def restart(self) -> None:
        self.sign = -1.0

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        self.sign = -1.0 if x[0] > 0 else 1.0
        return Passage(x)
