"""The host's process from outside: crashes, hangs, what is printed, answers that are none."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from fmilin.errors import ModelCrashError, ModelError, escape_controls
from fmilin.fmi.client.arena import Arena, Repeated
from fmilin.fmi.client.host_programs import Operation, Program
from fmilin.fmi.client.printed_lines import MAX_LINE_CHARACTERS, MAX_LINES, PrintedLines
from fmilin.fmi.client.process import HostProcess
from fmilin.fmi.host.build import host_program
from tests.fmi_host.hosted import HostedFmu
from tests.fmus.make import compile_library
from tests.shared import shared


def _ask(fmu: HostedFmu) -> None:
    fmu.derivatives([1.0, 0.0])


def test_a_crash_is_an_error_that_names_the_function_and_the_signal() -> None:
    with HostedFmu(compile_library("crashes"), 2) as fmu:
        fmu.begin("{crashes}")
        with pytest.raises(ModelCrashError, match=r"crashes.so' crashed \(SIGSEGV.* in GET_DERIVATIVES"):
            _ask(fmu)
        assert not fmu.host.is_alive
        with pytest.raises(ModelCrashError, match="crashed"):  # asked again, it gives the same reason
            _ask(fmu)


def test_a_crash_is_an_error_with_the_last_message_of_the_fmu() -> None:
    with HostedFmu(compile_library("aborts"), 2) as fmu:
        fmu.begin("{aborts}")
        with pytest.raises(ModelCrashError, match=r'SIGABRT.* Its last message: "the table drag'):
            _ask(fmu)


def test_after_a_crash_a_new_process_takes_the_same_arena_and_programs() -> None:
    with HostedFmu(compile_library("crashes"), 2) as fmu:
        fmu.begin("{crashes}")
        x = fmu.arena.zeros(2)
        program = Program([fmu.call(Operation.GET_CONTINUOUS_STATES, x)])
        assert fmu.host.run(program) is None
        with pytest.raises(ModelCrashError):
            _ask(fmu)
        fmu.start_host(compile_library("crashes"))
        assert not fmu.host.open_library(compile_library("crashes"), 2, stepped=False)
        fmu.begin("{crashes}")
        x[:] = 7
        assert fmu.host.run(program) is None
        assert x.tolist() == [1.0, 0.0]


def test_a_process_that_the_fmu_ends_is_an_error() -> None:
    with HostedFmu(compile_library("exits"), 2) as fmu:
        fmu.begin("{exits}")
        with pytest.raises(ModelCrashError, match=r"ended the whole process by itself \(exit status 0\)"):
            _ask(fmu)


def test_a_call_that_does_not_return_is_stopped_by_the_clients_clock() -> None:
    with HostedFmu(compile_library("hangs"), 2, seconds=0.5) as fmu:
        begin = time.monotonic()
        with pytest.raises(ModelCrashError, match=r"did not return from EXIT_INITIALIZATION within 0\.5 s"):
            fmu.begin("{hangs}")
        assert time.monotonic() - begin < 30
        with pytest.raises(ProcessLookupError):
            os.kill(fmu.host.process_id, 0)


def _stop(fmu: HostedFmu) -> None:
    """Stop the process of the FMU's code, and the one above it."""
    process = psutil.Process(fmu.host.process_id)
    for descendant in [*process.children(recursive=True), process]:
        descendant.suspend()


def test_a_stopped_process_does_not_make_the_client_wait() -> None:
    with HostedFmu(compile_library("pendulum"), 2, seconds=0.5) as fmu:
        fmu.begin("{pendulum}")
        _stop(fmu)
        with pytest.raises(ModelCrashError, match=r"did not return from .* within 0\.5 s"):
            fmu.derivatives([0.0, -1.0, 0.0, 0.0])


def test_a_stopped_process_does_not_block_a_long_message() -> None:
    with HostedFmu(compile_library("pendulum"), 2, seconds=0.5) as fmu:
        fmu.begin("{pendulum}")
        _stop(fmu)
        call = fmu.call(Operation.SET_TIME, fmu.arena.zeros(1))
        with pytest.raises(ModelCrashError, match=r"within 0\.5 s"):
            fmu.host.execute([call] * 5000)


def test_a_long_program_passes_through_the_pipe() -> None:
    with HostedFmu(compile_library("pendulum"), 2) as fmu:
        fmu.begin("{pendulum}")
        call = fmu.call(Operation.SET_TIME, fmu.arena.zeros(1))
        program = Program([call] * 20_000)
        assert fmu.host.run(program, 3) is None


