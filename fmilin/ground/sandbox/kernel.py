"""Linux's system calls that Python has no function for, by their numbers; elsewhere there are none."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache
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
