"""The states of engines: what JSBSim integrates in them, put where it is wanted, and how fast it changes there.

A piston engine turns its propeller at ``rpm``, J rpm' = its torque - the propeller's; its manifold pressure ``map``
follows what the throttle lets through with a lag of one second; the governor of a constant-speed propeller moves the
blades at a rate in proportion to the error of the speed. Turbines are of another sort: JSBSim moves n1 and n2 at fixed
rates towards what the throttle asks for, so that small changes follow at once, and small motions have no state there.
"""

from __future__ import annotations

import numpy as np

from fmilin.errors import NumericalError
from fmilin.signals import FloatArray, Signal
from fmilin_jsbsim.simulator import Simulator

__all__ = ["Engines"]

RPM, MAP, BLADE, FRICTION = "propeller-rpm", "map-pa", "blade-angle", "friction-hp"
THROTTLE = "fcs/throttle-pos-norm"
UNITS = {RPM: ("rpm", "rev/min"), MAP: ("map", "Pa"), BLADE: ("blade", "deg")}
MOMENT = 1e-5
"""Length of the step that shows rates, in s: short for the engines, long relative to rounding."""
PULSE = -1e6
"""A friction, in hp, that turns propellers up within microseconds, in which nothing else moves."""
OPEN = 8e4
"""By how much the pressure of an open throttle exceeds that of a closed one, about, in Pa."""
NEAR = 1e-11
"""How near states are brought to what is wanted, as a fraction."""
REFINED = 1e-9
"""Changes by less than this fraction say nothing of a rate any more."""
PASSES = 40


class Engines:
    """Engines of one aircraft, all alike, which turn together.

    Attributes
    ----------
    states : list of Signal
    remarks : list of str
        What was left out.
    """

    def __init__(self, simulator: Simulator, files: list[str]) -> None:
        self._jsbsim, self.states, self.remarks = simulator, list[Signal](), list[str]()
        self._engines = sorted({n.split("/")[1] for n in simulator.properties if n.startswith("propulsion/engine")})
        first, alike = next(iter(self._engines), ""), len(set(files)) <= 1
        if alike and self._has(first, RPM) and self._has(first, MAP):
            self.names = [
                RPM,
                MAP,
                *([BLADE] if self._has(first, BLADE) and self._value("constant-speed-mode") else []),
            ]
            self.states = [Signal(*UNITS[n], None, self._value(n), f"{n} of the engines") for n in self.names]
        elif alike and self._has(first, "n2") and not self._has(first, RPM):
            self.remarks.append(
                "The speeds n1, n2 of the turbines follow the throttle at once: JSBSim moves them at fixed rates, "
                "which a linear model cannot have, so they are not states."
            )
        elif first:
            self.remarks.append("The engines' own states are held at their equilibrium at the start.")

    def _has(self, engine: str, name: str) -> bool:
        return f"propulsion/{engine}/{name}" in self._jsbsim.properties

    def _value(self, name: str) -> float:
        return self._jsbsim[f"propulsion/{self._engines[0]}/{name}"]

    def _put(self, name: str, value: float) -> None:
        self._jsbsim.set({f"propulsion/{engine}/{name}": value for engine in self._engines})

    def _now(self) -> FloatArray:
        return np.array([self._value(name) for name in self.names])

    def settle(self, seconds: float = 20.0) -> FloatArray:
        """Let the engines run by themselves, as if the aircraft flew on; return their states, shape (k,)."""
        with self._jsbsim.only(["Propulsion"]):
            for _ in range(int(seconds * 100)):
                self._jsbsim.advance(0.01)
        return self._now() if self.states else np.zeros(0)

    def set_state(self, x: FloatArray) -> None:
        """Bring all engines into a state, shape (k,): JSBSim's own steps, of the lengths that lead there.

        Properties set the blades alone. A step changes speed and pressure by its length times their rates, also
        backwards, and throttle and friction are ours while nothing else runs.
        """
        if not self.states:
            return
        if not (x[:2] > 0).all():
            raise NumericalError(
                f"A running engine of '{self._jsbsim.name}' has a speed and a manifold pressure above zero, not "
                f"{x[0]:.6g} rev/min and {x[1]:.6g} Pa."
            )
        throttle, friction = self._jsbsim[THROTTLE], self._value(FRICTION)
        with self._jsbsim.only(["Propulsion"]):
            for _ in range(PASSES):
                now = self._now()[:2]
                if (np.abs(now - x[:2]) <= NEAR * np.abs(x[:2])).all():
                    break
                self._charge(float(x[1]))
                self._put(FRICTION, PULSE)
                self._spin(float(x[0]))
                self._put(FRICTION, friction)
            else:
                raise NumericalError(
                    f"The engines of '{self._jsbsim.name}' cannot be set to these values, {x[0]:.9g} rev/min and "
                    f"{x[1]:.9g} Pa:  they remain at {now[0]:.9g} and {now[1]:.9g}."
                )
        self._jsbsim.set({THROTTLE: throttle})
        if len(x) > 2:
            self._put(BLADE, float(x[2]))

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

    def _charge(self, pressure: float) -> None:
        """Bring the manifold pressure to a value: forwards with an open throttle, backwards with a closed one."""
        both, now = OPEN, self._value(MAP)
        for _ in range(PASSES):
            if abs(now - pressure) <= NEAR * pressure / 10:
                return
            step, before = float(np.clip((pressure - now) / both, -0.3, 0.3)), now
            for throttle, length in ((1.0, step), (0.0, -step)):
                self._jsbsim.set({THROTTLE: throttle})
                self._jsbsim.advance(length)
            now = self._value(MAP)
            if step and abs(now - before) > REFINED * pressure:
                both = (now - before) / step

    def _spin(self, speed: float) -> None:
        """Bring the propellers' speed to a value by the length of steps, a secant method."""
        step, rate, now = 1e-6, 0.0, self._value(RPM)
        for _ in range(PASSES):
            if abs(now - speed) <= NEAR * speed / 10:
                return
            before = now
            self._jsbsim.advance(step)
            now = self._value(RPM)
            if not rate or abs(now - before) > REFINED * speed:
                rate = (now - before) / step or 1.0
            step = float(np.clip((speed - now) / rate, -1e-4, 1e-4))
