"""Lagrange's top: the rate of spin from which on it sleeps."""

from __future__ import annotations

from math import sqrt

import numpy as np

from benchmarks.scoreboard.answers import crossing, eigenvalues
from benchmarks.scoreboard.doors import fmu_of_toml, toml
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model

M, R, ABOUT_CENTRE, I3, g = 0.4, 0.06, 3e-4, 2e-4, 9.81
I1 = ABOUT_CENTRE + M * R**2

TOML = f"""
name = "top"
gravity = [0, 0, -{g}]
independent = ["tilt.q1", "tilt.q2", "spin.q"]
[[body]]
name = "gimbal"
massless = true
[[body]]
name = "top"
mass = {M}
center = [0, 0, {R}]
inertia = [{ABOUT_CENTRE}, {ABOUT_CENTRE}, {I3}]
[[joint]]
name = "tilt"
type = "universal"
axis = [1, 0, 0]
second_axis = [0, 1, 0]
parent = "ground"
child = "gimbal"
[[joint]]
name = "spin"
type = "revolute"
parent = "gimbal"
child = "top"
"""


def critical_rate(model: Model) -> complex:
    """Return where two pairs on the imaginary axis part: the product of their differences passes zero."""

    def apart(rate: float) -> float:
        squares = np.sort_complex(eigenvalues(model, {"spin.v": rate}) ** 2)
        swinging = squares[np.abs(squares) > 1e-3]
        total, product = np.sum(swinging) / 2, np.sqrt(np.prod(swinging))
        return float((total**2 - 4 * product).real)

    return crossing(apart, 50.0, 300.0)


ROW = Row(
    system="Lagrange's top, asleep",
    source="Kibble and Berkshire, Classical Mechanics, equation 12.26",
    page="https://fliphtml5.com/rtgbj/doaj/Classical_Mechanics_Kibble-and-berkshire/309",
    quantity="least rate of spin of an upright top, M = 0.4 kg, R = 0.06 m, I1 = 1.74e-3, I3 = 2e-4 kg m2 [rad/s]",
    published=sqrt(4 * I1 * M * g * R) / I3,
    formula="omega_3^2 = 4 I1 M g R/I3^2",
    answer=critical_rate,
    doors={"TOML": toml(TOML), "FMU": fmu_of_toml(TOML)},
)
