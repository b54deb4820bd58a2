"""The code of an FMU behind its C functions: every call noted for the process that watches, every status checked.

What it says goes to Python's ``logging``, and its last words into error messages; never to standard output.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import os
import re
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from fmilin.errors import ModelError, NumericalError
from fmilin.fmi.platforms import c_library, fmpy_folder, host
from fmilin.fmi.read import printed
from fmilin.fmi.read.printed import same_directory, when_free
from fmilin.sandbox import cage, watchdog
from fmilin.sandbox.watchdog import say

logger = logging.getLogger("fmilin.fmu")
logger.addHandler(logging.NullHandler())  # as a library should: nothing is printed unless the application asks for it

# fmi2Status, fmi3Status: OK, Warning, Discard, Error, Fatal, Pending
_LEVELS = (logging.DEBUG, logging.WARNING, logging.WARNING, logging.ERROR, logging.CRITICAL, logging.DEBUG)
_REFERENCE = re.compile(r"#r(\d+)#")  # FMI 2.0.4 section 2.1.5: '#r12#' stands for the Real with reference 12
_LONGEST = 600
_pointer, _text = ctypes.c_void_p, ctypes.c_char_p

_numbers = itertools.count(1)
# FMPy's proxy, which formats FMI 2 messages, keeps one callback for the process: it finds the instance that speaks.
_sinks: weakref.WeakValueDictionary[int, LogSink] = weakref.WeakValueDictionary()


class LogSink:
    """Takes the messages of one FMU; ``names`` of Real variables by reference put words in place of numbers."""

    def __init__(self, source: str, names: Mapping[int, tuple[str, ...]]) -> None:
        self.source = source
        self.number = next(_numbers)
        self.recent: deque[tuple[int, str]] = deque(maxlen=20)
        self._names = names
        _sinks[self.number] = self

    def take(self, status: int, category: bytes | None, message: bytes | None) -> None:
        """Take one message."""
        text = _REFERENCE.sub(lambda match: (self._names.get(int(match[1])) or match)[0], _decoded(message).strip())
        self.recent.append((status, text))
        say(text)
        level = _LEVELS[status] if 0 <= status < len(_LEVELS) else logging.WARNING
        extra = {"category": _decoded(category)}
        when_free(lambda: logger.log(level, "%s: %s", self.source, text, extra=extra))

    def known_as(self, number: int) -> None:
        """Take also the messages that come with this number: FMI 1.0 tells the component instead of an environment."""
        _sinks[number] = self

    def last_words(self) -> str:
        """Return a sentence with what the FMU said since :meth:`forget`, warnings and errors first."""
        serious = [text for status, text in self.recent if status not in (0, 5) and text]
        texts = (serious or [text for _, text in self.recent if text])[-3:]
        if not texts:
            return "The FMU itself gives no reason."
        shown = " / ".join(text if len(text) <= _LONGEST else text[:_LONGEST] + "..." for text in texts)
        return f'The FMU says: "{shown}".'

    def forget(self) -> None:
        """Forget the messages so far."""
        if self.recent:
            self.recent.clear()


def deliver(number: int | None, status: int, category: bytes | None, message: bytes | None) -> None:
    """Hand a message to the sink with this number; to the newest one when the FMU mixes up its environment."""
    sink = _sinks.get(number or 0)
    if sink is None and _sinks:
        sink = _sinks.get(max(_sinks.keys()))
    if sink is not None:
        sink.take(status, category, message)


_Log = ctypes.CFUNCTYPE(None, _pointer, _text, ctypes.c_int, _text, _text)


class Callbacks(ctypes.Structure):
    """The struct fmiCallbackFunctions of FMI 1.0; that of FMI 2.0 begins with the same fields."""

    _fields_ = (("logger", _Log), ("allocate", _pointer), ("free", _pointer), ("step_finished", _pointer))


C = TypeVar("C", bound=Callbacks)


def callbacks(kind: type[C]) -> C:
    """Return what an FMU of FMI 1.0 or 2.0 calls: the C functions themselves for memory, ours for messages."""
    made = kind(logger=_logger(), allocate=_address("calloc"), free=_address("free"))
    proxy = _proxy()
    if proxy is not None:
        proxy.addLoggerProxy(ctypes.byref(made))
    return made


@cache
def _logger() -> Any:
    """Return the one C callback of this process: FMPy's proxy keeps a single one, so it must never be freed."""

    def log(environment: int | None, _: bytes, status: int, category: bytes, message: bytes) -> None:
        deliver(environment, status, category, message)

    return _Log(log)


