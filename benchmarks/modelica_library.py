"""Modelica without a Modelica tool: plants without a library, and twenty examples of the Modelica Standard Library.

"Front end" is rumoca on the text, nothing cached; "model" is all that follows until there is a model: the walk into
CasADi, the reduction, consistent starts. "A" is ``fl.linearize`` at a point, the model being there. Where a closed form
is short A is compared with it, else with derivatives by differences; the largest difference over the largest entry.
Models that cannot be read or linearized have the reason in their row. Times are processor time.
"""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path

import numpy as np

import fmilin as fl
from benchmarks.mechanism import quickest
from benchmarks.modelica_models import CASES, Case
from benchmarks.tables import show
from fmilin.errors import FmilinError

COLUMNS = ("model", "states", "order", "index", "front end", "model", "A", "against", "difference")
PLANTS = Path(__file__).parents[1] / "adapters" / "modelica" / "tests" / "models" / "systems.mo"
SHOWN = 60  # characters of a reason
NAMES = (
    "DoublePendulum",
    "Crane",
    "SliderCrank",
    "FourBar",
    "CapacitorLoop",
    "GearTrain",
    "Tanks",
    "Motor",
    "Bouncing",
    "Started",
)


def main() -> None:
    if importlib.util.find_spec("fmilin_modelica") is None:
        print("fmilin-modelica is not installed: pip install ./adapters/modelica")
        return
    rows = [row(Case(name), f"{PLANTS}:Systems.{name}") for name in NAMES]
    show("Modelica: plants without a library", COLUMNS, rows, __doc__ or "")
    folders = [Path(folder) for folder in os.environ.get("MODELICAPATH", "").split(os.pathsep) if folder]
    if not any((folder / "Modelica" / "package.mo").is_file() for folder in folders):
        print("MODELICAPATH names no folder with the Modelica Standard Library: its examples are left out")
        return
    rows = [row(case, case.source) for case in CASES]
    done = sum(len(cells[2]) > 0 for cells in rows)
    show(f"Modelica Standard Library: {done} of {len(rows)} examples linearized", COLUMNS, rows)


def row(case: Case, source: str) -> list[str]:
    """Return the cells of one model; the reason where it has none."""
    name = case.name.rpartition(".")[2]
    if case.minutes and "LONG" not in os.environ:
        return [name, "", "", "", "", "", "", "not asked", "its front end takes minutes: LONG=1 asks it, too"]
    try:
        return [name, *measured(case, source)]
    except FmilinError as error:
        return [name, "", "", "", "", "", "", "refused", str(error).partition(": ")[2][:SHOWN]]


def measured(case: Case, source: str) -> list[str]:
    """Return what a model's row shows after its name."""
    from fmilin_modelica.front_end import fresh
    from fmilin_modelica.sources import source_of

    file, _, member = source.rpartition(":")
    begin = time.process_time()
    fresh(source_of(None if file == "modelica" else Path(file), member, {}))
    front, begin = time.process_time() - begin, time.process_time()
    model = fl.load(source)
    built = time.process_time() - begin
    point = fl.operating_point(model, case.at)
    named = list(case.coordinates) or None
    linear = fl.linearize(model, point, independent=named)
    (seconds,) = quickest(lambda: fl.linearize(model, point, independent=named), rounds=3)
    truth = fl.linearize(model, point, independent=named, derivatives="differences").A if case.A is None else case.A
    largest = np.abs(truth).max(initial=0.0) or 1.0
    return [
        str(len(model.states)),
        str(len(linear.states)),
        str(getattr(model, "index", "")),
        f"{front:.2f} s",
        f"{built:.2f} s",
        f"{1000 * seconds:.1f} ms",
        "differences" if case.A is None else "closed form",
        f"{np.abs(linear.A - truth).max(initial=0.0) / largest:.1e}",
    ]
