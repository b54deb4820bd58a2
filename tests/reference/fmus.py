"""FMUs: by model exchange, with and without exact products, and identified from the steps of a co-simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar, rolling_disk
from tests.fmus.make import build
from tests.fmus.stepped.make import Kind
from tests.fmus.stepped.make import build as build_stepped
from tests.shared import shared

__all__ = ["CASES"]

Results = Mapping[str, fl.LinearModel]


def _written(model: fl.Model) -> Path:
    return shared(f"reference_{model.info.name}.fmu", lambda path: build_fmu(model, path))


def _compiled(name: str) -> Path:
    return shared(f"{name}.fmu", lambda path: build(name, path.parent))


def _exchanged(model: fl.Model) -> Results:
    with fl.load(_written(model)) as fmu:
        result = {"auto": fl.linearize(fmu)}
    with fl.load(_written(model)) as fmu:
        return result | {"differences": fl.linearize(fmu, derivatives="differences")}


def _four_bar_moved() -> fl.LinearModel:
    with fl.load(_written(four_bar(damping=0.1))) as fmu:
        return fl.linearize(fmu, fl.operating_point(fmu, {"phi": 0.7, "w": 1.3}), independent=["phi"])


def _pendulum_without_its_constraint() -> fl.LinearModel:
    with fl.load(_compiled("pendulum"), constraints=[]) as fmu:
        return fl.linearize(fmu)


def _stepped(name: str, methods: tuple[str, ...]) -> Results:
    path = shared(f"reference_stepped_{name}.fmu", lambda path: build_stepped(name, path.parent, Kind()).rename(path))
    constraints = four_bar().constraints.declared if name == "four_bar" else ()
    results = {}
    for method in methods:
        with fl.load(path, constraints=list(constraints)) as fmu:
            results[method] = fl.linearize(fmu, stepping=fl.Stepping(method=method))
    with fl.load(path, constraints=list(constraints)) as fmu:
        return results | {"lifted": fl.linearize(fmu, stepping=fl.Stepping(lifted=True, step=0.02))}


CASES: Mapping[str, Callable[[], fl.LinearModel | Results]] = {
    "four-bar FMU": lambda: _exchanged(four_bar(damping=0.1)),
    "four-bar FMU in motion": _four_bar_moved,
    "disk FMU": lambda: _exchanged(rolling_disk(speed=2.0)),
    "pendulum FMU": _pendulum_without_its_constraint,
    "motor in steps": lambda: _stepped("motor", ("direct", "step", "response")),
    "four-bar in steps": lambda: _stepped("four_bar", ("direct", "step", "response")),
}
