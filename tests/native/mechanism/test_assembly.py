"""Closing loops from a rough guess: the nearest posture, and what is said when there is none."""

from __future__ import annotations

from dataclasses import replace
from math import cos, pi, sin, sqrt

import numpy as np
import pytest

import fmilin as fl
import fmilin.native.mechanism as public
from fmilin.ground.errors import ConstraintError, UnknownNameError
from fmilin.native.mechanism import Body, Joint, Loop, Mechanism, MechanismDescription, Placement, Wheel
from fmilin.native.mechanism.assembly import Assembly, assemble
from fmilin.native.systems import double_wishbone, loader, slider_crank, stewart_platform


def rod(name: str) -> Body:
    return Body(name, 1.0, (0.5, 0, 0), (0, 0.1, 0.1))


def triangle(first: float, second: float, base: float = 1.0, **options: object) -> MechanismDescription:
    """Two rods of 1 m in a chain, whose end is to be ``base`` from its beginning."""
    return MechanismDescription(
        "triangle",
        [rod("left"), rod("right")],
        [
            Joint("a", "revolute", "ground", "left", position=first),
            Joint("b", "revolute", "left", "right", Placement((1, 0, 0)), position=second),
        ],
        [Loop("pin", "point_on_line", "ground", "right", Placement((base, 0, 0)), Placement((1, 0, 0)))],
        **options,  # type: ignore[arg-type]
    )


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
        assert assembly.moved == 0.0


@pytest.mark.parametrize("build", [loader, stewart_platform, double_wishbone])
def test_mechanisms_in_pieces_are_put_together(build: object) -> None:
    whole = build().description  # type: ignore[operator]
    assembly = assemble(shifted(whole, 0.1), held=())
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
    other = assemble(moved, held=["lift.q", "tilt.q"])
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
    assert "The loop of the mechanism 'triangle' cannot be closed: 'pin' stays open by 0.5 m (first guess: " in message
    assert "The best posture that was found is a.q = " in message
    assert caught.value.residuals["pin"] == pytest.approx(0.5, abs=1e-4)


def test_a_held_state_that_keeps_a_loop_open_is_named() -> None:
    assert assemble(triangle(1.0, -2.0, base=1.5)).moved > 0
    with pytest.raises(ConstraintError, match=r"closed while 'a\.q' keeps its value: 'pin' stays open by 0\.2764 m"):
        assemble(triangle(1.0, -2.0, base=1.5), held=["a.q"])
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
    with pytest.raises(ConstraintError, match="No velocities of the mechanism 'triangle' keep 'pin' closed while"):
        assemble(replace(sliding, joints=joints), held=["a.v", "b.v"])


def test_what_can_be_held_and_what_can_move() -> None:
    with pytest.raises(
        UnknownNameError, match=r"'a.qq' is not a state of the mechanism 'triangle'. Did you mean 'a.q'"
    ):
        assemble(triangle(1.0, -2.0), held=["a.qq"])
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
    with pytest.raises(ConstraintError, match=r"'axle' stays open by 3\.142 rad"):
        assemble(back)


def test_rods_keep_their_length() -> None:
    base = triangle(0.4, 0.8)
    stay = Loop("stay", "rod", "ground", "right", Placement((0, 1, 0)), Placement((1, 0, 0)), length=1.2)
    a, b = positions(assemble(replace(base, loops=[stay])))
    x, y = cos(a) + cos(a + b), sin(a) + sin(a + b)
    assert sqrt(x**2 + (y - 1) ** 2) == pytest.approx(1.2, rel=1e-12)
    with pytest.raises(ConstraintError, match=r"'stay' stays open by 0\.5"):
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
    with pytest.raises(ConstraintError, match=r"The loop of the mechanism 'triangle' cannot be closed: .* stays open"):
        Mechanism(triangle(1.2, -2.0, base=2.5))


def test_assemble_is_public() -> None:
    assert public.assemble is assemble


# -- velocities that were given


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
    assert not model.remarks_at(elsewhere)


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
    (remark,) = model.remarks_at(model.start)
    assert remark.kind == "moved"
    assert "given a.q = 1.2, became 1.0472; given b.q = -2, became -2.0944" in remark.message
    assert not Mechanism(triangle(1.0472, -2.0944)).remarks_at(model.start)


def test_points_of_a_sweep_that_stay_at_the_start_carry_the_remark() -> None:
    """Those that are computed together as well; one that moved away does not."""
    joints = [replace(j, position=-0.5) if j.name == "rod" else j for j in slider_crank(angle=0.6).description.joints]
    model = Mechanism(replace(slider_crank().description, joints=joints))
    (name,) = model.inputs.names[:1]
    for varied, expected in (({name: np.linspace(0.0, 5.0, 8)}, 8), ({"phi": np.linspace(0.7, 1.2, 8)}, 0)):
        family = fl.sweep(model, varied)
        assert sum(r.kind == "moved" for i in range(8) for r in family[i].warnings) == expected
