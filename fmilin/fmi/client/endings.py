"""How a host is ended, and how it ended, in words: signals of POSIX and statuses of Windows."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress

HOST_DIES_WITH_PARENT = sys.platform in ("linux", "win32")
"""Whether the system ends the host with the process that was started; elsewhere that one ends it when it is told to."""

_TERMINATION_TIME = 5.0  # seconds in which it has done so

_FIRST_NT_ERROR = 0xC0000000  # an exit status of POSIX is smaller than 256
_NT_STATUSES = {
    0xC0000005: "access violation",
    0xC0000006: "a page of a file could not be read",
    0xC0000017: "no memory",
    0xC000001D: "illegal instruction",
    0xC0000025: "an exception that cannot be continued from",
    0xC000008C: "index outside an array",
    0xC000008E: "division by zero; it switched floating-point traps on",
    0xC0000090: "invalid floating-point operation; it switched floating-point traps on",
    0xC0000091: "floating-point overflow; it switched floating-point traps on",
    0xC0000094: "integer division by zero",
    0xC00000FD: "stack overflow",
    0xC0000135: "a library is missing",
    0xC0000374: "damaged heap",
    0xC0000409: "damaged stack, or abort()",
    0xC0000420: "failed assertion",
}


def describe_end(status: int) -> str:
    """Return what became of a model, as the end of a sentence that begins with it."""
    if status >= _FIRST_NT_ERROR:
        return f"crashed (0x{status:08X}: {_NT_STATUSES.get(status, 'an exception')})"
    if status >= 0:
        return f"ended the whole process by itself (exit status {status})"
    try:
        number = signal.Signals(-status)
    except ValueError:
        return f"crashed (signal {-status})"
    if number.name == "SIGKILL":
        return "was killed (SIGKILL; the usual reason is that memory ran out)"
    name = f"{number.name}: {(signal.strsignal(number) or '').lower()}"
    if number == signal.SIGFPE:
        name += "; it switched floating-point traps on, or divided integers by zero"
    return f"crashed ({name})"


def end_started_process(process: subprocess.Popen[bytes]) -> None:
    """End a process that runs a host, in its sandbox, and with it the host."""
    if not HOST_DIES_WITH_PARENT and process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TERMINATION_TIME)
    process.kill()
