"""The textbook's mechanisms as files: TOML, URDF with a TOML file beside it, and MJCF in both ways of its adapter."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import fmilin as fl
from tests.textbook.cells import Cell, Coordinate, Source
from tests.textbook.mjcf import MJCF_FILES, MJCF_OUTPUTS, mjcf_states
from tests.textbook.models import MODELS

__all__ = ["mjcf_source", "toml_model", "urdf_model"]

MECHANISMS = {
    "mass_spring_damper": """
gravity = [0, 0, 0]
body = [{name = "cart", mass = 2}]

[[joint]]
name = "slide"
type = "prismatic"
axis = [1, 0, 0]
parent = "ground"
child = "cart"
stiffness = 8
damping = 0.4
position = 0.2
names = ["x", "v"]

[[input]]
kind = "joint_force"
name = "F"
joint = "slide"
start = 1.6
""",
    "pendulum": """
gravity = [0, 0, -9.81]
body = [{name = "bob", mass = 1.5, center = [0, 0, -0.8]}]
input = [{kind = "joint_force", name = "torque", joint = "pin"}]

[[joint]]
name = "pin"
type = "revolute"
axis = [0, -1, 0]
parent = "ground"
child = "bob"
damping = 0.3
position = ANGLE
names = ["q", "w"]
""",
    "cart_pole": """
gravity = [0, 0, -9.81]
body = [{name = "cart", mass = 1.2}, {name = "pole", mass = 0.3, center = [0, 0, 0.5]}]
input = [{kind = "joint_force", name = "F", joint = "slide"}]
joint = [
    {name = "slide", type = "prismatic", axis = [1, 0, 0], parent = "ground", child = "cart", names = ["x", "v"]},
    {name = "pin", type = "revolute", axis = [0, 1, 0], parent = "cart", child = "pole", names = ["th", "w"]},
]
""",
    # The armature 2/5 m is the ball's own rotation, which takes part in its rolling and not in the turn of the beam.
    "ball_and_beam": """
gravity = [0, 0, -9.81]
body = [{name = "beam", mass = 1, inertia = [0, 0.2, 0.2]}, {name = "ball", mass = 0.5}]
input = [{kind = "joint_force", name = "torque", joint = "pivot", start = 0.4905}]

[[joint]]
name = "pivot"
type = "revolute"
axis = [0, -1, 0]
parent = "ground"
child = "beam"
names = ["a", "av"]

[[joint]]
name = "track"
type = "prismatic"
axis = [1, 0, 0]
parent = "beam"
child = "ball"
armature = 0.2
position = 0.1
names = ["r", "rv"]
""",
    # A tendon over the joint, slack above the ground, is a spring that only pushes.
    "ball": """
gravity = [0, 0, -9.81]
body = [{name = "ball", mass = 0.5}]
input = [{kind = "joint_force", name = "F", joint = "above"}]
tendon = [{name = "ground_spring", joints = ["above"], factors = [1], stiffness = 200, rest = [0, 1000]}]

[[joint]]
name = "above"
type = "prismatic"
axis = [0, 0, 1]
parent = "ground"
child = "ball"
position = HEIGHT
velocity = RATE
names = ["h", "v"]
""",
    "quaternion_body": """
gravity = [0, 0, 0]
body = [{name = "body", mass = 1, inertia = [0.2, 0.3, 0.4]}]
input = [
    {kind = "torque", name = "Mx", body = "body", frame = "body", direction = [1, 0, 0]},
    {kind = "torque", name = "My", body = "body", frame = "body", direction = [0, 1, 0]},
    {kind = "torque", name = "Mz", body = "body", frame = "body", direction = [0, 0, 1]},
]

[[joint]]
name = "center"
type = "spherical"
parent = "ground"
child = "body"
velocity = [0, 0, 5]
names = ["e0", "e1", "e2", "e3", "wx", "wy", "wz"]
""",
}

SENSORS = {
    "mass_spring_damper": """
