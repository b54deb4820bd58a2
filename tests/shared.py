"""What is slow to build is built once in a run of the tests, whichever of pytest's workers needs it first."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["FOLDER", "new_folder", "shared"]

FOLDER = "FMILIN_TESTS_SHARED"
"""The environment variable by which the processes of a run know their folder."""


def new_folder() -> Path | None:
    """Make the folder of this run and return it; None where a process above has made it."""
    if FOLDER in os.environ:
        return None
    folder = Path(tempfile.mkdtemp(prefix="fmilin-tests-"))
    os.environ[FOLDER] = str(folder)
    return folder


def shared(name: str, make: Callable[[Path], object]) -> Path:
    """Return the file of this name that ``make(path)`` writes, written once; not to be changed.

    Parameters
    ----------
    name : str
        Of a file, which says all that its content depends on.
    make : callable
        Writes the file to the path that it is given, in a folder of its own.
    """
    if (folder := new_folder()) is not None:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(os.environ[FOLDER]) / name
    with _Lock(path.with_name(f".{name}.lock")):
        if not path.exists():
            own = Path(tempfile.mkdtemp(dir=path.parent))
            make(own / name)
            (own / name).replace(path)
    return path


class _Lock:
    """Held by one process at a time, and given back by one that dies; no lock where there is no flock()."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._file = self._path.open("w")
        try:
            import fcntl
        except ImportError:
            return
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def unmeasured() -> dict[str, str]:
    """Return the environment for a process whose coverage is not measured: its report would not fit a small disk."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}
