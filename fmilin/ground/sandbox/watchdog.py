"""Which foreign function is running since when, and what the model said last, for the process that watches.

Foreign code that forks returns twice; the copy ends where the call ends, or everything would be done again.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

_SLOT = 700  # bytes of a line
_SLOTS = 4
_NAMES = 64  # different functions, which stand once in a table: each call writes a number instead of a text
_NAME = 256
_CLOCK, _CODE, _COUNT, _TABLE = 0, 8, 16, 24  # where each stands on the page
_FIRST = _TABLE + _NAMES * _NAME
_OWNER = _FIRST + _SLOTS * _SLOT
_AGAIN = _OWNER + _NAME  # one byte: whether another instance of the code is made, or takes the place of one
_SIZE = _AGAIN + 1


class Note:
    """A page of memory that is shared with the processes forked after it was made."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _SIZE)
        view = memoryview(self._page)
        self._since = view[_CLOCK:_CODE].cast("d")  # when the function that runs was called; 0 when none runs
        self._code = view[_CODE:_COUNT].cast("Q")
        self._count = view[_COUNT:_TABLE].cast("Q")
        self._codes: dict[str, int] = {}

    def write(self, text: str) -> None:
        """Say that the function ``text`` runs from now on."""
        self._code[0] = self._codes.get(text) or self._registered(text)
        self._since[0] = monotonic()

    def done(self) -> None:
        """Say that it has returned."""
        self._since[0] = 0.0

    def read(self) -> str:
        """Return the function that was called last, empty when none was."""
        begin = _TABLE + (self._code[0] % _NAMES) * _NAME
        function, owner = _text(self._page[begin : begin + _NAME]), _text(self._page[_OWNER:])
        return f"{function} of {owner}" if function and owner else function

    def belong_to(self, owner: str) -> None:
        """Say whose functions run from now on: one of several models."""
        line = _line(owner, _NAME)
        self._page[_OWNER : _OWNER + len(line)] = line

    @property
    def another_instance(self) -> bool:
        """Whether one instance of the code was given up for another one meanwhile."""
        return bool(self._page[_AGAIN])

    @another_instance.setter
    def another_instance(self, value: bool) -> None:
        self._page[_AGAIN] = value

    @property
    def seconds(self) -> float | None:
        """How long the function has been running; None when it has returned."""
        since = self._since[0]
        return monotonic() - since if since else None

    def say(self, text: str) -> None:
        """Keep a line of what the model says, in the place of the oldest one."""
        number = self._count[0]
        begin = _FIRST + (number % _SLOTS) * _SLOT
        line = _line(text, _SLOT)
        self._page[begin : begin + len(line)] = line
        self._count[0] = number + 1

    def last_lines(self) -> list[str]:
        """Return what the model said last, the oldest line first."""
        number = self._count[0]
        begins = [_FIRST + (i % _SLOTS) * _SLOT for i in range(max(0, number - _SLOTS), number)]
        return [_text(self._page[p : p + _SLOT]) for p in begins]

    def _registered(self, text: str) -> int:
        """Write a name into the table and return its number; the last place is shared by all that find no other."""
        code = min(len(self._codes) + 1, _NAMES - 1)  # 0 is nobody's
        if code < _NAMES - 1:
            self._codes[text] = code
        begin, line = _TABLE + code * _NAME, _line(text, _NAME)
        self._page[begin : begin + len(line)] = line
        return code


def _line(text: str, size: int) -> bytes:
    return text.encode("utf-8", "replace")[: size - 1] + b"\0"


def _text(line: bytes) -> str:
    return bytes(line).split(b"\0", 1)[0].decode("utf-8", "replace")


class _Listener:
    """The one note of this process, if any: a crash concerns the whole process, so this is process-wide."""

    note: Note | None = None


def write_to(note: Note) -> None:
    """Write this note from now on, in this process and in those forked from it."""
    _Listener.note = note


def listener() -> Note | None:
    """Return the note that is written at present; None when nobody listens. For who has many calls to note."""
    return _Listener.note


def note(text: str) -> None:
    """Say what is about to run, ``"fmi2GetDerivatives"``; cheap, and nothing at all when nobody listens."""
    if _Listener.note is not None:
        _Listener.note.write(text)


@contextmanager
def calling(text: str) -> Iterator[None]:
    """Say that foreign code, ``text``, runs until the end of the block: the time that follows is ours."""
    own = os.getpid()
    note(text)
    try:
        yield
    finally:
        only_here(own)
        if _Listener.note is not None:
            _Listener.note.done()


@contextmanager
def another_instance() -> Iterator[None]:
    """Say that one instance of foreign code is given up for another one: what crashes now may not bear two."""
    note = _Listener.note
    if note is None:
        yield
        return
    note.another_instance = True
    try:
        yield
    finally:  # which a crash does not reach
        note.another_instance = False


def only_here(own: int) -> None:
    """End this process silently when it is a copy that foreign code has made of the process ``own``."""
    if os.getpid() != own:
        os._exit(0)


def say(text: str) -> None:
    """Keep a line of what the model says for whoever finds the crash."""
    if _Listener.note is not None:
        _Listener.note.say(text)


def belong_to(owner: str) -> None:
    """Say whose functions run from now on, where several models are used at once; empty: nobody's in particular."""
    if _Listener.note is not None:
        _Listener.note.belong_to(owner)
