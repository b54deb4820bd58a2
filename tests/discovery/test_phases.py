"""An angle beside its sine and cosine as states: s^2 + c^2 = 1 and s cos(th) = c sin(th) leave th and its speed."""

from __future__ import annotations

from math import cos, pi, sin

import pytest

import fmilin as fl
from fmilin.models import OdeModel

NORM = "s^2 + c^2 - 1"


def turned_pair(
    angle_rate: str = "w", pair_rate: str = "w", *, angle: float = 0.3, phase: float = 0.3, torque: str = "-0.5*w"
) -> OdeModel:
    """Return th' = angle_rate, w' = F + torque and a pair (s, c) that is turned at pair_rate."""
    return OdeModel(
        "turned",
        {"th": angle_rate, "w": f"F + {torque}", "s": f"c*({pair_rate})", "c": f"-s*({pair_rate})"},
        inputs=["F"],
        start={"th": angle, "s": sin(phase), "c": cos(phase)},
    )


@pytest.mark.parametrize(
    ("model", "relation"),
    [
        (turned_pair(), "s*cos(th) - c*sin(th)"),
        (turned_pair(torque="-9.81*s - 0.1*w"), "s*cos(th) - c*sin(th)"),
        (turned_pair(torque="-9.81*sin(th)"), "s*cos(th) - c*sin(th)"),
        (turned_pair(angle=0.0, phase=0.0), "s*cos(th) - c*sin(th)"),
        (turned_pair(angle=0.3 + 4 * pi), "s*cos(th) - c*sin(th)"),
        (turned_pair(pair_rate="-w", phase=-0.3), "s*cos(th) + c*sin(th)"),
        (turned_pair(pair_rate="w/2", phase=0.15), "s*cos(1/2*th) - c*sin(1/2*th)"),
        (turned_pair("w*180/pi", angle=30.0, phase=pi / 6), "s*cos(pi/180*th) - c*sin(pi/180*th)"),
        (turned_pair("w*180/pi", "w/2", angle=30.0, phase=pi / 12), "s*cos(1/2*pi/180*th) - c*sin(1/2*pi/180*th)"),
    ],
    ids=["cyclic", "pulled", "by its angle", "at zero", "turns", "backwards", "half angle", "degrees", "half degrees"],
)
def test_an_angle_follows_from_its_sine_and_cosine(model: OdeModel, relation: str) -> None:
    found = fl.discover(model)
    assert found.order == 2
    assert found.constraints[0] == NORM
    assert list(found.constraints)[1:] == [relation]


def test_an_offset_stands_in_the_relation() -> None:
    """Phase 0.8 at th = 0.3: sin(phi - th - 0.5) / cos(0.5)."""
    found = fl.discover(turned_pair(phase=0.8))
    assert found.order == 2
    s, c, th = sin(2.0), cos(2.0), 1.5
    values = {"s": s, "c": c, "th": th, "sin": sin, "cos": cos}
    assert eval(found.constraints[1], values) == pytest.approx(0.0, abs=1e-12)
    values["th"] = 1.5 + 0.1
    assert abs(eval(found.constraints[1], values)) == pytest.approx(sin(0.1) / cos(0.5))


def test_the_phase_is_a_sum_of_angles() -> None:
    rates = {"a": "va", "b": "vb", "va": "F - 9.81*s", "vb": "G - vb", "s": "c*(va + vb)", "c": "-s*(va + vb)"}
    start = {"a": 0.3, "b": 0.4, "s": sin(0.7), "c": cos(0.7)}
    found = fl.discover(OdeModel("sum", rates, inputs=["F", "G"], start=start))
    assert found.order == 4
    assert list(found.constraints) == [NORM, "s*cos(a + b) - c*sin(a + b)"]


def test_a_pair_of_another_length_has_a_phase() -> None:
    rates = {"th": "w", "w": "F - y", "x": "-y*w", "y": "x*w"}
    found = fl.discover(OdeModel("arm", rates, inputs=["F"], start={"th": 0.3, "x": 2 * cos(0.3), "y": 2 * sin(0.3)}))
    assert found.order == 2
    assert list(found.constraints) == ["x^2 + y^2 - 4", "x*sin(th) - y*cos(th)"]


def test_a_cyclic_angle_of_another_speed_is_free() -> None:
    """Two rotors: th turns at w, the pair at v. Five states, one norm."""
    rates = {"th": "w", "w": "F - 0.1*w", "v": "G - 9.81*s", "s": "c*v", "c": "-s*v"}
    found = fl.discover(OdeModel("two", rates, inputs=["F", "G"], start={"th": 0.3, "s": sin(0.3), "c": cos(0.3)}))
    assert found.order == 4
    assert list(found.constraints) == [NORM]


def test_what_follows_a_phase_as_a_momentum_does_is_not_tied_to_it() -> None:
    """Without an input phi + 10 w never changes, as th + 10 w does not: w' = -w/10. It is no geometry."""
    rates = {"w": "-0.1*w", "s": "c*w", "c": "-s*w"}
    found = fl.discover(OdeModel("slows", rates, start={"w": 1.0, "s": sin(0.3), "c": cos(0.3)}))
    assert found.order == 2
    assert list(found.constraints) == [NORM]


@pytest.mark.parametrize("speed", [0.0, 1.0])
@pytest.mark.parametrize("angle", [0.0, 0.7])
def test_an_input_may_be_the_speed_of_an_angle_that_rests(speed: float, angle: float) -> None:
    """Where it is zero nothing moves, and where it is one the rate of the sine is the cosine, as of a speed."""
    start = {"th": angle, "s": sin(angle), "c": cos(angle), "u": speed}
    model = OdeModel("heading", {"th": "u", "s": "c*u", "c": "-s*u"}, inputs=["u"], start=start)
    found = fl.discover(model)
    assert list(found.constraints) == ["s^2 + c^2 - 1", "s*cos(th) - c*sin(th)"]
    assert found.order == 1


def test_a_car_is_steered_by_the_rate_of_its_heading_and_driven_by_a_force() -> None:
    rates = {"x": "v*c", "y": "v*s", "v": "a", "s": "c*r", "c": "-s*r", "psi": "r"}
    model = OdeModel("car", rates, inputs=["a", "r"], start={"c": 1.0, "v": 3.0})
    found = fl.discover(model)
    assert list(found.constraints) == ["s^2 + c^2 - 1", "s*cos(psi) - c*sin(psi)"]
    assert found.order == 4


@pytest.mark.parametrize(
    ("rates", "inputs"),
    [
        ({"x": "cos(th)*u", "y": "sin(th)*u", "th": "w"}, ["u", "w"]),  # a wheel that rolls without slip: free to go
        ({"a": "u*sqrt(a)", "b": "-u*sqrt(a)"}, ["u"]),  # a valve between tanks: their content is kept, not geometry
    ],
)
def test_states_that_inputs_move_are_free_where_no_function_of_them_is_kept(
    rates: dict[str, str], inputs: list[str]
) -> None:
    model = OdeModel("driven", rates, inputs=inputs, start=dict.fromkeys(rates, 1.0))
    found = fl.discover(model)
    assert not found.constraints
    assert found.order == len(rates)
