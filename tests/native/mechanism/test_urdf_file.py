"""Mechanisms from URDF files: the tree, what a TOML file adds, and what is wrong with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.ground.errors import ModelError
from fmilin.native.mechanism import Body, Joint, JointForce, Loop, Mechanism, Placement, Sensor
from fmilin.native.mechanism.files import read_mechanism_file

ARM = """\
<?xml version="1.0"?>
<robot name="arm">
  <material name="steel"><color rgba="1 0 0 1"/></material>
  <link name="base">
    <visual><geometry><box size="1 1 1"/></geometry></visual>
  </link>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 0.5" rpy="0 0 1.5707963267948966"/>
      <mass value="2"/>
      <inertia ixx="0.2" ixy="0" ixz="0" iyy="0.3" iyz="0" izz="0.4"/>
    </inertial>
  </link>
  <link name="flange"/>
  <link name="lower">
    <inertial>
      <mass value="1"/>
      <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>
    </inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 1" rpy="0.1 0.2 0.3"/>
    <parent link="base"/>
    <child link="upper"/>
    <axis xyz="0 2 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="3"/>
    <dynamics damping="0.7" friction="0.1"/>
  </joint>
  <joint name="weld" type="fixed">
    <origin xyz="0 0 1"/>
    <parent link="upper"/>
    <child link="flange"/>
  </joint>
  <joint name="slide" type="prismatic">
    <parent link="flange"/>
    <child link="lower"/>
    <limit lower="0" upper="1" effort="10" velocity="3"/>
  </joint>
  <transmission name="t"><type>x</type></transmission>
</robot>
"""


def written(folder: Path, text: str, name: str = "arm.urdf") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str) -> str:
    with pytest.raises(ModelError) as caught:
        read_mechanism_file(written(folder, text))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_tree(tmp_path: Path) -> None:
    read = read_mechanism_file(written(tmp_path, ARM))[0]
    assert (read.name, read.ground, read.gravity) == ("arm", "base", (0.0, 0.0, -9.81))
    assert [b.name for b in read.bodies] == ["upper", "flange", "lower"]
    upper, flange, lower = read.bodies
    assert (upper.mass, upper.center) == (2.0, (0.0, 0.0, 0.5))
    np.testing.assert_allclose(upper.J, np.diag([0.3, 0.2, 0.4]), atol=1e-16)  # turned by a right angle about z
    assert flange == Body("flange", None)
    assert lower.J[0, 1] == 0.01
    assert read.joints == (
        Joint("shoulder", "revolute", "base", "upper", Placement.from_rpy((0, 0, 1), (0.1, 0.2, 0.3)),
              axis=(0, 1, 0), damping=0.7),
        Joint("weld", "fixed", "upper", "flange", Placement((0, 0, 1)), axis=(1, 0, 0)),
        Joint("slide", "prismatic", "flange", "lower", axis=(1, 0, 0)),
    )  # fmt: skip


def test_joints_with_one_freedom_are_inputs_and_outputs_unless_a_file_says_otherwise(tmp_path: Path) -> None:
    read = read_mechanism_file(written(tmp_path, ARM))[0]
    assert read.inputs == (JointForce("shoulder.torque", "shoulder"), JointForce("slide.force", "slide"))
    assert read.sensors == (
        Sensor("shoulder.q", "joint_position", "shoulder"),
        Sensor("slide.q", "joint_position", "slide"),
    )


def test_friction_is_left_out_aloud(tmp_path: Path) -> None:
    (remark,) = read_mechanism_file(written(tmp_path, ARM))[0].remarks
    assert remark.startswith("The dry friction of shoulder is left out")
    assert read_mechanism_file(written(tmp_path, ARM.replace(' friction="0.1"', "")))[0].remarks == ()


def test_the_arm_moves(tmp_path: Path) -> None:
    """A welded frame without mass between two links, and a slide along x on an arm that swings about y."""
    model = Mechanism.from_urdf(written(tmp_path, ARM))
    assert model.states.names == ("shoulder.q", "slide.q", "shoulder.v", "slide.v")
    linear = fl.linearize(model, inputs=["slide.force"])
    assert linear.outputs.names == ("shoulder.q", "slide.q")
    assert any("dry friction of shoulder" in str(w) for w in linear.warnings)
    outputs = linear.model.name, [str(w) for w in fl.linearize(model.with_interface(outputs=["slide.v"])).warnings]
    assert outputs[0] == "arm"
    assert any("dry friction" in w for w in outputs[1])  # the remark stays with every copy of the model


ADDITIONS = """\
gravity = [0, 0, -1.62]
independent = ["shoulder.q"]

