"""Trimmed flight in the words of pilots: by speed, altitude, heading, turn and climb.

Newton's method in angles of attack, sideslip and attitude leads to the point; of level flight :func:`fmilin.trim` takes
it from there, on the manifold, with its certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

import fmilin as fl
from fmilin.adapters import EngineModel, Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.signals import FloatArray, as_numbers
from fmilin_jsbsim.attitude import quaternion_of
from fmilin_jsbsim.engine import START_LATITUDE, JsbsimEngine

__all__ = ["Flight", "balanced_flight", "trim_flight"]

STEPS = 40
BALANCED = 1e-13
"""The residual, in units of gravity and rad/s2, below which it is rounding."""


@dataclass(frozen=True)
class Flight:
    """The flight condition that a pilot requests.

    Attributes
    ----------
    speed : float
        True airspeed, in ft/s.
    altitude : float
        Above sea level, in ft.
    heading : float
        In rad, from north over east. Along a parallel, the default, the Earth looks the same all the way.
    turn_rate, climb_rate : float
        In rad/s and ft/s. A turn is flown without sideslip, straight flight with level wings.
    """

    speed: float
    altitude: float
    heading: float = np.pi / 2
    turn_rate: float = 0.0
    climb_rate: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not np.isfinite(as_numbers(value, f"The {name} of a flight")):
                raise UsageError(f"The {name} of a flight must be a finite number, not {value}.")
        if self.speed <= 0:
            raise UsageError(f"The speed of a flight must be above zero, not {self.speed:g} ft/s.")


def trim_flight(model: fl.Model, flight: Flight) -> fl.OperatingPoint:
    """Return a point of trimmed flight, all controls free.

    Straight and level it is one of :func:`fmilin.trim`, with its certificate. A turn or a climb is not steady in the
    strict sense, over a turning Earth and through thinner air: it is balanced at an instant, and a warning states it.

    Parameters
    ----------
    model : Model
        Of this adapter, ``fl.load("jsbsim:c172x")``.
    flight : Flight

    Raises
    ------
    UsageError
        When the model is not an aircraft of this adapter. :class:`Flight` rejects values that are not finite.
    NumericalError
        When such a flight does not exist: too slow, too fast, too high.
    """
    engine = _engine_of(model)
    values = balanced_flight(engine, flight)
    if flight.turn_rate or flight.climb_rate:
        instant = (
            "Turning or climbing flight is balanced at an instant: Coriolis' acceleration and the air's density change."
        )
        return replace(fl.operating_point(model, values), remarks=(Remark("unsteady", instant),))
    fixed = {
        "VT": flight.speed,
        "h": flight.altitude,
        "psi": flight.heading,
        "phi": 0.0,
        "lon": 0.0,
        "lat": START_LATITUDE,
    }
    start = {name: value for name, value in values.items() if name not in fixed}
    return fl.trim(model, fixed=fixed, free=list(model.inputs.names), steady=["lat", "lon"], guess=start)


def balanced_flight(engine: JsbsimEngine, flight: Flight) -> Mapping[str, float]:
    """Return states and inputs of a flight by name, by Newton's method in angles.

    Raises
    ------
    NumericalError
        When it does not come near.
    """
    nu = len(engine.inputs)
    sizes = np.concatenate((np.full(4, 0.1), np.full(3, 0.05), np.full(nu, 0.3), np.abs(engine.states.starts[13:]) + 1))
    z = np.concatenate(([0.05, 0.0, 0.05, 0.0, 0.0, 0.0, 0.0], engine.inputs.starts, engine.states.starts[13:]))
    value = _balance(engine, flight, z)
    for _ in range(STEPS):
        if np.abs(value).max() < BALANCED:
            break
        J = np.stack([
            (_balance(engine, flight, z + e) - _balance(engine, flight, z - e)) / 2e-5 for e in 1e-5 * np.diag(sizes)
        ], axis=1)  # fmt: skip
        step = -sizes * np.linalg.lstsq(J, value, rcond=1e-10)[0]
        for damping in (1.0, 0.5, 0.2, 0.05):
            candidate = z + damping * step
            smaller = _tried(engine, flight, candidate)
            if smaller is not None and np.linalg.norm(smaller) < np.linalg.norm(value):
                z, value = candidate, smaller
                break
        else:
            break
    if np.abs(value).max() > 1e-4:
        names = (*_EQUATIONS, *(f"der({s.name})" for s in engine.states[13:]))
        worst = int(np.argmax(np.abs(value)))
        raise NumericalError(
            f"No flight of '{engine.info.name}' at {flight.speed:g} ft/s and {flight.altitude:g} ft was found: the "
            f"best one has an unbalanced {names[worst]}. It may be too slow, too fast or too high for it; the angle "
            f"of attack came to {np.degrees(z[0]):.3g} degrees, " + ", ".join(f"{s.name} to {v:.3g}" for s, v in zip(
                engine.inputs, z[7 : 7 + nu], strict=True)) + "."
        )  # fmt: skip
    x, u = _state(engine, flight, z)
    for signal, value in zip(engine.inputs, u.tolist(), strict=True):
        low = 0.0 if signal.name == "throttle" else -1.0
        if not low <= value <= 1.0:
            raise NumericalError(
                f"'{engine.info.name}' cannot fly so at {flight.speed:g} ft/s and {flight.altitude:g} ft: it would "
                f"take a '{signal.name}' of {value:.3g}, and the range is {low:g} to 1. Fly faster, slower or "
                "more gently."
            )
    return dict(zip((*engine.states.names, *engine.inputs.names), (*x.tolist(), *u.tolist()), strict=True))


_EQUATIONS = ("der(h)", "der(phi)", "der(theta)", "der(psi)", "der(u)", "der(v)", "der(w)", "der(p)", "der(q)",
              "der(r)", "the sideslip or the bank")  # fmt: skip


def _tried(engine: JsbsimEngine, flight: Flight, z: FloatArray) -> FloatArray | None:
    try:
        return _balance(engine, flight, z)
    except NumericalError:
        return None


def _balance(engine: JsbsimEngine, flight: Flight, z: FloatArray) -> FloatArray:
    """Return what is out of balance, of comparable sizes."""
    x, u = _state(engine, flight, z)
    rates, seen = engine.visit(0.0, x, u)
    angles = [seen[engine.quantities.index_of(f"der({name})")] for name in ("phi", "theta", "psi")]
    angles[2] -= flight.turn_rate
    coordinated = z[1] if flight.turn_rate else z[3]
    climb = (rates[2] - flight.climb_rate) / flight.speed
    engines = rates[13:] / (np.abs(engine.states.starts[13:]) + 1)
    return np.concatenate(([climb], angles, rates[7:10] / 32.0, rates[10:13], [coordinated], engines))


def _state(engine: JsbsimEngine, flight: Flight, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return all states and inputs for alpha, beta, theta, phi, p, q, r, the inputs and the engines' states."""
    alpha, beta, theta, phi = z[:4]
    air = flight.speed * np.array([np.cos(alpha) * np.cos(beta), np.sin(beta), np.sin(alpha) * np.cos(beta)])
    e = quaternion_of(phi, theta, flight.heading)
    nu = len(engine.inputs)
    x = np.concatenate(([START_LATITUDE, 0.0, flight.altitude], e, air, z[4:7], z[7 + nu :]))
    return x, z[7 : 7 + nu]


def _engine_of(model: fl.Model) -> JsbsimEngine:
    engine = model.engine if isinstance(model, EngineModel) else None
    if not isinstance(engine, JsbsimEngine):
        raise UsageError(f"'{model.info.name}' is not an aircraft of JSBSim: load one with fl.load('jsbsim:c172x').")
    return engine
