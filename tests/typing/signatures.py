"""Where ``Any`` stands in the signatures of public functions, methods and fields."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import cached_property
from types import FunctionType
from typing import Any

PUBLIC_MODULES = [
    "fmilin", "fmilin.adapters", "fmilin.constraints", "fmilin.design", "fmilin.errors", "fmilin.export",
    "fmilin.fmi.write", "fmilin.formulations", "fmilin.lyapunov", "fmilin.models", "fmilin.models.mechanism",
    "fmilin.reduction", "fmilin.report", "fmilin.signals", "fmilin.simulation", "fmilin.systems", "fmilin.testing",
    "fmilin.wrapping",
]  # fmt: skip
SPECIAL_METHODS = {"__init__", "__call__", "__getitem__", "__iter__"}
Public = type | FunctionType


def public_things() -> dict[Public, str]:
    """Return the public classes and functions with the first documented path of each."""
    things: dict[Public, str] = {}
    for path in PUBLIC_MODULES:
        module = importlib.import_module(path)
        listed = getattr(module, "__all__", None)
        for name in listed or dir(module):
            thing = getattr(module, name)
            is_ours = getattr(thing, "__module__", "").startswith("fmilin" if listed else path)
            if not name.startswith("_") and is_ours and isinstance(thing, Public):
                things.setdefault(thing, f"{path}.{name}")
    return things


def annotations_with_any() -> set[str]:
    """Return ``PATH PARAMETER`` for each annotation that holds Any, or a name that stands for nothing but Any."""
    marked = set()
    things = public_things()
    for thing, path in things.items():
        if isinstance(thing, FunctionType):
            marked |= {f"{path} {name}" for name in names_with_any(thing)}
            continue
        for base in thing.__mro__:
            if base is not thing and (base in things or not base.__module__.startswith("fmilin")):
                continue
            for key, member in vars(base).items():
                if key.startswith("_") and key not in SPECIAL_METHODS:
                    continue
                function = underlying_function(member)
                if function is not None:
                    marked |= {f"{path}.{key} {name}" for name in names_with_any(function)}
            marked |= {f"{path} {name}" for name in fields_with_any(base)}
    return marked


def underlying_function(member: object) -> FunctionType | None:
    """Return the function of a method or of a property of a class."""
    if isinstance(member, classmethod | staticmethod):
        member = member.__func__
    elif isinstance(member, property):
        member = member.fget
    elif isinstance(member, cached_property):
        member = member.func
    return member if isinstance(member, FunctionType) else None


def names_with_any(function: Callable[..., object]) -> Iterator[str]:
    """Return the parameters of a function whose annotations hold Any, and ``return``."""
    function = inspect.unwrap(function)
    module = sys.modules[function.__module__]
    node = parsed_source(function)
    if not isinstance(node, ast.FunctionDef):
        return
    arguments = node.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for argument in listed:
        if argument is not None and argument.annotation is not None and holds_any(argument.annotation, module):
            yield argument.arg
    if node.returns is not None and holds_any(node.returns, module):
        yield "return"


def fields_with_any(owner: type) -> Iterator[str]:
    """Return the public fields of a class whose annotations hold Any."""
    node = parsed_source(owner)
    for statement in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            if not name.startswith("_") and holds_any(statement.annotation, sys.modules[owner.__module__]):
                yield name


def parsed_source(thing: type | Callable[..., object]) -> ast.stmt | None:
    """Return the definition of a class or function; None where there is no source, as of methods of dataclasses."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    except (OSError, TypeError):
        return None


def holds_any(annotation: ast.expr, module: object) -> bool:
    """Whether an annotation names Any or an alias of Any; ``np.integer[Any]``, of any width, does not count."""
    exempt: set[int] = set()
    subscripts = [node for node in ast.walk(annotation) if isinstance(node, ast.Subscript)]
    for subscript in subscripts:
        if ast.unparse(subscript.value) in ("np.integer", "np.floating"):
            exempt |= {id(part) for part in ast.walk(subscript)}
    names = [node for node in ast.walk(annotation) if isinstance(node, ast.Name) and id(node) not in exempt]
    return any(node.id == "Any" or getattr(module, node.id, None) is Any for node in names)
