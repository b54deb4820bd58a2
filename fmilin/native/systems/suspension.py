"""A double-wishbone suspension: a quarter of a car."""

from __future__ import annotations

from typing import Any

from fmilin.native.mechanism import (
    Body,
    Force,
    Joint,
    LineForce,
    Loop,
    Mechanism,
    MechanismDescription,
    Placement,
    PointSpring,
    Sensor,
)
from fmilin.native.systems.holding_forces import holding_forces

__all__ = ["double_wishbone"]

Point = tuple[float, float, float]

# Points at the start, in m: x forward, y to the left, z up from the road. A left wheel.
LOWER_FRONT, LOWER_REAR = (0.16, 0.35, 0.20), (-0.20, 0.35, 0.20)
UPPER_FRONT, UPPER_REAR = (0.12, 0.42, 0.47), (-0.15, 0.42, 0.45)
LOWER_BALL, UPPER_BALL = (0.00, 0.70, 0.18), (-0.02, 0.66, 0.45)
TIE_INNER, TIE_OUTER = (-0.13, 0.38, 0.25), (-0.14, 0.69, 0.24)
STRUT_FOOT, STRUT_TOP = (0.00, 0.58, 0.20), (0.00, 0.47, 0.62)
WHEEL, ROAD = (0.00, 0.75, 0.31), (0.00, 0.75, 0.0)
BODY = (0.00, 0.42, 0.40)

STRUT_STIFFNESS, STRUT_DAMPING = 45e3, 3000.0
TYRE_STIFFNESS, TYRE_DAMPING = 200e3, 60.0


def double_wishbone() -> Mechanism:
    """Return a quarter of a car on a double-wishbone suspension: 17 states, of which 4 are independent.

    The sprung mass (330 kg) moves up and down. Two wishbones turn about inclined axes on it, the upright with the
    wheel (42 kg) hangs on the lower one by a ball and closes loops with the upper one and with a tie rod, whose inner
    end is held as by a steering rack at rest. A strut stands on the lower wishbone (45 kN/m, 3 kN s/m). The tyre is a
    spring from the wheel's centre to the road below (200 kN/m). Free lengths are such that the car stands in
    equilibrium. Gravity is -z; x is forward, y to the left.

    The inputs are forces in N: ``body_load`` on the sprung mass and ``wheel_load`` on the wheel, both upwards, and
    ``strut_force`` of an active strut, positive when it pushes. The outputs are the acceleration of the body
    ``body.a`` in m/s2, the heights ``body.z`` (from the start) and ``wheel.z`` in m, the length ``strut`` in m, and the
    sines of camber (the axle's slope) and toe-out (its component backwards), ``camber`` and ``toe``.

    >>> model = double_wishbone()
    >>> len(model.states), model.independent
    (17, ('body.q', 'lower.q', 'body.v', 'lower.v'))
    """
    tyre = ROAD[2] + WHEEL[2]
    push, support = holding_forces(_suspension((_length(STRUT_FOOT, STRUT_TOP), tyre), holding=True))
    return _suspension((_length(STRUT_FOOT, STRUT_TOP) + push / STRUT_STIFFNESS, tyre + support / TYRE_STIFFNESS))


