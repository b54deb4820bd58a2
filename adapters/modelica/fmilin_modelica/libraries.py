"""Modelica libraries in folders and files: their names, their versions, and which of them a text needs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fmilin.errors import UsageError

__all__ = ["SKIPPED", "library_name", "library_roots", "names_needed", "versions_used"]

SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)  # comments and strings
_CLASS = re.compile(
    r"\s*(?:within\s*;)?\s*(?:(?:encapsulated|partial|final|expandable|pure|impure|operator)\s+)*"
    r"(?:package|model|block|class|record|function|connector|type)\s+([A-Za-z_]\w*)"
)
_VERSION = re.compile(r"[ -]v?(\d+(?:\.\d+)*)")
_ANNOTATED = re.compile(r'(?:annotation\s*\(|,)\s*version\s*=\s*"(\d+(?:\.\d+)*)')
_USES = re.compile(r"\buses\s*\(")
_USED = re.compile(r'([A-Za-z_]\w*)\s*\(\s*version\s*=\s*"([^"]*)"')
HEAD = 4096  # characters of a file within which its class begins


@dataclass(frozen=True)
class Library:
    """A library as it lies in a folder: a folder with ``package.mo``, or a file."""

    name: str
    path: Path

    @property
    def version(self) -> tuple[int, ...]:
        """The version in the folder's name, ``Modelica 4.0.0``, else in the package's annotation; () without any."""
        found = _VERSION.search(self.path.name if self.path.is_dir() else self.path.stem)
        if found is None:
            found = _ANNOTATED.search(_text(self.path / "package.mo" if self.path.is_dir() else self.path))
        return () if found is None else _numbers(found[1])


def library_roots(given: Sequence[str | Path], versions: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the libraries in the folders that were given, then those in MODELICAPATH, each name once.

    A folder contains libraries (``Modelica/package.mo``, ``Modelica 4.0.0/package.mo``, ``Complex.mo``), or is one
    itself; a file is one. Of several versions in a folder the one in ``versions`` counts, else the newest.

    Raises
    ------
    UsageError
        When a folder that was given is not there, or contains no library.
    """
    found = [_libraries_given(Path(folder)) for folder in given]
    path = os.environ.get("MODELICAPATH", "").split(os.pathsep)
    found += [list(_libraries(Path(folder))) for folder in path if folder]
    roots: dict[str, str] = {}
    for libraries in found:
        for name in dict.fromkeys(library.name for library in libraries):
            choice = [library for library in libraries if library.name == name]
            roots.setdefault(name, str(_preferred(choice, (versions or {}).get(name)).path.resolve()))
    return tuple(roots.values())


def _libraries_given(folder: Path) -> list[Library]:
    if not folder.exists():
        raise UsageError(
            f"There is no library '{folder}'. options={{'library': ['FOLDER']}}, or MODELICAPATH, names the folder "
            "that contains the library's own folder: that with Modelica/ in it for the Modelica Standard Library."
        )
    libraries = list(_libraries(folder))
    if not libraries:
        raise UsageError(
            f"There is no Modelica library in '{folder}': neither a package.mo, nor folders with one, nor .mo files. "
            "Name the folder that contains the library's own folder, or that folder itself."
        )
    return libraries


def _libraries(folder: Path) -> Iterator[Library]:
    if (folder.is_file() and folder.suffix == ".mo") or (folder / "package.mo").is_file():
        yield Library(library_name(folder), folder)
        return
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        is_file = entry.suffix == ".mo" and entry.is_file()
        if (is_file and not _is_part(entry)) or (entry / "package.mo").is_file():
            yield Library(library_name(entry), entry)


def _is_part(path: Path) -> bool:
    """Whether a file belongs to a package in another file."""
    return re.match(r"\s*within\s+\w", SKIPPED.sub(" ", _text(path)[:HEAD])) is not None


def _preferred(libraries: Sequence[Library], version: str | None) -> Library:
    """Return the version that is asked for, else the newest of the same major version, else the newest."""
    newest = max(libraries, key=lambda library: library.version)
    if version is None or len(libraries) == 1:
        return newest
    wanted = _numbers(version)
    if exact := [library for library in libraries if library.version == wanted]:
        return exact[0]
    major = [library for library in libraries if library.version[:1] == wanted[:1]]
    return max(major, key=lambda library: library.version) if major else newest


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def library_name(path: Path) -> str:
    """Return the name of the package in a folder or file, whatever that is called."""
    declared = _CLASS.match(SKIPPED.sub(" ", _text(path / "package.mo" if path.is_dir() else path)[:HEAD]))
    if declared is not None:
        return declared[1]
    return (path.name if path.is_dir() else path.stem).split(" ")[0]


def versions_used(text: str) -> dict[str, str]:
    """Return the versions of libraries in the annotation ``uses(Modelica(version = "4.0.0"))`` of a text."""
    versions: dict[str, str] = {}
    for use in _USES.finditer(text):
        end, depth = use.end(), 1
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        versions |= dict(_USED.findall(text[use.end() : end]))
    return versions


def names_needed(roots: Sequence[str], text: str) -> list[str]:
    """Return the names of the libraries that a text names, and of those that these name in turn."""
    open_roots = {library_name(Path(root)): Path(root) for root in roots}
    needed: list[str] = []
    new = _names_in(text, open_roots)
    while new:
        name = new.pop(0)
        root = open_roots.pop(name)
        needed.append(name)
        new = [other for other in new if other in open_roots]
        for file in sorted(root.rglob("*.mo")) if root.is_dir() else [root]:
            missing = [other for other in open_roots if other not in new]
            if not missing:
                break
            new += _names_in(_text(file), missing)
    return needed


def _names_in(text: str, names: Iterator[str] | Sequence[str] | Mapping[str, Path]) -> list[str]:
    """Return which of the names are words of a text; release notes, which are strings, name libraries of others."""
    choice = "|".join(map(re.escape, names))
    pattern = re.compile(rf"(?<![\w.])(?:{choice})(?!\w)")
    if not choice or pattern.search(text) is None:
        return []
    return list(dict.fromkeys(pattern.findall(SKIPPED.sub(" ", text))))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""
