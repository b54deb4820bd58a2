"""Modes put where they are wanted, against closed forms and linear models made anew."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.design import ModeGoal, place_modes
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.models import OdeModel
from fmilin.systems import bicycle
from tests.composition.plants import oscillator

WEAVE = -0.378 + 3.873j


def test_the_damping_of_an_oscillator() -> None:
    """d = 2 zeta sqrt(c m) along the one parameter; nothing changes that need not."""
    placed = place_modes(oscillator(2.0, 3.0, 0.5), {"d": (0.0, 5.0)}, ModeGoal(damping=0.3))
    assert placed.parameters["d"] == pytest.approx(0.6 * np.sqrt(6.0), rel=1e-6)
    assert placed.modes[0][0] == pytest.approx(-0.125 + np.sqrt(1.5 - 0.125**2) * 1j)
    assert "d = 1.46969 (was 0.5)" in str(placed)
    met = place_modes(oscillator(2.0, 3.0, 0.5), {"d": (0.0, 5.0)}, ModeGoal(damping=0.1))
    assert met.parameters["d"] == pytest.approx(0.5, rel=1e-12)


def test_the_least_change_of_two_parameters() -> None:
    """Frequency sqrt(c/m) = 2 with the least change in sizes of the ranges: c - 3 and m - 2 by Lagrange's rule."""
    placed = place_modes(oscillator(2.0, 3.0, 0.5), {"c": (1.0, 9.0), "m": (0.5, 4.5)}, ModeGoal(frequency=(2.0, 9.0)))
    # min ((c - 3)/4)^2 + ((m - 2)/2)^2 on c = 4 m: (4 m - 3)/4 + (m - 2)/4 = 0
    assert placed.parameters["m"] == pytest.approx(1.0, rel=1e-5)
    assert placed.parameters["c"] == pytest.approx(4.0, rel=1e-5)


def test_decay_through_the_point_where_a_pair_becomes_two() -> None:
    """Beyond d = 2 sqrt(c m) the slower of two real eigenvalues decays less: the best is there, sqrt(c/m)."""
    model = oscillator(1.0, 4.0, 0.4)
    placed = place_modes(model, {"d": (0.1, 3.9)}, ModeGoal(decay=1.5))
    assert placed.parameters["d"] == pytest.approx(3.0, rel=1e-6)
    with pytest.raises(NumericalError, match=r"The closest is decay 1\.95 with d = 3\.9 \(the end of its range\)"):
        place_modes(model, {"d": (0.1, 3.9)}, ModeGoal(decay=2.5))


def test_a_trimmed_point_follows() -> None:
    """On q'' = F/(m L) - g/L sin(q) with sin(q) = F/(m g) the frequency is (g/L)^1/2 (1 - (F/(m g))^2)^1/4."""
    swing = OdeModel(
        "swing",
        {"q": "w", "w": "-g/L*sin(q) - d*w + F/(m*L)"},
        inputs=["F"],
        parameters={"m": 2.0, "L": 3.0, "g": 9.81, "d": 0.1},
        start={"q": 0.3},
    )
    point = fl.trim(swing, fixed={"F": 12.0})
    placed = place_modes(swing, {"m": (1.5, 9.0)}, ModeGoal(frequency=(1.7, 3.0)), point)
    share = 12.0 / (placed.parameters["m"] * 9.81)
    assert np.sqrt(9.81 / 3.0) * (1 - share**2) ** 0.25 == pytest.approx(1.7, rel=1e-6)


def test_the_weave_of_the_bicycle() -> None:
    """Damping of at least 0.12 by moving the rider's mass, checked by a linear model of another bicycle."""
    model = bicycle()
    placed = place_modes(model, {"x_B": (0.1, 0.6)}, ModeGoal(near=WEAVE, damping=0.12))
    anew = fl.linearize(model.with_parameters(placed.parameters)).eigenvalues()
    weave = anew[np.argmin(np.abs(anew - placed.modes[0][1]))]
    assert -weave.real / abs(weave) == pytest.approx(0.12, abs=1e-6)
    before = fl.linearize(model).eigenvalues()
    assert np.abs(before - placed.modes[0][0]).min() < 1e-9


def test_modes_are_followed_where_they_cross() -> None:
    """The mode of 1 rad/s is asked to be at 5 rad/s, beyond the other one at 3 rad/s, which has more damping."""
    model = OdeModel(
        "two",
        {"a": "va", "va": "-k*a - 0.02*va", "b": "vb", "vb": "-9*b - 0.6*vb"},
        parameters={"k": 1.0},
    )
    placed = place_modes(model, {"k": (0.5, 40.0)}, ModeGoal(near=1j, frequency=(5.0, 6.0)))
    assert placed.parameters["k"] == pytest.approx(25.0, rel=1e-5)
    assert placed.modes[0][1].real == pytest.approx(-0.01, rel=1e-6)


def test_goals_that_are_none() -> None:
    model = oscillator()
    with pytest.raises(UsageError, match="A goal has no number"):
        ModeGoal(near=1j)
    with pytest.raises(UsageError, match="No goal"):
        place_modes(model, {"d": (0.0, 1.0)}, [])
    with pytest.raises(UsageError, match="The range of 'd' is"):
        place_modes(model, {"d": (1.0, 0.0)}, ModeGoal(damping=0.1))
    with pytest.raises(UnknownNameError, match="Did you mean 'd'"):
        place_modes(model, {"dd": (0.0, 1.0)}, ModeGoal(damping=0.1))
    free = OdeModel("free", {"s": "v", "v": "-d*v"}, parameters={"d": 1.0})
    with pytest.raises(UsageError, match="An eigenvalue is zero"):
        place_modes(free, {"d": (0.1, 0.6)}, ModeGoal(decay=0.05))


def test_nothing_is_told_as_minus_nothing() -> None:
    model = OdeModel("oscillator", {"x": "v", "v": "-k*x - c*v"}, parameters={"k": 4.0, "c": 0.0})
    with pytest.raises(NumericalError, match=r"The closest is damping 0 with k = "):
        fl.design.place_modes(model, {"k": (1.0, 9.0)}, fl.design.ModeGoal(near=2j, damping=0.1))
