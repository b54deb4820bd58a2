"""Closing loops from a rough guess: the nearest posture, and what is said when there is none."""

from __future__ import annotations

from dataclasses import replace
from math import cos, pi, sin, sqrt

import numpy as np
import pytest

import fmilin as fl
import fmilin.models.mechanism as public
from fmilin.errors import ConstraintError, UnknownNameError
from fmilin.models.mechanism import (
    Assembly,
    Body,
    Joint,
    Loop,
    Mechanism,
    MechanismDescription,
    Placement,
    Wheel,
    assemble,
)
from fmilin.systems import double_wishbone, loader, slider_crank, stewart_platform
from tests.models.mechanism.builders import rod, triangle


def shifted(description: MechanismDescription, reach: float, seed: int = 5) -> MechanismDescription:
    """Return it with every coordinate moved at random."""
    random = np.random.default_rng(seed)
    joints = [
        replace(j, position=tuple(np.array(j.position) + reach * random.uniform(-1, 1, len(j.position))))
        for j in description.joints
    ]
    return replace(description, joints=joints)


def positions(assembly: Assembly) -> np.ndarray:
    return np.concatenate([j.position for j in assembly.description.joints])


def residuals(description: MechanismDescription) -> np.ndarray:
    model = Mechanism(description)
    return model.evaluate(0.0, model.start.states, model.start.inputs).residuals


@pytest.mark.parametrize(
    ("guess", "expected"), [((1.2, -2.0), (pi / 3, -2 * pi / 3)), ((-0.7, 1.6), (-pi / 3, 2 * pi / 3))]
)
def test_of_two_postures_the_nearer_one_is_taken(guess: tuple[float, float], expected: tuple[float, float]) -> None:
    np.testing.assert_allclose(positions(assemble(triangle(*guess))), expected, atol=1e-12)


def test_it_is_the_nearest_posture_and_no_other() -> None:
    """Of a mechanism with a freedom left: 2 rods on a line, the end may slide along x."""
    guess = np.array([0.9, -1.5])
    sliding = triangle(*guess)
    loop = Loop("rail", "point_on_plane", "ground", "right", Placement(), Placement((1, 0, 0)), axis=(0, 1, 0))
    found = positions(assemble(replace(sliding, loops=[loop])))
    assert sin(found[0]) + sin(found.sum()) == pytest.approx(0, abs=1e-12)
    slope = np.array([cos(found[0]) + cos(found.sum()), cos(found.sum())])
    way = found - guess  # Gauss-Newton ends near the foot of the perpendicular, not on it
    assert abs(np.cross([*way, 0], [*slope, 0])[2]) < 0.1 * np.linalg.norm(way) * np.linalg.norm(slope)


def test_what_fits_already_is_left_as_it_is() -> None:
    for model in (loader(), slider_crank()):
        assembly = assemble(model.description)
        assert assembly.description == model.description
        assert assembly.moved < 1e-15  # the last bits of the positions in the file


@pytest.mark.parametrize("build", [loader, stewart_platform, double_wishbone])
def test_mechanisms_in_pieces_are_put_together(build: object) -> None:
    whole = build().description  # type: ignore[operator]
    assembly = assemble(shifted(whole, 0.1), fixed_states=())
    assert max(g.distance for g in assembly.before) > 0.02
    assert max(max(g.distance, g.angle) for g in assembly.gaps) < 1e-12
    assert np.abs(residuals(assembly.description)).max() < 1e-12
    assert 0 < assembly.moved < 0.6


def test_recommended_states_are_held() -> None:
    moved = shifted(replace(loader().description), 0.05)
    assembly = assemble(moved)
    for name in ("boom", "bucket"):
        before, after = (next(j for j in d.joints if j.name == name) for d in (moved, assembly.description))
        assert before.position == after.position
    other = assemble(moved, fixed_states=["lift.q", "tilt.q"])
    assert next(j for j in other.description.joints if j.name == "lift") == next(
        j for j in moved.joints if j.name == "lift"
    )


