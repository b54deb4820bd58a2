"""Where a command does its work: what goes to standard output, what is closed at the end, what a failure looks like.

A job collects what it has to deliver: texts and files. All of it is delivered at once when the job has ended, by the
process that the user has started, whichever process did the job.
"""

from __future__ import annotations

import errno
import io
import marshal
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TextIO, TypeVar

from fmilin.atomic import write_all
from fmilin.cli.terminations import Terminated, termination_raises
from fmilin.errors import FmilinError, ModelCrashError
from fmilin.sandbox.channel import high
from fmilin.sandbox.isolation import Limits, can_isolate, in_a_child
from fmilin.temporary import remove_leftovers, temporary_place

__all__ = ["Job", "JobRunner", "failure", "work"]


class Closable(Protocol):
    """What a job borrows."""

    def close(self) -> None:
        """Give back."""


Borrowed = TypeVar("Borrowed", bound=Closable)


class _Results(io.StringIO):
    """Text for standard output, laid out for what that is."""

    is_terminal = False

    def isatty(self) -> bool:
        return self.is_terminal


@dataclass
class JobRunner:
    """What a job needs to deliver.

    Parameters
    ----------
    results : TextIO
        What is written here goes to standard output when the job has ended.
    borrowed : list
        What is closed at the end.
    home : Path or None
        The working directory at the beginning.
    """

    results: TextIO
    borrowed: list[Closable] = field(default_factory=list)
    home: Path | None = None
    _files: dict[Path, bytes] = field(default_factory=dict)
    _said: list[str] = field(default_factory=list)

    def borrow(self, thing: Borrowed) -> Borrowed:
        """Close ``thing`` when everything has been delivered: foreign code may crash while it is unloaded."""
        self.borrowed.append(thing)
        return thing

    def restore_directory(self) -> None:
        """Return to where the command began, before files are read: foreign code may have left the directory."""
        if self.home is not None and _working_directory() != self.home:
            os.chdir(self.home)

    def write_files(self, contents: Mapping[Path, bytes]) -> None:
        """Write files when the job has ended; all are complete on the disk before the first replaces an old one."""
        self._files |= {path if self.home is None else self.home / path: contents[path] for path in contents}

    def say(self, text: str) -> None:
        """Say something on standard error when files and results have been written."""
        self._said.append(text)


def _working_directory() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was removed meanwhile
        return None


Job = Callable[[JobRunner], None]


@dataclass
class _Outcome:
    """What a job has to deliver: the exit status, texts for both streams, files, and why it failed."""

    status: int
    text: str
    files: dict[Path, bytes]
    said: str
    failed: str

    def packed(self) -> bytes:
        files = {str(path): content for path, content in self.files.items()}
        return marshal.dumps((self.status, self.text, files, self.said, self.failed))

    @classmethod
    def unpacked(cls, content: bytes) -> _Outcome:
        status, text, files, said, failed = marshal.loads(content)  # noqa: S302 - written by our own child
        return cls(status, text, {Path(path): files[path] for path in files}, said, failed)


def work(job: Job, *, isolate: bool, debug: bool, limits: Limits | None = None) -> int:
    """Do ``job`` and return the exit status; in a child process when ``isolate`` and where there is fork()."""
    with termination_raises():
        remove_leftovers(temporary_place())
        if isolate and can_isolate():
            return _work_in_a_child(job, debug=debug, limits=limits)
        with _stdout_for_results() as stdout:
            return _worked(job, debug=debug, deliver=lambda outcome: _delivered(outcome, stdout, debug=debug))


def _work_in_a_child(job: Job, *, debug: bool, limits: Limits | None) -> int:
    """Do ``job`` in a forked child and return its exit status, 6 when the child ended without saying one.

    The parent forks before anything heavy or foreign is loaded, so that this costs a millisecond.
    """
    columns = _columns()

    def in_the_child(deliver: Callable[[bytes], None]) -> int:
        stderr = _alone()
        if columns:
            os.environ.setdefault("COLUMNS", str(columns))

        def send(outcome: _Outcome) -> int:
            outcome.said = "".join(stderr.unheard) + outcome.said
            deliver(outcome.packed())
            return outcome.status

        return _worked(job, debug=debug, deliver=send, to_terminal=columns > 0)

    try:
        answer = in_a_child(in_the_child, limits)
    except (ModelCrashError, KeyboardInterrupt) as error:
        return failure(error, debug=debug)
    status = _delivered(_Outcome.unpacked(answer.content), sys.stdout, debug=debug)
    if answer.remark:
        _print(f"fmilin: {answer.remark}\n")
    return status


