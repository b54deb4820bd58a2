"""Angles that wrap exactly at the point: they have derivatives there, and what looks like a jump is one turn."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import KinkError
from fmilin.fmi.write import build_fmu
from fmilin.models import FunctionModel, LagrangeModel, OdeModel
from fmilin.signals import FloatArray
from tests.shared import shared

LENGTH, GRAVITY = 0.5, 9.81


def upright(angle: str = "atan2(x, -y)") -> LagrangeModel:
    return LagrangeModel(
        "pendulum", {"x": "vx", "y": "vy"}, [["m", 0], [0, "m"]], ["F", "-m*g"], constraints=["x^2 + y^2 - L^2"],
        inputs=["F"], parameters={"m": 2.0, "g": GRAVITY, "L": LENGTH}, outputs={"angle": angle},
        start={"x": 0.0, "y": LENGTH},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("angle", "slope"),
    [
        ("atan2(x, -y)", -2.0),
        ("2*atan2(x, -y)", -4.0),
        ("atan2(x, -y)*180/pi", -360 / pi),
        ("1 + 3*atan2(-x, -y)", 6.0),
        ("atan2(x, -y) - pi", -2.0),
        ("atan2(x, -y)/(2*pi)", -1 / pi),
        ("0.2*x - atan2(x, -y)/(2*pi)", 0.2 + 1 / pi),
    ],
)
@pytest.mark.parametrize("derivatives", ["auto", "differences"])
def test_an_angle_of_an_upright_pendulum_has_its_slope(angle: str, slope: float, derivatives: str) -> None:
    linear = fl.linearize(upright(angle), derivatives=derivatives)
    assert pytest.approx(np.array([[slope, 0.0]]), rel=1e-8, abs=1e-8) == linear.C
    assert linear.eigenvalues().real == pytest.approx([-np.sqrt(GRAVITY / LENGTH), np.sqrt(GRAVITY / LENGTH)])


@pytest.mark.parametrize("text", ["theta=atan2(x,-y)", "theta=2*atan2(x,-y)", "theta=1-atan2(x,-y)"])
@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-6, -1e-9])
def test_an_angle_is_a_coordinate_of_an_upright_pendulum(text: str, off: float) -> None:
    point = fl.operating_point(upright(), {"x": LENGTH * np.sin(off), "y": LENGTH * np.cos(off)})
    linear = fl.linearize(upright(), point, independent=[text])
    assert linear.eigenvalues().real == pytest.approx([-np.sqrt(19.62), np.sqrt(19.62)], rel=1e-6)


def test_of_an_fmu_as_well() -> None:
    path = shared("upright_pendulum.fmu", lambda path: build_fmu(upright(), path))
    with fl.load(str(path)) as model:
        for derivatives in ("auto", "differences"):
            assert pytest.approx(np.array([[-2.0, 0.0]]), abs=1e-7) == fl.linearize(model, derivatives=derivatives).C


def test_a_heading_in_degrees_that_wraps_in_a_black_box() -> None:
    def rates(_time: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([u[0] - 0.1 * x[0]])

    def course(_time: float, x: FloatArray, _u: FloatArray) -> float:
        return float((np.degrees(x[0]) + 180.0) % 360.0 - 180.0)

    model = FunctionModel("ship", {"heading": pi}, rates, inputs=["rudder"], outputs={"course": course})
    assert fl.linearize(model).C[0, 0] == pytest.approx(180 / pi, rel=1e-6)


def test_other_jumps_stay_jumps() -> None:
    for height in ("6", "2*pi + 0.001", "1", "2"):
        switch = OdeModel("switch", {"x": "-x"}, outputs={"y": f"{height}*abs(x)/(2*x + 1e-300) + x"})
        with pytest.raises(KinkError):
            fl.linearize(switch)


@pytest.mark.parametrize("low", [-0.5, 0.0])
def test_a_switch_that_changes_by_1_is_not_an_angle_in_turns(low: float) -> None:
    def rates(_time: float, x: FloatArray, _u: FloatArray) -> FloatArray:
        return np.array([-x[0]])

    def is_on(_time: float, x: FloatArray, _u: FloatArray) -> float:
        return low + float(x[0] > 0)

    with pytest.raises(KinkError):
        fl.linearize(FunctionModel("relay", {"x": 0.0}, rates, outputs={"on": is_on}))


def test_a_steep_output_that_changes_by_a_turn_is_not_an_angle() -> None:
    model = OdeModel("steep", {"x": "-x"}, outputs={"y": "1000*sin(x)", "z": "6.283*x"})
    assert fl.linearize(model, derivatives="differences").C[:, 0] == pytest.approx([1000.0, 6.283], rel=1e-9)


def test_a_verification_follows_the_angle_through_the_upright_position() -> None:
    model = upright()
    verification = fl.verify(model, fl.linearize(model))
    offset = next(channel for channel in verification.channels if channel.kind == "offset")
    assert verification.passed
    assert offset.validity is not None
    assert offset.validity.limit > 1e-3


@pytest.mark.parametrize(("start", "target"), [(-3.13, 3.13), (3.1, -3.1), (2.8, -3.0), (-3.0, pi), (-3.1, -pi)])
@pytest.mark.parametrize(("angle", "unit"), [("atan2(x, -y)", 1.0), ("atan2(x, -y)/(2*pi)", 1 / (2 * pi))])
def test_a_trim_reaches_an_angle_on_the_other_side_of_half_a_turn(
    start: float, target: float, angle: str, unit: float
) -> None:
    model = upright(angle)
    guess = {"x": LENGTH * np.sin(start), "y": -LENGTH * np.cos(start)}
    point = fl.trim(model, fixed={"angle": target * unit}, free=["F"], guess=guess)
    # the horizontal force that holds a pendulum of 2 kg at the angle
    assert point.inputs[0] == pytest.approx(2.0 * GRAVITY * np.tan(target), abs=1e-7)


def test_a_jump_of_360_without_a_unit_is_said_to_be_taken_for_a_turn() -> None:
    outputs = {"y": lambda _t, x, u: 360.0 * (u[0] >= 0) + x[0]}
    model = FunctionModel("switch", {"x": 0.0}, lambda _t, x, u: [u[0] - x[0]], inputs=["u"], outputs=outputs)
    assert "turn" in [remark.kind for remark in fl.linearize(model).warnings]
