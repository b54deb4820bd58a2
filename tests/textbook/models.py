"""The models of the textbook gate: numbers of each, and its linear model in closed form.

A row of the table is a model at a point. Its states, inputs and outputs have the names of the textbook; a source that
has other coordinates says how they are related (:class:`tests.textbook.sources.Coordinate`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["MODELS", "MarginsInClosedForm", "Textbook"]

GRAVITY = 9.81


@dataclass(frozen=True)
class MarginsInClosedForm:
    """Margins of the loop that is closed around a model by one controller."""

    gain: tuple[float, float]  #: factors between which the closed loop is stable
    phase: float | None = None  #: in degrees; None where the textbook states none


@dataclass(frozen=True)
class Textbook:
    """A model at a point, in closed form."""

    name: str
    title: str
    parameters: Mapping[str, float]
    states: Mapping[str, float]  #: independent ones, with their values at the point
    inputs: Mapping[str, float]
    outputs: Mapping[str, float]
    A: Sequence[Sequence[float]]
    B: Sequence[Sequence[float]]
    C: Sequence[Sequence[float]]
    D: Sequence[Sequence[float]]
    eigenvalues: Sequence[complex]
    trim_guess: Mapping[str, float] = field(default_factory=dict)  #: a trim from there ends at the point
    output_period: Mapping[str, float] = field(default_factory=dict)  #: outputs that are angles: one turn
    margins: MarginsInClosedForm | None = None
    controller: Mapping[str, float] = field(default_factory=dict)  #: gains, and the sample time if it is sampled
    input_moves_nothing: bool = False  #: B = 0 on a whole interval: fmilin returns that with keep_inaccurate only

    @property
    def matrices(self) -> dict[str, np.ndarray[Any, Any]]:
        """A, B, C, D with their shapes, also where a model has no inputs."""
        sizes = {"A": (len(self.states), len(self.states)), "B": (len(self.states), len(self.inputs))}
        sizes |= {"C": (len(self.outputs), len(self.states)), "D": (len(self.outputs), len(self.inputs))}
        return {name: np.array(getattr(self, name), dtype=float).reshape(size) for name, size in sizes.items()}


def rl_circuit() -> Textbook:
    """L i' = v - R i; the voltage of the coil is v - R i."""
    R, L, v = 2.0, 0.5, 3.0
    i = v / R
    return Textbook(
        "rl_circuit",
        "RL circuit",
        {"R": R, "L": L},
        {"i": i},
        {"v": v},
        {"current": i, "coil": 0.0},
        [[-R / L]],
        [[1 / L]],
        [[1.0], [-R]],
        [[0.0], [1.0]],
        [-R / L],
        trim_guess={"i": 0.0},
    )


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
        output_period={"angle": 2 * math.pi},
    )


def pendulum_hanging() -> Textbook:
    """m l^2 q'' = torque - m g l sin q - c q' at q = 0."""
    return _pendulum("pendulum_hanging", "Pendulum, hanging", 0.0)


def pendulum_upright() -> Textbook:
    """The same at q = pi, where an angle by atan2 goes from pi to -pi."""
    return _pendulum("pendulum_upright", "Pendulum, upright", math.pi)


def input_with_default() -> Textbook:
    """h' = 1 - u h, where the input u has the default 2."""
    u = 2.0
    h = 1 / u
    return Textbook(
        "input_with_default",
        "Input with a default",
        {},
        {"h": h},
        {"u": u},
        {"discharge": 1.0},
        [[-u]],
        [[-h]],
        [[u]],
        [[h]],
        [-u],
        trim_guess={"h": 2.0},
    )


def output_that_is_a_state() -> Textbook:
    """A first-order lag T y' = k u - y with the output y, which is the state."""
    T, k, u = 0.25, 3.0, 0.5
    return Textbook(
        "output_that_is_a_state",
        "Output that is a state",
        {"T": T, "k": k},
        {"y": k * u},
        {"u": u},
        {"y": k * u},
        [[-1 / T]],
        [[k / T]],
        [[1.0]],
        [[0.0]],
        [-1 / T],
        trim_guess={"y": 0.0},
    )


