"""The acrobot balanced upright: the regulator's gain on its shoulder."""

from __future__ import annotations

import control
import numpy as np

import fmilin as fl
from benchmarks.scoreboard.doors import fmu_of_toml, mjcf, toml
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model

TOML = """
name = "acrobot"
gravity = [0, -9.81, 0]
[[body]]
name = "upper"
mass = 1
center = [0, 0.5, 0]
inertia = [0, 0, 0.083]
any_inertia = true
[[body]]
name = "lower"
mass = 1
center = [0, 1, 0]
inertia = [0, 0, 0.33]
any_inertia = true
[[joint]]
name = "shoulder"
type = "revolute"
parent = "ground"
child = "upper"
damping = 0.1
[[joint]]
name = "elbow"
type = "revolute"
parent = "upper"
child = "lower"
placement = {position = [0, 1, 0]}
damping = 0.1
[[input]]
kind = "joint_force"
name = "torque"
joint = "elbow"
"""

MJCF = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <default><joint axis="0 1 0" damping="0.1"/></default>
  <worldbody>
    <body name="upper">
      <joint name="shoulder"/>
      <inertial pos="0 0 0.5" mass="1" diaginertia="0.083 0.083 0.083"/>
      <body name="lower" pos="0 0 1">
        <joint name="elbow"/>
        <inertial pos="0 0 1" mass="1" diaginertia="0.33 0.33 0.33"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="torque" joint="elbow"/></actuator>
</mujoco>
"""


def gain(model: Model) -> complex:
    """Return minus the first gain of the linear quadratic regulator with Q = diag(10, 10, 1, 1), R = 1."""
    linear = fl.linearize(model)
    K, _, _ = control.lqr(linear.A, linear.B, np.diag([10.0, 10.0, 1.0, 1.0]), [[1.0]])
    return complex(-K[0, 0])


ROW = Row(
    system="Acrobot, upright",
    source="Drake's example of an acrobot that a regulator balances, its gains as public code prints them",
    page="https://underactuated.mit.edu/acrobot.html",
    quantity="gain from the shoulder's angle to the torque, Q = diag(10, 10, 1, 1), R = 1 [N m/rad]",
    published="278.44223126",
    answer=gain,
    doors={"TOML": toml(TOML), "FMU": fmu_of_toml(TOML), "MJCF": mjcf(MJCF)},
    peers={"Drake": "drake_acrobot"},
    remark="The sign is Drake's: D is -K there.",
)
