"""Descriptors that a process has inherited and that foreign code in it must not find."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress

__all__ = ["close_all_but", "read_nothing"]


def close_all_but(kept: Collection[int] = ()) -> None:
    """Close all descriptors but the standard streams and ``kept``."""
    try:
        inherited = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - the names are numbers
    except OSError:
        inherited = list(range(256))
    for descriptor in inherited:
        if descriptor > 2 and descriptor not in kept:
            with suppress(OSError):
                os.close(descriptor)


def read_nothing() -> None:
    """Let standard input be empty."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    if nothing:
        os.dup2(nothing, 0)
        os.close(nothing)
