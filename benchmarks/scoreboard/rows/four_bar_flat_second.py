"""The other branch of the four-bar linkage folded flat."""

from __future__ import annotations

from benchmarks.scoreboard.doors import native
from benchmarks.scoreboard.row import Row
from benchmarks.scoreboard.rows.four_bar_flat_first import SOURCE, frequency
from fmilin.formulations import RCS
from fmilin.systems import four_bar

ROW = Row(
    system="Four-bar linkage, folded flat, the other branch",
    source=f"{SOURCE}, section 5.1",
    page="https://doi.org/10.1115/1.4035410",
    quantity="second of two pairs, one loop, no spring, gravity along x [1/s]",
    published="4.4294j",
    answer=lambda model: frequency(model, 1, RCS()),
    doors={"native": native(lambda: four_bar(singular=True))},
    remark="By the generalized eigenvalues of the equations with multipliers (RCS).",
)
