"""Arguments whose type a function does not declare are rejected with a sentence that names the argument.

The annotations are the one description: their text is parsed once, and values are compared with it. Names of types
that are neither builtin nor listed in ``_CLASSES`` accept everything; functions check such values themselves.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import unwrap
from typing import Any, ParamSpec, SupportsFloat, TypeVar

from fmilin.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")

_CLASSES = frozenset(
    {"Differences", "Formulation", "Limits", "LinearFamily", "LinearModel", "Method", "Model", "OperatingPoint"}
    | {"FmuOptions", "Linearization", "PeriodicOrbit", "Stabilization", "Stepping", "TrimRequest"}
    | {"Constraint", "Estimator", "KalmanFilter", "KaneEquations", "Labels", "ModeGoal", "PeriodicModel", "Signal"}
    | {"Signals", "SymbolicModel"}
)
"""Classes of fmilin that are compared by name: their modules need not be imported for the check."""

_UNIONS = {"Formulation": {"MCS", "RCS", "UCS"}}
"""Names of annotations that stand for several classes."""

_ALIASES = {"Wires": "str | Sequence[str]"}
"""Names of annotations that stand for other annotations."""

_HINTS = {
    "Model": ": fl.load opens a file, and fl.connect({'plant': linear}, []) makes a model of a linear one",
    "OperatingPoint": ": fl.operating_point(model, {name: value}) makes one",
}
"""How an object of a class is made, for the message where another one was given."""

_ITERABLES = frozenset({"Iterable", "Sequence", "tuple", "list"})
_ARRAYS = frozenset({"FloatArray", "ArrayLike"})
_LARGEST_INTEGER = 2**63 - 1  # that numpy represents
_LONGEST_SHOWN = 60  # characters of a rejected value


def require_kinds(declared: Mapping[str, str], arguments: Sequence[object], options: Mapping[str, object]) -> None:
    """Raise UsageError for arguments of other types than their annotations: texts, in the order of the arguments."""
    _require_each(declared, (*zip(declared, arguments, strict=False), *options.items()))


def _require_each(
    declared: Mapping[str, str], arguments: Iterable[tuple[str, object]], *, contents: bool = True
) -> None:
    for name, value in arguments:
        annotation = declared.get(name, "")
        if annotation and name != "return":
            _require(name, value, _parse(annotation), contents=contents)


def require_containers(declared: Mapping[str, str], options: Mapping[str, object]) -> None:
    """Raise UsageError for arguments by name of other types than their annotations; entries are not looked at."""
    _require_each(declared, options.items(), contents=False)


def kinds_checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of each call of a function or method with :func:`require_kinds`."""
    return _check_calls(function, contents=True)


def containers_checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments as :func:`kinds_checked` does, but not their entries: the function tells all problems."""
    return _check_calls(function, contents=False)


def _check_calls(function: Callable[P, R], *, contents: bool) -> Callable[P, R]:
    code = unwrap(function).__code__
    positional = code.co_varnames[: code.co_argcount]  # ``self`` has no annotation, and is accepted

    @wraps(function)
    def checked(*arguments: P.args, **options: P.kwargs) -> R:
        named = zip(positional, arguments, strict=False)
        _require_each(function.__annotations__, (*named, *options.items()), contents=contents)
        return function(*arguments, **options)

    return checked


def require_field_kinds(instance: object) -> None:
    """Check the fields of a data class, whose ``__post_init__`` calls this, with :func:`require_kinds`."""
    declared = type(instance).__annotations__
    values = {name: getattr(instance, name) for name in declared if hasattr(instance, name)}
    require_kinds({name: str(annotation) for name, annotation in declared.items()}, (), values)


def require_field_containers(instance: object) -> None:
    """Check the fields of a data class as :func:`containers_checked` does arguments."""
    declared = type(instance).__annotations__
    require_containers(declared, {name: getattr(instance, name) for name in declared if hasattr(instance, name)})


@cache
def _parse(annotation: str) -> tuple[ast.expr, ...]:
    """Return the members of the union that an annotation's text is."""
    return tuple(_members(ast.parse(annotation, mode="eval").body))


def _members(node: ast.expr) -> Iterable[ast.expr]:
    if isinstance(node, ast.Name) and node.id in _ALIASES:
        yield from _parse(_ALIASES[node.id])
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _members(node.left)
        yield from _members(node.right)
    else:
        yield node


def _require(name: str, value: object, declared: tuple[ast.expr, ...], *, contents: bool) -> None:
    names = [_name(member) for member in declared]
    if any(_has_type(value, type_name) for type_name in names):
        fitting = [member for member in declared if _has_type(value, _name(member))]
        if contents and len(fitting) == 1:
            _require_contents(name, value, fitting[0])
        return
    raise _error(f"'{name}'", value, names)


def _name(node: ast.expr) -> str:
    """Return the name of a type without its parameters and module."""
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return "None" if isinstance(node, ast.Constant) and node.value is None else ""


def _has_type(value: object, name: str) -> bool:
    """Whether a value is of the type with this name; its contents are not looked at."""
    if name in _PREDICATES:
        return _PREDICATES[name](value)
    if name in _CLASSES:
        names = _UNIONS.get(name, {name})
        return any(base.__name__ in names for base in type(value).__mro__)
    return True


def _is_integer(value: object) -> bool:
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return not getattr(value, "ndim", 0)


