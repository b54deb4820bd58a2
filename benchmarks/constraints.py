"""What constraints cost that a user writes as expressions: until the first numbers, and at each further point."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.tables import show
from fmilin.constraints.declared import Constraint, Constraints
from fmilin.signals import Signals

POSITIONS, EXPRESSIONS = 16, 8
TARGET = 0.5
"""Seconds of processor time until values, derivatives and curvature are known."""
REPEATED = 2000


def texts() -> list[str]:
    """Return loop closures as people write them: products of angles and lengths, roots, powers."""
    found = []
    for k in range(EXPRESSIONS):
        a, b, c, d = (f"q{(2 * k + j) % POSITIONS + 1}" for j in range(4))
        found.append(
            f"{k + 1}*cos({a} + {b})*sin({c} - {d}) + sqrt(1 + {a}^2 + {d}^2) "
            f"- L{k}*exp(-{b}^2)*atan2({c}, 2 + cos({d})) + ({a} - {c})^3/(2 + sin({b}*{d}))"
        )
    return found


def main() -> None:
    begin = time.process_time()
    constraints = Constraints(
        [Constraint.from_text(text) for text in texts()],
        Signals([f"q{i + 1}" for i in range(POSITIONS)]),
        Signals([]),
        parameters={f"L{k}": 1.0 + k for k in range(EXPRESSIONS)},
    )
    x, none = np.linspace(0.1, 1.0, POSITIONS), np.empty(0)
    calls: dict[str, Callable[[], object]] = {
        "values": lambda: constraints.residuals(0.0, x, none, none),
        "gradients": lambda: constraints.partials(0.0, x, none, none),
        "curvature": lambda: constraints.curvature(0.0, x, none, x),
    }
    for call in calls.values():
        call()
    first = time.process_time() - begin
    rows = [["read, compiled, first numbers", f"{first:.3f} s", f"< {TARGET:g} s: {_verdict(first)}"]]
    for name, call in calls.items():
        begin = time.process_time()
        for _ in range(REPEATED):
            call()
        rows.append([f"{name} at a point", f"{(time.process_time() - begin) / REPEATED * 1e6:.1f} us", ""])
    title = f"{EXPRESSIONS} constraint expressions over {POSITIONS} positions"
    show(title, ["what", "CPU", "target"], rows, "Processor time of one process, CasADi's import included.")


def _verdict(seconds: float) -> str:
    return "kept" if seconds < TARGET else "MISSED"
