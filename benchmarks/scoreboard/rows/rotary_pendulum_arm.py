"""The rotary inverted pendulum: how the rod's lean drives its arm."""

from __future__ import annotations

from dataclasses import replace

import fmilin as fl
from benchmarks.scoreboard.rows.rotary_pendulum import ROW as ROD
from fmilin.model.interface import Model


def driven(model: Model) -> complex:
    """Return the size of the entry of A from the rod's angle to the arm's acceleration."""
    linear = fl.linearize(model)
    names = linear.states.names
    return complex(abs(linear.A[names.index("arm.v"), names.index("rod.q")]))


ROW = replace(
    ROD,
    system="Rotary inverted pendulum (QUBE-Servo 2), arm",
    quantity="A from the rod's angle to the arm's acceleration, without its sign [1/s2]",
    source=ROD.source.replace("A(4, 2)", "A(3, 2)"),
    published="149.2751",
    answer=driven,
)
