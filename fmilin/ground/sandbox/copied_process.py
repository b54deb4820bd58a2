"""Work in a copy of this process, foreign code and its memory included, that ends with the work: nothing has happened.

A copy is a way to save and restore the state of code that can do neither, and that does not bear a second instance.
Threads are not copied. Where foreign code is watched, the copy writes the same note as this process.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from fmilin.ground.errors import ModelCrashError
from fmilin.ground.sandbox import watchdog
from fmilin.ground.sandbox.channel import Channel, ChannelError
from fmilin.ground.sandbox.guard import Ending, fork
from fmilin.ground.sandbox.isolation import how_it_ended
from fmilin.ground.temporary import temporary_folder

__all__ = ["in_a_copy"]

_ROUND = 0.02  # seconds between two looks whether the copy has ended

Result = TypeVar("Result")


def in_a_copy(work: Callable[[], Result]) -> Result:
    """Return the result of ``work``, done in a fork of this process."""
    with temporary_folder() as folder:
        channel = Channel(folder)
        try:
            copy = fork()
            if not copy:
                _be_the_copy(work, channel)
            fine, found = pickle.loads(_content(copy, channel))  # noqa: S301 - written by our own copy
        finally:
            channel.close()
    if not fine:
        raise found
    result: Result = found
    return result


def _content(copy: int, channel: Channel) -> bytes:
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


def _be_the_copy(work: Callable[[], Result], channel: Channel) -> None:
    """Do the work, send what comes of it, and end at once: nothing that this process holds is given back twice."""
    with suppress(BaseException):
        own = os.getpid()
        channel.close()
        try:
            outcome = pickle.dumps((True, work()))
        except BaseException as error:  # noqa: BLE001 - raised again in the process that was copied
            outcome = pickle.dumps((False, error))
        watchdog.only_here(own)
        channel.send(outcome)
    os._exit(0)