def _is_number(value: object) -> bool:
    """Whether a value is a real number; texts that look like one are not."""
    if isinstance(value, str | bytes | type) or not isinstance(value, SupportsFloat):
        return False
    if getattr(value, "ndim", 0):
        return False
    dtype: Any = getattr(value, "dtype", None)
    return dtype is None or dtype.kind in "biufO"


def _is_bool(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # of numpy


def _is_listing(value: object) -> bool:
    """Whether a value can be iterated for its entries. A text or a mapping in place of a list is a mistake."""
    if isinstance(value, str | bytes | Mapping | type):
        return False
    return isinstance(value, Iterable) or hasattr(value, "__getitem__")  # a matrix of sympy is no Iterable


def _is_array(value: object) -> bool:
    return _is_listing(value) or _is_number(value) or isinstance(value, complex)


_PREDICATES: Mapping[str, Callable[[object], bool]] = {
    "None": lambda value: value is None,
    "str": lambda value: isinstance(value, str),
    "Path": lambda value: isinstance(value, os.PathLike),
    "PathLike": lambda value: isinstance(value, os.PathLike),
    "bool": _is_bool,
    "int": _is_integer,
    "float": _is_number,
    "Literal": lambda value: value is None or isinstance(value, str | int),
    "Mapping": lambda value: isinstance(value, Mapping),
    "Box": lambda value: isinstance(value, Mapping),
    "Callable": callable,
    "FloatArray": _is_array,
    "ArrayLike": _is_array,
    "Inputs": lambda value: callable(value) or isinstance(value, Mapping) or type(value).__name__ == "InputTable",
    **dict.fromkeys(_ITERABLES, _is_listing),
}


def _require_contents(name: str, value: object, declared: ast.expr) -> None:
    """Check a number for what no number may be, and the entries of a container, unless looking would use them up."""
    type_name = _name(declared)
    if type_name in ("float", "int"):
        _require_representable(f"'{name}'", value)
    if type_name in _ARRAYS:
        _require_array(f"'{name}'", value, complex_numbers=type_name == "ArrayLike")
    if not isinstance(declared, ast.Subscript):
        return
    parameters = declared.slice.elts if isinstance(declared.slice, ast.Tuple) else [declared.slice]
    if isinstance(value, Mapping) and len(parameters) == 2:
        for key, entry in value.items():
            _require_entry(f"A key of '{name}'", key, parameters[0])
            _require_entry(f"'{key}'", entry, parameters[1])
    elif type_name == "Sequence" and len(parameters) == 1:
        if not isinstance(value, Sequence):
            if (
                _name(parameters[0]) == "str"
            ):  # an array of names has no truth value, and names are looked up one by one
                raise _error(f"'{name}'", value, ["Sequence"])
            return
        for entry in value:
            _require_entry(f"An entry of '{name}'", entry, parameters[0])


def _require_entry(what: str, value: object, declared: ast.expr) -> None:
    members = list(_members(declared))
    names = [_name(member) for member in members]
    if not any(_has_type(value, name) for name in names):
        raise _error(what, value, names)
    if "float" in names and _is_number(value):
        _require_representable(what, value)


def _require_array(what: str, value: object, *, complex_numbers: bool) -> None:
    """Raise UsageError for a list that is not an array of numbers: ragged, or with texts or None among its entries."""
    import numpy as np

    try:
        array = np.asarray(value)
    except ValueError:
        raise UsageError(f"{what} is not an array of numbers: its rows have different lengths.") from None
    numeric = array.dtype.kind in ("biufc" if complex_numbers else "biuf")
    if numeric or (array.dtype.kind == "O" and all(map(_is_number, array.ravel().tolist()))):
        with contextlib.suppress(OverflowError):
            array.astype(np.complex128 if complex_numbers else np.float64, copy=False)
            return
        raise UsageError(f"{what} has an entry that is too large for a floating-point number.")
    kind = "complex numbers" if array.dtype.kind == "c" else "entries that are not numbers"
    raise UsageError(f"{what} has {kind}: an array of real numbers is needed.")


def _require_representable(what: str, value: object) -> None:
    """Raise UsageError for a number that is not a double: NaN, or an integer with hundreds of digits."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise UsageError(f"{what} is too large for a floating-point number.") from None
    if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
        raise UsageError(f"{what} is too large for an integer: write it as a floating-point number.")
    if math.isnan(number):
        raise UsageError(f"{what} is not a number (NaN): give a finite number.")


def _error(what: str, value: object, names: Sequence[str]) -> UsageError:
    """Return the error for a value that has none of the types with these names."""
    numbers_only = set(names) <= {"float", "int", "None"} and value is not None
    if numbers_only:
        kind = "an integer" if "float" not in names else "a number"
        shown = repr(value)
        if len(shown) > _LONGEST_SHOWN:
            shown = f"{shown[:_LONGEST_SHOWN]}..."
        return UsageError(f"{what} is {' '.join(shown.split())}: {kind} is needed.")
    if isinstance(value, str) and set(names) & _ITERABLES:
        shown = value[:_LONGEST_SHOWN]
        return UsageError(f"{what} is the text '{shown}', and should be a list: write ['{shown}'].")
    hint = "".join(text for type_name, text in _HINTS.items() if type_name in names)
    wanted = " or ".join(sorted({name for name in names if name and name != "None"}))
    return UsageError(f"{what} is of the type '{type(value).__name__}', and should be of the type {wanted}{hint}.")
