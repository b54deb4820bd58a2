"""Positions and velocities that were given stay, as far as loops and wheels allow; what had to move is told."""

from __future__ import annotations

from dataclasses import replace
from math import cos, sin

import numpy as np
import pytest

import fmilin as fl
from fmilin.models.mechanism import Body, Joint, Mechanism, MechanismDescription, Placement, Wheel
from fmilin.systems import slider_crank
from tests.models.mechanism.builders import triangle


def rolling(center: float = 0.0, tilt: float = 0.0, **velocities: object) -> MechanismDescription:
    """A carriage on a plane that is tilted about x, and a wheel of 0.5 m on its axle, ``center`` beside it."""
    turn = Placement((0, 0, 0), np.array([[1, 0, 0], [0, cos(tilt), -sin(tilt)], [0, sin(tilt), cos(tilt)]]))
    return MechanismDescription(
        "unicycle",
        [Body("carriage", 5.0, inertia=(1, 1, 1)), Body("wheel", 1.0, inertia=(0.1, 0.2, 0.1))],
        [
            Joint(
                "carriage", "planar", "ground", "carriage", turn, axis=(0, 0, 1), velocity=velocities.get("carriage")
            ),
            Joint(
                "axle",
                "revolute",
                "carriage",
                "wheel",
                Placement((0, 0, 0.5)),
                axis=(0, 1, 0),
                velocity=velocities.get("axle"),
            ),
        ],
        wheels=[Wheel("tread", "wheel", (0, center, 0), radius=0.5, normal=(0, -sin(tilt), cos(tilt)))],
    )


@pytest.mark.parametrize("tilt", [0.0, 0.4])
@pytest.mark.parametrize("center", [0.0, 0.75])
@pytest.mark.parametrize(
    "velocities", [{"axle": 4.0}, {"carriage": (2.0, 0, 0)}, {"axle": 4.0, "carriage": (2.0, 0, 0)}]
)
def test_a_wheel_rolls_straight_at_the_velocity_that_was_given(
    center: float, tilt: float, velocities: dict[str, object]
) -> None:
    model = Mechanism(rolling(center, tilt, **velocities))
    speeds = dict(zip(model.states.names, model.start.states, strict=True))
    assert speeds["axle.v"] == pytest.approx(4.0, rel=1e-14)
    along, across = speeds["carriage.vx"], speeds["carriage.vy"]
    assert (np.hypot(along, across), speeds["carriage.w"]) == (pytest.approx(2.0), pytest.approx(0.0, abs=1e-14))
    assert not [r for r in fl.linearize(model).warnings if r.kind == "moved"]


@pytest.mark.parametrize("center", [0.0, 0.75])
def test_a_free_wheel_rolls_straight(center: float) -> None:
    """Where the slip is zero by itself, rounding is no reason to refuse."""
    tilt = 0.3
    free = Joint(
        "free", "free", "ground", "wheel",
        position=(0, -0.5 * sin(tilt), 0.5 * cos(tilt), cos(tilt / 2), sin(tilt / 2), 0, 0),
        velocity=(4, 0, 0, 0, 0, 0),
    )  # fmt: skip
    wheel = Wheel("tread", "wheel", (0, center, 0), radius=0.5, normal=(0, -sin(tilt), cos(tilt)))
    body = Body("wheel", 1.0, inertia=(0.1, 0.2, 0.1))
    model = Mechanism(MechanismDescription("wheel", [body], [free], wheels=[wheel]))
    np.testing.assert_allclose(model.start.states[7:], [4, 0, 0, 0, 8, 0], atol=1e-13)


def test_given_velocities_are_held_until_they_contradict_each_other() -> None:
    """The first ones are held; of what had to move a remark tells, where the point still starts there."""
    spinning = {"crank": 7.0, "slider": 3.0}
    crank = slider_crank(angle=0.6).description
    joints = [replace(j, velocity=spinning[j.name]) if j.name in spinning else j for j in crank.joints]
    model = Mechanism(replace(crank, joints=joints))
    speeds = dict(zip(model.states.names, model.start.states, strict=True))
    assert speeds["w"] == 7.0
    remark = next(r for r in fl.linearize(model).warnings if r.kind == "moved")
    assert f"given slider.v = 3, became {speeds['slider.v']:.6g}" in remark.message
    assert "w =" not in remark.message
    elsewhere = fl.operating_point(model, {"w": 0.0})
    assert not model.list_point_remarks(elsewhere)


