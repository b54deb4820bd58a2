"""Mechanisms as models: the same numbers as other formulations, outputs, redundant loops, singular configurations."""

from __future__ import annotations

from dataclasses import replace
from math import pi
from typing import Literal

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint, OperatingPoint
from fmilin.errors import ConstraintError, ModelError, UnknownNameError, UsageError
from fmilin.models import NullSpaceModel
from fmilin.models.mechanism import Body, Joint, Loop, Mechanism, MechanismDescription, Placement, Sensor, Wheel
from fmilin.systems import five_bar, four_bar, rolling_disk
from tests.models.mechanism.builders import everything, five_bar_chain, four_bar_pins

PHI = 2.234331019017586
PAIR = 2.147676638502278


def test_the_five_bar_moves_as_lagrange_says() -> None:
    mechanism, other = Mechanism(five_bar_chain()), five_bar()
    point = fl.operating_point(other, {"q1": 2.2, "q2": 2.0, "v1": 0.3, "v4": -0.7})
    u = np.array([0.3, -1.2])
    mine, theirs = (m.evaluate(0.0, point.states, u) for m in (mechanism, other))
    assert np.abs(mine.derivatives - theirs.derivatives).max() < 1e-12
    assert np.abs(mine.outputs - theirs.outputs).max() < 1e-12
    assert np.abs(mine.residuals).max() < 1e-14


def test_the_five_bar_at_its_singular_configuration_moves_with_the_least_norm() -> None:
    mechanism = Mechanism(five_bar_chain((pi, 0.0, pi, 0.0)))
    other = NullSpaceModel(five_bar(singular=True))
    mine, theirs = (m.evaluate(0.0, other.start.states, other.start.inputs) for m in (mechanism, other))
    assert np.abs(mine.derivatives - theirs.derivatives).max() < 1e-12
    batch = mechanism.evaluate(0.0, np.stack([mechanism.start.states] * 2), mechanism.start.inputs)
    assert np.abs(batch.derivatives - mine.derivatives).max() < 1e-12


def test_the_four_bar_has_the_frequency_of_its_cartesian_formulation() -> None:
    lin = fl.linearize(Mechanism(four_bar_pins(PHI)))
    assert abs(abs(lin.eigenvalues()[1].imag) - PAIR) < 1e-12
    theirs = fl.linearize(four_bar())
    assert np.abs(np.sort_complex(lin.eigenvalues()) - np.sort_complex(theirs.eigenvalues())).max() < 1e-12


def test_a_planar_loop_has_three_constraints_that_hold_by_themselves() -> None:
    mechanism = Mechanism(four_bar_pins(PHI))
    assert len(mechanism.independence.vanishing) == 3
    assert mechanism.constraints.names == ("cut[1]", "cut[2]", "rate of cut[1]", "rate of cut[2]")
    assert "3 of the 5 constraints are satisfied identically (in cut)" in mechanism.notes[0]


def parallelogram(extra: bool) -> MechanismDescription:
    """Return a parallelogram with, or without, a third crank that adds nothing to its freedoms."""
    d = four_bar_pins(1.0)
    coupler = d.bodies[1]
    if not extra:
        return replace(d, springs=())
    middle = Body("middle", 1.0, (0.5, 0, 0), (0, 1 / 12, 1 / 12))
    joint = Joint("pin2", "revolute", "ground", "middle", Placement((0.5, 0, 0)), position=1.0)
    half = Loop("half", "revolute", "coupler", "middle", Placement((0.5, 0, 0)), Placement((1, 0, 0)))
    assert coupler.name == "coupler"
    return replace(d, springs=(), bodies=[*d.bodies, middle], joints=[*d.joints, joint], loops=[*d.loops, half])


def test_a_loop_too_many_is_reported_and_does_no_harm() -> None:
    mechanism = Mechanism(parallelogram(extra=True))
    assert "1 of the 10 constraints are redundant" in mechanism.notes[1]
    lin = fl.linearize(mechanism)
    assert lin.A.shape == (2, 2)
    phi = 1.0  # (sum of J + m l^2 of the coupler) phi'' = -weight: 3 cranks of 1/3, the coupler of 1
    expected = 9.81 * np.sin(phi) * (3 * 0.5 + 1) / (3 / 3 + 1)
    assert lin.A[1, 0] == pytest.approx(expected, rel=1e-12)
    assert any("redundant" in w.message for w in lin.warnings)
    with pytest.raises(ModelError, match=r"'half.reaction\[1\]' is not determined"):
        mechanism.with_interface(outputs=["half.reaction[1]"])
    values = mechanism.reactions()
    assert np.isnan(values["half.reaction[1]"])


