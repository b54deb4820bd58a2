"""The Whipple bicycle with a rigid rider at 5 m/s: its weave."""

from __future__ import annotations

from math import cos, sin

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.doors import fmu, native, toml
from benchmarks.scoreboard.row import Row
from fmilin.systems import bicycle
from fmilin.systems.bicycle_model import BENCHMARK

SOURCE = "Meijaard, Papadopoulos, Ruina, Schwab, Linearized dynamics equations for the balance of a bicycle (2007)"
PAGE = "https://doi.org/10.1098/rspa.2007.1857"


def mechanism(speed: float) -> str:
    """Return the bicycle as four bodies, three hinges and two wheels on the ground; x forwards, z down."""
    p = BENCHMARK
    return f"""
name = "bicycle"
gravity = [0, 0, {p["g"]}]
independent = [
  "road.x", "road.y", "road.angle", "lean.q", "steer.q", "rear.q", "front.q", "lean.v", "steer.v", "rear.v"
]
[[body]]
name = "yawed"
massless = true
[[body]]
name = "lifted"
massless = true
[[body]]
name = "leaned"
massless = true
[[body]]
name = "frame"
mass = {p["m_B"]}
center = [{p["x_B"]}, 0, {p["z_B"] + p["r_R"]}]
inertia = [{p["I_Bxx"]}, {p["I_Byy"]}, {p["I_Bzz"]}, 0, {p["I_Bxz"]}, 0]
[[body]]
name = "rear"
mass = {p["m_R"]}
inertia = [{p["I_Rxx"]}, {p["I_Ryy"]}, {p["I_Rxx"]}]
[[body]]
name = "fork"
mass = {p["m_H"]}
center = [{p["x_H"] - p["w"] - p["c"]}, 0, {p["z_H"]}]
inertia = [{p["I_Hxx"]}, {p["I_Hyy"]}, {p["I_Hzz"]}, 0, {p["I_Hxz"]}, 0]
[[body]]
name = "front"
mass = {p["m_F"]}
inertia = [{p["I_Fxx"]}, {p["I_Fyy"]}, {p["I_Fxx"]}]

[[joint]]
name = "road"
type = "planar"
parent = "ground"
child = "yawed"
velocity = [{speed}, 0, 0]
[[joint]]
name = "height"
type = "prismatic"
parent = "yawed"
child = "lifted"
position = {-p["r_R"]}
[[joint]]
name = "lean"
type = "revolute"
axis = [1, 0, 0]
parent = "lifted"
child = "leaned"
[[joint]]
name = "pitch"
type = "revolute"
axis = [0, 1, 0]
parent = "leaned"
child = "frame"
[[joint]]
name = "rear"
type = "revolute"
axis = [0, 1, 0]
parent = "frame"
child = "rear"
velocity = {-speed / p["r_R"]}
[[joint]]
name = "steer"
type = "revolute"
axis = [{sin(p["tilt"])}, 0, {cos(p["tilt"])}]
parent = "frame"
child = "fork"
placement = {{position = [{p["w"] + p["c"]}, 0, {p["r_R"]}]}}
[[joint]]
name = "front"
type = "revolute"
axis = [0, 1, 0]
parent = "fork"
child = "front"
placement = {{position = [{-p["c"]}, 0, {-p["r_F"]}]}}
velocity = {-speed / p["r_F"]}

[[wheel]]
name = "rear_contact"
body = "rear"
radius = {p["r_R"]}
normal = [0, 0, -1]
[[wheel]]
name = "front_contact"
body = "front"
radius = {p["r_F"]}
normal = [0, 0, -1]
"""


ROW = Row(
    system="Whipple bicycle at 5 m/s, weave",
    source=f"{SOURCE}, table 2",
    page=PAGE,
    quantity="weave [1/s]",
    published="-0.77534188219585+4.46486771378823j",
    answer=fastest,
    doors={"TOML": toml(mechanism(5.0)), "native": native(lambda: bicycle(5.0)), "FMU": fmu(lambda: bicycle(5.0))},
)
