"""Lines that the code of an FMU prints, without what a terminal would obey."""

from __future__ import annotations

import logging

from fmilin.errors import escape_controls

logger = logging.getLogger("fmilin.fmu")
logger.addHandler(logging.NullHandler())  # as a library should: nothing is printed unless the application asks for it

MAX_LINE_CHARACTERS = 2000
MAX_LINES = 10_000


class PrintedLines:
    """Takes bytes and logs lines; there are limits to the length of a line and to their number."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._rest = b""
        self._lines: list[str] = []
        self._count = 0

    def feed(self, content: bytes) -> None:
        """Take what was printed; nothing is logged yet, since that could call anything."""
        *lines, rest = (self._rest + content).split(b"\n")
        while len(rest) > MAX_LINE_CHARACTERS:
            lines.append(rest[:MAX_LINE_CHARACTERS])
            rest = rest[MAX_LINE_CHARACTERS:]
        self._rest = rest
        for line in lines:
            self._count += 1
            if self._count <= MAX_LINES:
                text = line[:MAX_LINE_CHARACTERS].decode("utf-8", "replace").rstrip("\r")
                self._lines.append(escape_controls(text))
            elif self._count == MAX_LINES + 1:
                self._lines.append(f"(more than {MAX_LINES} lines: the others are omitted)")

    def log(self, *, at_end: bool = False) -> None:
        """Log the complete lines; at the end also what has no end."""
        if at_end and self._rest:
            self.feed(b"\n")
        lines, self._lines = self._lines, []
        for line in lines:
            logger.warning("%s prints: %s", self._source, line)

    @property
    def recent(self) -> str:
        """The end of what was not logged yet, for an error message."""
        return " ".join([*self._lines[-3:], escape_controls(self._rest.decode("utf-8", "replace"))]).strip()
