"""Copies of the host: saved states of FMUs that cannot save theirs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest

from fmilin.errors import ModelCrashError
from fmilin.fmi.client.host_programs import Operation, Program
from fmilin.signals import FloatArray
from tests.fmi_host.hosted import HostedFmu
from tests.fmus.make import compile_library
from tests.fmus.stepped.make import compiled

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the host is copied on Linux alone")

COPIED = ("--processes", "0", "--copies", str(1 << 30))
FREE = (*COPIED, "--no-restrictions")


@pytest.fixture(params=[COPIED, FREE], ids=["sandbox", "unrestricted"])
def fmu(request: pytest.FixtureRequest) -> Iterator[HostedFmu]:
    with HostedFmu(compile_library("pendulum"), 2, options=request.param) as hosted:
        hosted.begin("{pendulum}")
        yield hosted


def states_of(fmu: HostedFmu) -> list[float]:
    x = fmu.arena.zeros(4)
    assert fmu.do(Operation.GET_CONTINUOUS_STATES, x) is None
    return [float(value) for value in x]


def set_states(fmu: HostedFmu, *states: float) -> None:
    assert fmu.do(Operation.SET_CONTINUOUS_STATES, fmu.arena.copy(np.array(states))) is None


def processes_of(fmu: HostedFmu) -> list[psutil.Process]:
    """Return the processes that the one that was started has below it, those that have not ended."""
    below = psutil.Process(fmu.host.process_id).children(recursive=True)
    return [process for process in below if process.status() != psutil.STATUS_ZOMBIE]


def copy_of(fmu: HostedFmu) -> psutil.Process:
    """Return the process that waits: no other has so many above it."""
    return max(processes_of(fmu), key=lambda process: len(process.parents()))


def test_a_host_returns_to_its_copy_as_often_as_it_is_asked(fmu: HostedFmu) -> None:
    set_states(fmu, 1.0, 2.0, 3.0, 4.0)
    assert fmu.host.make_copy()
    number = len(processes_of(fmu))
    for k in range(100):
        set_states(fmu, k, k, k, k)
        assert fmu.host.return_to_copy()
        assert states_of(fmu) == [1.0, 2.0, 3.0, 4.0]
    assert len(processes_of(fmu)) == number


def test_the_newest_copy_counts(fmu: HostedFmu) -> None:
    for k in (1.0, 2.0, 3.0):
        set_states(fmu, k, k, k, k)
        assert fmu.host.make_copy()
        number = len(processes_of(fmu))
        set_states(fmu, 0.0, 0.0, 0.0, 0.0)
        assert fmu.host.return_to_copy()
        assert states_of(fmu) == [k] * 4
    assert len(processes_of(fmu)) == number
    fmu.host.drop_copy()
    assert len(processes_of(fmu)) == number - 1
    assert not fmu.host.return_to_copy()
    assert states_of(fmu) == [3.0] * 4


def test_the_arena_is_shared_by_all(fmu: HostedFmu) -> None:
    numbers = fmu.arena.copy(np.array([1.0, 2.0, 3.0, 4.0]))
    setting = Program([fmu.call(Operation.SET_CONTINUOUS_STATES, numbers)])
    assert fmu.host.run(setting) is None
    assert fmu.host.make_copy()
    numbers[:] = 5.0
    assert fmu.host.return_to_copy()
    assert fmu.host.run(setting) is None
    assert states_of(fmu) == [5.0] * 4


def test_programs_that_the_copy_has_not_taken_are_defined_again(fmu: HostedFmu) -> None:
    before = fmu.arena.zeros(4)
    early = Program([fmu.call(Operation.GET_CONTINUOUS_STATES, before)])
    replaced = Program([fmu.call(Operation.GET_DERIVATIVES, before)])
    assert fmu.host.run(early) is None
    assert fmu.host.run(replaced) is None
    set_states(fmu, 1.0, 2.0, 3.0, 4.0)
    assert fmu.host.make_copy()
    del replaced  # its number is free for another program, of which the copy knows nothing

    def reading() -> tuple[Program, FloatArray]:
        after = fmu.arena.zeros(4)
        return Program([fmu.call(Operation.GET_CONTINUOUS_STATES, after)]), after

    programs = [reading() for _ in range(3)]
    for _ in range(3):
        for program, numbers in programs:
            numbers[:] = 0.0
            assert fmu.host.run(program) is None
            assert numbers.tolist() == [1.0, 2.0, 3.0, 4.0]
        assert fmu.host.return_to_copy()
        assert fmu.host.run(early) is None
        assert before.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert len({early.number, *(program.number for program, _ in programs)}) == 4


def test_a_copy_that_dies_is_not_the_end_of_the_host(fmu: HostedFmu) -> None:
    set_states(fmu, 1.0, 2.0, 3.0, 4.0)
    assert fmu.host.make_copy()
    copy_of(fmu).kill()
    time.sleep(0.1)
    assert states_of(fmu) == [1.0, 2.0, 3.0, 4.0]
    assert not fmu.host.return_to_copy()
    assert states_of(fmu) == [1.0, 2.0, 3.0, 4.0]
    assert fmu.host.make_copy()
    assert fmu.host.return_to_copy()


@pytest.mark.parametrize("options", [COPIED, FREE], ids=["sandbox", "unrestricted"])
@pytest.mark.parametrize("returns", [0, 1, 2])
def test_a_crash_is_told_whichever_process_works(returns: int, options: tuple[str, ...]) -> None:
    with HostedFmu(compile_library("aborts"), 2, options=options) as fmu:
        fmu.begin("{aborts}")
        assert fmu.host.make_copy()
        family = processes_of(fmu)
        for _ in range(returns):
            assert fmu.host.return_to_copy()
            family += processes_of(fmu)
        with pytest.raises(ModelCrashError, match=r'SIGABRT.* in GET_DERIVATIVES.* Its last message: "the table drag'):
            fmu.derivatives([1.0, 0.0])
        assert not psutil.wait_procs(family, timeout=10)[1]


@pytest.mark.parametrize("way", ["kill", "close"])
def test_all_copies_end_with_the_host(fmu: HostedFmu, way: str) -> None:
    assert fmu.host.make_copy()
    assert fmu.host.return_to_copy()
    family = processes_of(fmu)
    getattr(fmu.host, way)()
    assert not psutil.wait_procs(family, timeout=10)[1]


def test_an_fmu_with_threads_is_not_copied() -> None:
    with HostedFmu(compiled("motor", arguments=["-DTHREAD"]), 2, stepped=True, options=COPIED) as fmu:
        fmu.begin("{motor}")
        assert not fmu.host.make_copy()
        assert not fmu.host.return_to_copy()
        assert fmu.get_numbers([0, 1, 2]).tolist() == [0.0, 0.0, 0.25]


def test_a_host_that_takes_more_memory_than_a_copy_may_is_not_copied() -> None:
    with HostedFmu(compile_library("pendulum"), 2, options=("--copies", str(1 << 20))) as fmu:
        fmu.begin("{pendulum}")
        assert not fmu.host.make_copy()
        fmu.derivatives([0.0, -1.0, 0.0, 0.0])


def test_without_the_option_a_host_is_not_copied() -> None:
    with HostedFmu(compile_library("pendulum"), 2) as fmu:
        fmu.begin("{pendulum}")
        assert not fmu.host.make_copy()
        fmu.derivatives([0.0, -1.0, 0.0, 0.0])
