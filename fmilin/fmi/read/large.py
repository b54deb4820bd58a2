"""Large model descriptions: variables are scanned for, and read one by one when they are asked for.

A tree of a million takes gigabytes, of which a linear model needs a few dozen. A search leads to the element, since a
``<`` can only begin one there; texts for which this does not hold (comments, CDATA, annotations inside variables,
another encoding than UTF-8) are read as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError
from fmilin.fmi.read.description import Variable, Variables

K = TypeVar("K")
V = TypeVar("V")

_OPENINGS = {
    "2": re.compile(rb"<ScalarVariable\s"),
    "3": re.compile(rb"<(?:Float(?:64|32)|U?Int(?:8|16|32|64)|Boolean|String|Binary|Enumeration|Clock)\s"),
}
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*encoding\s*=\s*["']([^"']+)["']""")
_VERSION = re.compile(rb"""<fmiModelDescription[^>]*\sfmiVersion\s*=\s*["']\s*(\d)""")
_COMMON = frozenset({"local", "parameter", "calculatedParameter"})
_MARKS = ((b"!", b"<!"), (b"?", b"<?"))
_REFERENCE = re.compile(rb'valueReference="(\d{1,18})"')
_DIMENSION = re.compile(rb"<Dimension\s")
_NAME = re.compile(rb"""\sname\s*=\s*["']([^"'<>]*)["']""")


def cut(xml: bytes) -> tuple[bytes, Scanned] | None:
    """Return the text without its variables, and the variables; None when it has to be read as a whole."""
    encoding = _ENCODING.match(xml[:1000])
    version = _VERSION.search(xml[:100_000])
    if encoding is not None and encoding[1].lower() not in (b"utf-8", b"us-ascii", b"ascii"):
        return None
    if version is None or version[1].decode() not in _OPENINGS:
        return None
    begin = xml.find(b"<ModelVariables>") + len(b"<ModelVariables>")
    end = xml.rfind(b"</ModelVariables>")
    if not len(b"<ModelVariables>") <= begin <= end:
        return None
    # A single character is found ten times faster than a word, and these are rare.
    suspicious = [mark for sign, mark in _MARKS if xml.find(sign, begin, end) >= 0]
    if any(xml.find(mark, begin, end) >= 0 for mark in (*suspicious, b"<Annotations")):
        return None
    return xml[:begin] + xml[end:], Scanned(xml, begin, end, _OPENINGS[version[1].decode()])


