"""The process that an FMU's code runs in: what the code borrows is given back."""

from __future__ import annotations

import contextlib
import ctypes
import locale
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fmilin.ground.sandbox.process_state import process_state

__all__ = ["standard_output_diverted", "undisturbed_process"]


_FENV = 256  # bytes: more than fenv_t has anywhere


@contextmanager
def undisturbed_process() -> Iterator[None]:
    """Restore working directory, locale and arithmetic afterwards, and keep standard output clean meanwhile.

    One thread at a time: these belong to the whole process.

    Some FMUs call ``setlocale`` or ``chdir`` and leave it so, or switch floating-point traps on, with which the next
    division by zero of ours would end the process.
    """
    with process_state():
        try:
            directory = os.getcwd()  # noqa: PTH109 - Path.cwd() is the same call; the text is what chdir takes
        except OSError:  # it was removed meanwhile: nothing to return to
            directory = None
        language = locale.setlocale(locale.LC_ALL)
        arithmetic = _floating_point()
        try:
            with standard_output_diverted():
                yield
        finally:
            if directory is not None:
                os.chdir(directory)
            with contextlib.suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, language)
            _restore_floating_point(arithmetic)


@contextmanager
def standard_output_diverted() -> Iterator[None]:
    """Send what C code prints to standard error, where it cannot spoil results on standard output.

    This works on the file descriptor, so it holds for the whole process while it lasts.
    """
    _flush()  # what was printed so far belongs to standard output
    try:
        saved = os.dup(1)
    except OSError:  # standard output is closed
        yield
        return
    try:
        _divert()
        yield
    finally:
        _flush()
        os.dup2(saved, 1)
        os.close(saved)


def _divert() -> None:
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def _floating_point() -> ctypes.Array[ctypes.c_char] | None:
    """Return rounding, traps and flags of this thread's arithmetic; None where the C library does not tell."""
    environment = ctypes.create_string_buffer(_FENV)
    try:
        return None if ctypes.CDLL(None).fegetenv(environment) else environment
    except (AttributeError, OSError, TypeError):
        return None


def _restore_floating_point(environment: ctypes.Array[ctypes.c_char] | None) -> None:
    if environment is not None:
        ctypes.CDLL(None).fesetenv(environment)


def _flush() -> None:
    """Write out what Python and the C library still hold in their buffers."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()
    if sys.platform == "win32":
        ctypes.cdll.msvcrt.fflush(None)
    else:
        ctypes.CDLL(None).fflush(None)
