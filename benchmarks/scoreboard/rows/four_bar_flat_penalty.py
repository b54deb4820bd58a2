"""The four-bar linkage folded flat, with the constraints as stiff springs."""

from __future__ import annotations

from benchmarks.scoreboard.doors import native
from benchmarks.scoreboard.row import Row
from benchmarks.scoreboard.rows.four_bar_flat_first import SOURCE, frequency
from fmilin.formulations import UCS
from fmilin.systems import four_bar

ROW = Row(
    system="Four-bar linkage, folded flat, by penalties",
    source=f"{SOURCE}, section 5.1",
    page="https://doi.org/10.1115/1.4035410",
    quantity="first of two pairs with the published penalties, alpha = 1e6, xi = 1, omega = 10 [1/s]",
    published="3.4310j",
    answer=lambda model: frequency(model, 0, UCS(alpha=1e6, xi=1.0, omega=10.0)),
    doors={"native": native(lambda: four_bar(singular=True))},
    left_out=1e-7,  # entries of alpha omega^2 = 1e8 stand next to it: 1e8 roundings of 2e-16 are 2e-8
)
