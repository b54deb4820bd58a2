"""A process between fmilin and what it starts: when either of the two ends, everything that was started ends.

It leads a session of its own, adopts orphans (on Linux), runs no foreign code and holds one end of a pipe whose other
end its maker holds. One that stands apart is process 1 of a world of its own, where the system allows that.
"""

import mmap
import os
import select
import signal
import struct
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, NoReturn

from fmilin.sandbox import kernel
from fmilin.sandbox.kernel import libc, prctl

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_REPORT = struct.Struct("<iiq")  # whether the worker ended by itself, its wait status, processes stopped after it
_GRACE = 0.05  # seconds in which what the work has started may end by itself
_GUARD_PATIENCE = 1.0  # seconds until a guard that has been told to end everything begins to say so
_PATIENCE = 10.0  # seconds until killed processes have gone, or are given up
_MOST_PROCESSES = 2000  # of a world apart, threads included


class Ending(NamedTuple):
    """How the work ended, ``status`` None when stopped, and how many processes it ``left`` running, stopped then."""

    status: int | None
    left: int


class Guard:
    """A forked process, ``pid``, that does ``work`` in a child of its own; all that this starts are its descendants.

    ``apart``: in a world of its own, where that is allowed.
    """

    _open: set[int] = set()  # noqa: RUF012 - descriptors of this process that no other guard may inherit

    def __init__(self, work: Callable[[], int], *, apart: bool = False) -> None:
        self._ending: Ending | None = None
        self._apart = mmap.mmap(-1, 1)  # whether it could be, said by the guard
        (held, self._alive), (self._report, report) = os.pipe(), os.pipe()
        Guard._open |= {self._alive, self._report}
        maker = os.getpid()
        libc()  # what it takes is there before the fork
        self.pid = 0
        try:
            # An interrupt between the fork and what the guard does about it would make it a second maker.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
            try:
                self.pid = fork()
                if self.pid == 0:
                    _guard(work, held, report, maker, self._apart if apart else None)
            finally:
                os.close(held)
                os.close(report)
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        except BaseException:
            if self.pid:
                self.stop()
            self._drop(self._alive, self._report)
            raise

    def fileno(self) -> int:
        """Return a descriptor that can be read as soon as everything has ended."""
        return self._report

    @property
    def processes(self) -> int:
        """How many of its descendants are no work: the guard proper, when it stands apart."""
        return self._apart[0]

    def wait(self) -> Ending:
        """Wait until everything has ended."""
        if self._ending is None:
            content = b""
            while len(content) < _REPORT.size and (part := os.read(self._report, _REPORT.size - len(content))):
                content += part
            with suppress(ChildProcessError):  # a process that ignores its children's ends has none to collect
                os.waitpid(self.pid, 0)
            self._drop(self._alive, self._report)
            # One that says nothing was killed by somebody; the kernel then ends the work.
            by_itself, status, left = _REPORT.unpack(content) if len(content) == _REPORT.size else (0, 0, 0)
            self._ending = Ending(status if by_itself else None, left)
        return self._ending

    def stop(self) -> Ending:
        """End everything now, if it has not ended; by force when the guard does not do it."""
        self._drop(self._alive)
        if self._ending is None and not select.select([self._report], [], [], _GUARD_PATIENCE)[0]:
            import psutil

            with suppress(psutil.Error):
                process = psutil.Process(self.pid)
                for one in (*process.children(recursive=True), process):
                    with suppress(psutil.Error):
                        one.kill()
        return self.wait()

    @staticmethod
    def _drop(*descriptors: int) -> None:
        for descriptor in descriptors:
            if descriptor in Guard._open:
                Guard._open.discard(descriptor)
                os.close(descriptor)


def fork() -> int:
    """Split this process in two, as ``os.fork`` does."""
    with warnings.catch_warnings():
        # Newer Pythons warn that threads of the parent (those of a linear algebra library) do not exist in the child.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _guard(work: Callable[[], int], held: int, report: int, maker: int, apart: mmap.mmap | None) -> NoReturn:
    """Do the work in one more process; end everything when it or the maker has ended."""
    try:
        while Guard._open:
            os.close(Guard._open.pop())
        os.setsid()
        for number in _ENDING:  # of the terminal, or meant for the maker
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if apart is not None and kernel.leave():
            apart[0] = 1
            _stand_apart(held, report)
        _set(_PR_SET_CHILD_SUBREAPER, 1)
        awake, alarm = os.pipe()
        os.set_blocking(alarm, False)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        guard = os.getpid()
        worker = fork()
        if worker == 0:
            signal.set_wakeup_fd(-1)
            for descriptor in (held, report, awake, alarm):
                os.close(descriptor)
            _work(work, guard)
        status = _watch(worker, held, awake) if os.getppid() in (maker, 0) else None  # 0: it is out of sight
        left = _end_all(worker, stopped=status is None)
        os.write(report, _REPORT.pack(status is not None, status or 0, left))
    finally:
        os._exit(0)


def _stand_apart(held: int, report: int) -> None:
    """Go on as process 1 of another world; the one that stays behind waits for its end."""
    inner = fork()
    if inner:
        os.close(held)
        os.close(report)
        os.waitpid(inner, 0)
        os._exit(0)
    _set(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    kernel.settle(_MOST_PROCESSES)


def _work(work: Callable[[], int], guard: int) -> NoReturn:
    status = 1
    try:
        os.setpgid(0, 0)
        for number in (*_ENDING, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        _set(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() == guard:
            status = work()
    finally:
        os._exit(status)


def _watch(worker: int, held: int, awake: int) -> int | None:
    """Return the worker's wait status when it has ended; None when the maker has let go."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)  # orphans, too
        if ended == worker:
            return status
        if ended:
            continue
        readable, _, _ = select.select([held, awake], [], [])
        if held in readable:
            return None
        os.read(awake, 4096)


def _end_all(worker: int, *, stopped: bool) -> int:
    """Kill everything that descends from this process; return how many were running that did not end by themselves."""
    until = time.monotonic() + _GRACE
    while not stopped and time.monotonic() < until:
        if _none_left():
            return 0
        time.sleep(0.002)
    killed: set[int] = set()
    with suppress(OSError):
        if stopped or not sys.platform.startswith("linux"):  # elsewhere orphans are out of sight, their group is not
            os.killpg(worker, signal.SIGKILL)
    until = time.monotonic() + _PATIENCE
    while not _none_left() and time.monotonic() < until:
        killed |= _kill_descendants()
        time.sleep(0.002)
    return len(killed - {worker})


def _kill_descendants() -> set[int]:
    """Kill what descends from this process, or lives in the world whose first process it is; return what ran."""
    if not kernel.proc_tells():
        if os.getpid() == 1:
            with suppress(OSError):
                os.kill(-1, signal.SIGKILL)
        return set()
    import psutil

    killed = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                killed.add(process.pid)
            process.kill()
    return killed


def _none_left() -> bool:
    """Collect the processes that have ended; return whether these were all."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _set(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            prctl(option, value)
