"""A result as names with arrays, numbers and texts: what containers of files write and read.

A module for each kind of result has ``to_arrays``, which returns a :class:`Record`, and ``from_arrays``, which makes
the result from what a container :class:`Stored`. A container (JSON, .npz, .mat, netCDF) knows no kind of result: a
field that is added to a result is a line in its module, and a container that is added is one file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, ModelError
from fmilin.export.archives import real_array
from fmilin.export.checksum import Integrity
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.support.dataclass import dataclass
from fmilin.version import __version__

Convert = Callable[[Any, str], FloatArray]


@dataclass(frozen=True)
class Labelled:
    """An array with a name for each axis. The first ``pages`` axes run over points; MATLAB has them last."""

    values: NDArray[Any]
    axes: tuple[str, ...]
    pages: int = 0


class ByName(dict[str, Any]):
    """Values under names of a model, which may contain any character; fields of MATLAB's structs may not."""


class Objects(list[dict[str, Any]]):
    """Objects with the same members, of which MATLAB gets a struct with a list for each."""

    def __init__(self, members: tuple[str, ...], objects: Iterable[dict[str, Any]]) -> None:
        super().__init__(objects)
        self.members = members


@dataclass(frozen=True)
class Record:
    """The contents of a result's file.

    Facts are texts, numbers, None, lists of them, and nested mappings, in which arrays may stand. Additions are
    values that users of a container, by its suffix, expect under other names or in another shape; they are not read.
    """

    format: str  # with its version
    arrays: Mapping[str, Labelled]
    facts: Mapping[str, Any]
    top_level: tuple[str, ...] = ()  # variables of a .mat file of their own; the rest is in its struct ``fmilin``
    is_packed: bool = False  # whether the facts are too many for fields of a struct: they are one text in a .mat file
    additions: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)
    # Facts that vary between points, where containers of objects have an object for each: each has the numbers of the
    # arrays with pages and these facts, which replace the facts and arrays named in ``per_point``.
    points: Iterable[Mapping[str, Any]] | None = None
    per_point: tuple[str, ...] = ()
    release: Callable[[], None] | None = None  # gives back memory after some points were written, and may be called

    def build_additions(self, suffix: str) -> Mapping[str, Any]:
        """Return the additions for a container."""
        return self.additions[suffix]() if suffix in self.additions else {}


@dataclass(frozen=True)
class Stored:
    """The contents of a file. Arrays ``behind`` have the axes that run over points last."""

    arrays: Mapping[str, Any]
    facts: Mapping[str, Any]
    integrity: Integrity  # what the checksum in the file says of the rest
    behind: frozenset[str] = frozenset()

    def read_array(
        self, name: str, shape: tuple[int, ...], *, pages: int = 0, convert: Convert = real_array
    ) -> FloatArray:
        """Return an array of this shape, of which the first ``pages`` axes run over points."""
        if pages and "points" in self.facts:
            return self._gather(name, shape, pages)
        array = convert(self.arrays[name], name)
        if pages and name in self.behind:
            tail = shape[pages:]
            reshaped = np.ravel(array, order="F").reshape(tail + shape[:pages], order="F")
            return np.moveaxis(reshaped, range(len(tail)), range(-len(tail), 0))
        return array.reshape(shape) if pages else restore_shape(array, name, shape)

    def _gather(self, name: str, shape: tuple[int, ...], pages: int) -> FloatArray:
        """Return an array from the objects of points; points without a linear model have NaN.

        Raises KeyError if a point with a linear model lacks it.
        """
        points = self.facts["points"]
        gathered = np.full((len(points), *shape[pages:]), np.nan)
        for k, point in enumerate(points):
            if name in point:
                gathered[k] = np.array(point[name], dtype=np.float64).reshape(shape[pages:])
            elif point.get("ok", True):
                raise KeyError(name)
        return gathered.reshape(shape)


