"""The common part of both classes of pipes to a host: each system has a module of its own for the others."""

from __future__ import annotations

import subprocess
import weakref
from abc import ABC, abstractmethod
from typing import Any

from fmilin.fmi.client.printed_lines import PrintedLines


class Pipes(ABC):
    """A host that runs, with a pipe for requests, one for answers and one for what is printed.

    Both classes are made of the same arguments, and raise OSError when the host cannot be started.

    Parameters
    ----------
    program
        The host.
    arena
        The memory that it shares with this process.
    options
        The limits, as options of ``host/sandbox.h``.
    environment
        The variables that it sees.
    printed
        Takes what it prints.
    wine
        Runs the host, which is then the one for Windows; None on Windows.
    """

    _printed: PrintedLines
    _process: subprocess.Popen[bytes]
    _end: weakref.finalize[..., Any]

    @property
    def are_open(self) -> bool:
        """Whether this process can use them."""
        return self._end.alive

    @property
    def process_id(self) -> int:
        """The number of the process that was started."""
        return self._process.pid

    def take_report(self) -> bytes:
        """Return what the sandbox around wine reports about itself, once the host is ready; nothing without wine."""
        return b""

    @abstractmethod
    def send(self, message: bytes, seconds: float | None) -> bool:
        """Send a message, to a host that has ended too; return False if it does not take it in this time."""

    @abstractmethod
    def read(self, seconds: float | None) -> bytes | None:
        """Return some bytes of an answer, none at the end of all, None where nothing comes in this time.

        Anything the process prints meanwhile is logged.
        """

    @abstractmethod
    def read_to_end(self, seconds: float) -> bool:
        """Take what is printed until all is closed or the process has ended; False if neither is so in this time."""

    @abstractmethod
    def wait(self, seconds: float) -> tuple[int | None, int]:
        """Return how the process ended, None if it has not in this time; and the most bytes of memory that it had."""

    def end(self) -> None:
        """End the process and what it has started, and close the pipes. Idempotent."""
        self._end()
