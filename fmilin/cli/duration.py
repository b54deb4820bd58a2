"""How long a command may take (``--deadline SECONDS``), and what it says meanwhile where a person is watching."""

import atexit
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread, main_thread
from types import FrameType
from typing import NoReturn

import click

from fmilin.cli.streams import display_stream, escape_standard_error
from fmilin.errors import ModelCrashError, escape_controls

MAX_DEADLINE_SECONDS = 1e8  # seconds; timers of the operating system end at the range of their numbers
GRACE_SECONDS = 1.5  # seconds for cleaning up behind the deadline, before everything is ended by force
_FORWARDED = (signal.SIGINT, signal.SIGTERM)
_DOING = {
    "fmilin.loading": "reading the model",
    "fmilin.fmi.read": "using the FMU",
    "fmilin.fmi.client": "using the FMU",
    "fmilin.composition": "putting the system together",
    "fmilin.models": "evaluating the equations",
    "fmilin.adapters": "reading the model",
    "fmilin.codegen": "compiling",
    "fmilin.trimming": "finding the point",
    "fmilin.linearization": "linearizing",
    "fmilin.manifold": "linearizing",
    "fmilin.families": "computing the points",
    "fmilin.discovery": "finding constraints",
    "fmilin.simulation": "simulating",
    "fmilin.periodic": "simulating",
    "fmilin.verification": "simulating",
    "fmilin.systems": "evaluating the equations",
    "fmilin.formulations": "evaluating the equations",
    "fmilin.identification": "linearizing",
    "fmilin.wrapping": "reading the model",
    "fmilin.design": "designing",
    "fmilin.export": "writing the results",
    "fmilin.report": "writing the results",
    "fmilin.explore": "writing the results",
}
"""A description of each module's task; a message names that of the innermost module on the stack."""


class DeadlinePassed(KeyboardInterrupt):
    """The time of the whole command is over; like an interrupt, nothing but the end of the program handles it."""

    exit_status = ModelCrashError.exit_status


def deadline_option() -> click.Option:
    """Return ``--deadline SECONDS``, which :func:`main` has searched for before anything is read."""

    def positive(_: click.Context, __: click.Parameter, seconds: float | None) -> None:
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise click.UsageError(f"--deadline {seconds:g}: give a positive number of seconds.")

    text = "Time limit for the whole command in seconds; exit status 6 when it is reached."
    return click.Option(["--deadline"], metavar="S", type=float, expose_value=False, callback=positive, help=text)


def read_deadline(arguments: Sequence[str]) -> float | None:
    """Return the seconds on a command line; None without any, or where the command line is wrong."""
    for i, text in enumerate(arguments):
        name, equals, value = text.partition("=")
        if name == "--deadline":
            with suppress(ValueError, IndexError):
                seconds = float(value if equals else arguments[i + 1])
                return min(seconds, MAX_DEADLINE_SECONDS) if math.isfinite(seconds) and seconds > 0 else None
    return None


