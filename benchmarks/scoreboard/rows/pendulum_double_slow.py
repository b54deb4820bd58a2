"""A double pendulum of two weights on strings: the slower of its two modes."""

from __future__ import annotations

import numpy as np

from benchmarks.scoreboard.answers import slowest
from benchmarks.scoreboard.doors import exudyn, fmu_of_toml, mjcf, modelica, native, toml
from benchmarks.scoreboard.exudyn_systems import make_double_pendulum
from benchmarks.scoreboard.row import Row
from fmilin.models import LagrangeModel, SymbolicConstraint

M, m, L, below, g = 2.0, 1.0, 0.8, 0.5, 9.81

TOML = f"""
name = "double pendulum"
gravity = [0, -{g}, 0]
[[body]]
name = "upper"
mass = {M}
center = [0, -{L}, 0]
[[body]]
name = "lower"
mass = {m}
center = [0, -{below}, 0]
[[joint]]
name = "top"
type = "revolute"
parent = "ground"
child = "upper"
[[joint]]
name = "middle"
type = "revolute"
parent = "upper"
child = "lower"
placement = {{position = [0, -{L}, 0]}}
"""

MJCF = f"""
<mujoco>
  <option gravity="0 0 -{g}"/>
  <worldbody>
    <body name="upper">
      <joint name="top" axis="0 1 0"/>
      <inertial pos="0 0 -{L}" mass="{M}" diaginertia="1e-12 1e-12 1e-12"/>
      <body name="lower" pos="0 0 -{L}">
        <joint name="middle" axis="0 1 0"/>
        <inertial pos="0 0 -{below}" mass="{m}" diaginertia="1e-12 1e-12 1e-12"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


MODELICA = f"""
model DoublePendulum "Two weights on strings, in x and y: a DAE of index 3"
  Real x1(start = 0), y1(start = -{L}), vx1, vy1, x2(start = 0), y2(start = -{L + below}), vx2, vy2;
  Real upper "Force of the upper string by its length", lower;
equation
  der(x1) = vx1; der(y1) = vy1; der(x2) = vx2; der(y2) = vy2;
  {M}*der(vx1) = -upper*x1 + lower*(x2 - x1);
  {M}*der(vy1) = -upper*y1 + lower*(y2 - y1) - {M * g};
  {m}*der(vx2) = -lower*(x2 - x1);
  {m}*der(vy2) = -lower*(y2 - y1) - {m * g};
  x1^2 + y1^2 = {L**2};
  (x2 - x1)^2 + (y2 - y1)^2 = {below**2};
end DoublePendulum;
"""

EXUDYN = (
    "Exudyn 1.13.6 projects its stiffness matrix without the part of the multipliers; with a spring "
    "instead of gravity (beam on a hinge and a spring) it is exact."
)


def points() -> LagrangeModel:
    """Return the pendulum as two points in x and y, held by two strings: eight states, four of them independent."""
    return LagrangeModel(
        "double pendulum",
        {"x1": "vx1", "y1": "vy1", "x2": "vx2", "y2": "vy2"},
        np.diag([M, M, m, m]).tolist(),
        [0, -M * g, 0, -m * g],
        constraints=[
            SymbolicConstraint(f"(x1^2 + y1^2 - {L**2})/2", name="upper"),
            SymbolicConstraint(f"((x2 - x1)^2 + (y2 - y1)^2 - {below**2})/2", name="lower"),
        ],
        start={"y1": -L, "y2": -L - below},
    )


def frequency(sign: int) -> float:
    """Return a root of the characteristic equation, its sign before the square root."""
    a, b = (M + m) / M * (g / L + g / below), (M + m) / M * g**2 / (L * below)
    return float(np.sqrt((a + sign * np.sqrt(a**2 - 4 * b)) / 2))


ROW = Row(
    system="Double pendulum, slow mode",
    source="Kibble and Berkshire, Classical Mechanics, equation 11.21",
    page="https://fliphtml5.com/rtgbj/doaj/Classical_Mechanics_Kibble-and-berkshire/281",
    quantity="frequency with M = 2 kg, m = 1 kg, L = 0.8 m, l = 0.5 m [rad/s]",
    published=1j * frequency(-1),
    formula="w^4 - (M + m)/M (g/L + g/l) w^2 + (M + m)/M g^2/(L l) = 0",
    answer=slowest,
    doors={
        "native": native(points),
        "TOML": toml(TOML),
        "FMU": fmu_of_toml(TOML),
        "MJCF": mjcf(MJCF),
        "Modelica": modelica(MODELICA),
        "Exudyn": exudyn(make_double_pendulum),
    },
    peers={
        "MuJoCo": "mujoco_spectrum pendulum_double_slow",
        "Drake": "drake_spectrum pendulum_double_slow",
        "Pinocchio": "pinocchio_spectrum pendulum_double_slow",
        "SymPy": "sympy_double_pendulum pendulum_double_slow",
        "CasADi": "casadi_double_pendulum pendulum_double_slow",
        "Exudyn": "exudyn_double_pendulum pendulum_double_slow",
    },
    remark=EXUDYN,
)
