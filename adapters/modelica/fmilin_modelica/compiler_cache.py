"""The front end's cache of parsed libraries, in such a way that processes at the same time cannot spoil it.

Each process works on a folder of its own, which begins with links to the files of the shared one. The names of these
files are digests of their content. The files that a process has added go into the shared folder when it has ended in
order, each file at once and complete: nothing there is ever written to.
"""

# Path objects of thousands of files take longer than their links.
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["private_cache"]

KEPT_SUFFIX = ".bin"  # the front end's other files note when these were used
LARGEST_CACHE = 2 << 30  # bytes; beyond, the shared folder begins anew: the Standard Library takes 170 MB
OLDEST_RUN = 86400.0  # seconds after which the folder of a process counts as left behind


@contextlib.contextmanager
def private_cache(shared: Path) -> Iterator[Path]:
    """Give a folder for one run of the front end; after an orderly end its new files are added to ``shared``.

    Where ``shared`` cannot be made or written, the folder begins empty and is forgotten.
    """
    with contextlib.suppress(OSError):
        shared.mkdir(parents=True, exist_ok=True, mode=0o700)
    usable = os.access(shared, os.W_OK)
    run = Path(tempfile.mkdtemp(prefix="run-", dir=shared if usable else None))
    files = shared / "files"
    before: dict[str, tuple[int, int]] = {}
    try:
        if usable:
            _remove_old_runs(shared)
            before = _link_files(files, run)
        yield run
        if usable:
            _add_files(run, files, before)
    finally:
        shutil.rmtree(run, ignore_errors=True)


def _remove_old_runs(shared: Path) -> None:
    for folder in shared.glob("run-*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > OLDEST_RUN:
                shutil.rmtree(folder, ignore_errors=True)


def _link_files(source: Path, target: Path) -> dict[str, tuple[int, int]]:
    """Link all files of a folder into another; return time and size of each, by its relative path."""
    stamps = {}
    for folder, names in _list_folders(source):
        with contextlib.suppress(OSError):  # another process may just begin the folder anew
            (target / folder).mkdir(parents=True, exist_ok=True)
        for name in names:
            linked = os.path.join(target, folder, name)
            with contextlib.suppress(OSError):
                _link(os.path.join(source, folder, name), linked)
                stamps[os.path.join(folder, name)] = _stamp(linked)
    return stamps


def _list_folders(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the folders in a folder, relative to it, with the names of files that are shared."""
    for folder, _, names in os.walk(root):
        shared_names = [name for name in names if name.endswith(KEPT_SUFFIX)]
        if shared_names:
            yield os.path.relpath(folder, root), shared_names


def _link(path: str, target: str) -> None:
    try:
        os.link(path, target)
    except OSError:  # a file system without links
        shutil.copy2(path, target)


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


def _add_files(run: Path, files: Path, before: dict[str, tuple[int, int]]) -> None:
    """Move what is new into the shared folder.

    A file that was there before and is written to anew would have changed for all processes: then the shared folder
    is removed, as it is when it has become too large.
    """
    with contextlib.suppress(OSError):
        found = {
            os.path.join(folder, name): _stamp(os.path.join(run, folder, name))
            for folder, names in _list_folders(run)
            for name in names
        }
        changed = any(found.get(relative, stamp) != stamp for relative, stamp in before.items())
        if changed or sum(size for _, size in found.values()) > LARGEST_CACHE:
            files.rename(run / "discarded")
            return
        for relative in found.keys() - before.keys():
            (files / relative).parent.mkdir(parents=True, exist_ok=True)
            (run / relative).replace(files / relative)
