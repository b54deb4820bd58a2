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

LARGEST_NUMBER = 1e100  # in any unit of a mechanism; products of a few larger ones are no numbers any more

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
    r"""Return where every key of a valid TOML text stands; of anything else, what could be understood.

    >>> lines = lines_of('[[body]]\nmass = 1\n[[body]]\nname = "rod"\ninertia = {xx = 1,\n  yy = 2}')
    >>> lines.of["body", 1, "name"], lines.of["body", 1, "inertia", "yy"]
    (4, 6)
    """
    scanner = _Scanner(text)
    with contextlib.suppress(ValueError, IndexError, RecursionError):  # a line helps, its absence is no error
        scanner.document()
    return Lines(scanner.lines)


class _Scanner:
    """Reads the tokens of a text once, and notes the line of each key."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, int]] = []  # with their lines
        line = 1
        for match in _TOKEN.finditer(text):
            if match.lastgroup != "gap":
                self.tokens.append((match[0], line))
            line += match[0].count("\n")
        self.tokens.append(("\n", line))
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self.sizes: dict[KeyPath, int] = {}

    @property
    def token(self) -> str:
        return self.tokens[self.at][0]

    @property
    def line(self) -> int:
        return self.tokens[self.at][1]

    def document(self) -> None:
        """Headers and their entries, to the end of the text."""
        table: KeyPath = ()
        self._skip("\n")
        while self.at < len(self.tokens):
            if self.token == "[":
                table = self._header()
            else:
                self._entry(table)
            self._skip("\n")

    def _header(self) -> KeyPath:
        line, array = self.line, self.tokens[self.at + 1][0] == "["
        self._skip("[")
        *outer, last = self._keys("]")
        self._skip("]")
        path = self._resolved(tuple(outer))
        path = (*path, last) if array else self._resolved((*outer, last))
        if array:
            self.lines.setdefault(path, line)
            self.sizes[path] = self.sizes.get(path, 0) + 1
            path = (*path, self.sizes[path] - 1)
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

    def _entry(self, table: KeyPath) -> None:
        line, path = self.line, table
        for key in self._keys("="):
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self.token in ("[", "{"):
            self._sequence(path)
        elif self.token in _ENDS:
            raise ValueError(self.line)
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
                self.lines[*path, count] = self.line
                self._value((*path, count))
                count += 1
            else:
                self._entry(path)
            self._skip("\n", ",")
        self.at += 1

    def _keys(self, end: str) -> list[str]:
        """Read a dotted key, and the token after it."""
        keys = []
        while self.token != end:
            if self.token != ".":
                keys.append(_plain(self.token))
            self.at += 1
        self.at += 1
        return keys

    def _skip(self, *tokens: str) -> None:
        while self.at < len(self.tokens) and self.token in tokens:
            self.at += 1


def _plain(key: str) -> str:
    if key[0] not in "\"'":
        return key
    value: str = tomllib.loads(f"key = {key}")["key"]
    return value
