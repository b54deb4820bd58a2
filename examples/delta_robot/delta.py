"""A Delta robot (Clavel, 1988): three motor arms, a platform that only shifts, three rods between elbows and platform.

The mass of each rod counts half at its elbow and half at the platform (Codourey, Int. J. Robotics Research 17, 1998).
Coordinates are the angles of the arms, measured down from the horizontal, and the platform's position; the rods'
lengths are the constraints: 12 states, of which 6 are independent.
"""

from __future__ import annotations

import numpy as np
import sympy

from fmilin.models import LagrangeModel, SymbolicConstraint

BASE, PLATFORM = 0.20, 0.05  # m, radius of the motors' axes and of the rods' ends on the platform
ARM, ROD = 0.26, 0.48  # m
ARM_MASS, ROD_MASS, PLATFORM_MASS = 0.35, 0.10, 0.40  # kg
GRAVITY, FRICTION = 9.81, 0.02  # m/s2, N.m.s/rad
HEIGHT = -0.45  # m, of the middle of the workspace


def arm_angle(number: int, position: tuple[float, float, float]) -> float:
    """Return the angle of an arm for a position of the platform, its elbow outside."""
    turn = 2 * np.pi * number / 3
    x, y, z = position
    outward = x * np.cos(turn) + y * np.sin(turn) + PLATFORM - BASE
    sideward = -x * np.sin(turn) + y * np.cos(turn)
    # (outward - ARM cos q)^2 + sideward^2 + (z + ARM sin q)^2 = ROD^2
    c = (outward**2 + sideward**2 + z**2 + ARM**2 - ROD**2) / (2 * ARM)
    return float(np.arctan2(-z, outward) - np.arccos(c / np.hypot(outward, z)))


def delta_robot() -> LagrangeModel:
    """Return the robot, with its platform in the middle of the workspace."""
    q = sympy.symbols("q1:4", real=True)
    dq = sympy.symbols("w1:4", real=True)
    p = sympy.symbols("x y z", real=True)
    dp = sympy.symbols("vx vy vz", real=True)
    torques = sympy.symbols("torque1:4", real=True)
    inertia = ARM_MASS * ARM**2 / 3 + ROD_MASS / 2 * ARM**2
    platform = PLATFORM_MASS + 3 * ROD_MASS / 2
    weight = (ARM_MASS / 2 + ROD_MASS / 2) * ARM * GRAVITY
    constraints, start = [], (0.0, 0.0, HEIGHT)
    for i in range(3):
        turn = 2 * sympy.pi * i / 3
        reach = BASE - PLATFORM + ARM * sympy.cos(q[i])
        elbow = (reach * sympy.cos(turn), reach * sympy.sin(turn), -ARM * sympy.sin(q[i]))
        length = sum((a - b) ** 2 for a, b in zip(p, elbow, strict=True))
        constraints.append(SymbolicConstraint((length - ROD**2) / (2 * ROD), name=f"rod {i + 1}"))
    forces = [torques[i] + weight * sympy.cos(q[i]) - FRICTION * dq[i] for i in range(3)]
    values = [*(arm_angle(i, start) for i in range(3)), *start]
    return LagrangeModel(
        "delta",
        dict(zip((*q, *p), (*dq, *dp), strict=True)),
        sympy.diag(*[inertia] * 3, *[platform] * 3),
        [*forces, 0, 0, -platform * GRAVITY],
        constraints=constraints,
        inputs=torques,
        start=dict(zip((*q, *p), values, strict=True)),
    )
