"""The same beam, hanging in gravity without a spring: a compound pendulum."""

from __future__ import annotations

from math import sqrt

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.doors import exudyn, fmu_of_toml, mjcf, toml
from benchmarks.scoreboard.exudyn_systems import make_beam
from benchmarks.scoreboard.row import Row
from benchmarks.scoreboard.rows.beam_on_spring import ABOUT_CENTRE, LENGTH, MASS
from benchmarks.scoreboard.rows.pendulum_double_slow import EXUDYN

g = 9.81

TOML = f"""
name = "beam"
gravity = [0, -{g}, 0]
[[body]]
name = "beam"
mass = {MASS}
center = [0, -{LENGTH / 2}, 0]
inertia = [{ABOUT_CENTRE}, 0, {ABOUT_CENTRE}]
[[joint]]
name = "hinge"
type = "revolute"
parent = "ground"
child = "beam"
"""

MJCF = f"""
<mujoco>
  <option gravity="0 0 -{g}"/>
  <worldbody>
    <body name="beam">
      <joint name="hinge" axis="0 1 0"/>
      <inertial pos="0 0 -{LENGTH / 2}" mass="{MASS}" diaginertia="{ABOUT_CENTRE} {ABOUT_CENTRE} 1e-9"/>
    </body>
  </worldbody>
</mujoco>
"""

ROW = Row(
    system="Hanging beam",
    source="Kibble and Berkshire, Classical Mechanics, equation 9.11",
    page="https://fliphtml5.com/rtgbj/doaj/Classical_Mechanics_Kibble-and-berkshire/221",
    quantity="frequency [rad/s]",
    published=1j * sqrt(MASS * g * LENGTH / 2 / (ABOUT_CENTRE + MASS * LENGTH**2 / 4)),
    formula="I phi'' = -M g R sin(phi)",
    answer=fastest,
    doors={
        "TOML": toml(TOML),
        "FMU": fmu_of_toml(TOML),
        "MJCF": mjcf(MJCF),
        "Exudyn": exudyn(lambda: make_beam(hanging=True)),
    },
    peers={
        "MuJoCo": "mujoco_spectrum beam_hanging",
        "Drake": "drake_spectrum beam_hanging",
        "Pinocchio": "pinocchio_spectrum beam_hanging",
        "Exudyn": "exudyn_beam beam_hanging",
    },
    remark=EXUDYN,
)
