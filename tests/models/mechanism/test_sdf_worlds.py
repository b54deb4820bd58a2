"""Worlds, included and nested models of SDFormat files; what is left out, and what is rejected with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.models.mechanism import Mechanism, Placement
from tests.models.mechanism.described import refused, written
from tests.models.mechanism.sdf_text import joint, link, load_sdf, model, parallelogram, world

PENDULUM = model(
    link("rod", mass=2.0, center="0 0 -0.5"), joint("pin", "revolute", "world", "rod", "0 1 0"), name="pendulum"
)


def place(mechanism: Mechanism, body: str) -> Placement:
    """Return where a body stands at the start."""
    names = [f"{body}.{c}" for c in "xyz"]
    model = mechanism.with_interface(outputs=names)
    values = model.evaluate(0.0, model.start.states, np.zeros(len(model.inputs))).outputs
    return Placement(tuple(values.tolist()))


def test_a_model_without_a_joint_to_the_world_floats_where_its_pose_says(tmp_path: Path) -> None:
    text = model("<pose>1 2 3 0 0 1.5707963267948966</pose>", link("box", "<pose>1 0 0 3.141592653589793 0 0</pose>"))
    box = load_sdf(tmp_path, text)
    assert len(box.states) == 13
    at = dict(zip(box.states.names, box.start.states.tolist(), strict=True))
    assert [at[f"floating_base.{c}"] for c in "xyz"] == pytest.approx([1, 3, 3], rel=1e-14)
    quaternion = np.array([at[f"floating_base.e{i}"] for i in range(4)])
    turned = Placement.from_rpy(rpy=(np.pi, 0, np.pi / 2)).R
    np.testing.assert_allclose(Placement.from_quaternion((0, 0, 0), quaternion).R, turned, atol=1e-14)
    assert box.evaluate(0.0, box.start.states, np.zeros(0)).derivatives[9] == pytest.approx(-9.81)


def test_a_world_has_several_models_and_its_gravity(tmp_path: Path) -> None:
    text = world(
        "<gravity>0 0 -2</gravity>",
        f"<model name='ball'>{link('body')}</model>",
        f"<model name='cube'>{link('body')}</model>",
        f"<model name='table'><static>true</static><pose>0 0 1 0 0 0</pose>{link('top')}</model>",
        "<model name='lamp'>",
        link("arm", center="0 0 -1", moments="0 0 0"),
        "</model>",
        joint("hook", "revolute", "table::top", "lamp::arm", "1 0 0", more="<pose/>"),
        version="1.11",
    )
    scene = load_sdf(tmp_path, text)
    assert scene.description.name == "scene"
    assert {"ball::floating_base.x", "cube::floating_base.e3", "hook.q"} <= set(scene.states.names)
    assert len(scene.states) == 13 + 13 + 2
    scene = scene.with_interface(outputs=["ball::body.az", "der(hook.v)"])
    assert fl.linearize(scene).A.shape == (26, 26)
    at = fl.operating_point(scene, {"hook.q": 0.1})
    outputs = scene.evaluate(0.0, at.states, np.zeros(1)).outputs
    np.testing.assert_allclose(outputs, [-2, -2 * np.sin(0.1)], rtol=1e-12)


def test_a_world_without_gravity_has_that_of_the_format(tmp_path: Path) -> None:
    assert load_sdf(tmp_path, world("<model name='a'>", link("b"), "</model>")).description.gravity == (0, 0, -9.8)


def test_included_models_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the variable of the environment, beside the file, and by a relative path; model.config names the newest."""
    library = tmp_path / "library" / "pendulum"
    library.mkdir(parents=True)
    written(library / "old.sdf", "<sdf version='1.4'/>")
    written(library / "new.sdf", PENDULUM)
    written(library / "model.config", "<model><sdf version='1.4'>old.sdf</sdf><sdf version='1.9'>new.sdf</sdf></model>")
    monkeypatch.setenv("SDF_PATH", str(tmp_path / "library"))
    include = "<include><uri>model://pendulum</uri><name>{}</name><pose>{} 0 0 0 0 0</pose></include>\n"
    scene = load_sdf(tmp_path, world(include.format("first", 1), include.format("second", 2)))
    assert scene.states.names == ("first::pin.q", "second::pin.q", "first::pin.v", "second::pin.v")
    assert place(scene, "second::rod").position == (2, 0, 0)
    monkeypatch.delenv("SDF_PATH")
    with pytest.raises(ModelError, match=r"robot.sdf', line 3: 'model://pendulum' is not found: name the folder"):
        load_sdf(tmp_path, world(include.format("first", 1)))
    beside = include.replace("model://pendulum", "library/pendulum/new.sdf")
    assert load_sdf(tmp_path, world(beside.format("it", 3))).states.names == ("it::pin.q", "it::pin.v")


