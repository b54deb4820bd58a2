"""Work done in another process: a program, functions in a child that uses a model, or in a copy of this process.

A copy ends with the work, and nothing has happened: a way to save and restore the state of code that can do neither.
"""

from __future__ import annotations

import errno
import os
import pickle
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

from fmilin.errors import FmilinError, ModelCrashError, ModelError, UsageError
from fmilin.sandbox import cage, watchdog
from fmilin.sandbox.guard import Ending, Guard, fork
from fmilin.sandbox.isolation import can_isolate, how_it_ended, in_a_child
from fmilin.sandbox.limits import Limits
from fmilin.sandbox.watchdog import ChannelError, NamedPipe, open_descriptors
from fmilin.support.files import temporary_folder
from fmilin.support.kinds import kinds_checked

Result = TypeVar("Result")
Opened = TypeVar("Opened")


@kinds_checked
def isolated(opener: Callable[[], Opened], use: Callable[[Opened], Result], limits: Limits | None = None) -> Result:
    """Open a model in a child process, use it there, and return the result.

    The result is here before the model is closed: code that crashes while it is unloaded does no harm. From the moment
    at which an FMU's code is loaded, the child reaches neither files nor the environment, the network or other
    processes, as far as the system allows that (:func:`fmilin.sandbox_report`): what ``use`` needs of these is read
    before, or named in ``limits``. A loop over points goes on after a crash::

        for point in points:
            try:
                models.append(isolated(lambda: fl.load("m.fmu"), lambda model: fl.linearize(model, point)))
            except fl.ModelCrashError as error:
                models.append(error)

    Parameters
    ----------
    opener : callable
        Returns the model.
    use : callable
        Its result must be one that can be pickled.
    limits : Limits, optional
        Seconds for a single call of the model, bytes of memory, and what it may reach.

    Raises
    ------
    ModelCrashError
        When the model's code crashed, hung, ended the process or took too much memory.
    FmilinError
        What was raised in the child; other exceptions of the child are raised here, too.
    UsageError
        Where the system has no fork(), or the result cannot be sent.
    """
    if not can_isolate():
        raise UsageError("Work in a child process needs fork(), which this system does not have. Call it directly.")

    def work(deliver: Callable[[bytes], None]) -> int:
        cage.take_away(open_descriptors())
        os.dup2(2, 1)  # what C code prints must not mix with the caller's results
        opened: Any = None
        try:
            opened = opener()
            outcome = _packed(use(opened), fine=True)
        except BaseException as error:  # noqa: BLE001 - raised again in the parent
            outcome = _packed(error, fine=False)
        deliver(outcome)
        if opened is not None:
            opened.close()
        return 0

    result: Result = _unpacked(in_a_child(work, limits).content)
    return result


def _unpacked(outcome: bytes) -> Any:
    """Return what a function has returned in the other process, or raise what it has raised there."""
    fine, value = pickle.loads(outcome)  # noqa: S301 - written by our own child
    if not fine:
        raise value
    return value


def _packed(outcome: object, *, fine: bool) -> bytes:
    try:
        packed = pickle.dumps((fine, outcome))
        if not fine:
            pickle.loads(packed)  # noqa: S301 - an exception may be packed and yet not be made again
    except Exception as error:  # noqa: BLE001 - pickle raises all kinds
        if fine:
            return pickle.dumps((False, UsageError(f"The result cannot be sent to the parent process: {error}.")))
        kind = ModelError if isinstance(outcome, FmilinError) else RuntimeError
        return pickle.dumps((False, kind(str(outcome))))
    return packed


_ROUND = 0.02  # seconds between two checks whether the copy has ended


def in_a_copy(work: Callable[[], Result]) -> Result:
    """Return the result of ``work``, done in a fork of this process."""
    with temporary_folder() as folder:
        channel = NamedPipe(folder)
        try:
            copy = fork()
            if not copy:
                with suppress(BaseException):
                    own = os.getpid()
                    channel.close()
                    try:
                        outcome = _packed(work(), fine=True)
                    except BaseException as error:  # noqa: BLE001 - raised again in the process that was copied
                        outcome = _packed(error, fine=False)
                    watchdog.only_here(own)
                    channel.send(outcome)
                os._exit(0)  # at once: nothing that this process holds is given back twice
            result: Result = _unpacked(_content(copy, channel))
        finally:
            channel.close()
    return result


def _content(copy: int, channel: NamedPipe) -> bytes:
    """Return what the copy sends, when it has ended; what it has started may live on."""
    status = None
    try:
        while True:
            select.select([channel], [], [], _ROUND)
            status = _status(copy, os.WNOHANG)
            content = channel.receive()
            if content is not None:
                break
            if status is not None:
                raise ModelCrashError(  # noqa: TRY301 - all errors end the copy
                    f"The model {how_it_ended(Ending(status, 0))} in a copy of the process."
                )
    except BaseException as error:
        if status is None:
            with suppress(ProcessLookupError):
                os.kill(copy, signal.SIGKILL)
            _status(copy)
        if isinstance(error, ChannelError):
            raise ModelCrashError("The model wrote among the results of fmilin, in a copy of the process.") from None
        raise
    if status is None:
        _status(copy)
    return content


def _status(copy: int, options: int = 0) -> int | None:
    """Return how the copy ended; None when it has not."""
    try:
        ended, status = os.waitpid(copy, options)
    except ChildProcessError:  # a process that ignores its children's ends has none to collect
        return 0
    return status if ended else None


_NOT_STARTED = 127


def run_program(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None, seconds: float | None = None
) -> tuple[int, str]:
    """Run a program in a folder; return its exit status (negative: that of a signal) and what it printed."""
    variables = dict(os.environ if environment is None else environment)
    if not can_isolate():
        try:
            done = subprocess.run(  # noqa: S603 - the user's program, no shell
                command,
                cwd=folder,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        return done.returncode, done.stdout.decode("utf-8", "replace")
    program = shutil.which(command[0], path=variables.get("PATH"))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    with tempfile.TemporaryFile() as printed:
        guard = Guard(lambda: _become(str(Path(program).absolute()), command, folder, variables, printed))
        try:
            select.select([guard], [], [], seconds)
        finally:
            ending = guard.stop()
        printed.seek(0)
        text = printed.read().decode("utf-8", "replace")
    if ending.status is None:
        raise TimeoutError
    status = os.waitstatus_to_exitcode(ending.status)
    if status == _NOT_STARTED and text.startswith("errno "):
        number = int(text.split()[1])
        raise OSError(number, os.strerror(number))
    return status, text


def _become(
    program: str, command: Sequence[str], folder: Path, environment: Mapping[str, str], printed: IO[bytes]
) -> NoReturn:
    """Replace this process by the program; its streams are closed to all else when it begins."""
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for stream in (1, 2):
            os.dup2(printed.fileno(), stream)
        os.chdir(folder)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        os.execve(program, list(command), environment)  # noqa: S606 - as above
    except OSError as error:
        os.write(printed.fileno(), f"errno {error.errno}".encode())
        os._exit(_NOT_STARTED)
