"""Arguments of undeclared types are rejected with a sentence that names the argument.

The annotations are the one description: their text is parsed once, and values are compared with it. Names of classes of
fmilin are looked up in the module of the function; other names accept everything, and functions check such values.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from fmilin.errors import UsageError, nearest_names
from fmilin.support.annotations import ITERABLES, PREDICATES, UnionMember, is_number, list_members

P = ParamSpec("P")
R = TypeVar("R")

_ARRAYS = frozenset({"FloatArray", "RealArray", "RealArrayLike", "ArrayLike"})
UNKNOWN_KEYWORD = "unexpected keyword argument"  # in Python's own message
_MAX_INTEGER = 2**63 - 1  # that numpy represents
_MAX_VALUE_CHARACTERS = 60  # characters of a rejected value
MAX_TYPES = 1024  # of values, each with a declaration, that are remembered

_ACCEPTED: dict[tuple[type, str, str], bool] = {}
"""Whether a type is accepted by an annotation of a module."""


def require_kinds(function: Callable[..., object], arguments: Sequence[object], options: Mapping[str, object]) -> None:
    """Raise UsageError for arguments, in the order of the parameters, of other types than a function declares."""
    function = inspect.unwrap(function)
    named = (*_name_positional(function, arguments), *options.items())
    _require_each(function.__annotations__, function.__module__, named)


def _name_positional(function: Callable[..., object], arguments: Sequence[object]) -> Iterator[tuple[str, object]]:
    """Return positional arguments by name; Python itself rejects more of them than there are."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]  # ``self`` has no annotation, and is accepted
    return zip(positional, arguments, strict=False)


def _require_each(
    declared: Mapping[str, str], module: str, arguments: Iterable[tuple[str, object]], *, contents: bool = True
) -> None:
    for name, value in arguments:
        annotation = declared.get(name, "")
        # A user's subclass of a data class may have types instead of text: those are not compared.
        if annotation and isinstance(annotation, str) and name != "return":
            if _accepts_every(type(value), annotation, module):
                continue
            _require(name, value, list_members(annotation, module), contents=contents)


def _accepts_every(kind: type, annotation: str, module: str) -> bool:
    """Whether a declaration accepts every value of a type without checking its contents, as for fmilin's classes."""
    key = kind, annotation, module
    if key not in _ACCEPTED:
        if len(_ACCEPTED) >= MAX_TYPES:
            _ACCEPTED.clear()
        _ACCEPTED[key] = any(_covers_class(kind, member) for member in list_members(annotation, module))
    return _ACCEPTED[key]


def _covers_class(kind: type, member: UnionMember) -> bool:
    member_class = None if member.name in PREDICATES or member.parameters else member.stands_for
    return (
        isinstance(member_class, type)
        and not getattr(member_class, "_is_protocol", False)
        and issubclass(kind, member_class)
    )


def require_containers(function: Callable[..., object], options: Mapping[str, object]) -> None:
    """Raise UsageError for arguments by name of other types than a function declares; entries are not examined."""
    _require_each(function.__annotations__, function.__module__, options.items(), contents=False)


def kinds_checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of each call of a function or method with :func:`require_kinds`."""
    return _check_calls(function, contents=True)


def containers_checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments as :func:`kinds_checked` does, but not their entries: the function tells all problems."""
    return _check_calls(function, contents=False)


def _check_calls(function: Callable[P, R], *, contents: bool) -> Callable[P, R]:
    declaration = inspect.unwrap(function)

    @wraps(function)
    def check_and_call(*arguments: P.args, **options: P.kwargs) -> R:
        named = (*_name_positional(declaration, arguments), *options.items())
        _require_each(declaration.__annotations__, declaration.__module__, named, contents=contents)
        try:
            return function(*arguments, **options)
        except TypeError as error:
            if UNKNOWN_KEYWORD in str(error):
                _suggest_keywords(error, declaration, options)
            raise

    return check_and_call


def _suggest_keywords(error: TypeError, declaration: Callable[..., object], options: Iterable[str]) -> None:
    """Add the keywords that look most like an unknown one to the error of Python."""
    names = inspect.signature(declaration).parameters
    for name in options:
        near = nearest_names(name, names) if name not in names and f"'{name}'" in str(error) else ()
        if near:
            error.add_note("Did you mean " + " or ".join(f"{keyword}=" for keyword in near) + "?")


