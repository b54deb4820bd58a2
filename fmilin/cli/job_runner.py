"""Where a command does its work: it collects texts and files, and is closed and told of at the end.

All is delivered at once when the job has ended, by the process that the user has started, whichever process did it.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TextIO, TypeVar

import click

from fmilin.cli.duration import DeadlinePassed, elapsed_time
from fmilin.cli.options import NewFile
from fmilin.cli.streams import (
    ResultStream,
    columns,
    flush_c_streams,
    leave_parents_streams,
    silence,
    stdout_for_results,
)
from fmilin.errors import AnotherInstanceError, FmilinError, ModelCrashError, ModelError
from fmilin.formats import suffixes
from fmilin.sandbox.isolation import can_isolate, in_a_child
from fmilin.sandbox.limits import Limits
from fmilin.support.encodings import describe_printed, replace_unencodable
from fmilin.support.files import remove_leftovers, temporary_file, temporary_place, write_all
from fmilin.support.interrupts import requested, requests_raise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.diagnostics import Remark

INSTANCES = ("shared", "reloaded", "copied")
"""Where an FMU's instances live: the next is tried when its code does not bear the one before."""

ANOTHER_INSTANCE = -1  # the status of a child whose FMU refused another instance; never seen outside
_DRAWN = (*suffixes("picture", "motion picture"), ".html")
MOST_PRINTED = 20_000  # bytes of what foreign code prints that are shown


class Closable(Protocol):
    """What a job borrows."""

    def close(self) -> None:
        """Give back."""


Borrowed = TypeVar("Borrowed", bound=Closable)


@dataclass
class JobRunner:
    """What a job needs to deliver."""

    results: TextIO  # what is written here goes to standard output when the job has ended
    borrowed: list[Closable] = field(default_factory=list)  # what is closed at the end
    home: Path | None = None  # the working directory at the beginning
    # where the instances of an FMU's code live; see :class:`~fmilin.fmi.read.archive.FmuOptions`
    instances: str = "shared"
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
        from fmilin.export.strict_json import text_of

        self.results.write(text_of(document))

    def print_shown(self, show: Callable[..., None], *things: object, **options: Any) -> None:
        """Print on standard output what a function of :mod:`fmilin.report` shows on a console."""
        from fmilin.cli.translation import in_options
        from fmilin.report.terminal import print_on

        print_on(self.results, show, *things, wording=in_options, **options)


class StoppedEarlyError(FmilinError):
    """A person has asked for the end, and what there was is delivered."""

    exit_status = 130


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
        """Return it as text behind its length, and the files one after the other: whatever wrote it runs nothing."""
        sizes = [(str(path), len(content)) for path, content in self.files.items()]
        head = json.dumps((self.status, self.text, sizes, self.said, self.failed)).encode()
        return b"".join((len(head).to_bytes(8, "little"), head, *self.files.values()))

    @classmethod
    def unpacked(cls, content: bytes) -> _Outcome:
        begin = 8 + int.from_bytes(content[:8], "little")
        status, text, sizes, said, failed = json.loads(content[8:begin])
        files = {}
        for path, size in sizes:
            files[Path(path)] = content[begin : begin + size]
            begin += size
        return cls(status, text, files, said, failed)

    def check(self, named: Collection[Path] | None) -> None:
        """Refuse files that the user has not named: foreign code may have got hold of the process that wants them."""
        for path in self.files:
            if named is not None and not any(path.parent == n.parent and path.name.startswith(n.stem) for n in named):
                raise ModelError(
                    f"The child process wants to write '{path}', which no option names. Nothing was written."
                )


def work(job: Job, *, isolate: bool, debug: bool, limits: Limits | None = None) -> int:
    """Do ``job``, in a child process if ``isolate``, and return the exit status; foreign prints go to stderr, last."""
    from fmilin.cli.translation import log_in_options

    width = columns()
    try:
        with requests_raise(), log_in_options():
            with suppress(OSError):
                remove_leftovers(temporary_place())
            if isolate and can_isolate():
                with temporary_file() as printed:
                    try:
                        return _work_in_a_child(job, width, printed, debug=debug, limits=limits)
                    finally:
                        with suppress(OSError):
                            sys.stderr.flush()
                            size = printed.seek(0, os.SEEK_END)
                            printed.seek(0)
                            if size:
                                sys.stderr.write(f"{describe_printed(printed.read(MOST_PRINTED), size)}\n")
                                sys.stderr.flush()
            with stdout_for_results() as stdout:
                return _worked(job, width, lambda outcome: _delivered(outcome, stdout, debug=debug), debug=debug)
    except KeyboardInterrupt as error:  # outside the job and its delivery
        return failure(error, debug=debug)