def _worked(job: Job, *, debug: bool, deliver: Callable[[_Outcome], int], to_terminal: bool | None = None) -> int:
    """Do ``job`` here, have its outcome delivered, give back what was borrowed, and return the exit status."""
    results = _Results()
    results.is_terminal = bool(_columns()) if to_terminal is None else to_terminal
    runner = JobRunner(results, home=_working_directory())
    status, failed = 0, ""
    try:
        job(runner)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it becomes one paragraph and a status
        status, failed = _status_and_paragraph(error, debug=debug)
    with suppress(OSError):
        runner.restore_directory()
    status = deliver(_Outcome(status, results.getvalue(), runner._files, "".join(runner._said), failed))
    for thing in reversed(runner.borrowed):
        try:
            thing.close()
        except FmilinError as error:
            failure(error, debug=debug)
    return status


def _delivered(outcome: _Outcome, stdout: TextIO, *, debug: bool) -> int:
    """Write files and results, then say what there is to say; return the exit status."""
    try:
        write_all(outcome.files)
        stdout.write(outcome.text.encode(stdout.encoding or "utf-8", "replace").decode(stdout.encoding or "utf-8"))
        stdout.flush()
    except (FmilinError, OSError) as error:
        if isinstance(error, OSError):
            _silence(stdout)
        _print(outcome.failed)
        return failure(error, debug=debug)
    _print(outcome.said + outcome.failed)
    return outcome.status


def _print(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def failure(error: BaseException, *, debug: bool) -> int:
    """Print one paragraph about ``error`` on standard error and return the exit status that belongs to it."""
    status, paragraph = _status_and_paragraph(error, debug=debug)
    _print(paragraph)
    return status


def _status_and_paragraph(error: BaseException, *, debug: bool) -> tuple[int, str]:
    status, text = _status_and_text(error)
    traced = "".join(traceback.format_exception(error)) if debug else ""
    return status, traced + (f"fmilin: {' '.join(text.splitlines())}\n" if text else "")


def _status_and_text(error: BaseException) -> tuple[int, str]:
    match error:
        case FmilinError():
            return error.exit_status, str(error)
        case Terminated():
            return 128 + error.number, ""
        case KeyboardInterrupt():
            return 130, "interrupted."
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1, ""
        case BrokenPipeError():
            return 1, ""
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG | errno.EROFS):
            where = f"'{error.filename}'" if error.filename else "the results"
            return 2, (
                f"Cannot write {where}: {error.strerror}. Write to another place, or free this one; the environment "
                "variable TMPDIR names the folder for temporary files."
            )
        case MemoryError():
            return 1, "there is not enough memory for this model."
        case _:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return 1, f"{what}. This is a bug in fmilin: run again with --debug, and report what it prints."


def _columns() -> int:
    """Return how wide the terminal is that standard output goes to; 0 when it goes elsewhere."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 0


class _Stderr(io.TextIOBase):
    """Standard error on a descriptor that foreign code does not know; what does not get through is kept."""

    encoding = "utf-8"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.unheard: list[str] = []

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        rest = text.encode("utf-8", "replace")
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self.unheard.append(rest.decode("utf-8", "replace"))
        return len(text)


def _alone() -> _Stderr:
    """Keep no descriptor of the parent but standard error, which is what is printed to standard output, too."""
    try:
        inherited = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - the names are numbers
    except OSError:
        inherited = list(range(256))
    for descriptor in inherited:
        if descriptor > 2:
            with suppress(OSError):
                os.close(descriptor)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    stderr = _Stderr(high(os.dup(2)))
    sys.stdout = sys.stderr = stderr
    return stderr


def _silence(stream: TextIO) -> None:
    """Point ``stream`` to nowhere: nobody reads it, and the interpreter would complain at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _stdout_for_results() -> Iterator[TextIO]:
    """Yield a stream to the real standard output, while descriptor 1 (where C code prints) means standard error."""
    try:
        is_real = sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2
    except (OSError, ValueError, AttributeError):
        is_real = False
    if not is_real:
        yield sys.stdout  # a notebook, or a test that captures
        return
    sys.stdout.flush()
    real, python_stdout = os.dup(1), sys.stdout
    os.dup2(2, 1)
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
