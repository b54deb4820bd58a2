"""The equations of flight as JSBSim has them, for the shell of native models: rates at any state, by its own models.

States are the position (geocentric latitude, longitude, altitude), the attitude as a quaternion, the velocity in axes
of the body, the angular velocity against the Earth, and what engines integrate. Rates of velocities are JSBSim's; the
kinematics follow from the oblate, turning Earth of JSBSim: the local frame turns as the aircraft moves over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np

from fmilin import Constraint
from fmilin.adapters import AdjustableEngine, Engine, ModelInfo
from fmilin.errors import NumericalError, UnknownNameError
from fmilin.signals import FloatArray, Signal, Signals
from fmilin_jsbsim.attitude import angle_rates, angles_of, quaternion_rates, rotation
from fmilin_jsbsim.engines import Engines
from fmilin_jsbsim.simulator import Simulator, elements_of

__all__ = ["JsbsimEngine"]

EQUATOR, POLE = 20925646.32546, 20855486.5951
"""Half axes of JSBSim's Earth, in ft (WGS 84)."""
ACCELERATIONS = [f"accelerations/{name}" for name in (
    "udot-ft_sec2", "vdot-ft_sec2", "wdot-ft_sec2", "pdot-rad_sec2", "qdot-rad_sec2", "rdot-rad_sec2")]  # fmt: skip
ROUNDS, AGREED = 25, 1e-13
"""Accelerations that after so many rounds change by less than this fraction of the largest have settled."""
START_LATITUDE = 0.6
STATES = [
    Signal("lat", "rad", None, START_LATITUDE, "geocentric latitude"), Signal("lon", "rad", None, 0.0, "longitude"),
    Signal("h", "ft", 1000.0, 5000.0, "altitude above sea level"),
    *(Signal(f"e{i}", "1", None, float(i == 0), "attitude, from north, east, down to the body") for i in range(4)),
    *(Signal(name, "ft/s", 100.0, start, "velocity in axes of the body")
      for name, start in (("u", 200.0), ("v", 0.0), ("w", 8.0))),
    *(Signal(name, "rad/s", None, 0.0, "angular velocity in axes of the body") for name in "pqr"),
]  # fmt: skip
CONTROLS = {
    "aileron": "fcs/aileron-cmd-norm", "elevator": "fcs/elevator-cmd-norm", "rudder": "fcs/rudder-cmd-norm",
    "throttle": "fcs/throttle-cmd-norm",
}  # fmt: skip
SETTINGS = {
    "flaps": ("fcs/flap-cmd-norm", 0.0), "gear": ("gear/gear-cmd-norm", 0.0), "mixture": ("fcs/mixture-cmd-norm", 1.0),
    "propeller": ("fcs/advance-cmd-norm", 1.0), "spoilers": ("fcs/spoiler-cmd-norm", 0.0),
}  # fmt: skip
"""Levers that stand at their ends as a rule, where there is no slope: parameters."""
QUANTITIES = {
    "VT": ("velocities/vt-fps", "ft/s"), "alpha": ("aero/alpha-rad", "rad"), "beta": ("aero/beta-rad", "rad"),
    "mach": ("velocities/mach", "1"), "vc": ("velocities/vc-kts", "kn"), "qbar": ("aero/qbar-psf", "lbf/ft2"),
    "ny": ("accelerations/Ny", "1"), "nz": ("accelerations/Nz", "1"), "weight": ("inertia/weight-lbs", "lbf"),
    "thrust": ("forces/fbx-prop-lbs", "lbf"),
}  # fmt: skip
ANGLES = ("phi", "theta", "psi", "gamma")
WRAPPED_ANGLES = ("phi", "psi")  # roll angle and heading jump by a turn; elevations do not


