"""Machines of the field: closed forms, other coordinates, and integrations that share nothing with fmilin."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import fmilin as fl
from fmilin.models import LagrangeModel, OdeModel
from fmilin.signals import FloatArray
from fmilin.simulation import InputTable
from tests.manifold.test_turning import ACROSS, AXIAL, LENGTH, MASS, G, sleeping, top
from tests.models.mechanism.test_markers import benchmark, bicycle
from tests.periodic.spectra import mismatch


@pytest.mark.parametrize("q", [0.3, 1.5, 4.0])
def test_meissners_chart_is_that_of_its_trace(q: float) -> None:
    """x'' + (a + q s(t)) x = 0, s = 1 and -1 for pi/2 each: |trace| < 2 of the product of two rotations (1918)."""
    model = OdeModel("Meissner", {"x": "v", "v": "-(a + q*s)*x"}, parameters={"a": 1.0, "q": q}, inputs=["s"])
    square = InputTable(np.array([0.0, np.pi / 2, np.pi / 2, np.pi]), ("s",), np.array([[1.0], [1.0], [-1.0], [-1.0]]))
    values = [0.2, 0.9, 1.1, 2.0, 3.7, 4.3, 6.1]
    chart = fl.floquet_chart(model, {"a": values}, period=np.pi, inputs=square, points=16)
    for k, a in enumerate(values):
        halves = [expm(np.array([[0.0, 1.0], [-(a + sign * q), 0.0]]) * np.pi / 2) for sign in (1, -1)]
        trace = np.trace(halves[1] @ halves[0])
        assert chart.multipliers[k].sum() == pytest.approx(trace, abs=1e-7)
        assert chart.stable[k] == (abs(trace) < 2), a


def jeffcott(bearings: tuple[float, float], speed: float, poles: float, damping: float = 0.05) -> OdeModel:
    """An unbalanced disk on a shaft with two stiff directions that turn, on bearings of two stiffnesses, m = 1."""
    c, s = f"cos(2*{speed}*time)", f"sin(2*{speed}*time)"
    x = f"-{2 * damping}*vx - {bearings[0]}*x - {poles}*({c}*x + {s}*y) + 0.1*{speed}**2*cos({speed}*time)"
    y = f"-{2 * damping}*vy - {bearings[1]}*y - {poles}*({s}*x - {c}*y) + 0.1*{speed}**2*sin({speed}*time)"
    return OdeModel("Jeffcott", {"x": "vx", "y": "vy", "vx": x, "vy": y})


@pytest.mark.parametrize("speed", [0.7, 1.02])
def test_a_two_pole_shaft_on_equal_bearings_is_constant_for_who_turns_with_it(speed: float) -> None:
    """In turning axes z'' + (2 d + 2 i W) z' + (k - W^2 + 2 i d W) z + p z* = 0: unstable between sqrt(k -+ p)."""
    model = jeffcott((1.0, 1.0), speed, 0.15)
    floquet = fl.linearize_periodic(model, fl.periodic_orbit(model, period=2 * np.pi / speed)).floquet()
    W, d, J = speed, 0.05, np.array([[0.0, -1.0], [1.0, 0.0]])
    K = np.diag([1.15, 0.85]) - W**2 * np.eye(2) + 2 * d * W * J
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-K, -2 * d * np.eye(2) - 2 * W * J]])
    assert mismatch(np.linalg.eigvals(A), floquet.exponents, floquet.period) < 1e-9
    assert floquet.stable == (speed == 0.7)


def test_a_two_pole_shaft_on_unequal_bearings_is_constant_for_nobody() -> None:
    model = jeffcott((1.0, 1.4), 0.9, 0.15)
    orbit = fl.periodic_orbit(model, period=2 * np.pi / 0.9)
    periodic = fl.linearize_periodic(model, orbit)

    def rates(t: float, z: FloatArray) -> FloatArray:
        c, s = np.cos(1.8 * t), np.sin(1.8 * t)
        K = np.diag([1.0, 1.4]) + 0.15 * np.array([[c, s], [s, -c]])
        return np.asarray(np.block([[np.zeros((2, 2)), np.eye(2)], [-K, -0.1 * np.eye(2)]]) @ z.reshape(4, 4)).ravel()

    motion = solve_ivp(rates, (0, orbit.period), np.eye(4).ravel(), method="DOP853", rtol=1e-12, atol=1e-13)
    values = np.log(np.linalg.eigvals(motion.y[:, -1].reshape(4, 4)).astype(complex)) / orbit.period
    assert mismatch(values, periodic.floquet().exponents, orbit.period) < 1e-9
    with pytest.raises(fl.NumericalError, match="The mean over the period is not a valid model"):
        periodic.averaged()