def test_nested_models_frames_and_placement_frames(tmp_path: Path) -> None:
    """A model is placed by one of its frames, and joined by one that stands in another model."""
    inner = (
        "<model name='inner' placement_frame='grip'><pose relative_to='base'>1 0 0 0 0 0</pose>"
        "<frame name='grip' attached_to='bar'><pose>0 0 0.25 0 0 0</pose></frame>",
        link("bar", "<pose>5 6 7 0 0 0</pose>"),
        "</model>",
    )
    text = model(
        link("base", "<pose>0 0 3 0 0 0</pose>"),
        "<frame name='mark'><pose relative_to='inner::grip'>0 2 0 0 0 0</pose></frame>",
        *inner,
        joint("weld", "fixed", "world", "base"),
        joint("hinge", "revolute", "mark", "inner::grip", "0 1 0"),
        name="outer",
    )
    robot = load_sdf(tmp_path, text)
    assert place(robot, "inner::bar").position == pytest.approx((1, 0, 2.75), rel=1e-14)
    hinge = next(j for j in robot.description.joints if j.name == "hinge")
    assert (hinge.parent, hinge.child) == ("base", "inner::bar")  # 'mark' belongs to the model's first link
    assert hinge.placement.position == pytest.approx((1, 0, 0), rel=1e-14)


def test_a_merged_model_has_no_scope_of_its_own(tmp_path: Path) -> None:
    """It is placed by one of its frames as a nested one is, and its axes are those of its own frame."""
    arm = model(
        "<frame name='grip' attached_to='bar'><pose>0 0 0.25 0.2 0 0</pose></frame>",
        link("bar", "<pose>5 6 7 0 0.3 0</pose>", center="0 0 -1"),
        link("tip", "<pose relative_to='__model__'>5 6 6 0 0 0</pose>", center="0.1 0 -1"),
        joint("elbow", "revolute", "bar", "tip", "0 1 0").replace("<xyz>", "<xyz expressed_in='__model__'>"),
        name="arm",
    )
    written(tmp_path / "arm.sdf", arm)
    include = "<uri>arm.sdf</uri><placement_frame>grip</placement_frame><pose>1 2 3 0.4 0.5 0.6</pose></include>"
    merged = load_sdf(tmp_path, model(f"<include merge='true'>{include}", joint("pin", "ball", "world", "bar")))
    nested = load_sdf(tmp_path, model(f"<include>{include}", joint("pin", "ball", "world", "arm::bar")))
    np.testing.assert_allclose(place(merged, "tip").position, place(nested, "arm::tip").position, rtol=1e-14)
    random = np.random.default_rng(2)
    values = {name: float(random.uniform(-1, 1)) for name in merged.states.names}
    same = {name.replace("elbow", "arm::elbow"): value for name, value in values.items()}
    rates = []
    for mechanism, at, elbow in ((merged, values, "elbow"), (nested, same, "arm::elbow")):
        names = [f"der({elbow}.v)", "der(pin.wx)", "der(pin.wy)", "der(pin.wz)"]
        moving = mechanism.with_interface(outputs=names)
        x = np.array([at[name] for name in moving.states.names])
        rates.append(moving.evaluate(0.0, x, np.zeros(1)).outputs)
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-12)


def test_a_joint_may_be_called_as_a_link(tmp_path: Path) -> None:
    """SDFormat up to 1.6 allowed it."""
    text = model(
        link("rod", center="0 0 -1"),
        joint("rod", "revolute", "world", "rod", "0 1 0", more="<pose>0 0 0.5 0 0 0</pose>"),
    )
    (pin,) = load_sdf(tmp_path, text).description.joints
    assert (pin.name, pin.child, pin.child_placement.position) == ("rod", "rod", (0, 0, 0.5))


