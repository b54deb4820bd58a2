"""The restricted three-body problem: how fast a spacecraft leaves the point between Earth and Moon."""

from __future__ import annotations

import fmilin as fl
from benchmarks.scoreboard.doors import fmu, modelica, native
from benchmarks.scoreboard.row import Row
from benchmarks.scoreboard.rows.three_bodies import restricted
from fmilin.model.interface import Model

MU = 0.0121505856

MODELICA = f"""
model ThreeBodies "In the frame that turns with Earth and Moon"
  parameter Real mu = {MU};
  Real x(start = 0.83, fixed = true), y(start = 0, fixed = true);
  Real u(start = 0, fixed = true), v(start = 0, fixed = true), near, far;
equation
  near = ((x + mu)^2 + y^2)^1.5;
  far = ((x - 1 + mu)^2 + y^2)^1.5;
  der(x) = u;
  der(y) = v;
  der(u) = 2*v + x - (1 - mu)*(x + mu)/near - mu*(x - 1 + mu)/far;
  der(v) = -2*u + y - (1 - mu)*y/near - mu*y/far;
end ThreeBodies;
"""


def earth_and_moon() -> Model:
    """Return the problem with the Moon's part of the mass, near L1."""
    model: Model = restricted().with_parameters({"mu": MU}).with_start({"x": 0.83, "y": 0.0})
    return model


def growth(model: Model) -> complex:
    """Return the rate at which deviations from L1 grow."""
    rest = fl.trim(model, guess={"x": 0.83, "y": 0.0})
    return max((complex(s) for s in fl.linearize(model, rest).eigenvalues()), key=lambda s: s.real)


ROW = Row(
    system="Restricted three-body problem, L1 of Earth and Moon",
    source="A public program for normal forms at L1 (lambda, with omegaY = 2.334385885011224), mu = 0.0121505856",
    page="read as a C++ file of a public repository, which has no lasting address",
    quantity="growth, in turns of the frame",
    published="2.932055933522975",
    answer=growth,
    doors={"native": native(earth_and_moon), "FMU": fmu(earth_and_moon), "Modelica": modelica(MODELICA)},
    remark="The file gives no mu in the lines that were read; both of its numbers follow from this one to all digits.",
)
