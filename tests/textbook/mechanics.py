"""The textbook"s mechanisms in closed form: masses, pendulums, balls, a spinning body."""

from __future__ import annotations

import math

import numpy as np

from tests.textbook.closed_form import GRAVITY, Textbook, margins_of_second_order

__all__ = [
    "ball_and_beam",
    "ball_at_rest",
    "ball_in_flight",
    "cart_pole",
    "mass_spring_damper",
    "pendulum_hanging",
    "pendulum_upright",
    "quaternion_body",
]


def mass_spring_damper() -> Textbook:
    """m x'' = F - k x - c x'; the acceleration is measured, so that D is not zero."""
    m, k, c, F = 2.0, 8.0, 0.4, 1.6
    x = F / k
    damping = c / (2 * m)
    frequency = math.sqrt(k / m - damping**2)
    return Textbook(
        "mass_spring_damper",
        "Mass, spring and damper",
        {"m": m, "k": k, "c": c},
        {"x": x, "v": 0.0},
        {"F": F},
        {"position": x, "acceleration": 0.0},
        [[0, 1], [-k / m, -c / m]],
        [[0], [1 / m]],
        [[1, 0], [-k / m, -c / m]],
        [[0], [1 / m]],
        [complex(-damping, -frequency), complex(-damping, frequency)],
        trim_guess={"x": 0.0, "v": 0.1},
        margins=margins_of_second_order(16.0 / m, c / m, k / m),
        controller={"kp": 16.0},
    )


def _pendulum(name: str, title: str, angle: float) -> Textbook:
    m, length, c = 1.5, 0.8, 0.3
    stiffness = math.copysign(GRAVITY / length, math.cos(angle))
    friction = c / (m * length**2)
    root = np.sqrt(complex(friction**2 / 4 - stiffness))
    return Textbook(
        name,
        title,
        {"m": m, "l": length, "c": c, "g": GRAVITY},
        {"q": angle, "w": 0.0},
        {"torque": 0.0},
        {"angle": angle, "height": -length * math.cos(angle)},
        [[0, 1], [-stiffness, -friction]],
        [[0], [1 / (m * length**2)]],
        [[1, 0], [0, 0]],
        [[0], [0]],
        [-friction / 2 - root, -friction / 2 + root],
        trim_guess={"q": angle + 0.3, "w": 0.0},
        margins=margins_of_second_order(2 * abs(stiffness), friction, stiffness),
        controller={"kp": 2 * m * GRAVITY * length},
        output_period={"angle": 2 * math.pi},
    )


def pendulum_hanging() -> Textbook:
    """m l^2 q'' = torque - m g l sin q - c q' at q = 0."""
    return _pendulum("pendulum_hanging", "Pendulum, hanging", 0.0)


def pendulum_upright() -> Textbook:
    """The same at q = pi, where an angle by atan2 goes from pi to -pi."""
    return _pendulum("pendulum_upright", "Pendulum, upright", math.pi)


def cart_pole() -> Textbook:
    """A point mass on a rod without mass, upright on a cart: (M + m) x'' + m l (th'' cos th - th'^2 sin th) = F."""
    M, m, length = 1.2, 0.3, 0.5
    pole = math.sqrt((M + m) * GRAVITY / (M * length))
    return Textbook(
        "cart_pole",
        "Cart and pole",
        {"M": M, "m": m, "l": length, "g": GRAVITY},
        {"x": 0.0, "th": 0.0, "v": 0.0, "w": 0.0},
        {"F": 0.0},
        {"x": 0.0, "angle": 0.0},
        [
            [0, 0, 1, 0],
            [0, 0, 0, 1],
            [0, -m * GRAVITY / M, 0, 0],
            [0, (M + m) * GRAVITY / (M * length), 0, 0],
        ],
        [[0], [0], [1 / M], [-1 / (M * length)]],
        [[1, 0, 0, 0], [0, 1, 0, 0]],
        [[0], [0]],
        [-pole, 0, 0, pole],
        trim_guess={"th": 0.05},
        undetermined=["x"],
    )