def zero_parameter() -> Textbook:
    """A DC motor with the inductance L = 0: U = R i + K w + L i', J w' = K i. The current is no state."""
    R, K, J, L, U = 2.0, 0.1, 0.004, 0.0, 1.0
    return Textbook(
        "zero_parameter",
        "Zero parameter",
        {"R": R, "K": K, "J": J, "L": L},
        {"w": U / K},
        {"U": U},
        {"speed": U / K, "current": 0.0},
        [[-(K**2) / (R * J)]],
        [[K / (R * J)]],
        [[1.0], [-K / R]],
        [[0.0], [1 / R]],
        [-(K**2) / (R * J)],
        trim_guess={"w": 0.0},
    )


def two_tanks() -> Textbook:
    """A h1' = q - k sqrt(h1 - h2), A h2' = k sqrt(h1 - h2) - k sqrt(h2)."""
    area, k, q = 2.0, 0.5, 0.6
    level = (q / k) ** 2
    s = k**2 / (2 * q * area)  # slope of k sqrt(h) at k sqrt(h) = q, over the area
    return Textbook(
        "two_tanks",
        "Two tanks",
        {"area": area, "k": k},
        {"h1": 2 * level, "h2": level},
        {"q": q},
        {"outflow": q},
        [[-s, s], [s, -2 * s]],
        [[1 / area], [0]],
        [[0, s * area]],
        [[0]],
        [-s * (3 + math.sqrt(5)) / 2, -s * (3 - math.sqrt(5)) / 2],
        trim_guess={"h1": 2.5, "h2": 1.0},
    )


def dc_motor() -> Textbook:
    """A position servo: phi' = w, J w' = K i - b w, L i' = U - R i - K w, and U = kp (reference - phi).

    1 + kp K/(s ((J s + b)(L s + R) + K^2)) has roots on the imaginary axis where kp K J L = (J R + b L)(b R + K^2), by
    Routh.
    """
    J, L, R, b, K = 0.01, 0.5, 1.0, 0.1, 0.1
    trace, product = R / L + b / J, (b * R + K**2) / (J * L)
    root = np.sqrt(complex(trace**2 / 4 - product))
    kp = 2.0
    limit = trace * product * J * L / K
    return Textbook(
        "dc_motor",
        "DC motor, position loop",
        {"J": J, "L": L, "R": R, "b": b, "K": K},
        {"phi": 0.0, "w": 0.0, "i": 0.0},
        {"U": 0.0},
        {"phi": 0.0},
        [[0, 1, 0], [0, -b / J, K / J], [0, -K / L, -R / L]],
        [[0], [0], [1 / L]],
        [[1, 0, 0]],
        [[0]],
        [0, -trace / 2 - root, -trace / 2 + root],
        margins=MarginsInClosedForm((0.0, limit / kp), _phase_margin(kp * K / (J * L), trace, product)),
        controller={"kp": kp},
    )


def _phase_margin(gain: float, trace: float, product: float) -> float:
    """Return the phase margin of gain/(s (s^2 + trace s + product)): a cubic equation in the squared frequency."""
    squares = np.roots([1.0, trace**2 - 2 * product, product**2, -(gain**2)])
    frequencies = [math.sqrt(s.real) for s in squares if abs(s.imag) < 1e-9 and s.real > 0]
    (w,) = frequencies
    return math.degrees(math.pi / 2 - math.atan2(trace * w, product - w**2))


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
    )


def _saturated(name: str, title: str, u: float, slope: float) -> Textbook:
    return Textbook(
        name,
        title,
        {},
        {"x": 0.0},
        {"u": u},
        {"y": 0.0},
        [[0.0]],
        [[slope]],
        [[2.0]],
        [[0.0]],
        [0],
        input_moves_nothing=slope == 0,
    )


