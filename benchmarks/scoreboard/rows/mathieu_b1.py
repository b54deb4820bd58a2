"""The upper edge of the band of Mathieu's equation; ``mathieu_a0`` is the lower one."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scoreboard.rows.mathieu_a0 import ROW as LOWER
from benchmarks.scoreboard.rows.mathieu_a0 import edge

ROW = replace(
    LOWER,
    system="Mathieu's equation, q = 5, b1",
    quantity="highest a of the first stable band at q = 5",
    source="SciPy, scipy.special.mathieu_b(1, 5), to the digits that its tests in other languages print",
    page="https://docs.scipy.org/doc/scipy/reference/generated/scipy.special.mathieu_b.html",
    published="-5.790080598638",
    answer=lambda model: edge(model, -5.795, -5.78, -2.0),
)
