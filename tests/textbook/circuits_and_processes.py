"""The textbook"s circuits, motors, tanks, lags and loops in closed form."""

from __future__ import annotations

import math

import numpy as np

from tests.textbook.closed_form import MarginsInClosedForm, Textbook, margins_of_a_lag, margins_of_second_order

__all__ = [
    "capacitor_loop",
    "dc_motor",
    "input_with_default",
    "output_that_is_a_state",
    "rl_circuit",
    "sampled_pi_loop",
    "saturated_integrator_inside",
    "saturated_integrator_outside",
    "two_tanks",
    "zero_parameter",
]


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
        margins=margins_of_a_lag(4.0 / L, R / L),
        controller={"kp": 4.0},
    )


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
        margins=margins_of_a_lag(2.0 * k / T, 1 / T),
        controller={"kp": 2.0},
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
        margins=margins_of_a_lag(2.0 * K / (R * J), K**2 / (R * J)),
        controller={"kp": 2.0},
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
        margins=margins_of_second_order(3.0 * s**2, 3 * s, s**2),
        controller={"kp": 3.0},
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
        trim_guess={"w": 0.1, "i": 0.05},
        undetermined=["phi"],
        margins=MarginsInClosedForm((0.0, limit / kp), _phase_margin(kp * K / (J * L), trace, product)),
        controller={"kp": kp},
    )


def _phase_margin(gain: float, trace: float, product: float) -> float:
    """Return the phase margin of gain/(s (s^2 + trace s + product)): a cubic equation in the squared frequency."""
    squares = np.roots([1.0, trace**2 - 2 * product, product**2, -(gain**2)])
    frequencies = [math.sqrt(s.real) for s in squares if abs(s.imag) < 1e-9 and s.real > 0]
    (w,) = frequencies
    return math.degrees(math.pi / 2 - math.atan2(trace * w, product - w**2))


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
        is_equilibrium=False,
        has_equilibrium=False,
        margins=MarginsInClosedForm((0.0, math.inf), 90.0) if slope else None,
        controller={"kp": 1.5} if slope else {},
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
