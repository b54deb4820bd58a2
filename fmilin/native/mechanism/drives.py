"""Tendons and actuators: forces along lengths that several joints or points share. All units are SI.

Like joints and springs these objects check themselves; what concerns several is checked by the description.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fmilin.ground.errors import ModelError
from fmilin.native.mechanism.parts import check_name, check_nominal, check_type
from fmilin.native.mechanism.placement import ORIGIN, Placement, Vector, vector

__all__ = ["ACTUATOR_DYNAMICS", "Actuator", "ActuatorDynamics", "Tendon"]

ActuatorDynamics = Literal["none", "integrator", "filter"]
ACTUATOR_DYNAMICS = ActuatorDynamics.__args__  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Tendon:
    """A length that several parts share: over joints, L = sum factor q; or along points of bodies.

    It pulls with stiffness (L - rest) + damping L', at any length; between two ``rest`` lengths its spring is slack.
    """

    name: str
    joints: Sequence[str] = ()  # joints with one freedom each, for a tendon over joints
    factors: Sequence[float] = ()  # one for each joint, in m/rad or without unit
    # for a tendon along points: the bodies that it is attached to, in order; the ground may be one
    bodies: Sequence[str] = ()
    points: Sequence[Vector] = ()  # 3 floats each, where, in the frames of the bodies
    # how much each stretch between neighbouring points counts: 1 when left out, 0 where the tendon does not run, 1/2
    # behind a loose pulley
    weights: Sequence[float] = ()
    stiffness: float = 0.0  # in N/m
    damping: float = 0.0  # in N s/m
    rest: Any = 0.0  # length without force, in m; or the range in which the spring is slack

    def __post_init__(self) -> None:
        check_name(self.name, "tendon")
        where = f"the tendon '{self.name}'"
        set_ = object.__setattr__
        set_(self, "joints", tuple(self.joints))
        set_(self, "bodies", tuple(self.bodies))
        set_(self, "points", tuple(vector(p, f"A point of {where}") for p in self.points))
        if bool(self.joints) == bool(self.bodies):
            raise ModelError(f"{_start(where)} runs over 'joints' or along points of 'bodies': give one of the two.")
        factors = numbers(self.factors, len(self.joints), f"'factors' of {where}")
        stretches = max(len(self.bodies) - 1, 0)
        if self.bodies and (not stretches or len(self.points) != len(self.bodies)):
            raise ModelError(f"{_start(where)} needs a point on each of its bodies, and two of them at least.")
        weights = numbers(self.weights or (1.0,) * stretches, stretches, f"'weights' of {where}")
        set_(self, "factors", factors)
        set_(self, "weights", weights)
        rest = (self.rest, self.rest) if np.ndim(self.rest) == 0 else self.rest
        set_(self, "rest", numbers(rest, 2, f"'rest' of {where}"))
        if self.rest[0] > self.rest[1]:
            raise ModelError(f"The range 'rest' of {where} ends before it begins.")
        for what in ("stiffness", "damping"):
            numbers((getattr(self, what),), 1, f"'{what}' of {where}")


@dataclass(frozen=True)
class Actuator:
    """An input that drives a joint, a tendon or a body, with a law of its own: a motor, a servo, a filter before it.

    With the length L and the rate L' of what it drives, times its gear,

        force = (gain_0 + gain_1 L + gain_2 L') w + bias_0 + bias_1 L + bias_2 L'

    where w is its control, or its activation a when it has dynamics: ``integrator`` a' = control, ``filter``
    a' = (control - a) / time_constant. A position servo has gain (kp, 0, 0) and bias (0, -kp, -kv). Freedoms of balls
    and wrenches on bodies have a rate and no length.
    """

    name: str  # of the input
    # joint, tendon, body: one of them: what it drives
    joint: str = ""
    tendon: str = ""
    body: str = ""
    # of a tendon one number; of a joint one for each of its speeds, one being enough for the first; of a body six,
    # force and torque in the frame ``placement``
    gear: Any = 1.0
    placement: Placement = ORIGIN  # on a body: where the wrench acts, and in which axes
    gain: Any = (1.0, 0.0, 0.0)  # 3 floats
    bias: Any = (0.0, 0.0, 0.0)  # 3 floats
    dynamics: ActuatorDynamics = "none"
    time_constant: float = 0.0  # of a filter, in s
    # control_limits, force_limits: 2 floats, the control and the force go no further; at a limit linear models are
    # those of its inner side
    control_limits: Any = ()
    force_limits: Any = ()
    # start, activation: initial values of the control and of the activation
    start: float = 0.0
    activation: float = 0.0
    nominal: float | None = None  # typical size of the control

    def __post_init__(self) -> None:
        check_name(self.name, "actuator")
        check_nominal(self.nominal, f"the actuator '{self.name}'")
        where = f"the actuator '{self.name}'"
        if sum(bool(part) for part in (self.joint, self.tendon, self.body)) != 1:
            raise ModelError(f"{_start(where)} drives a 'joint', a 'tendon' or a 'body': give one of the three.")
        check_type(self.dynamics, ACTUATOR_DYNAMICS, where, "dynamics")
        if self.dynamics == "filter" and not (np.isfinite(self.time_constant) and self.time_constant > 0):
            raise ModelError(f"The time constant of {where} must be positive, as that of every filter.")
        gear = (self.gear,) if np.ndim(self.gear) == 0 else self.gear
        object.__setattr__(self, "gear", numbers(gear, None, f"'gear' of {where}"))
        if self.body and len(self.gear) != 6:
            raise ModelError(f"{_start(where)} drives a body and needs six numbers in 'gear': a force and a torque.")
        if self.tendon and len(self.gear) != 1:
            raise ModelError(f"{_start(where)} drives a tendon and needs one number in 'gear'.")
        for what in ("gain", "bias"):
            object.__setattr__(self, what, numbers(getattr(self, what), 3, f"'{what}' of {where}"))
        if self.body and (self.gain[1] or self.bias[1]):
            raise ModelError(f"{_start(where)} drives a body, which has no length: gain and bias cannot depend on it.")
        for what in ("control_limits", "force_limits"):
            limits = getattr(self, what)
            if len(limits):
                limits = numbers(limits, 2, f"'{what}' of {where}", finite=False)
                if not limits[0] <= limits[1]:
                    raise ModelError(f"'{what}' of {where} end before they begin.")
            object.__setattr__(self, what, tuple(limits))
        for what in ("start", "activation"):
            numbers((getattr(self, what),), 1, f"'{what}' of {where}")


def numbers(given: Any, count: int | None, what: str, *, finite: bool = True) -> tuple[float, ...]:
    """Return numbers as a tuple."""
    try:
        found = np.array(given, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        found = np.full(1, np.nan)
    right = np.isfinite(found) if finite else ~np.isnan(found)
    if (count is not None and len(found) != count) or not right.all() or not len(found) + (count == 0):
        raise ModelError(f"{_start(what)} must be {count or 'finite'} numbers, not {given!r}.")
    return tuple(found.tolist())


def _start(where: str) -> str:
    return where[0].upper() + where[1:]
