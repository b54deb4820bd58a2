"""Which module writes and reads which kind of file of a family; the suffix decides.

A format is one module with ``dumps(family) -> bytes`` and ``loads(content, origin)``; one that writes without having
everything in memory has ``write(family, path)`` instead, and ``read(path)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fmilin.ground.errors import ModelError, UsageError
from fmilin.ground.files import check_writable, write_atomically

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily

__all__ = [
    "FORMATS",
    "check_output",
    "checked_families",
    "contents",
    "holds_family",
    "is_family",
    "load",
    "save",
    "save_all",
]

MARK = "fmilin-family/"
"""Stands in every file of a family, before the number of its version."""

FORMATS = {
    ".nc": "fmilin.output.export.family_netcdf",
    ".mat": "fmilin.output.export.family_mat",
    ".npz": "fmilin.output.export.family_npz",
    ".json": "fmilin.output.export.family_json",
    ".m": "fmilin.output.export.family_m",
}
_BY_PATH = frozenset({".nc"})
"""These are written and read without having everything in memory."""


def save(family: LinearFamily, path: str | Path) -> None:
    """Write a family to ``path``, completely or not at all; the suffix picks the format."""
    path = Path(path)
    if path.suffix.lower() in _BY_PATH:
        import_module(_module(path)).write(family, path)
    else:
        write_atomically(path, _dumps(family, path))


def save_all(family: LinearFamily, paths: Sequence[Path]) -> dict[Path, UsageError]:
    """Write a family to those of several files that can be written, and return why others could not."""
    refused: dict[Path, UsageError] = {}
    for path in paths:
        try:
            save(family, path)
        except UsageError as error:
            refused[path] = error
    return refused


def contents(family: LinearFamily, paths: Sequence[Path]) -> dict[Path, bytes]:
    """Return what :func:`save` would write to each, of a family that the memory holds twice."""
    return {path: _dumps(family, path) for path in paths}


def _dumps(family: LinearFamily, path: Path) -> bytes:
    module = import_module(_module(path))
    return cast(bytes, module.dumps(family, path.stem) if path.suffix.lower() == ".m" else module.dumps(family))


def load(path: str | Path) -> LinearFamily:
    """Read a family; the suffix picks the format."""
    if Path(path).suffix.lower() == ".m":
        raise UsageError(
            f"Cannot read '{path}': a .m file is a program. Load the family from .nc, .mat, .npz or .json."
        )
    module = import_module(_module(path, "read"))
    try:
        if Path(path).suffix.lower() in _BY_PATH:
            with Path(path).open("rb"):
                pass
            return cast("LinearFamily", module.read(Path(path)))
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"Cannot read the family '{path}': {why}.") from None
    return cast("LinearFamily", module.loads(content, str(path)))


def holds_family(path: str | Path) -> bool:
    """Whether a file of this suffix can hold a family."""
    return Path(path).suffix.lower() in FORMATS and not Path(path).name.lower().endswith("dslin.mat")


def check_output(path: str | Path) -> None:
    """Make sure that :func:`save` will be able to write to ``path``; cheap, and leaves nothing behind."""
    _module(path)
    check_writable(path)
    if Path(path).suffix.lower() == ".nc":
        import_module(FORMATS[".nc"]).require_installed()


def checked_families(paths: Sequence[Path]) -> list[Path]:
    """Return ``paths`` after making sure that a family can be written to every one."""
    for path in paths:
        check_output(path)
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("--output names the same file twice. Keep one.")
    return list(paths)


def is_family(path: Path) -> bool:
    """Whether a file holds a family, by what stands in it; False where it cannot be read."""
    suffix = path.suffix.lower()
    if suffix == ".nc":
        return True
    if suffix not in (".mat", ".npz", ".json"):
        return False
    try:
        content = path.read_bytes()
    except OSError:
        return False
    marks = [MARK.encode(code) for code in ("ascii", "utf-16-le", "utf-32-le")]
    return any(mark in content for mark in marks) or _says_so(content, suffix)


def _says_so(content: bytes, suffix: str) -> bool:
    """Whether a compressed .mat or .npz file that somebody saved again is a family."""
    if suffix == ".json":
        return False
    try:
        import_module(FORMATS[suffix]).loads(content, "")
    except ModelError:
        return False
    return True


def _module(path: str | Path, action: str = "write") -> str:
    if not holds_family(path):
        suffix = Path(path).suffix
        has = f"the suffix '{suffix}'" if suffix else "no suffix"
        raise UsageError(f"Cannot {action} '{path}' as a family: it has {has}. Known are {', '.join(FORMATS)}.")
    return FORMATS[Path(path).suffix.lower()]
