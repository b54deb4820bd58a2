"""A beam on a hinge, held by a spring at its end: a test of Exudyn for eigenvalues with constraints."""

from __future__ import annotations

from math import pi, sqrt

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.doors import exudyn, fmu_of_toml, toml
from benchmarks.scoreboard.exudyn_systems import make_beam
from benchmarks.scoreboard.row import Row

LENGTH, WIDTH, HEIGHT, DENSITY, STIFFNESS, SPRING = 0.1, 0.01, 0.001, 5000.0, 10.0, 0.02
MASS = DENSITY * LENGTH * WIDTH * HEIGHT
ABOUT_CENTRE = MASS * (LENGTH**2 + HEIGHT**2) / 12

TOML = f"""
name = "beam"
gravity = [0, 0, 0]
[[body]]
name = "beam"
mass = {MASS}
center = [{LENGTH / 2}, 0, 0]
inertia = [0, {ABOUT_CENTRE}, {ABOUT_CENTRE}]
[[joint]]
name = "hinge"
type = "revolute"
parent = "ground"
child = "beam"
[[bushing]]
name = "spring"
first = "ground"
first_placement = {{position = [{LENGTH}, 0, 0]}}
second = "beam"
second_placement = {{position = [{LENGTH}, 0, 0]}}
stiffness = [0, {STIFFNESS}, 0, 0, 0, 0]
"""

ROW = Row(
    system="Beam on a hinge and a spring",
    source="Exudyn, test model computeODE2AEeigenvaluesTest.py, evAnalytical",
    page="https://github.com/jgerstmayr/EXUDYN/blob/master/main/pythonDev/TestModels/computeODE2AEeigenvaluesTest.py",
    quantity="frequency [Hz]",
    published=sqrt(STIFFNESS * LENGTH**2 / (ABOUT_CENTRE + MASS * LENGTH**2 / 4)) / (2 * pi),
    formula="sqrt(springK beamL^2/thetaZZ)/(2 pi)",
    answer=lambda model: fastest(model).imag / (2 * pi),
    doors={"TOML": toml(TOML), "FMU": fmu_of_toml(TOML), "Exudyn": exudyn(lambda: make_beam(hanging=False))},
    peers={"Exudyn": "exudyn_beam beam_on_spring"},
)
