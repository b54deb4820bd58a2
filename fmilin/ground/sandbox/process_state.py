"""What all threads of a process share and an FMU touches while it is loaded: one thread at a time.

These are the working directory, the locale and standard output. A relative path means what it meant before any thread
began to load: it is made absolute while no other is loading.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["absolute", "process_state"]


class _Held:
    lock = threading.RLock()


@contextmanager
def process_state() -> Iterator[None]:
    """Hold what the threads share until the end of the block; a thread may hold it several times."""
    with _Held.lock:
        yield


def absolute(path: str | Path) -> Path:
    """Return the absolute path, seen from the directory that the process is in when no thread is loading."""
    path = Path(path)
    if path.is_absolute():
        return path
    with _Held.lock:
        return path.absolute()


def _released() -> None:
    """In a forked child there is one thread, which may have been born while another one held the lock."""
    _Held.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_released)
