"""Which foreign function is running since when, and what the model said last, for the process that watches.

A crashed process cannot say what it was doing, and one that hangs does not. The one that calls foreign code
writes a line to shared memory before each call; the parent of an isolated run reads it, while the
function runs and afterwards. Without a parent that listens, :func:`note`, :func:`done` and :func:`say` do nothing.
"""

from __future__ import annotations

import mmap
from functools import lru_cache
from time import monotonic

__all__ = ["Note", "done", "listen", "note", "say"]

_CLOCK = 8  # bytes: when the function that runs was called; 0 when none runs
_LINE = 256
_COUNT = _CLOCK + _LINE  # where the number of lines said so far stands
_FIRST = _COUNT + 8
_SLOTS = 4
_SLOT = 700
_SIZE = _FIRST + _SLOTS * _SLOT


class Note:
    """A page of memory that is shared with the processes forked after it was made."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _SIZE)
        self._since = memoryview(self._page)[:_CLOCK].cast("d")
        self._said = memoryview(self._page)[_COUNT:_FIRST].cast("Q")

    def write(self, text: str) -> None:
        """Say that the function ``text`` runs from now on."""
        line = _line(text)
        self._page[_CLOCK : _CLOCK + len(line)] = line
        self._since[0] = monotonic()

    def done(self) -> None:
        """Say that it has returned."""
        self._since[0] = 0.0

    def read(self) -> str:
        """Return the function that was called last, empty when none was."""
        return _text(self._page[_CLOCK : _CLOCK + _LINE])

    @property
    def seconds(self) -> float | None:
        """How long the function has been running; None when it has returned."""
        since = self._since[0]
        return monotonic() - since if since else None

    def say(self, text: str) -> None:
        """Keep a line of what the model says, in the place of the oldest one."""
        number = self._said[0]
        begin = _FIRST + (number % _SLOTS) * _SLOT
        line = text.encode("utf-8", "replace")[: _SLOT - 1] + b"\0"
        self._page[begin : begin + len(line)] = line
        self._said[0] = number + 1

    def last_lines(self) -> list[str]:
        """Return what the model said last, the oldest line first."""
        number = self._said[0]
        places = [_FIRST + (i % _SLOTS) * _SLOT for i in range(max(0, number - _SLOTS), number)]
        return [_text(self._page[p : p + _SLOT]) for p in places]


def _text(line: bytes) -> str:
    return bytes(line).split(b"\0", 1)[0].decode("utf-8", "replace")


@lru_cache(maxsize=256)
def _line(text: str) -> bytes:
    return text.encode("utf-8", "replace")[: _LINE - 1] + b"\0"


class _Listener:
    """The one note of this process, if any: a crash concerns the whole process, so this is process-wide."""

    note: Note | None = None


def listen() -> Note:
    """Make the note that is written from now on, in this process and in those forked from it."""
    _Listener.note = Note()
    return _Listener.note


def note(text: str) -> None:
    """Say what is about to run, ``"fmi2GetDerivatives"``; cheap, and nothing at all when nobody listens."""
    if _Listener.note is not None:
        _Listener.note.write(text)


def done() -> None:
    """Say that it has returned: the time that follows is ours."""
    if _Listener.note is not None:
        _Listener.note.done()


def say(text: str) -> None:
    """Keep a line of what the model says for whoever finds the crash."""
    if _Listener.note is not None:
        _Listener.note.say(text)
