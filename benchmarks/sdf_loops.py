"""Closed loops in SDF: models with loops, loops cut out of a file for Drake, and Drake's strandbeest as SDF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import etree

DRAKE = "http://drake.mit.edu"
Point = tuple[float, float, float]
RECOVERING = etree.XMLParser(recover=True)
"""Drake's files use the prefix ``drake:`` without a declaration."""


@dataclass(frozen=True)
class PointPair:
    """Two points that stay together: ``drake:ball_constraint``."""

    ends: tuple[str, str]
    points: tuple[Point, Point]


@dataclass(frozen=True)
class LoopJoint:
    """A hinge to a link that has a joint already: its position and axis in the axes of that link, the second end."""

    ends: tuple[str, str]
    position: Point
    axis: Point


def cut_loops(text: str) -> tuple[str, list[PointPair | LoopJoint]]:
    """Return the SDF without what closes loops, and the loops."""
    root = etree.fromstring(text.encode(), RECOVERING)
    loops: list[PointPair | LoopJoint] = []
    for element in list(root.iter("*")):
        if not isinstance(element.tag, str) or not element.tag.endswith("ball_constraint"):
            continue
        values = {str(child.tag).rpartition("_constraint_")[2]: (child.text or "").strip() for child in element}
        loops.append(PointPair((values["body_A"], values["body_B"]), (read(values["p_AP"]), read(values["p_BQ"]))))
        element.getparent().remove(element)
    children: set[str] = set()
    for joint in list(root.iter("joint")):
        child = joint.findtext("child", "").strip()
        if child and joint.get("type") == "revolute" and child in children and joint.getparent().tag == "model":
            position, axis = joint.findtext("pose", "0 0 0 0 0 0"), joint.findtext("axis/xyz", "0 0 1")
            ends = joint.findtext("parent", "").strip(), child
            loops.append(LoopJoint(ends, read(position), read(axis)))
            joint.getparent().remove(joint)
        children.add(child)
    return etree.tostring(root).decode(), loops


def read(text: str) -> Point:
    x, y, z = (float(word) for word in text.split()[:3])
    return x, y, z


def write_sdf(path: Path) -> str:
    """Return a URDF file with Drake's ball constraints as SDF: inertias, joints and constraints."""
    robot = etree.parse(str(path)).getroot()
    parents = {joint.find("child").get("link"): joint for joint in robot.findall("joint")}
    parts = [
        f"<sdf version='1.9' xmlns:drake='{DRAKE}'><model name='{robot.get('name')}'>",
    ]
    for link in robot.findall("link"):
        name = link.get("name")
        if name == "world" or link.find("inertial") is None:
            continue
        joint = parents.get(name)
        pose = "" if joint is None else f"<pose relative_to='{joint.get('name')}'/>"
        if joint is not None and joint.find("parent").get("link") == "world":
            pose = f"<pose>{write_pose(joint)}</pose>"
        parts.append(f"<link name='{name}'>{pose}{write_inertial(link.find('inertial'))}</link>")
    names = {link.get("name") for link in robot.findall("link") if link.find("inertial") is not None}
    for joint in robot.findall("joint"):
        parent, child = joint.find("parent").get("link"), joint.find("child").get("link")
        if child not in names:
            continue
        kind = joint.get("type")
        axis = joint.find("axis")
        text = "" if kind == "fixed" else f"<axis><xyz>{axis.get('xyz')}</xyz></axis>"
        pose = "" if parent == "world" else f"<pose relative_to='{parent}'>{write_pose(joint)}</pose>"
        parts.append(
            f"<joint name='{joint.get('name')}' type='{kind}'>{pose}"
            f"<parent>{parent}</parent><child>{child}</child>{text}</joint>"
        )
    for element in robot.iter(f"{{{DRAKE}}}ball_constraint"):
        values = {etree.QName(child).localname: child.get("name") or child.get("value") for child in element}
        lines = "".join(f"<drake:{key}>{value}</drake:{key}>" for key, value in values.items())
        parts.append(f"<drake:ball_constraint>{lines}</drake:ball_constraint>")
    return "".join([*parts, "</model></sdf>"])


def write_pose(element: Any) -> str:
    origin = element.find("origin")
    return "0 0 0 0 0 0" if origin is None else f"{origin.get('xyz', '0 0 0')} {origin.get('rpy', '0 0 0')}"


def write_inertial(inertial: Any) -> str:
    moments = inertial.find("inertia")
    keys = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    inertia = "".join(f"<{key}>{moments.get(key)}</{key}>" for key in keys)
    mass = inertial.find("mass").get("value")
    return f"<inertial><pose>{write_pose(inertial)}</pose><mass>{mass}</mass><inertia>{inertia}</inertia></inertial>"


