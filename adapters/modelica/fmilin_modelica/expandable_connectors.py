"""Members of expandable connectors that connections alone declare, written into the connectors.

``connect(source.y, bus.speed)`` gives the connector ``bus`` a member ``speed``; the front end wants it declared. Each
class of expandable connectors gets the members that connections to its instances name, and those of the expandable
connectors that they are connected to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from fmilin_modelica.class_reader import ClassText
from fmilin_modelica.class_table import ClassTable
from fmilin_modelica.rewriting import edit_text, mask_comments_and_strings
from fmilin_modelica.tokens import Token, find_closing, split_list
from fmilin_modelica.used_classes import list_classes_of_model

__all__ = ["MEMBER_FAULT", "write_members_of_expandable_connectors"]

MEMBER_FAULT = re.compile(r"expandable connector connection .* requires unsupported member augmentation")
BUILTIN = {"Real", "Integer", "Boolean", "String"}

Kind = ClassText | str
"""A class, or the name of a builtin type."""


class _Members:
    """The members of expandable connectors, by the full names of their classes."""

    def __init__(self, table: ClassTable) -> None:
        self.table = table
        self.added: dict[str, dict[str, Kind]] = {}
        self.classes: dict[str, ClassText] = {}

    def find_kind(self, name: tuple[str, ...], scope: ClassText) -> Kind | None:
        """Return the class that a name stands for; the builtin type of a connector of signals."""
        found = self.table.find_type(name, scope)
        while found is not None and found.base:
            name, scope = found.base, found
            found = self.table.find_base(name, scope)
        return name[0] if found is None and name[0] in BUILTIN else found

    def find_member(self, kind: Kind | None, name: str) -> Kind | None:
        """Return the class of a component of a class, or of an added member."""
        if not isinstance(kind, ClassText):
            return None
        component = self.table.find_component(name, kind)
        if component is not None:
            return self.find_kind(component[0].type_name, component[1])
        return self.added.get(".".join(kind.name), {}).get(name)

    def add(self, owner: ClassText, name: str, kind: Kind) -> bool:
        """Add a member to a class that has none of this name."""
        members = self.added.setdefault(".".join(owner.name), {})
        if name in members or self.table.find_component(name, owner) is not None:
            return False
        members[name] = kind
        self.classes[".".join(owner.name)] = owner
        return True

    def connect(self, a: list[str], b: list[str], scope: ClassText) -> bool:
        """Add the members of a connection; whether there were any."""
        kinds = []
        for names in (a, b):
            kind: Kind | None = scope
            owner: Kind | None = None
            for name in names:
                owner, kind = kind, self.find_member(kind, name)
            kinds.append((owner, kind))
        has_changed = False
        for (owner, kind), (_, other), names in ((kinds[0], kinds[1], a), (kinds[1], kinds[0], b)):
            if kind is None and other is not None and isinstance(owner, ClassText) and owner.is_expandable:
                has_changed = self.add(owner, names[-1], other) or has_changed
            classes = [side for side in (kind, other) if isinstance(side, ClassText) and side.is_expandable]
            if len(classes) == 2 and kind is not other:
                has_changed = self.add_all(*classes) or has_changed
        return has_changed

    def add_all(self, owner: ClassText, other: ClassText) -> bool:
        """Add the members of a connector to another one."""
        members = {name: self.find_member(other, name) for name in other.components}
        members |= self.added.get(".".join(other.name), {})
        has_changed = False
        for name, kind in members.items():
            if kind is not None:
                has_changed = self.add(owner, name, kind) or has_changed
        return has_changed


def write_members_of_expandable_connectors(
    files: Mapping[str, str], text: str, model: str | None
) -> Callable[[str], str] | None:
    """Return the function that writes the members into a text; None where there are none.

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
    members = _Members(table)
    connections = [(a, b, found) for found in used for a, b in _list_connections(table, found)]
    while any(members.connect(a, b, found) for a, b, found in connections):
        pass
    if not members.classes:
        return None
    declarations = {
        members.classes[name].name[-1]: " ".join(
            f"{kind if isinstance(kind, str) else '.' + '.'.join(kind.name)} {member};"
            for member, kind in found.items()
        )
        for name, found in members.added.items()
        if found
    }
    head = re.compile(rf"\bexpandable\s+connector\s+(?:extends\s+)?({'|'.join(declarations)})\b(?!\s*=)")

    def write(code: str) -> str:
        masked = mask_comments_and_strings(code)
        edits = []
        for match in head.finditer(masked):
            end = match.end() + len(masked[match.end() :]) - len(masked[match.end() :].lstrip())
            edits.append((end, end, f"{declarations[match[1]]} "))
        return edit_text(code, edits)

    return write


def _list_connections(table: ClassTable, found: ClassText) -> Iterable[tuple[list[str], list[str]]]:
    """Yield the two references of each connection in a class, without subscripts."""
    tokens, _ = table.read_text(table.find_text(found))
    for statement in found.statements:
        if tokens[statement.begin].text == "connect":
            closing = find_closing(tokens, statement.begin + 1)
            sides = split_list(tokens[statement.begin + 2 : closing])
            if len(sides) == 2:
                yield _list_names(sides[0]), _list_names(sides[1])


def _list_names(tokens: list[Token]) -> list[str]:
    names = []
    place = 0
    while place < len(tokens):
        if tokens[place].text == "[":
            place = find_closing(tokens, place)
        elif tokens[place].kind == "name":
            names.append(tokens[place].text)
        place += 1
    return names
