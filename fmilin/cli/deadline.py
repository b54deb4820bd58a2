"""``--deadline SECONDS``: for the whole command, reading, flattening, compiling and searching included."""

from __future__ import annotations

import atexit
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import click

from fmilin.ground.errors import ModelCrashError

GRACE = 1.5  # seconds for cleaning up behind the deadline, before everything is ended by force
_FORWARDED = (signal.SIGINT, signal.SIGTERM)
WAITING = "waiting for the model's process"
_DOING = {
    "fmilin.loading": "reading the model",
    "fmilin.fmi.read": "using the FMU",
    "fmilin.connected": "putting the system together",
    "fmilin.native": "evaluating the equations",
    "fmilin.adapters": "reading the model",
    "fmilin.numerics.codegen": "compiling",
    "fmilin.points": "looking for the point",
    "fmilin.linearization": "linearizing",
    "fmilin.manifold": "linearizing",
    "fmilin.families": "computing the points",
    "fmilin.discovery": "looking for constraints",
    "fmilin.motion": "simulating",
    "fmilin.design": "designing",
    "fmilin.output": "writing the results",
    "fmilin.ground.sandbox": WAITING,
}
"""What modules do, in words; the innermost one that is on the stack is told."""


class DeadlinePassed(KeyboardInterrupt):
    """The time of the whole command is over; like an interrupt, nothing but the end of the program handles it."""

    exit_status = ModelCrashError.exit_status


def deadline_option() -> click.Option:
    """Return ``--deadline SECONDS``, which :func:`main` has looked for before anything is read."""

    def positive(_: click.Context, __: click.Parameter, seconds: float | None) -> None:
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise click.UsageError(f"--deadline {seconds:g}: give seconds, more than 0.")

    return click.Option(
        ["--deadline"],
        metavar="S",
        type=float,
        expose_value=False,
        callback=positive,
        help="Seconds that the whole command may take; status 6 when they are over.",
    )


def deadline_in(arguments: Sequence[str]) -> float | None:
    """Return the seconds on a command line; None without any, or where the command line is wrong."""
    for i, text in enumerate(arguments):
        name, equals, value = text.partition("=")
        if name == "--deadline":
            with suppress(ValueError, IndexError):
                seconds = float(value if equals else arguments[i + 1])
                return seconds if math.isfinite(seconds) and seconds > 0 else None
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

    def passed(_: int, frame: FrameType | None) -> None:
        raise DeadlinePassed(_over(seconds, doing(frame)))

    signal.signal(signal.SIGALRM, passed)
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
    end, pause = time.monotonic() + seconds + GRACE, 1e-3
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
    return f"the deadline of {seconds:g} s passed while {doing}. Give more time with --deadline, or ask for less."


def doing(frame: FrameType | None) -> str:
    """Return what a stack is busy with, in words."""
    return next(stages(frame), "the command was being read")


def stages(frame: FrameType | None) -> Iterator[str]:
    """Yield what the functions of a stack are busy with, the innermost first."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        yield from (words for room, words in _DOING.items() if name == room or name.startswith(f"{room}."))
        frame = frame.f_back
