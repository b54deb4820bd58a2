"""Accuracy and cost of a linear model, against closed forms and against the Jacobian of all states.

Every system as a native description and as its compiled FMU; exact directional derivatives, differences on the
manifold, and what a tool does that takes all states for independent. The eigenvalues with a closed form
are compared with the nearest ones that were found. Times are medians of warm calls, interleaved, as ratios
to the all-state Jacobian of the same source.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import fmilin as fl
from benchmarks.mechanism import quickest
from benchmarks.tables import show
from fmilin.fmi.write import build_fmu
from fmilin.manifold.frame import kept_states
from fmilin.model.capabilities import read_exact_slopes
from fmilin.systems import cartesian_pendulum, double_wishbone, four_bar, loader, rolling_disk, stewart_platform
from tests.systems.linkages import four_bar_mechanism
from tests.systems.skate_model import skate

ROUNDS = 7
TARGET = 1.3

PROCEDURES: dict[str, Callable[[], fl.Model]] = {
    "skate (Kane)": skate,
    "rolling disk (Kane)": rolling_disk,
    "four-bar (mechanism)": four_bar_mechanism,
    "double wishbone (mechanism)": double_wishbone,
    "loader (mechanism)": loader,
    "Stewart platform (mechanism)": stewart_platform,
}


@dataclass(frozen=True)
class System:
    name: str
    make: Callable[[], fl.Model]
    closed_form: tuple[complex, ...]
    """Eigenvalues that are known exactly, in 1/s; the sources are in the docstrings of fmilin.systems."""


SYSTEMS = (
    System("pendulum, Cartesian", cartesian_pendulum, (1j * 9.81**0.5,)),
    System("four-bar, 1 loop", four_bar, (2.147676638502278j,)),
    System("four-bar, damped", lambda: four_bar(damping=1.0), (-0.2423858093105051 + 2.13395502834838j,)),
    System("four-bar, hanging", lambda: four_bar(branch="hanging"), (4.38998861046359j,)),
    System("four-bar, 2 loops", lambda: four_bar(loops=2), (1.817387914479055j,)),
    # lambda^2 = 4/5 - 12/5 v^2 for r = g = 1
    System("rolling disk, v = 1", lambda: rolling_disk(speed=1.0), (1.6**0.5 * 1j,)),
    System("rolling disk, v = 0.4", lambda: rolling_disk(speed=0.4), ((0.8 - 2.4 * 0.16) ** 0.5,)),
)

WAYS: dict[str, Callable[[fl.Model, fl.Model], fl.LinearModel]] = {
    "exact": lambda model, _: fl.linearize(model, derivatives="exact"),
    "differences": lambda model, _: fl.linearize(model, derivatives="differences"),
    "all states": lambda _, free: fl.linearize(free, independent=free.states.names, derivatives="differences"),
}


def main() -> None:
    procedures()
    rows = []
    with tempfile.TemporaryDirectory(prefix="fmilin-") as folder:
        for number, system in enumerate(SYSTEMS):
            native = system.make()
            path = build_fmu(native, Path(folder) / f"{number}.fmu")
            with fl.load(path) as fmu, fl.load(path, constraints=[]) as free_fmu:
                rows += rows_of(system, "native", native, native.with_constraints([]))
                rows += rows_of(system, "FMU", fmu, free_fmu)
    show(
        "Linearization",
        ["system", "source", "method", "order", "evaluations", "directions", "error", "estimate", "spurious", "time"],
        rows,
        "order: independent states / all states. evaluations: of the model; directions: exact directional derivatives. "
        "error: of the eigenvalues with a closed form, relative; estimate: the stated error of A. spurious: "
        "eigenvalues that belong to no motion. time: ratio to the all-state Jacobian of the same source by "
        f"differences, medians of {ROUNDS} interleaved rounds.",
    )


def procedures() -> None:
    """Compare a warm call with the published recursion alone, from the equations to A, B, C, D."""
    rows = []
    for name, make in PROCEDURES.items():
        model = make()
        point = fl.operating_point(model)
        begin = time.process_time()
        first = fl.linearize(make(), point)
        cold = time.process_time() - begin
        bare, warm = quickest(*recursion_and_call(model, point), rounds=10 * ROUNDS)
        rows.append(
            [
                name,
                f"{len(model.states)}",
                f"{1e3 * bare:.2f} ms",
                f"{1e3 * warm:.2f} ms",
                f"{warm / bare:.2f}",
                f"<= {TARGET:g}: {'kept' if warm <= TARGET * bare else 'MISSED'}",
                f"{1e3 * cold:.0f} ms",
                f"{first.method.evaluations}",
            ]
        )
    show(
        "fl.linearize against the recursion alone",
        ["model", "states", "recursion", "warm call", "ratio", "target", "made and first call", "evaluations"],
        rows,
        "recursion: values, derivatives and their elimination at one point, nothing verified. warm call: fl.linearize "
        "at the same point, verified, with names, accuracy and warnings. Processor time, the best of "
        f"{10 * ROUNDS} calls in turns. evaluations: of the first call.",
    )


def recursion_and_call(model: fl.Model, point: fl.OperatingPoint) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return the bare recursion at a point, and the checked call there."""
    kept = kept_states(model, point, model.independent)

    def recursion() -> None:
        slopes = read_exact_slopes(model, point.time, point.states, point.inputs)
        assert slopes is not None
        slopes.along(kept)

    return recursion, partial(fl.linearize, model, point)


def rows_of(system: System, source: str, model: fl.Model, free: fl.Model) -> list[list[str]]:
    results = {way: linearize(model, free) for way, linearize in WAYS.items()}
    seconds = measured(model, free)
    true_order = len(results["exact"].states)
    return [
        [
            system.name,
            source,
            way,
            f"{len(lin.states)}/{len(lin.full_states)}",
            str(lin.method.evaluations),
            str(lin.method.products),
            f"{error_of(lin, system):.1e}",
            f"{lin.accuracy.A:.1e}",
            str(len(lin.states) - true_order),
            f"{seconds[way] / seconds['all states']:.2f}",
        ]
        for way, lin in results.items()
    ]


def error_of(lin: fl.LinearModel, system: System) -> float:
    found = lin.eigenvalues()
    return max(float(np.min(np.abs(found - value)) / abs(value)) for value in system.closed_form)


def measured(model: fl.Model, free: fl.Model) -> dict[str, float]:
    samples: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, linearize in WAYS.items():
            begin = time.perf_counter()
            linearize(model, free)
            samples[way].append(time.perf_counter() - begin)
    return {way: statistics.median(times) for way, times in samples.items()}
