"""A synchronous generator on an infinite bus: the swing equation, with the line's current as algebraic variables."""

from __future__ import annotations

from math import asin, cos, pi, sqrt

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.doors import fmu, modelica, native
from benchmarks.scoreboard.row import Row
from fmilin.models import DaeModel

E, V, H, X, PM, D, F0 = 1.35, 1.0, 9.94, 0.65, 0.6, 0.138, 60.0
REST = asin(PM * X / (E * V))

MODELICA = f"""
model Generator "re + j im is the current, in parts of the nominal one"
  Real delta(start = {REST}, fixed = true), w(start = 0, fixed = true), re, im;
equation
  der(delta) = w;
  {H / (pi * F0)}*der(w) + {D}*w = {PM} - {E}*(cos(delta)*re + sin(delta)*im);
  {E}*cos(delta) = {V} - {X}*im;
  {E}*sin(delta) = {X}*re;
end Generator;
"""


def generator() -> DaeModel:
    """Return the rotor at delta, behind E; the current re + j im flows through X to the bus at V."""
    return DaeModel(
        "generator",
        [
            "der(delta) = w",
            "H/(pi*f0)*der(w) + D*w = Pm - E*(cos(delta)*re + sin(delta)*im)",
            "E*cos(delta) = V - X*im",
            "E*sin(delta) = X*re",
        ],
        parameters={"E": E, "V": V, "H": H, "X": X, "Pm": PM, "D": D, "f0": F0},
        start={"delta": REST},
    )


def published() -> complex:
    """Return the eigenvalue by the printed formulas."""
    synchronizing = E * V / X * cos(REST)
    natural = sqrt(pi * 60 / H * synchronizing)
    ratio = D / 2 * sqrt(pi * 60 / (H * synchronizing))
    return complex(-ratio * natural, natural * sqrt(1 - ratio**2))


ROW = Row(
    system="Generator on an infinite bus",
    source="Saadat, Power System Analysis, example 11.2, as in the file chp11ex2.m",
    page="https://github.com/SunBoqiang/Examples-of-PowerSystemAnalysis/blob/b5d091d4e736be4017a4a6bfe4c72238ad605a27/chp11ex2.m",
    quantity="swing with E = 1.35, V = 1, H = 9.94 s, X = 0.65, Pm = 0.6, D = 0.138 at 60 Hz [1/s]",
    published=published(),
    formula="Ps = Pmax*cos(d0), wn = sqrt(pi*60/H*Ps), z = D/2*sqrt(pi*60/(H*Ps)), wd = wn*sqrt(1-z^2)",
    answer=fastest,
    doors={"native": native(generator), "FMU": fmu(generator), "Modelica": modelica(MODELICA)},
    peers={"python-control": "control_generator"},
)