def test_velocities_are_made_to_fit_those_that_are_held() -> None:
    model = slider_crank(angle=0.6)
    spinning = [replace(j, velocity=7.0) if j.name == "crank" else j for j in model.description.joints]
    found = Mechanism(assemble(replace(model.description, joints=spinning)).description)
    x = dict(zip(found.states.names, found.start.states, strict=True))
    assert x["w"] == 7.0
    phi, psi = x["phi"], x["phi"] + x["rod.q"]
    assert x["slider.v"] == pytest.approx(7 * 0.1 * (-sin(phi) + cos(phi) * np.tan(psi)), rel=1e-12)
    point = fl.operating_point(found)
    assert point.adjusted == 0.0


def test_a_far_guess_is_tried_from_several_sides() -> None:
    """Stretched out and pointing away, no step makes the gap smaller."""
    assembly = assemble(triangle(pi, 0.0))
    assert abs(positions(assembly)[1]) == pytest.approx(2 * pi / 3, abs=1e-12)


# -- what cannot close


def test_a_loop_that_cannot_close_is_reported_with_its_gap() -> None:
    with pytest.raises(ConstraintError) as caught:
        assemble(triangle(1.0, -2.0, base=2.5))
    message = str(caught.value)
    assert "The loop of the mechanism 'triangle' cannot be closed: 'pin' has a gap of 0.5 m (first guess: " in message
    assert "The best configuration found is a.q = " in message
    assert caught.value.residuals["pin"] == pytest.approx(0.5, abs=1e-4)


def test_a_held_state_that_keeps_a_loop_open_is_named() -> None:
    assert assemble(triangle(1.0, -2.0, base=1.5)).moved > 0
    with pytest.raises(ConstraintError, match=r"closed while 'a\.q' keeps its value: 'pin' has a gap of 0\.2764 m"):
        assemble(triangle(1.0, -2.0, base=1.5), fixed_states=["a.q"])
    with pytest.raises(ConstraintError, match="or hold others"):
        assemble(triangle(1.0, -2.0, base=1.5, independent=("a.q", "a.v")))


def test_only_the_loops_that_stay_open_are_told() -> None:
    whole = loader().description
    far = [replace(loop, first_placement=Placement((9, 0, 0))) if loop.name == "I" else loop for loop in whole.loops]
    with pytest.raises(ConstraintError) as caught:
        assemble(replace(whole, loops=far))
    assert set(caught.value.residuals) == {"I"}


def test_velocities_that_cannot_fit_are_told() -> None:
    sliding = triangle(pi / 3, -2 * pi / 3)
    joints = [replace(j, velocity=1.0) for j in sliding.joints]
    with pytest.raises(
        ConstraintError, match="No velocities of the mechanism 'triangle' keep 'pin' closed with the fixed velocities"
    ):
        assemble(replace(sliding, joints=joints), fixed_states=["a.v", "b.v"])


def test_what_can_be_held_and_what_can_move() -> None:
    with pytest.raises(
        UnknownNameError, match=r"'a.qq' is not a state of the mechanism 'triangle'. Did you mean 'a.q'"
    ):
        assemble(triangle(1.0, -2.0), fixed_states=["a.qq"])
    fixed = MechanismDescription("block", [rod("block")], [Joint("glue", "fixed", "ground", "block")])
    assert assemble(fixed).moved == 0.0


# -- kinds of loops


def test_axes_close_the_right_way_round() -> None:
    """An axis that is perpendicular to all it should be may still point backwards."""
    ball = MechanismDescription(
        "ball",
        [rod("arm")],
        [Joint("ball", "spherical", "ground", "arm", position=(0.1, 1, 0, 0))],
        [Loop("axle", "revolute", "ground", "arm")],
    )
    found = assemble(ball)
    assert found.description.joints[0].position[3] ** 2 + found.description.joints[0].position[0] ** 2 == pytest.approx(
        1
    )
    assert found.gaps[0].angle < 1e-12