def _work_in_a_child(job: Job, width: int, printed: IO[bytes], *, debug: bool, limits: Limits | None) -> int:
    """Do ``job`` in a child, forked before anything heavy is loaded; return its status, 6 when it ended without one."""
    read, written = _named_files()

    def in_the_child(deliver: Callable[[bytes], None], instances: str) -> int:
        stderr = leave_parents_streams(printed.fileno())
        if width:
            os.environ.setdefault("COLUMNS", str(width))
        if any(path.suffix.lower() in _DRAWN for path in written or ()):
            import matplotlib.font_manager  # noqa: F401 - it keeps a list of fonts at home, which is then out of reach

        def send(outcome: _Outcome) -> int:
            outcome.said = "".join(stderr.unheard) + outcome.said
            deliver(outcome.packed())
            return outcome.status

        try:
            return _worked(job, width, send, debug=debug, instances=instances)
        finally:
            flush_c_streams()

    for instances in INSTANCES:
        last = instances == INSTANCES[-1]
        try:
            answer = in_a_child(partial(in_the_child, instances=instances), limits, read)
            outcome = _Outcome.unpacked(answer.content)
            outcome.check(written)
        except ModelCrashError as error:
            if last or not error.at_another_instance:
                return failure(error, debug=debug)
            continue
        except (KeyboardInterrupt, ModelError) as error:
            return failure(error, debug=debug)
        if last or outcome.status != ANOTHER_INSTANCE:
            break
    status = _delivered(outcome, sys.stdout, debug=debug)
    if answer.remark:
        _print(f"fmilin: {answer.remark}\n")
    return status


def _named_files() -> tuple[list[Path], list[Path] | None]:
    """Return the files that the command line names, absolute: to read, and to write; None where there is none."""
    read: list[Path] = []
    written: list[Path] = []
    context = click.get_current_context(silent=True)
    if context is None:
        return read, None
    for parameter in context.command.params:
        given = context.params.get(parameter.name or "")
        for value in given if isinstance(given, tuple | list) else [given]:
            if isinstance(parameter.type, NewFile):
                written += [Path(value).absolute()] if value is not None else []
            elif isinstance(value, str | Path) and os.path.isfile(value):  # noqa: PTH113 - any text may be given
                read.append(Path(value).absolute())
    return read, written


def _worked(
    job: Job, width: int, deliver: Callable[[_Outcome], int], *, debug: bool, instances: str | None = None
) -> int:
    """Do ``job`` here, have its outcome delivered, give back what was borrowed; ``width`` is 0 for a file or a pipe."""
    results = ResultStream(to_terminal=width > 0)
    runner = JobRunner(results, home=_working_directory(), instances=instances or INSTANCES[0])
    status, failed = 0, ""
    try:
        context = click.get_current_context(silent=True)
        with elapsed_time("fmilin" if context is None else context.command_path):
            job(runner)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it becomes one paragraph and a status
        status, failed = _status_and_paragraph(error, debug=debug)
        if isinstance(error, AnotherInstanceError) and instances in INSTANCES[:-1]:
            status = ANOTHER_INSTANCE
        if isinstance(error, KeyboardInterrupt):  # nobody waits for results any more
            results = ResultStream()
            runner = JobRunner(results, runner.borrowed, runner.home)
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
        if requested():  # and somebody has swallowed it
            raise KeyboardInterrupt  # noqa: TRY301
        write_all(outcome.files)
        stdout.write(replace_unencodable(outcome.text, stdout.encoding))
        stdout.flush()
    except (FmilinError, OSError, KeyboardInterrupt) as error:
        if isinstance(error, OSError):
            silence(stdout)
        _print("" if requested() else outcome.failed)
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
    if number := requested():  # whatever a library has made of it
        return 128 + number, "interrupted." if number == signal.SIGINT else ""
    match error:
        case FmilinError():
            from fmilin.cli.translation import in_options

            return error.exit_status, in_options(str(error))
        case DeadlinePassed():
            return error.exit_status, str(error)
        case KeyboardInterrupt():
            return 130, "interrupted."
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1, ""
        case BrokenPipeError():
            return 1, ""
        case OSError():
            return _refused_by_the_system(error)
        case RecursionError():
            return 3, "the model is nested too deeply to be read or evaluated; --debug shows where."
        case MemoryError():
            return 1, "there is not enough memory for this model."
        case _:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return 1, f"{what}. This is a bug in fmilin: run again with --debug, and report what it prints."


def _refused_by_the_system(error: OSError) -> tuple[int, str]:
    match error:
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG | errno.EROFS):
            where = f"'{error.filename}'" if error.filename else "the results"
            return 2, (
                f"Cannot write {where}: {error.strerror}. Write to another place, or free this one; the environment "
                "variable TMPDIR names the folder for temporary files."
            )
        case FileNotFoundError(strerror=str(why)) if why.startswith("No usable temporary directory"):
            return 2, f"{why}: files cannot be written there. Free one of them, or let TMPDIR name another."
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            return 1, "this process may not open as many files as it needs. Raise the limit (ulimit -n)."
        case FileNotFoundError(filename=None):
            return 2, "the working directory has been removed. Change to one that exists."
        case _:
            where = f"'{error.filename}': " if error.filename else ""
            return 1, f"{where}{error.strerror or error}. The system refused a file or a process; --debug shows where."