@cache
def _proxy() -> Any:
    """Return the library of FMPy that puts the variable arguments into messages; None: their '%s' stay."""
    own = host()
    try:
        return ctypes.CDLL(str(fmpy_folder() / "logging" / own.fmi2_folder / f"logging{own.suffix}"))
    except OSError:  # FMPy ships it for some platforms only
        return None


def _address(function: str) -> int | None:
    return ctypes.cast(getattr(c_library(), function), _pointer).value


def _decoded(text: bytes | None) -> str:
    return (text or b"").decode("utf-8", "replace")


Call = tuple[Callable[[], int | None], str]  # a C function bound to all arguments, or what prepares its buffers; a name

_WARNING, _DISCARD, _ERROR, _FATAL = 1, 2, 3, 4
_STATUS = ("ok", "warning", "discard", "error", "fatal", "pending")
_AT_THE_START = ("Initialize", "SetupExperiment", "EnterInitializationMode", "ExitInitializationMode")
"""Functions in which an FMU reads files and asks for licences."""
_ABOUT_THE_MODEL = ("GetNominalsOfContinuousStates", "GetNominalContinuousStates", "GetEventIndicators")
"""Functions whose refusal says nothing about the point."""


class LoadedCode:
    """A loaded library, and one component of it at a time; ``symbols`` begin its functions' names (FMI 1.0 only)."""

    def __init__(self, path: Path, prefix: str, sink: LogSink, symbols: str = "") -> None:
        self.handle = ctypes.c_void_p()  # null without a component; bound calls hold it: the same object for ever
        self.health = 0  # the worst status that was no warning: from 3 on only freeing is allowed, from 4 on nothing
        self._prefix, self._symbols, self._sink = prefix, symbols, sink
        self._functions: dict[str, Any] = {}
        self.may_change = False  # whether another library may take its place: calls look functions up every time
        self._library = self._loaded(path)

    def load_instead(self, path: Path) -> None:
        """Let another library answer from now on, also the calls that are bound already; see ``may_change``."""
        self.unload()
        self._functions.clear()
        self._library = self._loaded(path)

    def _loaded(self, path: Path) -> ctypes.CDLL:
        cage.close()
        try:
            # Some libraries look for others in the working directory.
            with watchdog.calling("the loading of the library"), same_directory():
                os.chdir(path.parent)
                return ctypes.CDLL(str(path))
        except (OSError, UnicodeDecodeError) as error:
            # What the system says names the library's own strings, which may be in any encoding.
            said = error.object.decode("utf-8", "replace") if isinstance(error, UnicodeDecodeError) else str(error)
            said = said or _refusal_of(path)
            raise self._not_loaded(f"Failed to load shared library {path}. {said}") from None

    def bound(self, name: str, *arguments: Any) -> Call:
        """Return the function ``name`` of the component, bound to its arguments, all of them of C's own types."""
        function = partial(self._present, name) if self.may_change else self._function(name)
        return partial(function, self.handle, *arguments), self._prefix + name

    def _present(self, name: str, *arguments: Any) -> Any:
        return self._function(name)(*arguments)

    def run(self, calls: Iterable[Call]) -> None:
        """Make calls one after the other."""
        bad = self.first_bad(calls)
        if bad is not None:
            status, full_name = bad
            name = full_name.removeprefix(self._prefix)
            failure = self.failure(name, status)
            no_solution = status == _DISCARD and name not in _ABOUT_THE_MODEL
            raise NumericalError(str(failure)) if no_solution else failure

    def first_bad(self, calls: Iterable[Call]) -> tuple[int, str] | None:
        """Make calls up to the first whose status is worse than a warning; return that status, and whose it is."""
        listener, own, bad = watchdog.listener(), os.getpid(), None
        if listener is None:
            printed.begin()
        try:
            for function, name in calls:
                if listener is not None:
                    listener.write(name)
                status = function()
                if status and status != _WARNING:
                    bad = status, name
                    break
            watchdog.only_here(own)
        finally:
            if listener is None:
                printed.end()
        if listener is not None:
            listener.done()
        return bad

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that is not about a point; a point that is discarded is then an error like others."""
        bad = self.first_bad((self.bound(name, *arguments),))
        if bad is not None:
            raise self.failure(name, bad[0])

    def create(self, name: str, *arguments: Any) -> bool:
        """Let the function ``name`` make the component; return whether there is one."""
        self.health = 0
        create = self._function(name)
        create.restype = ctypes.c_void_p
        with watchdog.calling(self._prefix + name):
            self.handle.value = create(*arguments)
        return bool(self.handle.value)

    def free(self, name: str) -> None:
        """Free the component with the function ``name``, unless a fatal error forbids even that."""
        if not self.is_lost:
            release = self._function(name)
            release.restype = None
            with watchdog.calling(self._prefix + name):
                release(self.handle)
        self.handle.value = None

    def unload(self) -> None:
        """Unload the library."""
        if self.is_lost:
            return
        handle = ctypes.c_void_p(self._library._handle)
        with watchdog.calling("the unloading of the library"):
            if sys.platform == "win32":
                ctypes.windll.kernel32.FreeLibrary(handle)
            else:
                c_library().dlclose(handle)

    @property
    def is_usable(self) -> bool:
        """Whether there is a component that may still be asked."""
        return self.health < _ERROR and self.handle.value is not None

    @property
    def is_lost(self) -> bool:
        """Whether a fatal error forbids every further call, a fresh component included."""
        return self.health >= _FATAL

    def failure(self, name: str, status: int) -> ModelError:
        """Return the error for the function ``name``, and remember what may still be done with the component."""
        self.health = max(self.health, status if status in (_DISCARD, _ERROR, _FATAL) else _ERROR)
        word = _STATUS[status] if 0 <= status < len(_STATUS) else "an unknown status"
        advice = {
            _DISCARD: "The model cannot be evaluated there: choose another operating point or other parameters.",
            _FATAL: "The model is beyond repair in this process.",
        }.get(status, "Check the operating point, the start values and the parameters.")
        starting = cage.advice() if name in _AT_THE_START else ""
        return ModelError(
            f"{self._prefix}{name} of '{self._sink.source}' returned {word} (status {status}). "
            f"{self._sink.last_words()} {advice}{starting}"
        )

    def _function(self, name: str) -> Any:
        """Return the C function of this name; its status is an int."""
        c_function = self._functions.get(name)
        if c_function is None:
            try:
                c_function = self._library[f"{self._symbols}{self._prefix}{name}"]
            except AttributeError as error:
                raise self._not_loaded(str(error)) from None
            self._functions[name] = c_function  # its result is a C int unless said otherwise
        return c_function

    def _not_loaded(self, why: str) -> ModelError:
        return ModelError(
            f"The library of '{self._sink.source}' cannot be loaded: {why}. It may need other libraries that are not "
            f"installed, a newer system, or lack functions that FMI requires.{cage.advice()}"
        )


def _refusal_of(path: Path) -> str:
    """Return what the loader says of a library: early releases of Python 3.11 drop texts that are no UTF-8."""
    system = ctypes.CDLL(None)
    system.dlopen.restype, system.dlerror.restype = ctypes.c_void_p, ctypes.c_char_p
    system.dlopen(os.fsencode(path), os.RTLD_NOW)
    return (system.dlerror() or b"").decode("utf-8", "replace")