def test_reactions_of_a_statically_determinate_loop() -> None:
    d = replace(parallelogram(extra=False), loops=[replace(four_bar_pins(1.0).loops[0], type="spherical")])
    mechanism = Mechanism(d)
    point = mechanism.start
    reactions = mechanism.reactions(point)
    # Rocker: J phi'' = -m g cos(phi)/2 + moment of the pin force about its support; the pin pushes it with -lambda.
    acceleration = mechanism.evaluate(0.0, point.states, point.inputs).derivatives[4]
    x, y = np.cos(1.0), np.sin(1.0)
    push = -np.array([reactions["cut.reaction[1]"], reactions["cut.reaction[2]"]])
    moment = x * push[1] - y * push[0]
    assert moment - 9.81 * x / 2 == pytest.approx(acceleration / 3, rel=1e-12)


def rolling(speed: float) -> Mechanism:
    """Return a disk of 1 m and 1 kg that rolls along x: yaw, lean and spin are coordinates of their own."""
    bodies = [Body("heading", None), Body("height", None), Body("disk", 1.0, inertia=(1 / 4, 1 / 2, 1 / 4))]
    joints = [
        Joint("over", "planar", "ground", "heading", velocity=(speed, 0, 0)),
        Joint("up", "prismatic", "heading", "height", position=1.0),
        Joint("hub", "universal", "height", "disk", axis=(1, 0, 0), second_axis=(0, 1, 0), velocity=(0, speed)),
    ]
    rim = Wheel("rim", "disk", radius=1.0)
    return Mechanism(MechanismDescription("disk", bodies, joints, wheels=[rim]))


def test_the_rolling_disk_of_another_formulation() -> None:
    speed = 1.3
    mechanism = rolling(speed)
    lin = fl.linearize(mechanism)
    assert lin.A.shape == (8, 8)  # 6 - 1 positions, 6 - 3 velocities
    growth = np.sqrt(4 / 5 * 9.81 - 12 / 5 * speed**2)  # Peterson et al.
    assert np.max(lin.eigenvalues().real) == pytest.approx(growth, rel=1e-7)
    assert np.abs(lin.A - fl.linearize(mechanism, independent=lin.states.names).A).max() < 1e-12
    assert np.max(fl.linearize(rolling_disk(speed=speed, gravity=9.81)).eigenvalues().real) == pytest.approx(
        growth, rel=1e-6
    )


def test_a_ball_rolls_at_five_sevenths() -> None:
    ball = Body("ball", 2.0, inertia=(0.8 * 0.09,) * 3)
    joint = Joint("float", "free", "ground", "ball", position=(0, 0, 0.3, 1, 0, 0, 0))
    slope = 0.2
    mechanism = Mechanism(
        MechanismDescription(
            "ball",
            [ball],
            [joint],
            wheels=[Wheel("skin", "ball", tube=0.3)],
            gravity=(9.81 * np.sin(slope), 0, -9.81 * np.cos(slope)),
            sensors=[Sensor("a", "acceleration", "ball"), Sensor("load", "reaction", "skin")],
        )
    )
    seen = mechanism.evaluate(0.0, mechanism.start.states, mechanism.start.inputs).outputs
    assert seen[0] == pytest.approx(5 / 7 * 9.81 * np.sin(slope), rel=1e-13)
    assert -seen[1] == pytest.approx(2 * 9.81 * np.cos(slope), rel=1e-13)


def test_a_helical_loop_turns_its_nut() -> None:
    """A nut that cannot turn on a screw that cannot slide: the screw's virtual link counts its turns."""
    bodies = [Body("screw", 1.0, inertia=(0.1, 0.1, 0.2)), Body("nut", 3.0, inertia=(1, 1, 1))]
    joints = [Joint("bearing", "revolute", "ground", "screw"), Joint("rail", "prismatic", "ground", "nut")]
    d = MechanismDescription(
        "spindle", bodies, joints, [Loop("thread", "helical", "screw", "nut", pitch=0.01)], gravity=(0, 0, -9.81)
    )
    mechanism = Mechanism(d)
    rates = mechanism.evaluate(0.0, mechanism.start.states, mechanism.start.inputs).derivatives
    a = dict(zip(mechanism.states.names, rates, strict=True))["rail.v"]
    # z = pitch (nut's angle relative to the screw) = -pitch alpha: (m + J / pitch^2) z'' = -m g
    assert a == pytest.approx(-3 * 9.81 / (3 + 0.2 / 0.01**2), rel=1e-10)


