"""The fits behind ``python -m benchmarks growth``, on power laws that are known, and the clock that they are fed by."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from benchmarks.growth.fit import fit_power_law, largest_size
from benchmarks.processor_time import ProcessorClock, measure_in_turns, median_ratio

SIZES = [10, 20, 40, 80]
BUSY = "sum(range(20_000_000)); print('done', flush=True); input()"


def test_the_exponent_of_a_power_law_is_found() -> None:
    law = fit_power_law(SIZES, [3.0 * size**1.7 for size in SIZES])
    assert law is not None
    assert law.exponent == pytest.approx(1.7)
    assert law.size_at(3.0 * 1000**1.7) == pytest.approx(1000.0)


def test_what_does_not_grow_does_not_hide_what_grows() -> None:
    values = [100.0 + (0.0 if size < 20 else size**2.0 - 100.0) for size in SIZES]
    law = fit_power_law(SIZES, values)
    assert law is not None
    assert law.exponent == pytest.approx(2.0)


def test_a_limit_is_interpolated_between_sizes_and_extrapolated_beyond() -> None:
    values = [float(size) ** 2 for size in SIZES]
    between, beyond = largest_size(SIZES, values, 900.0), largest_size(SIZES, values, 1e4)
    assert between is not None
    assert beyond is not None
    assert (round(between[0], 6), between[1]) == (30.0, False)
    assert (round(beyond[0], 6), beyond[1]) == (100.0, True)
    assert largest_size(SIZES, [1.0] * 4, 2.0) == (np.inf, True)
    assert largest_size(SIZES[:1], values[:1], 1e4) is None


def test_the_clock_counts_children_that_still_run() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        clock = ProcessorClock()
        before = clock.seconds()
        assert child.stdout is not None
        child.stdout.readline()
        spent = clock.seconds() - before
        assert spent > 0.05
        child.communicate(b"\n")
    clock.look_for_children()
    assert clock.seconds() - before >= spent


def test_calls_in_turns_give_the_ratio_of_their_times() -> None:
    seconds = measure_in_turns(
        {"ours": lambda: sum(range(40_000)), "theirs": lambda: sum(range(10_000))}, rounds=5, least_seconds=0.005
    )
    assert 2.0 < median_ratio(seconds["ours"], seconds["theirs"]) < 8.0
