"""How the end of a process is described."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fmilin.fmi.client.endings import describe_end


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0xC0000005, "crashed (0xC0000005: access violation)"),
        (0xC00000FD, "crashed (0xC00000FD: stack overflow)"),
        (0xC0000094, "crashed (0xC0000094: integer division by zero)"),
        (0xE06D7363, "crashed (0xE06D7363: an exception)"),  # thrown by C++, and caught nowhere
        (3, "ended the whole process by itself (exit status 3)"),  # abort() on Windows
        (0, "ended the whole process by itself (exit status 0)"),
    ],
)
def test_an_exit_status_of_windows_is_described(status: int, text: str) -> None:
    assert describe_end(status) == text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals of this kind")
@pytest.mark.parametrize(
    ("signal", "text"), [("KILL", "memory ran out"), ("SEGV", "SIGSEGV: segmentation fault"), ("FPE", "by zero")]
)
def test_a_signal_that_ended_a_process_is_described(signal: str, text: str) -> None:
    done = subprocess.run(["sh", "-c", f"kill -{signal} $$"], check=False)
    assert text in describe_end(done.returncode)


def test_a_signal_without_a_name_is_described_by_its_number() -> None:
    assert describe_end(-1000) == "crashed (signal 1000)"
