"""Mechanisms from SDFormat files, against closed forms and the same robots in URDF."""

from __future__ import annotations

from math import pi
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import fmilin as fl
from fmilin.models.mechanism import Mechanism, Placement
from tests.models.mechanism.described import written
from tests.models.mechanism.sdf_text import joint, link, load_sdf, model, parallelogram

G = 9.81


def test_a_double_pendulum_has_its_closed_form(tmp_path: Path) -> None:
    """Lagrange's equations about the hanging position, with relative angles."""
    m1, m2, l1, c1, c2, J1, J2, d = 2.0, 1.0, 1.0, 0.5, 0.4, 0.3, 0.1, 0.2
    text = model(
        "<pose>0 0 2 0 0 0.3</pose>",
        link("upper", mass=m1, center=f"0 0 {-c1}", moments=f"0.2 {J1} 0.4"),
        link(
            "lower", f"<pose relative_to='upper'>0 0 {-l1} 0 0 0</pose>", mass=m2, center=f"0 0 {-c2}",
            moments=f"0.1 {J2} 0.1",
        ),
        joint("a", "revolute", "world", "upper", "0 3 0", dynamics=f"<damping>{d}</damping>"),
        joint("b", "continuous", "upper", "lower", "0 1 0"),
    )  # fmt: skip
    both = J2 + m2 * (c2**2 + l1 * c2)
    M = np.array([[J1 + J2 + m1 * c1**2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2), both], [both, J2 + m2 * c2**2]])
    K = G * np.array([[m1 * c1 + m2 * (l1 + c2), m2 * c2], [m2 * c2, m2 * c2]])
    linear = fl.linearize(load_sdf(tmp_path, text))
    assert linear.states.names == ("a.q", "b.q", "a.v", "b.v")
    np.testing.assert_allclose(linear.A[2:], -np.linalg.solve(M, np.hstack((K, np.diag([d, 0])))), atol=1e-12)
    np.testing.assert_allclose(linear.B[2:], np.linalg.inv(M), rtol=1e-12)


def random_arms(seed: int, joints: int = 6) -> tuple[str, str]:
    """Return the same arm in URDF, in which links stand in their joints, and in SDFormat, in which they do not."""
    random = np.random.default_rng(seed)
    in_urdf = "<link name='world'/>\n"
    in_sdf = "<pose>0.3 -0.2 0.5 0.1 0.7 -0.4</pose>\n"
    base = Placement.from_rpy((0.3, -0.2, 0.5), (0.1, 0.7, -0.4))
    parent, at_parent = "world", base.invert()
    for i in range(joints):
        child, kind = f"link{i}", ("revolute", "prismatic", "continuous")[i % 3]
        in_model, in_link, in_inertial = (tuple(random.uniform(-1, 1, 6)) for _ in range(3))
        axis, damping = random.uniform(-1, 1, 3), random.uniform(0, 1)
        at_link = Placement.from_rpy(in_model[:3], in_model[3:])
        at_joint = at_link.then(Placement.from_rpy(in_link[:3], in_link[3:]))
        center = Placement.from_rpy(in_inertial[:3], in_inertial[3:])
        text = [" ".join(map(repr, map(float, pose))) for pose in (in_model, in_link, in_inertial)]
        xyz = " ".join(map(repr, axis.tolist()))
        moments = "0.5 0.6 0.7"
        in_sdf += link(child, f"<pose>{text[0]}</pose>", mass=1.0 + i, center=text[2], moments=moments)
        damper = f"<damping>{damping!r}</damping>"
        in_sdf += joint(f"j{i}", kind, parent, child, xyz, dynamics=damper, more=f"<pose>{text[1]}</pose>")
        on_parent = at_parent.invert().then(at_joint)
        inertial = at_joint.invert().then(at_link).then(center)
        in_urdf += f"<link name='{child}'><inertial>{origin(inertial)}<mass value='{1.0 + i}'/>"
        in_urdf += "<inertia ixx='0.5' iyy='0.6' izz='0.7' ixy='0' ixz='0' iyz='0'/></inertial></link>\n"
        in_urdf += f"<joint name='j{i}' type='{kind}'><parent link='{parent}'/><child link='{child}'/>"
        in_urdf += f"{origin(on_parent)}<axis xyz='{xyz}'/><dynamics damping='{damping!r}'/></joint>\n"
        parent, at_parent = child, at_joint
    return f"<robot name='arm'>{in_urdf}</robot>", model(in_sdf, name="arm")


