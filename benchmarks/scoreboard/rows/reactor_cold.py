"""The stirred tank reactor at its cold rest."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scoreboard.rows.reactor_middle import ROW as MIDDLE
from benchmarks.scoreboard.rows.reactor_middle import rightmost_at

ROW = replace(
    MIDDLE,
    system="Stirred tank reactor, cold rest",
    quantity="slower decay at 8.564 kgmol/m3 and 311.2 K [1/h]",
    published="-0.5166",
    answer=lambda model: rightmost_at(model, 8.564, 311.2),
    peers={"python-control": "control_reactor reactor_cold"},
)
