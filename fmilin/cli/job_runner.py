"""Where a command does its work: it collects texts and files, all of which are delivered at once when it has ended.

The code of FMUs runs in processes of its own, and reaches none of them.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar

import click

from fmilin.cli.duration import DeadlinePassed, show_elapsed_time
from fmilin.cli.streams import ResultStream, collect_printed_lines, columns, silence, stdout_for_results
from fmilin.errors import FmilinError, ModelCrashError
from fmilin.fmi.client.restrictions import Limits, apply_limits
from fmilin.support.dataclass import dataclass
from fmilin.support.encodings import replace_unencodable
from fmilin.support.files import remove_leftovers, temporary_place, write_all
from fmilin.support.interrupts import get_requested_signal, requests_raise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.diagnostics import Remark


class ClosableResource(Protocol):
    """A resource that a job borrows."""

    def close(self) -> None:
        """Give back."""


Borrowed = TypeVar("Borrowed", bound=ClosableResource)


@dataclass
class JobRunner:
    """The results of a job and the resources that it borrows."""

    results: ResultStream  # what is written here goes to standard output when the job has ended
    borrowed: list[ClosableResource] = field(default_factory=list)  # what is closed at the end
    home: Path | None = None  # the working directory at the beginning
    _files: dict[Path, bytes] = field(default_factory=dict)
    _messages: list[str] = field(default_factory=list)

    def borrow(self, thing: Borrowed) -> Borrowed:
        """Close ``thing`` when everything has been delivered: its code may crash while it is unloaded."""
        self.borrowed.append(thing)
        return thing

    def restore_directory(self) -> None:
        """Return to where the command began, before files are read: a Python model may have left the directory."""
        if self.home is not None and _get_working_directory() != self.home:
            os.chdir(self.home)

    def write_files(self, contents: Mapping[Path, bytes]) -> None:
        """Write files when the job has ended; all are complete on the disk before the first replaces an old one."""
        self._files |= {path if self.home is None else self.home / path: contents[path] for path in contents}

    def say(self, text: str) -> None:
        """Say something on standard error when files and results have been written."""
        self._messages.append(text)

    def end_where_interrupted(self, remarks: Iterable[Remark]) -> None:
        """End with status 130 where the work that is delivered was interrupted."""
        for remark in remarks:
            if remark.kind == "interrupted":
                raise StoppedEarlyError(str(remark))

    def say_remarks(self, remarks: Iterable[Remark], where: str = "") -> None:
        """Say warnings and notes there, one by one; that something was interrupted is said at the very end."""
        from fmilin.cli.translation import in_options

        for remark in remarks:
            if remark.kind != "interrupted":
                self.say(f"{remark.heading}: {where}{in_options(str(remark))}\n")

    def draw(self, path: Path, figure: Figure, what: str) -> None:
        """Write a figure as a picture in the format of the suffix, and say what it shows."""
        from fmilin.report.figures import encode_picture

        self.write_files({path: encode_picture(figure, path)})
        self.say(f"{path}: {what}\n")

    def print_json(self, document: Mapping[str, Any]) -> None:
        """Print a document on standard output."""
        from fmilin.export.strict_json import format_document

        self.results.write(format_document(document))

    def print_shown(self, show: Callable[..., None], *things: object, **options: Any) -> None:
        """Print on standard output what a function of :mod:`fmilin.report` shows on a console."""
        from fmilin.cli.translation import in_options
        from fmilin.report.terminal import print_to_stream

        print_to_stream(self.results.styled, show, *things, wording=in_options, **options)


class StoppedEarlyError(FmilinError):
    """A person has asked for the end, and what there was is delivered."""

    exit_status = 130


def _get_working_directory() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was removed meanwhile
        return None


Job = Callable[[JobRunner], None]


@dataclass
class _JobOutcome:
    """The outcome of a job: the exit status, texts for both streams, files, and the reason of a failure."""

    status: int
    text: str
    files: dict[Path, bytes]
    messages: str
    failed: str


def work(job: Job, *, debug: bool, limits: Limits | None = None) -> int:
    """Do ``job`` and return the exit status; what FMUs print follows on standard error, at the end."""
    from fmilin.cli.translation import log_in_options

    width = columns()
    try:
        with requests_raise(), log_in_options(), apply_limits(limits), collect_printed_lines():
            with suppress(OSError):
                remove_leftovers(temporary_place())
            with stdout_for_results() as stdout:
                return _do(job, width, stdout, debug=debug)
    except KeyboardInterrupt as error:  # outside the job and its delivery
        return failure(error, debug=debug)


def _do(job: Job, width: int, stdout: TextIO, *, debug: bool) -> int:
    """Do ``job``, deliver its outcome, give back what was borrowed; ``width`` is 0 for a file or a pipe."""
    results = ResultStream(to_terminal=width > 0)
    runner = JobRunner(results, home=_get_working_directory())
    status, failed = 0, ""
    try:
        context = click.get_current_context(silent=True)
        with show_elapsed_time("fmilin" if context is None else context.command_path):
            job(runner)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it becomes one paragraph and a status
        status, failed = _status_and_paragraph(error, debug=debug)
        if isinstance(error, KeyboardInterrupt):  # no process waits for results any more
            results = ResultStream()
            runner = JobRunner(results, runner.borrowed, runner.home)
    with suppress(OSError):
        runner.restore_directory()
    outcome = _JobOutcome(status, results.getvalue(), runner._files, "".join(runner._messages), failed)
    status = _deliver(outcome, stdout, debug=debug)
    _give_back(runner.borrowed, debug=debug)
    return status


def _give_back(borrowed: Iterable[ClosableResource], *, debug: bool) -> None:
    """Close what a job has borrowed, now that the results are out; say so where that goes wrong."""
    for thing in reversed(list(borrowed)):
        try:
            thing.close()
        except ModelCrashError as error:
            error.args = (f"{error} The result files are complete.",)
            failure(error, debug=debug)
        except FmilinError as error:
            failure(error, debug=debug)


def _deliver(outcome: _JobOutcome, stdout: TextIO, *, debug: bool) -> int:
    """Write files and results, then say what there is to say; return the exit status."""
    try:
        if get_requested_signal():  # and other code has caught it
            raise KeyboardInterrupt  # noqa: TRY301
        write_all(outcome.files)
        stdout.write(replace_unencodable(outcome.text, stdout.encoding))
        stdout.flush()
    except (FmilinError, OSError, KeyboardInterrupt) as error:
        if isinstance(error, OSError):
            silence(stdout)
        _print("" if get_requested_signal() else outcome.failed)
        return failure(error, debug=debug)
    _print(outcome.messages + outcome.failed)
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
    if number := get_requested_signal():  # whatever a library has made of it
        return 128 + number, "interrupted." if number == signal.SIGINT else ""
    match error:
        case FmilinError():
            from fmilin.cli.translation import in_options

            return error.exit_status, " ".join([in_options(str(error)), *getattr(error, "__notes__", ())])
        case DeadlinePassed():
            return error.exit_status, str(error)
        case KeyboardInterrupt():
            return 130, "interrupted."
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1, ""
        case BrokenPipeError():
            return 1, ""
        case OSError():
            return _explain_system_error(error)
        case RecursionError():
            return 3, "the model is nested too deeply to be read or evaluated; --debug shows where."
        case MemoryError():
            return 1, "there is not enough memory for this model."
        case _:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return 1, f"{what}. This is a bug in fmilin: run again with --debug, and report what it prints."


def _explain_system_error(error: OSError) -> tuple[int, str]:
    match error:
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG | errno.EROFS):
            where = f"'{error.filename}'" if error.filename else "the results"
            return 2, (
                f"Cannot write {where}: {error.strerror}. Write to another path, or free disk space there; the "
                "environment variable TMPDIR names the folder for temporary files."
            )
        case FileNotFoundError(strerror=str(why)) if why.startswith("No usable temporary directory"):
            return 2, f"{why}: files cannot be written there. Free one of them, or let TMPDIR name another."
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            return 1, "this process may not open as many files as it needs. Raise the limit (ulimit -n)."
        case FileNotFoundError(filename=None):
            return 2, "the working directory has been removed. Change to one that exists."
        case _:
            where = f"'{error.filename}': " if error.filename else ""
            return 1, (
                f"{where}{error.strerror or error}. The operating system rejected a file or a process; --debug shows "
                "where."
            )
