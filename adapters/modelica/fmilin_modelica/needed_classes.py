"""Which files of libraries a text needs: the front end reads those, a tenth of the Modelica Standard Library, alone.

The Standard Library has a file for each of its 2,500 classes, and the front end takes six seconds to read what it has
parsed before. Here every name of a file is looked up as Modelica does, in the packages around it and through imports,
and whatever it may stand for is needed: too many files, never too few. A package with inherited classes is needed
with all of them. A variable may have the name of a class: both count. Where something is
missing after all, the front end says so, and reads the whole libraries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from fmilin_modelica.libraries import SKIPPED, library_name

__all__ = ["files_of", "find_needed_files"]

Name = tuple[str, ...]
Reader = Callable[[Path], str]

_NAME = r"[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*"
_NAMES = re.compile(rf"(?<![\w.]){_NAME}")
_INHERITED = re.compile(rf"(?:\b(?:extends|constrainedby)\b|=)\s*({_NAME})")
_GLOBAL = re.compile(r"(?<![\w)\]])\.(?=[A-Za-z_])")  # the dot in front of ".Modelica.Icons"
_IMPORT = re.compile(rf"\bimport\s+(?:([A-Za-z_]\w*)\s*=\s*)?({_NAME})\s*(\.\s*\*|\.\s*{{[^}}]*}})?")


class _Class:
    """A class in a file of its own, ``package.mo`` of a folder for a package that has further files."""

    def __init__(self, path: Path, parent: _Class | None, read: Reader) -> None:
        self.path, self.parent, self._read = path, parent, read
        self.file = path / "package.mo" if path.is_dir() else path

    @cached_property
    def classes(self) -> dict[str, _Class]:
        """The classes in other files of the folder, by name."""
        if not self.path.is_dir():
            return {}
        found = {}
        for entry in self.path.iterdir():
            if entry.suffix == ".mo" and entry.name != "package.mo":
                found[entry.stem] = _Class(entry, self, self._read)
            elif not entry.suffix and (entry / "package.mo").is_file():
                found[entry.name] = _Class(entry, self, self._read)
        return found

    @cached_property
    def text(self) -> str:
        """The content of the file, without comments and strings."""
        try:
            return _names_only(self._read(self.file))
        except OSError:
            return ""

    @cached_property
    def imports(self) -> _Imports:
        """The imports of the file."""
        return _Imports(self.text)

    @cached_property
    def around(self) -> tuple[_Class, ...]:
        """The class, and the packages around it from the inside outwards."""
        return (self, *(() if self.parent is None else self.parent.around))


class _Imports:
    """The import clauses of a text: ``import X = A.B``, ``import A.B``, ``import A.{B, C}`` and ``import A.*``."""

    def __init__(self, text: str) -> None:
        self.named: dict[str, Name] = {}
        self.opened: list[Name] = []  # packages of which all names are imported
        for alias, name, rest in _IMPORT.findall(text):
            parts = _parts(name)
            if rest.endswith("*"):
                self.opened.append(parts)
            elif rest:
                self.named |= {inner: (*parts, inner) for inner in re.findall(r"\w+", rest)}
            else:
                self.named[alias or parts[-1]] = parts


def _names_only(text: str) -> str:
    """Return a text without comments, strings, and dots in front of names."""
    return _GLOBAL.sub(" ", SKIPPED.sub(" ", text))


def _parts(name: str) -> Name:
    return tuple(part.strip() for part in name.split("."))


class _Search:
    """Follows names from file to file."""

    def __init__(self, roots: Sequence[str], read: Reader) -> None:
        self.libraries = {library_name(Path(root)): _Class(Path(root), None, read) for root in roots}
        self.needed: dict[Path, _Class] = {}
        self._complete: set[Path] = set()  # packages of which all classes are needed
        self._open: list[_Class] = []

    def follow(self, text: str, inside: _Class | None, imports: Sequence[_Imports]) -> None:
        """Take what the names in a text may stand for, and whatever that needs."""
        inherited = set(map(_parts, set(_INHERITED.findall(_IMPORT.sub(" ", text)))))
        for name in set(map(_parts, set(_NAMES.findall(text)))) | inherited:
            for package, rest in self._meanings(name, inside, imports):
                self._take(package, rest, whole=name in inherited)
        while self._open:
            found = self._open.pop()
            self.follow(found.text, found, [c.imports for c in found.around])

    def _meanings(
        self, name: Name, inside: _Class | None, imports: Sequence[_Imports]
    ) -> Iterator[tuple[_Class, Name]]:
        """Yield classes in which a name may be looked up, each with the name from there."""
        first, *others = name
        scopes = () if inside is None else inside.around
        for scope in scopes:
            if first in scope.classes:
                yield scope, name
        if first in self.libraries:
            yield self.libraries[first], tuple(others)
        for clauses in imports:
            full_names = [(*package, *name) for package in clauses.opened]
            if first in clauses.named and clauses.named[first] != name[:1]:
                full_names.append((*clauses.named[first], *others))
            for top, *inner in full_names:
                if top in self.libraries:
                    yield self.libraries[top], tuple(inner)
                for scope in scopes:
                    if top in scope.classes:
                        yield scope, (top, *inner)

    def _take(self, found: _Class, rest: Name, *, whole: bool) -> None:
        """Take a class and those inside that a name leads to; with ``whole`` all that the last one contains."""
        self._add(found)
        for part in rest:
            inner = found.classes.get(part)
            if inner is None:
                break
            found = inner
            self._add(found)
        if whole and found.path not in self._complete:
            self._complete.add(found.path)
            for inner in found.classes.values():
                self._add(inner)

    def _add(self, found: _Class) -> None:
        for outer in found.around:
            if outer.path in self.needed:  # so are those around it
                break
            self.needed[outer.path] = outer
            self._open.append(outer)


def _read_file(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig", errors="replace")


def find_needed_files(roots: Sequence[str], text: str, model: str | None, read: Reader = _read_file) -> dict[str, Path]:
    """Return the files that a text and the name of a model need, by their places in a folder of the libraries.

    ``{"Modelica/Icons.mo": Path("/msl/Modelica/Icons.mo")}``; a library keeps the name of its folder or file. With
    ``read``, names are those that it returns for a file.
    """
    search = _Search(roots, read)
    written = _names_only(text)
    search.follow(f"{written} {model or ''}", None, [_Imports(written)])
    files = {}
    for library in search.libraries.values():
        folder = library.path.parent
        for found in search.needed.values():
            if found.path == library.path or library.path in found.path.parents:
                files[found.file.relative_to(folder).as_posix()] = found.file
    return files


def files_of(roots: Sequence[str]) -> dict[str, Path]:
    """Return all Modelica files of libraries, by their places in a folder of the libraries.

    Folders without ``package.mo`` are no packages: the front end rejects a library with one of them.
    """
    files: dict[str, Path] = {}
    for root in map(Path, roots):
        paths = list(_list_files(root)) if root.is_dir() else [root]
        files |= {path.relative_to(root.parent).as_posix(): path for path in paths}
    return files


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield the Modelica files of a package and of the packages inside of it."""
    for entry in sorted(folder.iterdir()):
        if entry.suffix == ".mo" and entry.is_file():
            yield entry
        elif (entry / "package.mo").is_file():
            yield from _list_files(entry)
