"""File and line of a class or a component of a library, for messages on errors without a place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fmilin_modelica.libraries import SKIPPED
from fmilin_modelica.sources import Source

__all__ = ["find_place_of_model", "find_place_of_names"]

_CLASS = r"\b(?:model|block|class|record|package|function|connector|operator|type)\s+(?:extends\s+)?{}\b"


def find_place_of_model(source: Source, library: Mapping[str, Path]) -> str:
    """Return "Examples.mo:12: ", where the model begins; "" for an unknown one."""
    if source.file is not None:
        return f"{source.file.name}: "
    declaration = _find_class((source.model or "").split("."), library)
    return "" if declaration is None else _write_place(*declaration)


def find_place_of_names(source: Source, names: Sequence[str], library: Mapping[str, Path]) -> str:
    """Return the place of the first name: a class of a library, or a component that the model declares.

    Where none of them is found it is the place of the model.
    """
    for name in names:
        if name != source.model and "." in name and (place := _find_class(name.split("."), library)) is not None:
            return _write_place(*place)
    model = None if source.file is not None else _find_class((source.model or "").split("."), library)
    if model is None:
        return find_place_of_model(source, library)
    file, begin = model
    lines = _read_lines(file)
    for name in names:
        first = re.compile(rf"(?<![\w.]){re.escape(name.split('.')[0])}(?!\w)")
        for k in range(begin, len(lines)):
            if first.search(lines[k]):
                return _write_place(file, k + 1)
    return _write_place(file, begin)


def _find_class(name: Sequence[str], library: Mapping[str, Path]) -> tuple[Path, int] | None:
    """Return the file and the line in which a class with a full name begins; None where no file declares it."""
    files = {_name_of_place(place): file for place, file in library.items()}
    for count in range(len(name), 0, -1):
        file = files.get(tuple(name[:count]))
        if file is None:
            continue
        line = _find_line(_read_lines(file), name[count - 1 :])
        return None if line is None else (file, line)
    return None


def _find_line(lines: Sequence[str], name: Sequence[str]) -> int | None:
    """Return the line of a class inside of other ones, each behind the one around it."""
    k = 0
    for part in name:
        begins = re.compile(_CLASS.format(re.escape(part)))
        inner = next((j for j in range(k, len(lines)) if begins.search(lines[j])), None)
        if inner is None:
            return None
        k = inner
    return k + 1


def _read_lines(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return []
    return SKIPPED.sub(lambda part: re.sub(r"[^\n]", " ", part[0]), text).split("\n")


def _name_of_place(place: str) -> tuple[str, ...]:
    """Return ("Modelica", "Math") of "Modelica 4.0.0/Math.mo" and of "Modelica/Math/package.mo"."""
    return tuple(_list_parts(place))


def _list_parts(place: str) -> Iterator[str]:
    for k, part in enumerate(place.split("/")):
        word = part.removesuffix(".mo")
        if word != "package":
            yield word.split(" ")[0] if k == 0 else word


def _write_place(file: Path, line: int) -> str:
    return f"{file.name}:{line}: "