def restore_shape(array: FloatArray, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return an array in its shape, of which containers may have lost or added axes of length 1, or those of 0."""
    if array.shape == shape:
        return array
    lengths, expected = ([n for n in each if n != 1] for each in (array.shape, shape))
    if (array.size == 0 and 0 in shape) or (array.ndim != len(shape) and lengths == expected):
        return array.reshape(shape)
    raise ValueError(f"{name} has the shape {array.shape}, but the names require {shape}")


def facts_text(facts: Any) -> str:
    """Return facts as JSON in which NaN and Infinity may stand: Python reads them back, and nothing gets lost."""
    return json.dumps(facts, default=_list_values)


def _list_values(array: NDArray[Any]) -> list[Any]:
    """Return an array as a list. In those of one axis, properties of signals, NaN stands for None."""
    values: list[Any] = array.tolist()
    return [None if isinstance(value, float) and math.isnan(value) else value for value in values]


@contextmanager
def describe_restore_errors(origin: str) -> Iterator[None]:
    """Raise ModelError, which names the file, where values of a file make no result."""
    try:
        yield
    except KeyError as missing:
        raise ModelError(f"'{origin}' is damaged: the field {missing} is missing. Save it again.") from None
    except (FmilinError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        raise ModelError(f"'{origin}' is damaged: {error}. Save it again from its source.") from None


def require_format(stored: Stored, origin: str, expected: str, holds: str) -> None:
    """Raise ModelError for a file of another version, or of another kind of result."""
    if (stated := stored.facts.get("format")) != expected:
        raise ModelError(
            f"'{origin}' is not a {holds} that this fmilin reads: its field 'format' is {stated!r} instead of "
            f"'{expected}'. Save it again with fmilin {__version__}."
        )


# Values of facts as they were. A .mat file has columns in place of lists, NaN in place of None, and an empty matrix
# in place of an empty text or list; JSON has None in place of NaN.


def read_number(value: Any) -> float:
    """Return a number; None stands for NaN in formats that have no NaN."""
    if isinstance(value, np.ndarray):
        value = value.reshape(-1)[0]
    return float("nan") if value is None else float(value)


def read_numbers(values: Any) -> list[float]:
    """Return a list of numbers."""
    if isinstance(values, np.ndarray):
        numbers: list[float] = real_array(values, "a column of the file").reshape(-1).tolist()
        return numbers
    return [read_number(value) for value in values]


def read_text(value: Any) -> str:
    """Return a name, a unit, or another text."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray) and not value.size:
        return ""
    raise TypeError(f"{value!r} should be a text")


def read_texts(values: Any) -> list[str]:
    """Return a list of texts."""
    if isinstance(values, np.ndarray) and values.size and values.dtype.kind != "U":
        raise ValueError(f"{values!r} should be a list of texts")
    return [read_text(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]


def read_by_name(values: Mapping[str, Any]) -> dict[str, float]:
    """Return numbers by name."""
    if set(values) == {"names", "values"} and not isinstance(values["values"], (int, float)):
        return dict(zip(read_texts(values["names"]), read_numbers(values["values"]), strict=True))
    return {str(name): read_number(value) for name, value in values.items()}


def write_remarks(remarks: Iterable[Remark]) -> Objects:
    """Return kind and message of each diagnostic."""
    return Objects(("kind", "message"), ({"kind": remark.kind, "message": remark.message} for remark in remarks))


def read_remarks(values: Any) -> tuple[Remark, ...]:
    """Return the diagnostics that :func:`write_remarks` described."""
    if isinstance(values, Mapping):
        pairs = zip(read_texts(values["kinds"]), read_texts(values["messages"]), strict=True)
        return tuple(Remark(kind, message, is_read=True) for kind, message in pairs)
    return tuple(Remark(str(value["kind"]), str(value["message"]), is_read=True) for value in values)


def write_details(signals: Signals) -> dict[str, Any]:
    """Return a list or an array for each property of signals, in the order of the names; NaN stands for None."""
    return {
        "unit": [s.unit for s in signals],
        "nominal": np.array([s.nominal for s in signals], dtype=np.float64),
        "start": np.array([s.start for s in signals], dtype=np.float64),
        "description": [s.description for s in signals],
        "aliases": [list(s.aliases) for s in signals],
        "turn": np.array([s.turn for s in signals], dtype=np.float64),
    }


def read_signals(names: Any, details: Mapping[str, Any]) -> Signals:
    """Return signals with these names and the details that :func:`write_details` described."""
    count = len(listed := read_texts(names))
    columns = [
        listed,
        read_texts(details["unit"]),
        _read_optional(details["nominal"]),
        read_numbers(details["start"]),
        read_texts(details["description"]),
        [tuple(read_texts(aliases)) for aliases in details["aliases"]],
        _read_optional(details["turn"]) if "turn" in details else [None] * count,  # earlier versions wrote none
    ]
    return Signals(Signal(*values) for values in zip(*columns, strict=True))


def _read_optional(values: Any) -> list[float | None]:
    return [None if np.isnan(number) else number for number in read_numbers(values)]
