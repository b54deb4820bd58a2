"""Tables of trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.simulation.trajectory import Trajectory


@register
class TrajectoryCsv(Codec["Trajectory"]):
    holds = "motion"
    suffix = ".csv"
    audience = "spreadsheets"
    content = "time, every state and output: `fmilin simulate -o`"
    position = 10
    description = "a table"

    def dumps(self, result: Trajectory, writing: Writing) -> bytes:
        from fmilin.simulation.trajectory import trajectory_as_csv

        return trajectory_as_csv(result)
