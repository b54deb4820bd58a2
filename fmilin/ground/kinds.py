"""Arguments of another kind than a function declares are refused in words."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, SupportsFloat, TypeVar

from fmilin.ground.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")

_CLASSES = {"LinearFamily", "LinearModel", "OperatingPoint", "PeriodicOrbit"}
_KINDS: dict[str, Any] = {
    "Box": Mapping,
    "Mapping": Mapping,
    "Iterable": Iterable,
    "None": type(None),
    "Path": os.PathLike,
    "Sequence": Iterable,
    "float": SupportsFloat,
    "str": str,
}


def _require_kind(name: str, value: object, declared: str) -> None:
    """Refuse an argument of another kind than its annotation says, as far as that is one of those above or float."""
    while declared != (shorter := re.sub(r"\[[^\[\]]*\]", "", declared)):
        declared = shorter
    kinds = set(declared.split(" | "))
    if kinds <= {"float", "None"} and value is not None:
        from fmilin.ground.signals import as_numbers

        as_numbers(value, f"'{name}'")
    fits = kinds & {one.__name__ for one in type(value).__mro__} or any(
        isinstance(value, kind) for key, kind in _KINDS.items() if key in kinds
    )
    if kinds <= _CLASSES | _KINDS.keys() and not fits:
        point = ": fl.operating_point(model, {name: value}) makes one" if "OperatingPoint" in kinds else ""
        raise UsageError(
            f"'{name}' is of the type '{type(value).__name__}', and should be of the type "
            f"{' or '.join(sorted(kinds - {'None'}))}{point}."
        )


def require_kinds(declared: Mapping[str, str], arguments: Sequence[object], options: Mapping[str, object]) -> None:
    """Refuse arguments of other kinds than their annotations say: texts, in the order of the arguments."""
    for name, value in (*zip(declared, arguments, strict=False), *options.items()):
        _require_kind(name, value, declared.get(name, ""))


def kinds_checked(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse arguments of other kinds than a function declares."""

    @wraps(function)
    def checked(*arguments: P.args, **options: P.kwargs) -> R:
        require_kinds(function.__annotations__, arguments, options)
        return function(*arguments, **options)

    return checked
