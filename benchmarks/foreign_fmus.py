"""FMUs with binaries for another system alone: the linear models are those of the same FMU for 64-bit Linux.

Sources in the style of the reference FMUs, compiled for 64-bit Linux, for Windows (MinGW-w64, run through wine; for 32
bits, too, if wine32 is installed), and for Linux of 32 bits (zig); and FMUs of OpenModelica, with their binaries.
"""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np

import fmilin as fl
from benchmarks.tables import show
from fmilin.fmi.client.wine import WINDOWS32, find_wine
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
SYSTEMS = ("Windows", "Windows of 32 bits", "Linux of 32 bits")


def main() -> None:
    folder = Path(import_module("gemseo_fmu.problems").__path__[0]) / "fmu_files"
    rows: list[tuple[str, list[float | None]]] = []
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for source in SOURCES:
            expected = linearize(make.build(source, work))
            windows = linearize(build_for_windows(source, work))
            differences = [largest_difference(windows, expected), compare_windows_32(source, work, expected)]
            differences.append(largest_difference(linearize(build_for_32_bits(source, work)), expected))
            rows.append((source, differences))
        for pair in PAIRS:
            expected = linearize(folder / "linux" / f"{pair}.fmu")
            windows = linearize(folder / "win32" / f"{pair}.fmu")  # for 64 bits, whatever the folder is called
            rows.append((pair, [largest_difference(windows, expected), None, None]))
    texts = [[name, *("" if value is None else f"{value:.1e}" for value in values)] for name, values in rows]
    counts = []
    for position, system in enumerate(SYSTEMS):
        known = [values[position] for _, values in rows]
        compared = [value for value in known if value is not None]
        counts.append(f"{sum(value <= TOLERANCE for value in compared)} of {len(compared)} for {system}")
    columns = ["FMU", *(f"difference, {system}" for system in SYSTEMS)]
    show("FMUs for other systems", columns, texts, f"{', '.join(counts)} are equal to their twins to {TOLERANCE:g}.")


def compare_windows_32(source: str, work: Path, expected: fl.LinearModel) -> float | None:
    """Return the difference of the FMU for Windows of 32 bits, None where nothing runs it."""
    if find_wine(WINDOWS32) is None:
        return None
    fmu = build_for_windows(source, work, WINDOWS32)
    with fl.load(fmu, limits=fl.Limits(unrestricted=True)) as model:
        return largest_difference(fl.linearize(model), expected)


def linearize(fmu: Path) -> fl.LinearModel:
    with fl.load(fmu) as model:
        return fl.linearize(model)


def largest_difference(one: fl.LinearModel, other: fl.LinearModel) -> float:
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("A", "B", "C", "D", "f0", "g0")]
    return max(float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs)


if __name__ == "__main__":
    main()
