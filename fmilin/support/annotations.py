"""Annotations of arguments as text: the types that a union names, looked up in the module that declares it.

Names of classes of fmilin stand for the classes. The check of an argument must not import them: a class that a module
imports for type checkers only is looked up among the modules that are loaded, since no object of another one exists.
"""

from __future__ import annotations

import ast
import inspect
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Any, SupportsFloat, get_args, get_origin

from fmilin.support.dataclass import dataclass

PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True, eq=False)
class UnionMember:
    """One type of a union, as it is written in a module."""

    node: ast.expr
    module: str

    @cached_property
    def name(self) -> str:
        """The name of the type without its parameters and module; empty for what has none."""
        node = self.node.value if isinstance(self.node, ast.Subscript) else self.node
        if isinstance(node, ast.Attribute):
            return node.attr
        if isinstance(node, ast.Name):
            return node.id
        return "None" if isinstance(node, ast.Constant) and node.value is None else ""

    @cached_property
    def parameters(self) -> list[ast.expr]:
        """The types in brackets behind the name."""
        if not isinstance(self.node, ast.Subscript):
            return []
        return self.node.slice.elts if isinstance(self.node.slice, ast.Tuple) else [self.node.slice]

    @cached_property
    def entries(self) -> list[list[UnionMember]]:
        """The members of each of the types in brackets."""
        return [union_entries(parameter, self.module) for parameter in self.parameters]

    @property
    def stands_for(self) -> object:
        """The class, the union of classes, or ``Any`` for every other type that accepts everything."""
        return _look_up(self.name, self.module)

    def accepts(self, value: object) -> bool:
        """Whether a value is of the type; its contents are not examined."""
        predicate = PREDICATES.get(self.name)
        if predicate is not None:
            return predicate(value)
        return _is_instance(value, self.stands_for)


@cache
def list_members(annotation: str, module: str) -> tuple[UnionMember, ...]:
    """Return the members of the union that an annotation is; names of unions of builtin types are written out."""
    return tuple(_members(ast.parse(annotation, mode="eval").body, module))


def _members(node: ast.expr, module: str) -> Iterator[UnionMember]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _members(node.left, module)
        yield from _members(node.right, module)
        return
    member = UnionMember(node, module)
    alias = None if member.name in PREDICATES else _namespace(module).get(member.name)
    if isinstance(node, ast.Name) and get_origin(alias) is not None and not _names_own_class(alias):
        yield from list_members(str(alias), module)
    else:
        yield member


def union_entries(node: ast.expr, module: str) -> list[UnionMember]:
    """Return the members of the union that entries of a container are of; names of unions are left as they are."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*union_entries(node.left, module), *union_entries(node.right, module)]
    return [UnionMember(node, module)]


def _namespace(module: str) -> Mapping[str, object]:
    """Return the names in a module; none of a file that was executed without being a module, as users' files are."""
    return vars(sys.modules[module]) if module in sys.modules else {}


def _look_up(name: str, module: str) -> object:
    """Return what a name in a module stands for: ``()``, of which nothing is an instance, while that is not loaded."""
    namespace = _namespace(module)
    if name in namespace:
        return namespace[name]
    source = _imports_for_type_checkers(module).get(name, "")
    if not source.startswith(f"{PACKAGE}."):
        return Any
    return getattr(sys.modules[source], name, Any) if source in sys.modules else ()


@cache
def _imports_for_type_checkers(module: str) -> Mapping[str, str]:
    """Return the modules of the names that a module imports in ``if TYPE_CHECKING:``; none without its source."""
    if module not in sys.modules:
        return {}
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    blocks = [node.body for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: node.module or "" for node in imports for alias in node.names}


def is_own_class(thing: object) -> bool:
    """Whether something is a class of fmilin with comparable instances; of a protocol anything may be one."""
    is_class = isinstance(thing, type) and get_origin(thing) is None
    return is_class and thing.__module__.partition(".")[0] == PACKAGE and not getattr(thing, "_is_protocol", False)


def _names_own_class(alias: object) -> bool:
    return any(is_own_class(argument) for argument in get_args(alias))


def _is_instance(value: object, kind: object) -> bool:
    """Whether a value is an instance of a class of fmilin, or of a member of a union of some; others accept it."""
    if kind == ():
        return False
    if isinstance(kind, UnionType):
        return any(_is_instance(value, member) for member in get_args(kind)) if _names_own_class(kind) else True
    if isinstance(kind, type) and is_own_class(kind):
        return isinstance(value, kind)
    if kind is NoneType:
        return value is None
    predicate = PREDICATES.get(getattr(get_origin(kind) or kind, "__name__", ""))
    return predicate is None or predicate(value)


def is_integer(value: object) -> bool:
    """Whether a value is an integer, of numpy or another library too."""
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return not getattr(value, "ndim", 0)


def is_number(value: object) -> bool:
    """Whether a value is a real number; texts that look like one are not."""
    if isinstance(value, str | bytes | type) or not isinstance(value, SupportsFloat):
        return False
    if getattr(value, "ndim", 0):
        return False
    dtype: Any = getattr(value, "dtype", None)
    return dtype is None or dtype.kind in "biufO"


def _is_bool(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return isinstance(value, bool) or (numpy is not None and isinstance(value, numpy.bool_))


def _is_listing(value: object) -> bool:
    """Whether a value can be iterated for its entries. A text or a mapping in place of a list is a mistake."""
    if isinstance(value, str | bytes | Mapping | type):
        return False
    return isinstance(value, Iterable) or hasattr(value, "__getitem__")  # a matrix of sympy is not an Iterable


def _is_array(value: object) -> bool:
    return _is_listing(value) or is_number(value) or isinstance(value, complex)


ITERABLES = frozenset({"Iterable", "Sequence", "tuple", "list"})

PREDICATES: Mapping[str, Callable[[object], bool]] = {
    "None": lambda value: value is None,
    "str": lambda value: isinstance(value, str),
    "Path": lambda value: isinstance(value, os.PathLike),
    "PathLike": lambda value: isinstance(value, os.PathLike),
    "bool": _is_bool,
    "int": is_integer,
    "float": is_number,
    "Literal": lambda value: value is None or isinstance(value, str | int),
    "Mapping": lambda value: isinstance(value, Mapping),
    "Callable": callable,
    **dict.fromkeys(("FloatArray", "RealArray", "RealArrayLike", "ArrayLike"), _is_array),
    **dict.fromkeys(ITERABLES, _is_listing),
}
"""Builtin types by their names, which accept what Python and numpy accept for them: an integer for a float."""
