"""Machines that are held by cylinders, with their holding forces by virtual work.

A cylinder of length L pushes its ends apart with F. At rest, with V the weight and the springs, the work of a small
motion vanishes, dV/dq = sum F dL/dq for each angle q: one linear equation for each angle, and no dynamics.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fmilin.models.mechanism import Body, Joint, JointForce, Loop, Mechanism, MechanismDescription, Placement, assemble

__all__ = ["boom_and_cylinder", "boom_force", "excavator", "excavator_forces"]

G = 9.81
BOOM, STICK, BARREL, ROD = (1500.0, (2.7, 0.5)), (1200.0, (1.6, 0.1)), (90.0, 0.7), (60.0, -0.6)
"""Masses in kg; centres of mass in m, of cylinders along their axis."""
FOOT, EYE, STICK_PIN, STICK_FOOT, STICK_EYE = (0.5, -0.6), (2.5, 0.7), (5.7, 0.0), (2.6, 1.1), (-0.7, 0.3)


def boom_and_cylinder(stiffness: float) -> Mechanism:
    """Return a boom on a pin, one cylinder with a spring in a loop, its force the input."""
    bodies = [*_arm("boom", BOOM, 4000.0), *_cylinder("")]
    joints = [Joint("pin", "revolute", "ground", "boom", position=0.5), *_cylinder_joints("", "ground", FOOT, 1.0, 2.2)]
    joints[-1] = Joint("cyl", "prismatic", "barrel", "rod", axis=(1, 0, 0), position=2.2, stiffness=stiffness)
    description = MechanismDescription(
        "boom",
        bodies,
        joints,
        [_eye("eye", "boom", "rod", EYE)],
        inputs=[JointForce("force", "cyl")],
        gravity=(0, -G, 0),
        independent=["pin.q"],
    )
    return Mechanism(assemble(description).description)


def boom_force(angle: float, stiffness: float) -> float:
    """Return the holding force of the boom by virtual work, in N."""

    def lengths(q: np.ndarray) -> np.ndarray:
        return np.array([np.sqrt(np.sum((_turned(EYE, q[0]) - np.array(FOOT)) ** 2))])

    def energy(q: np.ndarray) -> complex:
        (L,) = lengths(q)
        along = (_turned(EYE, q[0]) - np.array(FOOT)) / L
        height = BOOM[0] * _turned(BOOM[1], q[0])[1] + _cylinder_weight(np.array(FOOT), along, L)
        return complex(G * height + stiffness * L**2 / 2)

    return float(_forces(energy, lengths, np.array([angle]))[0])


def excavator(stiffness: tuple[float, float] = (0.0, 0.0)) -> Mechanism:
    """Return boom and stick with a damped cylinder each, their forces the inputs; with springs of these stiffnesses."""
    bodies = [*_arm("boom", BOOM, 4000.0), *_arm("stick", STICK, 1200.0), *_cylinder("boom_"), *_cylinder("stick_")]
    pins = [
        Joint("boom_pin", "revolute", "ground", "boom", position=0.5, damping=200.0),
        Joint("stick_pin", "revolute", "boom", "stick", Placement((*STICK_PIN, 0)), position=-1.6, damping=200.0),
    ]
    joints = [
        *pins,
        *_cylinder_joints("boom_", "ground", FOOT, 1.0, 2.2, stiffness[0]),
        *_cylinder_joints("stick_", "boom", STICK_FOOT, 0.0, 2.8, stiffness[1]),
    ]
    description = MechanismDescription(
        "excavator",
        bodies,
        joints,
        [_eye("boom_eye", "boom", "boom_rod", EYE), _eye("stick_eye", "stick", "stick_rod", STICK_EYE)],
        inputs=[JointForce("boom_force", "boom_cyl"), JointForce("stick_force", "stick_cyl")],
        gravity=(0, -G, 0),
        independent=["boom_pin.q", "stick_pin.q"],
    )
    return Mechanism(assemble(description).description)


def excavator_forces(boom: float, stick: float, stiffness: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """Return the holding forces of both cylinders by virtual work, in N, shape (2,)."""

    def ends(q: np.ndarray) -> tuple[np.ndarray, ...]:
        pin = _turned(STICK_PIN, q[0])
        return (
            np.array(FOOT, dtype=complex),
            _turned(EYE, q[0]),
            _turned(STICK_FOOT, q[0]),
            pin + _turned(STICK_EYE, q[0] + q[1]),
        )

    def lengths(q: np.ndarray) -> np.ndarray:
        a, b, c, d = ends(q)
        return np.array([np.sqrt(np.sum((b - a) ** 2)), np.sqrt(np.sum((d - c) ** 2))])

    def energy(q: np.ndarray) -> complex:
        a, b, c, d = ends(q)
        first, second = lengths(q)
        height = BOOM[0] * _turned(BOOM[1], q[0])[1]
        height += STICK[0] * (_turned(STICK_PIN, q[0]) + _turned(STICK[1], q[0] + q[1]))[1]
        height += _cylinder_weight(a, (b - a) / first, first) + _cylinder_weight(c, (d - c) / second, second)
        return complex(G * height + (stiffness[0] * first**2 + stiffness[1] * second**2) / 2)

    return _forces(energy, lengths, np.array([boom, stick]))


def _forces(
    energy: Callable[[np.ndarray], complex], lengths: Callable[[np.ndarray], np.ndarray], q: np.ndarray
) -> np.ndarray:
    """Solve dV/dq = (dL/dq)' F, the derivatives by complex steps: exact to rounding."""
    steps = 1e-30j * np.eye(len(q))
    dV = np.array([energy(q + s).imag / 1e-30 for s in steps])
    dL = np.array([lengths(q + s).imag / 1e-30 for s in steps])
    found: np.ndarray = np.linalg.solve(dL, dV)
    return found


def _turned(point: tuple[float, float], angle: complex) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * point[0] - s * point[1], s * point[0] + c * point[1]])


def _cylinder_weight(foot: np.ndarray, along: np.ndarray, length: complex) -> complex:
    """Return mass times height of barrel and rod."""
    return complex(BARREL[0] * (foot + BARREL[1] * along)[1] + ROD[0] * (foot + (length + ROD[1]) * along)[1])


def _arm(name: str, part: tuple[float, tuple[float, float]], inertia: float) -> list[Body]:
    mass, center = part
    return [Body(name, mass, (*center, 0), (100, inertia, inertia))]


def _cylinder(prefix: str) -> list[Body]:
    return [
        Body(f"{prefix}barrel", BARREL[0], (BARREL[1], 0, 0), (1, 15, 15)),
        Body(f"{prefix}rod", ROD[0], (ROD[1], 0, 0), (0.5, 8, 8)),
    ]


def _cylinder_joints(
    prefix: str, parent: str, foot: tuple[float, float], angle: float, length: float, stiffness: float = 0.0
) -> list[Joint]:
    return [
        Joint(f"{prefix}cyl_pin", "revolute", parent, f"{prefix}barrel", Placement((*foot, 0)), position=angle),
        Joint(
            f"{prefix}cyl", "prismatic", f"{prefix}barrel", f"{prefix}rod", axis=(1, 0, 0), position=length,
            damping=5e4, stiffness=stiffness,
        ),
    ]  # fmt: skip


def _eye(name: str, first: str, second: str, place: tuple[float, float]) -> Loop:
    return Loop(name, "revolute", first, second, Placement((*place, 0)))
