"""Landlock: which files a process may read and write, for itself and all that it starts, without any privilege.

Linux 5.13 and later (https://docs.kernel.org/userspace-api/landlock.html). Later versions see to more: renaming between
folders (2), emptying of files (3), TCP (4), devices (5), signals and abstract sockets (6).
"""

import os
import struct
from collections.abc import Iterable
from contextlib import suppress

from fmilin.sandbox.kernel import call

AnyPath = str | os.PathLike[str]
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all machines
_VERSION = 1  # a flag of the first: say which version this kernel has
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _DEVICES = 1 << 14, 1 << 15
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICES  # a rule for a file may hold nothing else
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many rights the first versions know; 16 from the fifth on
_ALL_TCP = _ALL_SCOPES = 3
SIGNALS_STAY_INSIDE = 6  # the version from which on it also keeps signals inside


def version() -> int:
    """Return which version of Landlock this kernel offers; 0: none."""
    try:
        return call(_CREATE_RULESET, 0, 0, _VERSION)
    except OSError:
        return 0


def restrict(
    readable: Iterable[AnyPath], writable: Iterable[AnyPath], pipes: Iterable[AnyPath], *, network: bool
) -> None:
    """Allow reading and executing, all, and reading and writing under these paths, and nothing else; for good.

    Without ``network`` no TCP, no abstract sockets of others; never signals to others. Paths that do not exist are left
    out.
    """
    offered = version()
    handled = (1 << _RIGHTS.get(offered, 16)) - 1
    scopes = _ALL_SCOPES - network if offered >= SIGNALS_STAY_INSIDE else 0  # bit 0: abstract sockets
    attribute = struct.pack("<QQQ", handled, _ALL_TCP if offered >= 4 and not network else 0, scopes)
    ruleset = call(_CREATE_RULESET, attribute, 8 if offered < 4 else 16 if offered < 6 else 24, 0)
    try:
        for paths, rights in (
            (readable, _READING),
            (writable, handled & ~_DEVICES),
            (pipes, _READ_FILE | _WRITE_FILE | _TRUNCATE),
        ):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: AnyPath, rights: int) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            is_folder = os.path.isdir(path)  # noqa: PTH112 - hundreds of paths, many of them texts
            rule = struct.pack("<Qi", rights if is_folder else rights & _OF_FILES, descriptor)
            call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
        finally:
            os.close(descriptor)