def origin(place: Placement) -> str:
    """Return the element of URDF for a frame."""
    R = place.R
    rpy = np.arctan2(R[2, 1], R[2, 2]), np.arcsin(-R[2, 0]), np.arctan2(R[1, 0], R[0, 0])
    xyz, turn = (" ".join(repr(float(value)) for value in values) for values in (place.position, rpy))
    return f"<origin xyz='{xyz}' rpy='{turn}'/>"


@pytest.mark.parametrize("seed", [1, 2])
def test_an_arm_in_urdf_and_in_sdformat_is_the_same(seed: int, tmp_path: Path) -> None:
    in_urdf, in_sdf = random_arms(seed)
    first, second = Mechanism.from_urdf(written(tmp_path / "arm.urdf", in_urdf)), load_sdf(tmp_path, in_sdf)
    assert first.states.names == second.states.names
    random = np.random.default_rng(seed)
    values = dict(zip(first.states.names, random.uniform(-1, 1, 12).tolist(), strict=True))
    one, other = (fl.linearize(m, fl.operating_point(m, values)) for m in (first, second))
    for name in "ABCD":
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-11, atol=1e-11)


def test_a_link_that_is_the_child_of_two_joints_closes_a_loop(tmp_path: Path) -> None:
    crank = load_sdf(tmp_path, parallelogram())
    assert [loop.name for loop in crank.description.loops] == ["d"]
    inertia = 0.1 + 0.2 + (2 + 4) * 0.25**2 + 3 * 0.5**2
    weight = G * ((2 + 4) * 0.25 + 3 * 0.5)
    linear = fl.linearize(crank, independent=["a.q"])
    assert linear.eigenvalues()[0].imag ** 2 == pytest.approx(weight / inertia, rel=1e-12)


def test_the_damper_of_a_joint_that_closes_a_loop_is_kept(tmp_path: Path) -> None:
    crank = load_sdf(tmp_path, parallelogram(damping=0.3))
    inertia = 0.1 + 0.2 + (2 + 4) * 0.25**2 + 3 * 0.5**2
    linear = fl.linearize(crank, independent=["a.q"])
    assert linear.A[1, 1] == pytest.approx(-4 * 0.3 / inertia, rel=1e-12)  # every joint turns as the crank does
    assert [bushing.name for bushing in crank.description.bushings] == ["d.damper"]


@pytest.mark.parametrize(
    ("element", "pitch"),
    [
        ("<screw_thread_pitch>0.7</screw_thread_pitch>", 0.7 / (2 * pi)),
        ("<thread_pitch>-4</thread_pitch>", 0.25),  # rad/m, left-handed
        ("<thread_pitch>9</thread_pitch><screw_thread_pitch>0.7</screw_thread_pitch>", 0.7 / (2 * pi)),
    ],
)
def test_screws_of_both_conventions(element: str, pitch: float, tmp_path: Path) -> None:
    text = model(
        link("nut", mass=3.0, moments="0.1 0.1 0.2"), joint("screw", "screw", "world", "nut", "0 0 2", more=element)
    )
    linear = fl.linearize(load_sdf(tmp_path, text).with_interface(outputs=["nut.z"]))
    np.testing.assert_allclose(linear.B[:, 0], [0, 1 / (0.2 + 3 * pitch**2)], rtol=1e-12)
    np.testing.assert_allclose(linear.C[0], [pitch, 0], rtol=1e-12)


def test_springs_and_rotors(tmp_path: Path) -> None:
    spring = "<spring_stiffness>50</spring_stiffness><spring_reference>0.2</spring_reference><damping>4</damping>"
    rotor = "<drake:rotor_inertia>0.5</drake:rotor_inertia><drake:gear_ratio>2</drake:gear_ratio>"
    text = model(
        link("cart", mass=3.0), joint("slide", "prismatic", "world", "cart", "1 0 0", dynamics=spring, more=rotor)
    )
    cart = load_sdf(tmp_path, text)
    assert cart.evaluate(0.0, np.zeros(2), np.zeros(1)).derivatives[1] == pytest.approx(50 * 0.2 / 5, rel=1e-14)
    np.testing.assert_allclose(fl.linearize(cart).A[1], [-10, -0.8], rtol=1e-14)