def test_a_loop_that_was_closed_backwards_counts_as_open() -> None:
    """The axis of the arm is -z, and turning about z leaves it there."""
    turned = Placement.from_axis(axis=(1, 0, 0), angle=pi)
    back = MechanismDescription(
        "back",
        [rod("arm")],
        [Joint("swing", "revolute", "ground", "arm")],
        [Loop("axle", "revolute", "ground", "arm", turned)],
    )
    with pytest.raises(ConstraintError, match=r"'axle' has a gap of 3\.142 rad"):
        assemble(back)


def test_rods_keep_their_length() -> None:
    base = triangle(0.4, 0.8)
    stay = Loop("stay", "rod", "ground", "right", Placement((0, 1, 0)), Placement((1, 0, 0)), length=1.2)
    a, b = positions(assemble(replace(base, loops=[stay])))
    x, y = cos(a) + cos(a + b), sin(a) + sin(a + b)
    assert sqrt(x**2 + (y - 1) ** 2) == pytest.approx(1.2, rel=1e-12)
    with pytest.raises(ConstraintError, match=r"'stay' has a gap of 0\.5"):
        assemble(replace(base, loops=[replace(stay, length=3.5)]))


def test_a_screw_closes_after_several_turns() -> None:
    nut = MechanismDescription(
        "press",
        [rod("nut")],
        [Joint("slide", "cylindrical", "ground", "nut", position=(20.0, 0.1), names=("turn", "rise", "spin", "speed"))],
        [Loop("thread", "helical", "ground", "nut", pitch=0.01, turn=19.0)],
        independent=("turn", "spin"),
    )
    found = Mechanism(assemble(nut).description)
    x = dict(zip(found.states.names, found.start.states, strict=True))
    assert (x["turn"], x["rise"]) == (20.0, pytest.approx(0.2, abs=1e-12))
    assert x["thread.q"] == pytest.approx(20.0, abs=1e-12)
    assert np.abs(found.evaluate(0.0, found.start.states, found.start.inputs).residuals).max() < 1e-12


def test_a_wheel_is_put_on_its_plane() -> None:
    ball = MechanismDescription(
        "ball",
        [Body("ball", 1.0, inertia=(0.1, 0.1, 0.1))],
        [Joint("free", "free", "ground", "ball", position=(0, 0, 0.7, 1, 0, 0, 0), velocity=(1, 0, 0, 0, 0, 0))],
        wheels=[Wheel("tread", "ball", tube=0.5)],
    )
    joint = assemble(ball).description.joints[0]
    assert joint.position[2] == pytest.approx(0.5, abs=1e-12)
    vx, _, vz, _, wy, _ = joint.velocity
    assert (vx, vz) == (pytest.approx(0.5 * wy, abs=1e-12), pytest.approx(0.0, abs=1e-12))
    assert wy > 0.1


def test_a_mechanism_of_python_closes_its_loops_as_a_file_does() -> None:
    """60 and -120 degrees; what is closed already stays to the last bit, and what cannot close is refused."""
    rough = Mechanism(triangle(1.2, -2.0))
    assert rough.start.states[:2] == pytest.approx([pi / 3, -2 * pi / 3], abs=1e-12)
    assert Mechanism(rough.description).description is rough.description
    moving = replace(rough.description.joints[1], velocity=0.5)
    still = Mechanism(replace(rough.description, joints=[rough.description.joints[0], moving]))
    assert still.start.states[3] == pytest.approx(0.0, abs=1e-12)  # a triangle does not move
    with pytest.raises(ConstraintError, match=r"The loop of the mechanism 'triangle' cannot be closed: .* has a gap"):
        Mechanism(triangle(1.2, -2.0, base=2.5))


def test_assemble_is_public() -> None:
    assert public.assemble is assemble


# -- velocities that were given
