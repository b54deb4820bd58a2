"""Rotors, actuators, tendons and cams: closed forms, exact slopes against differences, files, and bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.fmi.write import build_fmu
from fmilin.models.mechanism import (
    Actuator,
    Body,
    Coupling,
    Joint,
    JointForce,
    Mechanism,
    MechanismDescription,
    Placement,
    Sensor,
    Skate,
    Tendon,
)
from fmilin.testing import check_model
from tests.models.mechanism.toml_text import toml_text

ROD = (0.01, 0.02, 0.03)
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def slider(*inputs: Any, mass: float = 2.0, **more: Any) -> Mechanism:
    """Return a mass on a horizontal slide."""
    slide = Joint("s", "prismatic", "ground", "block", axis=(1, 0, 0), **more.pop("joint", {}))
    return Mechanism(
        MechanismDescription("slider", [Body("block", mass, (0, 0, 0), ROD)], [slide], inputs=inputs, **more)
    )


def everything(**more: Any) -> MechanismDescription:
    """Return three links in space and one on a ball, with every kind of drive."""
    bodies = [Body(name, 1.0 + i, (0.2, 0.05, 0.1), ROD, gravity_compensation=0.3 * i) for i, name in enumerate("abcd")]
    joints = [
        Joint("ja", "revolute", "ground", "a", axis=(0, 1, 0), position=0.3, velocity=0.4, armature=0.2, damping=0.1),
        Joint("jb", "prismatic", "a", "b", Placement((0.4, 0, 0)), axis=(1, 0.3, 0), position=0.2, velocity=-0.3),
        Joint("jc", "revolute", "b", "c", Placement((0.3, 0, 0)), axis=(0, 0.2, 1), position=-0.2, velocity=0.6,
              drive_limits=(-60, 60)),
        Joint("jd", "spherical", "c", "d", Placement((0.1, 0.2, 0)), position=(0.7, 0.1, -0.5, 0.5),
              velocity=(0.3, -0.2, 0.1), armature=(0.1, 0.2, 0.3)),
    ]  # fmt: skip
    tendons = [
        Tendon("over", joints=("ja", "jc"), factors=(0.5, -0.2), stiffness=30, damping=2, rest=0.1),
        Tendon("along", bodies=("ground", "b", "c", "d"), points=((0, 0, 1), (0, 0.1, 0.2), (0.1, 0, 0.3), (0.2, 0, 0)),
               weights=(1, 0, 0.5), stiffness=20, damping=1.5, rest=(0.2, 0.3)),
    ]  # fmt: skip
    drives = [
        Actuator("servo", joint="jc", gear=2.0, gain=(50, 0, 0), bias=(1, -50, -5), start=0.1, control_limits=(-1, 1)),
        Actuator("filter", joint="jb", gain=(3, 1, 0.5), dynamics="filter", time_constant=0.2, activation=0.7,
                 start=0.2),
        Actuator("speed", tendon="along", gear=1.5, gain=(9, 0, 0), bias=(0, -9, 0), dynamics="integrator", start=0.3),
        Actuator("jet", body="d", gear=(1, 0, 0.5, 0.1, 0.2, 0), bias=(0, 0, -0.5),
                 placement=Placement.from_rpy((0, 0.1, 0), (0.2, 0.3, 0)), force_limits=(-9, 9), start=2.0),
        Actuator("wrist", joint="jd", gear=(1, 2, 0.5), bias=(0, 0, -0.2), start=0.4),
    ]  # fmt: skip
    sensors = [
        Sensor("length", "distance", "along"),
        Sensor("rate", "distance_rate", "along"),
        Sensor("over", "distance", "over"),
        Sensor("reach", "distance", "speed"),
        Sensor("pull", "actuator_force", "speed"),
        Sensor("hold", "actuator_force", "servo"),
        Sensor("torque", "joint_force", "jc"),
        Sensor("energy", "energy"),
        Sensor("drive", "joint_drive", "jc"),
        Sensor("twice", "joint_velocity", "ja", factor=2.0),
        *(Sensor(f"e{k}", "orientation", "d", coordinate=k, factor=-1.0) for k in range(4)),
        *(Sensor(f"v{k}", "velocimeter", "d", (0.1, 0, 0.2), axis) for k, axis in enumerate(AXES)),
        *(Sensor(f"f{k}", "specific_force", "c", (0.1, 0, 0.2), axis) for k, axis in enumerate(AXES)),
    ]
    return MechanismDescription("everything", bodies, joints, inputs=drives, tendons=tendons, sensors=sensors, **more)


def test_a_rotor_behind_a_gear_is_felt() -> None:
    model = slider(Actuator("motor", joint="s", gear=3.0), joint={"armature": 0.5})
    lin = fl.linearize(model)
    assert lin.B[1, 0] == pytest.approx(3.0 / 2.5, rel=1e-14)
    x = np.array([0.0, 4.0])
    energy = model.with_interface(outputs=["kinetic_energy"]).evaluate(0.0, x, np.zeros(1)).outputs[0]
    assert energy == pytest.approx(2.5 * 16 / 2, rel=1e-14)


def test_a_position_servo_and_a_filter_before_it() -> None:
    """x'' = (k (a - x) - d x') / m and a' = (u - a) / T."""
    servo = Actuator("aim", joint="s", gain=(50, 0, 0), bias=(0, -50, -3), dynamics="filter", time_constant=0.1)
    lin = fl.linearize(slider(servo))
    assert lin.states.names == ("s.q", "s.v", "aim.act")
    assert pytest.approx(np.array([[0, 1, 0], [-25, -1.5, 25], [0, 0, -10]]), abs=1e-12) == lin.A
    assert pytest.approx(np.array([[0], [0], [10]]), abs=1e-12) == lin.B


def test_a_tendon_between_two_points_is_a_spring() -> None:
    """At right angles, a spring of length L stretched by e pulls back with k e / L for each metre."""
    string = Tendon("string", bodies=("ground", "block"), points=((0, 0, 2), (0, 0, 0)), stiffness=30, rest=1.5)
    lin = fl.linearize(slider(tendons=[string]))
    assert lin.A[1, 0] == pytest.approx(-30 * 0.5 / 2.0 / 2.0, rel=1e-12)
    slack = Tendon("string", bodies=("ground", "block"), points=((0, 0, 2), (0, 0, 0)), stiffness=30, rest=(1.5, 3))
    assert fl.linearize(slider(tendons=[slack])).A[1, 0] == 0


def test_all_drives_together_have_exact_slopes() -> None:
    model = Mechanism(everything())
    check_model(model)
    exact = fl.linearize(model)
    measured = fl.linearize(model, derivatives="differences")
    for name in "ABCD":
        sizes = np.abs(getattr(exact, name)).max(axis=1, keepdims=True, initial=1e-3)
        assert np.abs(getattr(exact, name) - getattr(measured, name)).max() < 1e-7 * sizes.max(), name
    stack = model.matrices_along([model.start] * 2, independent=exact.states.names)
    order = [list(stack.independent).index(i) for i in map(model.states.index_of, exact.states.names)]
    assert pytest.approx(exact.A, rel=1e-11, abs=1e-11) == stack.A[0][np.ix_(order, order)]
    compiled = model.matrices_along([model.start] * 2, independent=exact.states.names, compiled=True)
    for name in "ABCD":
        assert pytest.approx(getattr(stack, name), rel=1e-10, abs=1e-10) == getattr(compiled, name)


def test_energy_is_kept_without_dampers_and_controls() -> None:
    d = everything()
    free = MechanismDescription(
        "free", d.bodies,
        [Joint(j.name, j.type, j.parent, j.child, j.placement, axis=j.axis, position=j.position, velocity=j.velocity,
               armature=j.armature) for j in d.joints],
        tendons=[Tendon(t.name, t.joints, t.factors, t.bodies, t.points, t.weights, t.stiffness, 0.0, t.rest)
                 for t in d.tendons],
    )  # fmt: skip
    model = Mechanism(free).with_interface(outputs=["energy"])
    start = model.start
    rates = model.evaluate(0.0, start.states, start.inputs).derivatives
    along = model.products(0.0, start.states, start.inputs, rates[:, None], np.zeros((0, 1)))
    assert along is not None
    power = np.abs(model.states.starts).max() * 20
    assert abs(along.outputs[0, 0]) < 1e-12 * power


def test_compiled_equations_are_the_same() -> None:
    graph = fl.to_casadi(Mechanism(everything()))
    model = Mechanism(everything())
    x, u = model.start.states, model.start.inputs
    for inputs in (u, u + np.array([2.0, 0, 0, 30.0, 0])):  # also beyond limits
        found = graph.f(x, inputs, 0.0)
        assert np.array(found).ravel() == pytest.approx(model.evaluate(0.0, x, inputs).derivatives, rel=1e-10)


def test_orientations_are_those_of_the_body() -> None:
    """The quaternion of the last body turns its axes as the directions say, and has unit length."""
    sensors = [
        *(Sensor(f"e{k}", "orientation", "d", coordinate=k) for k in range(4)),
        *(Sensor(f"r{i}{k}", "direction", "d", axis=a, pointer=p) for i, a in enumerate(AXES)
          for k, p in enumerate(AXES)),
    ]  # fmt: skip
    d = everything()
    model = Mechanism(MechanismDescription("turned", d.bodies, d.joints, sensors=sensors))
    values = model.evaluate(0.0, model.start.states, model.start.inputs).outputs
    w, x, y, z = values[:4]
    first = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]
    assert np.linalg.norm(values[:4]) == pytest.approx(1, rel=1e-14)
    assert values[4:7] == pytest.approx(first, abs=1e-14)


def test_a_body_that_is_carried_does_not_fall() -> None:
    joint = Joint("z", "prismatic", "ground", "b")
    model = Mechanism(MechanismDescription("lift", [Body("b", 2.0, gravity_compensation=0.25)], [joint]))
    assert model.evaluate(0.0, np.zeros(2), np.zeros(0)).derivatives[1] == pytest.approx(-0.75 * 9.81, rel=1e-14)


def cam(powers: tuple[float, ...]) -> Mechanism:
    """Return a mass that a turning disk lifts: height = 0.1 + 0.2 angle + powers of it."""
    bodies = [Body("disk", 1.0, (0, 0, 0), (0.5, 0.5, 0.5)), Body("valve", 2.0)]
    joints = [
        Joint("turn", "revolute", "ground", "disk", velocity=0.7, position=0.3),
        Joint("lift", "prismatic", "ground", "valve", axis=(0, 0, 1)),
    ]
    return Mechanism(
        MechanismDescription("cam", bodies, joints, couplings=[Coupling("cam", "lift", "turn", 0.2, 0.1, powers)])
    )


def test_a_cam_moves_as_its_equation_says() -> None:
    """(J + m h'^2) a'' + m h' h'' a'^2 = -m g h', h the lift over the angle."""
    a, v, J, m, g = 0.3, 0.7, 0.5, 2.0, 9.81
    h = np.polynomial.Polynomial([0.1, 0.2, 0.4, -0.3, 0.2])
    model = cam((0.4, -0.3, 0.2))
    point = fl.operating_point(model, {"turn.q": a, "turn.v": v}, project=True)
    s = point.states[model.states.index_of("turn.q")]
    w = point.states[model.states.index_of("turn.v")]
    d1, d2, d3 = (float(h.deriv(k)(s)) for k in (1, 2, 3))
    inertia = J + m * d1**2
    force = -m * g * d1 - m * d1 * d2 * w**2
    rate = model.evaluate(0.0, point.states, point.inputs).derivatives
    assert rate[model.states.index_of("turn.v")] == pytest.approx(force / inertia, rel=1e-12)
    lin = fl.linearize(model, point, independent=["turn.q", "turn.v"])
    by_angle = (-m * g * d2 - m * (d2 * d2 + d1 * d3) * w**2 - force / inertia * 2 * m * d1 * d2) / inertia
    assert lin.A[1] == pytest.approx([by_angle, -2 * m * d1 * d2 * w / inertia], rel=1e-10)
    check_model(model)


def test_a_joint_without_a_leader_is_held() -> None:
    bodies, joint = [Body("b", 1.0)], [Joint("j", "prismatic", "ground", "b", position=0.25)]
    model = Mechanism(MechanismDescription("held", bodies, joint, couplings=[Coupling("hold", "j", offset=0.25)]))
    assert len(fl.linearize(model).states) == 0


def test_a_control_at_its_limit_has_its_inner_side(capfd: pytest.CaptureFixture[str]) -> None:
    model = slider(Actuator("push", joint="s", gain=(4, 0, 0), control_limits=(0, 1), force_limits=(-9, 9)))
    for value, slope in ((0.0, 2.0), (1.0, 2.0), (0.5, 2.0), (1.5, 0.0)):
        lin = fl.linearize(model, fl.operating_point(model, {"push": value}))
        assert lin.B[1, 0] == pytest.approx(slope)
        said = " ".join(map(str, lin.warnings))
        assert ("are valid for inward changes: push" in said) == (value in (0.0, 1.0))
        assert ("outside their range and have no effect: push" in said) == (value > 1)


def test_forces_at_their_limits_are_named() -> None:
    servo = Actuator("aim", joint="s", gain=(50, 0, 0), bias=(0, -50, 0), force_limits=(-10, 10), start=1.0)
    model = slider(servo)
    lin = fl.linearize(model)
    assert not lin.B.any()
    assert any("saturated" in str(w) and "aim (force 10)" in str(w) for w in lin.warnings)
    limited = slider(Actuator("push", joint="s", start=30.0), joint={"drive_limits": (-20, 20)})
    found = fl.linearize(limited)
    assert not found.B.any()
    assert any("the joint s (force 20)" in str(w) for w in found.warnings)


def test_a_sensor_shows_no_more_than_its_range() -> None:
    sensors = [Sensor("far", "joint_position", "s", factor=2.0, limits=(-1, 1)), Sensor("free", "joint_position", "s")]
    model = slider(Actuator("push", joint="s"), sensors=sensors)
    for position, shown, slope in ((0.3, 0.6, 2.0), (0.49, 0.98, 2.0), (0.8, 1.0, 0.0), (-3.0, -1.0, 0.0)):
        point = fl.operating_point(model, {"s.q": position})
        lin = fl.linearize(model, point)
        assert list(lin.point.outputs.values()) == pytest.approx([shown, position])
        assert pytest.approx(np.array([[slope, 0.0], [1.0, 0.0]])) == lin.C
        said = [str(w) for w in lin.warnings if "end of their range: far." in str(w)]
        assert len(said) == (abs(position) > 0.5)
        many = fl.sweep(model, {"s.q": [position, position + 0.01]})
        assert many.C[0] == pytest.approx(lin.C)


def test_the_range_of_a_sensor_is_in_compiled_code(tmp_path: Path) -> None:
    model = slider(Actuator("push", joint="s"), sensors=[Sensor("far", "joint_position", "s", limits=(-1, 1))])
    with fl.load(build_fmu(model, tmp_path / "slider.fmu")) as fmu:
        for position, slope in ((0.7, 1.0), (1.3, 0.0)):
            lin = fl.linearize(fmu, fl.operating_point(fmu, {"s.q": position}))
            assert [lin.point.outputs["far"], lin.C[0, 0]] == pytest.approx([min(position, 1.0), slope])


def test_a_description_survives_its_file(tmp_path: Path) -> None:
    (tmp_path / "all.toml").write_text(toml_text(everything()))
    again = Mechanism.from_toml(tmp_path / "all.toml")
    same = Mechanism(everything())
    x, u = same.start.states, same.start.inputs
    assert again.states.names == same.states.names
    assert again.evaluate(0.0, x, u).derivatives == pytest.approx(same.evaluate(0.0, x, u).derivatives, rel=1e-13)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tendon("t"), "The tendon 't' runs over 'joints' or along points of 'bodies'"),
        (lambda: Tendon("t", joints=("s",), factors=(1, 2)), "'factors' of the tendon 't' must be 1"),
        (lambda: Tendon("t", bodies=("ground",), points=((0, 0, 0),)), "needs a point on each of its bodies, and two"),
        (lambda: Tendon("t", joints=("s",), factors=(1,), rest=(2, 1)), "'rest' of the tendon 't' ends before"),
        (lambda: Actuator("a"), "The actuator 'a' drives a 'joint', a 'tendon' or a 'body': give one"),
        (lambda: Actuator("a", joint="s", dynamics="filter"), "time constant of the actuator 'a' must be positive"),
        (lambda: Actuator("a", body="block"), "needs six numbers in 'gear'"),
        (lambda: Actuator("a", joint="s", control_limits=(1, 0)), "'control_limits' of the actuator 'a' must be two"),
        (lambda: Joint("j", "revolute", "ground", "b", armature=-1), "The armature of the joint 'j' is an inertia"),
        (lambda: Joint("j", "revolute", "ground", "b", drive_limits=(1, 0)), "'drive_limits' of the joint 'j' must"),
        (lambda: JointForce("f", "s", start=np.inf), "The start of the joint force 'f' must be a finite"),
        (lambda: JointForce("f", "s", start=None), "The start of the joint force 'f' must be a finite"),  # type: ignore[arg-type]
        (lambda: Skate("k", "b", direction=(1, 2, np.nan)), "The direction of the skate 'k' must be three finite"),
        (lambda: Coupling("c", "j", powers=(1,)), "The coupling 'c' has 'powers' but no leader"),
        (lambda: slider(Actuator("a", joint="t")), "In the actuator 'a': 't' is not a joint"),
        (lambda: slider(Actuator("a", tendon="t")), "In the actuator 'a': 't' is not a tendon"),
        (lambda: slider(Actuator("a", joint="s", gear=(1, 2))), "'gear' has 2 numbers for 1 speeds of 's'"),
        (lambda: slider(tendons=[Tendon("t", joints=("q",), factors=(1,))]), "In the tendon 't': 'q' is not a joint"),
    ],
)  # fmt: skip
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()
