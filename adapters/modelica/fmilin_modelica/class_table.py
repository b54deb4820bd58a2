"""Which class a name in a Modelica text stands for.

Modifications do not change types here, and a redeclared component has the type that the nearest class declares.
"""

from __future__ import annotations

from collections.abc import Mapping

from fmilin_modelica.class_reader import ClassText, Component, Name, read_classes
from fmilin_modelica.tokens import Token

__all__ = ["ClassTable"]

MAX_INHERITANCE = 20  # classes above one another; more are taken for a circle


class ClassTable:
    """The classes in files, read when a name leads to them.

    Parameters
    ----------
    files : mapping of str to str
        Texts by their places in a folder of libraries, ``Modelica/Icons.mo``.
    texts : tuple of str
        Texts of files that are not within a package.
    """

    def __init__(self, files: Mapping[str, str], *texts: str) -> None:
        self._files = {_name_of_place(place): text for place, text in files.items()}
        self._read: dict[Name, ClassText | None] = {}
        self._types: dict[tuple[int, Name], ClassText | None] = {}
        self._places: dict[Name, str] = {}
        self._texts: dict[str, tuple[list[Token], list[ClassText]]] = {}
        for text in texts:
            self.read_text(text)

    def read_text(self, text: str) -> tuple[list[Token], list[ClassText]]:
        """Return the tokens of a file and the classes in it, which names then lead to."""
        if text not in self._texts:
            self._texts[text] = read_classes(text)
            for found in self._texts[text][1]:
                self._read[found.name] = found
                self._places[found.name] = text
        return self._texts[text]

    def find_text(self, found: ClassText) -> str:
        """Return the text of the file of a class."""
        return self._places[found.top.name]

    def find_global(self, name: Name) -> ClassText | None:
        """Return the class with a full name."""
        if name not in self._read and name in self._files:
            self._read[name] = None
            self.read_text(self._files[name])
        if (direct := self._read.get(name)) is not None:
            return direct
        if len(name) < 2:
            return None
        outer = self.find_global(name[:-1])
        return None if outer is None else self.find_member(outer, name[-1])

    def find_member(self, found: ClassText, name: str, depth: int = 0) -> ClassText | None:
        """Return a class inside of another, or of its bases."""
        if name in found.classes:
            return found.classes[name]
        full = (*found.name, name)
        if full in self._files or full in self._read:
            return self.find_global(full)
        if depth > MAX_INHERITANCE:
            return None
        for base, _ in [*found.extends, *([(found.base, None)] if found.base else [])]:
            if base[0] != name and (inherited := self.find_base(base, found)):
                member = self.find_member(inherited, name, depth + 1)
                if member is not None:
                    return member
        return None

    def find_base(self, name: Name, found: ClassText) -> ClassText | None:
        """Return the class that a class extends by a name, which its own bases do not declare."""
        first = found.classes.get(name[0])
        if first is None and name[0] in found.named_imports:
            first = self.find_global(found.named_imports[name[0]])
        if first is None:
            return self.find_type(name, self.find_parent(found))
        for part in name[1:]:
            first = None if first is None else self.find_member(first, part)
        return first

    def find_parent(self, found: ClassText) -> ClassText | None:
        """Return the class around another, in the same file or not."""
        if found.parent is not None:
            return found.parent
        return self.find_global(found.name[:-1]) if len(found.name) > 1 else None

    def find_type(self, name: Name, scope: ClassText | None, depth: int = 0) -> ClassText | None:
        """Return the class that a name stands for in a class."""
        key = (id(scope), name)
        if key not in self._types:
            self._types[key] = None  # for names that lead to themselves
            self._types[key] = self._look_up(name, scope, depth)
        return self._types[key]

    def _look_up(self, name: Name, scope: ClassText | None, depth: int) -> ClassText | None:
        first = None
        while scope is not None and first is None:
            first = self.find_member(scope, name[0], depth)
            if first is None and name[0] in scope.named_imports:
                first = self.find_global(scope.named_imports[name[0]])
            for package in scope.open_imports if first is None else ():
                first = first or self.find_global((*package, name[0]))
            if first is None and scope.name[-1] == name[0]:
                first = scope
            scope = self.find_parent(scope)
        first = first or self.find_global(name[:1])
        for part in name[1:]:
            first = None if first is None else self.find_member(first, part)
        return first

    def find_component(self, name: str, found: ClassText, depth: int = 0) -> tuple[Component, ClassText] | None:
        """Return a component of a class or of its bases, with the class that declares it."""
        if name in found.components:
            return found.components[name], found
        if depth > MAX_INHERITANCE:
            return None
        bases = [base for base, _ in found.extends] + ([found.base] if found.base else [])
        for base in bases:
            inherited = self.find_base(base, found)
            if inherited is not None and inherited is not found:
                component = self.find_component(name, inherited, depth + 1)
                if component is not None:
                    return component
        return None


def _name_of_place(place: str) -> Name:
    """Return the name of the class in a file: of ``Modelica 4.0.0/Icons.mo`` ``("Modelica", "Icons")``."""
    top, *others = place.removesuffix(".mo").removesuffix("/package").split("/")
    return (top.split(" ")[0], *others)
