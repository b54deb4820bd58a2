"""Runs a program, such as the compiler of an FMU's sources, in the sandbox of the host (``host --run``)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Literal, NamedTuple

from fmilin.fmi.host.build import host_program
from fmilin.fmi.host.termination import end_started_process

NOT_STARTED_STATUS = 126
"""The status where the program is not there or cannot be started."""

MAX_OUTPUT_BYTES = 1 << 20  # bytes that a program may print
ENDING_TIME = 5.0  # seconds in which all has ended: the sandbox waits for 2 s after its client has gone


class ProgramEnd(NamedTuple):
    """How a program ended: its exit status (negative: that of a signal), or why it was stopped, and what it printed."""

    status: int
    printed: str
    stopped: Literal["", "time", "output"] = ""


def run_in_sandbox(
    command: Sequence[str], options: Sequence[str], environment: Mapping[str, str], seconds: float
) -> ProgramEnd:
    """Run a program to its end. It and all that it has started are ended when it prints too much or takes too long.

    Parameters
    ----------
    command
        Its paths are absolute: the working folder is that of the option ``--scratch``.
    options
        Of ``host/sandbox.h``.
    environment
        All variables that the program has.
    seconds
        The time that it may take.
    """
    deadline = time.monotonic() + seconds
    with ExitStack() as at_end:
        passed, client_options = _open_client_pipe(at_end)
        reading, writing = os.pipe()
        at_end.callback(os.close, reading)
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell
                [str(host_program()), "--run", *client_options, *options, "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                env=dict(environment),
                pass_fds=passed,
            )
        finally:
            os.close(writing)
        reader = _Reader(reading)
        at_end.callback(_end, process, reader)
        reader.join(seconds)
        if reader.is_full:
            return ProgramEnd(0, reader.text, "output")
        try:
            status = process.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            return ProgramEnd(0, reader.text, "time")
        reader.join()
        return ProgramEnd(status, reader.text)


def _open_client_pipe(at_end: ExitStack) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Open a pipe by which the sandbox sees that its client has gone, however that ends; Windows has job objects."""
    if sys.platform == "win32":
        return (), ()
    theirs, ours = os.pipe()
    at_end.callback(os.close, theirs)
    at_end.callback(os.close, ours)
    return (theirs,), ("--client-descriptor", str(theirs))


def _end(process: subprocess.Popen[bytes], reader: threading.Thread) -> None:
    """End a process and the thread that reads what it prints."""
    end_started_process(process)
    process.wait()
    reader.join(ENDING_TIME)


class _Reader(threading.Thread):
    """Reads what is printed, up to a limit."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(daemon=True)
        self._descriptor = descriptor
        self._content = bytearray()
        self.start()

    def run(self) -> None:
        """Read until the end or the limit."""
        with suppress(OSError):
            while not self.is_full and (part := os.read(self._descriptor, 1 << 16)):
                self._content += part

    @property
    def is_full(self) -> bool:
        """Whether there is more than may be printed."""
        return len(self._content) > MAX_OUTPUT_BYTES

    @property
    def text(self) -> str:
        """The printed text."""
        return self._content.decode("utf-8", "replace")
