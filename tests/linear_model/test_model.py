"""Eigenvalues and modes of linear models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

import fmilin as fl
from fmilin.systems import cartesian_pendulum, four_bar
from tests.hand_made import pendulum, sized


def test_eigenvalues_are_sorted_by_real_then_imaginary_part() -> None:
    linear = replace(sized(4, 0, 0, 0), A=np.array([[0, 1, 0, 0], [-4.0, 0, 0, 0], [0, 0, -1, 3], [0, 0, -3, -1]]))
    assert np.allclose(linear.eigenvalues(), [-1 - 3j, -1 + 3j, -2j, 2j], atol=1e-15)
    assert sized(0, 3, 1, 1).eigenvalues().shape == (0,)


def test_a_swinging_mode_has_frequency_damping_and_shape() -> None:
    damped = replace(pendulum(), A=np.array([[0.0, 1.0], [-25.0, -6.0]]))
    (mode,) = damped.modes()
    assert mode.is_oscillatory
    assert mode.eigenvalue == pytest.approx(-3 + 4j)
    assert mode.frequency == pytest.approx(5.0)
    assert mode.frequency_in_hertz == pytest.approx(5.0 / (2 * np.pi))
    assert mode.damping_ratio == pytest.approx(0.6)
    # x, y, vx, vy: y and vy rest, vx = lambda x.
    assert np.allclose(mode.shape, np.array([1.0, 0.0, -3 + 4j, 0.0]) / (-3 + 4j))


def test_modes_solve_the_equation_of_motion_in_all_states() -> None:
    linear = sized(5, 3, 0, 0)
    for mode in linear.modes():
        y = np.linalg.lstsq(linear.T, mode.shape, rcond=None)[0]
        assert np.allclose(linear.T @ expm(0.3 * linear.A) @ y, mode.shape * np.exp(0.3 * mode.eigenvalue))
        assert np.abs(mode.shape).max() == pytest.approx(1.0)


def test_each_pair_is_one_mode_and_the_slowest_comes_first() -> None:
    linear = replace(sized(3, 0, 0, 0), A=np.array([[-7.0, 0, 0], [0, 0, 2.0], [0, -2.0, 0]]))
    assert [m.frequency for m in linear.modes()] == pytest.approx([2.0, 7.0])
    assert [m.is_oscillatory for m in linear.modes()] == [True, False]
    assert [m.damping_ratio for m in linear.modes()] == pytest.approx([0.0, 1.0])


def test_growth_has_negative_damping_and_zero_has_none() -> None:
    linear = replace(sized(2, 0, 0, 0), A=np.diag([0.0, 3.0]))
    zero, growing = linear.modes()
    assert np.isnan(zero.damping_ratio)
    assert growing.damping_ratio == -1.0


def test_modes_of_a_sampled_model_are_those_of_the_motion() -> None:
    A = np.array([[0.0, 1.0], [-25.0, -6.0]])
    sampled = replace(pendulum(), A=expm(0.1 * A), sample_time=0.1)
    assert sampled.modes()[0].eigenvalue == pytest.approx(-3 + 4j)
    dead_beat = replace(sized(1, 0, 0, 0), A=np.zeros((1, 1)), sample_time=1.0)
    assert dead_beat.modes()[0].eigenvalue.real == -np.inf


def test_no_states_no_modes() -> None:
    assert sized(0, 2, 1, 1).modes() == ()


def test_values_at_the_point_are_named_apart_from_coordinates() -> None:
    model = fl.connect(
        {"bar": four_bar(), "arm": cartesian_pendulum()}, [], inputs=["bar.torque"], outputs=["arm.y", "bar.phi"]
    )
    point = fl.operating_point(model, {"bar.phi": 2.0, "bar.torque": 0.5})
    linear = fl.linearize(model, point)
    assert linear.g0.tolist() == pytest.approx([-1.0, 2.0])
    assert linear.u0.tolist() == [0.5]
    shown = repr(point)
    assert "bar.phi" in shown
    assert "bar.torque" in shown
    assert "x[0]" not in shown
    assert "x[0]" in repr(fl.OperatingPoint(0.0, point.states, point.inputs))
