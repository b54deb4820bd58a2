"""The Whipple bicycle at 5 m/s: how fast its fork falls in line."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scoreboard.answers import eigenvalues
from benchmarks.scoreboard.doors import fmu_of_toml, toml
from benchmarks.scoreboard.rows.bicycle_at_5 import ROW as WEAVE
from benchmarks.scoreboard.rows.bicycle_at_5 import mechanism

ROW = replace(
    WEAVE,
    system="Whipple bicycle at 5 m/s, castering",
    quantity="castering [1/s]",
    published="-14.07838969279822",
    answer=lambda model: complex(min(eigenvalues(model).real)),
    doors={"TOML": toml(mechanism(5.0)), "FMU": fmu_of_toml(mechanism(5.0))},
)
