"""Mathieu's equation: the lower edge of a narrow band in which an upside-down pendulum stands."""

from __future__ import annotations

import fmilin as fl
from benchmarks.scoreboard.answers import crossing
from benchmarks.scoreboard.doors import native
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model
from fmilin.models import OdeModel

SOURCE = "Burkardt, TEST_VALUES, mathieu_even_values, as Abramowitz and Stegun, table 20.1"
PAGE = "https://people.sc.fsu.edu/~jburkardt/f_src/test_values/test_values.html"


def mathieu() -> OdeModel:
    """Return x'' + (a - 2 q cos 2t) x = 0."""
    return OdeModel("Mathieu", {"x": "v", "v": "-(a - 2*q*cos(2*time))*x"}, parameters={"a": 1.0, "q": 5.0})


def edge(model: Model, low: float, high: float, trace: float) -> complex:
    """Return a at which the trace of the monodromy matrix, of determinant 1, has a value: 2, period pi; -2, 2 pi."""

    def growth(a: float) -> float:
        tuned = model.with_parameters({"a": a})
        orbit = fl.periodic_orbit(tuned, period=3.141592653589793)
        return float(fl.linearize_periodic(tuned, orbit).floquet().multipliers.sum().real) - trace

    return crossing(growth, low, high)


ROW = Row(
    system="Mathieu's equation, q = 5, a0",
    source=SOURCE,
    page=PAGE,
    quantity="lowest a of the first stable band at q = 5",
    published="-5.80004602",
    answer=lambda model: edge(model, -5.802, -5.795, 2.0),
    doors={"native": native(mathieu)},
)