GEARS = """
<joint name='gears' type='gearbox'><parent>motor</parent><child>load</child><gearbox_ratio>3</gearbox_ratio>
<gearbox_reference_body>world</gearbox_reference_body>
<axis><xyz>0 0 1</xyz></axis><axis2><xyz>{second}</xyz></axis2></joint>
"""


@pytest.mark.parametrize(("second", "factor"), [("0 0 1", -3.0), ("0 0 -1", 3.0)])
def test_a_gearbox_couples_the_two_joints_to_its_reference(second: str, factor: float, tmp_path: Path) -> None:
    text = model(
        link("motor", moments="0.1 0.1 0.1"),
        link("load", "<pose>1 0 0 0 0 0</pose>", moments="0.2 0.2 0.2"),
        joint("m", "revolute", "world", "motor", "0 0 1"),
        joint("l", "revolute", "world", "load", "0 0 1"),
        GEARS.format(second=second),
    )
    gears = load_sdf(tmp_path, text)
    assert gears.inputs.names == ("m.torque",)
    linear = fl.linearize(gears)
    assert linear.B[1, 0] == pytest.approx(1 / (0.1 + 9 * 0.2), rel=1e-12)
    np.testing.assert_allclose(linear.C[:, 0], [1, factor], rtol=1e-12)


def test_mimic_has_a_reference(tmp_path: Path) -> None:
    mimic = "<mimic joint='m'><multiplier>2</multiplier><offset>0.5</offset><reference>0.1</reference></mimic>"
    text = model(
        link("motor", moments="0.1 0.1 0.1"),
        link("load", moments="0.2 0.2 0.2"),
        joint("m", "revolute", "world", "motor", "0 0 1"),
        joint("l", "revolute", "world", "load", "0 0 1").replace("</axis>", f"{mimic}</axis>"),
        version="1.11",
    )
    gears = load_sdf(tmp_path, text)
    assert dict(zip(gears.states.names, gears.start.states, strict=True))["l.q"] == pytest.approx(0.3, rel=1e-14)
    assert fl.linearize(gears).B[1, 0] == pytest.approx(1 / (0.1 + 4 * 0.2), rel=1e-12)


def test_universal_joints_ball_joints_and_oblique_axes(tmp_path: Path) -> None:
    second = "<axis2><xyz>{x} 1 0</xyz></axis2>"
    links = link("arm", center="0.1 0.2 -0.5", moments="0.5 0.6 0.7"), link("hand", mass=0.5)
    ball = joint("wrist", "ball", "arm", "hand")

    def read(kind: str, x: float) -> Mechanism:
        shoulder = joint("s", kind, "world", "arm", "1 0 0", more=second.format(x=x))
        return load_sdf(tmp_path, model(*links, shoulder, ball))

    universal, straight, oblique = read("universal", 0), read("revolute2", 0), read("revolute2", 1)
    assert universal.states.names == straight.states.names
    assert universal.states.names[:2] == ("s.q1", "s.q2")
    assert "wrist.e0" in universal.states.names
    assert {"s.axis.q", "s.axis2.q"} <= set(oblique.states.names)
    parts = [
        link("middle", mass=1e-300, moments="0 0 0"),
        joint("s.axis", "revolute", "world", "middle", "1 0 0"),
        joint("s.axis2", "revolute", "middle", "arm", "1 1 0"),
    ]
    series = load_sdf(tmp_path, model(*links, *parts, ball))
    values = {"s.axis.q": 0.3, "s.axis2.q": -0.4, "s.axis.v": 1.0, "s.axis2.v": 0.5, "wrist.wx": 0.2}
    one, other = (m.evaluate(0.0, point(m, values), np.zeros(len(m.inputs))) for m in (oblique, series))
    np.testing.assert_allclose(one.derivatives, other.derivatives, rtol=1e-12, atol=1e-12)


