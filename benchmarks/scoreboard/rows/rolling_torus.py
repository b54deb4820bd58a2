"""A torus that rolls upright: a wheel with a round tyre."""

from __future__ import annotations

from cmath import sqrt

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.doors import fmu_of_toml, toml
from benchmarks.scoreboard.row import Row

g, r1, r2, RATE = 9.81, 0.594, 0.025, 9.0
ACROSS, AXIAL = r1**2 / 2 + 5 * r2**2 / 8, r1**2 + 3 * r2**2 / 4

TOML = f"""
name = "torus"
gravity = [0, 0, -{g}]
independent = ["road.x", "road.y", "road.angle", "lean.q", "spin.q", "lean.v", "road.w", "spin.v"]
[[body]]
name = "over_the_road"
massless = true
[[body]]
name = "centre"
massless = true
[[body]]
name = "leaned"
massless = true
[[body]]
name = "torus"
mass = 0.1
inertia = [{0.1 * ACROSS}, {0.1 * AXIAL}, {0.1 * ACROSS}]
[[joint]]
name = "road"
type = "planar"
parent = "ground"
child = "over_the_road"
velocity = [{RATE * (r1 + r2)}, 0, 0]
[[joint]]
name = "height"
type = "prismatic"
parent = "over_the_road"
child = "centre"
position = {r1 + r2}
[[joint]]
name = "lean"
type = "revolute"
axis = [1, 0, 0]
parent = "centre"
child = "leaned"
[[joint]]
name = "spin"
type = "revolute"
axis = [0, 1, 0]
parent = "leaned"
child = "torus"
velocity = {RATE}
[[wheel]]
name = "contact"
body = "torus"
radius = {r1}
tube = {r2}
"""


def wobble() -> complex:
    """Return the eigenvalue of the printed equations to first order in q2, u1 and u3, upright."""
    inertia = 2 * r1 * r2 + 13 * r2**2 / 8 + 3 * r1**2 / 2
    of_yaw = 2 * r1**2 + 3 * r2**2 / 4 + r2**2 + 2 * r1 * r2
    of_lean = r1**2 + 3 * r2**2 / 4
    yaw_inertia = 5 * r2**2 / 8 + r1**2 / 2
    return sqrt((g * r1 - of_yaw * of_lean * RATE**2 / yaw_inertia) / inertia)


ROW = Row(
    system="Rolling torus, upright",
    source="Peterson, an early PyDy, examples/rollingtorus, equations of motion by Kane's method",
    page="https://github.com/hazelnusse/pydy/blob/0c43e346a8fd8c8c6a77bb907147718a1f884216/examples/rollingtorus/rollingtorus_lib.py",
    quantity="wobble at 9 rad/s, the rings of r1 = 0.594 m and r2 = 0.025 m [rad/s]",
    published=wobble(),
    formula="u1' = (-g*r1*s2 - 2*r1**2*u2*u3 - 3*r2**2*u2*u3/4 - r2**2*c2**2*u2*u3 - 2*r1*r2*c2*u2*u3 + ...)"
    "/(-2*r1*r2*c2 - 13*r2**2/8 - 3*r1**2/2), u3' = (r1**2*u1*u2 + 3*r2**2*u1*u2/4 + ...)"
    "/(-5*r2**2/8 - r1**2/2 + ...), q2' = u1, with terms of second order left out here",
    answer=fastest,
    doors={"TOML": toml(TOML), "FMU": fmu_of_toml(TOML)},
)
