"""What work takes that no machine's noise touches: visits, points with tangents, directions, and numbers held at once.

``python -m tests.counts`` writes the table that ``tests/test_counts.py`` holds against what is counted.
"""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import fmilin as fl
from benchmarks.leg_robot import leg_robot
from fmilin.adapters import NativeModel
from fmilin.codegen.compiler import CompilationBudget
from fmilin.models import KaneModel
from fmilin.models.compiled_evaluations import CompiledEvaluations
from fmilin.models.mechanism import Mechanism
from fmilin.systems import double_wishbone, four_bar, furuta_pendulum, rolling_disk, slider_crank
from tests.by_hand import FunctionModel, Parts
from tests.hard_models import ring_of_rooms

TABLE = Path(__file__).parent / "counts.json"
MANY = 1_000_000
POINTS = 64

Counts = dict[str, int]
Call = Callable[[], Any]


def works() -> dict[str, Call]:
    """Return the works by name; what is warm has been done once."""
    leg, wishbone, disk, large = leg_robot(), double_wishbone(), rolling_disk(speed=1.0), four_bar(loops=200)
    moving, angles = _moving(leg), np.linspace(0.0, 0.5, POINTS)
    warm: dict[str, Call] = {
        "linearize, double wishbone": partial(fl.linearize, wishbone),
        "linearize, rolling disk in motion": partial(fl.linearize, disk),
        "linearize, leg robot that falls": partial(fl.linearize, leg),
        "linearize_along, leg robot in motion": partial(fl.linearize_along, leg, moving),
        "sweep, leg robot that falls": partial(fl.sweep, leg, {"left_roll_pin.q": angles}),
        "sweep --trim, Furuta's pendulum": _swept,
    }
    for call in warm.values():
        call()
    cold: dict[str, Call] = {
        "linearize, slider crank for the first time": lambda: fl.linearize(slider_crank()),
        "trim and linearize, 200 loops": lambda: fl.linearize(large, fl.trim(large)),
        "linearize, smooth black box of 12 states": lambda: fl.linearize(black_box(12)),
        "linearize, 60 states in mixed units without nominal values": lambda: fl.linearize(ring_of_rooms(20).make()),
    }
    return warm | cold


def black_box(n: int) -> fl.Model:
    """Return a chain of masses on hardening springs whose slopes are not told."""

    def rates(_t: float, x: np.ndarray, _u: np.ndarray) -> np.ndarray:
        q, v = np.split(x, 2)
        gaps = np.diff(q, prepend=0.0, append=0.0)
        forces = gaps + 0.1 * np.sin(gaps)
        return np.concatenate((v, forces[1:] - forces[:-1] - 0.1 * v))

    names = [f"{kind}{i}" for kind in "qv" for i in range(n // 2)]
    return FunctionModel(Parts(names, [0.1 * (i % 3) for i in range(n // 2)] + [0.0] * (n // 2), rates))


def counts_of(work: Call) -> Counts:
    """Return the points visited, those with tangents, directions of products, and millions of numbers held at once."""
    counted: Counter[str] = Counter()
    tracemalloc.start()
    try:
        with (
            count_native_calls(counted),
            patch.object(CompilationBudget, "count_toward_compilation", return_value=False),
        ):
            work()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {
        **{name: counted[name] for name in ("visits", "tangents", "directions")},
        "millions held": most // (8 * MANY),
    }


@contextmanager
def count_native_calls(counted: Counter[str]) -> Iterator[None]:
    """Count evaluations of native models (visits), points with tangents, and directions of derivatives meanwhile."""
    kinds = (
        (NativeModel, "evaluate", "visits", lambda *_: 1),
        (FunctionModel, "evaluate", "visits", lambda *_: 1),
        (NativeModel, "evaluate_points", "visits", lambda _t, x, _u: len(x)),
        (NativeModel, "products", "directions", lambda _t, _x, _u, dx, _du: dx.shape[1]),
        (NativeModel, "tangents", "tangents", lambda _t, x, *_: len(x)),
        (Mechanism, "tangents", "tangents", lambda _t, x, *_: len(x)),
        (Mechanism, "exact_slopes", "tangents", lambda *_: 1),
        (KaneModel, "exact_slopes", "tangents", lambda *_: 1),
    )
    with ExitStack() as patches:
        patches.enter_context(patch.multiple(CompiledEvaluations, at=lambda *_: None, gradient=lambda *_: None))
        for kind, method, name, many in kinds:
            if method in vars(kind):
                patches.enter_context(patch.object(kind, method, _counting(getattr(kind, method), counted, name, many)))
        yield


def _counting(method: Any, counted: Counter[str], name: str, many: Any) -> Any:
    def counting(self: Any, *arguments: Any, **options: Any) -> Any:
        before = counted[name]
        answer = method(self, *arguments, **options)
        # A method may call that of its base class, which is counted as well, or answer that it does not apply.
        if answer is not None:
            counted[name] = max(counted[name], before + many(*arguments))
        return answer

    return counting


def _moving(model: Mechanism) -> list[fl.OperatingPoint]:
    kept, random = fl.linearize(model).states.names, np.random.default_rng(3)
    start = dict(zip(model.states.names, model.start.states, strict=True))
    return list(fl.operating_points(model, {n: start[n] + 1e-2 * random.standard_normal(POINTS) for n in kept}))


def _swept() -> fl.LinearFamily:
    return fl.sweep(furuta_pendulum(), {"pendulum.mass": np.linspace(0.1, 0.2, POINTS)}, trim=fl.TrimRequest())


def main() -> None:
    """Write the table."""
    table = {name: counts_of(work) for name, work in works().items()}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