sensor = [
    {name = "position", quantity = "joint_position", of = "slide"},
    {name = "acceleration", quantity = "joint_acceleration", of = "slide"},
]
""",
    "pendulum": """
sensor = [
    {name = "angle", quantity = "joint_position", of = "pin"},
    {name = "height", quantity = "position", of = "bob", point = [0, 0, -0.8], axis = [0, 0, 1]},
]
""",
    "cart_pole": """
sensor = [
    {name = "x", quantity = "joint_position", of = "slide"},
    {name = "angle", quantity = "joint_position", of = "pin"},
]
""",
    "ball_and_beam": """
sensor = [
    {name = "r", quantity = "joint_position", of = "track"},
    {name = "a", quantity = "joint_position", of = "pivot"},
]
""",
    "ball": """
sensor = [{name = "height", quantity = "joint_position", of = "above"}]
""",
    "quaternion_body": """
sensor = [
    {name = "rate_x", quantity = "gyroscope", of = "body", axis = [1, 0, 0]},
    {name = "rate_z", quantity = "gyroscope", of = "body", axis = [0, 0, 1]},
]
""",
}

URDF = {
    "mass_spring_damper": """<robot name="mass">
  <link name="world"/>
  <link name="cart"><inertial><mass value="2"/>POINT</inertial></link>
  <joint name="slide" type="prismatic">
    <parent link="world"/><child link="cart"/><axis xyz="1 0 0"/><dynamics damping="0.4"/>
  </joint>
</robot>""",
    "pendulum": """<robot name="pendulum">
  <link name="world"/>
  <link name="bob"><inertial><origin xyz="0 0 -0.8"/><mass value="1.5"/>POINT</inertial></link>
  <joint name="pin" type="continuous">
    <parent link="world"/><child link="bob"/><axis xyz="0 -1 0"/><dynamics damping="0.3"/>
  </joint>
</robot>""",
    "cart_pole": """<robot name="cart_pole">
  <link name="world"/>
  <link name="cart"><inertial><mass value="1.2"/>POINT</inertial></link>
  <link name="pole"><inertial><origin xyz="0 0 0.5"/><mass value="0.3"/>POINT</inertial></link>
  <joint name="slide" type="prismatic"><parent link="world"/><child link="cart"/><axis xyz="1 0 0"/></joint>
  <joint name="pin" type="continuous"><parent link="cart"/><child link="pole"/><axis xyz="0 1 0"/></joint>
</robot>""",
    "ball_and_beam": """<robot name="ball_and_beam">
  <link name="world"/>
  <link name="beam">
    <inertial><mass value="1"/><inertia ixx="0" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="ball"><inertial><mass value="0.5"/>POINT</inertial></link>
  <joint name="pivot" type="continuous"><parent link="world"/><child link="beam"/><axis xyz="0 -1 0"/></joint>
  <joint name="track" type="prismatic"><parent link="beam"/><child link="ball"/><axis xyz="1 0 0"/></joint>
</robot>""",
    "ball": """<robot name="ball">
  <link name="world"/>
  <link name="ball"><inertial><mass value="0.5"/>POINT</inertial></link>
  <joint name="above" type="prismatic"><parent link="world"/><child link="ball"/><axis xyz="0 0 1"/></joint>
</robot>""",
    "quaternion_body": """<robot name="body">
  <link name="world"/>
  <link name="body">
    <inertial><mass value="1"/><inertia ixx="0.2" iyy="0.3" izz="0.4" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="center" type="floating"><parent link="world"/><child link="body"/></joint>
</robot>""",
}
POINT_MASS = '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/>'

BESIDE_URDF = {
    "mass_spring_damper": """
gravity = [0, 0, 0]
joint_setting = [{joint = "slide", stiffness = 8, position = 0.2, names = ["x", "v"]}]
input = [{kind = "joint_force", name = "F", joint = "slide", start = 1.6}]
""",
    "pendulum": """
joint_setting = [{joint = "pin", position = ANGLE, names = ["q", "w"]}]
input = [{kind = "joint_force", name = "torque", joint = "pin"}]
""",
    "cart_pole": """
