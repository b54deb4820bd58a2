"""The states of engines: what JSBSim integrates in them, put where it is wanted, and how fast it changes there.

Propellers turn at ``rpm``, J rpm' = engine torque - propeller torque; a piston engine's manifold pressure ``map``
follows what the throttle lets through with a lag of one second; a constant-speed governor moves the blades at a rate
in proportion to the error of the speed. Turbines are steps of another sort: JSBSim moves n1 and n2 at fixed rates towards
what the throttle asks for, so that small changes follow at once, and small motions have no state there.
"""

from __future__ import annotations

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray, Signal
from fmilin_jsbsim.simulator import Simulator

__all__ = ["Engines"]

RPM, MAP, BLADE, THROTTLE = "propeller-rpm", "map-pa", "blade-angle", "fcs/throttle-pos-norm"
MOMENT = 1e-5
"""Length of the step that shows rates, in s: short for the engines, long beside rounding."""
NEAR = 1e-11
"""How near states are brought to what is wanted, as a fraction."""
PASSES = 60
PUSH = 2e4
"""Pressure above what is wanted under which propellers are turned up and down, in Pa: speed changes soon there."""
LEAP = 0.1
"""Length of the longest step on the way there, in s."""
REFINED = 1e-7
"""Changes of the speed by less than this fraction say nothing of its rate any more."""


