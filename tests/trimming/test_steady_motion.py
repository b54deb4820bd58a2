"""Steady motions: the rolling disk against its closed form, and motions that only look steady."""

from __future__ import annotations

import re
from math import cos, pi, sin

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fmilin as fl
from fmilin import TrimmedPoint, trim
from fmilin.models import OdeModel
from fmilin.systems import bicycle, cartesian_pendulum, rolling_disk
from tests.systems.turns import steady_yaw_rates

MOVING = ["q1", "q3", "q4", "q5"]
RESTING = [1, 6, 7, 8]  # q2, u1, u2, u3


def spread_along_the_motion(model: fl.Model, point: TrimmedPoint, duration: float = 4.0) -> np.ndarray:
    """How much each state varies while all 12 equations are integrated from the point."""

    def rates(t: float, x: np.ndarray) -> np.ndarray:
        return model.evaluate(t, x, point.inputs).derivatives

    run = solve_ivp(rates, (0.0, duration), point.states, rtol=1e-10, atol=1e-12, max_step=0.05)
    return np.asarray(np.ptp(run.y, axis=1))


def test_the_disk_rolls_upright_at_any_speed() -> None:
    model = rolling_disk(speed=2.0)
    point = trim(model, steady=MOVING)
    np.testing.assert_array_equal(point.states, model.start.states)  # it starts rolling steadily
    report = point.report
    assert report.moving == ("q3", "q4", "u4", "u6")
    assert report.varying == report.dragged == ("u4", "u6")
    assert report.rate("q3") == pytest.approx(-2.0)
    assert {d.name for d in report.free_directions} == {"q1", "q2", "q3", "q4", "q5", "u2"}
    # (g/r) sin(q2) + 3/2 cos(q2) q1' q3' + ... = 0: steady turns branch off with q1' = u3 = q2/3 at v = 2
    turn = next(d for d in report.free_directions if d.name == "q2")
    assert turn.along == {"u3": pytest.approx(1 / 3, abs=1e-6)}


def test_a_disturbed_disk_is_brought_back_to_rolling() -> None:
    model = rolling_disk(speed=1.5)
    point = trim(
        model, guess={"u1": 0.1, "u5": 0.1}, fixed={"q2": 0.0, "u2": -1.5, "q1": 0.4, "q3": 0.3}, steady=MOVING
    )
    expected = {"q1": 0.4, "q3": 0.3, "u2": -1.5, "u4": 1.5 * cos(0.3), "u6": 1.5 * sin(0.3), "q6": -1.0}
    for name, value in expected.items():
        assert point.states[model.states.index_of(name)] == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(point.states[[6, 8, 10]], 0.0, atol=1e-12)
    assert spread_along_the_motion(model, point)[RESTING].max() < 1e-9


@pytest.mark.parametrize(("lean", "speed", "which"), [(0.2, 2.0, 0), (0.2, 2.0, 1), (0.5, 3.0, 0), (-0.3, 1.7, 0)])
def test_the_leaning_disk_turns_as_the_closed_form_says(lean: float, speed: float, which: int) -> None:
    yaw_rate = steady_yaw_rates(speed, lean)[which]
    model = rolling_disk(speed=speed)
    spin = sin(lean) * yaw_rate - speed
    point = trim(
        model,
        fixed={"q2": lean, "u2": spin},
        guess={"u3": 1.05 * cos(lean) * yaw_rate, "u1": 0.02, "u4": -spin, "u6": 0.1},
        steady=MOVING,
    )
    report = point.report
    assert report.rate("q1") == pytest.approx(yaw_rate, rel=1e-10)
    assert report.rate("q3") == pytest.approx(-speed, rel=1e-10)
    assert report.residual <= 1e-10
    assert report.exact
    assert spread_along_the_motion(model, point)[RESTING].max() < 1e-8
    assert report.changes is not None
    changes = dict(zip(model.states.names, report.changes, strict=True))
    # q1 and q3 move at constant rate; the position goes round, and u4, u6 turn with the spin
    assert abs(changes["q1"]) < 1e-9
    assert abs(changes["q3"]) < 1e-9
    assert changes["q5"] == pytest.approx(report.rate("q4") * yaw_rate, rel=1e-6)
    assert {"q4", "q5", "u4", "u6"} == set(report.varying)
    assert {"q1", "q3", "q4", "q5", "u4", "u6"} == set(report.moving)
    free = {d.name for d in report.free_directions}
    assert {"q1", "q3", "q4", "q5"} == free
    square = 0.8 * cos(lean) - yaw_rate**2 + 14 / 5 * sin(lean) * yaw_rate * speed - 12 / 5 * speed**2
    eigenvalues = fl.linearize(model, point).eigenvalues()
    pair = eigenvalues[np.argsort(-np.abs(eigenvalues.imag))[:2]]
    np.testing.assert_allclose(np.sort(pair.imag), np.sqrt(-square) * np.array([-1, 1]), rtol=1e-6)


