"""A model that is opened and used in a child process, from Python: for many points, of which some may crash."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Protocol, TypeVar

from fmilin.ground.errors import FmilinError, ModelError, UsageError
from fmilin.ground.sandbox.isolation import Limits, can_isolate, in_a_child

__all__ = ["isolated"]

Result = TypeVar("Result")


class Closable(Protocol):
    """What is opened."""

    def close(self) -> None:
        """Give back."""


Opened = TypeVar("Opened", bound=Closable)


def isolated(opener: Callable[[], Opened], use: Callable[[Opened], Result], limits: Limits | None = None) -> Result:
    """Open a model in a child process, use it there, and return the result.

    The result is here before the model is closed: code that crashes while it is unloaded does no harm. A loop over
    points goes on after a crash::

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
        Seconds for a single call of the model, and bytes of memory.

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
        os.dup2(2, 1)  # what C code prints must not mix with the caller's results
        opened: Opened | None = None
        try:
            opened = opener()
            outcome = _packed(use(opened), fine=True)
        except BaseException as error:  # noqa: BLE001 - raised again in the parent
            outcome = _packed(error, fine=False)
        deliver(outcome)
        if opened is not None:
            opened.close()
        return 0

    fine, found = pickle.loads(in_a_child(work, limits).content)  # noqa: S301 - written by our own child
    if not fine:
        raise found
    result: Result = found
    return result


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