class Scanned(Variables):
    """The variables of a large description, each read when it is asked for; ``opening`` matches where each begins."""

    is_large = True

    def __init__(self, xml: bytes, begin: int, end: int, opening: re.Pattern[bytes]) -> None:
        self._xml, self._begin, self._end, self._opening = xml, begin, end, opening
        self._read: Callable[[Any], Variable | None] = lambda _: None
        self._cache: dict[int, Variable | None] = {}
        self._names: list[str] = []
        self.negatives = {}  # descriptions of FMI 1.0 are read whole

    def set_reader(self, read: Callable[[Any], Variable | None]) -> None:
        """Say how an element becomes a variable; None where it is too broken."""
        self._read = read

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]

    def __iter__(self) -> Iterator[Variable]:
        return self._read_elements(range(len(self)))

    def at(self, index: int) -> Variable | None:
        """Return element number ``index`` of FMI 2.0, counted from 0; None where it is too broken or there is none."""
        return self._variable(index) if 0 <= index < len(self) else None

    def with_causality(self, *causalities: str) -> Iterator[Variable]:
        """Yield the variables of these causalities, none of which is ``local``, in order."""
        variables = (
            self._rare if _COMMON.isdisjoint(causalities) else self._exclude_causalities(_COMMON - set(causalities))
        )
        return (v for v in variables if v.causality in causalities)

    @cached_property
    def _rare(self) -> tuple[Variable, ...]:
        """Inputs, outputs, time and structural parameters: all that is neither local nor a plain parameter."""
        return tuple(v for v in self._exclude_causalities(_COMMON) if v.causality not in _COMMON)

    def _exclude_causalities(self, unwanted: AbstractSet[str]) -> Iterator[Variable]:
        """Yield what is not plainly of these causalities: unusual ways of writing included."""
        alternatives = b"|".join(sorted(c.encode() for c in unwanted))
        return self._containing(re.compile(rb'causality(?!="(?:' + alternatives + rb')")'))

    def _containing(self, pattern: re.Pattern[bytes]) -> Iterator[Variable]:
        """Yield the variables with a match in their elements."""
        matches = pattern.finditer(self._xml, self._begin, self._end)
        return self._read_elements(dict.fromkeys(self._find_element(match.start()) for match in matches))

    def _read_elements(self, numbers: Iterable[int]) -> Iterator[Variable]:
        return (v for v in map(self._variable, numbers) if v is not None)

    def number_with_causality(self, causality: str) -> int:
        """Return how many variables have this causality, as such files are usually written."""
        return self._xml.count(f'causality="{causality}"'.encode(), self._begin, self._end)

    def count_elements(self, element: str) -> int:
        """Return how many elements of this name there are."""
        return self._xml.count(f"<{element} ".encode(), self._begin, self._end)

    def with_dimensions(self) -> Iterator[Variable]:
        """Yield the arrays, which FMI 2.0 does not have."""
        return iter(()) if self._opening is _OPENINGS["2"] else self._containing(_DIMENSION)

    def with_reference(self, reference: int) -> list[Variable]:
        """Return the variables with this value reference, in order."""
        numbers: Iterable[int] = range(len(self))
        if self._references is not None:
            positions, references = self._references
            numbers = dict.fromkeys(map(self._find_element, positions[references == reference].tolist()))
        return [v for v in self._read_elements(numbers) if v.reference == reference]  # a dimension's is another's

    def named(self, name: str) -> Variable | None:
        """Return the variable, or the one with an alias, of this name, or None."""
        from html import escape

        plain = escape(name, quote=False)
        ways = plain, plain.replace("&gt;", ">"), plain.replace('"', "&quot;").replace("'", "&apos;")
        texts = [way.replace('"', "&quot;") for way in ways], [way.replace("'", "&apos;") for way in ways]
        for text in dict.fromkeys(
            f"name={q}{way}{q}" for q, variants in zip("\"'", texts, strict=True) for way in variants
        ):
            encoded = text.encode("utf-8", "replace")
            at = self._xml.find(encoded, self._begin, self._end)
            while at >= 0:
                variable = self._variable(self._find_element(at))
                if variable is not None and name in (variable.name, *variable.aliases):
                    return variable
                at = self._xml.find(encoded, at + 1, self._end)
        return None

    def names(self) -> list[str]:
        """Return the names of all variables and aliases as they are usually written: for suggestions."""
        if not self._names:
            from html import unescape  # its table of entities takes a millisecond to make

            names = _NAME.findall(self._xml, self._begin, self._end)
            self._names = [unescape(name.decode("utf-8", "replace")) for name in names]
        return self._names

    @property
    def by_reference(self) -> Mapping[int, Variable]:
        """The first variable of each value reference."""
        return _Lookup(lambda r: next(iter(self.with_reference(r)), None), self._distinct_references)

    @property
    def rates(self) -> Mapping[int, Variable]:
        """The variable of each value reference, one that says to be a derivative before others."""

        def rate(reference: int) -> Variable | None:
            variables = self.with_reference(reference)
            return next((v for v in reversed(variables) if v.derivative_of is not None), next(iter(variables), None))

        return _Lookup(rate, self._distinct_references)

    @property
    def by_name(self) -> Mapping[str, Variable]:
        """Every variable by its name or by the name of an alias element."""
        return _Lookup(self.named, self.names)

    @property
    def float_names(self) -> Mapping[int, tuple[str, ...]]:
        """All names of the floating-point quantity behind a value reference."""

        def names(reference: int) -> tuple[str, ...]:
            return tuple(n for v in self.with_reference(reference) if v.is_float for n in (v.name, *v.aliases))

        return _Lookup(names, lambda: dict.fromkeys(v.reference for v in self if v.is_float))

    def _distinct_references(self) -> Iterable[int]:
        return dict.fromkeys(v.reference for v in self)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where each element begins, and the end."""
        starts = (match.start() for match in self._opening.finditer(self._xml, self._begin, self._end))
        return np.fromiter((*starts, self._end), dtype=np.int64)

    @cached_property
    def _references(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Where value references are written, and these; None when some are written in an unusual way."""
        matches = _REFERENCE.finditer(self._xml, self._begin, self._end)
        positions, references = np.array([(m.start(), int(m[1])) for m in matches], dtype=np.int64).reshape(-1, 2).T
        usual = len(positions) == self._xml.count(b"valueReference", self._begin, self._end)
        return (positions, references) if usual else None

    def _find_element(self, position: int) -> int:
        """Return which variable contains ``position``, maybe in one of its children."""
        return int(np.searchsorted(self._starts, position, side="right")) - 1

    def _variable(self, number: int) -> Variable | None:
        if number not in self._cache:
            self._cache[number] = self._parsed(*self._starts[number : number + 2].tolist()) if number >= 0 else None
        return self._cache[number]

    def _parsed(self, start: int, end: int) -> Variable | None:
        from lxml import etree

        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        text = self._xml[start:end]
        try:
            element = etree.fromstring(text, parser)
        except etree.XMLSyntaxError as error:
            excerpt = text[:120].decode("utf-8", "replace")
            raise ModelError(
                f"modelDescription.xml is malformed in '{excerpt}...': {error}. Export the FMU again, or correct it."
            ) from None
        element.sourceline = 0  # counting lines would cost more than everything else
        return self._read(element)


class _Lookup(Mapping[K, V]):
    """What ``find`` searches for when it is asked for; what is false is not there."""

    def __init__(self, find: Callable[[K], V | None], keys: Callable[[], Iterable[K]]) -> None:
        self._find, self._keys = find, keys

    def __getitem__(self, key: K) -> V:
        value = self._find(key)
        if not value:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys())

    def __len__(self) -> int:
        return sum(1 for _ in self)
