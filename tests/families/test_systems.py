"""Families of plants whose linear models are known at every point, or bound by a theorem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import fmilin as fl
from benchmarks.leg_robot import leg_robot
from fmilin.models.mechanism import Body, Joint, Mechanism, Placement, Sensor
from fmilin.signals import FloatArray
from fmilin.systems import furuta_pendulum, rolling_disk

G, J, R, L, M, C = 9.81, 2e-3, 0.2, 0.3, 0.1, 1e-3
"""Gravity, the arm's moment of inertia and length, the pendulum's length and mass, the motor's damping."""


def loaded_pendulum() -> Mechanism:
    """Return the upright Furuta pendulum with a payload at its tip; its mass is the parameter ``payload.mass``."""
    plain = furuta_pendulum().description
    payload = Body("payload", 0.05, (0, 0, 0), (0, 0, 0))
    weld = Joint("tip", "fixed", "pendulum", "payload", Placement((0, 0, -L)))
    return Mechanism(replace(plain, bodies=(*plain.bodies, payload), joints=(*plain.joints, weld)))


def linear_pendulum(payload: float) -> tuple[FloatArray, FloatArray]:
    """Return A and B of the upright pendulum in (arm, pendulum, their speeds), by hand; see ``furuta_pendulum``."""
    static = M * L / 2 + payload * L
    mass = np.array([[J + (M + payload) * R**2, -R * static], [-R * static, M * L**2 / 3 + payload * L**2]])
    A, B = np.zeros((4, 4)), np.zeros((4, 1))
    A[:2, 2:] = np.eye(2)
    A[2:, 1] = np.linalg.solve(mass, [0.0, G * static])
    A[2:, 2] = np.linalg.solve(mass, [-C, 0.0])
    B[2:, 0] = np.linalg.solve(mass, [1.0, 0.0])
    return A, B


def test_a_loaded_furuta_pendulum_over_its_payload() -> None:
    payloads = np.linspace(0.01, 2.0, 50)
    family = fl.sweep(loaded_pendulum(), {"payload.mass": payloads}, trim=fl.TrimRequest())
    assert family.ok.all(), family.reasons
    assert family.states.names == ("arm.q", "pendulum.q", "arm.v", "pendulum.v")
    for payload, found_A, found_B in zip(payloads, family.A, family.B, strict=True):
        A, B = linear_pendulum(payload)
        np.testing.assert_allclose(found_A, A, rtol=1e-9, atol=1e-9 * np.abs(A).max())
        np.testing.assert_allclose(found_B, B, rtol=1e-9, atol=1e-9 * np.abs(B).max())


def test_steady_turns_of_a_disk_over_lean_and_rate() -> None:
    """The spin is solved for, on the whole grid; the pair of eigenvalues is that of the closed form."""
    leans, turns = np.linspace(0.15, 0.7, 5), np.linspace(0.35, 0.8, 8)  # u3 = q1' cos q2
    family = fl.sweep(
        rolling_disk(2.0, lean=0.3),
        {"q2": leans, "u3": turns},
        trim=fl.TrimRequest(steady=["q1", "q3", "q4", "q5"]),
        settings={"u1": 0.0, "q1": 0.0, "q3": 0.0, "q4": 0.0, "q5": 0.0},
    )
    assert family.ok.all(), family.reasons
    column = family.full_states.names.index
    for i, lean in enumerate(leans):
        for j, turn in enumerate(turns):
            rate = turn / np.cos(lean)
            spin = -(np.sin(lean) + 1.25 * np.cos(lean) * np.sin(lean) * rate**2) / (1.5 * np.cos(lean) * rate)
            np.testing.assert_allclose(family.x0[i, j, column("u2")], spin + np.sin(lean) * rate, rtol=1e-9)
            np.testing.assert_allclose(family.x0[i, j, column("u1")], 0.0, atol=1e-9)
            square = 0.8 * np.cos(lean) - rate**2 - 2.8 * np.sin(lean) * rate * spin - 2.4 * spin**2
            w = family.eigenvalues[i, j]
            np.testing.assert_allclose(w[np.argmax(np.abs(w))] ** 2, square, rtol=1e-6)


def test_a_robot_on_closed_legs_falls_and_its_torques_move_no_center_of_mass() -> None:
    plain = leg_robot().description
    axes = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
    sensors = [
        Sensor(f"{body.name}.{name}", "position", body.name, point=body.center, axis=axis)
        for body in plain.bodies
        for name, axis in axes.items()
    ]
    masses = np.array([body.mass or 0.0 for body in plain.bodies])
    center = np.kron(masses / masses.sum(), np.eye(3))
    postures = {"left_thigh_pin.q": np.array([-0.7, -0.5]), "right_shin_pin.q": np.linspace(0.9, 1.3, 4)}
    family = fl.sweep(Mechanism(replace(plain, sensors=tuple(sensors))), postures)
    assert family.ok.all(), family.reasons
    assert family.A.shape == (2, 4, 40, 40)
    for linear in family:
        pushed = linear.C @ linear.A @ linear.B
        assert np.abs(pushed).max() > 1.0
        np.testing.assert_allclose(center @ pushed, 0.0, atol=1e-13 * np.abs(pushed).max())
        fall = (linear.C @ linear.A @ linear.f0).reshape(-1, 3)
        np.testing.assert_allclose(fall, np.tile([0.0, 0.0, -G], (len(fall), 1)), atol=1e-11)