@pytest.mark.parametrize("version", ["1.5", "1.6"])
def test_older_versions_express_axes_in_the_model(version: str, tmp_path: Path) -> None:
    flag = "<use_parent_model_frame>1</use_parent_model_frame></axis>"
    arm = link("arm", "<pose>0 0 0 0 0 1.5707963267948966</pose>")
    pin = joint("pin", "revolute", "world", "arm", "1 0 0")
    old = load_sdf(tmp_path, model(arm, pin.replace("</axis>", flag), version=version))
    new = load_sdf(tmp_path, model(arm, pin, version=version))
    assert old.description.joints[0].axis == pytest.approx((0, -1, 0), abs=1e-15)
    assert new.description.joints[0].axis == (1, 0, 0)


def test_poses_in_degrees_and_as_quaternions(tmp_path: Path) -> None:
    degrees = "<pose degrees='true'>1 2 3 90 0 0</pose>"
    quaternion = "<pose rotation_format='quat_xyzw'>1 2 3 0.7071067811865476 0 0 0.7071067811865476</pose>"
    for pose in (degrees, quaternion):
        start = load_sdf(tmp_path, model(link("box", pose))).start.states
        np.testing.assert_allclose(start[:7], [1, 2, 3, 0.5**0.5, 0.5**0.5, 0, 0], rtol=1e-14, atol=1e-15)


def test_a_link_without_weight(tmp_path: Path) -> None:
    text = model(link("box").replace("<link name='box'>", "<link name='box'><gravity>false</gravity>"))
    box = load_sdf(tmp_path, text)
    assert not box.evaluate(0.0, box.start.states, np.zeros(0)).derivatives.any()


@pytest.mark.parametrize(
    ("part", "remark"),
    [
        ("<link name='b'/>", "SDFormat gives a link 1 kg and moments of inertia of 1 kg m2: b (line 4)."),
        ("<plugin filename='motor.so' name='m'/>", "The code of plugins is left out: motor.so (line 4 of 'robot.sdf')"),
        ("<gripper/>", "Left out: <gripper> of <model> (line 4 of 'robot.sdf')."),
        ("<fram name='f'/>", "Ignored, because SDFormat does not define it: <fram> of <model>"),
        ("<link name='b'><velocity_decay><linear>1</linear></velocity_decay></link>", "<velocity_decay> of 'b'"),
        ("<foo:bar/>", "<foo:bar> of <model> (line 4"),
    ],
)
def test_what_is_left_out_is_said(part: str, remark: str, tmp_path: Path) -> None:
    remarks = " ".join(load_sdf(tmp_path, model(link("a"), part)).description.remarks)
    assert remark in remarks


def test_friction_and_locked_joints_are_said(tmp_path: Path) -> None:
    pin = joint("pin", "revolute", "world", "a", "0 1 0", dynamics="<friction>2</friction>")
    pin = pin.replace("</axis>", "<limit><lower>0</lower><upper>0</upper></limit></axis>")
    first, second = load_sdf(tmp_path, model(link("a"), pin)).description.remarks
    assert first.startswith("The dry friction of pin is left out")
    assert second.startswith("Limits leave no motion to the joints pin")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("<link name='a'/>", "line 4: the name 'a' is used twice or reserved"),
        ("<joint name='j' type='piston'/>", "line 4: the joint 'j' is of the unknown type 'piston'; known are fixed"),
        (joint("j", "revolute", "a", "bb", "1 0 0"), "line 4: 'bb' is not a link, a frame, a joint or a model"),
        (joint("j", "revolute", "world", "a"), "line 4: the joint 'j' of the type 'revolute' has no <axis>"),
        (joint("j", "revolute", "world", "a", "0 0 0"), "line 4: the axis is zero"),
        (joint("j", "revolute", "a", "a", "1 0 0"), "line 4: the joint 'j' connects 'a' with itself"),
        (
            joint("j", "universal", "world", "a", "1 0 0"),
            "line 4: the joint 'j' of the type 'universal' has no <axis2>",
        ),
        ("<frame name='f'><pose relative_to='f'/></frame>" + joint("j", "ball", "world", "f"), "is relative to itself"),
        ("<link name='b'><inertial auto='true'/></link>", "line 4: <inertial auto='true'> needs a <collision>"),
        ("<link name='b'><kinematic>true</kinematic></link>", "line 4: the link 'b' is kinematic"),
        ("<link name='b'><pose>1 2 3</pose></link>", "line 4: <pose> holds six numbers, x y z roll pitch yaw, not 3"),
        ("<link name='b'><pose>1 2 x 0 0 0</pose></link>", "line 4: <pose> is not a number: 'x'"),
        ("<drake:tendon_constraint/>", "line 4: this constraint of Drake is not read: write a [[coupling]]"),
        ("<drake:ball_constraint/>", "line 4: <drake:ball_constraint> has no <drake:ball_constraint_body_A>"),
        ("<drake:joint name='j' type='curvilinear'/>", "line 4: the joint 'j' is of the type 'curvilinear'"),
        ("<include><uri>model://no_such_model</uri></include>", "line 4: 'model://no_such_model' is not found"),
        ("<include><uri>robot.sdf</uri></include>", "includes itself"),
        ("<include><uri>https://a.b/c</uri></include>", "is on another computer"),
        ("<joint name='g' type='gearbox'><parent>a</parent><child>a</child></joint>", "the gearbox 'g' needs <gearbox"),
    ],
)
def test_what_would_change_the_motion_is_rejected_with_its_line(part: str, message: str, tmp_path: Path) -> None:
    assert message in refused(tmp_path / "robot.sdf", model(link("a"), part))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot/>", "line 1: the root element of an SDFormat file is <sdf>, not <robot>"),
        ("<sdf version='1.3'/>", "line 1: its version '1.3' of SDFormat is not read, but 1.4 to 1.12 are"),
        ("<sdf version='1.9'/>", "line 1: there is no <model> or <world> in it"),
        ("<sdf version='1.9'><model name='a'/><model name='b'/></sdf>", "it has 0 worlds and 2 models"),
        ("<sdf version='1.9'><model name='a'/></sdf>", "there is no <link> in it"),
        ("<sdf version='1.9'>", "is not well-formed XML"),
    ],
)
def test_files_that_are_not_models(text: str, message: str, tmp_path: Path) -> None:
    assert message in refused(tmp_path / "robot.sdf", text)