def require_field_kinds(instance: object) -> None:
    """Check the fields of a data class with :func:`require_kinds`; its ``__post_init__`` calls this."""
    _require_fields(instance, contents=True)


def require_field_containers(instance: object, *, texts: bool = True) -> None:
    """Check the fields of a data class as :func:`containers_checked` does arguments; texts only with ``texts``."""
    _require_fields(instance, contents=False, texts=texts)


def _require_fields(instance: object, *, contents: bool, texts: bool = True) -> None:
    for kind in type(instance).__mro__:  # the names in annotations of each class are those of its module
        declared = inspect.get_annotations(kind)
        values = [(name, getattr(instance, name)) for name in declared if hasattr(instance, name)]
        chosen = [(name, value) for name, value in values if texts or not isinstance(value, str)]
        _require_each(declared, kind.__module__, chosen, contents=contents)


def _require(name: str, value: object, declared: Sequence[UnionMember], *, contents: bool) -> None:
    if value is None and any(member.name == "None" for member in declared):
        return
    fitting = [member for member in declared if member.accepts(value)]
    if not fitting:
        raise _error(f"'{name}'", value, declared)
    if contents and len(fitting) == 1:
        _require_contents(name, value, fitting[0])


def _require_contents(name: str, value: object, declared: UnionMember) -> None:
    """Check a number for what no number may be, and the entries of a container, unless looking would use them up."""
    if declared.name in ("float", "int"):
        _require_representable(f"'{name}'", value)
    if declared.name in _ARRAYS:
        _require_array(f"'{name}'", value, complex_numbers=declared.name == "ArrayLike")
    entries = declared.entries
    if isinstance(value, Mapping) and len(entries) == 2:
        for key, entry in value.items():
            _require_entry(f"A key of '{name}'", key, entries[0])
            _require_entry(f"'{key}'", entry, entries[1])
    elif declared.name == "Sequence" and len(entries) == 1:
        if not isinstance(value, Sequence):
            # An array of names has no truth value, and names are looked up one by one.
            if entries[0][0].name == "str":
                raise _error(f"'{name}'", value, [declared])
            return
        for entry in value:
            _require_entry(f"An entry of '{name}'", entry, entries[0])


def _require_entry(what: str, value: object, declared: Sequence[UnionMember]) -> None:
    if not any(member.accepts(value) for member in declared):
        raise _error(what, value, declared)
    if is_number(value) and any(member.name == "float" for member in declared):
        _require_representable(what, value)


def _require_array(what: str, value: object, *, complex_numbers: bool) -> None:
    """Raise UsageError for a list that is not an array of numbers: ragged, or with texts or None among its entries."""
    import numpy as np

    try:
        array = np.asarray(value)
    except ValueError:
        raise UsageError(f"{what} is not an array of numbers: its rows have different lengths.") from None
    numeric = array.dtype.kind in ("biufc" if complex_numbers else "biuf")
    if numeric or (array.dtype.kind == "O" and all(map(is_number, array.ravel().tolist()))):
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
    if isinstance(value, int) and abs(value) > _MAX_INTEGER:
        raise UsageError(f"{what} is too large for an integer: write it as a floating-point number.")
    if math.isnan(number):
        raise UsageError(f"{what} is not a number (NaN): give a finite number.")


def _error(what: str, value: object, declared: Sequence[UnionMember]) -> UsageError:
    """Return the error for a value that none of the types of a union accepts."""
    names = {member.name for member in declared if member.name}
    if names <= {"float", "int", "None"} and value is not None:
        kind = "a number" if "float" in names else "an integer"
        value_text = repr(value)
        if len(value_text) > _MAX_VALUE_CHARACTERS:
            value_text = f"{value_text[:_MAX_VALUE_CHARACTERS]}..."
        return UsageError(f"{what} is {' '.join(value_text.split())}: {kind} is needed.")
    if isinstance(value, str) and names & ITERABLES:
        value_text = value[:_MAX_VALUE_CHARACTERS]
        return UsageError(f"{what} is the text '{value_text}', and should be a list: write ['{value_text}'].")
    # A class says in ``_made_by`` how an object of it is made.
    hints = [getattr(member.stands_for, "_made_by", "") for member in declared]
    hint = "".join(f": {text}" for text in hints if text)
    expected_types = " or ".join(sorted(names - {"None"}))
    return UsageError(
        f"{what} is of the type '{type(value).__name__}', and should be of the type {expected_types}{hint}."
    )
