"""Files that are either written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from fmilin.ground.errors import UsageError
from fmilin.ground.temporary import owned_name, remove_leftovers

__all__ = ["check_writable", "replaced_when_complete", "write_all", "write_atomically"]


def check_writable(path: str | Path) -> Path:
    """Return where ``path`` really lies, after trying that a file can be created there; leaves nothing behind."""
    target = _target(path)
    descriptor, probe = _new_file_beside(target)
    os.close(descriptor)
    probe.unlink()
    return target


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write ``content`` to ``path``: an old file stays as it was until the new one is complete on the disk."""
    write_all({path: content})


def write_all(contents: Mapping[str | Path, bytes] | Mapping[Path, bytes]) -> None:
    """Write several files: none takes the place of an old one until all are complete on the disk."""
    staged: list[tuple[Path, Path]] = []
    try:
        for path, content in contents.items():
            target = _target(path)
            remove_leftovers(target.parent)
            descriptor, temporary = _new_file_beside(target)
            staged.append((temporary, target))
            try:
                _fill(descriptor, content)
                if target.exists():
                    temporary.chmod(target.stat().st_mode & 0o7777)
            except OSError as error:
                raise _refusal(target, error.strerror or str(error)) from None
        for temporary, target in staged:
            try:
                temporary.replace(target)
            except OSError as error:
                raise _refusal(target, error.strerror or str(error)) from None
    finally:
        for temporary, _ in staged:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    for folder in {target.parent for _, target in staged}:
        _sync(folder)


def _fill(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Let the new names reach the disk, too, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def replaced_when_complete(path: str | Path) -> Iterator[Path]:
    """Yield the name of a file to fill; it takes the place of ``path`` when the block ends well, else it is gone."""
    target = _target(path)
    descriptor, temporary = _new_file_beside(target)
    os.close(descriptor)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
    except OSError as error:
        raise _refusal(target, error.strerror or str(error)) from None
    finally:
        temporary.unlink(missing_ok=True)


def _target(path: str | Path) -> Path:
    """Follow links, so that the file is replaced and not the link to it."""
    try:
        target = Path(path).resolve()
        folder = target.parent
        if not folder.is_dir():
            raise UsageError(f"Cannot write '{path}': there is no folder '{folder}'. Create it first.")
        if target.is_dir():
            raise UsageError(f"Cannot write '{path}': this is a folder. Give the name of a file.")
        if target.exists() and not (target.is_file() and os.access(target, os.W_OK)):
            raise UsageError(f"Cannot write '{path}': what has that name is no writable file. Choose another name.")
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, UsageError):
            raise
        raise _refusal(path, str(error)) from None
    return target


def _new_file_beside(target: Path) -> tuple[int, Path]:
    """Create an empty file with the permissions that any new file gets, and a name that nobody has."""
    temporary = target.with_name(f".{owned_name()}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(temporary, flags, 0o666), temporary
    except OSError as error:
        raise _refusal(target, error.strerror or str(error)) from None


def _refusal(path: str | Path, why: str) -> UsageError:
    return UsageError(f"Cannot write '{path}': {why}. Choose another place, or free this one.")
