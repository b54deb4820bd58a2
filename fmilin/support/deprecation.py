"""Old names of functions, keywords and attributes: they work for one version, and raise a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar, overload

from fmilin.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")

REMOVED_IN_VERSION = "0.4"


def warn_of_old_name(old: str, new: str) -> None:
    """Warn, at the line of the user's code that uses it, that a name has another one now."""
    warnings.warn(
        f"'{old}' is called '{new}' now. The old name will be removed in fmilin {REMOVED_IN_VERSION}.",
        DeprecationWarning,
        stacklevel=_count_own_frames(),
    )


def _count_own_frames() -> int:
    """Return the ``stacklevel`` that skips fmilin, its lazy imports and the ``__init__`` of its data classes.

    ``warnings.warn(skip_file_prefixes=...)`` does the same from Python 3.12 on.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    return level


def _is_own(module: str) -> bool:
    return not module or module.partition(".")[0] in {"fmilin", "lazy_loader", "importlib"}


def rename_keywords(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take keyword arguments under their old names, too: ``@rename_keywords(held="hold_noise")``.

    Raises
    ------
    UsageError
        In a call with both names.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> R:
            for old in new_names.keys() & options.keys():
                new = new_names[old]
                if new in options:
                    raise UsageError(f"'{old}' is the old name of '{new}': leave '{old}' out.")
                warn_of_old_name(old, new)
                options[new] = options.pop(old)
            return function(*arguments, **options)

        return call

    return decorate


class DeprecatedAlias:
    """An attribute or method of a class under its old name: ``seen = DeprecatedAlias("apparent")``."""

    def __init__(self, new: str) -> None:
        self.new = new
        self.old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    @overload
    def __get__(self, instance: None, owner: type) -> DeprecatedAlias: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Any: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        warn_of_old_name(self.old, self.new)
        return getattr(instance, self.new)


def resolve_old_name(module: str, name: str, new_names: Mapping[str, str]) -> str:
    """Return the new name of what a module had under an old one; for the module's ``__getattr__``.

    Raises
    ------
    AttributeError
        For a name that is not among the old ones.
    """
    if name not in new_names:
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    warn_of_old_name(f"{module}.{name}", f"{module}.{new_names[name]}")
    return new_names[name]
