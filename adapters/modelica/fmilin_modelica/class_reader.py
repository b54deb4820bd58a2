"""The classes in a Modelica text: their components, bases, imports and the places of their equations.

It reads no more than types of components need.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from fmilin_modelica.tokens import Token, find_closing, read_tokens, skip_to, split_list

__all__ = ["ClassText", "Component", "Name", "Statement", "read_classes"]

Name = tuple[str, ...]

_CLASS_PREFIXES = {
    "encapsulated", "partial", "final", "redeclare", "inner", "outer", "replaceable", "expandable", "pure", "impure",
}  # fmt: skip
_CLASS_KEYWORDS = {"class", "model", "block", "record", "connector", "type", "package", "function", "operator"}
_COMPONENT_PREFIXES = {
    "flow", "stream", "discrete", "parameter", "constant", "input", "output", "replaceable", "redeclare", "final",
    "inner", "outer",
}  # fmt: skip
_CONTROL = {"if": "then", "elseif": "then", "when": "then", "elsewhen": "then", "while": "loop", "for": "loop"}
_SECTIONS = {"equation", "algorithm"}
_OPERATORS = {"=", ":=", "+", "-", "*", "/", "^", "(", "[", "{", ",", ":", "==", "<>", "<", ">", "<=", ">="}
_WORDS_BEFORE_OPERANDS = {"then", "else", "elseif", "if", "and", "or", "not", "in", "loop"}


@dataclass(frozen=True)
class Component:
    """A declared component; ``modification`` and ``binding`` are spans of tokens, parentheses and ``=`` included."""

    name: str
    type_name: Name
    sizes: tuple[tuple[Token, ...], ...]
    prefixes: frozenset[str]
    token: int
    modification: tuple[int, int] | None
    binding: tuple[int, int] | None
    clause_end: int
    section: str

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)


@dataclass(frozen=True)
class Statement:
    """An equation, an assignment, or the head of ``if``, ``when`` or ``for``: a span of tokens."""

    begin: int
    end: int
    head: str
    in_algorithm: bool
    indices: frozenset[str]


@dataclass(eq=False)
class ClassText:
    """A class as its text declares it; ``span`` has the tokens from its first prefix to before its last semicolon."""

    name: Name
    kind: str
    parent: ClassText | None
    is_expandable: bool = False
    base: Name = ()
    base_rank: int = 0
    is_modified: bool = False
    span: tuple[int, int] = (0, 0)
    components: dict[str, Component] = field(default_factory=dict)
    extends: list[tuple[Name, tuple[int, int] | None]] = field(default_factory=list)
    named_imports: dict[str, Name] = field(default_factory=dict)
    open_imports: list[Name] = field(default_factory=list)
    classes: dict[str, ClassText] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)

    @property
    def top(self) -> ClassText:
        """The outermost class around it in its file."""
        return self if self.parent is None else self.parent.top

    def list_all(self) -> Iterator[ClassText]:
        """Yield the class and those inside of it."""
        yield self
        for inner in self.classes.values():
            yield from inner.list_all()


class _Reader:
    """Reads classes from tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.place = 0
        self.loops: list[frozenset[str]] = []  # the indices of the loops around an equation

    def word(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.tokens[place].text if place < len(self.tokens) else ""

    def read_name(self) -> Name:
        parts = []
        if self.word() == ".":
            self.place += 1
        while self.place < len(self.tokens):
            parts.append(self.word())
            self.place += 1
            if self.word() != "." or self.word(1) in {"*", "{"}:
                break
            self.place += 1
        return tuple(parts)

    def read_file(self) -> list[ClassText]:
        within: Name = ()
        if self.word() == "within":
            self.place += 1
            within = () if self.word() == ";" else self.read_name()
            self.place += 1
        found = []
        while self.place < len(self.tokens):
            if self.begins_class():
                found.append(self.read_class(None, within))
            self.place += 1
        return found

    def begins_class(self) -> bool:
        ahead = 0
        while self.word(ahead) in _CLASS_PREFIXES:
            ahead += 1
        return self.word(ahead) in _CLASS_KEYWORDS

    def read_class(self, parent: ClassText | None, within: Name) -> ClassText:
        """Read from the prefixes of a class to its last semicolon."""
        begin = self.place
        is_expandable = False
        while self.word() in _CLASS_PREFIXES:
            is_expandable = is_expandable or self.word() == "expandable"
            self.place += 1
        kind = self.word()
        self.place += 1
        if kind == "operator" and self.word() in {"record", "function"}:
            kind = self.word()
            self.place += 1
        inherits = self.word() == "extends"
        if inherits:
            self.place += 1
        name = self.word()
        self.place += 1
        found = ClassText((*within, name), kind, parent, is_expandable=is_expandable)
        if inherits:
            found.extends.append(((name,), None))
        if self.word() == "=":
            self.place += 1
            while self.word() in {"input", "output", "flow", "stream", "constant", "parameter", "discrete"}:
                self.place += 1
            found.base = self.read_name()
            found.base_rank = len(self.read_sizes())
            found.is_modified = self.word() == "("
            self.place = skip_to(self.tokens, self.place, {";"})
            found.span = (begin, self.place)
            return found
        if self.word() == "(":
            self.place = find_closing(self.tokens, self.place) + 1
        self.read_body(found)
        found.span = (begin, self.place)
        return found

    def read_sizes(self) -> tuple[tuple[Token, ...], ...]:
        """Read the dimensions of a type or component."""
        if self.word() != "[":
            return ()
        end = find_closing(self.tokens, self.place)
        sizes = split_list(self.tokens[self.place + 1 : end])
        self.place = end + 1
        return tuple(map(tuple, sizes))

    def read_body(self, found: ClassText) -> None:
        section = "public"
        in_equations = in_algorithm = False
        while self.place < len(self.tokens):
            word = self.word()
            if word == "end" and self.word(1) not in {"if", "for", "when", "while"}:
                self.place = skip_to(self.tokens, self.place, {";"})
                return
            if word in {"public", "protected"}:
                section, in_equations = word, False
                self.place += 1
            elif word in _SECTIONS or (word == "initial" and self.word(1) in _SECTIONS):
                self.place += 1 + (word == "initial")
                in_equations, in_algorithm = True, self.tokens[self.place - 1].text == "algorithm"
            elif self.tokens[self.place].kind == "string":
                self.place += 1
            elif word in {"annotation", "external"}:
                self.place = skip_to(self.tokens, self.place, {";"}) + 1
            elif in_equations:
                self.read_statement(found, in_algorithm=in_algorithm)
            elif word == "import":
                self.read_import(found)
            elif word == "extends":
                self.place += 1
                base = self.read_name()
                span = (self.place, find_closing(self.tokens, self.place)) if self.word() == "(" else None
                found.extends.append((base, span))
                self.place = skip_to(self.tokens, self.place, {";"}) + 1
            elif self.begins_class():
                inner = self.read_class(found, found.name)
                found.classes[inner.name[-1]] = inner
                self.place = skip_to(self.tokens, self.place, {";"}) + 1  # behind constrainedby as well
            else:
                self.read_clause(found, section)

    def read_import(self, found: ClassText) -> None:
        self.place += 1
        alias = ""
        if self.word(1) == "=":
            alias = self.word()
            self.place += 2
        name = self.read_name()
        if self.word() in {".*", "."} and self.word(1) != "{":
            found.open_imports.append(name)
        elif self.word() == ".":
            end = find_closing(self.tokens, self.place + 1)
            inner = [token.text for token in self.tokens[self.place + 2 : end] if token.kind == "name"]
            found.named_imports |= {part: (*name, part) for part in inner}
        else:
            found.named_imports[alias or name[-1]] = name
        self.place = skip_to(self.tokens, self.place, {";"}) + 1

    def read_clause(self, found: ClassText, section: str) -> None:
        """Read ``parameter Real a[2](start = 1) = 3, b;``."""
        prefixes = set()
        while self.word() in _COMPONENT_PREFIXES:
            prefixes.add(self.word())
            self.place += 1
        type_name = self.read_name()
        type_sizes = self.read_sizes()
        end = skip_to(self.tokens, self.place, {";"})
        while self.place < end:
            token = self.place
            name = self.word()
            self.place += 1
            sizes = (*self.read_sizes(), *type_sizes)
            modification = binding = None
            if self.word() == "(":
                modification = (self.place, find_closing(self.tokens, self.place))
                self.place = modification[1] + 1
            if self.word() in {"=", ":="}:
                begin = self.place
                self.place = _find_end_of_binding(self.tokens, begin, end)
                binding = (begin, self.place)
            found.components[name] = Component(
                name, type_name, sizes, frozenset(prefixes), token, modification, binding, end, section
            )
            self.place = skip_to(self.tokens, self.place, {",", ";"}) + 1
        self.place = end + 1

    def read_statement(self, found: ClassText, *, in_algorithm: bool) -> None:
        word = self.word()
        begin = self.place
        if word in _CONTROL:
            end = _find_end_of_head(self.tokens, begin, _CONTROL[word])
            found.statements.append(Statement(begin + 1, end, word, in_algorithm, frozenset().union(*self.loops)))
            if word == "for":
                words = self.tokens[begin:end]
                indices = {a.text for a, b in pairwise(words) if b.text == "in"}
                self.loops.append(frozenset(indices))
            self.place = end + 1
        elif word == "else":
            self.place += 1
        else:
            end = skip_to(self.tokens, begin, {";"})
            stop = begin
            while stop < end and not (self.tokens[stop].text == "annotation" or _is_description(self.tokens, stop)):
                stop += 1
            if word != "end":
                found.statements.append(Statement(begin, stop, "", in_algorithm, frozenset().union(*self.loops)))
            elif self.word(1) == "for" and self.loops:
                self.loops.pop()
            self.place = end + 1


def _is_description(tokens: list[Token], place: int) -> bool:
    """Whether a string stands behind an operand, where only the description of an element does."""
    before = tokens[place - 1]
    return tokens[place].kind == "string" and before.text not in _OPERATORS | _WORDS_BEFORE_OPERANDS


def _find_end_of_binding(tokens: list[Token], begin: int, end: int) -> int:
    """Return the place behind the value of a declaration: a comma, a condition, a description, or the end."""
    place = begin + 1
    while place < end:
        word = tokens[place].text
        if word in {"(", "[", "{"}:
            place = find_closing(tokens, place)
        elif word in {",", "annotation", "constrainedby"} or _is_description(tokens, place):
            break
        if word == "if" and tokens[place - 1].text not in _OPERATORS | _WORDS_BEFORE_OPERANDS:
            break
        place += 1
    return min(place, end)


def _find_end_of_head(tokens: list[Token], begin: int, word: str) -> int:
    """Return the place of the ``then`` or ``loop`` of a statement; conditional expressions have a ``then`` as well."""
    depth = 0
    for place in range(begin + 1, len(tokens)):
        depth += tokens[place].text == "if"
        if tokens[place].text == word:
            if depth == 0 or word == "loop":
                return place
            depth -= 1
    return len(tokens)


@cache  # until the front end has answered: several tables of classes read the same files
def read_classes(text: str) -> tuple[list[Token], list[ClassText]]:
    """Return the tokens of a file and the classes in it."""
    tokens = read_tokens(text)
    return tokens, _Reader(tokens).read_file()