def spinning_crank(**velocities: float) -> Mechanism:
    crank = slider_crank(angle=0.6).description
    joints = [replace(j, velocity=velocities[j.name], stands=True) if j.name in velocities else j for j in crank.joints]
    return Mechanism(replace(crank, joints=joints))


@pytest.mark.parametrize(
    ("values", "kept", "told"),
    [
        ({"phi": 0.9}, {"w": 7.0}, False),  # the given velocity stays while a position is set
        ({"phi": 0.2, "w": 3.0}, {}, False),
        ({"w": 3.0}, {"phi": 0.6}, False),  # and positions stay while a velocity is
        ({"slider.v": -1.0}, {"phi": 0.6}, True),  # what must give way is told
    ],
)
def test_what_was_given_stays_while_others_are_set(
    values: dict[str, float], kept: dict[str, float], told: bool
) -> None:
    model = spinning_crank(crank=7.0)
    point = fl.operating_point(model, values)
    for name, value in (values | kept).items():
        assert point.states[model.states.positions[name]] == pytest.approx(value, abs=1e-12)
    (residual,) = np.atleast_1d(np.abs(model.evaluate(0.0, point.states, point.inputs).residuals).max())
    assert residual < 1e-9
    moved = [r.message for r in point.remarks if r.kind == "moved"]
    assert [f"given w = 7, became {point.states[model.states.positions['w']]:.6g}" in m for m in moved] == [True] * told


def test_a_given_position_that_another_one_moves_is_told() -> None:
    """That of the recommended coordinate: positions of other joints were first guesses for closing the loop."""
    model = slider_crank(angle=0.6)
    other = next(n for n in model.states.names[: len(model.states) // 2] if n not in model.independent)
    value = float(model.start.states[model.states.positions[other]])
    point = fl.operating_point(model, {other: 0.98 * value})
    (remark,) = [r for r in point.remarks if r.kind == "moved"]
    assert remark.message.count("given") == 1
    assert f"given phi = 0.6, became {point.states[model.states.positions['phi']]:.6g}" in remark.message
    assert not [r for r in fl.operating_point(model, {"phi": 0.5}).remarks if r.kind == "moved"]


def test_points_of_a_sweep_keep_what_was_given_too() -> None:
    """Those that are computed together, and where what was given has to move each says so."""
    model = spinning_crank(crank=7.0)
    turned = fl.sweep(model, {"phi": np.linspace(0.3, 1.2, 8)})
    assert [turned[i].point.states["w"] for i in range(8)] == pytest.approx([7.0] * 8, abs=1e-12)
    slid = fl.sweep(model, {"slider.v": np.linspace(-2.0, -1.0, 8)})
    assert [turned_by for i in range(8) if (turned_by := slid[i].point.states["phi"])] == pytest.approx([0.6] * 8)
    assert sum(r.kind == "moved" for i in range(8) for r in slid[i].warnings) == 8


def test_a_zero_that_was_typed_is_given() -> None:
    """It is held where that can be, and told where another velocity moves it; what nobody gave just follows."""
    told = fl.linearize(spinning_crank(crank=7.0, slider=0.0)).warnings
    (remark,) = [r for r in told if r.kind == "moved"]
    assert "given slider.v = 0, became" in remark.message
    assert not [r for r in fl.linearize(spinning_crank(crank=7.0)).warnings if r.kind == "moved"]
    assert not spinning_crank(crank=0.0, slider=0.0).start.states[-3:].any()
    assert Joint("a", "revolute", "ground", "b", velocity=0).stands
    assert not Joint("a", "revolute", "ground", "b").stands


def test_positions_that_had_to_move_are_told() -> None:
    model = Mechanism(triangle(1.2, -2.0, independent=()))
    (remark,) = model.list_point_remarks(model.start)
    assert remark.kind == "moved"
    assert "given a.q = 1.2, became 1.0472; given b.q = -2, became -2.0944" in remark.message
    assert not Mechanism(triangle(1.0472, -2.0944)).list_point_remarks(model.start)


def test_points_of_a_sweep_that_stay_at_the_start_carry_the_remark() -> None:
    """Those that are computed together as well; one that moved away does not."""
    joints = [replace(j, position=-0.5) if j.name == "rod" else j for j in slider_crank(angle=0.6).description.joints]
    model = Mechanism(replace(slider_crank().description, joints=joints))
    (name,) = model.inputs.names[:1]
    for varied, expected in (({name: np.linspace(0.0, 5.0, 8)}, 8), ({"phi": np.linspace(0.7, 1.2, 8)}, 0)):
        family = fl.sweep(model, varied)
        assert sum(r.kind == "moved" for i in range(8) for r in family[i].warnings) == expected