def point(m: Mechanism, values: dict[str, float]) -> NDArray[np.float64]:
    """Return the states with these values."""
    return np.asarray(fl.operating_point(m, values).states)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "screw", "universal"])
def test_a_joint_that_leads_away_from_the_world_keeps_its_position(kind: str, tmp_path: Path) -> None:
    """Exchanging the ends and the axes of the joint gives the same mechanism."""
    second = "<axis2><xyz>{}0 1 0</xyz></axis2>" if kind == "universal" else ""
    links = [
        link("base", center="0.1 0 -0.3"),
        link("arm", "<pose>0.3 0.1 0.2 0.3 0.1 0</pose>", center="0.2 0 -0.5", moments="0.5 0.6 0.7"),
        joint("swing", "revolute", "world", "base", "1 1 0"),
    ]
    forward = joint("j", kind, "base", "arm", "1 0 0", more=second.format("") + "<pose relative_to='base'/>")
    backward = joint("j", kind, "arm", "base", "-1 0 0", more="<pose relative_to='base'/>")
    if kind == "universal":  # the inverse turns about the second axis first
        backward = joint(
            "j", kind, "arm", "base", "0 -1 0", more="<axis2><xyz>-1 0 0</xyz></axis2><pose relative_to='base'/>"
        )
    one, other = (load_sdf(tmp_path, model(*links, text)) for text in (forward, backward))
    random = np.random.default_rng(3)
    values = dict(zip(one.states.names, random.uniform(-1, 1, len(one.states)).tolist(), strict=True))
    swapped = {"j.q1": "j.q2", "j.q2": "j.q1", "j.v1": "j.v2", "j.v2": "j.v1"}
    renamed = {swapped.get(name, name): value for name, value in values.items()}
    first, last = (
        m.with_interface(outputs=["der(swing.v)", "arm.ax", "arm.ay", "arm.z"]).evaluate(
            0.0, point(m, at), np.zeros(len(m.inputs))
        )
        for m, at in ((one, values), (other, renamed))
    )
    np.testing.assert_allclose(first.outputs, last.outputs, rtol=1e-12, atol=1e-12)


def test_a_mechanism_file_names_a_robot_in_sdformat(tmp_path: Path) -> None:
    written(tmp_path / "crank.sdf", parallelogram())
    setting = 'sdf = "crank.sdf"\nindependent = ["a.q"]\ngravity = [0, 0, -1.62]\n'
    setting += '[[joint_setting]]\njoint = "a"\nposition = 0.3\n'
    crank = fl.load(written(tmp_path / "crank.toml", setting))
    assert isinstance(crank, Mechanism)
    assert dict(zip(crank.states.names, crank.start.states, strict=True))["b.q"] == pytest.approx(-0.3, rel=1e-9)
    assert crank.description.gravity == (0, 0, -1.62)


def test_a_slider_crank_has_its_closed_form(tmp_path: Path) -> None:
    """The kinetic energy is M(q) v^2 / 2, v the speed of the crank; the rod turns by beta(q)."""
    r, rod, q = 0.3, 1.0, 0.7
    beta = np.arcsin(r * np.sin(q) / rod)
    turned = f"<pose>{r * np.cos(q)} 0 {r * np.sin(q)} 0 {beta} 0</pose>"
    piston = f"<pose>{r * np.cos(q) + rod * np.cos(beta)} 0 0 0 0 0</pose>"
    text = model(
        link("crank", f"<pose>0 0 0 0 {-q} 0</pose>", mass=2.0, moments="0.1 0.2 0.1"),
        link("rod", turned, mass=1.5, center="0.5 0 0", moments="0.1 0.3 0.1"),
        link("piston", piston, mass=4.0),
        joint("a", "revolute", "world", "crank", "0 -1 0", dynamics="<damping>0.1</damping>"),
        joint("b", "revolute", "crank", "rod", "0 1 0", dynamics="<damping>0</damping>", more="<pose/>"),
        joint("c", "revolute", "rod", "piston", "0 1 0"),
        joint("slide", "prismatic", "world", "piston", "1 0 0", dynamics="<damping>7</damping>"),
    )
    crank = load_sdf(tmp_path, text)
    (loop,) = crank.description.loops
    turn = r * np.cos(q) / (rod * np.cos(beta))  # of beta by q
    stroke = -r * np.sin(q) - rod * np.sin(beta) * turn
    middle = -r * np.sin(q) - rod / 2 * np.sin(beta) * turn, r * np.cos(q) - rod / 2 * np.cos(beta) * turn
    M = 0.2 + 0.3 * turn**2 + 1.5 * (middle[0] ** 2 + middle[1] ** 2) + 4 * stroke**2
    linear = fl.linearize(crank, independent=["a.q"], inputs=["a.torque"])
    assert loop.name == "c"  # the joint without a damper
    assert linear.B[1, 0] == pytest.approx(1 / M, rel=1e-12)
    assert linear.A[1, 1] == pytest.approx(-(0.1 + 7 * stroke**2) / M, rel=1e-11)


