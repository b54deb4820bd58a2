"""Mechanism files as texts: in which lines parts are described, and XML as other tools write it, mended, and said."""

from __future__ import annotations

import contextlib
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fmilin.errors import ConstraintError, FmilinError, ModelError, NumericalError, join_first
from fmilin.support.files import read_file

LARGEST_NUMBER = 1e100  # in any unit of a mechanism; products of a few larger ones are not numbers any more

_QUOTED = re.compile(r"'([^']+)'")


@dataclass(frozen=True)
class SourceLines:
    """Lines of the named parts of a file."""

    file: Path
    # all lines in which something of that name is described
    lines: Mapping[str, Sequence[int]] = field(default_factory=dict)
    second: SourceLines | None = None  # the same for a second file

    def wrong(self, line: int | None, what: str) -> ModelError:
        """Return the error that something is wrong in a line; ``what`` is a sentence without its full stop."""
        where = f"'{self.file}'" + (f", line {line}" if line else "")
        return ModelError(f"{where}: {what}" + ("" if what.endswith(("?", ".")) else "."))

    def of(self, message: str) -> str:
        """Return where the names that a message quotes are described: ``"'rod': line 12"``; empty when nowhere."""
        descriptions = []
        for name in dict.fromkeys(_QUOTED.findall(message)):
            numbers = sorted({n for n in self.lines.get(name, ()) if n})
            if numbers:
                word = "line" if len(numbers) == 1 else "lines"
                descriptions.append(f"'{name}': {word} {' and '.join(map(str, numbers))}")
        return join_first(descriptions, 6)

    def cite(self, message: str) -> str:
        """Return the file and the lines that a message is about, and of the second file those that it knows."""
        where = self.of(message)
        text = f"'{self.file}'" + (f" ({where})" if where else "")
        other = "" if self.second is None else self.second.of(message)
        return text if self.second is None or not other else f"{text}, '{self.second.file}' ({other})"

    @contextmanager
    def add_location(self) -> Iterator[None]:
        """Add the file and the lines to what goes wrong inside."""
        try:
            yield
        except FmilinError as error:
            text = f"{self.cite(str(error))}: {error}"
            if isinstance(error, ConstraintError):
                raise ConstraintError(text, residuals=error.residuals) from None
            if isinstance(error, NumericalError):
                raise NumericalError(text, condition_number=error.condition_number) from None
            raise ModelError(text) from None


KeyPath = tuple[str | int, ...]  # the path to a value: keys of tables, and positions in arrays (of tables, too), from 0

_TOKEN = re.compile(
    r"""(?P<gap>[ \t\r]+|\#[^\n]*)
    |"{3}(?:[^\\]|\\.)*?"{3,5}|'{3}.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'  # strings
    |[\[\]{}=,.\n]|[^\s\[\]{}=,.\#"']+""",
    re.DOTALL | re.VERBOSE,
)
_ENDS = (",", "]", "}", "\n")


@dataclass(frozen=True, slots=True)
class Lines:
    """Where the keys of a TOML text stand."""

    of: Mapping[KeyPath, int]  # line numbers, from 1

    def find(self, path: Sequence[str | int]) -> int | None:
        r"""Return the line of a value, or of the nearest table around it; None for the file itself."""
        for length in range(len(path), 0, -1):
            line = self.of.get(tuple(path[:length]))
            if line is not None:
                return line
        return None


def find_lines(text: str) -> Lines:
    r"""Return where every key of a valid TOML text stands; of anything else, what could be understood."""
    scanner = _Scanner(text)
    with contextlib.suppress(ValueError, IndexError, RecursionError):  # a line helps, its absence is not an error
        scanner.document()
    return Lines(scanner.lines)


class _Scanner:
    """Reads the tokens of a text once, and notes the line of each key."""

    def __init__(self, text: str) -> None:
        matches = [match for match in _TOKEN.finditer(text) if match.lastgroup != "gap"]
        self.tokens = [*(match[0] for match in matches), "\n"]
        ends = [match.start() for match in re.finditer("\n", text)]
        self.numbers = [bisect_left(ends, match.start()) + 1 for match in matches] + [len(ends) + 1]
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self.sizes: dict[KeyPath, int] = {}

    @property
    def token(self) -> str:
        return self.tokens[self.at]

    def document(self) -> None:
        """Headers and their entries, to the end of the text."""
        table: KeyPath = ()
        self._skip("\n")
        while self.at < len(self.tokens):
            table = self._header() if self.token == "[" else self._entry(table)
            self._skip("\n")

    def _header(self) -> KeyPath:
        """Read the path that a header's keys mean: of arrays of tables around it, their last elements."""
        line, array = self.numbers[self.at], self.tokens[self.at + 1] == "["
        self._skip("[")
        path: KeyPath = ()
        keys = self._keys("]")
        for i, key in enumerate(keys, 1):
            path = (*path, key)
            if array and i == len(keys):
                self.lines.setdefault(path, line)
                self.sizes[path] = self.sizes.get(path, 0) + 1
            if path in self.sizes:
                path = (*path, self.sizes[path] - 1)
        self._skip("]")
        self.lines[path] = line
        return path

    def _entry(self, table: KeyPath) -> KeyPath:
        """Read a key and its value; return the table that they are in."""
        line, path = self.numbers[self.at], table
        for key in self._keys("="):
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._value(path)
        return table

    def _value(self, path: KeyPath) -> None:
        if self.token in ("[", "{"):
            self._sequence(path)
        elif self.token in _ENDS:
            raise ValueError(self.at)
        else:
            while self.token not in _ENDS:
                self.at += 1

    def _sequence(self, path: KeyPath) -> None:
        """Read the elements of an array, or the entries of an inline table."""
        array, count = self.token == "[", 0
        self.at += 1
        self._skip("\n")
        while self.token != ("]" if array else "}"):
            if array:
                self.lines[*path, count] = self.numbers[self.at]
                self._value((*path, count))
                count += 1
            else:
                self._entry(path)
            self._skip("\n", ",")
        self.at += 1

    def _keys(self, end: str) -> list[str]:
        """Read a dotted key, and the token after it."""
        first, self.at = self.at, self.tokens.index(end, self.at) + 1
        keys = (key for key in self.tokens[first : self.at - 1] if key != ".")
        return [tomllib.loads(f"key = {key}")["key"] if key[0] in "\"'" else key for key in keys]

    def _skip(self, *tokens: str) -> None:
        while self.at < len(self.tokens) and self.token in tokens:
            self.at += 1


