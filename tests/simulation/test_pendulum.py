"""The Cartesian pendulum against its solution in elliptic functions, swinging and turning over."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import fmilin as fl
from fmilin.signals import FloatArray
from fmilin.simulation import Baumgarte, LocalForm, Method, Projection, Stabilization, Underlying
from fmilin.systems import cartesian_pendulum
from tests.by_hand import pendulum

G = 9.81

STABILIZATIONS = [Projection(), LocalForm(), LocalForm(coordinates="tangent"), Baumgarte(), Underlying()]


def swing(amplitude: float, times: FloatArray) -> FloatArray:
    """Angle of a pendulum of 1 m that is let go at ``amplitude``: sin(theta/2) = k sn(K - w t)."""
    k = np.sin(amplitude / 2)
    theta: FloatArray = 2 * np.arcsin(k * ellipj(ellipk(k**2) - np.sqrt(G) * times, k**2)[0])
    return theta


def turn(rate: float, times: FloatArray) -> FloatArray:
    """Angle of a pendulum of 1 m that passes the lowest point at ``rate``, fast enough to turn over: 2 am(rate t/2)."""
    return 2 * np.array([ellipj(rate * t / 2, 4 * G / rate**2)[3] for t in times])


@pytest.mark.parametrize("stabilization", STABILIZATIONS, ids=lambda f: repr(f).partition("(")[0])
def test_swinging_as_the_elliptic_function_says(stabilization: Stabilization) -> None:
    motion = fl.simulate(cartesian_pendulum(angle=2.0), stop_time=4.0, step=0.1, stabilization=stabilization)
    np.testing.assert_allclose(motion["angle"], swing(2.0, motion.times), rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", ["RK45", "RK23", "Radau", "BDF"])
def test_every_method_finds_the_same_motion(name: str) -> None:
    method = Method(name, relative=1e-6, absolute=1e-8)
    for stabilization in ("projection", "local"):
        motion = fl.simulate(
            cartesian_pendulum(angle=2.0), stop_time=2.0, step=0.1, method=method, stabilization=stabilization
        )
        np.testing.assert_allclose(motion["angle"], swing(2.0, motion.times), rtol=0, atol=2e-4)
        assert motion.largest_drift < 1e-12
        assert motion.method == name


def test_period_is_the_complete_elliptic_integral() -> None:
    period = 4 / np.sqrt(G) * ellipk(np.sin(1.0) ** 2)
    motion = fl.simulate(cartesian_pendulum(angle=2.0), stop_time=period, step=period / 4)
    np.testing.assert_allclose(motion["angle"], [2.0, 0.0, -2.0, 0.0, 2.0], atol=1e-7)


def test_local_form_switches_coordinates_over_a_full_turn() -> None:
    """With x alone nothing would pass the two points where y = 0: there the dependent coordinate is the other one."""
    rate = 7.0
    model = cartesian_pendulum(angle=0.0, rate=rate)
    motion = fl.simulate(model, stop_time=3.0, step=0.02, stabilization=LocalForm())
    expected = turn(rate, motion.times)
    assert expected[-1] > 4 * np.pi
    np.testing.assert_allclose(motion["x"], np.sin(expected), atol=1e-6)
    np.testing.assert_allclose(motion["y"], -np.cos(expected), atol=1e-6)
    assert motion.largest_drift < 1e-13
    kept = [("x", "vx"), *(s.after for s in motion.switches)]
    assert len(kept) > 6
    assert all(before != after for before, after in pairwise(kept))
    assert [s.before for s in motion.switches] == kept[:-1]
    assert all(s.condition_after < 0.5 * s.condition_before for s in motion.switches)
    for switch in motion.switches:  # x is kept near the top and the bottom, y at the sides
        k = int(np.searchsorted(motion.times, switch.time))
        at_the_side = abs(motion["x"][k]) > abs(motion["y"][k])
        assert switch.after == (("y", "vy") if at_the_side else ("x", "vx"))


def test_tangent_coordinates_are_switched_too() -> None:
    motion = fl.simulate(
        cartesian_pendulum(rate=7.0), stop_time=2.0, step=0.05, stabilization=LocalForm(coordinates="tangent")
    )
    np.testing.assert_allclose(motion["x"], np.sin(turn(7.0, motion.times)), atol=1e-7)
    assert len(motion.switches) >= 3


def test_named_coordinates_are_kept_as_long_as_they_are_good() -> None:
    model = cartesian_pendulum(angle=0.9)
    motion = fl.simulate(model, stop_time=1.0, stabilization=LocalForm(independent=["y"], limit=100.0))
    assert motion.switches[0].before == ("y", "vy")
    stays = fl.simulate(cartesian_pendulum(angle=0.5), stop_time=1.0, stabilization=LocalForm(independent=["x"]))
    assert stays.switches == ()


def test_an_expression_as_coordinate_needs_no_switch_at_all() -> None:
    model = cartesian_pendulum(angle=1.0)
    theta = ["theta=atan2(x,-y)", "w=(x*vy-y*vx)/(x^2+y^2)"]
    motion = fl.simulate(model, stop_time=1.0, step=0.1, stabilization=LocalForm(independent=theta))
    np.testing.assert_allclose(motion["angle"], swing(1.0, motion.times), atol=1e-8)
    assert motion.switches == ()
    assert motion.largest_drift < 1e-14


def test_a_force_moves_it_as_in_minimal_coordinates() -> None:
    from scipy.integrate import solve_ivp

    def force(t: float) -> float:
        return float(3 * np.sin(2 * t) + np.exp(-t))

    motion = fl.simulate(pendulum(angle=0.3, length=1.3, mass=2.0), stop_time=3.0, step=0.1, inputs={"F": force})
    oracle = solve_ivp(
        lambda t, s: [s[1], -G / 1.3 * np.sin(s[0]) + force(t) * np.cos(s[0]) / 2.6],
        (0, 3),
        [0.3, 0.0],
        rtol=1e-11,
        atol=1e-12,
        t_eval=motion.times,
    )
    np.testing.assert_allclose(motion["x"], 1.3 * np.sin(oracle.y[0]), atol=1e-7)
    np.testing.assert_allclose(motion["F"], [force(t) for t in motion.times], atol=1e-15)
    np.testing.assert_allclose(motion["ax"], np.gradient(motion["vx"], motion.times)[:], atol=0.2)
