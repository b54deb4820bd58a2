"""A rotary inverted pendulum, the QUBE-Servo 2 of Quanser: how the rod's lean tips it over."""

from __future__ import annotations

import fmilin as fl
from benchmarks.scoreboard.doors import fmu_of_toml, mjcf, toml
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model

ARM, ROD = 0.085, 0.129
"""Lengths, in m."""
ARM_INERTIA, ROD_INERTIA = 0.095 * ARM**2 / 12, 0.024 * ROD**2 / 12

TOML = f"""
name = "rotary pendulum"
gravity = [0, 0, -9.81]
[[body]]
name = "arm"
mass = 0.095
inertia = [0, 0, {ARM_INERTIA}]
any_inertia = true
[[body]]
name = "rod"
mass = 0.024
center = [0, 0, {ROD / 2}]
inertia = [{ROD_INERTIA}, {ROD_INERTIA}, 0]
[[joint]]
name = "arm"
type = "revolute"
parent = "ground"
child = "arm"
damping = 0.0015
[[joint]]
name = "rod"
type = "revolute"
axis = [1, 0, 0]
parent = "arm"
child = "rod"
placement = {{position = [{ARM}, 0, 0]}}
damping = 0.0005
"""

MJCF = f"""
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="arm">
      <joint name="arm" axis="0 0 1" damping="0.0015"/>
      <inertial pos="0 0 0" mass="0.095" diaginertia="{ARM_INERTIA} {ARM_INERTIA} {ARM_INERTIA}"/>
      <body name="rod" pos="{ARM} 0 0">
        <joint name="rod" axis="1 0 0" damping="0.0005"/>
        <inertial pos="0 0 {ROD / 2}" mass="0.024" diaginertia="{ROD_INERTIA} {ROD_INERTIA} 1e-12"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def tipping(model: Model) -> complex:
    """Return the entry of A from the rod's angle to its acceleration."""
    linear = fl.linearize(model)
    names = linear.states.names
    return complex(linear.A[names.index("rod.v"), names.index("rod.q")])


ROW = Row(
    system="Rotary inverted pendulum (QUBE-Servo 2)",
    source="Quanser, QUBE-Servo 2, A(4, 2) of its balance control, as printed in many public exercises",
    page="https://www.quanser.com/products/qube-servo-2/",
    quantity="A from the rod's angle to its acceleration [1/s2]",
    published="261.6091",
    answer=tipping,
    doors={"TOML": toml(TOML), "FMU": fmu_of_toml(TOML), "MJCF": mjcf(MJCF)},
)
