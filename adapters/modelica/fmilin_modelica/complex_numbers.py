"""Complex numbers as pairs of real ones, in the texts that the front end reads.

The front end miscounts equations between operators of ``Complex``, and does not find complex variables in the
arguments of functions. Every equation, binding and modification with a complex value becomes two with real ones:
``v = Z*i`` becomes ``v.re = Z.re*i.re - Z.im*i.im; v.im = ...`` in the same lines. For that the types of the variables
are looked up in the classes that declare them. Where a statement has something that is not written out, such as a
function that returns a complex number, it stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from fmilin_modelica.class_reader import ClassText, Component, Statement
from fmilin_modelica.class_table import ClassTable
from fmilin_modelica.complex_arithmetic import NotExpandedError, Value, write_parts
from fmilin_modelica.complex_expressions import Reference, Types, parse_expression
from fmilin_modelica.rewriting import edit_text
from fmilin_modelica.tokens import Token, find_closing, skip_to, split_list
from fmilin_modelica.used_classes import list_classes_of_model

__all__ = ["write_complex_as_real"]

COMPLEX = "Complex"
_DECLARED = re.compile(r"\bComplex\w*\s+(?!in\b)[a-zA-Z_]\w*\s*[\[(;,=\"]|=\s*[\w.]*\bComplex\w*\s*[(;]")
_LIBRARY = re.compile(r"(?:^|/)(?:Complex\.mo|ComplexMath(?:/|\.mo)|Units/)")


def write_complex_as_real(files: Mapping[str, str], text: str, model: str | None) -> Callable[[str], str]:
    """Return the function that writes the complex numbers in a text as pairs of real ones.

    Parameters
    ----------
    files : mapping of str to str
        Texts of the libraries that the model needs, by their places.
    text : str
        The text with the model, or with a part of it.
    model : str or None
        The name of the model; None for the one in the text. Where it uses no complex numbers, the function changes
        nothing.
    """
    candidates = [text, *(file for place, file in files.items() if not _LIBRARY.search(place))]
    if not any(_DECLARED.search(candidate) for candidate in candidates):
        return str
    numbers = ComplexNumbers(files, text, model)
    return numbers.rewrite if numbers.is_needed else str


def _is_standard(found: ClassText) -> bool:
    """Whether a class belongs to the definition of complex numbers."""
    return found.name[:1] == (COMPLEX,) or found.name[:2] in {("Modelica", "ComplexMath"), ("Modelica", "Units")}


class _Scope:
    """What names stand for inside of a class."""

    def __init__(self, table: ClassTable, found: ClassText) -> None:
        self.table = table
        self.found = found
        self.indices: frozenset[str] = frozenset()  # of the loops around an equation

    def is_complex(self, found: ClassText | None, depth: int = 0) -> bool:
        """Whether a class is Complex, or one that is defined as it."""
        while found is not None and found.base and depth < 5:
            found, depth = self.table.find_base(found.base, found), depth + 1
        return found is not None and found.name == (COMPLEX,)

    def find_class(self, component: Component, owner: ClassText) -> tuple[ClassText | None, int]:
        """Return the class of a component, and its number of dimensions."""
        found = self.table.find_type(component.type_name, owner)
        return found, component.rank + (0 if found is None else found.base_rank)

    def find_reference(self, parts: Reference) -> tuple[bool, int]:
        """Return whether a reference is complex, and the number of its dimensions."""
        name, selected = parts[0]
        if name in self.indices:
            return False, 0
        scope: ClassText | None = self.found
        component = None
        while scope is not None and component is None:
            component = self.table.find_component(name, scope)
            if component is None and name in scope.named_imports:
                return self.is_imaginary_unit(parts), 0
            scope = self.table.find_parent(scope)
        if component is None:
            return self.is_imaginary_unit(parts), 0
        kind, rank = self.find_class(*component)
        rank -= selected
        for name, selected in parts[1:]:
            component = None if kind is None else self.table.find_component(name, kind)
            if component is None:
                return False, max(rank, 0)
            kind, further = self.find_class(*component)
            rank += further - selected
        return self.is_complex(kind), max(rank, 0)

    def is_imaginary_unit(self, parts: Reference) -> bool:
        """Whether a reference is ``Modelica.ComplexMath.j``, imported or not: ``CM.j`` with ``import CM = ...``."""
        names = tuple(part for part, _ in parts)
        scope: ClassText | None = self.found
        while scope is not None:
            if self.table.find_component(names[0], scope) is not None:
                return False
            if names[0] in scope.named_imports:
                names = (*scope.named_imports[names[0]], *names[1:])
                break
            scope = self.table.find_parent(scope)
        return names[-2:] == ("ComplexMath", "j")

    def is_constructor(self, function: str) -> bool:
        """Whether a call makes a complex number of two real ones."""
        name = tuple(function.lstrip(".").split("."))
        return name == (COMPLEX,) or self.is_complex(self.table.find_type(name, self.found))

    def returns_complex(self, function: str) -> bool:
        """Whether a function returns a complex number."""
        found = self.table.find_type(tuple(function.lstrip(".").split(".")), self.found)
        if found is None or found.kind != "function":
            return False
        outputs = [component for component in found.components.values() if "output" in component.prefixes]
        return any(self.is_complex(self.find_class(output, found)[0]) for output in outputs)

    def inline_function(self, function: str, arguments: Sequence[Sequence[Token]]) -> tuple[list[Token], Types] | None:
        """Return the expression of a function of complex variables, of which the algorithm is one assignment."""
        if not any(self.is_complex_variable(argument) for argument in arguments):
            return None
        found = self.table.find_type(tuple(function.lstrip(".").split(".")), self.found)
        if found is None or found.kind != "function" or len(found.statements) != 1 or _is_standard(found):
            return None
        tokens, _ = self.table.read_text(self.table.find_text(found))
        statement = found.statements[0]
        sign = skip_to(tokens, statement.begin, {":="})
        inputs = [c.name for c in found.components.values() if "input" in c.prefixes]
        if sign >= statement.end or len(inputs) != len(arguments):
            return None
        values = dict(zip(inputs, arguments, strict=True))
        body = tokens[sign + 1 : statement.end]
        for component in found.components.values():
            if component.binding is not None and "input" not in component.prefixes:
                begin, end = component.binding
                inner = _substitute(tokens[begin + 1 : end], values)
                values[component.name] = [tokens[begin]._replace(text="("), *inner, tokens[begin]._replace(text=")")]
        written = self.write_sizes(_substitute(body, values))
        return written, _InlinedScope(self, _Scope(self.table, found))

    def is_complex_variable(self, tokens: Sequence[Token]) -> bool:
        """Whether tokens are ``v`` or ``sensor.v``, a complex variable or array that is not selected from others."""
        names = [token.text for token in tokens[::2]]
        if len(tokens) % 2 == 0 or any(token.text != "." for token in tokens[1::2]):
            return False
        parts = [(name, 0) for name in names]
        has_arrays = len(parts) > 1 and self.find_reference(parts[:-1])[1] > 0
        return not has_arrays and self.find_reference(parts)[0]

    def find_sizes(self, names: Sequence[str]) -> tuple[tuple[Token, ...], ...]:
        """Return the declared dimensions of a variable, written for this class."""
        component = self.table.find_component(names[0], self.found)
        for name in names[1:]:
            kind = None if component is None else self.find_class(*component)[0]
            component = None if kind is None else self.table.find_component(name, kind)
        if component is None:
            return ()
        prefix = [Token("name", text, 0, 0) for name in names[:-1] for text in (name, ".")]
        return tuple((*(prefix if size[0].kind == "name" else ()), *size) for size in component[0].sizes)

    def write_sizes(self, tokens: list[Token]) -> list[Token]:
        """Return tokens with the declared dimension ``m`` for ``size(v, 1)``, which the front end does not know."""
        written: list[Token] = []
        place = 0
        while place < len(tokens):
            end = find_closing(tokens, place + 1) if tokens[place].text == "size" else 0
            arguments = split_list(tokens[place + 2 : end])
            sizes = self.find_sizes([token.text for token in arguments[0][::2]]) if len(arguments) == 2 else ()
            axis = arguments[1][0].text if sizes else ""
            if axis.isdigit() and int(axis) <= len(sizes):
                written += sizes[int(axis) - 1]
                place = end + 1
            else:
                written.append(tokens[place])
                place += 1
        return written


class _InlinedScope:
    """Variables of the class that calls a function, with the functions that the names in that one stand for."""

    def __init__(self, caller: _Scope, function: _Scope) -> None:
        self.find_reference = caller.find_reference
        self.is_imaginary_unit = caller.is_imaginary_unit
        self.is_constructor = function.is_constructor
        self.returns_complex = function.returns_complex

    def inline_function(self, function: str, arguments: Sequence[Sequence[Token]]) -> None:
        """Return None: functions inside of functions stay."""


def _substitute(tokens: Sequence[Token], values: Mapping[str, Sequence[Token]]) -> list[Token]:
    """Return tokens with others in the place of some names."""
    written: list[Token] = []
    for token in tokens:
        is_part = bool(written) and written[-1].text == "."
        written += [token] if is_part or token.text not in values else values[token.text]
    return written


class ComplexNumbers:
    """Writes the complex numbers of a model and the libraries that it needs as pairs of real ones.

    Parameters
    ----------
    files : mapping of str to str
        Texts of libraries by their places.
    text : str
        The text with the model, or with a part of it.
    model : str or None
        The name of the model; None for the one in the text.
    """

    def __init__(self, files: Mapping[str, str], text: str, model: str | None) -> None:
        self.table = ClassTable(files, text)
        used = list_classes_of_model(self.table, text, model)
        self.is_needed = any(found.name == (COMPLEX,) for found in used)
        self.texts = {self.table.find_text(found) for found in used if not _is_standard(found)}

    def rewrite(self, text: str) -> str:
        """Return a text without operators of complex numbers; every line stays where it stands."""
        if text not in self.texts:
            return text
        tokens, classes = self.table.read_text(text)
        edits: list[tuple[int, int, str]] = []
        for top in classes:
            for found in top.list_all():
                edits += _ClassRewriter(self.table, tokens, text, found).list_edits()
        return edit_text(text, edits)


class _ClassRewriter:
    """Lists the edits of one class."""

    def __init__(self, table: ClassTable, tokens: list[Token], text: str, found: ClassText) -> None:
        self.scope = _Scope(table, found)
        self.table = table
        self.tokens = tokens
        self.text = text
        self.found = found

    def list_edits(self) -> list[tuple[int, int, str]]:
        edits = []
        for component in self.found.components.values():
            edits += self.rewrite_component(component)
        for base, span in self.found.extends:
            if span is not None:
                edits += self.rewrite_modification(*span, self.table.find_base(base, self.found))
        for statement in self.found.statements:
            self.scope.indices = statement.indices
            edits += self.rewrite_statement(statement)
        return edits

    def parse(self, begin: int, end: int) -> Value | None:
        """Return the value of an expression; None where it is not written out."""
        try:
            return parse_expression(self.tokens[begin:end], self.scope)
        except NotExpandedError:
            return None

    def replace(self, begin: int, end: int, words: str) -> tuple[int, int, str]:
        """Return the edit that puts words in the place of tokens, with the ends of lines that stood there."""
        first, last = self.tokens[begin].begin, self.tokens[end - 1].end
        return first, last, words + "\n" * self.text.count("\n", first, last)

    # ------------------------------------------------------------------ declarations

    def rewrite_component(self, component: Component) -> list[tuple[int, int, str]]:
        kind, _ = self.scope.find_class(component, self.found)
        edits = []
        if component.modification is not None:
            edits += self.rewrite_modification(*component.modification, kind)
        if component.binding is None:
            return edits
        begin, end = component.binding
        value = self.parse(begin + 1, end)
        if value is None:
            return edits
        if not self.scope.is_complex(kind):
            if value.is_changed and not value.is_complex:
                edits.append(self.replace(begin + 1, end, value.real))
            return edits
        real, imaginary = write_parts(self.shape(value, component))
        if self.found.kind in {"function", "record", "connector"}:
            return edits
        if component.prefixes & {"parameter", "constant"}:
            first = begin if component.modification is None else component.modification[0]
            return [self.replace(first, end, f"(re = {real}, im = {imaginary})")]
        name = component.name
        closing = self.tokens[component.clause_end].end
        edits.append(self.replace(begin, end, ""))
        equations = f" equation {name}.re = {real}; {name}.im = {imaginary}; {component.section}"
        edits.append((closing, closing, equations))
        return edits

    def shape(self, value: Value, component: Component) -> Value:
        return Value(value.real, value.imaginary, max(value.rank, component.rank))

    def rewrite_modification(self, begin: int, end: int, kind: ClassText | None) -> list[tuple[int, int, str]]:
        """Rewrite ``(a = 1, b(c = 2))`` of a component of a class, or of a base."""
        edits: list[tuple[int, int, str]] = []
        place = begin + 1
        while place < end:
            last = min(skip_to(self.tokens, place, {","}), end)
            edits += self.rewrite_argument(place, last, kind)
            place = last + 1
        return edits

    def rewrite_argument(self, begin: int, end: int, kind: ClassText | None) -> list[tuple[int, int, str]]:
        prefixes = ""
        while self.tokens[begin].text in {"each", "final"}:
            prefixes += f"{self.tokens[begin].text} "
            begin += 1
        if begin >= end or self.tokens[begin].text in {"redeclare", "replaceable"}:
            return []
        component = None
        place = begin
        while self.tokens[place].kind == "name":
            component = None if kind is None else self.table.find_component(self.tokens[place].text, kind)
            kind = None if component is None else self.scope.find_class(*component)[0]
            place += 1
            if self.tokens[place].text != ".":
                break
            place += 1
        edits = []
        opening = place
        if self.tokens[place].text == "(":
            closing = find_closing(self.tokens, place)
            edits += self.rewrite_modification(place, closing, kind)
            place = closing + 1
        if place >= end or self.tokens[place].text != "=":
            return edits
        stop = place + 1
        while stop < end and self.tokens[stop].kind != "string":
            stop += 1
        value = self.parse(place + 1, stop)
        if value is None:
            return edits
        if not self.scope.is_complex(kind):
            if value.is_changed and not value.is_complex:
                edits.append(self.replace(place + 1, stop, value.real))
            return edits
        real, imaginary = write_parts(value)
        return [self.replace(opening, stop, f"({prefixes}re = {real}, {prefixes}im = {imaginary})")]

    # ------------------------------------------------------------------ statements

    def rewrite_statement(self, statement: Statement) -> list[tuple[int, int, str]]:
        begin, end = statement.begin, statement.end
        if statement.head == "for" or begin >= end or self.tokens[begin].text == "connect":
            return []
        if statement.head:
            return self.rewrite_real(begin, end)
        sign = skip_to(self.tokens, begin, {"=", ":="})
        if sign >= end:
            return self.rewrite_real(begin, end)
        left, right = self.parse(begin, sign), self.parse(sign + 1, end)
        if left is None or right is None:
            return []
        if not left.is_complex and not right.is_complex:
            edits = []
            if left.is_changed:
                edits.append(self.replace(begin, sign, left.real))
            if right.is_changed:
                edits.append(self.replace(sign + 1, end, right.real))
            return edits
        rank = max(left.rank, right.rank)
        left, right = (Value(*value.parts, rank) for value in (left, right))
        if statement.in_algorithm:
            return self.rewrite_assignment(begin, sign, end, right)
        equations = [f"{a} = {b}" for a, b in zip(write_parts(left), write_parts(right), strict=True)]
        return [self.replace(begin, end, "; ".join(equations))]

    def rewrite_assignment(self, begin: int, sign: int, end: int, value: Value) -> list[tuple[int, int, str]]:
        if value.rank:
            return []
        words = f"{COMPLEX}({value.real}, {value.imaginary})"
        return [self.replace(sign + 1, end, words)] if sign > begin else []

    def rewrite_real(self, begin: int, end: int) -> list[tuple[int, int, str]]:
        value = self.parse(begin, end)
        if value is None or value.is_complex or not value.is_changed:
            return []
        return [self.replace(begin, end, value.real)]
