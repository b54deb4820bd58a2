"""Where a command does its work: what goes to standard output, what is closed at the end, what a failure looks like."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, TextIO, TypeVar

from fmilin.errors import FmilinError, ModelCrashError
from fmilin.sandbox.isolation import Limits, in_a_child

__all__ = ["Job", "JobRunner", "failure", "work", "work_in_this_process"]


MOST_PRINTED = 20_000
"""Bytes of what foreign code prints that are shown."""


class Closable(Protocol):
    """What a job borrows."""

    def close(self) -> None:
        """Give back."""


Borrowed = TypeVar("Borrowed", bound=Closable)


@dataclass
class JobRunner:
    """What a job needs to deliver.

    Parameters
    ----------
    results : TextIO
        Standard output, even while foreign code writes to what it takes for standard output.
    borrowed : list
        What is closed at the end.
    home : Path or None
        The working directory at the beginning.
    """

    results: TextIO
    borrowed: list[Closable] = field(default_factory=list)
    home: Path | None = None

    def borrow(self, thing: Borrowed) -> Borrowed:
        """Close ``thing`` when everything has been delivered: foreign code may crash while it is unloaded."""
        self.borrowed.append(thing)
        return thing

    def restore_directory(self) -> None:
        """Return to where the command began, before files are written: foreign code may have left the directory."""
        if self.home is not None and _working_directory() != self.home:
            os.chdir(self.home)


def _working_directory() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was removed meanwhile
        return None


Job = Callable[[JobRunner], None]


def work(job: Job, *, isolate: bool, debug: bool, limits: Limits | None = None) -> int:
    """Do ``job`` and return the exit status; in a child process when ``isolate`` and where there is fork().

    What foreign code prints meanwhile follows on standard error, behind our own words.
    """
    if isolate and hasattr(os, "fork"):
        with tempfile.TemporaryFile() as printed:
            try:
                return _work_in_a_child(job, printed, debug=debug, limits=limits)
            finally:
                _append(printed)
    return work_in_this_process(job, debug=debug)


def _append(printed: IO[bytes]) -> None:
    """Write what foreign code printed to standard error."""
    with suppress(OSError):
        sys.stderr.flush()
        size = printed.seek(0, os.SEEK_END)
        printed.seek(0)
        if size:
            text = printed.read(MOST_PRINTED).decode("utf-8", "replace")
            more = f"\n... and {size - MOST_PRINTED} bytes more" if size > MOST_PRINTED else ""
            sys.stderr.write(f"The model printed:\n{text.rstrip()}{more}\n")
            sys.stderr.flush()


def _work_in_a_child(job: Job, printed: IO[bytes], *, debug: bool, limits: Limits | None) -> int:
    """Do ``job`` in a forked child and return its exit status, 6 when the child ended without saying one.

    The parent forks before anything heavy or foreign is loaded, so that this costs a millisecond.
    """
    try:
        answer = in_a_child(
            lambda deliver: work_in_this_process(
                job, debug=debug, announce=lambda status: deliver(bytes([status])), printed=printed.fileno()
            ),
            limits,
        )
    except ModelCrashError as error:
        return failure(error, debug=debug)
    if answer.remark:
        sys.stderr.write(f"fmilin: {answer.remark}\n")
    return answer.content[0]


def work_in_this_process(
    job: Job, *, debug: bool, announce: Callable[[int], None] = lambda _: None, printed: int = 2
) -> int:
    """Do ``job`` here and return the exit status.

    Parameters
    ----------
    job : callable
    debug : bool
        Show tracebacks.
    announce : callable
        Is told the exit status as soon as it is certain, before anything is given back.
    printed : int
        Where that goes which foreign code writes to standard output: standard error, or another open file.
    """
    with _stdout_for_results(printed) as results:
        runner = JobRunner(results, home=_working_directory())
        status = 0
        try:
            job(runner)
            results.flush()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it becomes one paragraph and a status
            status = failure(error, debug=debug)
        announce(status)
        for thing in reversed(runner.borrowed):
            try:
                thing.close()
            except FmilinError as error:
                failure(error, debug=debug)
    return status


def failure(error: BaseException, *, debug: bool) -> int:
    """Print one paragraph about ``error`` on standard error and return the exit status that belongs to it."""
    status, text = _status_and_text(error)
    with suppress(OSError):
        if debug:
            traceback.print_exception(error)
        if text:
            sys.stderr.write(f"fmilin: {' '.join(text.splitlines())}\n")
        sys.stderr.flush()
    return status


def _status_and_text(error: BaseException) -> tuple[int, str]:
    match error:
        case FmilinError():
            return error.exit_status, str(error)
        case KeyboardInterrupt():
            return 130, "interrupted."
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1, ""
        case BrokenPipeError():
            _silence(sys.stdout)
            return 1, ""
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return 2, f"Cannot write the results: {error.strerror}. Write to another place, or free this one."
        case MemoryError():
            return 1, "there is not enough memory for this model."
        case _:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return 1, f"{what}. This is a bug in fmilin: run again with --debug, and report what it prints."


def _silence(stream: TextIO) -> None:
    """Point ``stream`` to nowhere: nobody reads it, and the interpreter would complain at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _stdout_for_results(printed: int = 2) -> Iterator[TextIO]:
    """Yield a stream to the real standard output, while descriptor 1 (where C code prints) means ``printed``."""
    try:
        is_real = sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2
    except (OSError, ValueError, AttributeError):
        is_real = False
    if not is_real:
        yield sys.stdout  # a notebook, or a test that captures
        return
    sys.stdout.flush()
    real, python_stdout = os.dup(1), sys.stdout
    os.dup2(printed, 1)
    results = os.fdopen(os.dup(real), "w", encoding=sys.stdout.encoding, errors="replace")
    sys.stdout = sys.stderr
    try:
        yield results
    finally:
        with suppress(OSError):
            results.close()
        _flush_c_streams()
        os.dup2(real, 1)
        os.close(real)
        sys.stdout = python_stdout


def _flush_c_streams() -> None:
    """Let what C code has printed so far go where it was meant to go."""
    if os.name == "posix" and "ctypes" in sys.modules:
        import ctypes

        ctypes.CDLL(None).fflush(None)
