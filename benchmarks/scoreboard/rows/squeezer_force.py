"""Andrews' squeezing mechanism: the force in one of its pins at the start."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scoreboard.doors import fmu_of_toml, toml
from benchmarks.scoreboard.rows.squeezer import ROW as BETA
from benchmarks.scoreboard.rows.squeezer import TOML
from fmilin.model.interface import Model

ALONG_X = TOML.replace(
    'first_placement = {position = [-0.028, 0, 0]}\nsecond = "K3"',
    'first_placement = {position = [-0.028, 0, 0], angle = 0.0617138900142764}\nsecond = "K3"',
)
"""The loop's axes, which K2 carries, are those of the ground at the start."""

SENSOR = '[[sensor]]\nname = "force"\nquantity = "reaction"\nof = "PK3"\ncoordinate = 0\n'


def force(model: Model) -> complex:
    """Return the force along x, without regard to which of the two bodies feels it."""
    at = model.evaluate(model.start.time, model.start.states, model.start.inputs)
    return complex(abs(at.outputs[model.outputs.names.index("force")]))


ROW = replace(
    BETA,
    system="Andrews' squeezing mechanism, force",
    quantity="first multiplier at the start, the force along x where K2 meets K3 [N]",
    published="98.5668703962410896057654982170",
    answer=force,
    doors={"TOML": toml(ALONG_X + SENSOR), "FMU": fmu_of_toml(ALONG_X + SENSOR)},
    peers={},
    remark="",
)