def test_the_disk_turns_without_a_hint_at_its_coordinates() -> None:
    """Nobody says that u4 and u6 are dependent: they are seen to move at the guess."""
    model = rolling_disk(speed=2.0)
    plain = model.with_constraints(model.constraints.declared)
    assert plain.independent == ()
    point = trim(plain, fixed={"q2": 0.2, "u2": -1.98}, guess={"u3": 0.1}, steady=MOVING)
    hinted = trim(model, fixed={"q2": 0.2, "u2": -1.98}, guess={"u3": 0.1}, steady=MOVING)
    np.testing.assert_allclose(point.states, hinted.states, atol=1e-9)
    listed = trim(plain, fixed={"q2": 0.2, "u2": -1.98}, guess={"u3": 0.1}, steady=[*MOVING, "u4", "u6"])
    np.testing.assert_allclose(listed.states, hinted.states, atol=1e-9)


def test_torques_take_part_in_a_steady_turn() -> None:
    """A lean torque lets the disk turn at a rate that the free disk does not have at this lean and speed."""
    model = rolling_disk()
    point = trim(model, fixed={"q2": 0.2, "u2": -2.0, "u3": 0.0}, free=["lean_torque", "steer_torque"], steady=MOVING)
    # rolling straight while leaning: the torque balances the weight's moment about the contact, m g r sin(q2)
    np.testing.assert_allclose(point.inputs, [-sin(0.2), 0.0], atol=1e-10)


def test_swinging_through_the_lowest_point_is_no_steady_motion() -> None:
    """There der(vx) vanishes at any speed, but it does not stay zero."""
    point = trim(cartesian_pendulum(rate=0.7), steady=["x"], guess={"vx": 0.7})
    np.testing.assert_allclose(point.states, [0.0, -1.0, 0.0, 0.0], atol=1e-9)
    with pytest.raises(fl.NumericalError, match=r"no steady motion in which only x may move.*der\(der\(vx\)\)"):
        trim(cartesian_pendulum(), steady=["x"], fixed={"vx": 1.0})


def test_cruising_at_a_given_speed_with_the_throttle_free() -> None:
    """m v' = thrust - c v^2 up a road with the slope s: a straight track, height constrained to the distance."""
    model = OdeModel(
        "car",
        {"x": "v", "z": "s*v", "v": "(F - c*v*abs(v))/m - g*s"},
        inputs=["F"],
        parameters={"m": 900.0, "c": 0.4, "g": 9.81, "s": 0.05},
        constraints=["z - s*x"],
    )
    point = trim(model, fixed={"v": 30.0, "x": 100.0}, steady=["x"], free=["F"])
    assert point.inputs[0] == pytest.approx(0.4 * 900 + 900 * 9.81 * 0.05, rel=1e-13)
    assert point.states.tolist() == pytest.approx([100.0, 5.0, 30.0])
    assert point.report.rate("x") == 30.0
    assert point.report.dragged == ("z",)
    assert point.report.summary == "a steady motion of x, z"


