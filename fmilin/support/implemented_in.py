"""Methods that are declared in one package and implemented in a package above it.

A result declares what a user can do with it, in full::

    @implemented_in("fmilin.export.files:save_linear_model")
    def save(self, path: str | Path) -> None:
        \"\"\"Write the linear model to a file.\"\"\"
        ...

Editors, type checkers, :func:`help` and :func:`inspect.signature` read the declaration. The module that holds the
implementation is imported at the first call, so that a result does not load files, pictures or reports.
This is the only call by string in the package; tests compare each declaration with its implementation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def implemented_in(
    address: str, *, subject: Callable[[Any], object] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a declaration with the body ``...``: calls go to the function at ``"module:function"``.

    The implementation takes the arguments of the declaration. Its first argument is the object of the method,
    or ``subject(object)``; a class method (first parameter ``cls``) passes the other arguments only.
    """
    module, _, function = address.partition(":")

    def decorate(declaration: Callable[P, R]) -> Callable[P, R]:
        is_class_method = declaration.__code__.co_varnames[:1] == ("cls",)

        @wraps(declaration)
        def call_implementation(*arguments: P.args, **options: P.kwargs) -> R:
            declaration(*arguments, **options)  # raises the TypeError of a wrong call, with the declared name in it
            implementation: Callable[..., R] = getattr(import_module(module), function)
            if is_class_method:
                return implementation(*arguments[1:], **options)
            if subject is not None:
                return implementation(subject(arguments[0]), *arguments[1:], **options)
            return implementation(*arguments, **options)

        vars(call_implementation)["implemented_in"] = address
        return call_implementation

    return decorate
