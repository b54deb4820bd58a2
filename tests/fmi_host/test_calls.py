"""Calls of real FMUs through the host, against closed forms and against FMPy, which calls them in its own process."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.fmi2 import FMU2Model

from fmilin.fmi.client.arena import Repeated
from fmilin.fmi.client.host_programs import Operation, Program, ValueType, fill
from fmilin.fmi.client.process import MALFORMED, NO_FUNCTION, NO_INSTANCE, STOPPED, TOO_LONG
from fmilin.fmi.platforms import find_library
from fmilin.fmi.platforms import host as this_machine
from tests.fmi_host.hosted import HostedFmu, compile_types3
from tests.fmus.make import build, compile_library
from tests.fmus.stepped.make import build as build_stepped


@pytest.fixture
def pendulum() -> Iterator[HostedFmu]:
    with HostedFmu(compile_library("pendulum"), 2) as fmu:
        fmu.begin("{pendulum}", 0.25)
        yield fmu


@pytest.fixture
def types3() -> Iterator[HostedFmu]:
    with HostedFmu(compile_types3(), 3) as fmu:
        assert fmu.instantiate("") is None
        yield fmu


def test_derivatives_are_those_of_fmpy_to_the_bit(pendulum: HostedFmu, tmp_path: Path) -> None:
    fmpy.extract(str(build("pendulum", tmp_path)), str(tmp_path))
    script = FMU2Model(
        guid="{pendulum}", unzipDirectory=str(tmp_path), modelIdentifier="pendulum", instanceName="script"
    )
    script.instantiate()
    script.setupExperiment(startTime=0.25)
    script.enterInitializationMode()
    script.exitInitializationMode()
    script.newDiscreteStates()
    script.enterContinuousTimeMode()
    states = np.random.default_rng(46).uniform(-1.0, 1.0, (50, 4))
    rates, expected = pendulum.arena.zeros(50, 4), np.empty((50, 4))
    rows = pendulum.arena.copy(states)
    program = Program(
        [
            pendulum.call(Operation.SET_CONTINUOUS_STATES, Repeated(rows)),
            pendulum.call(Operation.GET_DERIVATIVES, Repeated(rates)),
        ]
    )
    assert pendulum.host.run(program, 50) is None
    for x, rate in zip(states, expected, strict=True):
        script.setContinuousStates(np.ascontiguousarray(x).ctypes.data_as(fmpy.fmi2.POINTER(fmpy.fmi2.c_double)), 4)
        script.getDerivatives(rate.ctypes.data_as(fmpy.fmi2.POINTER(fmpy.fmi2.c_double)), 4)
    script.terminate()
    script.freeInstance()
    assert rates.tobytes() == expected.tobytes()


def test_a_program_can_begin_at_any_repetition(pendulum: HostedFmu) -> None:
    rows, rates = pendulum.arena.copy(np.arange(40.0).reshape(10, 4)), pendulum.arena.zeros(10, 4)
    program = Program(
        [
            pendulum.call(Operation.SET_CONTINUOUS_STATES, Repeated(rows)),
            pendulum.call(Operation.GET_CONTINUOUS_STATES, Repeated(rates)),
        ]
    )
    assert pendulum.host.run(program, count=3, first=5) is None
    assert np.array_equal(rates[5:8], rows[5:8])
    assert not rates[:5].any()
    assert not rates[8:].any()


def test_directional_derivatives_of_the_rod_are_exact(pendulum: HostedFmu) -> None:
    unknowns, knowns = pendulum.references([4, 5]), pendulum.references([2, 3])
    seed, answer = pendulum.arena.copy(np.array([2.0, 3.0])), pendulum.arena.zeros(2)
    assert pendulum.do(Operation.DIRECTIONAL, unknowns, knowns, seed, answer) is None
    assert answer.tolist() == [2.0, 3.0]


def test_a_seed_of_another_size_is_rejected(pendulum: HostedFmu) -> None:
    unknowns, knowns = pendulum.references([4, 5]), pendulum.references([2, 3])
    failure = pendulum.do(Operation.DIRECTIONAL, unknowns, knowns, pendulum.arena.zeros(1), pendulum.arena.zeros(2))
    assert failure is not None
    assert failure.status == MALFORMED


def test_a_number_can_be_put_into_an_array_between_calls(pendulum: HostedFmu) -> None:
    x = pendulum.arena.zeros(4)
    calls = [fill(pendulum.arena, x[1:2], -2.5), pendulum.call(Operation.SET_CONTINUOUS_STATES, x)]
    assert pendulum.host.execute(calls) is None
    assert pendulum.get_numbers([1]).tolist() == [-2.5]


def test_variables_of_all_types_of_fmi2_are_set_and_read() -> None:
    with HostedFmu(compile_library("switch_and_name"), 2) as fmu:
        assert fmu.instantiate("{switch_and_name}") is None
        one, flags = fmu.references([0]), fmu.arena.copy(np.array([1]))
        for kind in (ValueType.INT32, ValueType.BOOLEAN):
            assert fmu.do(Operation.SET_VALUES, one, flags, kind=kind) is None
            answer = fmu.arena.copy(np.array([7]))
            assert fmu.do(Operation.GET_VALUES, one, answer, kind=kind) is None
            assert answer.tolist() == [1]


def test_a_discarded_point_names_the_repetition() -> None:
    with HostedFmu(compile_library("discards"), 2) as fmu:
        fmu.begin("{discards}")
        x, rates = fmu.arena.copy(np.array([[0.5, 0], [0.6, 0], [11.0, 0], [0.7, 0]])), fmu.arena.zeros(4, 2)
        calls = [
            fmu.call(Operation.SET_CONTINUOUS_STATES, Repeated(x)),
            fmu.call(Operation.GET_DERIVATIVES, Repeated(rates)),
        ]
        program = Program(calls)
        failure = fmu.host.run(program, 4)
        assert failure is not None
        assert (failure.status, failure.repetition, failure.name) == (2, 2, "GET_DERIVATIVES")
        assert rates[:2].tolist() == [[0.0, -0.5], [0.0, -0.6]]
        assert fmu.messages == [(2, "logStatusError", "x = 11 is out of range")]
        assert fmu.host.run(program, 1, 3) is None
        assert rates[3].tolist() == [0.0, -0.7]


def test_fmi1_for_model_exchange_has_the_derivatives_of_its_spring() -> None:
    with HostedFmu(compile_library("spring1"), 1, prefix="spring1_") as fmu:
        fmu.begin("{spring1}")
        assert fmu.derivatives([0.3, -0.7]).tolist() == [-0.7, (-8 * 0.3 - 0.5 * -0.7) / 2]
        states = fmu.references([9, 9])
        assert fmu.do(Operation.GET_STATE_REFERENCES, states) is None
        assert states.tolist() == [0, 1]
        answer = fmu.arena.copy(np.array([7]))
        assert fmu.do(Operation.SET_VALUES, fmu.references([2]), answer, kind=ValueType.BOOLEAN) is not None
        answer[0] = 1
        assert fmu.do(Operation.SET_VALUES, fmu.references([2]), answer, kind=ValueType.BOOLEAN) is None
        answer[0] = 0
        assert fmu.do(Operation.GET_VALUES, fmu.references([2]), answer, kind=ValueType.BOOLEAN) is None
        assert answer.tolist() == [1]
        assert fmu.do(Operation.COMPLETED_STEP, fmu.arena.zeros(2)) is None


def test_fmi1_for_co_simulation_takes_steps_in_one_message() -> None:
    with HostedFmu(compile_library("slave1"), 1, stepped=True, prefix="slave1_") as fmu:
        fmu.begin("{slave1}")
        count, step = 50, fmu.arena.copy(np.array([0.01]))
        times = fmu.arena.copy(np.arange(count) * 0.01)
        states = fmu.arena.zeros(count, 2)
        program = Program(
            [
                fmu.call(Operation.DO_STEP, Repeated(times.reshape(-1, 1)), step, fmu.arena.zeros(4), immediate=1),
                fmu.call(Operation.GET_VALUES, fmu.references([0, 1]), Repeated(states)),
            ]
        )
        assert fmu.host.run(program, count) is None
        # m v' = -k x - d v from x = 1, v = 0: underdamped, m = 2, k = 8, d = 0.5
        t = 0.01 * np.arange(1, count + 1)
        damping, frequency = 0.125, np.sqrt(4 - 0.125**2)
        x = np.exp(-damping * t) * (np.cos(frequency * t) + damping / frequency * np.sin(frequency * t))
        assert np.abs(states[:, 0] - x).max() < 0.02


def test_fmi3_for_model_exchange_has_arrays_and_structural_parameters() -> None:
    with HostedFmu(compile_library("arrays3"), 3) as fmu:
        assert fmu.instantiate("{chain}") is None
        size = fmu.arena.copy(np.array([4]))
        assert fmu.do(Operation.ENTER_CONFIGURATION) is None
        assert fmu.do(Operation.SET_VALUES, fmu.references([9]), size, kind=ValueType.UINT64) is None
        assert fmu.do(Operation.EXIT_CONFIGURATION) is None
        numbers, events, count = fmu.arena.zeros(3), fmu.arena.zeros(6), fmu.arena.copy(np.array([0]))
        assert fmu.do(Operation.ENTER_INITIALIZATION, numbers, events) is None
        assert fmu.do(Operation.EXIT_INITIALIZATION) is None
        assert fmu.do(Operation.UPDATE_DISCRETE_STATES, events) is None
        assert events[0] == 0
        assert fmu.do(Operation.ENTER_CONTINUOUS_TIME_MODE) is None
        assert fmu.do(Operation.COUNT_STATES, count) is None
        assert count.tolist() == [4]
        x = np.array([1.0, -2.0, 3.0, 0.5])
        expected = -x + np.append(x[1:], 0) + np.arange(1, 5) * 0.5
        assert fmu.derivatives(x.tolist()).tolist() == expected.tolist()
        answer = fmu.arena.zeros(4)
        assert fmu.do(Operation.GET_VALUES, fmu.references([3]), answer) is None
        assert answer.tolist() == [1.0, -2.0, 0.5, 0.25]


INTEGERS = {
    ValueType.INT8: (-128, 127),
    ValueType.UINT8: (0, 255),
    ValueType.INT16: (-(2**15), 2**15 - 1),
    ValueType.UINT16: (0, 2**16 - 1),
    ValueType.INT32: (-(2**31), 2**31 - 1),
    ValueType.UINT32: (0, 2**32 - 1),
    ValueType.INT64: (-(2**63), 2**63 - 1),
    ValueType.BOOLEAN: (0, 1),
    ValueType.CLOCK: (0, 1),
}


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_integers_of_fmi3_come_back_and_those_out_of_range_are_rejected(types3: HostedFmu, kind: ValueType) -> None:
    least, most = INTEGERS[kind]
    values = types3.arena.copy(np.array([least, most, 1, 0]))
    references, answer = types3.references([0, 1, 2, 3]), types3.arena.copy(np.full(4, 99))
    assert types3.do(Operation.SET_VALUES, references, values, kind=kind) is None
    assert types3.do(Operation.GET_VALUES, references, answer, kind=kind) is None
    assert answer.tolist() == [least, most, 1, 0]
    if most < 2**63 - 1:
        values[0] = most + 1
        failure = types3.do(Operation.SET_VALUES, references, values, kind=kind)
        assert failure is not None
        assert failure.status == MALFORMED


def test_unsigned_integers_of_64_bits_travel_by_their_bits(types3: HostedFmu) -> None:
    values = types3.arena.copy(np.array([2**64 - 1, 2**63, 1, 0], dtype=np.uint64))
    references, answer = types3.references([0, 1, 2, 3]), types3.arena.copy(np.zeros(4, dtype=np.uint64))
    assert types3.do(Operation.SET_VALUES, references, values, kind=ValueType.UINT64) is None
    assert types3.do(Operation.GET_VALUES, references, answer, kind=ValueType.UINT64) is None
    assert answer.tolist() == values.tolist()


def test_single_precision_is_rounded_in_the_host(types3: HostedFmu) -> None:
    values, references = types3.arena.copy(np.array([0.1, 1e300, 2.0, -0.0])), types3.references([0, 1, 2, 3])
    answer = types3.arena.zeros(4)
    assert types3.do(Operation.SET_VALUES, references, values, kind=ValueType.FLOAT32) is None
    assert types3.do(Operation.GET_VALUES, references, answer, kind=ValueType.FLOAT32) is None
    assert answer.tolist() == [float(np.float32(0.1)), np.inf, 2.0, 0.0]


def _packed(texts: list[bytes]) -> bytes:
    return b"".join(struct.pack("=I", len(text)) + text for text in texts)


@pytest.mark.parametrize("kind", [ValueType.TEXT, ValueType.BINARY], ids=["text", "binary"])
def test_texts_and_binaries_come_back(types3: HostedFmu, kind: ValueType) -> None:
    texts = [b"", "größer".encode(), b"abc", b"x" * 90]
    references, content = types3.references([0, 1, 2, 3]), types3.arena.copy_bytes(_packed(texts))
    assert types3.do(Operation.SET_VALUES, references, content, kind=kind, immediate=4) is None
    answer = types3.arena.copy_bytes(bytes(200))
    assert types3.do(Operation.GET_VALUES, references, answer, kind=kind, immediate=4) is None
    expected = _packed(texts if kind is ValueType.TEXT else [text[::-1] for text in texts])
    assert answer.tobytes()[: len(expected)] == expected
    failure = types3.do(Operation.GET_VALUES, references, answer[:20], kind=kind, immediate=4)
    assert failure is not None
    assert failure.status == TOO_LONG


def test_texts_that_are_not_whole_are_rejected(types3: HostedFmu) -> None:
    references = types3.references([0])
    for content in (b"", b"\1", struct.pack("=I", 5) + b"abcd", struct.pack("=I", 2**32 - 1)):
        place = types3.arena.copy_bytes(content)
        failure = types3.do(Operation.SET_VALUES, references, place, kind=ValueType.TEXT, immediate=1)
        assert failure is not None
        assert failure.status == MALFORMED


def test_adjoint_derivatives_are_called(types3: HostedFmu) -> None:
    unknowns, knowns = types3.references([0]), types3.references([1, 2, 3])
    seed, answer = types3.arena.copy(np.array([2.0])), types3.arena.zeros(3)
    assert types3.do(Operation.ADJOINT, unknowns, knowns, seed, answer) is None
    assert answer.tolist() == [3.0, 5.0, 7.0]


def test_messages_of_the_fmu_come_with_control_characters_escaped(types3: HostedFmu) -> None:
    assert types3.messages == [(1, "greeting", "\\x1b[2Jhello, 100 %s")]


def test_steps_stop_where_the_fmu_returns_early() -> None:
    with HostedFmu(compile_types3(), 3, stepped=True) as fmu:
        assert fmu.instantiate("", 2 | 4 | 8) is None
        times, step, answers = fmu.arena.copy(np.arange(30.0)), fmu.arena.copy(np.array([1.0])), fmu.arena.zeros(30, 4)
        program = Program([fmu.call(Operation.DO_STEP, Repeated(times.reshape(-1, 1)), step, Repeated(answers))])
        failure = fmu.host.run(program, 30)
        assert failure is not None
        assert (failure.status, failure.repetition) == (STOPPED, 10)
        assert answers[10].tolist() == [0.0, 0.0, 1.0, 10.5]
        failure = fmu.host.run(program, 1, 20)
        assert failure is not None
        assert (failure.status, failure.repetition) == (STOPPED, 20)
        assert answers[20].tolist() == [0.0, 1.0, 0.0, 21.0]


def test_a_function_that_is_missing_is_named(types3: HostedFmu) -> None:
    failure = types3.do(Operation.SET_TIME, types3.arena.zeros(1))
    assert failure is not None
    assert failure.status == NO_FUNCTION
    assert types3.messages[-1] == (NO_FUNCTION, "host", "fmi3SetTime")


def test_a_call_without_an_instance_is_rejected(types3: HostedFmu) -> None:
    numbers, references = types3.arena.zeros(1), types3.references([0])
    assert types3.do(Operation.FREE_INSTANCE) is None
    for call in (Operation.FREE_INSTANCE, Operation.GET_VALUES):
        operands = (references, numbers) if call is Operation.GET_VALUES else ()
        failure = types3.do(call, *operands)
        assert failure is not None
        assert failure.status == NO_INSTANCE
    assert types3.instantiate("") is None
    assert types3.do(Operation.GET_VALUES, references, numbers) is None


def test_states_are_saved_and_restored(tmp_path: Path) -> None:
    unpacked = fmpy.extract(str(build_stepped("ball", tmp_path)), str(tmp_path / "ball"))
    with HostedFmu(find_library(Path(unpacked), "ball", this_machine(), 2), 2, stepped=True) as fmu:
        token = fmpy.read_model_description(unpacked, validate=False).guid
        fmu.begin(token)
        time, step, answers = fmu.arena.zeros(1), fmu.arena.copy(np.array([0.01])), fmu.arena.zeros(4)
        before = fmu.get_numbers([0, 1])
        assert fmu.do(Operation.SAVE_STATE, immediate=5) is None
        assert fmu.do(Operation.DO_STEP, time, step, answers, immediate=0) is None
        assert fmu.get_numbers([0, 1]).tolist() != before.tolist()
        assert fmu.do(Operation.RESTORE_STATE, immediate=5) is None
        assert fmu.get_numbers([0, 1]).tolist() == before.tolist()
        assert fmu.do(Operation.FREE_STATE, immediate=5) is None
        for number in (5, 64, 2**64 - 1):  # freed, and beyond the table
            failure = fmu.do(Operation.RESTORE_STATE, immediate=number)
            assert failure is not None
            assert failure.status == MALFORMED