def test_the_position_along_a_circular_road_may_vary_its_rate() -> None:
    """Steady turning of a unicycle: the heading moves at constant rate, x and y with it; nothing that rests notices."""
    model = OdeModel(
        "unicycle",
        {"x": "v*cos(psi)", "y": "v*sin(psi)", "psi": "r", "v": "drive - v", "r": "2*steer*v - r"},
        inputs=["drive", "steer"],
    )
    point = trim(model, fixed={"v": 4.6, "psi": pi / 3, "steer": 0.1}, free=["drive"], steady=["x", "y", "psi"])
    assert point.inputs.tolist() == pytest.approx([4.6, 0.1])
    report = point.report
    assert [report.rate(n) for n in ("x", "y", "psi")] == pytest.approx([2.3, 4.6 * sin(pi / 3), 0.92])
    assert report.changes is not None
    assert report.changes[0] == pytest.approx(-report.rate("y") * 0.92, rel=1e-8)
    assert {d.name for d in report.free_directions} == {"x", "y"}


def test_a_listed_state_that_need_not_move_may_rest() -> None:
    model = OdeModel("decay", {"x": "-x", "y": "x"}, start={"x": 1.0})
    point = trim(model, steady=["y"])
    assert point.states[0] == pytest.approx(0.0, abs=1e-12)
    assert point.report.moving == ()
    assert point.report.is_equilibrium


def test_a_motion_that_is_steady_at_one_instant_only_is_called_that() -> None:
    """v' = x^3 and its change vanish at x = 0, where x passes by: what is left is of third order."""
    model = OdeModel("ramp", {"x": "1 + 0*v", "v": "x^3 - v"}, start={"x": 0.1})
    point = trim(model, steady=["x"])
    assert point.states[0] == pytest.approx(0.0, abs=1e-3)
    (remark,) = [r for r in point.report.remarks if r.kind == "unsteady"]
    assert "v should be constant and is not" in str(remark)


@pytest.mark.parametrize(("speed", "growing"), [(3.0, 2), (5.0, 0), (8.0, 1)])
def test_a_steady_motion_says_how_many_eigenvalues_grow(speed: float, growing: int) -> None:
    """The benchmark bicycle: weave is stable from 4.292 m/s on, capsize up to 6.024 m/s (Meijaard et al. 2007)."""
    point = trim(bicycle(), fixed={"rear_rate": -speed / 0.3}, steady=["x", "rear_wheel", "front_wheel"])
    assert point.report.unstable == growing
    told = [remark.message for remark in point.report.remarks if remark.kind == "unstable"]
    assert len(told) == bool(growing)
    assert all(text.startswith(f"The motion is unstable: {growing} of ") for text in told)


@pytest.mark.parametrize(("air", "steady"), [("1.2", True), ("1.2*exp(-h/8000)", False)])
def test_a_climb_is_steady_in_air_that_does_not_thin(air: str, steady: bool) -> None:
    """An aircraft with lift, drag and pitching moment linear in its angles; balance as of a force triangle."""
    speed, alpha = "(u^2 + w^2)", "atan2(w, u)"
    q, lift = f"(8*{air}*{speed})", f"(0.3 + 5*{alpha})"  # dynamic pressure times area, coefficient
    drag, moment = f"(0.03 + 0.05*{lift}^2)", f"(0.05 - 0.8*{alpha} - 1.2*elevator - 9*r/sqrt{speed})"
    model = OdeModel(
        "aircraft",
        {
            "u": f"({q}*({lift}*sin({alpha}) - {drag}*cos({alpha})) + thrust)/1200 - 9.81*sin(theta) - r*w",
            "w": f"-{q}*({lift}*cos({alpha}) + {drag}*sin({alpha}))/1200 + 9.81*cos(theta) + r*u",
            "r": f"{q}*1.5*{moment}/1800", "theta": "r", "h": "u*sin(theta) - w*cos(theta)",
        },
        inputs=["thrust", "elevator"], outputs={"V": f"sqrt{speed}", "climb": "u*sin(theta) - w*cos(theta)"},
        start={"u": 60.0, "w": 2.0, "theta": 0.03},
    )  # fmt: skip
    point = fl.trim(model, fixed={"V": 55.0, "climb": 2.0, "h": 0.0}, free=["thrust", "elevator"], steady=["h"])
    angle, weight = np.arcsin(2 / 55), 1200 * 9.81
    a, Q = np.arctan2(point["w"], point["u"]), 9.6 * 55**2
    c = 0.3 + 5 * a
    assert point["theta"] - a == pytest.approx(angle, abs=1e-12)
    assert point["thrust"] * np.sin(a) + Q * c == pytest.approx(weight * np.cos(angle), rel=1e-10)
    assert point["thrust"] * np.cos(a) - Q * (0.03 + 0.05 * c**2) == pytest.approx(weight * np.sin(angle), rel=1e-9)
    assert ("unsteady" in {remark.kind for remark in point.report.remarks}) != steady


