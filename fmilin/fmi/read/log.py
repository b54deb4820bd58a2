"""What an FMU says goes to Python's ``logging``, and its last words into error messages; never to standard output."""

from __future__ import annotations

import ctypes
import itertools
import logging
import re
import weakref
from collections import deque
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from fmilin.fmi.platforms import c_library, fmpy_folder, host
from fmilin.fmi.read.printed import when_free
from fmilin.ground.sandbox.watchdog import say

logger = logging.getLogger("fmilin.fmu")
logger.addHandler(logging.NullHandler())  # as a library should: nothing is printed unless the application asks for it

# fmi2Status, fmi3Status: OK, Warning, Discard, Error, Fatal, Pending
_LEVELS = (logging.DEBUG, logging.WARNING, logging.WARNING, logging.ERROR, logging.CRITICAL, logging.DEBUG)
_REFERENCE = re.compile(r"#r(\d+)#")  # FMI 2.0.4 section 2.1.5: '#r12#' stands for the Real with reference 12
_LONGEST = 600
_pointer, _text = ctypes.c_void_p, ctypes.c_char_p

_numbers = itertools.count(1)
# The C function that formats FMI 2 messages (FMPy's proxy for the variable arguments) keeps one callback for
# the whole process, so the callback must find the instance that speaks; see `deliver`.
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
        text = _REFERENCE.sub(self._named, _decoded(message).strip())
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

    def _named(self, match: re.Match[str]) -> str:
        names = self._names.get(int(match[1]))
        return names[0] if names else match[0]


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
    folder = fmpy_folder()
    try:
        own = host()  # FMPy has one for each platform of FMI 2.0
        library = f"{own.fmi2_folder}/logging{own.suffix}"
        return None if folder is None else ctypes.CDLL(str(folder / "logging" / library))
    except OSError:  # FMPy ships it for some platforms only
        return None


def _address(function: str) -> int | None:
    return ctypes.cast(getattr(c_library(), function), _pointer).value


def _decoded(text: bytes | None) -> str:
    return (text or b"").decode("utf-8", "replace")
