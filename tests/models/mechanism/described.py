"""Files of mechanisms that tests write: a pendulum and everything in TOML, an arm in URDF, and how they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fmilin.errors import ModelError
from fmilin.models.mechanism import (
    Body,
    Force,
    Joint,
    JointForce,
    LineForce,
    Loop,
    MechanismDescription,
    Placement,
    PointSpring,
    Sensor,
    Skate,
    Torque,
    Wheel,
)
from fmilin.models.mechanism.mechanism_model import read_mechanism_file

PENDULUM = """\
name = "pendulum"
gravity = [0, -9.81, 0]

[[body]]
name = "rod"
mass = 2
center = [0.5, 0, 0]
inertia = [0.0, 0.2, 0.2]

[[joint]]
name = "swing"
type = "revolute"
parent = "ground"
child = "rod"
position = 0.3
"""

EVERYTHING = MechanismDescription(
    'all "sorts"',
    [
        Body("cart", 3.0, (0.1, 0, 0.2), [[1.0, 0.1, 0.0], [0.1, 1.2, 0.0], [0.0, 0.0, 0.9]]),
        Body("frame", None),
        Body("rod", 1.5, inertia=(0.1, 0.1, 0.0)),
        Body("ball", 0.5, inertia=(0.1, 0.1, 0.1)),
        Body("screw", 0.5, inertia=(0.1, 0.1, 0.1)),
    ],
    [
        Joint("slide", "planar", "floor", "cart", second_axis=(0, 1, 0), position=(0.1, 0.2, 0.3), damping=(1, 2, 3)),
        Joint("neck", "fixed", "cart", "frame", Placement.from_rpy((0, 0, 1), (0.1, 0.2, 0.3))),
        Joint("hip", "universal", "frame", "rod", child_placement=Placement((0, 0, -0.5)), stiffness=(5, 6)),
        Joint("eye", "spherical", "rod", "ball", position=(1, 0.1, 0, 0), velocity=(0.1, 0.2, 0.3)),
        Joint("nut", "helical", "rod", "screw", axis=(1, 2, 2), pitch=0.01, rest=0.2, stiffness=3,
              names=("turn", "rate")),
    ],
    [Loop("strut", "rod", "floor", "ball", Placement((1, 0, 0)), length=1.5),
     Loop("pin", "universal", "cart", "screw", second_axis=(1, 0, 0), axis=(0, 0, 2))],
    wheels=[Wheel("tyre", "cart", (0, 0, 0.1), radius=0.3, tube=0.05)],
    skates=[Skate("blade", "cart", (0.1, 0, 0))],
    springs=[PointSpring("coil", "cart", "ball", (0, 0, 0.1), (0.1, 0, 0), 100.0, 0.5, 2.0)],
    inputs=[JointForce("drive", "slide", 2, 1.5), Force("push", "rod", (0, 0, 1), (0, 1, 0), "body"),
            Torque("twist", "ball"), LineForce("cylinder", "cart", "ball", (0, 0, 0.1), start=-2.0)],
    sensors=[*Sensor.three("tip", "accelerometer", "rod", (0, 0, 1)), Sensor("energy", "energy"),
             Sensor("lambda", "reaction", "strut"), Sensor("turned", "direction", "ball", pointer=(0, 1, 0))],
    gravity=(0, 0, -1.62),
    ground="floor",
    independent=("turn", "slide.x"),
)  # fmt: skip

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


def written(path: Path, text: str) -> Path:
    """Write a file and return its path."""
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    """Return the one sentence with which a file is refused."""
    with pytest.raises(ModelError) as caught:
        read_mechanism_file(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def refused(path: Path, text: str) -> str:
    """Write a file and return the one sentence, which names it, with which it is refused."""
    message = refusal(written(path, text))
    assert str(path) in message
    return message
