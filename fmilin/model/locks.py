"""Models are used by one thread at a time: each waits until no other works with the same model."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import wraps
from typing import ClassVar, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from fmilin.errors import UsageError
from fmilin.model.declarations import note_declarations
from fmilin.model.interface import Model
from fmilin.support.kinds import require_kinds

P = ParamSpec("P")
R = TypeVar("R")


class _Held:
    locks: ClassVar[WeakKeyDictionary[object, threading.RLock]] = WeakKeyDictionary()
    guard = threading.Lock()


def _alone() -> None:
    """In a forked child there is one thread: no other one can release a lock."""
    _Held.locks, _Held.guard = WeakKeyDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)


def find_lock(thing: object) -> threading.RLock:
    """Return the lock of what is used by one thread at a time."""
    with _Held.guard:
        return _Held.locks.setdefault(thing, threading.RLock())


def held(model: Model) -> AbstractContextManager[object]:
    """Wait until no other thread works with a model or with what it is made of, and let others wait meanwhile."""
    things = model.used_alone
    return find_lock(things[0]) if len(things) == 1 else _hold_several(model)


@contextmanager
def _hold_several(model: Model) -> Iterator[None]:
    with ExitStack() as stack:
        for thing in sorted(model.used_alone, key=id):  # always in one order: two threads never wait for each other
            stack.enter_context(find_lock(thing))
        yield


def no_model(caller: str, thing: object) -> UsageError:
    """Return what to say where something else is given for a model."""
    return UsageError(
        f"{caller}() needs a model, not an object of the type '{type(thing).__name__}'. Open files with fl.load; "
        "fl.connect({'plant': linear}, []) makes a model of a linear one."
    )


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """Let the threads that call a function of a model, its first argument, take turns."""
    first = function.__code__.co_varnames[0]

    @wraps(function)
    def call_locked(*arguments: P.args, **options: P.kwargs) -> R:
        model = arguments[0] if arguments else options.get(first)
        if not isinstance(model, Model):
            raise no_model(getattr(function, "__name__", "this"), model)
        require_kinds(function, arguments, options)
        with held(model), note_declarations(model):
            return function(*arguments, **options)

    return call_locked
