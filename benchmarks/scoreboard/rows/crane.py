"""A gantry crane with two loads: a trolley on rails, and two cables that hang from it."""

from __future__ import annotations

from math import sqrt

from benchmarks.scoreboard.answers import slowest
from benchmarks.scoreboard.doors import fmu_of_toml, mjcf, modelica, native, toml
from benchmarks.scoreboard.row import Row
from fmilin.models import LagrangeModel

M, m1, m2, l1, l2, g = 1000.0, 100.0, 100.0, 20.0, 10.0, 9.81

TOML = f"""
name = "crane"
gravity = [0, 0, -{g}]
[[body]]
name = "trolley"
mass = {M}
[[body]]
name = "first"
mass = {m1}
center = [0, 0, -{l1}]
[[body]]
name = "second"
mass = {m2}
center = [0, 0, -{l2}]
[[joint]]
name = "track"
type = "prismatic"
axis = [1, 0, 0]
parent = "ground"
child = "trolley"
[[joint]]
name = "first"
type = "revolute"
axis = [0, 1, 0]
parent = "trolley"
child = "first"
[[joint]]
name = "second"
type = "revolute"
axis = [0, 1, 0]
parent = "trolley"
child = "second"
"""

MJCF = f"""
<mujoco>
  <option gravity="0 0 -{g}"/>
  <worldbody>
    <body name="trolley">
      <joint name="track" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="{M}" diaginertia="1 1 1"/>
      <body name="first">
        <joint name="first" axis="0 1 0"/>
        <inertial pos="0 0 -{l1}" mass="{m1}" diaginertia="1e-8 1e-8 1e-8"/>
      </body>
      <body name="second">
        <joint name="second" axis="0 1 0"/>
        <inertial pos="0 0 -{l2}" mass="{m2}" diaginertia="1e-8 1e-8 1e-8"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

MODELICA = f"""
model Crane "a trolley at x, loads at the angles a and b"
  Real x(start = 0, fixed = true), v(start = 0, fixed = true);
  Real a(start = 0, fixed = true), p(start = 0, fixed = true);
  Real b(start = 0, fixed = true), q(start = 0, fixed = true);
equation
  der(x) = v;
  der(a) = p;
  der(b) = q;
  {M + m1 + m2}*der(v) - {m1 * l1}*(cos(a)*der(p) - sin(a)*p^2) - {m2 * l2}*(cos(b)*der(q) - sin(b)*q^2) = 0;
  {l1}*der(p) - cos(a)*der(v) + {g}*sin(a) = 0;
  {l2}*der(q) - cos(b)*der(v) + {g}*sin(b) = 0;
end Crane;
"""


def lagrange() -> LagrangeModel:
    """Return the trolley at x and the loads at the angles a and b, backwards."""
    return LagrangeModel(
        "crane",
        {"x": "v", "a": "p", "b": "q"},
        [
            ["M + m1 + m2", "-m1*l1*cos(a)", "-m2*l2*cos(b)"],
            ["-m1*l1*cos(a)", "m1*l1^2", "0"],
            ["-m2*l2*cos(b)", "0", "m2*l2^2"],
        ],
        ["-m1*l1*sin(a)*p^2 - m2*l2*sin(b)*q^2", "-m1*g*l1*sin(a)", "-m2*g*l2*sin(b)"],
        parameters={"M": M, "m1": m1, "m2": m2, "l1": l1, "l2": l2, "g": g},
    )


def frequency(sign: int) -> float:
    """Return a frequency of the printed block of A: of the angles' accelerations after the angles."""
    (a, b), (c, d) = (
        (-(M + m1) * g / (M * l1), -(m2 * g) / (M * l1)),
        (-(m1 * g) / (M * l2), -(M + m2) * g / (M * l2)),
    )
    mean = (a + d) / 2
    return sqrt(-mean + sign * sqrt(mean**2 - (a * d - b * c)))


ROW = Row(
    system="Gantry crane with two loads, slow mode",
    source="Gupta, Control of Robots, eigen_values.m: M = 1000, m1 = m2 = 100, l1 = 20, l2 = 10, g = 9.81",
    page="https://github.com/ManasGupta93/Control-of-Robots/blob/75325cab1edc289ecfcf5a0ad624f1f736fbcb06/Matlab/eigen_values.m",
    quantity="frequency of the loads' swing [rad/s]",
    published=1j * frequency(-1),
    formula="A = [... -(M+m1)*g/(M*l1) 0 -(m2*g)/(M*l1); ... -(m1*g)/(M*l2) 0 -(M+m2)*g/(M*l2)]",
    answer=slowest,
    doors={
        "native": native(lagrange),
        "TOML": toml(TOML),
        "FMU": fmu_of_toml(TOML),
        "MJCF": mjcf(MJCF),
        "Modelica": modelica(MODELICA),
    },
    peers={"MuJoCo": "mujoco_spectrum crane"},
)
