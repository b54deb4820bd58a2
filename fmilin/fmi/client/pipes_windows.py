# ruff: noqa: E402, FBT003 - modules of Windows are imported behind a condition, and their functions take no keywords
"""Starts a host and speaks with it through pipes, on Windows.

The pipes have overlapped reads and writes, so that a thread can wait for answers, for what is printed and for the end
of its time at once. A job object that this process has ends the host, and all that it has started, when this process
ends in any way.
"""

from __future__ import annotations

import ctypes
import math
import os
import secrets
import subprocess
import sys
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.pipes import Pipes
from fmilin.fmi.client.printed_lines import PrintedLines
from fmilin.fmi.client.wine import Wine

assert sys.platform == "win32"  # noqa: S101 - for type checkers

import _winapi
import msvcrt

_PIPE_BYTES = 1 << 16  # bytes of a pipe and of a read
_MAX_WAIT_MILLISECONDS = 0x7FFFFFFF  # ms

# Of Windows, and not of the module _winapi.
_OUTBOUND_ACCESS_FLAG = 2
_REJECT_REMOTE_CLIENTS_FLAG = 8
_ERROR_OPERATION_ABORTED = 995
_JOB_OBJECT_EXTENDED_LIMIT_INFORMATION = 9


class WindowsPipes(Pipes):
    """A host on Windows, with handles in place of descriptors."""

    def __init__(
        self,
        program: Path,
        arena: Arena,
        options: Sequence[str],
        environment: Mapping[str, str],
        printed: PrintedLines,
        wine: Wine | None = None,
    ) -> None:
        assert wine is None  # noqa: S101 - binaries for Windows need none here
        self._printed = printed
        self._job = _create_job()
        requests, self._requests = _create_pipe(_OUTBOUND_ACCESS_FLAG)
        answers, self._answers = _create_pipe(_winapi.PIPE_ACCESS_INBOUND)
        output, self._output = _create_pipe(_winapi.PIPE_ACCESS_INBOUND)
        ours = (self._job, self._requests, self._answers, self._output)
        command = [str(program), str(requests), str(answers), arena.name, str(arena.size)]
        command += ["--client-descriptor", str(self._job), *options]
        printing = msvcrt.open_osfhandle(output, os.O_WRONLY)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=printing,
                stderr=printing,
                startupinfo=subprocess.STARTUPINFO(lpAttributeList={"handle_list": [requests, answers, self._job]}),
                # Without a console: under wine the process of a hidden one inherits the job, which it would keep open.
                creationflags=subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP,
                env=_add_system_root(environment),
                cwd=program.parent,
            )
        except OSError:
            _close_handles(ours)
            raise
        finally:
            os.close(printing)
            _close_handles((requests, answers))
        os.set_handle_inheritable(self._job, False)
        self._reads = (_PendingRead(self._output), _PendingRead(self._answers))
        self._end = weakref.finalize(self, _end_process, self._process, self._reads, ours)

    def send(self, message: bytes, seconds: float | None) -> bool:
        """Send a message, to a host that has ended too; return False if it does not take it in this time."""
        try:
            operation, error = _winapi.WriteFile(self._requests, message, overlapped=True)
            if error == 0:
                return True
            if not _wait([operation.event], seconds):
                operation.cancel()
            return operation.GetOverlappedResult(True)[1] != _ERROR_OPERATION_ABORTED
        except OSError:  # it has ended; the answer will say how
            return True

    def read(self, seconds: float | None) -> bytes | None:
        """Return some bytes of an answer, none at the end of all, None where nothing comes in this time.

        Anything the process prints meanwhile is logged.
        """
        output, answers = self._reads
        deadline = None if seconds is None else time.monotonic() + seconds
        while answers.is_open:
            if not _wait([reader.event for reader in self._reads if reader.is_open], seconds):
                return None
            if output.is_ready:
                self._printed.feed(output.take())
                self._printed.log()
            if answers.is_ready:
                return answers.take()
            seconds = None if deadline is None else deadline - time.monotonic()
            if seconds is not None and seconds <= 0:  # one that never stops printing is always ready
                return None
        return b""

    def read_to_end(self, seconds: float) -> bool:
        """Take what is printed until all is closed or the process has ended; False if neither is so in this time."""
        output, answers = self._reads
        deadline = time.monotonic() + seconds
        while output.is_open or answers.is_open:
            events = [reader.event for reader in self._reads if reader.is_open]
            remaining = deadline - time.monotonic()
            if not _wait(events, remaining) or remaining <= 0:
                return self._process.poll() is not None
            if output.is_ready:
                self._printed.feed(output.take())
            if answers.is_ready:
                answers.take()
        return True

    def wait(self, seconds: float) -> tuple[int | None, int]:
        """Return how the process ended, None if it has not in this time; and the most bytes of memory that it had."""
        try:
            return self._process.wait(max(seconds, 0.0)), _peak_memory(self._job)
        except subprocess.TimeoutExpired:
            return None, 0