def test_an_interrupted_call_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with HostedFmu(compile_library("hangs"), 2) as fmu:
        handler = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(KeyboardInterrupt):
                fmu.begin("{hangs}")
        finally:
            signal.signal(signal.SIGALRM, handler)
        assert not fmu.host.is_alive


def test_a_library_that_cannot_be_opened_gives_the_systems_reason(tmp_path: Path) -> None:
    library = tmp_path / "broken.so"
    library.write_bytes(b"no library")
    with HostedFmu(library, 2) as fmu:
        assert "broken.so" in fmu.problem
    with HostedFmu(tmp_path / "absent.so", 2) as fmu:
        assert "absent.so" in fmu.problem


def test_what_an_fmu_prints_is_logged_line_by_line(caplog: pytest.LogCaptureFixture) -> None:
    with HostedFmu(compile_library("prints"), 2) as fmu, caplog.at_level(logging.WARNING, "fmilin.fmu"):
        fmu.begin("{prints}")
        _ask(fmu)
        fmu.host.close()
    assert sorted(record.getMessage() for record in caplog.records) == [
        "prints.so prints: by the library",
        "prints.so prints: past it",
    ]


def test_an_fmu_that_prints_more_than_a_pipe_holds_is_not_held_up() -> None:
    source = """
    #include <stdio.h>
    #define ON_GET_DERIVATIVES for (int i = 0; i < 20000; i++) printf("line %d \\033[2J\\n", i);
    #include "spring.h"
    """
    with HostedFmu(_compile("prints_much", source), 2) as fmu:
        fmu.begin("{prints_much}")
        _ask(fmu)


def test_control_characters_are_escaped() -> None:
    assert escape_controls("\x1b]52;c;aGk=\x07\x1b[6n\r\x9b") == r"\x1b]52;c;aGk=\x07\x1b[6n\r\x9b"
    assert escape_controls("größer\t3 µm") == "größer\t3 µm"
    assert escape_controls("\u202eevil\u2028") == r"\u202eevil\u2028"


def test_lines_have_a_largest_length_and_number(caplog: pytest.LogCaptureFixture) -> None:
    lines = PrintedLines("it")
    with caplog.at_level(logging.WARNING, "fmilin.fmu"):
        lines.feed(b"x" * (3 * MAX_LINE_CHARACTERS))
        lines.feed(b"\n" * (2 * MAX_LINES))
        lines.feed(b"no end")
        lines.log(at_end=True)
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == MAX_LINES + 1
    assert max(map(len, texts)) <= MAX_LINE_CHARACTERS + 20
    assert "are omitted" in texts[-1]


def test_an_fmu_that_writes_among_the_answers_is_ended() -> None:
    source = """
    #include <unistd.h>
    #define ON_GET_DERIVATIVES for (int fd = 3; fd < 64; fd++) write(fd, "nonsense, nonsense, nonsense, 1234", 34);
    #include "spring.h"
    """
    with HostedFmu(_compile("writes_answers", source), 2) as fmu:
        fmu.begin("{writes_answers}")
        with pytest.raises(ModelCrashError, match=r"wrote into the output|closed the connection"):
            _ask(fmu)


def test_answers_that_an_fmu_makes_up_change_nothing_but_numbers() -> None:
    source = """
    #include <stdint.h>
    #include <string.h>
    #include <unistd.h>
    struct { uint32_t sequence; int32_t status; uint32_t instruction, size; uint64_t repetition; uint64_t a; } answer;
    #define ON_GET_DERIVATIVES \\
        for (uint32_t n = 0; n < 30; n++) { \\
            answer.sequence = n, answer.status = -5, answer.instruction = 1u << 31, answer.size = 1u << 31; \\
            for (int fd = 3; fd < 64; fd++) if (write(fd, &answer, sizeof answer)) {} \\
        }
    #include "spring.h"
    """
    with HostedFmu(_compile("makes_up", source), 2) as fmu:
        fmu.begin("{makes_up}")
        with pytest.raises(ModelCrashError, match="wrote into the output"):
            _ask(fmu)


def test_hundreds_of_messages_in_one_call_leave_the_newest() -> None:
    source = """
    #define ON_GET_DERIVATIVES for (int i = 0; i < 500; i++) SAY(fmi2Warning, "%s %d", "number", i);
    #include "spring.h"
    """
    with HostedFmu(_compile("talks", source), 2) as fmu:
        fmu.begin("{talks}")
        _ask(fmu)
        assert fmu.messages[0] == (0, "host", "(468 earlier messages are omitted)")
        assert [text for _, _, text in fmu.messages[1:]] == [f"number {i}" for i in range(468, 500)]


