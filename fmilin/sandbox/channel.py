"""The way of an answer from a process in which foreign code runs: a pipe that has no descriptor while that code runs.

It lies under a random name in a private folder, and is opened when there is something to say. Each answer carries
its length and a digest made with a key that only the two processes know: what anything else writes is noticed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from pathlib import Path

__all__ = ["Channel", "ChannelError", "high"]

_KEY = 32
_LENGTH = struct.Struct("<Q")
_DIGEST = 32
_HEADER = _LENGTH.size + _DIGEST
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
    """A named pipe in ``folder``, which is private.

    Made and read by one process; processes forked from it send.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / os.urandom(16).hex()
        self._key = os.urandom(_KEY)
        os.mkfifo(self._path, 0o600)
        self._ends = [os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)]
        self._ends.append(os.open(self._path, os.O_WRONLY))  # there is always a writer: the pipe never ends
        self._heard = bytearray()

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._ends[0]

    def close(self) -> None:
        """Close the ends of this process."""
        while self._ends:
            os.close(self._ends.pop())

    def send(self, content: bytes) -> None:
        """Send an answer; waits until it has been read."""
        descriptor = high(os.open(self._path, os.O_WRONLY))
        try:
            rest = memoryview(_LENGTH.pack(len(content)) + self._digest(content) + content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)

    def receive(self) -> bytes | None:
        """Take in what has come; return the answer when it is complete, else None.

        Raises
        ------
        ChannelError
            When something else has come.
        """
        while True:
            try:
                self._heard += os.read(self._ends[0], 1 << 20)
            except BlockingIOError:
                break
        if len(self._heard) < _HEADER:
            return None
        (length,) = _LENGTH.unpack_from(self._heard)
        if len(self._heard) < _HEADER + length:
            return None
        content = bytes(self._heard[_HEADER:])
        if not hmac.compare_digest(self._digest(content), bytes(self._heard[_LENGTH.size : _HEADER])):
            raise ChannelError
        return content

    def _digest(self, content: bytes) -> bytes:
        digest = hashlib.blake2b(_LENGTH.pack(len(content)), key=self._key, digest_size=_DIGEST)
        digest.update(content)
        return digest.digest()
