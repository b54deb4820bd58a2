"""Which foreign function is running, for the process that finds out after a crash.

A crashed process cannot say what it was doing. The one that calls foreign code writes a line to
shared memory before each call; the parent of an isolated run reads it afterwards. Without a
parent that listens, :func:`note` does nothing.
"""

from __future__ import annotations

import mmap
from functools import lru_cache

__all__ = ["Note", "listen", "note"]

_SIZE = 256


class Note:
    """One line of text in memory that is shared with the processes forked after it was made."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _SIZE)

    def write(self, text: str) -> None:
        """Replace the line."""
        line = _line(text)
        self._page[: len(line)] = line

    def read(self) -> str:
        """Return the line, empty when nothing was noted."""
        return bytes(self._page[:_SIZE]).split(b"\0", 1)[0].decode("utf-8", "replace")


@lru_cache(maxsize=256)
def _line(text: str) -> bytes:
    return text.encode("utf-8", "replace")[: _SIZE - 1] + b"\0"


class _Listener:
    """The one note of this process, if any: a crash concerns the whole process, so this is process-wide."""

    note: Note | None = None


def listen() -> Note:
    """Make the note that :func:`note` writes to from now on, in this process and in those forked from it."""
    _Listener.note = Note()
    return _Listener.note


def note(text: str) -> None:
    """Say what is about to run, ``"fmi2GetDerivatives"``; cheap, and nothing at all when nobody listens."""
    if _Listener.note is not None:
        _Listener.note.write(text)
