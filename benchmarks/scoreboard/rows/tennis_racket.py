"""A body that turns freely about its middle axis of inertia."""

from __future__ import annotations

from math import sqrt

from benchmarks.scoreboard.answers import rightmost
from benchmarks.scoreboard.doors import fmu_of_toml, modelica, native, toml
from benchmarks.scoreboard.row import Row
from fmilin.models import OdeModel

I1, I2, I3, RATE = 3.0, 2.0, 1.5, 4.0

TOML = f"""
name = "racket"
gravity = [0, 0, 0]
[[body]]
name = "racket"
mass = 1
inertia = [{I1}, {I2}, {I3}]
[[joint]]
name = "free"
type = "spherical"
parent = "ground"
child = "racket"
velocity = [0, {RATE}, 0]
"""


MODELICA = f"""
model Racket "Euler's equations"
  Real w1(start = 0, fixed = true), w2(start = {RATE}, fixed = true), w3(start = 0, fixed = true);
equation
  {I1}*der(w1) = ({I2} - {I3})*w2*w3;
  {I2}*der(w2) = ({I3} - {I1})*w3*w1;
  {I3}*der(w3) = ({I1} - {I2})*w1*w2;
end Racket;
"""


def euler() -> OdeModel:
    """Return Euler's equations."""
    return OdeModel(
        "racket",
        {
            "w1": f"({I2} - {I3})/{I1}*w2*w3",
            "w2": f"({I3} - {I1})/{I2}*w3*w1",
            "w3": f"({I1} - {I2})/{I3}*w1*w2",
        },
        start={"w2": RATE},
    )


ROW = Row(
    system="Free body about its middle axis",
    source="Physics Stack Exchange, question 373033, equation 6",
    page="https://physics.stackexchange.com/questions/373033",
    quantity="growth at 4 rad/s with I = 3, 2, 1.5 kg m2 [1/s]",
    published=RATE * sqrt((I1 - I2) * (I2 - I3) / (I1 * I3)),
    formula="omega_2 = Omega_2 sqrt((I1 - I2)(I2 - I3)/(I1 I3))",
    answer=rightmost,
    doors={"native": native(euler), "TOML": toml(TOML), "FMU": fmu_of_toml(TOML), "Modelica": modelica(MODELICA)},
)
