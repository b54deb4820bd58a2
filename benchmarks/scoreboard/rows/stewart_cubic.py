"""A Stewart platform in the cubic configuration: six legs along edges of a cube, with the load at its centre."""

from __future__ import annotations

from math import sqrt

from benchmarks.scoreboard.answers import nearest
from benchmarks.scoreboard.doors import fmu_of_toml, mjcf, toml
from benchmarks.scoreboard.row import Row

MASS, STIFFNESS = 30.0, 1e6
LEGS = [  # from a corner below to one above, in parts of half an edge of 1 m; each along x, y or z
    ((1, -1, -1), (1, 1, -1), (0, 1, 0), (0, 0, 1)),
    ((1, -1, -1), (1, -1, 1), (0, 0, 1), (1, 0, 0)),
    ((-1, 1, -1), (1, 1, -1), (1, 0, 0), (0, 1, 0)),
    ((-1, 1, -1), (-1, 1, 1), (0, 0, 1), (1, 0, 0)),
    ((-1, -1, 1), (1, -1, 1), (1, 0, 0), (0, 1, 0)),
    ((-1, -1, 1), (-1, 1, 1), (0, 1, 0), (0, 0, 1)),
]


def corner(signs: tuple[int, ...]) -> list[float]:
    """Return a corner of the cube of 1 m about the origin."""
    return [sign / 2 for sign in signs]


def leg(number: int) -> str:
    """Return a leg without mass: a universal joint below, a strut with a spring, a spherical joint above."""
    below, above, along, across = LEGS[number]
    other = [1 - a - b for a, b in zip(along, across, strict=True)]
    return f"""
[[body]]
name = "cross{number}"
massless = true
[[body]]
name = "leg{number}"
massless = true
[[joint]]
name = "foot{number}"
type = "universal"
axis = {list(across)}
second_axis = {other}
parent = "ground"
child = "cross{number}"
placement = {{position = {corner(below)}}}
[[joint]]
name = "strut{number}"
type = "prismatic"
axis = {list(along)}
stiffness = {STIFFNESS}
parent = "cross{number}"
child = "leg{number}"
[[loop]]
name = "head{number}"
type = "spherical"
first = "leg{number}"
first_placement = {{position = {list(along)}}}
second = "platform"
second_placement = {{position = {corner(above)}}}
"""


TOML = f"""
name = "hexapod"
gravity = [0, 0, 0]
[[body]]
name = "platform"
mass = {MASS}
inertia = [1, 1.5, 2]
[[joint]]
name = "pose"
type = "free"
parent = "ground"
child = "platform"
{"".join(map(leg, range(6)))}
"""

SITES, HEADS, TENDONS = (
    "".join(
        text.format(i=i, below=" ".join(map(str, corner(below))), above=" ".join(map(str, corner(above))), k=STIFFNESS)
        for i, (below, above, *_) in enumerate(LEGS)
    )
    for text in (
        '<site name="foot{i}" pos="{below}"/>',
        '<site name="head{i}" pos="{above}"/>',
        '<spatial stiffness="{k}" springlength="1"><site site="foot{i}"/><site site="head{i}"/></spatial>',
    )
)
MJCF = f"""
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    {SITES}
    <body name="platform">
      <freejoint/>
      <inertial pos="0 0 0" mass="{MASS}" diaginertia="1 1.5 2"/>
      {HEADS}
    </body>
  </worldbody>
  <tendon>{TENDONS}</tendon>
</mujoco>
"""

ROW = Row(
    system="Stewart platform, cubic",
    source="Dehaeze, phd-nass-geometry, text on the geometry of nano-hexapods, cubic architecture",
    page="https://git.tdehaeze.xyz/tdehaeze/phd-nass-geometry/commit/42a7ca9244b79f72cfdba8c7afb06d478d5a0c76",
    quantity="frequency of its translations, 30 kg at the cube's centre on legs of 1e6 N/m [rad/s]",
    published=1j * sqrt(2 * STIFFNESS / MASS),
    formula="K = k J^T J, of which the block of translations is k sum s_i s_i^T, sum s_i s_i^T = 2 I_3",
    answer=nearest(1j * sqrt(2 * STIFFNESS / MASS)),
    doors={"TOML": toml(TOML), "FMU": fmu_of_toml(TOML), "MJCF": mjcf(MJCF)},
    peers={"MuJoCo": "mujoco_spectrum stewart_cubic"},
    remark="TOML and FMU: six closed loops of universal joints, struts and spherical joints; MJCF: tendons. MuJoCo's "
    "linear model is that of a time step of 1e-4 s, which explains its difference.",
)
