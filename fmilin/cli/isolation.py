"""The whole job in a child process: an FMU that crashes, exits or prints garbage harms nobody.

The parent forks before anything heavy or foreign is loaded, so that this costs a millisecond. The child
says through a pipe which exit status its work has; a child that ends without having said so was
ended by the model's code.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from fmilin import running
from fmilin.cli.desk import Job, failure, work_in_this_process
from fmilin.errors import ModelCrashError

__all__ = ["work_in_a_child"]

UNLOADING_PATIENCE = 10.0
"""Seconds that a model may take to be unloaded after the results are out."""


def work_in_a_child(job: Job, *, debug: bool) -> int:
    """Do ``job`` in a forked child and return its exit status, 6 when the child ended without saying one."""
    note = running.listen()
    scratch = tempfile.mkdtemp(prefix="fmilin-")  # of the child, removed here even when the child cannot
    sys.stdout.flush()
    sys.stderr.flush()
    ears, mouth = os.pipe()
    try:
        with _termination() as terminable:
            child = os.fork()
            if child == 0:
                os.close(ears)
                _be_the_child(job, mouth, scratch, debug=debug)
            os.close(mouth)
            try:
                terminable()
                return _listen(child, ears, note, debug=debug)
            except BaseException:
                _kill(child)  # nothing of ours outlives this command, even when a person or a scheduler stops it
                raise
    finally:
        os.close(ears)
        shutil.rmtree(scratch, ignore_errors=True)


def _be_the_child(job: Job, mouth: int, scratch: str, *, debug: bool) -> NoReturn:
    """Do the job, say how it went, and end without the parent's clean-up."""
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        os.environ["TMPDIR"] = tempfile.tempdir = scratch

        def announce(status: int) -> None:
            os.write(mouth, bytes([status]))

        status = work_in_this_process(job, debug=debug, announce=announce)
        sys.stderr.flush()
    finally:
        os._exit(status)


def _listen(child: int, ears: int, note: running.Note, *, debug: bool) -> int:
    """Wait for the child's word and for its end."""
    said = _hear(child, ears)
    if said is None:
        _, ended = os.waitpid(child, 0)
        return failure(_crash(ended, note.read()), debug=debug)
    readable, _, _ = select.select([ears], [], [], UNLOADING_PATIENCE)
    if not readable:
        _remark(f"the model was not unloaded within {UNLOADING_PATIENCE:g} s and was stopped; the results are whole.")
        os.kill(child, signal.SIGKILL)
    _, ended = os.waitpid(child, 0)
    if readable and os.WIFSIGNALED(ended):
        _remark(f"the model crashed while it was unloaded ({_signal_name(ended)}); the results are whole.")
    return said


def _hear(child: int, ears: int) -> int | None:
    """Return the status that the child says, None when it ends without a word.

    The end of the pipe is not enough to know that: a process that the model started may hold it open.
    """
    while True:
        readable, _, _ = select.select([ears], [], [], 0.5)
        if readable:
            word = os.read(ears, 1)
            return word[0] if word else None
        state = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if state is not None and not select.select([ears], [], [], 0)[0]:
            return None


def _crash(ended: int, note: str) -> ModelCrashError:
    if os.WIFSIGNALED(ended):
        how = f"crashed ({_signal_name(ended)})"
        if os.WTERMSIG(ended) == signal.SIGKILL:
            how = "was killed (SIGKILL; the usual reason is that memory ran out)"
    else:
        how = f"ended the whole process by itself (exit status {os.waitstatus_to_exitcode(ended)})"
    where = f" in {note}" if note else ""
    return ModelCrashError(
        f"The model {how}{where}. Nothing was written. This is the FMU's own code, which ran in a separate process: "
        f"ask its maker, or export it again with another tool version, FMI version or solver."
    )


def _signal_name(ended: int) -> str:
    number = os.WTERMSIG(ended)
    try:
        return f"{signal.Signals(number).name}: {(signal.strsignal(number) or '').lower()}"
    except ValueError:
        return f"signal {number}"


def _remark(text: str) -> None:
    sys.stderr.write(f"fmilin: {text}\n")


def _kill(child: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def _termination() -> Iterator[Callable[[], None]]:
    """Hold SIGTERM back until the yielded function is called; from then on it raises SystemExit."""

    def stop(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = None
    with suppress(ValueError):  # not in the main thread
        before = signal.signal(signal.SIGTERM, stop)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield lambda: _restore(mask)
    finally:
        _restore(mask)
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _restore(mask: set[int] | set[signal.Signals]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
