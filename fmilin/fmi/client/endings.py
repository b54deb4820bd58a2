"""How a process ended, in words: signals of POSIX and statuses of Windows."""

from __future__ import annotations

import signal

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
