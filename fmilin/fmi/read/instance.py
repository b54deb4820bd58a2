"""One instance of an FMU's code: what both FMI versions have in common.

The functions that are called at every visit take raw addresses of preallocated buffers: no array is
wrapped per call. All others go through FMPy's methods. Either way every status is checked, and the name
of the function is noted before it runs, for the process that finds out after a crash.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fmilin.errors import ModelError, NumericalError
from fmilin.fmi.read.buffers import Group, Pool
from fmilin.fmi.read.description import Description, Variable
from fmilin.fmi.read.layout import Scalar
from fmilin.fmi.read.log import LogSink, logger
from fmilin.fmi.read.settings import Setting
from fmilin.sandbox.watchdog import done, note
from fmilin.signals import FloatArray

__all__ = ["Event", "Instance"]

_STATUS = ("ok", "warning", "discard", "error", "fatal", "pending")
_DISCARD, _ERROR, _FATAL = 2, 3, 4

_ABOUT_THE_MODEL = ("GetNominalsOfContinuousStates", "GetNominalContinuousStates", "GetEventIndicators")
"""Functions whose refusal says nothing about the point."""
_MOST_ITERATIONS = 100
_GUARD = 1024  # numbers kept free behind a buffer whose size the FMU might not respect
_STATUS_CATEGORIES = ("logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal")

_pointer = ctypes.c_void_p
_size = ctypes.c_size_t


@dataclass(frozen=True, slots=True)
class Event:
    """What one round of the event iteration answers."""

    again: bool
    terminate: bool
    next_time: float | None


class Instance(ABC):
    """One instance of an FMU's code, from instantiation to continuous-time mode and back.

    Parameters
    ----------
    folder : Path
        The unpacked FMU.
    description : Description
    number_of_states : int
        That the description declares.
    sink : LogSink
        Takes the FMU's messages.

    Raises
    ------
    ModelError
        From every method, with the FMI function that failed and the FMU's own last words.
    """

    prefix: ClassVar[str]
    """``"fmi2"`` or ``"fmi3"``."""
    binaries: ClassVar[tuple[str, ...]]
    """Folders under ``binaries/`` that may hold this platform's library, the first choice first."""
    rates_function: ClassVar[str]
    nominals_function: ClassVar[str] = "GetNominalsOfContinuousStates"

    def __init__(self, folder: Path, description: Description, number_of_states: int, sink: LogSink) -> None:
        self.description = description
        self.sink = sink
        self.next_event: float | None = None
        self.health = 0
        self._time = 0.0
        self._number_of_states = number_of_states
        self._fmu = self._load(folder)
        self._component: int | None = None
        self._states_checked = False
        self._bind()

    # ------------------------------------------------------------------ particular to a version

    @abstractmethod
    def _load(self, folder: Path) -> Any:
        """Load the library and return FMPy's object for it."""

    @abstractmethod
    def _instantiate(self) -> None:
        """Create the component."""

    @abstractmethod
    def _enter_initialization(self, time: float, settings: Sequence[Setting]) -> None:
        """Set start values and enter initialization mode."""

    @abstractmethod
    def _iterate(self) -> Event:
        """Do one round of the event iteration."""

    @abstractmethod
    def _apply(self, setting: Setting) -> None:
        """Set one variable of any type."""

    @abstractmethod
    def numbers(self, scalar: Scalar, size: int) -> list[float]:
        """Read a variable of any numeric type: all its elements."""

    def values(self, variable: Variable, size: int) -> list[Any]:
        """Read a variable of any type: all its elements, as Python has them."""
        del size
        kind = "Integer" if variable.type == "Enumeration" else variable.type
        return list(getattr(self._fmu, f"get{kind}")([variable.reference]))

    @abstractmethod
    def write(self, group: Group) -> None:
        """Set a group of variables from its buffer."""

    @abstractmethod
    def read(self, group: Group) -> None:
        """Read a group of variables into its buffer."""

    @abstractmethod
    def directional(self, unknowns: Group, known: Group, target: int) -> int:
        """Write the derivative of ``unknowns`` along the seed in ``known`` to ``target``; return the status, unchecked.

        ``target`` is the address of as many doubles as there are unknowns.
        """

    @abstractmethod
    def _number_of_event_indicators(self) -> int:
        """Return how many there are."""

    @abstractmethod
    def _refused_number(self) -> int | None:
        """Return the number of states that the code has, when it is not the declared one."""

    # ------------------------------------------------------------------ life

    def begin(self, time: float, settings: Sequence[Setting]) -> None:
        """Go from nothing to continuous-time mode (of co-simulation: to step mode) at the start time.

        Parameters
        ----------
        time : float
            In seconds.
        settings : sequence of Setting
            Start values and parameters.
        """
        self.sink.forget()
        self.health = 0
        self._instantiate()
        self._component = self._fmu.component
        try:
            self._enter_initialization(time, settings)
            for setting in settings:
                if setting.variable.causality == "input":
                    self._apply(setting)
            self._fmu.exitInitializationMode()
            self._start()
            self._quieten()
        except BaseException:
            self.end()
            raise

    def described(self) -> Description:
        """Return the description, together with what only the code knows."""
        return self.description

    def end(self) -> None:
        """Terminate and free the component; what goes wrong meanwhile is only logged. Idempotent.

        After an error only freeing is allowed, after a fatal error nothing at all.
        """
        if self._component is None:
            return
        try:
            if self.health < _ERROR:
                self._fmu.terminate()
        except ModelError as error:  # the way out must not stop here
            logger.warning("%s: %s", self.description.source, error)
        finally:
            if self.health != _FATAL:
                getattr(self._fmu, f"{self.prefix}FreeInstance")(self._component)
            self._component = self._fmu.component = None

    def unload(self) -> None:
        """Free the component and the library."""
        self.end()
        if self.health != _FATAL:
            note("the unloading of the library")
            self._fmu.freeLibrary()
            done()

    # ------------------------------------------------------------------ continuous-time mode

    def hold(self, pool: Pool) -> None:
        """Set time, states and inputs, and read the states back."""
        component = self._component
        self.sink.forget()
        self._time = float(pool.values[0])
        self._set_time(component, self._time)
        if pool.n:
            self._set_states(component, pool.x_address, pool.n)
        for group in pool.inputs:
            self.write(group)
        if pool.n:
            self._get_states(component, pool.x_address, pool.n)

    def read_states(self, pool: Pool) -> None:
        """Read the states that the instance holds."""
        if pool.n:
            self._get_states(self._component, pool.x_address, pool.n)

    def rates(self, pool: Pool) -> None:
        """Read the derivatives of the states; to be done before anything else is read."""
        if pool.n:
            self._get_rates(self._component, pool.rates_address, pool.n)

    def nominals(self, count: int) -> FloatArray:
        """Read the nominal values of the states, shape (count,)."""
        values = np.full(count + _GUARD, np.nan)
        if count:
            self._get_nominals(self._component, values.ctypes.data, count)
        return values[:count]

    def event_indicators(self) -> FloatArray:
        """Read the event indicators at the point that is held, shape (ne,)."""
        count = self._number_of_event_indicators() if self.description.event_indicators else 0
        values = np.zeros(count)
        if count:
            self._get_indicators(self._component, values.ctypes.data, count)
        return values

    # ------------------------------------------------------------------ events

    def pass_event(self, inputs: Sequence[Group] = ()) -> bool:
        """Carry out an event at the point that is held; return whether the FMU asks to end the simulation.

        Parameters
        ----------
        inputs : sequence of Group
            Discrete-time ones, to be set in event mode.
        """
        self._fmu.enterEventMode()
        for group in inputs:
            self.write(group)
        terminates = self._iterated(f"at t = {self._time:g} s")
        self._fmu.enterContinuousTimeMode()
        return terminates

    def completed_step(self) -> tuple[bool, bool]:
        """Say that a step was accepted; return whether the FMU asks for an event, and to end the simulation."""
        wants_event, terminates = self._fmu.completedIntegratorStep()
        return bool(wants_event), bool(terminates)

    # ------------------------------------------------------------------ failures

    def failure(self, function: str, status: int) -> ModelError:
        """Return the error for ``function``, and remember what may still be done with the component."""
        self.health = max(self.health, status if status in (_DISCARD, _ERROR, _FATAL) else _ERROR)
        word = _STATUS[status] if 0 <= status < len(_STATUS) else "an unknown status"
        advice = {
            _DISCARD: "The model cannot be evaluated there: choose another operating point or other parameters.",
            _FATAL: "The model is beyond repair in this process.",
        }.get(status, "Check the operating point, the start values and the parameters.")
        return ModelError(
            f"{self.prefix}{function} of '{self.description.source}' returned {word} (status {status}). "
            f"{self.sink.last_words()} {advice}"
        )

    @property
    def is_usable(self) -> bool:
        """Whether the component may still be asked."""
        return self._component is not None and self.health < _ERROR

    @property
    def is_lost(self) -> bool:
        """Whether a fatal error forbids every further call, a fresh instance included."""
        return self.health == _FATAL

    def _loaded(self, kind: Any, folder: Path, **where: str) -> Any:
        """Load the library through one of FMPy's classes, whose calls are noted and whose failures become ours."""
        note("the loading of the library")
        try:
            fmu = kind(
                guid=self.description.token,
                modelIdentifier=self.description.model_identifier,
                unzipDirectory=str(folder),
                instanceName=self.description.model_name,
                **where,
            )
        except Exception as error:  # noqa: BLE001 - FMPy raises bare exceptions, ctypes OSError and AttributeError
            raise ModelError(
                f"The library of '{self.description.source}' cannot be loaded: {error}. It may need other libraries "
                f"that are not installed, a newer system, or lack functions that FMI requires."
            ) from None
        finally:
            done()
        fmu._call = self._noted(fmu._call)  # FMPy's one door to C: all its methods go through it
        return fmu

    def _noted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        from fmpy.fmi1 import FMICallException

        def noted(function: str, *arguments: Any) -> Any:
            note(function)
            try:
                return call(function, *arguments)
            except FMICallException as error:
                raise self.failure(function.removeprefix(self.prefix), error.status) from None
            finally:
                done()

        return noted

    def _not_instantiated(self) -> ModelError:
        tool = self.description.tool or "its tool"
        needs_tool = self.description.capabilities.get("needsExecutionTool") in ("true", "1")
        hint = f" It needs {tool} to be installed." if needs_tool else ""
        return ModelError(
            f"'{self.description.source}' could not be instantiated. {self.sink.last_words()}{hint} Usual reasons are "
            f"a missing licence, a missing file in its resources, or an identifier that differs from the library's."
        )

    # ------------------------------------------------------------------ details

    def _bind(self) -> None:
        """Prepare the functions that are called at every visit."""
        self._bind_interface()

    def _bind_interface(self) -> None:
        """Prepare those of the interface; for model exchange both versions share their signatures."""
        states = (_pointer, _pointer, _size)
        self._set_time = self._checked("SetTime", (_pointer, ctypes.c_double))
        self._set_states = self._checked("SetContinuousStates", states)
        self._get_states = self._checked("GetContinuousStates", states)
        self._ask_for_states = self._function("GetContinuousStates", states)
        self._get_rates = self._checked(self.rates_function, states)
        self._get_nominals = self._checked(self.nominals_function, states)
        self._get_indicators = self._checked("GetEventIndicators", states)

    def _checked(self, name: str, arguments: Iterable[Any]) -> Callable[..., None]:
        """Return the function as one that notes its name and raises when its status is bad."""
        function, full_name = self._function(name, arguments), self.prefix + name

        def checked(*values: Any) -> None:
            note(full_name)
            status = function(*values)
            done()
            if status not in (0, 1):
                failure = self.failure(name, status)
                # "Discard" is the standard's word for a point at which the model has no solution.
                no_solution = status == _DISCARD and name not in _ABOUT_THE_MODEL
                raise NumericalError(str(failure)) if no_solution else failure

        return checked

    def _named(self, name: str) -> Any:
        """Return the C function of this name."""
        return self._fmu.dll[self.prefix + name]

    def _function(self, name: str, arguments: Iterable[Any]) -> Any:
        # A pointer of our own: the attribute of the same name belongs to FMPy, with other argument types.
        function = self._named(name)
        function.argtypes = tuple(arguments)
        function.restype = ctypes.c_int
        return function

    def _start(self) -> None:
        """Go from the end of initialization to continuous-time mode."""
        self._settle()
        self._fmu.enterContinuousTimeMode()
        self._check_number_of_states()

    def _settle(self) -> None:
        """Iterate events until the first continuous-time instant."""
        if self._iterated("at its start"):
            raise self._terminates_at_its_start()

    def _terminates_at_its_start(self) -> ModelError:
        return ModelError(
            f"'{self.description.source}' asks to terminate the simulation at its start. "
            f"{self.sink.last_words()} Check the start values and the parameters."
        )

    def _iterated(self, when: str) -> bool:
        """Iterate events until nothing changes any more; return whether the FMU asks to end the simulation."""
        for _ in range(_MOST_ITERATIONS):
            event = self._iterate()
            if event.terminate:
                return True
            if not event.again:
                self.next_event = event.next_time
                return False
        raise ModelError(
            f"'{self.description.source}' does not come to rest {when}: {_MOST_ITERATIONS} event iterations did "
            f"not suffice. {self.sink.last_words()}"
        )

    def _check_number_of_states(self) -> None:
        if self._states_checked:
            return
        number = self._refused_number()
        self._states_checked = True
        if number is not None:
            raise ModelError(
                f"The model description of '{self.description.source}' declares {self._number_of_states} continuous "
                f"state(s), its code has {number}. {self.sink.last_words()} Without the missing ones no derivative "
                f"means anything: export the FMU again."
            )

    def _state_buffer(self) -> FloatArray:
        """Return a buffer with room behind the declared states, to see whether the code respects their number."""
        return np.full(self._number_of_states + _GUARD, np.nan)

    def _quieten(self) -> None:
        """Keep only warnings and errors: a message per visit would cost more than the visit."""
        if logger.isEnabledFor(10):
            return
        kept = [c for c in self.description.log_categories if c in _STATUS_CATEGORIES]
        try:
            self._fmu.setDebugLogging(False, [])  # noqa: FBT003 - FMPy's signature
            if kept:
                self._fmu.setDebugLogging(True, kept)  # noqa: FBT003
        except ModelError as error:  # a talkative FMU is no failure
            if self.is_lost:
                raise
            self.health = 0
            logger.debug("%s: %s", self.description.source, error)
