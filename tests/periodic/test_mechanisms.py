"""Constrained machines: the same orbit and exponents from a native mechanism, its FMU, and other coordinates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import LagrangeModel, OdeModel
from fmilin.systems import four_bar, slider_crank
from tests.command_line import main
from tests.periodic.spectra import mismatch

SPEED = 100.0


def test_a_crank_slider_at_speed_is_the_same_as_an_fmu(tmp_path: Path) -> None:
    path = tmp_path / "crank.fmu"
    assert main(["build", "fmilin.systems:slider_crank", "-o", str(path)]) == 0
    seen = []
    for model in (slider_crank(), fl.load(path)):
        orbit = fl.periodic_orbit(model, {"phi": 0.3, "w": SPEED}, turn="phi")
        assert orbit.closure < 1e-9
        assert dict(zip(model.states.names, orbit.shift.round(6), strict=True))["rod.q"] == pytest.approx(-2 * np.pi)
        seen.append(fl.linearize_periodic(model, orbit, points=256))
    native, foreign = seen
    assert native.states.names == foreign.states.names == ("phi", "w")
    assert foreign.period == pytest.approx(native.period, rel=1e-10)
    assert np.abs(native.A - foreign.A).max() < 1e-8 * np.abs(native.A).max()
    assert mismatch(native.floquet().exponents, foreign.floquet().exponents, native.period) < 1e-8
    assert native.floquet().multipliers == pytest.approx([1.0, 1.0], abs=1e-8)  # the motion itself, and its energy


def test_the_mean_torque_that_keeps_a_damped_crank_at_speed() -> None:
    """Of all energy that the torque brings in a turn the damper at the crank takes c times the integral of w^2."""
    model = slider_crank().with_parameters({"crank.damping": 0.01})
    period = 2 * np.pi / SPEED
    orbit = fl.periodic_orbit(model, {"w": SPEED}, turn="phi", period=period, fixed={"phi": 0.3}, free=["torque"])
    w = orbit.states()[:-1, model.states.positions["w"]]
    assert orbit.free["torque"] * 2 * np.pi == pytest.approx(0.01 * np.mean(w**2) * period, rel=1e-6)
    floquet = fl.linearize_periodic(model, orbit, points=256).floquet()
    assert floquet.stable
    assert floquet.multipliers[0] == pytest.approx(1.0, abs=1e-9)
    assert abs(floquet.multipliers[1]) < 1


def test_a_pendulum_with_a_moving_pivot_is_the_same_in_cartesian_coordinates() -> None:
    """x'' = l, the pivot at a cos(W t): Lagrange's equations with a constraint that moves, and those of the angle."""
    W, a, g = 9.0, 0.1, 9.81
    minimal = OdeModel("angle", {"q": "w", "w": f"-({g} - {a}*{W}**2*cos({W}*time))*sin(q) - 0.2*w"})
    chart = fl.linearize_periodic(minimal, fl.periodic_orbit(minimal, period=2 * np.pi / W)).floquet()
    # In the frame of the pivot gravity is g - a W^2 cos(W t); the rod is a constraint.
    weight = f"-({g} - {a}*{W}**2*cos({W}*time))"
    model = LagrangeModel(
        "rod", {"x": "vx", "y": "vy"}, [["1", "0"], ["0", "1"]],
        ["-0.2*vx", f"{weight} - 0.2*vy"], constraints=["x**2 + y**2 - 1"], start={"y": -1.0},
    )  # fmt: skip
    cartesian = fl.linearize_periodic(model, fl.periodic_orbit(model, period=2 * np.pi / W))
    assert cartesian.states.names == ("x", "vx")
    assert mismatch(cartesian.floquet().exponents, chart.exponents, 2 * np.pi / W) < 1e-9


def test_a_mechanism_that_does_not_turn_is_refused_in_words() -> None:
    with pytest.raises(fl.NumericalError, match="begins at an equilibrium and stays there"):
        fl.periodic_orbit(four_bar(), turn="phi")