class _PendingRead:
    """Reads from a pipe; while it is open, a read is under way, and ``event`` is set once that has an outcome."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self.is_open = True
        self._begin()

    @property
    def event(self) -> int:
        """The handle of the event to wait for."""
        return self._operation.event

    @property
    def is_ready(self) -> bool:
        """Whether there are bytes to take, or the end of the pipe."""
        return self.is_open and _winapi.WaitForSingleObject(self.event, 0) == _winapi.WAIT_OBJECT_0

    def take(self) -> bytes:
        """Return what was read, nothing at the end of the pipe."""
        try:
            self._operation.GetOverlappedResult(True)
        except OSError:  # the other end is closed
            self.is_open = False
            return b""
        content = bytes(self._operation.getbuffer() or b"")
        self._begin()
        return content

    def cancel(self) -> None:
        """End the read that is under way: the system writes to its memory no more."""
        if self.is_open:
            self.is_open = False
            with suppress(OSError):
                self._operation.cancel()
                self._operation.GetOverlappedResult(True)

    def _begin(self) -> None:
        try:
            self._operation, _ = _winapi.ReadFile(self._pipe, _PIPE_BYTES, overlapped=True)
        except OSError:  # the other end is closed
            self.is_open = False


class _ExtendedLimits(ctypes.Structure):
    """``JOBOBJECT_EXTENDED_LIMIT_INFORMATION``."""

    _fields_ = (
        ("basic_limits", ctypes.c_uint64 * 8),
        ("transfers", ctypes.c_uint64 * 6),
        ("process_memory_limit", ctypes.c_size_t),
        ("job_memory_limit", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


def _create_job() -> int:
    """Return a job object for the host, which enters it and sets the limits; it ends with our handle."""
    kernel = ctypes.WinDLL("kernel32")
    kernel.CreateJobObjectW.restype = ctypes.c_void_p
    kernel.CreateJobObjectW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p]
    job: int | None = kernel.CreateJobObjectW(None, None)
    if job is None:
        raise ctypes.WinError()
    os.set_handle_inheritable(job, True)
    return job


def _peak_memory(job: int) -> int:
    """Return the most bytes that the processes of a job had together, 0 where the system does not say."""
    limits = _ExtendedLimits()
    query = ctypes.WinDLL("kernel32").QueryInformationJobObject
    query.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
    has_answered = query(job, _JOB_OBJECT_EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits), None)
    return int(limits.peak_job_memory) if has_answered else 0


def _create_pipe(access: int) -> tuple[int, int]:
    """Return the end of the host, which it inherits, and ours, which has overlapped operations."""
    name = rf"\\.\pipe\fmilin-{secrets.token_hex(16)}"
    mode = access | _winapi.FILE_FLAG_OVERLAPPED | _winapi.FILE_FLAG_FIRST_PIPE_INSTANCE
    ours = _winapi.CreateNamedPipe(name, mode, _REJECT_REMOTE_CLIENTS_FLAG, 1, _PIPE_BYTES, _PIPE_BYTES, 0, 0)
    try:
        their_access = _winapi.GENERIC_READ if access == _OUTBOUND_ACCESS_FLAG else _winapi.GENERIC_WRITE
        theirs = _winapi.CreateFile(name, their_access, 0, 0, _winapi.OPEN_EXISTING, 0, 0)
        os.set_handle_inheritable(theirs, True)
        _winapi.ConnectNamedPipe(ours, overlapped=True).GetOverlappedResult(True)
    except OSError:
        _winapi.CloseHandle(ours)
        raise
    return theirs, ours


def _add_system_root(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables and that without which libraries of Windows cannot be used."""
    return {"SYSTEMROOT": os.environ.get("SYSTEMROOT", r"C:\Windows"), **environment}


def _wait(events: Sequence[int], seconds: float | None) -> bool:
    """Wait for one of several events; False if none comes in this time."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        milliseconds = _winapi.INFINITE
        if deadline is not None:
            milliseconds = min(max(0, math.ceil(1000 * (deadline - time.monotonic()))), _MAX_WAIT_MILLISECONDS)
        with suppress(InterruptedError):  # the interrupt itself comes as an exception of its own
            return _winapi.WaitForMultipleObjects(events, False, milliseconds) != _winapi.WAIT_TIMEOUT


def _close_handles(handles: Iterable[int]) -> None:
    for handle in handles:
        _winapi.CloseHandle(handle)


def _end_process(process: subprocess.Popen[bytes], reads: Iterable[_PendingRead], handles: Iterable[int]) -> None:
    """End a process, if it has not ended; closing the job ends what it has started."""
    process.kill()
    for read in reads:
        read.cancel()
    _close_handles(handles)
    process.wait()
