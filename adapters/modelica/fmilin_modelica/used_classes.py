"""The classes that a model is made of, found by the names in its declarations, equations and modifications."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fmilin_modelica.class_reader import ClassText, Name
from fmilin_modelica.class_table import ClassTable
from fmilin_modelica.tokens import Token

__all__ = ["list_classes_of_model"]


def list_classes_of_model(table: ClassTable, text: str, model: str | None) -> list[ClassText]:
    """Return the classes that a text uses, and those that a named model of the libraries does."""
    named = [] if model is None else [table.find_global(tuple(model.split(".")))]
    return _list_used_classes(table, [*named, *table.read_text(text)[1]])


def _list_used_classes(table: ClassTable, models: Iterable[ClassText | None]) -> list[ClassText]:
    """Return the classes of components, bases and functions of models, and of those in turn."""
    used: dict[int, ClassText] = {}
    new = [model for model in models if model is not None]
    while new:
        found = new.pop()
        if id(found) in used:
            continue
        used[id(found)] = found
        bases = [base for base, _ in found.extends] + ([found.base] if found.base else [])
        named = [table.find_base(base, found) for base in bases]
        named += [table.find_type(name, found) for name in set(_list_names(found, table))]
        new += [inner for inner in named if inner is not None]
        if found.kind != "package":
            new += found.classes.values()
    return list(used.values())


def _list_names(found: ClassText, table: ClassTable) -> Iterator[Name]:
    """Yield the types of components, the names of functions that are called, and all names in redeclarations."""
    tokens, _ = table.read_text(table.find_text(found))
    spans = [span for _, span in found.extends if span is not None]
    for component in found.components.values():
        yield component.type_name
        spans += [span for span in (component.modification, component.binding) if span is not None]
    spans += [(statement.begin, statement.end) for statement in found.statements]
    for begin, end in spans:
        words = tokens[begin : end + 1]
        has_redeclaration = any(token.text == "redeclare" for token in words)
        yield from _list_dotted_names(words, are_called=not has_redeclaration)


def _list_dotted_names(tokens: list[Token], *, are_called: bool) -> Iterator[Name]:
    place = 0
    while place < len(tokens):
        if tokens[place].kind != "name":
            place += 1
            continue
        parts = [tokens[place].text]
        while place + 2 < len(tokens) and tokens[place + 1].text == "." and tokens[place + 2].kind == "name":
            place += 2
            parts.append(tokens[place].text)
        place += 1
        if not are_called or (place < len(tokens) and tokens[place].text == "("):
            yield tuple(parts)
