"""Results in which one number is changed by a hundredth: which of them does an audit find?"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

import fmilin as fl

Rebuild = Callable[[Any], Any]
PART = 0.01
SMALL, LIKE = 1e-9, 1e-2  # a number that is rounding, and what is added to it


def list_spoiled(result: Any, only: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the path of each stated number, and a copy of the result in which it is spoiled.

    Of an array it is the largest entry; of a sequence the first and the middle item. Infinite and undefined numbers
    state no value. Of a result that is slow to audit ``only`` some paths, by how they begin.
    """
    for path, value, rebuild in _list_numbers(result, ""):
        if not only or path.startswith(only):
            spoiled = _spoil(value)
            if spoiled is not None:
                yield path, rebuild(spoiled)


def list_missed(result: Any, only: tuple[str, ...] = (), **options: Any) -> list[str]:
    """Return the paths of numbers that an audit neither finds spoiled nor names as unchecked."""
    right = fl.audit(result, **options)
    assert right.ok, right
    words = " ".join(right.unchecked)
    missed = []
    for path, changed in list_spoiled(result, only):
        if not _is_named(path, words) and fl.audit(changed, **options).ok:
            missed.append(path)
    return missed


def _is_named(path: str, words: str) -> bool:
    """Return whether words name a number, or the field or the part that it belongs to."""
    parts = re.sub(r"\[.*?\]", "", path).split(".")
    spans = [(i, k) for i in range(len(parts)) for k in range(i + 1, len(parts) + 1)]
    names = {".".join(parts[i:k]) for i, k in spans}
    return any(re.search(rf"(?<![\w.]){re.escape(name)}(?![\w]|\.\w)", words) for name in names)


def _list_numbers(value: Any, path: str) -> Iterator[tuple[str, Any, Rebuild]]:
    if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind in "fc"):
        yield path, value, lambda spoiled: spoiled
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            for inner, number, rebuild in _list_numbers(entry, f"{path}[{key}]"):
                yield inner, number, _put_entry(value, key, rebuild)
    elif isinstance(value, tuple) and type(value) is tuple:
        for k in sorted({0, len(value) // 2}) if value else ():
            entry = value[k]
            for inner, number, rebuild in _list_numbers(entry, f"{path}[{k}]"):
                yield inner, number, _put_item(value, k, rebuild)
    elif is_dataclass(value) and not isinstance(value, (type, fl.Signals, fl.Model)):
        for field in fields(value):
            if field.init and field.name not in ("loop", "model", "run"):
                name = f"{path}.{field.name}" if path else field.name
                for inner, number, rebuild in _list_numbers(getattr(value, field.name), name):
                    yield inner, number, _put_field(value, field.name, rebuild)


def _put_entry(mapping: Mapping[Any, Any], key: Any, rebuild: Rebuild) -> Rebuild:
    return lambda spoiled: {**mapping, key: rebuild(spoiled)}


def _put_item(items: tuple[Any, ...], k: int, rebuild: Rebuild) -> Rebuild:
    return lambda spoiled: (*items[:k], rebuild(spoiled), *items[k + 1 :])


def _put_field(result: Any, name: str, rebuild: Rebuild) -> Rebuild:
    return lambda spoiled: replace(result, **{name: rebuild(spoiled)})


def _spoil(value: Any) -> Any:
    if isinstance(value, float):
        spoiled = value * (1 + PART) if abs(value) > SMALL else value + LIKE
        return spoiled if np.isfinite(value) else None
    finite = np.flatnonzero(np.isfinite(value.reshape(-1)))
    if not len(finite):
        return None
    changed = copy.copy(value).reshape(-1)
    k = finite[np.argmax(np.abs(changed[finite]))]
    changed[k] = changed[k] * (1 + PART) if abs(changed[k]) > SMALL else changed[k] + LIKE
    return changed.reshape(value.shape)
