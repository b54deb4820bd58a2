"""Mechanisms from URDF files: the tree, what a TOML file adds, and what is wrong with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.models.mechanism import Body, Joint, JointForce, Loop, Mechanism, Placement, Sensor
from tests.models.mechanism.described import ADDITIONS, ARM, refused, written

OPEN_ADDITIONS = ADDITIONS[: ADDITIONS.index("[[loop]]")].replace('independent = ["shoulder.q"]\n', "")
"""Without the loop, which moves the joints from their first positions."""


def test_the_tree(tmp_path: Path) -> None:
    read = Mechanism.from_urdf(written(tmp_path / "arm.urdf", ARM)).description
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
    read = Mechanism.from_urdf(written(tmp_path / "arm.urdf", ARM)).description
    assert read.inputs == (JointForce("shoulder.torque", "shoulder"), JointForce("slide.force", "slide"))
    assert read.sensors == (
        Sensor("shoulder.q", "joint_position", "shoulder"),
        Sensor("slide.q", "joint_position", "slide"),
    )


def test_friction_is_left_out_aloud(tmp_path: Path) -> None:
    (remark,) = Mechanism.from_urdf(written(tmp_path / "arm.urdf", ARM)).description.remarks
    assert remark.startswith("The dry friction of shoulder is left out")
    assert (
        Mechanism.from_urdf(written(tmp_path / "arm.urdf", ARM.replace(' friction="0.1"', ""))).description.remarks
        == ()
    )


def test_the_arm_moves(tmp_path: Path) -> None:
    """A welded frame without mass between two links, and a slide along x on an arm that swings about y."""
    model = Mechanism.from_urdf(written(tmp_path / "arm.urdf", ARM))
    assert model.states.names == ("shoulder.q", "slide.q", "shoulder.v", "slide.v")
    linear = fl.linearize(model, inputs=["slide.force"])
    assert linear.outputs.names == ("shoulder.q", "slide.q")
    assert any("dry friction of shoulder" in str(w) for w in linear.warnings)
    outputs = linear.model.name, [str(w) for w in fl.linearize(model.with_interface(outputs=["slide.v"])).warnings]
    assert outputs[0] == "arm"
    assert any("dry friction" in w for w in outputs[1])  # the remark stays with every copy of the model


def assert_has_additions(path: Path) -> None:
    read = Mechanism.from_urdf(path).description
    assert read.gravity == (0.0, 0.0, -1.62)
    assert read.independent == ("shoulder.q",)
    slide = read.joints[2]
    assert (slide.stiffness, slide.armature) == ((30.0,), (0.5,))
    assert slide.drive_limits == (-8.0, 8.0)
    assert read.loops == (Loop("stay", "rod", "base", "lower", length=2.0),)
    assert read.inputs == (JointForce("pull", "slide"),)
    assert len(read.sensors) == 2


def test_loops_come_from_the_file_beside(tmp_path: Path) -> None:
    written(tmp_path / "arm.fmilin.toml", ADDITIONS)
    assert_has_additions(written(tmp_path / "arm.urdf", ARM))
    written(tmp_path / "arm.fmilin.toml", OPEN_ADDITIONS)
    assert Mechanism.from_urdf(tmp_path / "arm.urdf").description.joints[2].position == (0.2,)


def test_loops_come_from_a_file_that_names_the_robot(tmp_path: Path) -> None:
    written(tmp_path / "arm.urdf", ARM)
    assert_has_additions(written(tmp_path / "closed.toml", 'urdf = "arm.urdf"\n' + ADDITIONS))
    opened = written(tmp_path / "open.toml", 'urdf = "arm.urdf"\n' + OPEN_ADDITIONS)
    assert Mechanism.from_urdf(opened).description.joints[2].position == (0.2,)


def test_a_third_file_can_be_given(tmp_path: Path) -> None:
    extra = written(tmp_path / "other.toml", ADDITIONS)
    assert len(Mechanism.from_urdf(written(tmp_path / "arm.urdf", ARM), extra).description.loops) == 1
    with pytest.raises(ModelError, match="is not a URDF or SDFormat file: write everything into it"):
        Mechanism.from_urdf(extra, extra)


def test_the_declaration_of_xml_may_be_left_out(tmp_path: Path) -> None:
    text = ARM.removeprefix('<?xml version="1.0"?>\n')
    assert text != ARM
    assert Mechanism.from_urdf(written(tmp_path / "arm.urdf", text)).description.name == "arm"


def test_a_circle_of_joints_is_no_tree(tmp_path: Path) -> None:
    text = """<robot name="ring"><link name="a"/><link name="b"/>
    <joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>
    <joint name="k" type="fixed"><parent link="b"/><child link="a"/></joint></robot>"""
    assert "every link is the child of a joint, so the joints form a cycle" in refused(tmp_path / "arm.urdf", text)


def test_a_link_with_two_joints_closes_a_circle(tmp_path: Path) -> None:
    twice = '<joint name="again" type="fixed"><parent link="base"/><child link="lower"/></joint>\n</robot>'
    message = refused(tmp_path / "arm.urdf", ARM.replace("</robot>", twice))
    assert "The body 'lower' has two joints to a parent" in message
    assert "'again': line 40" in message


def test_other_files_are_refused(tmp_path: Path) -> None:
    assert "the root element of a URDF file is <robot>, not <sdf>" in refused(tmp_path / "arm.urdf", "<sdf/>")
    assert "there is no <link> in it" in refused(tmp_path / "arm.urdf", "<robot/>")
    xacro = '<robot xmlns:xacro="http://ros.org/xacro" name="a"><xacro:property name="b" value="1"/></robot>'
    assert "line 1: this is a xacro macro: expand the file with xacro first." in refused(tmp_path / "arm.urdf", xacro)


def test_a_zero_byte_is_told_with_its_line(tmp_path: Path) -> None:
    assert "line 3" in refused(tmp_path / "arm.urdf", ARM.replace("<color", "\0<color"))


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    secret = written(tmp_path / "secret.txt", "2")
    bomb = f'<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    text = ARM.replace('<?xml version="1.0"?>', bomb).replace("<visual>", "&e;<visual>")
    assert "entity references are not supported" in refused(tmp_path / "arm.urdf", text)


def test_a_chain_without_end_is_refused(tmp_path: Path) -> None:
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    most = 1000
    links = "".join(f'<link name="l{i}">{inertial}</link>' for i in range(most + 2))
    ends = '<parent link="l{}"/><child link="l{}"/>'
    joints = "".join(f'<joint name="j{i}" type="continuous">{ends.format(i, i + 1)}</joint>' for i in range(most + 1))
    path = written(tmp_path / "chain.urdf", f'<robot name="chain">{links}{joints}</robot>')
    with pytest.raises(ModelError, match="it has 1001 moving joints, and 1000 is the largest number that is read"):
        fl.load(path)


def test_a_parent_called_world_need_not_be_declared(tmp_path: Path) -> None:
    """Drake's own files are written so: sqrt(m g l / (J + m l^2)) of a pendulum that hangs from the world."""
    inertial = (
        '<origin xyz="0 0 -0.5"/><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    )
    joint = '<parent link="world"/><child link="arm"/><axis xyz="0 1 0"/>'
    text = f"""<robot name="pendulum"><link name="arm"><inertial>{inertial}</inertial></link>
    <joint name="pin" type="continuous">{joint}</joint></robot>"""
    lin = fl.linearize(fl.load(written(tmp_path / "pendulum.urdf", text)))
    assert lin.eigenvalues().imag.max() == pytest.approx(np.sqrt(9.81 * 0.5 / 0.35), rel=1e-12)