def test_a_shaft_with_a_universal_joint_turns_unevenly_and_keeps_its_energy() -> None:
    """sin b cos a = cos(bend) cos b sin a; w (J1 + J2 r^2)^(1/2) is constant, and a turn takes its mean over w."""
    bend, inertia = 0.6, 2.0
    constraint = f"sin(b)*cos(a) - {np.cos(bend)}*cos(b)*sin(a)"
    model = LagrangeModel(
        "joint", {"a": "wa", "b": "wb"}, [["1", "0"], ["0", str(inertia)]], ["0", "0"], constraints=[constraint],
        start={"wa": 5.0, "wb": 5.0 * np.cos(bend)},
    )  # fmt: skip
    orbit = fl.periodic_orbit(model, turn="a")

    def pace(angle: float) -> float:
        ratio = np.cos(bend) / (1 - np.sin(bend) ** 2 * np.cos(angle + np.pi / 2) ** 2)
        return float(np.sqrt(1 + inertia * ratio**2))

    assert orbit.period == pytest.approx(quad(pace, 0, 2 * np.pi, epsabs=1e-12)[0] / (5.0 * pace(0.0)), rel=1e-9)
    assert orbit.shift == pytest.approx([2 * np.pi, 2 * np.pi, 0, 0])
    assert fl.linearize_periodic(model, orbit).floquet().multipliers == pytest.approx([1.0, 1.0], abs=1e-6)


def test_a_sleeping_top_has_the_exponents_of_its_steady_motion() -> None:
    """Its quaternion closes after two turns, so that exponents are known modulo half the spin: +-6.2165 +- 8.5714 i."""
    model = top((0, 0, 120.0))
    floquet = fl.linearize_periodic(model, fl.periodic_orbit(model, period=4 * np.pi / 120)).floquet()
    steady = np.concatenate((sleeping(120.0), [0.0, 0.0]))
    assert np.sort(np.abs(sleeping(120.0).real)) == pytest.approx([6.2165] * 4, abs=1e-4)
    assert mismatch(steady, floquet.exponents, floquet.period) < 1e-7
    assert not floquet.stable


def test_a_top_that_precesses_has_the_exponents_of_its_steady_motion() -> None:
    """Its axis goes around once while its body turns seven times: after that the quaternion is as it was."""
    tilt, turns = 0.6, 7
    W = np.sqrt(MASS * G * LENGTH / (AXIAL * turns - (ACROSS - AXIAL) * np.cos(tilt)))
    R = Rotation.from_euler("ZXZ", [0.4, tilt, 0.9])
    model = top(W * R.inv().apply([0, 0, 1]) + turns * W * np.array([0, 0, 1]), R)
    axial = turns * W + W * np.cos(tilt)
    frequency = np.hypot(W * np.sin(tilt), AXIAL * axial / ACROSS - 2 * W * np.cos(tilt))
    orbit = fl.periodic_orbit(model, period=2 * np.pi / W)
    assert orbit.closure < 1e-9
    floquet = fl.linearize_periodic(model, orbit, points=128).floquet()
    steady = np.array([1j * frequency, -1j * frequency, 0, 0, 0, 0])
    assert mismatch(steady, floquet.exponents, floquet.period) < 1e-4  # of pairs 1 in Jordan blocks half the digits


def test_a_bicycle_with_an_unbalanced_wheel_is_the_benchmark_up_to_the_square_of_what_is_off() -> None:
    balanced = bicycle(4.6)
    names = ["over.x", "over.y", "over.angle", "roll.q", "steer.q", "rear_hub.q", "front_hub.q", "roll.v", "steer.v"]
    shifts = []
    for off in (0.0, 0.01, 0.02):
        model = balanced.with_parameters({"front.center.x": off})
        orbit = fl.periodic_orbit(model, turn="front_hub.q", steady=["over.x", "rear_hub.q"])
        periodic = fl.linearize_periodic(model, orbit, points=32, independent=[*names, "rear_hub.v"])
        exponents = periodic.floquet().exponents
        turn = 2 * np.pi / orbit.period
        gaps = benchmark(4.6)[:, None] - exponents
        shifts.append(np.abs(gaps - 1j * turn * np.round(gaps.imag / turn)).min(axis=1))
    assert shifts[0].max() < 1e-9
    assert shifts[2] / shifts[1] == pytest.approx([4.0] * 4, rel=0.01)
    assert shifts[1].max() > 1e-3
