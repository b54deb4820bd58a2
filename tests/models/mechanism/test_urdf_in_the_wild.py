"""URDF files as they are found: massless frames, joints that mimic, impossible inertias, unknown tags."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError, UsageError
from fmilin.models.mechanism import Body, Coupling, Joint, Mechanism, MechanismDescription, Placement
from tests.models.mechanism.toml_text import toml_text

LINK = """<link name="{0}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
"""
GRIPPER = (
    '<robot name="gripper"><link name="base"/>\n'
    + LINK.format("left")
    + LINK.format("right")
    + """<joint name="l" type="revolute"><parent link="base"/><child link="left"/><origin xyz="0 0.1 0"/>
<axis xyz="0 1 0"/><dynamics damping="0.3"/></joint>
<joint name="r" type="revolute"><parent link="base"/><child link="right"/><origin xyz="0 -0.1 0"/>
<axis xyz="0 1 0"/><mimic joint="l" multiplier="-2" offset="0.5"/></joint>
</robot>
"""
)


def written(folder: Path, text: str) -> Path:
    path = folder / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    return path


def remarks(folder: Path, text: str) -> str:
    return " ".join(Mechanism.from_urdf(written(folder, text)).description.remarks)


# ---------------------------------------------------------------------- mimic


def test_a_joint_that_mimics_another_is_coupled_to_it(tmp_path: Path) -> None:
    """(J + 4 J) q'' + damping q' + dV/dq = torque, J = 0.01 + 0.1^2, V = -m g 0.1 (sin q_l + sin q_r)."""
    model = fl.load(str(written(tmp_path, GRIPPER)))
    assert model.inputs.names == ("l.torque",)  # what follows has no motor
    assert model.start.states.tolist() == [0.0, 0.5, 0.0, 0.0]
    linear = fl.linearize(model)
    assert linear.states.names == ("l.q", "l.v")
    J, V_qq = 0.02 * (1 + 4), 9.81 * 0.1 * 4 * math.sin(0.5)
    expected = np.array([[0.0, 1.0], [-V_qq / J, -0.3 / J]])
    np.testing.assert_allclose(linear.A, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(linear.B, [[0.0], [1 / J]], rtol=1e-12)
    np.testing.assert_allclose(linear.C, [[1, 0], [-2, 0]], rtol=1e-12, atol=1e-13)


def test_at_a_moving_point_the_slopes_are_those_of_the_equations(tmp_path: Path) -> None:
    """Joints one behind the other, so that the coupling meets products of velocities: against differences."""
    text = GRIPPER.replace('<parent link="base"/><child link="right"/>', '<parent link="left"/><child link="right"/>')
    text = text.replace('<axis xyz="0 1 0"/><mimic', '<axis xyz="1 0 1"/><mimic')
    model = Mechanism.from_urdf(written(tmp_path, text))
    point = replace(model.start, states=np.array([0.3, -0.1, 1.2, -2.4]))
    exact = fl.linearize(model, point)
    general = fl.linearize(model, point, derivatives="differences")
    np.testing.assert_allclose(exact.A, general.A, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(exact.B, general.B, rtol=1e-6, atol=1e-6)


def test_a_fixed_joint_mimics_nothing_and_an_unknown_one_cannot_be_followed(tmp_path: Path) -> None:
    fixed = GRIPPER.replace('name="r" type="revolute"', 'name="r" type="fixed"')
    read = Mechanism.from_urdf(written(tmp_path, fixed)).description
    assert read.couplings == ()
    assert "Left" not in remarks(tmp_path, GRIPPER)
    astray = remarks(tmp_path, GRIPPER.replace('mimic joint="l"', 'mimic joint="L"'))
    assert "'L' is not a joint, though the joint 'r' mimics it. Did you mean 'l'" in astray
    planar = GRIPPER.replace('name="l" type="revolute"', 'name="l" type="fixed"')
    with pytest.raises(ModelError, match="line 8: the joint 'r' mimics 'l', but 'l' is of the type 'fixed'"):
        Mechanism.from_urdf(written(tmp_path, planar))


def rack(coupling: Coupling) -> MechanismDescription:
    bodies = [Body("pinion", 1.0, inertia=(0.1, 0.1, 0.2)), Body("rack", 3.0)]
    joints = [
        Joint("turn", "revolute", "ground", "pinion", position=0.4),
        Joint("slide", "prismatic", "ground", "rack", Placement((0, 0.5, 0)), stiffness=20.0),
    ]
    return MechanismDescription("rack", bodies, joints, couplings=[coupling], independent=["turn.q"], gravity=(0, 0, 0))


def test_a_rack_on_a_pinion_and_its_reaction(tmp_path: Path) -> None:
    """(0.2 + 3 r^2) q'' = -20 r (r q + c); the reaction holds the rack: 3 r q'' + 20 x = -reaction."""
    r, c = 0.05, 0.01
    path = tmp_path / "rack.toml"
    path.write_text(toml_text(rack(Coupling("teeth", "slide", "turn", r, c))))
    model = Mechanism.from_toml(path)
    x = r * 0.4 + c
    assert model.start.states[:2] == pytest.approx([0.4, x], abs=1e-12)
    linear = fl.linearize(model, outputs=["slide.q", "teeth.reaction[1]"])
    J = 0.2 + 3 * r**2
    assert linear.A[1, 0] == pytest.approx(-20 * r**2 / J, rel=1e-12)
    assert model.reactions()["teeth.reaction[1]"] == pytest.approx(60 * r**2 * x / J - 20 * x, rel=1e-12)
    np.testing.assert_allclose(linear.C[:, 0], [r, 60 * r**3 / J - 20 * r], rtol=1e-10)


@pytest.mark.parametrize(
    ("coupling", "said"),
    [
        (("teeth", "slide", "turns"), "'turns' is not a joint"),
        (("turn", "slide", "turn"), "The name 'turn' is used for 2"),
    ],
)
def test_a_wrong_coupling(coupling: tuple[str, str, str], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        rack(Coupling(*coupling))


# ---------------------------------------------------------------------- masses and inertias


def test_a_mass_of_zero_is_a_massless_frame(tmp_path: Path) -> None:
    tool = """<link name="tool"><inertial><mass value="0"/>
    <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
    <joint name="w" type="fixed"><parent link="left"/><child link="tool"/><axis xyz="0 0 0"/></joint></robot>"""
    text = GRIPPER.replace("</robot>", tool)
    assert Mechanism.from_urdf(written(tmp_path, text)).description.bodies[2] == Body("tool", None)
    assert "Massless frames, because their mass is 0: the links tool." in remarks(tmp_path, text)
    turning = text.replace('iyy="0" iyz', 'iyy="0.02" iyz')  # no mass, but it resists turning
    assert fl.linearize(fl.load(str(written(tmp_path, turning)))).B[1, 0] == pytest.approx(1 / (0.1 + 0.02), rel=1e-12)


def test_an_inertia_beyond_the_triangle_is_taken_with_the_amount(tmp_path: Path) -> None:
    text = GRIPPER.replace('izz="0.01"', 'izz="0.025"', 1)
    assert "left (0.2 of its largest)" in remarks(tmp_path, text)
    assert "right" not in remarks(tmp_path, text)
    assert fl.linearize(fl.load(str(written(tmp_path, text)))).A.shape == (2, 2)


def test_a_negative_moment_is_taken_only_where_it_is_negligible(tmp_path: Path) -> None:
    small = GRIPPER.replace('iyy="0.01"', 'iyy="-1e-9"', 1)
    assert "with a negative principal moment: left (-1e-09 kg m2)" in remarks(tmp_path, small)
    with pytest.raises(ModelError, match=r"'left' has an inertia with the negative principal moment -0\.001 kg"):
        Mechanism.from_urdf(written(tmp_path, GRIPPER.replace('iyy="0.01"', 'iyy="-1e-3"', 1)))


def test_a_freedom_without_inertia_is_named(tmp_path: Path) -> None:
    idle = """<link name="flag"/>
    <joint name="hinge" type="revolute"><parent link="left"/><child link="flag"/></joint></robot>"""
    with pytest.raises(ModelError, match=r"'hinge': line 11.*the joint 'hinge' moves no mass or inertia"):
        fl.load(str(written(tmp_path, GRIPPER.replace("</robot>", idle))))


# ---------------------------------------------------------------------- what URDF does not know


def test_what_is_unknown_is_ignored_with_one_remark(tmp_path: Path) -> None:
    text = GRIPPER.replace("<robot ", '<robot author="me" ').replace('damping="0.3"', 'damping="0.3" D="1" frictin="2"')
    text = text.replace("</robot>", "<ros2_control><joint/></ros2_control><ros2_control/></robot>")
    (remark,) = Mechanism.from_urdf(written(tmp_path, text)).description.remarks
    assert remark == (
        "Ignored, because URDF does not define it: the attribute 'author' of <robot> (line 1), the attribute 'D' of "
        "<dynamics> (line 7), the attribute 'frictin' of <dynamics> (line 7; did you mean 'friction'?), "
        "the element <ros2_control> of <robot> (line 10)."
    )


# ---------------------------------------------------------------------- a base that floats

PENDULUM = (
    '<robot name="cart">\n'
    + LINK.format("base")
    + LINK.format("left")
    + """<joint name="l" type="revolute"><parent link="base"/><child link="left"/><axis xyz="0 1 0"/></joint></robot>"""
)


def test_a_base_that_floats_has_six_freedoms_more(tmp_path: Path) -> None:
    """In free fall nothing turns: the arm feels no gravity, and its torque turns both bodies and moves the base."""
    path = written(tmp_path, PENDULUM)
    model = fl.load(path, options={"floating_base": True})
    assert model.states.names[:3] == ("floating_base.x", "floating_base.y", "floating_base.z")
    assert (len(model.states), model.inputs.names) == (15, ("l.torque",))
    rates = model.evaluate(0.0, model.start.states, np.array([0.3])).derivatives
    falling = dict(zip(model.states.names, rates.tolist(), strict=True))
    # Both centres stand at the same point 0.1 m from the common axis: their motions are those of a chain in the plane.
    mass = np.array([[2, -0.2, -0.1], [-0.2, 0.04, 0.02], [-0.1, 0.02, 0.02]])  # of z, pitch, l about +y
    z, pitch, swing = np.linalg.solve(mass, [-2 * 9.81, 0.2 * 9.81, 0.1 * 9.81 + 0.3])
    expected = {"floating_base.vz": z, "floating_base.wy": pitch, "l.v": swing}
    for name, value in expected.items():
        assert falling[name] == pytest.approx(value, rel=1e-10), name
    assert fl.linearize(model).A.shape == (14, 14)
    assert Mechanism.from_urdf(path, floating_base=True).states.names == model.states.names


def test_names_that_the_file_has_already_stay_its_own(tmp_path: Path) -> None:
    text = PENDULUM.replace('"base"', '"ground"').replace('"l"', '"floating_base"')
    read = Mechanism.from_urdf(written(tmp_path, text), floating_base=True).description
    assert [(j.name, j.parent) for j in read.joints] == [("floating_base_2", "ground_2"), ("floating_base", "ground")]


def test_the_file_beside_lets_the_base_float(tmp_path: Path) -> None:
    written(tmp_path, PENDULUM)
    (tmp_path / "robot.fmilin.toml").write_text("floating_base = true\n")
    assert len(fl.load(tmp_path / "robot.urdf").states) == 15
    assert len(fl.load(tmp_path / "robot.urdf", options={"floating_base": True}).states) == 15


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("robot.urdf", {"floating_bas": True}, "'floating_bas' is not an option of a file"),
        ("model.fmu", {"floating_base": True}, "'model.fmu' is not a URDF or SDFormat file read by fmilin"),
        ("rack.toml", {"floating_base": True}, "names no robot's file with a base that could float"),
    ],
)
def test_options_that_do_not_fit(
    source: str, options: dict[str, bool], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rack.toml").write_text(toml_text(rack(Coupling("teeth", "slide", "turn"))))
    with pytest.raises(UsageError, match=said):
        fl.load(source, options=options)


# ---------------------------------------------------------------------- files that are not quite XML, or not quite URDF

PLAIN = """<robot name="p"><link name="a"/>
<link name="b"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/></joint></robot>"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<?xml version="0.0" ?>\n' + PLAIN, "the XML declaration says version 0.0"),
        ('\n<!-- who wrote it -->\n<?xml version="1.0" encoding="utf-8"?>\n' + PLAIN, "stands on line 3"),
        (PLAIN.replace("<robot ", '<robot xmlns="http://drake.mit.edu" '), "the namespace 'http://drake.mit.edu'"),
        (PLAIN.replace("<axis", '<axis xyz="1 0 0"/><axis', 1).replace('<axis xyz="1 0 0"/></joint>',
         '<axis xyz="0 0 1"/></joint>'), "the joint 'j' has <axis> again in line 4; the first one is used"),
        (PLAIN.replace('ixy="0" ixz="0" ', ""), "the link 'b' has no ixy, ixz in line 3, taken for 0"),
    ],
    ids=["version", "second-line", "namespace", "axis-twice", "no-products"],
)  # fmt: skip
def test_what_other_tools_read_is_read_with_a_remark(text: str, said: str, tmp_path: Path) -> None:
    """A pendulum of 1 kg, 0.5 m below its pin: q'' = -9.81 0.5 q / (1 + 0.25)."""
    assert "Read, although" not in remarks(tmp_path, PLAIN)
    (remark,) = Mechanism.from_urdf(written(tmp_path, text)).description.remarks
    assert remark.startswith("Read, although it is not valid URDF: ")
    assert said in remark
    assert fl.linearize(fl.load(str(tmp_path / "robot.urdf"))).A[1, 0] == pytest.approx(-9.81 * 0.5 / 1.25, rel=1e-12)


def test_a_declaration_after_an_element_is_no_xml(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not well-formed XML: XML declaration allowed only at the start"):
        Mechanism.from_urdf(written(tmp_path, PLAIN.replace("<joint", '<?xml version="1.0"?><joint')))


# ---------------------------------------------------------------------- joints that are fixed when a file is opened

FLAGS = GRIPPER.replace(
    "</robot>",
    """<link name="flag"/><link name="tip"/>
<joint name="hinge" type="revolute"><parent link="left"/><child link="flag"/></joint>
<joint name="slide" type="prismatic"><parent link="flag"/><child link="tip"/></joint></robot>""",
)


def test_joints_that_move_nothing_are_fixed_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, FLAGS)
    with pytest.raises(
        ModelError, match=r"joints 'hinge', 'slide' move no mass.*options=\{'fix_joint': \['hinge', 'slide'\]\}"
    ):
        fl.load(path)
    model = fl.load(path, options={"fix_joint": ["hinge", "slide"]})
    whole = fl.load(written(tmp_path, GRIPPER))
    np.testing.assert_array_equal(fl.linearize(model).A, fl.linearize(whole).A)


@pytest.mark.parametrize("name", ["l", "r"])
def test_what_mimics_a_fixed_joint_stays_at_its_offset(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, GRIPPER)
    moving = Mechanism.from_urdf(path, floating_base=True)
    fixed = Mechanism.from_urdf(path, floating_base=True, fixed_joints=[name])
    assert (len(fixed.states), fixed.inputs.names) == (13, ())
    energy = [m.with_interface(outputs=["potential_energy"]) for m in (moving, fixed)]
    values = [float(m.evaluate(0.0, m.start.states, m.start.inputs).outputs[0]) for m in energy]
    assert values[0] == pytest.approx(9.81 * -0.1 * math.sin(0.5), rel=1e-12)
    assert values[1] == pytest.approx(values[0], rel=1e-12)


def test_joints_that_cannot_be_fixed(tmp_path: Path) -> None:
    path = written(tmp_path, GRIPPER)
    with pytest.raises(UsageError, match="'hing' is not a joint of the URDF file that could be fixed"):
        fl.load(path, options={"fix_joint": ["hing"]})
    with pytest.raises(UsageError, match="write fix_joint="):
        fl.load(path, options={"fix_joint": "l"})
    (tmp_path / "rack.toml").write_text(toml_text(rack(Coupling("teeth", "slide", "turn"))))
    with pytest.raises(UsageError, match="names no URDF or SDFormat file: write 'fixed' as the type"):
        fl.load(tmp_path / "rack.toml", options={"fix_joint": ["turn"]})
    with pytest.raises(
        UsageError, match="is not a URDF or SDFormat file read by fmilin: it has no joint of it can be fixed"
    ):
        fl.load("model.fmu", options={"fix_joint": ["turn"]})
