"""What is written on the command line, as values: checked before any model is touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fmilin.errors import UsageError
from fmilin.export.registry import check_output

if TYPE_CHECKING:
    from fmilin.fmi.read.options import FmuOptions
    from fmilin.sandbox.isolation import Limits

__all__ = [
    "TIMEOUT",
    "Compile",
    "Memory",
    "Timeout",
    "UnpackLimit",
    "assignments",
    "checked_outputs",
    "finite",
    "fmu",
    "limits",
    "names",
]

Compile = Annotated[
    bool, typer.Option("--compile", help="Compile an FMU's C sources when it has no binary for this platform.")
]
UnpackLimit = Annotated[
    float | None, typer.Option("--unpack-limit", metavar="GIB", help="That an FMU's files may take unpacked; 4.")
]
TIMEOUT = 120.0
"""Seconds for a single call of an FMU's function, unless others are given."""

Timeout = Annotated[
    float, typer.Option("--timeout", metavar="S", help="Seconds that a single call of the FMU may take; 0: no limit.")
]
Memory = Annotated[
    float | None,
    typer.Option(
        "--memory", metavar="GIB", help="Memory that the FMU's process may take; nine tenths of what is free."
    ),
]


def names(text: str | None, option: str) -> list[str] | None:
    """Split ``A,B,...`` at the commas outside brackets and backquotes; the empty text is the empty list.

    >>> names("q[1,2],der(v),`a, b`", "--outputs")
    ['q[1,2]', 'der(v)', 'a, b']
    >>> names("theta=atan2(abs(x),-y),v", "--independent")
    ['theta=atan2(abs(x),-y)', 'v']

    Raises
    ------
    UsageError
        When a name is missing between two commas, or stands there twice.
    """
    if text is None:
        return None
    if not text.strip():
        return []
    items = [item[1:-1] if len(item) > 1 and item[0] == item[-1] == "`" else item for item in _at_commas(text)]
    if "" in items:
        raise UsageError(f"{option} '{text}': a name is missing between two commas. Write {option} A,B,C.")
    if twice := sorted({item for item in items if items.count(item) > 1}):
        raise UsageError(f"{option} '{text}': {', '.join(twice)} stands there more than once. Name each once.")
    return items


def _at_commas(text: str) -> list[str]:
    """Split at the commas outside parentheses, brackets and backquotes."""
    items, start, depth, quoted = [], 0, 0, False
    for position, character in enumerate(text):
        quoted ^= character == "`"
        if not quoted:
            depth = max(0, depth + (character in "([") - (character in ")]"))
        if character == "," and not quoted and depth == 0:
            items.append(text[start:position].strip())
            start = position + 1
    return [*items, text[start:].strip()]


def assignments(texts: Sequence[str], option: str = "--set") -> dict[str, float]:
    """Return ``NAME=VALUE`` texts as values by name; ``true`` and ``false`` are values of Boolean parameters.

    Raises
    ------
    UsageError
        When one has no '=', no name, no finite number, or the same name stands in two.
    """
    values: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        name = name.strip()
        if len(name) > 1 and name[0] == name[-1] == "`":
            name = name[1:-1]
        if not equals or not name:
            raise UsageError(f"{option} '{text}' is not of the form NAME=VALUE. Write for example {option} phi=1.5.")
        if name in values:
            raise UsageError(f"{option} sets '{name}' twice. Keep the one that you mean.")
        values[name] = _value(number.strip(), f"{option} '{text}'")
    return values


def _value(text: str, where: str) -> float:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{where}: '{text}' is no number. Write for example 1.5 or -2e-3, or true or false.") from None
    if not math.isfinite(value):
        raise UsageError(f"{where}: the value must be finite.")
    return value


def finite(value: float | None, option: str) -> float | None:
    """Return ``value``, which must not be NaN or infinite."""
    if value is not None and not math.isfinite(value):
        raise UsageError(f"{option} {value}: the value must be finite.")
    return value


def checked_outputs(paths: Sequence[Path]) -> list[Path]:
    """Return ``paths`` after making sure that every one can be written.

    Raises
    ------
    UsageError
        When a suffix is unknown, a place not writable, or one file is named twice.
    """
    for path in paths:
        check_output(path)
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("--output names the same file twice. Keep one.")
    return list(paths)


def limits(timeout: float, memory: float | None) -> Limits:
    """Return what the model may take: ``--timeout`` in seconds, 0 for ever; ``--memory`` in GiB.

    Raises
    ------
    UsageError
        When one is negative or no number, or the memory is none.
    """
    from fmilin.sandbox.isolation import Limits

    if not (math.isfinite(timeout) and timeout >= 0):
        raise UsageError(f"--timeout {timeout}: give seconds, or 0 for no limit.")
    if memory is not None and not (math.isfinite(memory) and memory > 0):
        raise UsageError(f"--memory {memory}: give GiB, more than 0.")
    return Limits(timeout or None, None if memory is None else memory * 2**30)


def fmu(unpack_limit: float | None, *, compile_sources: bool = False) -> FmuOptions | None:
    """Return how an FMU is opened; None as usual.

    Raises
    ------
    UsageError
        When the limit is no positive number.
    """
    if unpack_limit is None and not compile_sources:
        return None
    from fmilin.fmi.read.options import GIB, FmuOptions

    if unpack_limit is None:
        return FmuOptions(compile_sources=compile_sources)
    if not (math.isfinite(unpack_limit) and unpack_limit > 0):
        raise UsageError(f"--unpack-limit {unpack_limit}: give GiB, more than 0.")
    return FmuOptions(unpack_limit * GIB, compile_sources)
