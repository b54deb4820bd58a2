"""An inverted pendulum on a cart, as in the Control Tutorials for MATLAB and Simulink."""

from __future__ import annotations

import fmilin as fl
from benchmarks.scoreboard.doors import fmu_of_toml, mjcf, native, toml
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model
from fmilin.models import LagrangeModel

TOML = """
name = "cart"
gravity = [0, -9.8, 0]
[[body]]
name = "cart"
mass = 0.5
[[body]]
name = "rod"
mass = 0.2
center = [0, 0.3, 0]
inertia = [0.006, 0, 0.006]
[[joint]]
name = "track"
type = "prismatic"
axis = [1, 0, 0]
parent = "ground"
child = "cart"
damping = 0.1
[[joint]]
name = "pin"
type = "revolute"
parent = "cart"
child = "rod"
"""

MJCF = """
<mujoco>
  <option gravity="0 0 -9.8"/>
  <worldbody>
    <body name="cart">
      <joint name="track" type="slide" axis="1 0 0" damping="0.1"/>
      <inertial pos="0 0 0" mass="0.5" diaginertia="1 1 1"/>
      <body name="rod">
        <joint name="pin" axis="0 -1 0"/>
        <inertial pos="0 0 0.3" mass="0.2" diaginertia="0.006 0.006 0.001"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def lagrange() -> LagrangeModel:
    """Return the cart at x and the rod at the angle phi, to the left."""
    return LagrangeModel(
        "cart",
        {"x": "v", "phi": "w"},
        [["0.7", "-0.06*cos(phi)"], ["-0.06*cos(phi)", "0.006 + 0.2*0.3^2"]],
        ["-0.1*v - 0.06*sin(phi)*w^2", "0.06*9.8*sin(phi)"],
    )


def tipping(model: Model) -> complex:
    """Return the entry of A from the angle to its acceleration."""
    linear = fl.linearize(model)
    names = linear.states.names
    angle = next(i for i, name in enumerate(names) if name in {"phi", "pin.q", "pin"})
    rate = next(i for i, name in enumerate(names) if name in {"w", "pin.v", "vel(pin)"})
    return complex(linear.A[rate, angle])


ROW = Row(
    system="Inverted pendulum on a cart",
    source="Control Tutorials for MATLAB and Simulink, as printed in Mathematical models in control, section 2",
    page="https://ctms.engin.umich.edu/CTMS/index.php?example=InvertedPendulum&section=SystemModeling",
    quantity="A from the angle to its acceleration [1/s2]",
    published="31.1818",
    answer=tipping,
    doors={"native": native(lagrange), "TOML": toml(TOML), "FMU": fmu_of_toml(TOML), "MJCF": mjcf(MJCF)},
)
