"""What passes between a process in which foreign code runs and the one that watches: what runs, and answers.

Foreign code that forks returns twice; the copy ends where the call ends, or everything would be done again. Answers
come through a pipe that has no descriptor while that code runs; each begins with a word that only the two processes
know, its length and a checksum: what else is written is noticed.
"""

import ctypes
import mmap
import os
import struct
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

_NAME, _LINE = 256, 700  # bytes of a function's name, and of a line
_NAMES, _LINES = 64, 4  # different functions, which stand once in a table: each call writes a number instead of a text


class _Page(ctypes.Structure):
    _fields_ = (
        ("since", ctypes.c_double),  # when the function that runs was called; 0 when none runs
        ("code", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("names", ctypes.c_char * _NAME * _NAMES),
        ("lines", ctypes.c_char * _LINE * _LINES),
        ("owner", ctypes.c_char * _NAME),
        ("again", ctypes.c_bool),
    )


class Note:
    """A page of memory that is shared with the processes forked after it was made."""

    def __init__(self) -> None:
        self._page = _Page.from_buffer(mmap.mmap(-1, ctypes.sizeof(_Page)))
        self._codes: dict[str, int] = {}

    def write(self, text: str) -> None:
        """Say that the function ``text`` runs from now on."""
        self._page.code = self._codes.get(text) or self._registered(text)
        self._page.since = monotonic()

    def done(self) -> None:
        """Say that it has returned."""
        self._page.since = 0.0

    def read(self) -> str:
        """Return the function that was called last, empty when none was."""
        function, owner = _text(self._page.names[self._page.code % _NAMES].value), _text(self._page.owner)
        return f"{function} of {owner}" if function and owner else function

    def belong_to(self, owner: str) -> None:
        """Say whose functions run from now on: one of several models."""
        self._page.owner = _line(owner, _NAME)

    @property
    def another_instance(self) -> bool:
        """Whether one instance of the code was given up for another one meanwhile."""
        return bool(self._page.again)

    @another_instance.setter
    def another_instance(self, value: bool) -> None:
        self._page.again = value

    @property
    def seconds(self) -> float | None:
        """How long the function has been running; None when it has returned."""
        since: float = self._page.since
        return monotonic() - since if since else None

    def say(self, text: str) -> None:
        """Keep a line of what the model says, in the place of the oldest one."""
        self._page.lines[self._page.count % _LINES].value = _line(text, _LINE)
        self._page.count += 1

    def last_lines(self) -> list[str]:
        """Return what the model said last, the oldest line first."""
        count: int = self._page.count
        return [_text(self._page.lines[i % _LINES].value) for i in range(max(0, count - _LINES), count)]

    def _registered(self, text: str) -> int:
        """Write a name into the table and return its number; the last place is shared by all that find no other."""
        code = min(len(self._codes) + 1, _NAMES - 1)  # 0 is nobody's
        if code < _NAMES - 1:
            self._codes[text] = code
        self._page.names[code].value = _line(text, _NAME)
        return code


def _line(text: str, size: int) -> bytes:
    return text.encode("utf-8", "replace")[: size - 1]


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


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


_WORD = 32
_HEADER = struct.Struct(f"<{_WORD}sQI")  # the word, the length, the checksum
_HIGH = 200  # descriptors below are reused by what opens and closes them carelessly


def high(descriptor: int) -> int:
    """Return the same file under a high number, and close ``descriptor``; itself where there is no room above."""
    import fcntl

    try:
        moved: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except OSError:
        return descriptor
    os.close(descriptor)
    return moved


class ChannelError(Exception):
    """What came through the channel is no answer."""


class NamedPipe:
    """A named pipe in ``folder``, which is private; one process makes and reads it, those forked from it send."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / os.urandom(16).hex()
        self._word = os.urandom(_WORD)
        os.mkfifo(self.path, 0o600)
        self._ends = [os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)]
        self._ends.append(os.open(self.path, os.O_WRONLY))  # there is always a writer: the pipe never ends
        self._received = bytearray()

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._ends[0]

    def close(self) -> None:
        """Close the ends of this process."""
        while self._ends:
            os.close(self._ends.pop())

    def send(self, content: bytes) -> None:
        """Send an answer; waits until it has been read."""
        descriptor = high(os.open(self.path, os.O_WRONLY))
        try:
            rest = memoryview(_HEADER.pack(self._word, len(content), zlib.crc32(content)) + content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)

    def receive(self) -> bytes | None:
        """Take in what has come; return the answer when it is complete, else None."""
        while True:
            try:
                self._received += os.read(self._ends[0], 1 << 20)
            except BlockingIOError:
                break
        if not self._word.startswith(self._received[:_WORD]):
            raise ChannelError
        if len(self._received) < _HEADER.size:
            return None
        _, length, checksum = _HEADER.unpack_from(self._received)
        if len(self._received) < _HEADER.size + length:
            return None
        content = bytes(self._received[_HEADER.size :])
        if len(content) > length or zlib.crc32(content) != checksum:
            raise ChannelError
        return content


def close_all_but(kept: Collection[int] = ()) -> None:
    """Close all descriptors but the standard streams and ``kept``."""
    for descriptor in open_descriptors():
        if descriptor not in kept:
            with suppress(OSError):
                os.close(descriptor)


def open_descriptors() -> list[int]:
    """Return the descriptors that are or may be open, without the standard streams."""
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - the names are numbers
    except OSError:
        numbers = list(range(256))
    return [number for number in numbers if number > 2]


def read_nothing() -> None:
    """Let standard input be empty."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    if nothing:
        os.dup2(nothing, 0)
        os.close(nothing)
