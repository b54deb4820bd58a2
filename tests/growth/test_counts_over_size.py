"""How the work of each path grows with the size of a model: exponents of counts, which no machine's noise touches.

``python -m benchmarks growth`` measures the exponents of time on the same paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fmu_springs import exact_A
from benchmarks.growth.counts import count_messages, count_work
from benchmarks.growth.fit import fit_power_law
from benchmarks.growth.paths import PATHS
from fmilin.model import evaluator

CONSTANT, LINEAR, QUADRATIC = 0.1, 1.1, 2.1
BY_64_COLUMNS = 0.2  # differences of 64 columns are one message, and the others are few


@dataclass(frozen=True)
class Growing:
    """Sizes of a path, and the largest exponent of each count; a count that is not named must be zero."""

    sizes: Sequence[int]
    exponents: Mapping[str, float]
    traced: bool = True


GROWTH = {
    "fmu_plain": Growing((80, 240), {"messages": BY_64_COLUMNS, "repetitions": LINEAR, "megabytes": QUADRATIC}),
    "fmu_declared": Growing((80, 240), {"messages": CONSTANT, "repetitions": CONSTANT, "megabytes": QUADRATIC}),
    "fmu_directional": Growing((80, 240), {"messages": CONSTANT, "repetitions": LINEAR, "megabytes": QUADRATIC}),
    "fmu_both": Growing((80, 240), {"messages": CONSTANT, "repetitions": CONSTANT, "megabytes": QUADRATIC}),
    "open_chain": Growing(
        (20, 60), {"evaluations": CONSTANT, "tangents": CONSTANT, "directions": LINEAR, "megabytes": QUADRATIC}
    ),
    # a chain of n links whose end is welded to the ground has n - 6 degrees of freedom
    "closed_chain": Growing(
        # The rounding of some processors makes exact derivatives and the difference disagree at 32 links: the noise of
        # the difference is measured then, by as many evaluations again.
        (16, 32),
        {"evaluations": 1.05, "tangents": 1.05, "directions": 1.3, "megabytes": 1.6},
    ),
    "dae": Growing((64, 144), {"evaluations": CONSTANT, "directions": CONSTANT, "megabytes": 1.6}),
    "connected": Growing((5, 15), {"evaluations": LINEAR, "directions": LINEAR, "megabytes": QUADRATIC}),
    "connected_fmus": Growing((2, 6), {"messages": 1.2, "repetitions": 1.2, "megabytes": QUADRATIC}),
    "sweep_fmu": Growing((8, 24), {"messages": LINEAR, "repetitions": LINEAR, "megabytes": LINEAR}),
    "sweep_mechanism": Growing(
        (32, 64, 128), {"evaluations": CONSTANT, "tangents": LINEAR, "directions": CONSTANT, "megabytes": LINEAR}
    ),
    "discovery": Growing((1, 2), {"evaluations": LINEAR, "directions": LINEAR}, traced=False),
    "orbit": Growing((2, 8), {"evaluations": LINEAR, "tangents": LINEAR, "directions": 1.3}, traced=False),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("growth")


def test_every_path_of_the_benchmark_is_counted() -> None:
    assert GROWTH.keys() == PATHS.keys()


@pytest.mark.parametrize("name", GROWTH)
def test_work_grows_no_faster_than_it_must(name: str, folder: Path) -> None:
    growing, way = GROWTH[name], PATHS[name].ways[0]
    with way.open(growing.sizes[0], folder) as call:
        call()  # what is imported and compiled once is not counted
    counts = [count_work(way, size, folder, traced=growing.traced) for size in growing.sizes]
    for kind in counts[0]:
        values = [count[kind] for count in counts]
        if kind not in growing.exponents:
            assert values == [0.0] * len(values), kind
            continue
        law = fit_power_law(growing.sizes, values)
        assert law is not None
        assert law.exponent <= growing.exponents[kind], (kind, values)


@pytest.mark.parametrize("name", ["fmu_plain", "fmu_declared", "fmu_directional", "fmu_both"])
def test_the_fmus_that_are_counted_have_the_right_linear_model(name: str, folder: Path) -> None:
    way = PATHS[name].ways[0]
    with way.open(80, folder) as call:
        assert np.abs(call().A - exact_A(80)).max() < 1e-9


def test_a_chain_of_many_bodies_is_not_evaluated_more_often_than_a_short_one(folder: Path) -> None:
    way = PATHS["open_chain"].ways[0]
    short, long = (count_work(way, links, folder, traced=False) for links in (10, 60))
    assert long["evaluations"] <= short["evaluations"] + 10
    assert long["directions"] <= 6 * short["directions"]


def test_a_large_fmu_that_declares_its_dependencies_takes_less_than_a_dense_matrix(folder: Path) -> None:
    states = 1000
    counts = count_work(PATHS["fmu_both"].ways[0], states, folder)
    assert counts["megabytes"] < 8 * states**2 / 1e6
    assert counts["repetitions"] < 50


# where derivatives are exact: these, a difference along one direction, and the point once more
LATER_CALLS = [("fmu_directional", 20, 3, 4), ("fmu_directional", 80, 3, 4), ("fmu_both", 20, 3, 4)]


@pytest.mark.parametrize(("name", "states", "messages", "repetitions"), LATER_CALLS)
def test_a_later_linear_model_of_an_fmu_repeats_nothing_that_was_established(
    name: str, states: int, messages: int, repetitions: int, folder: Path
) -> None:
    counted: Counter[str] = Counter()
    with PATHS[name].ways[0].open(states, folder) as call:
        for _ in range(3):
            call()
        with count_messages(counted):
            linear = call()
    assert np.abs(linear.A - exact_A(states)).max() < 1e-7  # a call moves the states a little
    assert counted["messages"] <= messages
    assert counted["repetitions"] <= repetitions


def test_points_of_a_sweep_of_an_fmu_share_messages(folder: Path) -> None:
    way, points = PATHS["sweep_fmu"].ways[0], 400
    counted: Counter[str] = Counter()
    with way.open(points, folder) as call:
        call()
        with count_messages(counted):
            family = call()
    assert len(family) == points
    assert counted["messages"] <= points / 25
    assert counted["repetitions"] <= 4 * points  # derivatives, two of a difference, and those along the motion


def test_a_large_fmu_without_derivatives_takes_few_messages_in_little_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no room to remember all points of the differences: those of some columns take the place of others."""
    states, points = 240, 300
    monkeypatch.setattr(evaluator, "MAX_REMEMBERED_NUMBERS", points * (states + 2))
    way = PATHS["fmu_plain"].ways[0]
    counts = count_work(way, states, folder, traced=False)
    assert counts["repetitions"] > 3 * points
    assert counts["messages"] < 60  # half of them open it
