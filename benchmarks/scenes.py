"""MJCF files of the adapter's test set: native mechanism and engine, both compared with MuJoCo's own derivatives.

Called by ``python -m benchmarks robots``; nothing is printed where the MuJoCo adapter is not installed. Processor time,
every linearization at another point, the quickest of each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.tables import show
from fmilin.model.interface import Model, OperatingPoint

__all__ = ["scenes"]

FOLDER = Path(__file__).parents[1] / "adapters" / "mujoco" / "tests" / "models"
POINTS = 6
TARGET = 20
"""Times mjd_transitionFD, through the engine."""


def scenes() -> None:
    """Print one row for each file."""
    try:
        import mujoco
    except ImportError:
        return
    rows = []
    for file in sorted(FOLDER.glob("*.xml")):
        with fl.load(file) as native, fl.load(f"mujoco:{file}") as engine:
            first = fl.linearize(native)
            kept = first.states.names
            same = fl.linearize(engine, independent=kept)
            gap = max(_gap(getattr(first, block), getattr(same, block)) for block in "ABCD")
            own = _quickest(_transition(mujoco, file, engine.start.states), [None] * 20)
            points = _nearby(native, kept)
            ours = [_quickest(partial(fl.linearize, model, independent=kept), points) for model in (native, engine)]
        ratios = [f"{1e3 * seconds:.1f} ms, {seconds / own:.0f} times" for seconds in ours]
        rows.append([file.stem, f"{1e3 * own:.3f} ms", *ratios, f"{gap:.1e}"])
    columns = ["scene", "mjd_transitionFD", "native", f"engine (target {TARGET} times)", "native against engine (1e-8)"]
    show(
        "MJCF scenes: one checked fl.linearize, warm",
        columns,
        rows,
        "mjd_transitionFD differentiates soft constraints.",
    )


def _gap(ours: Any, theirs: Any) -> float:
    return float(np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0)))


def _transition(mujoco: Any, file: Path, x: Any) -> Callable[[Any], None]:
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = x[: model.nq], x[model.nq : model.nq + model.nv]
    mujoco.mj_forward(model, data)
    size = 2 * model.nv + model.na
    A, B = np.zeros((size, size)), np.zeros((size, model.nu))

    def call(_: Any) -> None:
        mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None)  # noqa: FBT003 - flg_centered

    return call


def _nearby(model: Model, kept: tuple[str, ...]) -> list[OperatingPoint]:
    """Return points with another speed each."""
    name = next(n for n in reversed(kept) if not n.endswith(".act"))
    value = model.start.states[model.states.index_of(name)]
    return [fl.operating_point(model, {name: value + 1e-3 * (i + 1)}) for i in range(POINTS)]


def _quickest(call: Callable[[Any], Any], each: list[Any]) -> float:
    found = []
    for one in each:
        start = time.process_time()
        call(one)
        found.append(time.process_time() - start)
    return min(found)
