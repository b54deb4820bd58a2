"""Standard output and standard error while code of models runs that may print to them or close them."""

import io
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from typing import IO, Any, TextIO, cast

from fmilin.errors import UsageError, escape_controls

MAX_PRINTED_CHARACTERS = 20_000  # characters of what FMUs print that are shown
TEXT_CONTROLS = "\n\t"  # control characters of plain text


class StyledText(io.StringIO):
    """Text for standard output that :mod:`fmilin.report` lays out, in bold letters when it goes to a terminal."""

    def __init__(self, *, to_terminal: bool = False) -> None:
        super().__init__()
        self._to_terminal = to_terminal

    def isatty(self) -> bool:
        """Whether it goes to a terminal."""
        return self._to_terminal


class ResultStream(io.TextIOBase):
    """Text for standard output with control characters escaped; ``styled`` takes what has escaped them itself."""

    def __init__(self, *, to_terminal: bool = False) -> None:
        self.styled = StyledText(to_terminal=to_terminal)

    def write(self, text: str) -> int:
        """Write text."""
        return self.styled.write(escape_controls(text, TEXT_CONTROLS))

    def getvalue(self) -> str:
        """Return all that was written."""
        return self.styled.getvalue()


class EscapedStream:
    """A stream to which everything is written with control characters escaped; ``stream`` takes those of a display."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text."""
        self.stream.write(escape_controls(text, TEXT_CONTROLS))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def escape_standard_error() -> Iterator[None]:
    """Escape what is written to standard error in the block: names and messages of models may be part of it."""
    with redirect_stderr(cast(TextIO, EscapedStream(sys.stderr))):
        yield


def display_stream() -> TextIO:
    """Return standard error as it is, for progress displays, which move the cursor."""
    stream = sys.stderr
    return stream.stream if isinstance(stream, EscapedStream) else stream


class _Closed(io.TextIOBase):
    """Standard output that the user has closed; ``nowhere`` replaces it, and writing to it raises an error."""

    encoding = "utf-8"

    def __init__(self, nowhere: IO[Any]) -> None:
        self._nowhere = nowhere

    def write(self, text: str) -> int:
        """Reject everything."""
        if text:
            raise UsageError("Standard output is closed, so the result cannot be printed. Open it, or write to a file.")
        return 0


def open_missing() -> None:
    """Open streams that the user has closed (``>&-``) to nowhere, so that no other file gets their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115, PTH123 - for good
            setattr(sys, name, _Closed(nowhere) if name == "stdout" else nowhere)


def columns() -> int:
    """Return how wide the terminal is that standard output goes to; 0 when it goes elsewhere."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 0


class _LineCollector(logging.Handler):
    """Collects the lines that FMUs print, up to a number of characters."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._size = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        line = record.getMessage()
        self._size += len(line)
        if self._size <= MAX_PRINTED_CHARACTERS:
            self._lines.append(line)

    def show(self) -> None:
        """Write the lines to standard error."""
        if self._size:
            more = [f"... and more: {self._size} characters in all"] if self._size > MAX_PRINTED_CHARACTERS else []
            with suppress(OSError):
                sys.stderr.write("".join(f"{line}\n" for line in [*self._lines, *more]))
                sys.stderr.flush()


@contextmanager
def collect_printed_lines() -> Iterator[None]:
    """Keep the lines that FMUs print until the end of the block, and show them then on standard error."""
    handler = _LineCollector()
    logger = logging.getLogger("fmilin.fmu")
    logger.addHandler(handler)
    propagates, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
        handler.show()


def silence(stream: TextIO) -> None:
    """Point ``stream`` to nowhere: it has no reader, and the interpreter would report an error at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def stdout_for_results() -> Iterator[TextIO]:
    """Yield a stream to the real standard output, while descriptor 1 (where C code prints) means standard error."""
    try:
        is_real = sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2
    except (OSError, ValueError, AttributeError):
        is_real = False
    if not is_real:
        yield sys.stdout  # a notebook, or a test that captures
        return
    sys.stdout.flush()
    real, python_stdout = os.dup(1), sys.stdout
    os.dup2(2, 1)
    results = os.fdopen(os.dup(real), "w", encoding=sys.stdout.encoding, errors="replace")
    sys.stdout = sys.stderr
    try:
        yield results
    finally:
        with suppress(OSError):
            results.close()
        flush_c_streams()
        os.dup2(real, 1)
        os.close(real)
        sys.stdout = python_stdout


def flush_c_streams() -> None:
    """Let what C code has printed so far go where it was meant to go."""
    if os.name == "posix" and "ctypes" in sys.modules:
        import ctypes

        ctypes.CDLL(None).fflush(None)