_DECLARATION = re.compile(rb"<\?xml(?=\s)([^>]*)\?>")
_MAX_HEADER_BYTES = 4096  # bytes in which a declaration may stand
_BEFORE = re.compile(rb"\s*(?:<!--.*?-->\s*)*", re.DOTALL)  # what may stand before it
_FIRST_COUNTS = {"link": ("inertial",), "inertial": ("origin", "mass", "inertia"), "joint": ("origin", "axis", "dynamics", "mimic")}  # noqa: E501  # fmt: skip
_PRODUCTS = ("ixy", "ixz", "iyz")


def read_xml_root(path: Path, kind: str, mended: list[str], *, is_lenient: bool = False) -> Any:
    """Return the root element of a file of a ``kind``, "URDF" or "SDFormat"; ``mended`` says what was not quite XML.

    A lenient reader accepts prefixes of names without a declaration, and ``--`` in comments, as TinyXML does.
    """
    from lxml import etree

    settings: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False,
                                "remove_comments": True, "remove_pis": True}  # fmt: skip
    try:
        content = _move_declaration_first(read_file(path), mended)
    except OSError as error:
        raise ModelError(
            f"The {kind} file '{path}' cannot be read: {error.strerror or error}. Check the path and its permissions."
        ) from None
    parser = etree.XMLParser(**settings)
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        harmless = {etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE, etree.ErrorTypes.ERR_HYPHEN_IN_COMMENT}
        if is_lenient and all(entry.type in harmless for entry in parser.error_log):
            return etree.fromstring(content, etree.XMLParser(recover=True, **settings))
        what = " ".join(str(error.msg).split()).replace(" ,", ",")
        raise ModelError(
            f"The {kind} file '{path}' is not well-formed XML: {what}. Correct the file at this line."
        ) from None


def read_repaired_root(path: Path) -> tuple[Any, tuple[str, ...]]:
    """Return the root element of a URDF file, and what had to be mended in it, in words."""
    mended: list[str] = []
    root = read_xml_root(path, "URDF", mended)
    _without_namespace(root, mended)
    for element in root.iter(*_FIRST_COUNTS):
        _keep_first(element, mended)
    for inertia in root.iterfind("link/inertial/inertia"):
        _complete(inertia, mended)
    return root, tuple(mended)


def _move_declaration_first(content: bytes, mended: list[str]) -> bytes:
    """Return a file that begins with an XML declaration of version 1.0; lines keep their numbers."""
    declaration = _DECLARATION.search(content[:_MAX_HEADER_BYTES])
    if declaration is None:
        return content
    before = content[: declaration.start()].removeprefix(b"\xef\xbb\xbf")
    version = re.search(rb"""version\s*=\s*["']([^"']*)""", declaration[1])
    right = version is not None and version[1].startswith(b"1.")
    if (right and not before) or not _BEFORE.fullmatch(before):
        return content
    if before:
        mended.append(f"the XML declaration stands on line {before.count(10) + 1}, behind other text")
    if not right:
        mended.append(
            f"the XML declaration says version {version[1].decode('ascii', 'replace') if version else 'none'}"
        )
    encoding = re.search(rb"""encoding\s*=\s*["']([\w.-]+)""", declaration[1])
    first = b'<?xml version="1.0" encoding="' + (encoding[1] if encoding else b"UTF-8") + b'"?>'
    return first + before + content[declaration.end() :]


def _without_namespace(root: Any, mended: list[str]) -> None:
    """Give the elements of the root's own namespace the names that URDF knows."""
    if not root.tag.startswith("{") or not root.tag.endswith("}robot"):
        return
    prefix = root.tag.removesuffix("robot")
    mended.append(f"<robot> has the namespace '{prefix[1:-1]}'")
    for element in root.iter(f"{prefix}*"):
        element.tag = element.tag.removeprefix(prefix)


def _keep_first(element: Any, mended: list[str]) -> None:
    """Leave the first of several elements of which one has a meaning, as the readers of robots do."""
    for tag in _FIRST_COUNTS[element.tag]:
        for again in element.findall(tag)[1:]:
            mended.append(
                f"{_describe_element(element)} has <{tag}> again in line {again.sourceline}; the first one is used"
            )
            element.remove(again)


def _complete(inertia: Any, mended: list[str]) -> None:
    """Take products of inertia that are left out for zero."""
    missing = [name for name in _PRODUCTS if inertia.get(name) is None]
    if missing:
        link = _describe_element(inertia.getparent().getparent())
        mended.append(f"{link} has no {', '.join(missing)} in line {inertia.sourceline}, taken for 0")
    for name in missing:
        inertia.set(name, "0")


def _describe_element(element: Any) -> str:
    name = element.get("name")
    return f"<{element.tag}>" if not name else f"the {element.tag} '{name}'"
