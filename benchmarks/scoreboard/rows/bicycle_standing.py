"""The Whipple bicycle standing still falls over."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scoreboard.answers import rightmost
from benchmarks.scoreboard.doors import fmu_of_toml, native, toml
from benchmarks.scoreboard.rows.bicycle_at_5 import ROW as AT_5
from benchmarks.scoreboard.rows.bicycle_at_5 import mechanism
from fmilin.systems import bicycle

ROW = replace(
    AT_5,
    system="Whipple bicycle, standing",
    quantity="growth at 0 m/s [1/s]",
    published="5.53094371765393",
    answer=rightmost,
    doors={"TOML": toml(mechanism(0.0)), "native": native(lambda: bicycle(0.0)), "FMU": fmu_of_toml(mechanism(0.0))},
)
