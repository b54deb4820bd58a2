"""The process that an FMU's code runs in: what the code borrows is given back, one thread at a time.

What all threads share and an FMU touches while it is loaded are the working directory, the locale and standard output.
A relative path means what it meant before any thread began to load: it is made absolute while no other is loading.
"""

from __future__ import annotations

import contextlib
import ctypes
import locale
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fmilin.fmi.read import printed


class _Held:
    lock = threading.RLock()


@contextmanager
def process_state() -> Iterator[None]:
    """Hold what the threads share until the end of the block; a thread may hold it several times."""
    with _Held.lock:
        yield


def absolute(path: str | Path) -> Path:
    """Return the absolute path, seen from the directory that the process is in when no thread is loading."""
    path = Path(path)
    if path.is_absolute():
        return path
    with _Held.lock:
        return path.absolute()


def _released() -> None:
    """In a forked child there is one thread, which may have been born while another one held the lock."""
    _Held.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_released)


_FENV = 256  # bytes: more than fenv_t has anywhere


@contextmanager
def undisturbed_process() -> Iterator[None]:
    """Restore working directory, locale and arithmetic afterwards, and keep standard output clean meanwhile.

    These belong to the whole process: one thread at a time. Some FMUs call ``setlocale`` or ``chdir`` and leave it so,
    or switch floating-point traps on, with which the next division by zero of ours would end the process.
    """
    with process_state():
        language = locale.setlocale(locale.LC_ALL)
        arithmetic = _floating_point()
        try:
            with same_directory(), printed.diverted():
                yield
        finally:
            with contextlib.suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, language)
            if arithmetic is not None:
                ctypes.CDLL(None).fesetenv(arithmetic)


@contextmanager
def same_directory() -> Iterator[None]:
    """Return to the working directory at the end of the block."""
    try:
        directory = os.getcwd()  # noqa: PTH109 - Path.cwd() is the same call; the text is what chdir takes
    except OSError:  # it was removed meanwhile: nothing to return to
        directory = None
    try:
        yield
    finally:
        if directory is not None:
            os.chdir(directory)


def _floating_point() -> ctypes.Array[ctypes.c_char] | None:
    """Return rounding, traps and flags of this thread's arithmetic; None where the C library does not tell."""
    environment = ctypes.create_string_buffer(_FENV)
    try:
        return None if ctypes.CDLL(None).fegetenv(environment) else environment
    except (AttributeError, OSError, TypeError):
        return None
