"""``fl.isolated``: what is not needed any more, since the code of every FMU runs in a process of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from fmilin.errors import ModelCrashError
from fmilin.fmi.client.restrictions import Limits, apply_limits
from fmilin.support.kinds import kinds_checked


class _Closable(Protocol):
    def close(self) -> None:
        """Give back what it holds."""


Opened = TypeVar("Opened", bound=_Closable)
Result = TypeVar("Result")


@kinds_checked
def isolated(opener: Callable[[], Opened], use: Callable[[Opened], Result], limits: Limits | None = None) -> Result:
    """Return ``use(opener())``, and close what was opened.

    .. deprecated:: 0.3
        The code of every FMU runs in a process of its own, under ``limits`` of :func:`fmilin.load`: a crash is a
        ``ModelCrashError`` there, too. Call the functions directly.

    Parameters
    ----------
    opener : callable
        Returns the model.
    use : callable
        Is called with it.
    limits : Limits, optional
        As of :func:`fmilin.load`, for the FMUs that ``opener`` loads.

    Raises
    ------
    ModelCrashError
        When the code of the FMU crashed or hung; not while it is unloaded, when the result is there.
    """
    warnings.warn(
        "fl.isolated() is no longer needed: the code of every FMU runs in a process of its own. Call fl.load(), with "
        "limits=fl.Limits(...) if necessary, and use the model.",
        DeprecationWarning,
        stacklevel=3,
    )
    with apply_limits(limits):
        opened = opener()
    try:
        return use(opened)
    finally:
        with suppress(ModelCrashError):
            opened.close()
