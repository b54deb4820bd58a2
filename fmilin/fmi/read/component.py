"""The code of an FMU in its host process: calls bound to arrays, every status checked.

Messages of the FMU go to Python's ``logging``, the last of them into error messages; never to standard output.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError, ModelCrashError, ModelError, NumericalError
from fmilin.fmi.client.arena import Arena, Repeated
from fmilin.fmi.client.function_names import FmiStandard, function_name
from fmilin.fmi.client.host_programs import Instruction, Operation, Program, ValueType
from fmilin.fmi.client.process import NO_FUNCTION, TOO_LONG, Failure, HostProcess
from fmilin.fmi.client.restrictions import current_restrictions, python_variables
from fmilin.fmi.client.wine import require_wine, to_windows_path
from fmilin.fmi.host.build import find_program
from fmilin.fmi.platforms import Machine
from fmilin.fmi.platforms import host as this_machine

logger = logging.getLogger("fmilin.fmu")
logger.addHandler(logging.NullHandler())  # as a library should: nothing is printed unless the application asks for it

# fmi2Status, fmi3Status: OK, Warning, Discard, Error, Fatal, Pending
_LEVELS = (logging.DEBUG, logging.WARNING, logging.WARNING, logging.ERROR, logging.CRITICAL, logging.DEBUG)
_REFERENCE = re.compile(r"#r(\d+)#")  # FMI 2.0.4 section 2.1.5: '#r12#' stands for the Real with reference 12
_MAX_TEXT_CHARACTERS = 600

_DISCARD_STATUS, _ERROR_STATUS, _FATAL_STATUS = 2, 3, 4
_STATUS = ("ok", "warning", "discard", "error", "fatal", "pending")
_AT_THE_START = (
    Operation.SETUP_EXPERIMENT,
    Operation.ENTER_INITIALIZATION,
    Operation.EXIT_INITIALIZATION,
)
"""Operations in which an FMU reads files and asks for licences."""
_ABOUT_THE_MODEL = (Operation.GET_NOMINALS, Operation.GET_EVENT_INDICATORS)
"""Operations that say nothing about the point when they fail."""
ADVICE = (
    "It runs without access to your files, environment and network. Allow what it needs with fl.Limits(read=['PATH'], "
    "environment=['NAME'], network=True)."
)


class LogSink:
    """Takes the messages of one FMU; ``names`` of Real variables by reference put words in place of numbers."""

    def __init__(self, source: str, names: Mapping[int, tuple[str, ...]]) -> None:
        self.source = source
        self.recent: deque[tuple[int, str]] = deque(maxlen=20)
        self._names = names
        self._pending: list[tuple[int, str, str]] | None = None  # levels, texts, categories, while an attempt runs

    @contextmanager
    def hold_messages(self) -> Iterator[None]:
        """Log the messages of an attempt at its end; those before :meth:`excuse` count as details then."""
        if self._pending is not None:
            yield
            return
        self._pending = []
        try:
            yield
        finally:
            pending, self._pending = self._pending, None
            for level, text, category in pending:
                self._log(level, text, category)

    def excuse(self) -> None:
        """Make details of the messages that are held: another way has led to the result."""
        self._pending = [(logging.DEBUG, text, category) for _, text, category in self._pending or []]

    def _log(self, level: int, text: str, category: str) -> None:
        logger.log(level, "%s: %s", self.source, text, extra={"category": category})

    def take(self, status: int, category: str, message: str) -> None:
        """Take one message."""
        text = _REFERENCE.sub(lambda match: (self._names.get(int(match[1])) or match)[0], message.strip())
        self.recent.append((status, text))
        if status < 0:  # of the host: errors say it
            return
        level = _LEVELS[status] if status < len(_LEVELS) else logging.WARNING
        if self._pending is not None:
            self._pending.append((level, text, category))
        else:
            self._log(level, text, category)

    def last_words(self) -> str:
        """Return a sentence with what the FMU said since :meth:`forget`, warnings and errors first."""
        messages = [(status, text) for status, text in self.recent if status >= 0 and text]
        serious = [text for status, text in messages if status not in (0, 5)]
        texts = (serious or [text for _, text in messages])[-3:]
        if not texts:
            return "The FMU itself reported no reason."
        text = " / ".join(
            text if len(text) <= _MAX_TEXT_CHARACTERS else text[:_MAX_TEXT_CHARACTERS] + "..." for text in texts
        )
        return f'The FMU reported: "{text}".'

    def forget(self) -> None:
        """Forget the messages so far."""
        if self.recent:
            self.recent.clear()


Calls = Program | Sequence[Instruction]


class LoadedCode:
    """A library in a host process, and one instance of it at a time; it begins without a process."""

    def __init__(
        self, path: Path, standard: FmiStandard, sink: LogSink, arena: Arena, folder: Path, machine: Machine
    ) -> None:
        self.arena = arena
        self.health = 0  # the worst status that was not a warning: from 3 on only freeing is allowed, from 4 on nothing
        self.has_instance = False
        self.instances = 0  # that this process has had
        self.is_copied = False  # whether copies of the next process may be made
        self._path, self._standard, self._sink, self._folder = path, standard, sink, folder
        self._machine = machine
        self._is_foreign = machine != this_machine()
        self._restrictions = current_restrictions()
        is_restricted = not self._restrictions.unrestricted
        runs_in_wine = self._is_foreign and machine.system == "windows"
        self._wine = require_wine(sink.source, machine, is_restricted=is_restricted) if runs_in_wine else None
        self._scratch = folder / ".scratch"
        self._host: HostProcess | None = None
        self._recorded_calls: list[Instruction] | None = None  # instead of making them
        self._lock = threading.RLock()

    def start(self) -> None:
        """Load the library in a fresh process; one that runs is ended."""
        self.kill()
        self._lock = threading.RLock()  # in a forked process another thread may have held the former one
        problem = self._load({})
        if problem and _LACKS_PYTHON.search(problem) and (library := _python_library()):
            problem = self._load({"LD_PRELOAD": str(library), **python_variables()}) and problem
        if problem:
            raise self._not_loaded(f"Failed to load shared library {self._path}. {problem}")

    def _load(self, variables: Mapping[str, str]) -> str:
        """Load the library in a process with these variables, too; return why it cannot be loaded, else nothing."""
        self._scratch.mkdir(exist_ok=True)
        options = ["--read", str(self._folder), "--scratch", str(self._scratch)]
        may_copy = self.is_copied and not self._is_foreign
        host = HostProcess(
            self.arena,
            self._sink.source,
            self._sink.take,
            wine=self._wine,
            program=find_program(self._machine),
            options=[*self._restrictions.to_options(copied=may_copy), *options],
            environment={**self._restrictions.to_environment(), "TMPDIR": str(self._scratch), **variables},
            seconds=self._restrictions.seconds,
        )
        standard = self._standard
        problem = host.open_library(self._path, standard.version, stepped=standard.stepped, prefix=standard.symbols)
        if problem:
            host.kill()
            return problem
        self._host = host
        self.instances = 0
        return ""

    def uri(self, path: Path) -> str:
        """Return the URI by which the code finds a path."""
        return path.as_uri() if self._wine is None else PureWindowsPath(to_windows_path(path)).as_uri()

    def folder_name(self, path: Path) -> str:
        """Return the name by which the code finds a folder, with a separator at its end."""
        return f"{path}{os.sep}" if self._wine is None else f"{to_windows_path(path)}\\"

    @property
    def is_running(self) -> bool:
        """Whether there is a process that can be asked."""
        return self._host is not None and self._host.is_alive

    def kill(self) -> None:
        """End the process at once, with all that is in it."""
        if self._host is not None:
            self._host.kill()
        self._host, self.has_instance = None, False

    def bound(
        self,
        operation: Operation,
        *operands: NDArray[np.generic] | Repeated,
        kind: ValueType = ValueType.FLOAT64,
        immediate: int = 0,
    ) -> Instruction:
        """Return a call of the function behind ``operation``, bound to arrays of the arena."""
        name = self._standard.prefix + function_name(self._standard, operation, kind)
        return Instruction(self.arena, operation, *operands, name=name, kind=kind, immediate=immediate)

    def run(self, calls: Calls) -> None:
        """Make calls one after the other."""
        failure = self.first_bad(calls)
        if failure is not None:
            raise self.error_at_point(failure)

    def error_at_point(self, failure: Failure) -> FmilinError:
        """Return the error for a call that failed at a point; a discarded point is one without a solution."""
        error = self.failure(failure)
        no_solution = failure.status == _DISCARD_STATUS and _operation(failure) not in _ABOUT_THE_MODEL
        return NumericalError(str(error)) if no_solution else error

    def first_bad(self, calls: Calls, count: int = 1) -> Failure | None:
        """Make calls, ``count`` times, up to the first with a status worse than a warning; return which it was."""
        if self._recorded_calls is not None:
            self._recorded_calls += calls.instructions if isinstance(calls, Program) else calls
            return None
        host = self._running_host()
        with self._lock:  # a message and its answer belong together, whatever thread asks
            if isinstance(calls, Program):
                return host.run(calls, count) if calls.instructions else None
            return host.execute(calls) if calls else None

    @contextmanager
    def record(self) -> Iterator[list[Instruction]]:
        """Collect calls instead of making them; what they answer is zero meanwhile."""
        self._recorded_calls = []
        try:
            yield self._recorded_calls
        finally:
            self._recorded_calls = None

    def make_copy(self) -> bool:
        """Let the process make a copy of itself, which waits; return whether it does."""
        host = self._running_host()
        with self._lock:
            return self.is_copied and host.make_copy()

    def return_to_copy(self) -> bool:
        """Go on with the copy in place of the process; return False where there is none any more."""
        host = self._running_host()
        with self._lock:
            return host.return_to_copy()

    def drop_copy(self) -> None:
        """End the copy, if there is one."""
        if self.is_running:
            host = self._running_host()
            with self._lock:
                host.drop_copy()

    def _running_host(self) -> HostProcess:
        if self._host is None:
            raise ModelCrashError(f"The process of '{self._sink.source}' has ended. Load the model again.")
        return self._host

    def call(
        self,
        operation: Operation,
        *operands: NDArray[np.generic] | Repeated,
        kind: ValueType = ValueType.FLOAT64,
        immediate: int = 0,
    ) -> None:
        """Call a function that is not about a point; a point that is discarded is then an error like others."""
        failure = self.first_bad((self.bound(operation, *operands, kind=kind, immediate=immediate),))
        if failure is not None:
            raise self.failure(failure)

    def create(self, *identity: str, flags: int) -> bool:
        """Instantiate with name, token and resources; return whether there is an instance."""
        self.health = 0
        texts = [self.arena.copy_bytes(text.encode()) for text in identity]
        self.instances += 1
        failure = self.first_bad((self.bound(Operation.INSTANTIATE, *texts, immediate=flags),))
        self.has_instance = failure is None
        if failure is not None and failure.status == NO_FUNCTION:
            raise self.failure(failure)
        return self.has_instance

    def free(self) -> None:
        """Free the instance; after a fatal error, which forbids even that, end the process."""
        if self.is_lost:
            self.kill()
        elif self.has_instance and self.is_running:
            self.has_instance = False
            self.first_bad((self.bound(Operation.FREE_INSTANCE),))
        self.has_instance = False

    def unload(self) -> None:
        """Unload the library and end the process."""
        host, self._host = self._host, None
        if host is not None:
            host.close()

    @property
    def is_usable(self) -> bool:
        """Whether there is an instance that may still be asked."""
        host = self._host  # called at every evaluation
        return self.health < _ERROR_STATUS and self.has_instance and host is not None and host.is_alive

    @property
    def is_lost(self) -> bool:
        """Whether a fatal error forbids every further call."""
        return self.health >= _FATAL_STATUS

    def failure(self, failure: Failure) -> ModelError:
        """Return the error for a call that failed, and remember what may still be done with the instance."""
        status = failure.status
        if status == NO_FUNCTION:
            missing = [text for origin, text in self._sink.recent if origin == NO_FUNCTION]
            return self._not_loaded(f"{self._path}: undefined symbol: {(missing or [failure.name])[-1]}")
        if status < 0:
            why = "a text is too long" if status == TOO_LONG else f"the host returned the status {status}"
            return ModelError(
                f"{failure.name} of '{self._sink.source}' was not called: {why}. Check the values that were set; if "
                "they are as the model description allows, this is a bug of fmilin."
            )
        self.health = max(
            self.health, status if status in (_DISCARD_STATUS, _ERROR_STATUS, _FATAL_STATUS) else _ERROR_STATUS
        )
        word = _STATUS[status] if 0 <= status < len(_STATUS) else "an unknown status"
        advice = {
            _DISCARD_STATUS: "The model cannot be evaluated there: choose another operating point or other parameters.",
            _FATAL_STATUS: "It is started again for the next evaluation.",
        }.get(status, "Check the operating point, the start values and the parameters.")
        starting = self.advice() if _operation(failure) in _AT_THE_START else ""
        return ModelError(
            f"{failure.name} of '{self._sink.source}' returned {word} (status {status}). "
            f"{self._sink.last_words()} {advice}{starting}"
        )

    def advice(self) -> str:
        """Return a sentence about what the FMU may lack in its process, with a space in front; else nothing."""
        return "" if self._restrictions.unrestricted else f" {ADVICE}"

    def _not_loaded(self, why: str) -> ModelError:
        reason = why.rstrip(".")
        return ModelError(
            f"The library of '{self._sink.source}' cannot be loaded: {reason}. It may need other libraries that are "
            f"not installed, a newer system, or lack functions that FMI requires.{self.advice()}"
        )


_LACKS_PYTHON = re.compile(r"undefined symbol: _?Py")
"""FMUs that contain Python may expect that whoever loads them is Python."""


def _python_library() -> Path | None:
    """Return the shared library of this Python, where it has one."""
    import sysconfig

    folder, name = (sysconfig.get_config_var(key) for key in ("LIBDIR", "INSTSONAME"))
    library = Path(str(folder), str(name))
    return library if sys.platform == "linux" and library.suffix != ".a" and library.is_file() else None


def _operation(failure: Failure) -> Operation | None:
    instructions = failure.program
    return instructions[failure.instruction].operation if failure.instruction < len(instructions) else None
