"""The speed from which on the Whipple bicycle no longer weaves."""

from __future__ import annotations

import numpy as np

from benchmarks.scoreboard.answers import crossing, eigenvalues
from benchmarks.scoreboard.doors import fmu_of_toml, native, toml
from benchmarks.scoreboard.row import Row
from benchmarks.scoreboard.rows.bicycle_at_5 import PAGE, SOURCE, mechanism
from fmilin.model.interface import Model
from fmilin.systems import bicycle
from fmilin.systems.bicycle_model import BENCHMARK


def all_at(model: Model, speed: float) -> np.ndarray:
    """Return the ten eigenvalues at a speed, of which six are zero."""
    [rear] = {"rear.v", "rear_rate"} & set(model.states.names)
    return eigenvalues(model, {rear: -speed / BENCHMARK["r_R"]})


def weave_speed(model: Model) -> complex:
    """Return where the real part of the fastest pair passes zero."""

    def growth(speed: float) -> float:
        found = all_at(model, speed)
        return float(found[found.imag.argmax()].real)

    return crossing(growth, 4.0, 5.0)


ROW = Row(
    system="Whipple bicycle, weave speed",
    source=f"{SOURCE}, section 5",
    page=PAGE,
    quantity="speed from which on the weave decays [m/s]",
    published="4.29238253634111",
    answer=weave_speed,
    doors={"TOML": toml(mechanism(5.0)), "native": native(bicycle), "FMU": fmu_of_toml(mechanism(5.0))},
)
