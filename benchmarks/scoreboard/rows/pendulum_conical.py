"""A pendulum that goes round: how fast it nods about that."""

from __future__ import annotations

from math import cos, sqrt

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.doors import fmu_of_toml, toml
from benchmarks.scoreboard.row import Row

ANGLE, LENGTH, g = 0.5, 1.0, 9.81
RATE = sqrt(g / (LENGTH * cos(ANGLE)))

TOML = f"""
name = "conical pendulum"
gravity = [0, 0, -{g}]
independent = ["round.q", "nod.q", "round.v", "nod.v"]
[[body]]
name = "turned"
massless = true
[[body]]
name = "weight"
mass = 1
center = [0, 0, -{LENGTH}]
[[joint]]
name = "round"
type = "revolute"
parent = "ground"
child = "turned"
velocity = {RATE}
[[joint]]
name = "nod"
type = "revolute"
axis = [0, 1, 0]
parent = "turned"
child = "weight"
position = {ANGLE}
"""

ROW = Row(
    system="Conical pendulum",
    source="Encyclopaedia Britannica, 11th edition, Mechanics, equations 24 and 25",
    page="https://bitlit.ru/page/en/various/encyclopaedia-britannica-11th-edition-matter-to-mecklenburg-volume-17-slice-8/222",
    quantity=f"nodding at {ANGLE} rad from the vertical [rad/s]",
    published=1j * RATE * sqrt(1 + 3 * cos(ANGLE) ** 2),
    formula="chi'' + (1 + 3 cos^2 alpha) Omega^2 chi = 0, Omega^2 = g/(l cos alpha)",
    answer=fastest,
    doors={"TOML": toml(TOML), "FMU": fmu_of_toml(TOML)},
)
