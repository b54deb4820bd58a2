"""What a linear model of a co-simulation FMU costs and how good it is, by every way, beside model exchange.

The four-bar linkage of González et al., one loop, written by fmilin with both interfaces: its eigenvalues are known.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import fmilin as fl
from benchmarks.tables import show

TRUE = 2.147676638502278
"""rad/s."""
ROUNDS = 3
WAYS = (("model exchange", "me", None), *((way, "cs", way) for way in ("direct", "step", "response")))


def main() -> None:
    from fmilin.fmi.write import build_fmu
    from fmilin.systems import four_bar

    times: dict[str, list[float]] = {name: [] for name, _, _ in WAYS}
    errors: dict[str, float] = {}
    steps: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = build_fmu(four_bar(), Path(folder) / "four_bar.fmu")
        for _ in range(ROUNDS):
            for name, interface, way in WAYS:
                with fl.load(path, interface=interface) as model:
                    begin = time.perf_counter()
                    linear = fl.linearize(model, stepping=None if way is None else fl.Stepping(method=way))
                    times[name].append(time.perf_counter() - begin)
                errors[name] = float(np.max(np.abs(linear.eigenvalues() - np.array([-1j, 1j]) * TRUE))) / TRUE
                steps[name] = int(getattr(model, "steps", 0))
    medians = {name: statistics.median(values) for name, values in times.items()}
    floor = medians["model exchange"]
    rows = [
        [name, f"{medians[name]:.3f} s", f"{medians[name] / floor:.1f}", str(steps[name] or ""), f"{errors[name]:.1e}"]
        for name in medians
    ]
    show(
        "Co-simulation",
        ["method", "median", "ratio", "steps", "error of the eigenvalue"],
        rows,
        f"{ROUNDS} interleaved rounds; ratio to model exchange of the same FMU; the fit to held-out responses is part "
        "of every way. The error of steps and responses is that of the FMU's own solver.",
    )