def test_a_wheel_in_a_file_beside(tmp_path: Path) -> None:
    """A coin that rolls upright: four degrees of freedom for speeds, as in a mechanism file with the same coin."""
    wheel = '[[wheel]]\nname = "contact"\nbody = "coin"\nradius = 0.5\naxis = [0, 1, 0]\n'
    written(tmp_path / "robot.fmilin.toml", wheel)
    coin = link("coin", "<pose>0 0 0.5 0 0 0</pose>", mass=2.0, moments="0.125 0.25 0.125")
    robot = load_sdf(tmp_path, model(coin))
    body = '[[body]]\nname = "coin"\nmass = 2\ninertia = [0.125, 0.25, 0.125]\n'
    free = '[[joint]]\nname = "floating_base"\ntype = "free"\nparent = "ground"\nchild = "coin"\n'
    start = "position = [0, 0, 0.5, 1, 0, 0, 0]\n"
    same = Mechanism.from_toml(written(tmp_path / "coin.toml", body + free + start + wheel))
    values = {"floating_base.wy": 3.0, "floating_base.vx": 1.5}
    one, other = (fl.linearize(m, fl.operating_point(m, values)) for m in (robot, same))
    assert one.states.names == other.states.names
    np.testing.assert_allclose(one.A, other.A, rtol=1e-12, atol=1e-12)
    assert len(one.A) == 8


def test_elements_of_drake(tmp_path: Path) -> None:
    """A planar joint, a spring between points, and points held together, which make a pendulum of a free body."""
    planar = "<drake:joint name='p' type='planar'><drake:parent>world</drake:parent><drake:child>disk</drake:child>"
    planar += "<drake:damping>1 2 3</drake:damping></drake:joint>"
    pair = "<drake:{0}><drake:{0}_body_A>world</drake:{0}_body_A><drake:{0}_p_AP>{1}</drake:{0}_p_AP>"
    pair += "<drake:{0}_body_B>{2}</drake:{0}_body_B><drake:{0}_p_BQ>{3}</drake:{0}_p_BQ>{4}</drake:{0}>"
    values = {"free_length": 1, "stiffness": 50, "damping": 5}
    numbers = "".join(f"<drake:linear_spring_damper_{key}>{value}</{'drake:linear_spring_damper_' + key}>"
                      for key, value in values.items())  # fmt: skip
    spring = pair.format("linear_spring_damper", "-1 0 0", "disk", "0 0 0", numbers)
    disk = load_sdf(tmp_path, model(link("disk", mass=2.0, moments="0.1 0.1 0.2"), planar, spring))
    assert disk.states.names[:3] == ("p.x", "p.y", "p.angle")
    expected = np.zeros((3, 6))
    expected[0, [0, 3]], expected[1, 4], expected[2, 5] = (-25, -3), -1, -15
    np.testing.assert_allclose(fl.linearize(disk).A[3:], expected, atol=1e-12)
    ball = pair.format("ball_constraint", "0 0 1", "rod", "0 0 0.5", "")
    hung = load_sdf(tmp_path, model(link("rod", "<pose>0 0 0.5 0 0 0</pose>", mass=2.0, moments="0.1 0.1 0.2"), ball))
    frequencies = sorted(abs(value.imag) for value in fl.linearize(hung).eigenvalues())
    assert frequencies[-4:] == pytest.approx([np.sqrt(2 * G * 0.5 / (0.1 + 2 * 0.25))] * 4, rel=1e-9)
