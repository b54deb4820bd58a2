"""What an FMU's code prints goes to the logger ``fmilin.printed``: standard output belongs to the program.

While foreign code runs, the C library's ``stdout`` is a file of ours; while it is loaded and unloaded, and no other
thread could print, descriptor 1 is, too. A child process needs none of this: its standard output is nobody's.
"""

import atexit
import contextlib
import ctypes
import locale
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

from fmilin.errors import ModelCrashError
from fmilin.sandbox import watchdog
from fmilin.support.encodings import describe_printed

logger = logging.getLogger("fmilin.printed")  # without a handler: what nobody takes is seen on standard error
_MOST = 20_000  # bytes that are shown of what is printed at a time
_PAUSE = 0.1  # seconds between two looks, which take half as long as a visit of a small model
_libc = None if sys.platform == "win32" else ctypes.CDLL(None)


class _Diverted:
    """Where it goes at present; threads that run foreign code at once share it."""

    lock = threading.RLock()
    process = threading.RLock()  # for the rest of what threads share
    threads = 0
    file = -1  # a descriptor
    stream: int | None = None  # the C stream on it
    slot: ctypes.c_void_p | None = None  # the variable ``stdout`` of the C library, where it has one
    theirs: int | None = None
    saved = -1  # the descriptor of the real standard output, while 1 is another
    due = 0.0  # when it is looked at again
    later: list[Callable[[], None]] = []  # noqa: RUF012 - one for the process


_diverted = _Diverted()  # changes of a class would make Python forget where it finds all its attributes


def _open_unnamed_file() -> int:
    """Open a file without a name and return its descriptor. Only Linux has ``memfd_create``."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("printed")
    with tempfile.TemporaryFile() as file:  # removed by the system when the duplicate is closed
        return os.dup(file.fileno())


def _prepare() -> None:
    d = _diverted
    d.file = _open_unnamed_file()
    with suppress(ValueError, AttributeError):
        if _libc is not None:
            d.slot = ctypes.c_void_p.in_dll(_libc, "stdout")
            _libc.fdopen.restype = ctypes.c_void_p
            d.stream = _libc.fdopen(d.file, b"a")
    atexit.register(log)


def begin() -> None:
    """Take what is printed from now on."""
    d = _diverted
    with d.lock:
        d.threads += 1
        if d.threads == 1:
            if d.file < 0:
                _prepare()
            if d.slot is not None:
                d.theirs, d.slot.value = d.slot.value, d.stream


def end() -> None:
    """Let go of standard output, and now and then log what was printed."""
    d = _diverted
    with d.lock:
        d.threads -= 1
        if d.slot is not None and not d.threads:
            d.slot.value = d.theirs
    if d.saved < 0 and monotonic() > d.due:
        log()


def log() -> None:
    """Log what was printed since the last time."""
    d = _diverted
    with d.lock:
        d.due = monotonic() + _PAUSE
        _flush(d.stream)
        content, size = _taken(d.file)
    if content:
        logger.warning("%s", describe_printed(content, size))


def _taken(file: int) -> tuple[bytes, int]:
    """Return the beginning of what was printed, and its length; it is then forgotten."""
    try:
        size = os.lseek(file, 0, os.SEEK_END)
        if not size:
            return b"", 0
        os.lseek(file, 0, os.SEEK_SET)  # Windows does not have os.pread
        content = os.read(file, min(size, _MOST))
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
    except OSError:  # closed, too
        _diverted.file, _diverted.slot = -1, None
        return b"", 0
    return content, size


@contextmanager
def diverted() -> Iterator[None]:
    """Take what is printed in the block, past the C library, too; nothing in a child process that is watched."""
    if watchdog.listener() is not None:
        yield
        return
    begin()
    d = _diverted
    with d.lock:
        if d.threads == 1 and threading.active_count() == 1:
            _flush(d.theirs)
            with suppress(OSError):  # closed
                d.saved = os.dup(1)
                os.dup2(d.file, 1)
    try:
        yield
    finally:
        closed = False
        with d.lock:
            if d.saved >= 0:
                _flush(d.theirs)
                try:
                    os.dup2(d.saved, 1)
                    os.close(d.saved)
                except OSError:
                    closed = True
                d.saved = -1
            later, d.later = d.later, []
        end()
        for speak in later:
            speak()
        log()
        if closed:
            raise ModelCrashError(
                "The model's code closed files of the process that are not its own, standard output among them. Run it "
                "in a process of its own: fl.isolated(opener, use)."
            ) from None


def when_free(speak: Callable[[], None]) -> None:
    """Do this as soon as standard output is the program's own: it may go there."""
    with _diverted.lock:
        if _diverted.saved >= 0:
            _diverted.later.append(speak)
            return
    speak()


def _flush(stream: int | None) -> None:
    if stream and _libc is not None:
        _libc.fflush(ctypes.c_void_p(stream))


@contextmanager
def process_state() -> Iterator[None]:
    """Hold what the threads share until the end of the block; a thread may hold it several times."""
    with _diverted.process:
        yield


def absolute(path: str | Path) -> Path:
    """Return the absolute path, seen from the directory that the process is in when no thread is loading."""
    path = Path(path)
    if path.is_absolute():
        return path
    with _diverted.process:
        return path.absolute()


def _alone() -> None:
    """In a forked child there is one thread, which may have been born while another one held a lock."""
    _diverted.process, _diverted.lock = threading.RLock(), threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)


_FENV = 256  # bytes: more than fenv_t has anywhere


@contextmanager
def undisturbed_process() -> Iterator[None]:
    """Restore directory, locale and arithmetic, which some FMUs change for all; keep standard output clean."""
    with process_state():
        language = locale.setlocale(locale.LC_ALL)
        arithmetic = _floating_point()
        try:
            with same_directory(), diverted():
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