joint_setting = [{joint = "slide", names = ["x", "v"]}, {joint = "pin", names = ["th", "w"]}]
input = [{kind = "joint_force", name = "F", joint = "slide"}]
""",
    "ball_and_beam": """
input = [{kind = "joint_force", name = "torque", joint = "pivot", start = 0.4905}]
joint_setting = [
    {joint = "pivot", names = ["a", "av"]},
    {joint = "track", armature = 0.2, position = 0.1, names = ["r", "rv"]},
]
""",
    "ball": """
joint_setting = [{joint = "above", position = HEIGHT, velocity = RATE, names = ["h", "v"]}]
input = [{kind = "joint_force", name = "F", joint = "above"}]
tendon = [{name = "ground_spring", joints = ["above"], factors = [1], stiffness = 200, rest = [0, 1000]}]
""",
    # URDF has no ball joint: a loop holds the centre of a floating body.
    "quaternion_body": """
gravity = [0, 0, 0]
loop = [{name = "held", type = "spherical", first = "world", second = "body"}]
input = [
    {kind = "torque", name = "Mx", body = "body", frame = "body", direction = [1, 0, 0]},
    {kind = "torque", name = "My", body = "body", frame = "body", direction = [0, 1, 0]},
    {kind = "torque", name = "Mz", body = "body", frame = "body", direction = [0, 0, 1]},
]

[[joint_setting]]
joint = "center"
velocity = [0, 0, 0, 0, 0, 5]
names = ["x", "y", "z", "e0", "e1", "e2", "e3", "vx", "vy", "vz", "wx", "wy", "wz"]
""",
}


def _mechanism_of(name: str) -> tuple[str, Mapping[str, float]]:
    """Return the mechanism of a model, and the numbers of the point in its file."""
    states = MODELS[name].states
    if name.startswith("pendulum"):
        return "pendulum", {"ANGLE": states["q"]}
    if name in ("ball_at_rest", "ball_in_flight"):
        return "ball", {"HEIGHT": states["h"], "RATE": states["v"]}
    return name, {}


def _insert(text: str, numbers: Mapping[str, float]) -> str:
    for word, value in numbers.items():
        text = text.replace(word, repr(float(value)))
    return text.replace("POINT", POINT_MASS)


def _load(files: Mapping[str, str], file: str, prefix: str = "") -> fl.Model:
    """Load the model that one of the files describes."""
    folder = Path(tempfile.mkdtemp())
    try:
        for called, text in files.items():
            (folder / called).write_text(text, encoding="utf-8")
        return fl.load(f"{prefix}{folder / file}")
    finally:
        shutil.rmtree(folder)


def toml_model(name: str) -> Cell:
    """Return the model from a TOML file of a mechanism."""
    mechanism, numbers = _mechanism_of(name)
    return Cell(_load({"model.toml": _insert(SENSORS[mechanism] + MECHANISMS[mechanism], numbers)}, "model.toml"))


def urdf_model(name: str) -> Cell:
    """Return the model from a URDF file, with what URDF lacks in a TOML file beside it."""
    mechanism, numbers = _mechanism_of(name)
    beside = _insert(SENSORS[mechanism] + BESIDE_URDF[mechanism], numbers)
    return Cell(_load({"model.urdf": _insert(URDF[mechanism], {}), "model.fmilin.toml": beside}, "model.urdf"))


def mjcf_source(prefix: str) -> Source:
    """Return the source of MJCF files: as mechanisms with the prefix "", in MuJoCo's engine with "mujoco:"."""

    def load(name: str) -> Cell:
        mechanism, numbers = _mechanism_of(name)
        model = _load({"model.xml": _insert(MJCF_FILES[mechanism], numbers)}, "model.xml", prefix)
        states = {
            state: Coordinate(called, {state: 1.0}, MODELS[name].states[state])
            for state, called in mjcf_states(mechanism).items()
        }
        return Cell(model, states, outputs=MJCF_OUTPUTS.get(mechanism, {}))

    return load
