"""Data classes that are completed when they are used: :func:`dataclass` does what ``dataclasses.dataclass`` does.

``dataclasses.dataclass`` writes the methods of a class as text and compiles each of them when the class is made: half a
millisecond a class. A command that linearizes an FMU imports 170 of them, makes objects of 95, and compares or shows
those of one: that was a fifth of its time. Here the fields are read at once, ``__init__`` is compiled when the first
object is made, and the methods that compare, hash and show when one of them is called; by ``dataclasses`` itself.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(kind: type | None = None, /, **options: bool) -> Any:
        """Return a class as a data class, or a decorator that does; arguments as of ``dataclasses.dataclass``."""
        if kind is None:
            return lambda decorated: _decorate(decorated, options)
        return _decorate(kind, options)


__all__ = ["dataclass"]

_HANDLED = {"frozen", "eq", "repr", "slots", "kw_only"}
_WRITTEN = {"__init__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__", "__setstate__"}
_lock = RLock()  # two threads may make the first objects of a class


def _decorate(kind: type, options: dict[str, bool]) -> type:
    is_derived = any(hasattr(base, "__dataclass_fields__") for base in kind.__mro__[1:])
    # Rare ones are left to ``dataclasses``; a class without a docstring gets its signature as one.
    if not options.keys() <= _HANDLED or vars(kind).keys() & _WRITTEN or kind.__doc__ is None:
        return dataclasses.dataclass(**options)(kind)
    structure: dict[str, Any] = {name: options[name] for name in ("slots", "kw_only") if name in options}
    if is_derived:  # it is compared with the base's
        structure["frozen"] = options.get("frozen", False)
    decorated: type = dataclasses.dataclass(init=False, repr=False, eq=False, **structure)(kind)
    described = vars(decorated)["__dataclass_params__"]
    described.init, described.frozen = True, options.get("frozen", False)
    described.eq, described.repr = options.get("eq", True), options.get("repr", True)
    names = ["__init__"]
    if described.repr and "__repr__" not in vars(decorated):
        names.append("__repr__")
    if described.eq:
        names.append("__eq__")
        if described.frozen:
            names.append("__hash__")
        else:
            decorated.__hash__ = None  # type: ignore[assignment]  # as for every class that compares and can change
    for name in names:
        setattr(decorated, name, _complete_on_call(decorated, name))
    setattr(decorated, "__signature__", _Signature())  # noqa: B010 - no attribute that a class declares
    if described.frozen and not is_derived:
        _freeze(decorated)
    return decorated


def _complete_on_call(kind: type, name: str) -> Callable[..., object]:
    """Return a method that puts those of ``dataclasses`` in its place when it is called."""

    def call(instance: object, /, *arguments: object, **options: object) -> object:
        _complete(kind, name)
        return getattr(kind, name)(instance, *arguments, **options)

    call.__name__, call.__qualname__, call.__module__ = name, f"{kind.__qualname__}.{name}", kind.__module__
    call.is_incomplete = True  # type: ignore[attr-defined]
    return call


def _complete(kind: type, name: str) -> None:
    """Make ``__init__``, or all methods that compare, hash and show, where they are not complete."""
    with _lock:
        made = _make_init(kind) if name == "__init__" else _make_others(kind)
        for method in made:
            if hasattr(vars(kind).get(method), "is_incomplete"):
                setattr(kind, method, made[method])
        if name == "__init__" and "__signature__" in vars(kind):
            del kind.__signature__  # type: ignore[attr-defined]


def _make_init(kind: type) -> Mapping[str, Any]:
    """Return ``__init__``, written here for frozen classes: ``dataclasses`` compiles three methods then."""
    fields = dataclasses.fields(kind)
    all_fields = vars(kind)["__dataclass_fields__"]
    if not vars(kind)["__dataclass_params__"].frozen or len(fields) < len(all_fields):  # InitVar and ClassVar
        return _make(kind, init=True, repr=False, eq=False)
    names: dict[str, Any] = {"_set": object.__setattr__, "_absent": _ABSENT}
    parameters, statements = ["self"], []
    for field in sorted(fields, key=lambda field: field.kw_only is True):
        if field.kw_only and "*" not in parameters:
            parameters.append("*")
        names[f"_default_{field.name}"], names[f"_make_{field.name}"] = field.default, field.default_factory
        value = field.name
        if field.default_factory is not dataclasses.MISSING:
            made = f"_make_{field.name}()"
            value = f"{made} if {field.name} is _absent else {field.name}" if field.init else made
            parameters += [f"{field.name}=_absent"] if field.init else []
        elif field.default is not dataclasses.MISSING:
            if field.init:
                parameters.append(f"{field.name}=_default_{field.name}")
            elif "__slots__" in vars(kind):
                value = f"_default_{field.name}"
            else:  # it is an attribute of the class
                continue
        elif field.init:
            parameters.append(field.name)
        else:  # set by __post_init__
            continue
        statements.append(f"_set(self, {field.name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        statements.append("self.__post_init__()")
    text = "\n    ".join([f"def __init__({', '.join(parameters)}):", *(statements or ["pass"])])
    exec(text, names)  # noqa: S102 - the names of fields, as in ``dataclasses``
    method = names["__init__"]
    method.__qualname__, method.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    method.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return {"__init__": method}


class _Absent:
    """The placeholder for an omitted argument of a field with a ``default_factory``."""

    def __repr__(self) -> str:
        return "<factory>"


_ABSENT = _Absent()


def _make_others(kind: type) -> Mapping[str, Any]:
    return _make(kind, init=False, repr=True, eq=True)


def _make(kind: type, *, init: bool, repr: bool, eq: bool) -> Mapping[str, Any]:  # noqa: A002 - as in ``dataclasses``
    """Return the methods that ``dataclasses`` makes for another class with the same fields."""
    fields = vars(kind)["__dataclass_fields__"]
    body = {
        **fields,  # as of a class that says field(...) for each of its attributes
        "__annotations__": {field.name: field.type for field in fields.values()},
        "__module__": kind.__module__,  # in which names of annotations are looked up
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
    }
    if hasattr(kind, "__post_init__"):
        body["__post_init__"] = None  # __init__ calls it
    frozen = vars(kind)["__dataclass_params__"].frozen
    template = type(kind.__name__, (), body)
    return vars(
        dataclasses.dataclass(init=init, repr=repr, eq=eq, frozen=frozen, slots="__slots__" in vars(kind))(template)
    )


class _Signature:
    """The signature of a class: that of ``__init__``, which is made for it."""

    def __get__(self, instance: object, kind: type) -> inspect.Signature:
        if "__signature__" not in vars(kind):  # a class derived from the data class has its own
            raise AttributeError("__signature__")
        _complete(kind, "__init__")
        return inspect.signature(kind)


def _freeze(kind: type) -> None:
    """Let nothing but ``__init__`` set attributes, and pickled objects with slots be read."""
    names = frozenset(vars(kind)["__dataclass_fields__"])

    def set_attribute(instance: object, name: str, value: object) -> None:
        if type(instance) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, instance).__setattr__(name, value)  # type: ignore[arg-type]

    def delete_attribute(instance: object, name: str) -> None:
        if type(instance) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, instance).__delattr__(name)  # type: ignore[arg-type]

    methods: dict[str, Callable[..., object]] = {"__setattr__": set_attribute, "__delattr__": delete_attribute}
    if "__slots__" in vars(kind):
        methods |= {"__getstate__": _read_state, "__setstate__": _write_state}
    for name, method in methods.items():
        setattr(kind, name, method)


def _read_state(instance: Any) -> list[object]:
    return [getattr(instance, field.name) for field in dataclasses.fields(instance)]


def _write_state(instance: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(instance), state, strict=True):
        object.__setattr__(instance, field.name, value)  # as for every frozen class with slots