def test_outputs_of_every_kind_have_exact_derivatives() -> None:
    mechanism = Mechanism(everything(closed=False))
    lin = fl.linearize(mechanism)  # each column is checked against differences there
    assert lin.method.derivatives == "exact"
    own = fl.linearize(mechanism, independent=lin.states.names)
    for name in "ABCD":
        mine, theirs = getattr(own, name), getattr(lin, name)
        assert np.abs(mine - theirs).max() <= 1e-12 * np.abs(theirs).max()


def test_everything_has_names_and_units() -> None:
    mechanism = Mechanism(everything())
    assert mechanism.states.names[:3] == ("j0.q", "j1.q1", "j1.q2")
    assert dict(zip(mechanism.states.names, mechanism.states.units, strict=True))["j2.vz"] == "m/s"
    chosen = mechanism.with_interface(inputs=["u3", "u1"], outputs=["der(j0.v)", "b5.az", "p1.length", "u1", "energy"])
    assert chosen.inputs.names == ("u3", "u1")
    assert chosen.outputs.units == ("rad/s2", "m/s2", "m", "N.m", "J")
    x = mechanism.start.states
    whole = mechanism.evaluate(0.0, x, mechanism.start.inputs)
    part = chosen.evaluate(0.0, x, chosen.start.inputs)
    assert np.abs(whole.derivatives - part.derivatives).max() == 0.0
    with pytest.raises(UnknownNameError, match=r"Did you mean 'b5\.az'"):
        mechanism.with_interface(outputs=["b5.aze"])


def test_a_batch_of_evaluations() -> None:
    mechanism = Mechanism(five_bar_chain())
    point = mechanism.start
    x = point.states + 0.1 * np.random.default_rng(0).normal(size=(4, 8))
    u = np.random.default_rng(1).normal(size=(4, 2))
    whole = mechanism.evaluate(0.0, x, u)
    for i in range(4):
        one = mechanism.evaluate(0.0, x[i], u[i])
        for part in ("derivatives", "outputs", "residuals"):
            assert np.abs(getattr(whole, part)[i] - getattr(one, part)).max() < 1e-11


@pytest.mark.parametrize("shape", [(), (3,)])
def test_residuals_alone_are_those_of_an_evaluation(shape: tuple[int, ...]) -> None:
    mechanism = Mechanism(everything())
    x = mechanism.start.states + 0.1 * np.random.default_rng(0).normal(size=(*shape, len(mechanism.states)))
    u = np.broadcast_to(mechanism.start.inputs, (*shape, len(mechanism.inputs)))
    whole = mechanism.evaluate(0.0, x, u).residuals
    assert whole.shape[-1] > 20
    alone = mechanism.constraint_residuals(0.0, x, u)
    assert alone is not None
    np.testing.assert_allclose(alone, whole, rtol=1e-12, atol=1e-12)


def test_residuals_alone_where_a_constraint_observes_accelerations() -> None:
    mechanism = Mechanism(five_bar_chain()).with_interface(outputs=[])
    name = mechanism.description.bodies[0].name
    observing = mechanism.with_constraints([Constraint.from_text(f"{name}.ax - 1", level="velocity")])
    x, u = observing.start.states + 0.1, observing.start.inputs
    assert observing.constraint_residuals(0.0, x, u) is None
    assert (
        observing.evaluate(0.0, x, u).residuals
        == observing.with_interface(outputs=[f"{name}.ax"]).evaluate(0.0, x, u).outputs - 1
    )


def test_the_trim_of_a_four_bar() -> None:
    mechanism = Mechanism(four_bar_pins(2.0))
    point = fl.trim(mechanism)
    assert point.states[0] == pytest.approx(PHI, abs=1e-9)


def test_points_off_the_manifold_and_wrong_choices_are_refused() -> None:
    mechanism = Mechanism(five_bar_chain())
    off = OperatingPoint(0.0, mechanism.start.states + 0.1, mechanism.start.inputs)
    with pytest.raises(ConstraintError, match=r"'support\[1\]' is .* instead of 0"):
        fl.linearize(mechanism, off)
    with pytest.raises(UsageError, match=r"1 independent coordinates were named.* has 4 \(or 2 positions\)"):
        fl.linearize(mechanism, independent=["q1"])
    with pytest.raises(UnknownNameError):
        fl.linearize(mechanism, independent=["q1", "q9"])


