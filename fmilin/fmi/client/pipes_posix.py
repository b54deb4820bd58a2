"""Starts a host and speaks with it through pipes, on Linux, macOS and other systems of the POSIX kind."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.pipes import Pipes
from fmilin.fmi.client.printed_lines import PrintedLines
from fmilin.fmi.client.wine import Wine
from fmilin.fmi.host.termination import end_started_process

assert sys.platform != "win32"  # noqa: S101 - for type checkers

_READ_BYTES = 4096  # bytes that are read at a time
_REPORT_BYTES = 8192  # bytes that a report has at most


class PosixPipes(Pipes):
    """A host on Linux, macOS and other systems of the POSIX kind."""

    def __init__(
        self,
        program: Path,
        arena: Arena,
        options: Sequence[str],
        environment: Mapping[str, str],
        printed: PrintedLines,
        wine: Wine | None = None,
    ) -> None:
        self._printed = printed
        self._report: int | None = None
        self._owner = os.getpid()
        pairs = [os.pipe() for _ in range(4)]
        (requests, self._requests), (self._answers, answers), (self._output, output), (client, our_end) = pairs
        inherited = [requests, answers, client]
        ours = [self._requests, self._answers, self._output, our_end]
        if wine is None:
            command = [str(program), str(requests), str(answers), str(arena.descriptor), str(arena.size)]
            for descriptor in (requests, answers):
                command += ["--keep-descriptor", str(descriptor)]
            command += ["--client-descriptor", str(client), *options]
        else:
            self._report, report = os.pipe()
            inherited.append(report)
            ours.append(self._report)
            options = ["--client-descriptor", str(client), "--report", str(report), *options]
            command = wine.write_command(program, arena, options)
            environment = wine.write_environment(environment, options)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                command,
                stdin=subprocess.DEVNULL if wine is None else requests,
                stdout=output if wine is None else answers,
                stderr=output,
                pass_fds=(*inherited, arena.descriptor),
                start_new_session=True,
                env=dict(environment),
                cwd="/",
            )
        except OSError:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in (*inherited, output):
                os.close(descriptor)
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        os.set_blocking(self._output, False)
        self._end = weakref.finalize(self, _end_process, self._process, ours, self._owner)
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._poll.register(self._output, select.POLLIN)
        self._answered = [(self._answers, select.POLLIN)]

    @property
    def are_open(self) -> bool:
        """Whether this process can use them: not one that was forked from that which opened them."""
        return super().are_open and os.getpid() == self._owner

    def take_report(self) -> bytes:
        """Return what the sandbox around wine reports about itself, once the host is ready; nothing without wine."""
        if self._report is None:
            return b""
        os.set_blocking(self._report, False)
        try:
            return os.read(self._report, _REPORT_BYTES)
        except BlockingIOError:
            return b""

    def send(self, message: bytes, seconds: float | None) -> bool:
        """Send a message, to a host that has ended too; return False if it does not take it in this time."""
        try:
            sent = os.write(self._requests, message)
            if sent != len(message):
                return self._send_rest(memoryview(message)[sent:], seconds)
        except BlockingIOError:
            return self._send_rest(memoryview(message), seconds)
        except OSError:  # it has ended; the answer will say how
            pass
        return True

    def _send_rest(self, message: memoryview, limit: float | None) -> bool:
        """Send more than the pipe takes at once."""
        deadline = None if limit is None else time.monotonic() + limit
        while message:
            seconds = None if deadline is None else deadline - time.monotonic()
            if seconds is not None and seconds <= 0:
                return False
            _, writable, _ = select.select([], [self._requests], [], seconds)
            if writable:
                try:
                    message = message[os.write(self._requests, message) :]
                except BlockingIOError:
                    continue
                except OSError:
                    return True
        return True

    def read(self, seconds: float | None) -> bytes | None:
        """Return some bytes of an answer, none at the end of all, None where nothing comes in this time.

        Anything the process prints meanwhile is logged.
        """
        deadline = None
        while True:
            ready = self._poll.poll(None if seconds is None else max(0.0, 1000 * seconds))
            if ready == self._answered:
                data = self._take_answer()
                if data is not None:
                    return data
            if not ready or (seconds is not None and seconds <= 0):  # one that never stops printing is always ready
                return None
            if seconds is not None:
                now = time.monotonic()
                deadline = now + seconds if deadline is None else deadline
                seconds = deadline - now
            for descriptor, _ in ready:
                if descriptor == self._output and not self._take_output():
                    self._poll.unregister(self._output)  # closed by the FMU
            self._printed.log()
            if ready != self._answered and any(descriptor == self._answers for descriptor, _ in ready):
                data = self._take_answer()
                if data is not None:
                    return data

    def _take_answer(self) -> bytes | None:
        """Return bytes, none at the end; None where the FMU, which can read from the pipe, too, was faster."""
        try:
            return os.read(self._answers, _READ_BYTES)
        except BlockingIOError:
            return None

    def _take_output(self) -> bool:
        """Take what was printed; False at the end of it."""
        try:
            content = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return True
        self._printed.feed(content)
        return bool(content)

    def read_to_end(self, seconds: float) -> bool:
        """Take what is printed until all is closed or the process has ended; False if neither is so in this time."""
        deadline = time.monotonic() + seconds
        open_ones = {self._answers, self._output}
        while open_ones:
            remaining = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select(list(open_ones), [], [], remaining)
            if not readable or not remaining:
                return self._process.poll() is not None
            for descriptor in readable:
                is_open = self._take_output() if descriptor == self._output else self._take_answer() != b""
                if not is_open:
                    open_ones.discard(descriptor)
        return True

    def wait(self, seconds: float) -> tuple[int | None, int]:
        """Return how the process ended, None if it has not in this time; and the most bytes of memory that it had."""
        process = self._process
        if process.returncode is not None:
            return process.returncode, 0
        until = time.monotonic() + seconds
        while True:
            try:
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            except ChildProcessError:  # this process ignores how its children end
                return process.wait(), 0
            if ended:
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
            if time.monotonic() > until:
                return None, 0
            time.sleep(0.001)


def _end_process(process: subprocess.Popen[bytes], descriptors: Iterable[int], owner: int) -> None:
    """End a process, if it has not ended and belongs to this one, not to that which this was forked from.

    Its sandbox ends what it has started once the descriptors are closed.
    """
    is_ours = os.getpid() == owner
    if is_ours:
        end_started_process(process)
    for descriptor in descriptors:
        os.close(descriptor)
    if is_ours:
        process.wait()