def _suspension(free: tuple[float, float], *, holding: bool = False) -> Mechanism:
    """Return it with given free lengths of strut and tyre; ``holding``: with the two forces that carry it as inputs."""
    strut: dict[str, Any] = {
        "first": "body",
        "second": "lower_arm",
        "first_point": _from(BODY, STRUT_TOP),
        "second_point": _from(LOWER_FRONT, STRUT_FOOT),
    }
    tyre: dict[str, Any] = {
        "first": "ground",
        "second": "upright",
        "first_point": ROAD,
        "second_point": _from(LOWER_BALL, WHEEL),
    }
    wheel = _from(LOWER_BALL, WHEEL)
    holders = [LineForce("strut_force", **strut), LineForce("tyre_force", **tyre)]
    forces = [Force("body_load", "body", direction=(0, 0, 1)), Force("wheel_load", "upright", wheel, (0, 0, 1))]
    return Mechanism(
        MechanismDescription(
            "double_wishbone",
            _bodies(),
            _joints(),
            [
                _ball("upper_ball", UPPER_BALL, ("upper_arm", UPPER_FRONT)),
                _ball("tie_ball", TIE_OUTER, ("tie_rod", TIE_INNER)),
            ],
            springs=[
                PointSpring("strut", stiffness=STRUT_STIFFNESS, length=free[0], damping=STRUT_DAMPING, **strut),
                PointSpring("tyre", stiffness=TYRE_STIFFNESS, length=free[1], damping=TYRE_DAMPING, **tyre),
            ],
            inputs=holders if holding else [*forces, holders[0]],
            sensors=[
                Sensor("body.a", "acceleration", "body", axis=(0, 0, 1)),
                Sensor("body.z", "joint_position", "body"),
                Sensor("wheel.z", "position", "upright", wheel, axis=(0, 0, 1)),
                Sensor("strut", "distance", "strut"),
                Sensor("camber", "direction", "upright", axis=(0, 0, 1), pointer=(0, 1, 0)),
                Sensor("toe", "direction", "upright", axis=(-1, 0, 0), pointer=(0, 1, 0)),
            ],
            independent=("body.q", "lower.q", "body.v", "lower.v"),
        )
    )


def _bodies() -> list[Body]:
    """Return the bodies, with frames parallel to the car at the start."""
    return [
        Body("body", 330.0, _from(BODY, (0.0, 0.3, 0.55)), (60.0, 60.0, 60.0)),
        Body("lower_arm", 6.0, _from(LOWER_FRONT, (-0.01, 0.53, 0.19)), (0.07, 0.06, 0.12)),
        Body("upper_arm", 3.5, _from(UPPER_FRONT, (-0.02, 0.54, 0.455)), (0.02, 0.03, 0.045)),
        Body("upright", 42.0, _from(LOWER_BALL, (0.0, 0.73, 0.31)), (1.1, 1.9, 1.1)),
        Body("tie_rod", 1.2, _from(TIE_INNER, (-0.135, 0.535, 0.245)), (0.01, 0.0002, 0.01)),
    ]


def _joints() -> list[Joint]:
    """Return the tree: each child's frame is where its joint is."""
    return [
        Joint("body", "prismatic", "ground", "body", Placement(BODY), axis=(0, 0, 1)),
        Joint("lower", "revolute", "body", "lower_arm", _on_body(LOWER_FRONT), axis=_from(LOWER_REAR, LOWER_FRONT)),
        Joint("upper", "revolute", "body", "upper_arm", _on_body(UPPER_FRONT), axis=_from(UPPER_REAR, UPPER_FRONT)),
        Joint("ball", "spherical", "lower_arm", "upright", Placement(_from(LOWER_FRONT, LOWER_BALL))),
        Joint("rack", "universal", "body", "tie_rod", _on_body(TIE_INNER), axis=(1, 0, 0), second_axis=(0, 0, 1)),
    ]


def _ball(name: str, at: Point, arm: tuple[str, Point]) -> Loop:
    """Return the ball between an arm, whose frame has the given origin, and the upright."""
    return Loop(name, "spherical", arm[0], "upright", Placement(_from(arm[1], at)), Placement(_from(LOWER_BALL, at)))


def _on_body(point: Point) -> Placement:
    return Placement(_from(BODY, point))


def _from(origin: Point, point: Point) -> Point:
    return (point[0] - origin[0], point[1] - origin[1], point[2] - origin[2])


def _length(a: Point, b: Point) -> float:
    dx, dy, dz = _from(a, b)
    return float((dx * dx + dy * dy + dz * dz) ** 0.5)
