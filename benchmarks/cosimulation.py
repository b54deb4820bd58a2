"""What a linear model of a co-simulation FMU costs and how good it is, by every method, compared with model exchange.

The four-bar linkage of González et al., one loop, written by fmilin with both interfaces: its eigenvalues are known.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import fmilin as fl
from benchmarks.tables import show

TRUE = 2.147676638502278
"""rad/s."""
ROUNDS = 3
WAYS = (("model exchange", "me", None), *((way, "cs", way) for way in ("direct", "step", "response")))


def main() -> None:
    ways()
    wide()
    third_party()


def wide() -> None:
    """Fifteen inputs and outputs, states hidden, a step of 20 microseconds more than its own."""
    from tests.fmus.stepped import make as stepped

    with tempfile.TemporaryDirectory() as folder:
        path = stepped.build("wide", Path(folder), stepped.Kind(hidden=True, flags=("-DSLOW=20000",)))
        exchange = stepped.build("wide", Path(folder) / "me", stepped.Kind(interface="ModelExchange"))
        with fl.load(exchange) as model:
            expected = np.sort(fl.linearize(model).eigenvalues().real)
        with fl.load(path) as model:
            begin = time.perf_counter()
            linear = fl.linearize(model)
            took, steps = time.perf_counter() - begin, int(getattr(model, "steps", 0))
    off = float(np.max(np.abs(np.sort(linear.eigenvalues().real) - expected)))
    rows = [["15 inputs, 15 outputs", f"{took:.2f} s", str(steps), str(len(linear.states)), f"{off:.1e}"]]
    show("Many channels", ["plant", "time", "steps", "order", "error of eigenvalues"], rows)


def third_party() -> None:
    """Against a short independent script with FMPy, on FMUs of OpenModelica."""
    from importlib.util import find_spec

    from tests.by_fmpy import Script

    found = find_spec("gemseo_fmu")
    if found is None or not found.submodule_search_locations:
        return
    rows = []
    for path in sorted(Path(found.submodule_search_locations[0]).glob("problems/fmu_files/linux/Mass*.fmu")):
        with tempfile.TemporaryDirectory() as folder, fl.load(path) as model:
            script = Script(path, Path(folder))
            theirs = script.matrices()
            ours = fl.linearize(model, independent=model.states.names)
            pairs = zip("ABCD", theirs, strict=True)
            off = max(float(np.max(np.abs(getattr(ours, name) - matrix), initial=0.0)) for name, matrix in pairs)
            times = [_median(script.matrices), _median(partial(fl.linearize, model))]
            script.close()
        rows.append([path.stem, *(f"{1e6 * t:.0f} us" for t in times), f"{off:.1e}"])
    show("Third-party FMUs", ["FMU", "FMPy script", "fmilin", "largest difference of A, B, C, D"], rows)


def _median(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(15):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def ways() -> None:
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