class JsbsimEngine(Engine, AdjustableEngine):
    """An aircraft of JSBSim."""

    def __init__(self, path: Path, settings: Mapping[str, float] | None = None) -> None:
        files, memory = elements_of(path)
        self._path, self._jsbsim = path, (simulator := Simulator(path))
        paths = {name: self._of_all(path) for name, (path, _) in SETTINGS.items()}
        standard = {name: value for name, (_, value) in SETTINGS.items() if paths[name]}
        self.parameters = standard | dict(settings or {})
        for name, value in self.parameters.items():
            simulator.set(dict.fromkeys(paths[name], value))
        self._propulsion = Engines(simulator, files)
        self.info = ModelInfo(simulator.name, tool=f"JSBSim {_version()}")
        self._surfaces = sorted(n for n in simulator.properties if n.startswith("fcs/") and n.endswith("-pos-norm"))
        self._surfaces += sorted(n for n in simulator.properties if n.startswith("fcs/") and n.endswith("-pos-rad"))
        simulator.settle(self._surfaces)
        self._remembers = bool(memory)
        self._controls = {name: self._of_all(path) for name, path in CONTROLS.items() if self._of_all(path)}
        self.inputs = Signals(Signal(name, "1", 1.0, 0.6 if name == "throttle" else 0.0, CONTROLS[name])
                              for name in self._controls)  # fmt: skip
        self._paths = {name: path for name, (path, _) in QUANTITIES.items() if path in simulator.properties}
        signals = [Signal(name, QUANTITIES[name][1]) for name in self._paths]
        turns = dict.fromkeys(WRAPPED_ANGLES, 2 * np.pi)
        signals += [Signal(name, "rad", turn=turns.get(name)) for name in ANGLES] + [
            Signal(f"der({name})", "rad/s") for name in ANGLES[:3]
        ]
        self.quantities = Signals(signals)
        self._last_controls: FloatArray | None = None
        length = "length of the attitude's quaternion"
        self.constraints = (Constraint.from_text("(e0^2 + e1^2 + e2^2 + e3^2 - 1)/2", name=length, level="velocity"),)
        self.states = Signals([*STATES, *self._started()])
        self.outputs = tuple(name for name in ("VT", "alpha", "beta", "phi", "theta", "psi", "h") if self._offers(name))
        self.notes = (*simulator.remarks, *self._propulsion.remarks, *self._of_controls(memory))

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same aircraft with other settings of flaps, gear, mixture, ..."""
        for name in values:
            if name not in self.parameters:
                raise UnknownNameError.among(name, self.parameters, "a parameter of the aircraft")
        return type(self)(self._path, {**self.parameters, **values})

    def _offers(self, name: str) -> bool:
        return self.quantities.has(name) or any(s.name == name for s in STATES)

    def _of_all(self, path: str) -> list[str]:
        """Return a control of all engines, or the one of the aircraft."""
        return [name for name in self._jsbsim.properties if name == path or name.startswith(f"{path}[")]

    def _of_controls(self, memory: list[str]) -> list[str]:
        lasting = sorted(set(memory))
        if not lasting:
            return []
        return [
            f"The flight control system has elements with a memory ({', '.join(lasting)}): they are constant here, "
            "and their own motion is not part of the states."
        ]

    def _started(self) -> list[Signal]:
        """Return the states of the engines, where they come to rest at the start."""
        x = np.array([s.start for s in STATES])
        self._set_state(x, np.array([s.start for s in self.inputs]))
        return [s.with_start(v) for s, v in zip(self._propulsion.states, self._propulsion.settle(), strict=True)]

    # -- one state ---------------------------------------------------------------------------------

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return all rates and quantities."""
        n = len(STATES)
        self._set_state(x, u)
        self._propulsion.set_state(x[n:])
        accelerations = self._accelerations()
        of_position, turning, T = self._kinematics(x)
        w = x[10:13] - T @ turning
        phi, theta, psi = angles_of(T)
        climb = -float((T.T @ x[7:10])[2])
        seen = self._jsbsim.get(list(self._paths.values()))
        gamma = np.arcsin(climb / max(float(np.linalg.norm(x[7:10])), 1e-300))
        quantities = np.concatenate((seen, [phi, theta, psi, gamma], angle_rates(phi, theta, w)))
        attitude = quaternion_rates(x[3:7], w)
        rates = np.concatenate((of_position, attitude, accelerations, self._propulsion.rates()))
        if not np.isfinite(rates).all():
            raise NumericalError(f"JSBSim's rates of '{self.info.name}' are not finite at this state.")
        return rates, quantities

    def _set_state(self, x: FloatArray, u: FloatArray) -> None:
        phi, theta, psi = angles_of(rotation(x[3:7]))
        names = ("lat-gc-rad", "long-gc-rad", "h-sl-ft", "phi-rad", "theta-rad", "psi-true-rad",
                 "u-fps", "v-fps", "w-fps", "p-rad_sec", "q-rad_sec", "r-rad_sec")  # fmt: skip
        values = (*x[:3], phi, theta, psi, *x[7:13])
        for paths, value in zip(self._controls.values(), u.tolist(), strict=True):
            self._jsbsim.set(dict.fromkeys(paths, value))
        self._jsbsim.set_state({f"ic/{name}": float(value) for name, value in zip(names, values, strict=True)})
        if self._remembers and not np.array_equal(u, self._last_controls if self._last_controls is not None else ()):
            self._jsbsim.settle(self._surfaces)
        self._last_controls = u.copy()

    def _accelerations(self) -> FloatArray:
        """Return JSBSim's accelerations; aerodynamics that depend on the rate of alpha depend on these themselves."""
        before = np.full(len(ACCELERATIONS), np.inf)
        for i in range(100):
            self._jsbsim.still()
            now = self._jsbsim.get(ACCELERATIONS)
            change, before = float(np.abs(now - before).max()), now
            if not change or (i > ROUNDS and change <= AGREED * max(1.0, float(np.abs(now).max()))):
                return now
        raise NumericalError(
            f"The accelerations of '{self.info.name}' depend on themselves and do not converge: its aerodynamics "
            "multiply the rate of alpha or beta by too large a factor at this state."
        )

    def _kinematics(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the rates of the position, how the local frame turns against the Earth, and the attitude (3, 3)."""
        lat, _, h = x[:3]
        T = rotation(x[3:7])
        north, east, down = T.T @ x[7:10]
        s, c = np.sin(lat), np.cos(lat)
        R = EQUATOR * POLE / np.sqrt((EQUATOR * s) ** 2 + (POLE * c) ** 2)  # sea level there
        slope = -(R**3) * (EQUATOR**2 - POLE**2) * s * c / (EQUATOR * POLE) ** 2
        geodetic = self._jsbsim["position/lat-geod-rad"]
        height = self._jsbsim["position/geod-alt-ft"]
        tilt = geodetic - lat  # between the vertical and the line to the centre
        radius = R + h
        lat_rate = (north * np.cos(tilt) - down * np.sin(tilt)) / radius
        lon_rate = east / (radius * c)
        climb = -down * np.cos(tilt) - north * np.sin(tilt)
        squared = 1 - (POLE / EQUATOR) ** 2
        meridian = EQUATOR * (1 - squared) / (1 - squared * np.sin(geodetic) ** 2) ** 1.5
        turning = np.array([lon_rate * np.cos(geodetic), -north / (meridian + height), -lon_rate * np.sin(geodetic)])
        return np.array([lat_rate, lon_rate, climb - slope * lat_rate]), turning, T


def _version() -> str:
    import jsbsim

    return str(jsbsim.__version__)
