"""The Research Civil Aircraft Model, straight and level: what its tail does."""

from __future__ import annotations

import fmilin as fl
from benchmarks.published_trims import rcam
from benchmarks.scoreboard.doors import native
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model


def stabilizer(model: Model) -> complex:
    """Return the stabilizer's angle at 85 m/s."""
    point = fl.trim(
        model,
        fixed={"VA": 85.0, "gamma": 0.0, "v": 0.0, "psi": 0.0},
        free=["ail", "stab", "rud", "th1", "th2"],
        minimize="th1^2 + th2^2",
    )
    return complex(point.inputs[model.inputs.names.index("stab")])


ROW = Row(
    system="Research Civil Aircraft Model (GARTEUR), trimmed",
    source="GARTEUR/TP-088-3, trimmed as in lectures of Lum (Uo of ImplicitLinMod, straight and level)",
    page="https://garteur.org/wp-content/reports/FM/FM_AG-08_TP-088-3.pdf",
    quantity="stabilizer at 85 m/s, level [rad]",
    published="-0.1780",
    answer=stabilizer,
    doors={"native": native(rcam)},
)