def test_the_host_ends_with_its_client() -> None:
    code = """
import os
from tests.fmi_host.hosted import HostedFmu
from tests.fmus.make import compile_library
fmu = HostedFmu(compile_library("pendulum"), 2)
print(fmu.host.process_id, flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    process = int(done.stdout)
    for _ in range(300):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        if "State:\tZ" in Path(f"/proc/{process}/status").read_text():
            return
        time.sleep(0.1)
    pytest.fail("the host is still there")


def test_the_environment_of_the_host_is_empty() -> None:
    with HostedFmu(compile_library("pendulum"), 2) as fmu:
        content = Path(f"/proc/{fmu.host.process_id}/environ").read_bytes()
        assert content == b""


def test_only_the_protocols_descriptors_are_open() -> None:
    with Path(__file__).open("rb") as file:
        os.set_inheritable(file.fileno(), True)
        with HostedFmu(compile_library("pendulum"), 2) as fmu:
            fmu.begin("{pendulum}")
            folder = Path(f"/proc/{fmu.host.process_id}/fd")
            targets = [str(path.readlink()) for path in folder.iterdir()]
            assert str(Path(__file__)) not in targets


def test_a_host_that_is_no_program_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FMILIN_HOST", str(tmp_path / "nothing"))
    with pytest.raises(ModelError, match="FMILIN_HOST names"):
        host_program()
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\nexit 3\n")
    other.chmod(0o700)
    monkeypatch.setenv("FMILIN_HOST", str(other))
    with pytest.raises(ModelCrashError, match="exit status 3"):
        HostProcess(Arena(1 << 20), "it", lambda *_: None)


def test_arrays_that_are_gone_leave_room_and_a_full_arena_is_an_error() -> None:
    arena = Arena(1 << 16)
    for _ in range(100):
        arena.zeros(1000)
    kept = [arena.zeros(100) for _ in range(40)]
    with pytest.raises(ModelError, match="exceeds the"):
        arena.zeros(5000)
    part = kept[0][10:20]
    kept.clear()
    view = arena.zeros(4000)
    part[:] = 1.0  # a view keeps its array
    assert not view.any()


def test_only_arrays_of_the_arena_can_be_operands() -> None:
    arena = Arena(1 << 16)
    rows = arena.zeros(4, 6)
    assert arena.locate(rows[1]).offset == arena.locate(rows).offset + 48
    assert arena.locate(Repeated(rows[:, 2:4])) == (arena.locate(rows).offset + 16, 2, 48)
    for array in (np.zeros(3), rows[:, 0], rows[::2], Repeated(rows[::-1])):
        with pytest.raises(ValueError, match="contiguous array of the arena"):
            arena.locate(array)


def _compile(name: str, source: str) -> Path:
    """Return the library of a behaviour, its description aside."""
    from importlib.util import find_spec

    from tests.fmus.make import HERE

    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"

    def compile_to(path: Path) -> None:
        file = path.with_suffix(".c")
        file.write_text(source)
        command = ["cc", "-shared", "-fPIC", "-w", f"-I{headers}", f"-I{HERE}", str(file), "-o", str(path), "-lm"]
        subprocess.run(command, check=True)

    return shared(f"{name}.so", compile_to)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork()")
def test_a_forked_process_has_an_arena_of_its_own_with_the_same_numbers() -> None:
    with HostedFmu(compile_library("rubs"), 2) as fmu:
        before, between, after = fmu.arena.copy(np.full(5, 1.0)), fmu.arena.zeros(100), fmu.arena.copy(np.full(3, 2.0))
        place = fmu.arena.locate(after)
        del between
        child = os.fork()
        if not child:
            as_before = before.tolist() == [1.0] * 5 and after.tolist() == [2.0] * 3
            before[:] = 7.0
            is_good = as_before and before[0] == 7.0 and fmu.arena.locate(after) == place and not fmu.host.is_alive
            fmu.host.kill()
            os._exit(not is_good)
        assert os.waitpid(child, 0)[1] == 0
        assert before.tolist() == [1.0] * 5
        assert fmu.host.is_alive
        fmu.begin("{rubs}")  # the child has ended without harm to the host