class Engines:
    """Engines of one aircraft, all alike, which turn together.

    Attributes
    ----------
    states : list of Signal
    remarks : list of str
        What was left out.
    """

    def __init__(self, simulator: Simulator, files: list[str]) -> None:
        self._jsbsim, self.remarks = simulator, list[str]()
        self._engines = sorted({n.split("/")[1] for n in simulator.properties if n.startswith("propulsion/engine")})
        self.states: list[Signal] = []
        with_propeller = [e for e in self._engines if self._has(e, RPM)]
        if not with_propeller:
            if self._engines and self._has(self._engines[0], "n2"):
                self.remarks.append(
                    "The speeds n1, n2 of the turbines follow the throttle at once: JSBSim moves them at fixed rates, and "
                    "no linear model has such states."
                )
            return
        if len(set(files)) > 1 or with_propeller != self._engines:
            self.remarks.append("The engines are of several kinds: their speeds are held where they came to rest.")
            return
        self.names = [RPM]
        units = {RPM: ("rpm", "rev/min"), MAP: ("map", "Pa"), BLADE: ("blade", "deg")}
        self.names += [MAP] if self._has(self._engines[0], MAP) else []
        if self._governed():
            self.names.append(BLADE)
        self.states = [Signal(*units[n], None, simulator[self._path(n)], f"{n} of the engines") for n in self.names]

    def _has(self, engine: str, name: str) -> bool:
        return f"propulsion/{engine}/{name}" in self._jsbsim.properties

    def _path(self, name: str, engine: int = 0) -> str:
        return f"propulsion/{self._engines[engine]}/{name}"

    def _governed(self) -> bool:
        """Whether a governor moves the blades: they stay where they are put, and move when time goes on."""
        if not self._has(self._engines[0], BLADE) or not self._jsbsim[self._path("constant-speed-mode")]:
            return False
        angle = self._jsbsim[self._path(BLADE)]
        self._put(BLADE, angle + 0.01)
        self._jsbsim.still()
        stays = abs(self._jsbsim[self._path(BLADE)] - angle - 0.01) < 1e-9
        self._put(BLADE, angle)
        return stays

    def _put(self, name: str, value: float) -> None:
        self._jsbsim.set({self._path(name, i): value for i in range(len(self._engines))})

    def _now(self) -> FloatArray:
        return self._jsbsim.get([self._path(name) for name in self.names])

    def place(self, x: FloatArray) -> None:
        """Bring all engines into a state, shape (k,): JSBSim's own steps, of the lengths that lead there.

        Properties set the blades alone. A step changes speed and manifold pressure by its length times their rates, also
        backwards, and the throttle is ours while nothing else runs.
        """
        if not self.states:
            return
        throttle, wanted = self._jsbsim[THROTTLE], dict(zip(self.names, x.tolist(), strict=True))
        with self._jsbsim.only(["Propulsion"]):
            if MAP in wanted:
                self._reach(wanted[RPM], wanted[MAP])
            else:
                self._spin(wanted[RPM])
            if BLADE in wanted:
                self._put(BLADE, wanted[BLADE])
            self._jsbsim.set({THROTTLE: throttle})

    def rates(self) -> FloatArray:
        """Return how fast the states change, shape (k,)."""
        if not self.states:
            return np.zeros(0)
        with self._jsbsim.only(["Propulsion"]):
            before = self._now()
            self._jsbsim.advance(MOMENT)
            after = self._now()
            self._jsbsim.advance(-MOMENT)  # back where they were, but for rounding
        return (after - before) / MOMENT

    def settle(self, seconds: float = 20.0) -> FloatArray:
        """Let the engines run by themselves, as if the aircraft flew on; return their states, shape (k,)."""
        with self._jsbsim.only(["Propulsion"]):
            for _ in range(int(seconds * 100)):
                self._jsbsim.advance(0.01)
        return self._now() if self.states else np.zeros(0)

    def _reach(self, rpm: float, pressure: float) -> None:
        """Bring speed and manifold pressure to values: under more pressure to a speed that the way back leads on from."""
        beside, before, slope = rpm, (0.0, 0.0), 1.0
        for _ in range(PASSES):
            speed, now = self._now()[:2]
            if abs(speed - rpm) <= NEAR * rpm and abs(now - pressure) <= NEAR * pressure:
                return
            if abs(speed - rpm) > NEAR * rpm:
                self._spin(beside, pressure + PUSH)
            self._charge(pressure)
            miss = self._now()[0] - rpm
            if beside != before[0] and before[0]:
                slope = (miss - before[1]) / (beside - before[0]) or 1.0
            before = beside, miss
            beside -= miss / (slope if 0.2 < slope < 5 else 1.0)
        raise self._failed(f"{rpm:.6g} rev/min and {pressure:.6g} Pa")

    def _charge(self, pressure: float) -> None:
        """Bring the manifold pressure to a value: as long forwards with an open throttle as backwards with a closed one."""
        path, both = self._path(MAP), 8e4
        now = self._jsbsim[path]
        for _ in range(PASSES):
            if abs(now - pressure) <= NEAR * pressure / 10:
                return
            step, before = float(np.clip((pressure - now) / both, -0.3, 0.3)), now
            for throttle, length in ((1.0, step), (0.0, -step)):
                self._jsbsim.set({THROTTLE: throttle})
                self._jsbsim.advance(length)
            now = self._jsbsim[path]
            if abs(now - before) > REFINED * pressure:
                both = (now - before) / step
        raise self._failed(f"{pressure:.6g} Pa of manifold pressure")

    def _spin(self, speed: float, pressure: float | None = None) -> None:
        """Bring the propellers' speed to a value, by the length of steps: a secant method."""
        path, step, rate = self._path(RPM), 1e-3, 0.0
        for _ in range(PASSES):
            if pressure is not None:
                self._charge(pressure)
            before = self._jsbsim[path]
            if rate:
                step = float(np.clip((speed - before) / rate, -LEAP, LEAP))
            self._jsbsim.advance(step)
            now = self._jsbsim[path]
            if abs(now - speed) <= NEAR * abs(speed) / 10:
                return
            if not rate or abs(now - before) > REFINED * abs(speed):
                rate = (now - before) / step
        raise self._failed(f"{speed:.6g} rev/min")

    def _failed(self, what: str) -> NumericalError:
        return NumericalError(
            f"The engines of '{self._jsbsim.name}' cannot be brought to {what}: they stand at {self._now()}."
        )
