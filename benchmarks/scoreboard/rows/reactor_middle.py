"""A stirred tank reactor at the unstable one of its three rests."""

from __future__ import annotations

from benchmarks.scoreboard.answers import rightmost
from benchmarks.scoreboard.doors import fmu, modelica, native
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model
from fmilin.models import OdeModel

SOURCE = "Bequette, Continuous stirred tank reactor, case 2, stability analysis (Rensselaer Polytechnic Institute)"
PAGE = "https://huggingface.co/datasets/nvidia/Nemotron-CC-Math-v1"


MODELICA = """
model Reactor
  Real c(start = 5.5, fixed = true), T(start = 339, fixed = true), rate;
equation
  rate = 9703*3600*exp(-11843/(1.987*T))*c;
  der(c) = 10 - c - rate;
  der(T) = 298 - T + 5960/500*rate - 150/500*(T - 298);
end Reactor;
"""


def reactor() -> OdeModel:
    """Return the tank with a jacket: kgmol/m3, K, hours."""
    rate = "(9703*3600*exp(-11843/(1.987*T))*c)"
    return OdeModel(
        "reactor",
        {"c": f"10 - c - {rate}", "T": f"298 - T + 5960/500*{rate} - 150/500*(T - 298)"},
        start={"c": 5.5, "T": 339.0},
    )


def rightmost_at(model: Model, concentration: float, temperature: float) -> complex:
    """Return the rightmost eigenvalue at the rest as it is printed, rounded."""
    return rightmost(model, {"c": concentration, "T": temperature})


ROW = Row(
    system="Stirred tank reactor, middle rest",
    source=SOURCE,
    page=PAGE,
    quantity="growth at 5.518 kgmol/m3 and 339.1 K [1/h]",
    published="0.4942",
    answer=lambda model: rightmost_at(model, 5.518, 339.1),
    doors={"native": native(reactor), "FMU": fmu(reactor), "Modelica": modelica(MODELICA)},
    peers={"python-control": "control_reactor reactor_middle"},
    remark="Linearized at the equilibrium rounded to these digits, as in the source.",
)