def ball_and_beam() -> Textbook:
    """(7/5) m r'' = m r a'^2 - m g sin a, (J + m r^2) a'' = torque - 2 m r r' a' - m g r cos a."""
    m, J, r = 0.5, 0.2, 0.1
    inertia = J + m * r**2
    double = math.sqrt(5 / 7 * m * GRAVITY**2 / inertia)  # s^4 = (5/7) m g^2 / (J + m r^2)
    root = math.sqrt(double)
    return Textbook(
        "ball_and_beam",
        "Ball and beam",
        {"m": m, "J": J, "g": GRAVITY},
        {"r": r, "a": 0.0, "rv": 0.0, "av": 0.0},
        {"torque": m * GRAVITY * r},
        {"r": r, "a": 0.0},
        [
            [0, 0, 1, 0],
            [0, 0, 0, 1],
            [0, -5 / 7 * GRAVITY, 0, 0],
            [-m * GRAVITY / inertia, 0, 0, 0],
        ],
        [[0], [0], [0], [1 / inertia]],
        [[1, 0, 0, 0], [0, 1, 0, 0]],
        [[0], [0]],
        [-root, complex(0, -root), complex(0, root), root],
        trim_guess={"r": 0.15, "a": 0.05},
    )


def ball_at_rest() -> Textbook:
    """m h'' = F - m g + max(0, -k h): the ball lies on its spring."""
    m, k = 0.5, 200.0
    frequency = math.sqrt(k / m)
    return Textbook(
        "ball_at_rest",
        "Bouncing ball, at rest",
        {"m": m, "k": k, "g": GRAVITY},
        {"h": -m * GRAVITY / k, "v": 0.0},
        {"F": 0.0},
        {"height": -m * GRAVITY / k},
        [[0, 1], [-k / m, 0]],
        [[0], [1 / m]],
        [[1, 0]],
        [[0]],
        [complex(0, -frequency), complex(0, frequency)],
        trim_guess={"h": -0.01},
    )


def ball_in_flight() -> Textbook:
    """The same above the ground, rising: h = 1, v = 2."""
    m = 0.5
    return Textbook(
        "ball_in_flight",
        "Bouncing ball, in flight",
        {"m": m, "k": 200.0, "g": GRAVITY},
        {"h": 1.0, "v": 2.0},
        {"F": 0.0},
        {"height": 1.0},
        [[0, 1], [0, 0]],
        [[0], [1 / m]],
        [[1, 0]],
        [[0]],
        [0, 0],
        is_equilibrium=False,
    )


def quaternion_body() -> Textbook:
    """A free body that spins about its axis z: Euler's equations, its attitude a unit quaternion, (1, 0, 0, 0) now."""
    Ix, Iy, Iz, spin = 0.2, 0.3, 0.4, 5.0
    wobble = spin * math.sqrt((Iz - Iy) * (Iz - Ix) / (Ix * Iy))
    A = np.zeros((6, 6))
    A[:3, 3:] = np.eye(3) / 2
    A[0, 1], A[1, 0] = spin / 2, -spin / 2
    A[3, 4], A[4, 3] = (Iy - Iz) / Ix * spin, (Iz - Ix) / Iy * spin
    return Textbook(
        "quaternion_body",
        "Quaternion body",
        {"Ix": Ix, "Iy": Iy, "Iz": Iz},
        {"e1": 0.0, "e2": 0.0, "e3": 0.0, "wx": 0.0, "wy": 0.0, "wz": spin},
        {"Mx": 0.0, "My": 0.0, "Mz": 0.0},
        {"rate_x": 0.0, "rate_z": spin},
        A.tolist(),
        np.vstack((np.zeros((3, 3)), np.diag([1 / Ix, 1 / Iy, 1 / Iz]))).tolist(),
        [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1]],
        np.zeros((2, 3)).tolist(),
        [0, 0, complex(0, spin / 2), complex(0, -spin / 2), complex(0, wobble), complex(0, -wobble)],
        is_equilibrium=False,
    )
