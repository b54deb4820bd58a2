"""The Whipple bicycle at 10 m/s: its weave, after the table's last line."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scoreboard.doors import fmu_of_toml, native, toml
from benchmarks.scoreboard.rows.bicycle_at_5 import ROW as AT_5
from benchmarks.scoreboard.rows.bicycle_at_5 import mechanism
from fmilin.systems import bicycle

ROW = replace(
    AT_5,
    system="Whipple bicycle at 10 m/s, weave",
    published="-3.72016840437287+10.9068113947629j",
    doors={"TOML": toml(mechanism(10.0)), "native": native(lambda: bicycle(10.0)), "FMU": fmu_of_toml(mechanism(10.0))},
)
