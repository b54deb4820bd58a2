"""The page on which a process writes what it is doing, for the one that watches it."""

from __future__ import annotations

import os
import time

import pytest

from fmilin.sandbox import watchdog
from fmilin.sandbox.watchdog import Note


def test_the_last_function_and_whether_it_runs() -> None:
    note = Note()
    assert (note.read(), note.seconds, note.last_lines()) == ("", None, [])
    for name in ("fmi2SetTime", "fmi2GetDerivatives", "fmi2SetTime"):
        note.write(name)
        assert note.read() == name
        assert note.seconds is not None
        note.done()
        assert note.seconds is None
        assert note.read() == name


def test_the_clock_runs_while_the_function_does() -> None:
    note = Note()
    note.write("f")
    time.sleep(0.02)
    assert note.seconds is not None
    assert note.seconds >= 0.02


def test_more_functions_than_the_table_has_places() -> None:
    note = Note()
    for i in range(200):
        note.write(f"function {i}")
        assert note.read() == f"function {i}"
    note.write("function 3")
    assert note.read() == "function 3"


def test_long_and_odd_texts() -> None:
    note = Note()
    note.write("θ" * 1000)
    assert note.read().startswith("θ" * 100)
    note.say("x" * 10_000)
    assert note.last_lines() == ["x" * 699]


def test_the_last_four_lines_are_kept() -> None:
    note = Note()
    for i in range(11):
        note.say(f"line {i}")
    assert note.last_lines() == [f"line {i}" for i in range(7, 11)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork()")
def test_another_process_reads_it() -> None:
    note = Note()
    note.write("known before the fork")
    child = os.fork()
    if child == 0:
        note.write("known to the child alone")
        note.say("said by the child")
        os._exit(0)
    os.waitpid(child, 0)
    assert note.read() == "known to the child alone"
    assert note.seconds is not None
    assert note.last_lines() == ["said by the child"]


def test_after_an_error_no_other_instance_is_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    note = Note()
    monkeypatch.setattr(watchdog._Listener, "note", note)

    def refused() -> None:
        with watchdog.another_instance():
            assert note.another_instance
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        refused()
    assert not note.another_instance
