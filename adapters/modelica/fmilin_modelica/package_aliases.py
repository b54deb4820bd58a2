"""Names behind packages that a class declares by another name, written in full: ``PS.n`` of ``package PS = P.Two``.

The front end does not find constants and types there once the class is that of a component: sizes of connectors are
not evaluable. A constant with a literal value is written as that value, and a class that extends another one with
another package gets the elements of that class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from fmilin_modelica.class_reader import ClassText, Name
from fmilin_modelica.class_table import MAX_INHERITANCE, ClassTable
from fmilin_modelica.rewriting import edit_text
from fmilin_modelica.tokens import Token, find_closing, join_tokens, skip_to, split_list
from fmilin_modelica.used_classes import list_classes_of_model

__all__ = ["PACKAGE_FAULT", "write_names_of_packages"]

PACKAGE_FAULT = re.compile(r"unevaluable array dimensions for|unresolved type reference|could not resolve function")
LITERALS = {"number", "string"}
VALUE_OF_MEMBER = 3  # tokens of "n = 2"


class _Packages:
    """The packages behind names of classes."""

    def __init__(self, table: ClassTable, redeclared: set[str]) -> None:
        self.table = table
        self._redeclared = redeclared
        self._targets: dict[tuple[int, str], ClassText | None] = {}

    def find_target(self, name: str, scope: ClassText) -> ClassText | None:
        """Return the package that a name stands for that a short definition declares; None for other names."""
        key = (id(scope), name)
        if key not in self._targets:
            is_component = self.table.find_component(name, scope) is not None
            first = None if is_component else self.table.find_type((name,), scope)
            target = first
            while target is not None and target.kind == "package" and target.base:
                is_fixed = not target.is_modified and target.name[-1] not in self._redeclared
                target = self.table.find_base(target.base, target) if is_fixed else None
            self._targets[key] = None if target is first else target
        return self._targets[key]

    def write_member(self, package: ClassText, rest: Sequence[str]) -> str:
        """Return the full name of a member of a package, or its value."""
        literal = self._find_literal(package, rest[0]) if len(rest) == 1 else None
        if literal is not None:
            return literal.text
        member = self.table.find_member(package, rest[0])
        if member is not None and member.kind != "function":
            return "." + ".".join((*member.name, *rest[1:]))
        return "." + ".".join((*package.name, *rest))

    def _find_literal(self, package: ClassText, name: str, depth: int = 0) -> Token | None:
        """Return the value of a constant of a package, where it is a literal."""
        tokens, _ = self.table.read_text(self.table.find_text(package))
        if name in package.components:
            span = package.components[name].binding
            value = [] if span is None else tokens[span[0] + 1 : span[1]]
            return value[0] if len(value) == 1 and value[0].kind in LITERALS else None
        if depth > MAX_INHERITANCE:
            return None
        for base, span in package.extends:
            for argument in [] if span is None else split_list(tokens[span[0] + 1 : span[1]]):
                if argument[0].text == name and len(argument) == VALUE_OF_MEMBER and argument[2].kind in LITERALS:
                    return argument[2]
            inherited = self.table.find_base(base, package)
            literal = None if inherited is None else self._find_literal(inherited, name, depth + 1)
            if literal is not None:
                return literal
        return None

    def list_edits(self, tokens: list[Token], found: ClassText) -> Iterator[tuple[int, int, str]]:
        """Yield the edits of names in a class, without those in the classes inside of it."""
        inner = sorted(other.span for other in found.classes.values())
        place, end = found.span
        while place < end:
            if inner and place >= inner[0][0]:
                place = max(place, inner.pop(0)[1])
                continue
            parts, last = _read_dotted_name(tokens, place)
            if len(parts) > 1 and (target := self.find_target(parts[0], found)) is not None:
                yield tokens[place].begin, tokens[last].end, self.write_member(target, parts[1:])
            place = last + 1

    def write_base(self, found: ClassText, base: Name, span: tuple[int, int], tokens: list[Token]) -> str | None:
        """Return the elements of a base of which packages alone are redeclared; None for another base."""
        packages: dict[str, ClassText] = {}
        for argument in split_list(tokens[span[0] + 1 : span[1]]):
            words = [token.text for token in argument]
            if words[:2] != ["redeclare", "package"] or "=" not in words or "(" in words:
                return None
            package = self.table.find_type(tuple(words[words.index("=") + 1 :: 2]), found)
            while package is not None and package.base and not package.is_modified:
                package = self.table.find_base(package.base, package)
            if package is None:
                return None
            packages[words[2]] = package
        inherited = self.table.find_base(base, found)
        if inherited is None or inherited.base or not packages.keys() <= inherited.classes.keys():
            return None
        return self._write_elements(inherited, packages)

    def _write_elements(self, inherited: ClassText, packages: Mapping[str, ClassText]) -> str:
        """Return the elements of a class in one line, with full names."""
        tokens, _ = self.table.read_text(self.table.find_text(inherited))
        begin, end = inherited.span
        names = [place for place in range(begin, end) if tokens[place].text == inherited.name[-1]]
        place, end = names[0] + 1, names[-1] - 1  # "NAME ... end NAME"
        place += tokens[place].kind == "string"
        omitted = {inherited.classes[name].span[0]: inherited.classes[name].span[1] for name in packages}
        written = []
        while place < end:
            if place in omitted or tokens[place].text == "annotation":
                is_element = place in omitted or tokens[place - 1].text == ";"
                last = omitted.get(place, place + 1)
                place = skip_to(tokens, last, {";"}) + 1 if is_element else find_closing(tokens, place + 1) + 1
                continue
            parts, last = _read_dotted_name(tokens, place)
            if not parts:
                written.append(tokens[place])
            else:
                words = self._write_name(parts, inherited, packages)
                written.append(tokens[place]._replace(text=words))
            place = last + 1
        words = join_tokens(written)
        return f"{words} public" if any(token.text in {"equation", "protected"} for token in written) else words

    def _write_name(self, parts: Sequence[str], inherited: ClassText, packages: Mapping[str, ClassText]) -> str:
        if parts[0] in packages and len(parts) > 1:
            return self.write_member(packages[parts[0]], parts[1:])
        is_component = self.table.find_component(parts[0], inherited) is not None
        found = None if is_component else self.table.find_type((parts[0],), inherited)
        return ".".join(parts) if found is None else "." + ".".join((*found.name, *parts[1:]))


def write_names_of_packages(files: Mapping[str, str], text: str, model: str | None) -> Callable[[str], str] | None:
    """Return the function that writes them into a text; None where no class declares a package by another name.

    Parameters
    ----------
    files : mapping of str to str
        Texts of the libraries that the model needs, by their places.
    text : str
        The text with the model, or with a part of it.
    model : str or None
        The name of the model; None for the one in the text.
    """
    table = ClassTable(files, text)
    used = list_classes_of_model(table, text, model)
    redeclared = {name for found in used for name in _list_redeclared_packages(table, found)}
    packages = _Packages(table, redeclared)

    def list_edits(code: str) -> list[tuple[int, int, str]]:
        tokens, classes = table.read_text(code)
        edits = []
        for found in (inner for top in classes for inner in top.list_all()):
            bases = []
            for base, span in found.extends:
                if span is None or (elements := packages.write_base(found, base, span, tokens)) is None:
                    continue
                begin = max(place for place in range(span[0]) if tokens[place].text == "extends")
                end = tokens[skip_to(tokens, span[1], {";"})].end
                bases.append((tokens[begin].begin, end, elements + "\n" * code.count("\n", tokens[begin].begin, end)))
            names = packages.list_edits(tokens, found)
            edits += [edit for edit in names if not any(begin <= edit[0] < end for begin, end, _ in bases)]
            edits += bases
        return edits

    if not any(list_edits(code) for code in (text, *files.values())):
        return None
    return lambda code: edit_text(code, list_edits(code))


def _list_redeclared_packages(table: ClassTable, found: ClassText) -> Iterator[str]:
    """Yield the names of packages that a class redeclares in its bases and components."""
    tokens, _ = table.read_text(table.find_text(found))
    spans = [span for _, span in found.extends]
    spans += [component.modification for component in found.components.values()]
    for begin, end in (span for span in spans if span is not None):
        for place in range(begin, end):
            if tokens[place].text == "package":
                yield tokens[place + 1].text


def _read_dotted_name(tokens: list[Token], place: int) -> tuple[list[str], int]:
    """Return the parts of a name that begins at a place, and the place of the last one."""
    if tokens[place].kind != "name" or (place and tokens[place - 1].text == "."):
        return [], place
    parts = [tokens[place].text]
    while place + 2 < len(tokens) and tokens[place + 1].text == "." and tokens[place + 2].kind == "name":
        place += 2
        parts.append(tokens[place].text)
    return parts, place
