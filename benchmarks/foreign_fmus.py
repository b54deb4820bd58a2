"""FMUs with binaries for another system alone: the linear models are those of the same FMU for 64-bit Linux.

Sources in the style of the reference FMUs, compiled for 64-bit Linux, for Windows (MinGW-w64, run through wine) and for
32 bits (zig, run in a host for 32 bits); and FMUs of OpenModelica, with the binaries of their maker.
"""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np

import fmilin as fl
from benchmarks.tables import show
from tests.fmi.read.test_linux32 import build_for_32_bits
from tests.fmus import make
from tests.windows_twins import build_for_windows

SOURCES = (
    *("pendulum", "spring1", "singles3", "arrays3", "gearbox", "projects", "bounces", "rubs", "only_once"),
    *("discards", "sectors", "tells_nominals", "rate_is_state"),
)
PAIRS = ("MassSpringSubSystem1", "MassSpringSubSystem2", "MassSpringSystem", "Mass_Damper", "add", "ramp")
"""Of OpenModelica, in two folders."""
TOLERANCE = 1e-12


def main() -> None:
    folder = Path(import_module("gemseo_fmu.problems").__path__[0]) / "fmu_files"
    rows: list[tuple[str, float, float | None]] = []
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for source in SOURCES:
            expected = linearize(make.build(source, work))
            windows = largest_difference(linearize(build_for_windows(source, work)), expected)
            narrow = largest_difference(linearize(build_for_32_bits(source, work)), expected)
            rows.append((source, windows, narrow))
        for pair in PAIRS:
            expected = linearize(folder / "linux" / f"{pair}.fmu")
            rows.append((pair, largest_difference(linearize(folder / "win32" / f"{pair}.fmu"), expected), None))
    differences = ([row[1] for row in rows], [row[2] for row in rows if row[2] is not None])
    equal = [sum(value <= TOLERANCE for value in values) for values in differences]
    counts = [len(values) for values in differences]
    columns = ["FMU", "difference, Windows", "difference, 32 bits"]
    texts = [[name, f"{windows:.1e}", "" if narrow is None else f"{narrow:.1e}"] for name, windows, narrow in rows]
    verdict = (
        f"{equal[0]} of {counts[0]} for Windows and {equal[1]} of {counts[1]} for 32 bits are equal to their twins to "
        f"{TOLERANCE:g}."
    )
    show("FMUs for other systems", columns, texts, verdict)


def linearize(fmu: Path) -> fl.LinearModel:
    with fl.load(fmu) as model:
        return fl.linearize(model)


def largest_difference(one: fl.LinearModel, other: fl.LinearModel) -> float:
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("A", "B", "C", "D", "f0", "g0")]
    return max(float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs)


if __name__ == "__main__":
    main()
