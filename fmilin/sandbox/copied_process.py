"""Work in a copy of this process, foreign code and its memory included, that ends with the work: nothing has happened.

A copy is a way to save and restore the state of code that can do neither, and that does not bear a second instance.
Threads are not copied. Where foreign code is watched, the copy writes the same note as this process.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from fmilin.errors import ModelCrashError
from fmilin.sandbox.guard import Ending
from fmilin.sandbox.isolation import how_it_ended

__all__ = ["in_a_copy"]

Result = TypeVar("Result")


def in_a_copy(work: Callable[[], Result]) -> Result:
    """Return the result of ``work``, done in a fork of this process.

    Raises
    ------
    ModelCrashError
        When the copy ends without a result.
    Exception
        What was raised in the copy.
    """
    read_end, write_end = os.pipe()
    copy = os.fork()
    if not copy:
        _be_the_copy(work, write_end)
    os.close(write_end)
    with open(read_end, "rb") as pipe:  # noqa: PTH123 - a descriptor
        content = pipe.read()
    _, status = os.waitpid(copy, 0)
    if not content:
        raise ModelCrashError(f"The model {how_it_ended(Ending(status, 0))} in a copy of the process.")
    fine, found = pickle.loads(content)  # noqa: S301 - written by our own copy
    if not fine:
        raise found
    result: Result = found
    return result


def _be_the_copy(work: Callable[[], Result], write_end: int) -> None:
    """Do the work, send what comes of it, and end at once: nothing that this process holds is given back twice."""
    with suppress(BaseException):
        try:
            outcome = pickle.dumps((True, work()))
        except BaseException as error:  # noqa: BLE001 - raised again in the process that was copied
            outcome = pickle.dumps((False, error))
        with open(write_end, "wb") as pipe:
            pipe.write(outcome)
    os._exit(0)
