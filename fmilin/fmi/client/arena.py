"""The memory that fmilin and an FMU host share: arrays in which calls of the FMU read and write numbers in place.

The code of an FMU can write to all of it at any time. Nothing in it is trusted: numbers are only numbers.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import secrets
import sys
import tempfile
import weakref
from bisect import bisect_left
from collections import deque
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError
from fmilin.signals import FloatArray

T = TypeVar("T", bound=np.generic)

DEFAULT_SIZE = 1 << 28
"""Bytes of an arena. The system provides only those that are used."""

_ALIGNMENT = 64
_PROGRESS_BYTES = 24  # bytes at the beginning, before the last message: struct progress of protocol.h
_RESERVED_BYTES = 1024  # bytes of it


class Location(NamedTuple):
    """Where an operand lies in an arena: bytes from its beginning, elements, bytes from a repetition to the next."""

    offset: int
    size: int  # elements
    stride: int = 0


class Repeated:
    """An operand with a row for each repetition of a program: ``rows`` (k, n)."""

    def __init__(self, rows: NDArray[np.generic]) -> None:
        self.rows = rows


class Arena:
    """Shared memory, and the arrays in it.

    >>> arena = Arena()
    >>> x = arena.zeros(3)
    >>> arena.locate(x).size
    3
    """

    def __init__(self, size: int = DEFAULT_SIZE) -> None:
        self.size = size
        self.name = ""  # of the memory, on Windows
        self.descriptor = -1  # of the memory, elsewhere
        if sys.platform == "win32":
            self.name = f"Local\\fmilin-{secrets.token_hex(16)}"
            self._memory = mmap.mmap(-1, size, tagname=self.name)
        else:
            self.descriptor = _create_shared_file(size)
            self._memory = mmap.mmap(self.descriptor, size)
            weakref.finalize(self, os.close, self.descriptor)
            _ARENAS.add(self)
        everything = np.frombuffer(self._memory, dtype=np.uint8)
        self._address: int = everything.__array_interface__["data"][0]
        self._free = [(_RESERVED_BYTES, size - _RESERVED_BYTES)]  # (offset, bytes), in order
        self._returned: deque[tuple[int, int]] = deque()  # by the garbage collector, which may come at any moment

    def empty(self, shape: int | tuple[int, ...], dtype: np.dtype[T]) -> NDArray[T]:
        """Return a new array; its memory is used again once neither it nor a view of it is in use.

        Raises
        ------
        ModelError
            When the arena is full.
        """
        count = int(np.prod(shape))
        size = max(_ALIGNMENT, -(-count * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT)
        offset = self._take(size)
        array = np.frombuffer(self._memory, dtype=dtype, count=count, offset=offset)
        release = weakref.finalize(array, self._returned.append, (offset, size))
        release.atexit = False
        return array.reshape(shape)

    def zeros(self, *shape: int) -> FloatArray:
        """Return a new array of zeros."""
        return self.copy(np.zeros(shape))

    def copy(self, values: NDArray[T]) -> NDArray[T]:
        """Return a copy of an array."""
        array = self.empty(values.shape, values.dtype)
        array[...] = values
        return array

    def copy_bytes(self, content: bytes) -> NDArray[np.generic]:
        """Return the bytes as an array."""
        return self.copy(np.frombuffer(content, dtype=np.uint8))

    def locate(self, array: NDArray[np.generic] | Repeated) -> Location:
        """Return where an array lies; it must be contiguous, or a row for each repetition.

        Raises
        ------
        ValueError
            When it is not in this arena.
        """
        stride = 0
        values = array
        if isinstance(values, Repeated):
            stride = values.rows.strides[0]
            values = values.rows[0] if len(values.rows) else values.rows.reshape(-1)
        offset = int(values.__array_interface__["data"][0]) - self._address
        is_inside = 0 <= offset <= self.size - values.nbytes
        if not (is_inside and values.flags.c_contiguous and stride >= 0):
            raise ValueError("An operand must be a contiguous array of the arena.")
        return Location(offset, values.size, stride)

    def progress(self) -> tuple[int, int, bool]:
        """Return instruction and repetition that the host works on, and whether it is in a program."""
        instruction, repetition, running = np.frombuffer(self._memory, dtype=np.uint64, count=3).tolist()
        return instruction, repetition, running != 0

    def last_text(self) -> str:
        """Return the last message of the FMU in the present program."""
        text = bytes(self._memory[_PROGRESS_BYTES:_RESERVED_BYTES]).split(b"\0")[0]
        return text.decode("utf-8", "replace")

    def separate(self) -> None:
        """Put memory of this process, which has been forked, in the place of that which it shares with the other one.

        Arrays stay where they are, and have the values that they had.
        """
        if sys.platform == "win32":  # where no process is forked
            return
        descriptor = _create_shared_file(self.size)
        end = 0
        for offset, room in [*self._free, (self.size, 0)]:  # between free ranges lies what is in use
            os.pwrite(descriptor, memoryview(self._memory)[end:offset], end)
            end = offset + room
        system = ctypes.CDLL(None, use_errno=True)
        system.mmap.restype = ctypes.c_void_p
        system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_longlong]
        access = mmap.PROT_READ | mmap.PROT_WRITE
        placed = system.mmap(self._address, self.size, access, mmap.MAP_SHARED | _MAP_FIXED_FLAG, descriptor, 0)
        if placed != self._address:
            os._exit(1)  # the processes would write over each other's numbers
        os.dup2(descriptor, self.descriptor, inheritable=False)
        os.close(descriptor)

    def _take(self, size: int) -> int:
        while self._returned:
            self._give_back(*self._returned.popleft())
        for i, (offset, room) in enumerate(self._free):
            if room >= size:
                if room == size:
                    del self._free[i]
                else:
                    self._free[i] = (offset + size, room - size)
                return offset
        raise ModelError(
            f"An array of {size:,} bytes exceeds the {self.size:,} bytes that are shared with the FMU. Evaluate fewer "
            "points at a time."
        )

    def _give_back(self, offset: int, size: int) -> None:
        i = bisect_left(self._free, (offset, size))
        if i < len(self._free) and offset + size == self._free[i][0]:
            size += self._free.pop(i)[1]
        if i and sum(self._free[i - 1]) == offset:
            offset, before = self._free.pop(i - 1)
            size += before
            i -= 1
        self._free.insert(i, (offset, size))


_ARENAS: weakref.WeakSet[Arena] = weakref.WeakSet()
_MAP_FIXED_FLAG = 0x10  # of Linux, macOS and the BSDs


def _separate_all() -> None:
    for arena in list(_ARENAS):
        arena.separate()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_separate_all)


def _create_shared_file(size: int) -> int:
    """Return the descriptor of a file without a name.

    On Linux its size is sealed: reading beyond a truncated end would end this process.
    """
    if sys.platform != "linux" or not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile() as file:
            file.truncate(size)
            return os.dup(file.fileno())
    import fcntl

    descriptor = os.memfd_create("fmilin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor
