"""What was compiled before, kept in a folder of the user's own: whole and unchanged, or not at all.

A kept file begins with the digest of its name and content. It is used when that is right, and when nobody but the user
can have written it; otherwise things are compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from pathlib import Path

from fmilin.ground.errors import UsageError
from fmilin.ground.files import write_atomically

__all__ = ["cache_folder", "fetch", "keep"]


def cache_folder() -> Path:
    """Return where built libraries are kept: under XDG_CACHE_HOME, else where the platform keeps such things."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "fmilin" / "libraries"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fmilin" / "libraries"
    if sys.platform == "win32" and (base := os.environ.get("LOCALAPPDATA")):
        return Path(base) / "fmilin" / "Cache" / "libraries"
    return Path.home() / ".cache" / "fmilin" / "libraries"


def fetch(name: str) -> bytes | None:
    """Return what is kept under ``name``; None when nothing is, or when it is damaged or not the user's own."""
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(cache_folder() / name, flags)
        with os.fdopen(descriptor, "rb") as file:
            if _is_own(os.fstat(file.fileno())):
                digest, content = file.read(hashlib.sha256().digest_size), file.read()
                if digest == _digest(name, content):
                    return content
    return None


def keep(name: str, content: bytes) -> None:
    """Keep ``content``, completely on the disk or not at all; a folder that cannot be used is no reason to fail."""
    with contextlib.suppress(OSError, UsageError):
        if _is_private(cache_folder()):
            write_atomically(cache_folder() / name, _digest(name, content) + content)
            (cache_folder() / name).chmod(0o600)


def _digest(name: str, content: bytes) -> bytes:
    digest = hashlib.sha256(f"{len(name)}:{name}".encode())
    digest.update(content)
    return digest.digest()


def _is_private(folder: Path) -> bool:
    """Make the folder, and the one above, which is fmilin's, too; return whether both are the user's alone."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    for path in (folder.parent, folder):
        there = path.lstat()
        if not (stat.S_ISDIR(there.st_mode) and _is_mine(there)):
            return False
        if hasattr(os, "getuid") and there.st_mode & 0o077:
            path.chmod(0o700)
    return True


def _is_own(there: os.stat_result) -> bool:
    """Whether this is a file of the user, and not one that everybody can write."""
    return stat.S_ISREG(there.st_mode) and _is_mine(there) and (os.name == "nt" or not there.st_mode & 0o002)


def _is_mine(there: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or there.st_uid == os.getuid()