def test_parameters_are_changed_by_name() -> None:
    mechanism = Mechanism(four_bar_pins(PHI))
    assert mechanism.parameters["spring.stiffness"] == 25.0
    assert "cut.length" not in mechanism.parameters
    heavy = mechanism.with_parameters({"coupler.mass": 2.0, "gravity.y": -3.0, "pin0.damping": 0.5})
    assert heavy.parameters["coupler.mass"] == 2.0
    energies = [m.with_interface(outputs=["potential_energy"]) for m in (mechanism, heavy)]
    first, second = (m.evaluate(0.0, m.start.states, m.start.inputs).outputs[0] for m in energies)
    y = np.sin(PHI)
    assert second - first == pytest.approx((2 * y / 2 + 2 * y) * 3.0 - (2 * y / 2 + y) * 9.81, rel=1e-12)
    with pytest.raises(UnknownNameError, match=r"Did you mean 'coupler\.mass'"):
        mechanism.with_parameters({"coupler.masss": 1.0})
    with pytest.raises(ModelError, match="must be positive"):
        mechanism.with_parameters({"coupler.mass": -1.0})


def test_nothing_that_can_move() -> None:
    block = Mechanism(
        MechanismDescription("m", [Body("b", 1.0)], [Joint("j", "fixed", "ground", "b", Placement((0, 0, 2)))])
    )
    linear = fl.linearize(block, outputs=["b.z"])
    assert (linear.A.shape, linear.C.shape, linear.point.outputs) == ((0, 0), (1, 0), {"b.z": 2.0})
    assert "All joints are fixed, so nothing can move: the model has no states" in str(linear.warnings[0])


def test_a_freedom_without_mass_is_named() -> None:
    bodies = [Body("arm", 1.0, (1, 0, 0)), Body("tip", None)]
    joints = [Joint("pin", "revolute", "ground", "arm"), Joint("idle", "revolute", "arm", "tip")]
    with pytest.raises(ModelError, match="joint 'idle' moves no mass"):
        Mechanism(MechanismDescription("m", bodies, joints))


def strut(
    inertia: tuple[float, float, float], kind: Literal["spherical", "universal"] = "spherical"
) -> MechanismDescription:
    """A crank whose pin carries a strut, a ball at its other end, to a slider; the loop is closed as it is given."""
    a = -np.arcsin(0.4 * np.sin(0.5)) - 0.5
    turned = (np.cos(a / 2), 0.0, 0.0, np.sin(a / 2)) if kind == "spherical" else (a, 0.0)
    bodies = [
        Body("crank", 1.0, (0.2, 0, 0), (0.01, 0.01, 0.01)),
        Body("strut", 0.5, (0.5, 0, 0), inertia),
        Body("slider", 1.0),
    ]
    joints = [
        Joint("pin", "revolute", "ground", "crank", position=0.5),
        Joint("ball", kind, "crank", "strut", Placement((0.4, 0, 0)), second_axis=(0, 1, 0), position=turned),
        Joint("rail", "prismatic", "ground", "slider", axis=(1, 0, 0), position=0.4 * np.cos(0.5) + np.cos(0.5 + a)),
    ]
    loops = [Loop("eye", "spherical", "strut", "slider", Placement((1, 0, 0)))]
    return MechanismDescription("engine", bodies, joints, loops=loops, gravity=(0, -9.81, 0))


def test_a_strut_without_inertia_about_its_line_wants_a_universal_joint() -> None:
    with pytest.raises(ModelError, match=r"body 'strut' lacks inertia about one axis, \(1, 0, 0\) in the frame of the "
                       r"spherical joint 'ball'.*use a universal joint there"):  # fmt: skip
        Mechanism(strut((0.0, 0.04, 0.04)))
    thin = fl.linearize(Mechanism(strut((0.0, 0.04, 0.04), "universal")), independent=["pin.q", "pin.v"])
    thick = fl.linearize(Mechanism(strut((1e-3, 0.04, 0.04))), independent=["pin.q", "ball.e1", "pin.v", "ball.wx"])
    np.testing.assert_allclose(thick.A[2, 0], thin.A[1, 0], rtol=1e-6)
