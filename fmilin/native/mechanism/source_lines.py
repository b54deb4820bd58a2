"""In which lines of a file the parts of a mechanism are described: for messages."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fmilin.ground.errors import ConstraintError, FmilinError, ModelError, NumericalError

__all__ = ["LARGEST_NUMBER", "KeyPath", "Lines", "SourceLines", "lines_of"]


LARGEST_NUMBER = 1e100
"""In any unit of a mechanism; products of a few larger ones are no numbers any more."""

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
        return ", ".join(descriptions[:6])

    def cited(self, message: str) -> str:
        """Return the file and the lines that a message is about, and of the second file those that it knows."""
        where = self.of(message)
        text = f"'{self.file}'" + (f" ({where})" if where else "")
        other = "" if self.second is None else self.second.of(message)
        return text if self.second is None or not other else f"{text}, '{self.second.file}' ({other})"

    @contextmanager
    def named(self) -> Iterator[None]:
        """Add the file and the lines to what goes wrong inside."""
        try:
            yield
        except FmilinError as error:
            text = f"{self.cited(str(error))}: {error}"
            if isinstance(error, ConstraintError):
                raise ConstraintError(text, residuals=error.residuals) from None
            if isinstance(error, NumericalError):
                raise NumericalError(text, condition_number=error.condition_number) from None
            raise ModelError(text) from None


KeyPath = tuple[str | int, ...]
"""The path to a value: keys of tables, and positions in arrays (of tables, too), from 0."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_STRING = re.compile(r'"{3}(?:[^\\]|\\.)*?"{3,5}|\'{3}.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}#][^,\]}#\n]*")


@dataclass(frozen=True, slots=True)
class Lines:
    """Where the keys of a TOML text stand."""

    of: Mapping[KeyPath, int]  # line numbers, from 1

    def find(self, path: Sequence[str | int]) -> int | None:
        r"""Return the line of a value, or of the nearest table around it; None for the file itself.

        >>> lines_of("[[body]]\nmass = 1").find(("body", 0, "inertia"))
        1
        """
        for length in range(len(path), 0, -1):
            line = self.of.get(tuple(path[:length]))
            if line is not None:
                return line
        return None


def lines_of(text: str) -> Lines:
    r"""Return where every key of a TOML text stands.

    ``text``: valid TOML: read it with ``tomllib`` first. Of anything else, what could be understood is returned.

    >>> lines = lines_of('[[body]]\nmass = 1\n[[body]]\nname = "rod"\ninertia = {xx = 1,\n  yy = 2}')
    >>> lines.of["body", 1, "name"], lines.of["body", 1, "inertia", "yy"]
    (4, 6)
    """
    scanner = _Scanner(text)
    with contextlib.suppress(ValueError, RecursionError):  # a line helps in a message, its absence is no error
        scanner.document()
    return Lines(scanner.lines)


class _Scanner:
    """Walks through the text once, and notes the line of each key."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.counted, self.line = 0, 1
        self.lines: dict[KeyPath, int] = {}
        self.sizes: dict[KeyPath, int] = {}

    def document(self) -> None:
        """Headers and their entries, to the end of the text."""
        table: KeyPath = ()
        self._blank()
        while self.at < len(self.text):
            if self._peek("["):
                table = self._header()
            else:
                self._entry(table)
            self._blank()

    def _header(self) -> KeyPath:
        array = self.text.startswith("[[", self.at)
        line = self._line()
        self.at += 2 if array else 1
        *outer, last = self._keys()
        self._take("]]" if array else "]")
        path = self._resolved(tuple(outer))
        path = (*path, last) if array else self._resolved((*outer, last))
        if array:
            self.lines.setdefault(path, line)
            path = self._next_element(path)
        self.lines[path] = line
        return path

    def _resolved(self, keys: Sequence[str | int]) -> KeyPath:
        """Return the path that a header's keys mean: of an array of tables, its last element."""
        path: KeyPath = ()
        for key in keys:
            path = (*path, key)
            if path in self.sizes:
                path = (*path, self.sizes[path] - 1)
        return path

    def _next_element(self, array: KeyPath) -> KeyPath:
        self.sizes[array] = self.sizes.get(array, 0) + 1
        return (*array, self.sizes[array] - 1)

    def _entry(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for key in self._keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._take("=")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._blank()
        if self._peek("["):
            self._sequence(path, "[", "]")
        elif self._peek("{"):
            self._sequence(path, "{", "}")
        else:
            match = _STRING.match(self.text, self.at) or _SCALAR.match(self.text, self.at)
            if match is None:
                raise ValueError(self.at)
            self.at = match.end()

    def _sequence(self, path: KeyPath, opening: str, closing: str) -> None:
        """Read the elements of an array, or the entries of an inline table."""
        self._take(opening)
        count = 0
        self._blank()
        while not self._peek(closing):
            if opening == "[":
                self.lines[*path, count] = self._line()
                self._value((*path, count))
                count += 1
            else:
                self._entry(path)
            self._blank()
            if self._peek(","):
                self.at += 1
                self._blank()
        self.at += 1

    def _keys(self) -> list[str | int]:
        """Read a dotted key."""
        keys: list[str | int] = []
        while True:
            self._spaces()
            match = _KEY.match(self.text, self.at)
            if match is None:
                raise ValueError(self.at)
            self.at = match.end()
            keys.append(_plain(match[0]))
            self._spaces()
            if not self._peek("."):
                return keys
            self.at += 1

    def _take(self, expected: str) -> None:
        self._blank()
        if not self.text.startswith(expected, self.at):
            raise ValueError(self.at)
        self.at += len(expected)

    def _peek(self, expected: str) -> bool:
        return self.text.startswith(expected, self.at)

    def _blank(self) -> None:
        match = _BLANK.match(self.text, self.at)
        self.at = self.at if match is None else match.end()

    def _spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def _line(self) -> int:
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line


def _plain(key: str) -> str:
    if key[0] not in "\"'":
        return key
    value: str = tomllib.loads(f"key = {key}")["key"]
    return value