[[joint_setting]]
joint = "slide"
position = 0.2
stiffness = 30.0
armature = 0.5
drive_limits = [-8.0, 8.0]

[[loop]]
name = "stay"
type = "rod"
first = "base"
second = "lower"
length = 2.0

[[input]]
kind = "joint_force"
name = "pull"
joint = "slide"
"""


def assert_has_additions(path: Path) -> None:
    read = read_mechanism_file(path)[0]
    assert read.gravity == (0.0, 0.0, -1.62)
    assert read.independent == ("shoulder.q",)
    slide = read.joints[2]
    assert (slide.position, slide.stiffness, slide.armature) == ((0.2,), (30.0,), (0.5,))
    assert slide.drive_limits == (-8.0, 8.0)
    assert read.loops == (Loop("stay", "rod", "base", "lower", length=2.0),)
    assert read.inputs == (JointForce("pull", "slide"),)
    assert len(read.sensors) == 2


def test_loops_come_from_the_file_beside(tmp_path: Path) -> None:
    written(tmp_path, ADDITIONS, "arm.fmilin.toml")
    assert_has_additions(written(tmp_path, ARM))


def test_loops_come_from_a_file_that_names_the_robot(tmp_path: Path) -> None:
    written(tmp_path, ARM)
    assert_has_additions(written(tmp_path, 'urdf = "arm.urdf"\n' + ADDITIONS, "closed.toml"))


def test_a_third_file_can_be_given(tmp_path: Path) -> None:
    extra = written(tmp_path, ADDITIONS, "other.toml")
    assert len(read_mechanism_file(written(tmp_path, ARM), extra)[0].loops) == 1
    with pytest.raises(ModelError, match="is no URDF file: write everything into it"):
        read_mechanism_file(extra, extra)


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ('<mass value="2"/>', '<mass value="-3"/>',
         "line 7: the link 'upper' has a mass of -3 kg: no mass is negative"),
        ('<mass value="2"/>', '<mass value="two"/>',
         "line 10, in <link> 'upper': 'value' of <mass> is no number: 'two'"),
        ('<mass value="2"/>', '<mass value="nan"/>', "is no number: 'nan'"),
        ('<mass value="2"/>', '<mass valu="2"/>', "<mass> needs the attribute 'value'"),
        ('<mass value="2"/>', "",
         "line 8, in <link> 'upper': <inertial> needs <mass> and <inertia>; <mass> is missing."),
        ('izz="0.4"', 'izz="-0.1"',
         "line 7: the link 'upper' has an inertia with the negative principal moment -0.1 kg"),
        ('izz="0.4"', "", "<inertia> needs the attribute 'izz'"),
        ('type="revolute"', 'type="hinge"', "line 21: the joint 'shoulder' is of the unknown type 'hinge'"),
        ('<axis xyz="0 2 0"/>', '<axis xyz="0 0 0"/>', "line 21: The axis of the joint 'shoulder' must not be zero."),
        ('<axis xyz="0 2 0"/>', '<axis xyz="0 1"/>', "'xyz' of <axis> holds three numbers, not '0 1'"),
        ('<axis xyz="0 2 0"/>', '<axis xyz="1 0 0"/><axis xyz="1 0 0"/>', "has <axis> twice"),
        ('<axis xyz="0 2 0"/>', '<mimic joint="shoulder"/>',
         "The coupling 'shoulder.mimic' couples the joint 'shoulder' with itself"),
        ('<child link="upper"/>', '<child link="uper"/>',
         "line 21: 'uper' is not a link, in the joint 'shoulder'. Did"),
        ('<child link="upper"/>', "", "line 21: the joint 'shoulder' has no <child link='...'/>."),
        ('<parent link="base"/>', '<parent link="lower"/>', "('shoulder': line 21, 'weld': line 29, 'slide': line 34)"),
        ('<link name="flange"/>', '<link name="flange"/><link name="lost"/>', "'base' (line 4), 'lost' (line 14)"),
        ('<link name="flange"/>', '<link name="flange"/><link name="upper"/>', "('upper': lines 7 and 14)"),
        ('name="weld"', 'name="slide"', "('slide': lines 29 and 34): The mechanism 'arm' cannot be built: The name"),
        ('<joint name="slide" type="prismatic">', '<joint name="slide" type="planar"><dynamics damping="1"/>',
         "line 34: the joint 'slide' of type 'planar' has a damping"),
        ("<robot ", "<model ", "is no well-formed XML: "),
        ('<?xml version="1.0"?>', "", "robot"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(wrong: str, right: str, said: str, tmp_path: Path) -> None:
    assert wrong in ARM
    if said == "robot":  # the declaration is not needed
        assert read_mechanism_file(written(tmp_path, ARM.replace(wrong, right).strip()))[0].name == "arm"
        return
    message = refused(tmp_path, ARM.replace(wrong, right))
    assert said in message
    assert "arm.urdf" in message


def test_a_circle_of_joints_is_no_tree(tmp_path: Path) -> None:
    text = """<robot name="ring"><link name="a"/><link name="b"/>
    <joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>
    <joint name="k" type="fixed"><parent link="b"/><child link="a"/></joint></robot>"""
    assert "every link is the child of a joint, so the joints form a circle" in refused(tmp_path, text)


def test_a_link_with_two_joints_closes_a_circle(tmp_path: Path) -> None:
    twice = '<joint name="again" type="fixed"><parent link="base"/><child link="lower"/></joint>\n</robot>'
    message = refused(tmp_path, ARM.replace("</robot>", twice))
    assert "The body 'lower' has two joints to a parent" in message
    assert "'again': line 40" in message


def test_other_files_are_refused(tmp_path: Path) -> None:
    assert "the root element of a URDF file is <robot>, not <sdf>" in refused(tmp_path, "<sdf/>")
    assert "there is no <link> in it" in refused(tmp_path, "<robot/>")
    xacro = '<robot xmlns:xacro="http://ros.org/xacro" name="a"><xacro:property name="b" value="1"/></robot>'
    assert "line 1: this is a xacro macro: expand the file with xacro first." in refused(tmp_path, xacro)
    with pytest.raises(ModelError, match=r"no\.urdf' cannot be read"):
        read_mechanism_file(tmp_path / "no.urdf")


def test_a_missing_line_is_one_sentence_or_no_error_at_all(tmp_path: Path) -> None:
    lines = ARM.splitlines()
    refusals = []
    for i in range(len(lines)):
        try:
            read_mechanism_file(written(tmp_path, "\n".join(lines[:i] + lines[i + 1 :])))
        except ModelError as error:
            refusals.append(str(error))
    assert len(refusals) > len(lines) / 2
    assert not any("\n" in refusal for refusal in refusals)
    assert "line 3" in refused(tmp_path, ARM.replace("<color", "\0<color"))


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    secret = written(tmp_path, "2", "secret.txt")
    bomb = f'<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    text = ARM.replace('<?xml version="1.0"?>', bomb).replace("<visual>", "&e;<visual>")
    assert "an entity reference is not expanded" in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        (
            'joint = "slide"\nposition',
            'joint = "slid"\nposition',
            "line 4: 'slid' is not a joint of the URDF file. Did",
        ),
        ("position = 0.2", "position = [1, 2]", "line 4: The position of the joint 'slide' must be 1"),
        ('second = "lower"', 'second = "low"', "'arm.fmilin.toml' ('stay': line 11): The mechanism 'arm'"),
        ("length = 2.0", "lenght = 2.0", "in the loop 'stay', there is no key 'lenght'; did you mean 'length'?"),
        ("gravity", 'ground = "world"\ngravity', "line 1: the ground of 'arm.urdf' is its root link 'base'."),
        ("gravity", 'urdf = "x.urdf"\ngravity', "names a URDF file itself"),
    ],
)
def test_what_is_wrong_in_the_file_beside(wrong: str, right: str, said: str, tmp_path: Path) -> None:
    written(tmp_path, ADDITIONS.replace(wrong, right), "arm.fmilin.toml")
    assert said in refused(tmp_path, ARM).replace(f"{tmp_path}/", "")
