"""Where in a file the parts of a mechanism are described, for messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fmilin.ground.errors import ConstraintError, FmilinError, ModelError, NumericalError

__all__ = ["LARGEST_NUMBER", "Places"]

LARGEST_NUMBER = 1e100
"""In any unit of a mechanism; products of a few larger ones are no numbers any more."""

_QUOTED = re.compile(r"'([^']+)'")


@dataclass(frozen=True)
class Places:
    """Lines of the named parts of a file."""

    file: Path
    # all lines in which something of that name is described
    lines: Mapping[str, Sequence[int]] = field(default_factory=dict)
    beside: Places | None = None  # the same for a second file

    def wrong(self, line: int | None, what: str) -> ModelError:
        """Return the error that something is wrong in a line; ``what`` is a sentence without its full stop."""
        place = f"'{self.file}'" + (f", line {line}" if line else "")
        return ModelError(f"{place}: {what}" + ("" if what.endswith(("?", ".")) else "."))

    def of(self, message: str) -> str:
        """Return where the names that a message quotes are described: ``"'rod': line 12"``; empty when nowhere."""
        found = []
        for name in dict.fromkeys(_QUOTED.findall(message)):
            numbers = sorted({n for n in self.lines.get(name, ()) if n})
            if numbers:
                word = "line" if len(numbers) == 1 else "lines"
                found.append(f"'{name}': {word} {' and '.join(map(str, numbers))}")
        return ", ".join(found[:6])

    def told(self, message: str) -> str:
        """Return the file and the lines that a message is about, and of the second file those that it knows."""
        where = self.of(message)
        text = f"'{self.file}'" + (f" ({where})" if where else "")
        other = "" if self.beside is None else self.beside.of(message)
        return text if self.beside is None or not other else f"{text}, '{self.beside.file}' ({other})"

    @contextmanager
    def named(self) -> Iterator[None]:
        """Add the file and the lines to what goes wrong inside."""
        try:
            yield
        except FmilinError as error:
            text = f"{self.told(str(error))}: {error}"
            if isinstance(error, ConstraintError):
                raise ConstraintError(text, residuals=error.residuals) from None
            if isinstance(error, NumericalError):
                raise NumericalError(text, condition_number=error.condition_number) from None
            raise ModelError(text) from None
