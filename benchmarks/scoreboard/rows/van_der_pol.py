"""Van der Pol's oscillator: its period."""

from __future__ import annotations

import fmilin as fl
from benchmarks.scoreboard.doors import fmu, modelica, native
from benchmarks.scoreboard.row import Row
from fmilin.models import OdeModel

MODELICA = """
model VanDerPol
  Real x(start = 2, fixed = true), v(start = 0, fixed = true);
equation
  der(x) = v;
  der(v) = (1 - x^2)*v - x;
end VanDerPol;
"""


def oscillator() -> OdeModel:
    """Return the oscillator with mu = 1."""
    return OdeModel("van der Pol", {"x": "v", "v": "(1 - x^2)*v - x"}, start={"x": 2.0})


ROW = Row(
    system="Van der Pol's oscillator",
    source="Amore, Computing the solutions of the van der Pol equation to arbitrary precision (2021)",
    page="https://arxiv.org/abs/2111.12198",
    quantity="period with mu = 1",
    published="6.66328685932",
    answer=lambda model: complex(fl.periodic_orbit(model).period),
    doors={"native": native(oscillator), "FMU": fmu(oscillator), "Modelica": modelica(MODELICA)},
    remark="The source has more digits (6.663286859323130); the orbit is integrated to a tolerance.",
)