LEVERS = (
    link("a"),
    link("b", "<pose>1 0 0 0 0 0</pose>"),
    joint("p", "revolute", "world", "a", "0 0 1"),
    joint("q", "revolute", "world", "b", "0 0 1"),
)
GEARBOX = "<joint name='g' type='gearbox'><parent>a</parent><child>b</child>"
GEARBOX += "<gearbox_reference_body>{}</gearbox_reference_body><axis><xyz>{}</xyz></axis>"
GEARBOX += "<axis2><xyz>0 0 1</xyz></axis2></joint>"
SPRING = "<spring_stiffness>1</spring_stiffness>"
PLANAR = "<drake:joint name='d' type='planar'><drake:parent>c</drake:parent><drake:child>a</drake:child>"
PLANAR += "<drake:damping>0 0 0</drake:damping></drake:joint>"


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            GEARBOX.format("world", "0 1 1"),
            "line 7: an axis of the gearbox 'g' is not parallel to that of the",
        ),
        (GEARBOX.format("a", "0 0 1"), "line 7: the gearbox 'g' needs a revolute joint between 'a' and"),
        (joint("r", "universal", "a", "b", "1 0 0", more="<axis2><xyz>1 1 0</xyz></axis2>"), "are not perpendicular"),
        (link("c") + PLANAR, "line 7: the child of the planar joint 'd' is nearer to the world than its parent"),
        (
            link("c")
            + joint("r", "ball", "a", "c").replace("</joint>", f"<axis><dynamics>{SPRING}</dynamics></axis></joint>"),
            "line 7: the spring of the ball 'r' is not read",
        ),
        (
            link("c") + joint("r", "ball", "a", "c", "0 0 1").replace("</axis>", "<mimic joint='p'/></axis>"),
            "line 7: the joint 'r' mimics 'p': both must be joints with one degree of freedom",
        ),
    ],
)
def test_couplings_and_loops_that_are_not_possible(part: str, message: str, tmp_path: Path) -> None:
    assert message in refused(tmp_path / "robot.sdf", model(*LEVERS, part.replace("\n", "")))


def test_springs_in_every_joint_of_a_loop_are_rejected(tmp_path: Path) -> None:
    """A spring belongs to a coordinate, which a joint that closes a loop does not have."""
    sprung = parallelogram(0.1).replace("<dynamics>", f"<dynamics>{SPRING}")
    assert "line 9: the joint 'd' closes a loop, as do others" in refused(tmp_path / "robot.sdf", sprung)


def test_only_what_floats_can_be_asked_to_float(tmp_path: Path) -> None:
    assert len(load_sdf(tmp_path, model(link("a")), floating_base=True).states) == 13
    with pytest.raises(ModelError, match="its joints connect everything with the world, so no base can float"):
        load_sdf(tmp_path, PENDULUM, floating_base=True)