def saturated_integrator_inside() -> Textbook:
    """x' = the nearest of -1..1 to u, y = 2 x; u = 0.5 is inside."""
    return _saturated("saturated_integrator_inside", "Saturated integrator, inside", 0.5, 1.0)


def saturated_integrator_outside() -> Textbook:
    """The same with u = 2, where the input moves nothing."""
    return _saturated("saturated_integrator_outside", "Saturated integrator, outside", 2.0, 0.0)


def sampled_pi_loop() -> Textbook:
    """x' = -a x + b u, and every Ts seconds e = r - x, u = kp e + ki s, s := s + Ts e.

    With f = exp(-a Ts) and h = b (1 - f)/a the loop is h (kp (z - 1) + ki Ts)/((z - 1)(z - f)). By Jury's test a factor
    is bounded by the crossing at z = -1: 2 (1 + f)/(h (2 kp - ki Ts)).
    """
    a, b, kp, ki, Ts = 1.0, 2.0, 0.8, 0.5, 0.2
    f = math.exp(-a * Ts)
    h = b * (1 - f) / a
    trace, product = f - h * kp + 1, f - h * kp + h * ki * Ts
    root = np.sqrt(complex(trace**2 / 4 - product))
    return Textbook(
        "sampled_pi_loop",
        "Sampled PI loop",
        {"a": a, "b": b},
        {"x": 0.0, "s": 0.0},
        {"r": 0.0},
        {"y": 0.0},
        [[f - h * kp, h * ki], [-Ts, 1]],
        [[h * kp], [Ts]],
        [[1, 0]],
        [[0]],
        [trace / 2 - root, trace / 2 + root],
        margins=MarginsInClosedForm((0.0, 2 * (1 + f) / (h * (2 * kp - ki * Ts)))),
        controller={"kp": kp, "ki": ki, "sample_time": Ts},
    )


def capacitor_loop() -> Textbook:
    """L i' = v - R i - u3 and a loop of three capacitors, u1 + u2 = u3: C1 and C2 in series beside C3.

    The charge C1 u1 - C2 u2 between C1 and C2 stays: an eigenvalue is zero.
    """
    R, L, C1, C2, C3, v = 1.0, 0.2, 0.3, 0.6, 0.1, 1.5
    series = C1 * C2 / (C1 + C2)
    total = C3 + series
    root = np.sqrt(complex((R / L) ** 2 / 4 - 1 / (L * total)))
    return Textbook(
        "capacitor_loop",
        "RLC with a loop of capacitors",
        {"R": R, "L": L, "C1": C1, "C2": C2, "C3": C3},
        {"i": 0.0, "u1": v * C2 / (C1 + C2), "u3": v},
        {"v": v},
        {"voltage": v, "middle": v * C1 / (C1 + C2)},
        [[-R / L, 0, -1 / L], [series / (C1 * total), 0, 0], [1 / total, 0, 0]],
        [[1 / L], [0], [0]],
        [[0, 0, 1], [0, -1, 1]],
        [[0], [0]],
        [0, -R / (2 * L) - root, -R / (2 * L) + root],
        trim_guess={"i": 0.2},
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
    )


MODELS = {
    textbook.name: textbook
    for textbook in (
        rl_circuit(),
        mass_spring_damper(),
        pendulum_hanging(),
        pendulum_upright(),
        input_with_default(),
        output_that_is_a_state(),
        zero_parameter(),
        two_tanks(),
        dc_motor(),
        cart_pole(),
        ball_and_beam(),
        ball_at_rest(),
        ball_in_flight(),
        saturated_integrator_inside(),
        saturated_integrator_outside(),
        sampled_pi_loop(),
        capacitor_loop(),
        quaternion_body(),
    )
}
