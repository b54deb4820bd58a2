"""The way of an answer from a process in which foreign code runs: a pipe that has no descriptor while that code runs.

An answer begins with a word that only the two processes know, its length and a checksum: what else is written is
noticed.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

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


class Channel:
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
