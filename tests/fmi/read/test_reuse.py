"""What is used hundreds of times leaves nothing behind: no memory, no files, no libraries, no temporary directories."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError
from tests.fmi.read.conftest import Zoo

on_linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell what it holds")
MAX_GROWTH = 2 * 2**20  # bytes
TIMES = 3  # that growth is measured, at most


def memory() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def grown(work: Callable[[], None], first: int, then: int) -> int:
    """Return by how many bytes ``then`` rounds of work let the process grow, after ``first`` ones to warm up.

    Open files and the objects that the garbage collector follows are counted to the last one, so a round that leaves
    one of them behind is seen in ten rounds as in a thousand. What only bytes tell, memory of compiled code, is seen
    from some 5 kB a round on in 400 rounds, as it was from 5 MB on in a thousand. A leak grows each time; the allocator
    of a process that has run thousands of other tests may take a new arena once, so the smallest growth counts.
    """
    for _ in range(first):
        work()
    growths: list[int] = []
    while len(growths) < TIMES and min(growths, default=MAX_GROWTH) >= MAX_GROWTH:
        before, files, objects = memory(), open_files(), len(gc.get_objects())
        for _ in range(then):
            work()
        growths.append(memory() - before)
        assert len(gc.get_objects()) - objects < min(then, 10)
        assert open_files() == files
    return min(growths)


@on_linux
def test_four_hundred_linearizations_of_one_model(zoo: Zoo, scratch: Path) -> None:
    with fl.load(zoo("pendulum")) as model:
        point = model.start

        def work() -> None:
            fl.linearize(model, point, derivatives="differences")

        assert grown(work, 50, 400) < MAX_GROWTH
        assert len(list(scratch.iterdir())) == 1
    assert list(scratch.iterdir()) == []


@on_linux
def test_two_hundred_loads_of_different_models(zoo: Zoo, scratch: Path) -> None:
    names = ("pendulum", "spring1", "arrays3", "discards", "zero_nominals")

    def work() -> None:
        for name in names:
            with fl.load(zoo(name), constraints=[]) as model:
                model.evaluate(model.start.time, model.start.states, model.start.inputs)

    assert grown(work, 8, 40) < MAX_GROWTH
    assert list(scratch.iterdir()) == []
    assert str(scratch) not in Path("/proc/self/maps").read_text()


@on_linux
def test_loads_that_fail(zoo: Zoo, scratch: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, logger="fmilin")  # pytest keeps each record

    def work() -> None:
        for name in ("refuses_initialization", "refuses1", "hidden_states3"):
            with pytest.raises(ModelError):
                fl.load(zoo(name))

    assert grown(work, 10, 40) < MAX_GROWTH
    assert list(scratch.iterdir()) == []


def test_two_instances_of_one_model_do_not_know_each_other(zoo: Zoo) -> None:
    with (
        fl.load(zoo("spring1"), parameters={"mass": 2.0}) as light,
        fl.load(zoo("spring1"), parameters={"mass": 8.0}) as heavy,
    ):
        zero = np.zeros(1)
        for x in (1.0, 0.25):
            at = np.array([x, 0.0])
            np.testing.assert_array_equal(light.evaluate(0.0, at, zero).derivatives, [0.0, -4 * x])
            np.testing.assert_array_equal(heavy.evaluate(0.0, at, zero).derivatives, [0.0, -x])


def test_many_processes_at_once(zoo: Zoo, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fmilin", "linearize", str(zoo("pendulum"))]
    environment = os.environ | {"TMPDIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    running = [
        subprocess.Popen([*command, "-o", str(tmp_path / f"{i}.npz")], env=environment, stderr=subprocess.PIPE)
        for i in range(4)
    ]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{i}.npz" for i in range(4)]
    lin = [fl.LinearModel.load(tmp_path / f"{i}.npz").A for i in range(4)]
    for matrix in lin[1:]:
        np.testing.assert_array_equal(matrix, lin[0])