def within(seconds: float | None, run: Callable[[], int]) -> int:
    """Return the exit status of ``run``, in a process of its own that ends at the deadline whatever it is doing."""
    if seconds is None or not hasattr(os, "fork"):
        return run()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)  # an interrupt meanwhile reaches one that can handle it
    worker = os.fork()
    if not worker:
        _be_the_worker(seconds, run)

    def forward(number: int, _: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(worker, number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    try:
        return _status(worker, seconds)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _be_the_worker(seconds: float, run: Callable[[], int]) -> NoReturn:
    """Do the work in a group of processes of its own, and end."""
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    atexit._clear()  # what this process has still to do at its end is done by the one that it was split from

    def raise_deadline(_: int, frame: FrameType | None) -> None:
        raise DeadlinePassed(_over(seconds, describe_stack(frame)))

    signal.signal(signal.SIGALRM, raise_deadline)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    status = 1
    try:
        status = run()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(status)


def _status(worker: int, seconds: float) -> int:
    """Return how the worker ended; its whole group is ended when it does not keep to the deadline."""
    end, pause = time.monotonic() + seconds + GRACE_SECONDS, 1e-3
    while True:
        ended, status = os.waitpid(worker, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if time.monotonic() > end:
            with suppress(ProcessLookupError):
                os.killpg(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
            with suppress(OSError):
                sys.stderr.write(f"fmilin: {_over(seconds, 'code that cannot be interrupted was running')}\n")
            return DeadlinePassed.exit_status
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def _over(seconds: float, doing: str) -> str:
    return f"the deadline of {seconds:g} s passed while {doing}. Give more time with --deadline, or reduce the request."


def describe_stack(frame: FrameType | None) -> str:
    """Return what a stack is busy with, in words."""
    return next(stages(frame), "the command was being read")


def stages(frame: FrameType | None) -> Iterator[str]:
    """Yield what the functions of a stack are busy with, the innermost first."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        yield from (words for room, words in _DOING.items() if name == room or name.startswith(f"{room}."))
        frame = frame.f_back


def how_far(frame: FrameType | None) -> str:
    """Return how far Newton's method (", residual 2.1e-05") or experiments on a stack are; "" without either."""
    while frame is not None:
        iteration = frame.f_locals.get("self") if frame.f_code.co_qualname == "_Iteration.run" else None
        if iteration is not None and iteration.r.size:
            return f", residual {abs(iteration.r).max():.1e}"
        experiments = frame.f_locals.get("experiments") if frame.f_code.co_qualname == "identify" else None
        if experiments is not None:
            return f", about {experiments.to_go:.0f} s to go"
        frame = frame.f_back
    return ""


PATIENCE_SECONDS = 2.0  # seconds after which it is said how long something has been running
_interrupted = Event()  # set while a bar is shown: the elapsed time stands in it


@contextmanager
def show_elapsed_time(what: str, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Say how long the block has been running, once it has for longer than ``patience`` seconds and shows no bar."""
    if not sys.stderr.isatty():
        yield
        return
    clock = _Clock(what, patience)
    clock.start()
    try:
        yield
    finally:
        clock.stop()


class _Clock:
    """A thread that tells how long something has been running."""

    def __init__(self, what: str, patience: float) -> None:
        self._ended = Event()
        self._thread = Thread(target=_tell, args=(what, patience, time.monotonic(), self._ended), daemon=True)

    def start(self) -> None:
        """Tell it from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Tell it no more."""
        self._ended.set()
        self._thread.join(1.0)


def _tell(what: str, patience: float, start: float, ended: Event) -> None:
    is_displayed = False
    wait = max(0.0, start + patience - time.monotonic())
    while not ended.wait(wait):
        wait = min(0.5, patience)
        if not _interrupted.is_set():
            frame = sys._current_frames().get(main_thread().ident or 0)
            *_, stage = "", *stages(frame)  # the outermost one
            text = f"{time.monotonic() - start:.0f} s{stage and f', {stage}'}{how_far(frame)}"
            # Back to the first column: whatever is written next takes the place of this.
            display = display_stream()
            display.write(f"\r\x1b[K{what}: {text}\r")
            display.flush()
            is_displayed = True
    if is_displayed:
        display = display_stream()
        display.write("\x1b[K")
        display.flush()


@contextmanager
def progress_bar(what: str, start: float, stop: float, unit: str = "s") -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the progress between ``start`` and ``stop``; the remaining time is shown."""
    if not sys.stderr.isatty() or not stop > start:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    name = TextColumn("{task.description}", markup=False)  # of a model: neither a format nor markup
    columns = (name, BarColumn(), TextColumn(f"{{task.completed:.4g}} of {{task.total:.4g}} {unit}"))
    _interrupted.set()
    try:
        console = Console(file=display_stream())
        display = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        with display as progress, escape_standard_error():  # the display has taken the place of that one
            task = progress.add_task(escape_controls(what), total=stop - start)
            yield lambda t: progress.update(task, completed=t - start)
    finally:
        _interrupted.clear()