def drag() -> OdeModel:
    """A cart with drag: at a speed its force is constant and its position is not."""
    return OdeModel("drag", {"x": "v", "v": "F - c*v"}, inputs=["F"], parameters={"c": 0.3}, start={"v": 2.0})


def test_an_error_names_the_state_that_must_move() -> None:
    with pytest.raises(fl.NumericalError, match=r"A steady motion exists if x may move: add steady=\['x'\]"):
        fl.trim(drag(), fixed={"v": 2.0}, free=["F"])
    with pytest.raises(fl.NumericalError) as error:  # without the force the speed would not stay either
        fl.trim(drag(), fixed={"v": 2.0})
    assert "A steady motion exists" not in str(error.value)


def test_an_error_names_all_coordinates_of_a_rolling_vehicle_that_must_move() -> None:
    rates = {"turn": "r", "r": "F", "x": "0.3*r*cos(s)", "s": "q", "q": "-10*s - q"}
    vehicle = OdeModel("vehicle", rates, inputs=["F"])  # steering makes x slower: the best point leaves q' too
    with pytest.raises(
        fl.NumericalError, match=r"A steady motion exists if turn, x may move: add steady=\['turn', 'x'\]"
    ):
        fl.trim(vehicle, fixed={"r": 15.0})


def test_a_requested_steady_motion_is_not_called_a_point_off_equilibrium() -> None:
    model = drag()
    linear = fl.linearize(model, fl.trim(model, fixed={"v": 2.0}, free=["F"], steady=["x"]))
    assert [remark.kind for remark in linear.warnings] == ["steady"]
    assert "a steady motion: x changes at 2" in repr(linear)
    untrimmed = fl.linearize(model, fl.operating_point(model, {"v": 2.0, "F": 0.6}))
    assert "off-equilibrium" in {remark.kind for remark in untrimmed.warnings}


def test_without_equations_every_point_is_a_solution() -> None:
    point = fl.trim(drag(), fixed={"v": 2.0}, steady=["x", "v"])
    np.testing.assert_array_equal(point.states, [0.0, 2.0])
    assert point.report.varying == ("x", "v")


def test_a_requested_motion_along_which_the_matrix_changes_is_not_judged_by_its_eigenvalues() -> None:
    """Over x the rate of z is sin(x) + 0.5, which decays on average; at x = -pi/2 it grows."""
    model = OdeModel("path", {"x": "v", "v": "F - v", "z": "-(sin(x) + 0.5)*z"}, inputs=["F"])
    point = fl.trim(model, fixed={"v": 1.0, "x": -np.pi / 2}, free=["F"], steady=["x"])
    linear = fl.linearize(model, point)
    assert linear.eigenvalues()[-1] == pytest.approx(0.5)
    assert [remark.kind for remark in linear.warnings] == ["off-equilibrium", "periodic"]
    assert "Stability" not in repr(linear)


def test_a_speed_that_varies_is_not_called_steady() -> None:
    model = drag()
    point = fl.trim(model, fixed={"v": 2.0}, steady=["x", "v"])
    assert point.report.varying == ("x", "v")
    assert [remark.kind for remark in fl.linearize(model, point).warnings] == ["off-equilibrium"]


def test_a_disk_that_rolls_is_told_which_coordinates_move() -> None:
    """It spins at 2 rad/s: its spin angle q3 and a coordinate of its contact move; velocities of its centre follow."""
    with pytest.raises(fl.NumericalError, match=r"A steady motion exists if .* may move: add steady=") as failure:
        fl.trim(rolling_disk(), fixed={"u2": 2.0})
    moving = re.findall(r"'(\w+)'", str(failure.value).rpartition("steady=")[2])
    assert "q3" in moving
    point = fl.trim(rolling_disk(), fixed={"u2": 2.0}, steady=moving)
    rates = dict(zip(rolling_disk().states.names, point.report.rates.tolist(), strict=True))
    assert abs(rates["q3"]) == pytest.approx(2.0)