def make_link(name: str, pose: str, length: float, mass: float) -> str:
    """Return a rod along its x axis, from its frame's origin."""
    moment = mass * length**2 / 12
    return (
        f"<link name='{name}'><pose>{pose}</pose><inertial><pose>{length / 2} 0 0 0 0 0</pose><mass>{mass}</mass>"
        f"<inertia><ixx>{moment / 50}</ixx><iyy>{moment}</iyy><izz>{1.02 * moment}</izz></inertia></inertial></link>"
    )


def make_hinge(name: str, parent: str, child: str, position: str = "0 0 0", axis: str = "0 1 0", more: str = "") -> str:
    return (
        f"<joint name='{name}' type='revolute'><pose>{position} 0 0 0</pose><parent>{parent}</parent>"
        f"<child>{child}</child><axis><xyz>{axis}</xyz>{more}</axis></joint>"
    )


def make_ball(first: str, p: str, second: str, q: str) -> str:
    parts = (("body_A", first), ("p_AP", p), ("body_B", second), ("p_BQ", q))
    lines = "".join(f"<drake:ball_constraint_{key}>{value}</drake:ball_constraint_{key}>" for key, value in parts)
    return f"<drake:ball_constraint>{lines}</drake:ball_constraint>"


def make_model(name: str, *parts: str) -> str:
    return f"<sdf version='1.9' xmlns:drake='{DRAKE}'><model name='{name}'>{''.join(parts)}</model></sdf>"


UP = "-1.5707963267948966"  # about y: x of the link is z of the world
FOUR_BAR = (
    make_link("crank", f"0 0 0 0 {UP} 0", 1.0, 2.0),
    make_link("coupler", "0 0 1 0 0 0", 2.0, 3.0),
    make_link("rocker", f"2 0 0 0 {UP} 0", 1.0, 1.5),
    make_hinge("a", "world", "crank", more="<dynamics><damping>0.3</damping></dynamics>"),
    make_hinge("b", "crank", "coupler"),
    make_hinge("c", "world", "rocker", more="<dynamics><spring_stiffness>4</spring_stiffness></dynamics>"),
)
TRIPOD = tuple(
    part
    for k, (x, y, turn) in enumerate(((0.5, 0.0, 0.0), (-0.25, 0.4330127018922193, 2.0943951023931953),
                                      (-0.25, -0.4330127018922193, -2.0943951023931953)))
    for part in (
        make_link(f"leg{k}", f"{x} {y} 0 0 {UP} {turn}", 1.0, 1.0 + 0.2 * k),
        f"<joint name='foot{k}' type='universal'><parent>world</parent><child>leg{k}</child>"
        "<axis><xyz>0 1 0</xyz></axis><axis2><xyz>0 0 1</xyz></axis2></joint>",
        make_ball(f"leg{k}", "1 0 0", "plate", f"{x} {y} 0"),
    )
)  # fmt: skip
PLATE = (
    "<link name='plate'><pose>0 0 1 0 0 0</pose><inertial><mass>5</mass><inertia><ixx>0.4</ixx><iyy>0.5</iyy>"
    "<izz>0.8</izz></inertia></inertial></link>"
)
LOOPED_MODELS = {
    "four_bar_ball": make_model("four_bar_ball", *FOUR_BAR, make_ball("coupler", "2 0 0", "rocker", "1 0 0")),
    "four_bar_hinge": make_model("four_bar_hinge", *FOUR_BAR, make_hinge("d", "coupler", "rocker", "1 0 0")),
    "slider_crank": make_model(
        "slider_crank",
        make_link("crank", "0 0 0 0 -0.9272952180016122 0", 0.5, 2.0),
        make_link("rod", "0.3 0 0.4 0 0.4115168460674881 0", 1.0, 1.0),
        make_link("slider", "1.2165151389911681 0 0 0 0 0", 0.2, 0.7),
        make_hinge("a", "world", "crank"),
        make_hinge("b", "crank", "rod"),
        "<joint name='s' type='prismatic'><parent>world</parent><child>slider</child><axis><xyz>1 0 0</xyz>"
        "<dynamics><damping>0.2</damping></dynamics></axis></joint>",
        make_ball("rod", "1 0 0", "slider", "0 0 0"),
    ),
    "tripod": make_model("tripod", PLATE, *TRIPOD),
    "two_four_bars": make_model(
        "two_four_bars",
        *FOUR_BAR,
        make_link("second", "2 0 1 0 0 0", 2.0, 1.0),
        make_link("third", f"4 0 0 0 {UP} 0", 1.0, 1.0),
        make_hinge("e", "rocker", "second", "0 0 0"),
        make_hinge("f", "world", "third"),
        make_ball("coupler", "2 0 0", "rocker", "1 0 0"),
        make_ball("second", "2 0 0", "third", "1 0 0"),
    ),
}
