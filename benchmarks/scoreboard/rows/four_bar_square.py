"""A four-bar linkage that hangs as a square."""

from __future__ import annotations

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.doors import fmu_of_toml, mjcf, toml
from benchmarks.scoreboard.row import Row
from benchmarks.scoreboard.rows.four_bar_flat_first import SOURCE

ROD = """
[[body]]
name = "{0}"
mass = 1
center = [0.5, 0, 0]
inertia = [0, 0.08333333333333333, 0.08333333333333333]
[[joint]]
name = "{0}"
type = "revolute"
parent = "{1}"
child = "{0}"
placement = {{position = [{2}, 0, 0]}}
position = {3}
"""

TOML = f"""
name = "four-bar"
gravity = [0, -9.81, 0]
independent = ["crank.q"]
{ROD.format("crank", "ground", 0, -1.5707963267948966)}
{ROD.format("coupler", "crank", 1, 1.5707963267948966)}
{ROD.format("rocker", "ground", 1, -1.5707963267948966)}
[[loop]]
name = "pin"
type = "point_on_line"
first = "coupler"
first_placement = {{position = [1, 0, 0]}}
second = "rocker"
second_placement = {{position = [1, 0, 0]}}
"""

MJCF = """
<mujoco>
  <option gravity="0 -9.81 0"/>
  <worldbody>
    <body name="crank">
      <joint name="crank" axis="0 0 1"/>
      <inertial pos="0.5 0 0" mass="1" diaginertia="0.001 0.08333333333333333 0.08333333333333333"/>
      <body name="coupler" pos="1 0 0">
        <joint name="coupler" axis="0 0 1"/>
        <inertial pos="0.5 0 0" mass="1" diaginertia="0.001 0.08333333333333333 0.08333333333333333"/>
      </body>
    </body>
    <body name="rocker" pos="1 0 0">
      <joint name="rocker" axis="0 0 1"/>
      <inertial pos="0.5 0 0" mass="1" diaginertia="0.001 0.08333333333333333 0.08333333333333333"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="coupler" body2="rocker" anchor="1 0 0"/>
  </equality>
  <keyframe>
    <key name="home" qpos="-1.5707963267948966 1.5707963267948966 -1.5707963267948966"/>
  </keyframe>
</mujoco>
"""

ROW = Row(
    system="Four-bar linkage, hanging as a square",
    source=f"{SOURCE}, section 5.1",
    page="https://doi.org/10.1115/1.4035410",
    quantity="frequency of three rods of 1 m and 1 kg [1/s]",
    published="3.4310j",
    answer=fastest,
    doors={"TOML": toml(TOML), "FMU": fmu_of_toml(TOML), "MJCF": mjcf(MJCF)},
    peers={
        "Pinocchio": "pinocchio_four_bar four_bar_square",
        "MuJoCo": "mujoco_spectrum four_bar_square",
    },
    remark=(
        "Published for the base along gravity. The motion of a parallelogram does not depend on the "
        "direction of its base; across gravity it is not singular, so that other tools can be compared. "
        "MuJoCo's loop is a spring by design. Pinocchio's derivatives of a 3D loop lack a part, those with "
        "6D constraints do not."
    ),
)
