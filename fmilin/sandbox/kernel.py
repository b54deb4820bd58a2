"""Linux's system calls that Python has no function for, and namespaces, where a process sees no others.

What a process that is apart has started ends with it, and its process 1 is the guard's own, out of reach of signals
from inside. Some distributions and most containers do not allow it.
"""

import ctypes
import os
import platform
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column in the tables of numbers, and the kernel's number of the architecture (linux/audit.h)."""

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 24, 38, 47  # linux/prctl.h


@cache
def machine() -> tuple[int, int] | None:
    """Return the column and the architecture of this machine; None where its numbers are not known."""
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32:  # a 32-bit Python has other numbers
        return None
    return _MACHINES.get(platform.machine())


@cache
def libc() -> Any:
    """Return the C library."""
    return ctypes.CDLL(None, use_errno=True)


def call(number: int | tuple[int, int], *arguments: int | bytes) -> int:
    """Make a system call, whose number may differ between machines; OSError when it fails."""
    numbers = machine()
    if numbers is None:
        raise OSError("The numbers of this system's calls are not known.")
    syscall = libc().syscall
    syscall.restype = ctypes.c_long
    given = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    own = number if isinstance(number, int) else number[numbers[0]]
    result = int(syscall(ctypes.c_long(own), *given))
    if result < 0:
        raise _failure()
    return result


def prctl(option: int, *values: int) -> None:
    """Change what the kernel does with this process; OSError when it refuses."""
    if libc().prctl(*map(ctypes.c_ulong, (option, *values, 0, 0, 0, 0)[:5])) < 0:
        raise _failure()


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


_UNSHARE = (272, 97)
_NEW_USER, _NEW_PROCESSES, _NEW_MOUNTS, _NEW_IPC = 0x10000000, 0x20000000, 0x20000, 0x8000000  # CLONE_NEW*
_PRIVATE, _NO_RIGHTS = 0x4000 | 0x40000, 0x2 | 0x4 | 0x8  # MS_REC | MS_PRIVATE; MS_NOSUID | MS_NODEV | MS_NOEXEC
_PR_SET_DUMPABLE = 4


class _World:
    """Where this process is, and those forked from it."""

    apart = False
    proc_is_own = True  # whether /proc shows this world's processes, by their numbers here


def is_apart() -> bool:
    """Whether this process is in a world of its own, out of which no signal leads."""
    return _World.apart


def proc_tells() -> bool:
    """Whether what ``/proc`` says about processes is about those here."""
    return _World.proc_is_own


def leave() -> bool:
    """Let the next child of this process, which has one thread, be process 1 of a new world; whether that is allowed.

    The administrator needs no new users, and keeps the right to read what others own until that is given up.
    """
    user, group = os.geteuid(), os.getegid()
    flags = _NEW_PROCESSES | _NEW_MOUNTS | _NEW_IPC
    for more in (0, _NEW_USER) if user == 0 else (_NEW_USER,):
        try:
            call(_UNSHARE, flags | more)
        except OSError:
            continue
        if more:
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                with suppress(OSError):
                    Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
            with suppress(OSError):  # or the maker could not see how much memory it takes
                prctl(_PR_SET_DUMPABLE, 1)
        _World.apart = True
        return True
    return False


def settle(most_processes: int) -> None:
    """As process 1: let ``/proc`` show this world alone, and bound how many processes it has, where that is allowed."""
    mount = libc().mount
    private = mount(b"none", b"/", None, _PRIVATE, None) == 0
    _World.proc_is_own = private and mount(b"proc", b"/proc", b"proc", _NO_RIGHTS, None) == 0
    if _World.proc_is_own:
        with suppress(OSError):  # Linux 6.14 and later
            Path("/proc/sys/kernel/pid_max").write_text(str(most_processes), encoding="ascii")
