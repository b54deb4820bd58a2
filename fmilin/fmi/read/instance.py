"""One instance of an FMU's code: what the FMI versions have in common."""

import ctypes
import shutil
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fmilin.errors import AnotherInstanceError, ModelError
from fmilin.fmi.platforms import library_in
from fmilin.fmi.read.buffers import Buffers, Group, VariableAccess, Visit, pointer_to
from fmilin.fmi.read.component import Call, LoadedCode, LogSink, logger
from fmilin.fmi.read.description import ModelDescription, is_true
from fmilin.fmi.read.settings import Assignment
from fmilin.sandbox import cage, watchdog
from fmilin.signals import FloatArray

_MOST_ITERATIONS = 100
_GUARD = 1024  # numbers kept free behind a buffer whose size the FMU might not respect
_STATUS_CATEGORIES = ("logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal")


class Event(NamedTuple):
    """What one round of the event iteration answers."""

    again: bool
    terminate: bool
    next_time: float | None


class Instance(VariableAccess):
    """One instance of an FMU's code, from instantiation to continuous-time mode and back."""

    prefix: ClassVar[str]  # ``"fmi2"`` or ``"fmi3"``
    binaries: ClassVar[tuple[str, ...]]  # folders under binaries/ for this platform, the first choice first
    tells_states: ClassVar[bool] = False  # whether the code alone knows which variables are states
    frees_with: ClassVar[str] = "FreeInstance"
    rates_function: ClassVar[str] = "GetDerivatives"
    nominals_function: ClassVar[str] = "GetNominalsOfContinuousStates"

    def __init__(self, folder: Path, description: ModelDescription, number_of_states: int, sink: LogSink) -> None:
        self.description = description
        self.sink = sink
        self.next_event: float | None = None
        self.tolerance: float | None = None  # what the FMU's own solver is asked for, relative; None: nothing
        self._library = library_in(folder, description.model_identifier, self.binaries)
        self.component = self._component(self._library)
        self.component.may_change = is_true(description.capabilities, "canBeInstantiatedOnlyOncePerProcess")
        self._instances = 0
        self._folder = folder
        self._number_of_states = number_of_states
        self._states_checked = False
        self._time = 0.0
        self._standing: tuple[float, bytes] | None = None
        self._states: bytes | None = None  # set last, as long as nothing may have changed them since

    @abstractmethod
    def _instantiate(self) -> bool:
        """Create the component; return whether there is one."""

    @abstractmethod
    def _enter_initialization(self, time: float, settings: Sequence[Assignment]) -> None:
        """Set start values and enter initialization mode."""

    @abstractmethod
    def _iterate(self) -> Event:
        """Do one round of the event iteration."""

    @abstractmethod
    def directional(self, unknowns: Group, knowns: Group, target: ctypes.c_void_p) -> Call:
        """Return the call that writes the unknowns' derivatives along the seed in ``knowns`` to ``target``, doubles."""

    @property
    def adjoint(self) -> Callable[[Group, Group, ctypes.c_void_p], Call] | None:
        """(seeded unknowns, knowns, target) -> the call for the sum's derivatives; None where the FMU has none."""
        return None

    def _number_of_event_indicators(self) -> int:
        return self.description.event_indicators

    def begin(self, time: float, settings: Sequence[Assignment]) -> None:
        """Go from nothing to continuous-time mode (of co-simulation: to step mode) at the start time."""
        self.sink.forget()
        self._time, self._standing = time, None
        if self._instances and self.component.may_change:
            # Load a copy of the library for one more instance; one that never unloads would return with its memory.
            copy = self._library.with_name(f"{self._instances}_{self._library.name}")
            shutil.copyfile(self._library, copy)
            self.component.load_instead(copy)
        self._instances += 1
        if not self._instantiate():
            refusal = self._not_instantiated()
            raise refusal if self._instances == 1 else AnotherInstanceError(str(refusal))
        try:
            self._enter_initialization(time, settings)
            for setting in settings:
                if setting.variable.causality == "input":
                    self._apply(setting)
            self._exit_initialization()
            self._start()
            spoilt = not self.component.is_usable  # by a question about states that it does not have
            if not spoilt:
                self._quieten()
        except BaseException:
            self.end()
            raise
        if spoilt:
            self.begin_again(time, settings)

    def begin_again(self, time: float, settings: Sequence[Assignment]) -> None:
        """End, and begin as a fresh instance."""
        with watchdog.another_instance():
            self.end()
            self.begin(time, settings)

    def described(self) -> ModelDescription:
        """Return the description, together with what only the code knows."""
        return self.description

    def end(self) -> None:
        """Terminate and free; after an error only free, after a fatal one neither. Failures are logged. Idempotent."""
        if self.component.handle.value is None:
            return
        try:
            if self.component.is_usable:
                self._terminate()
        except ModelError as error:  # the way out must not stop here
            logger.warning("%s: %s", self.description.source, error)
        finally:
            self.component.free(self.frees_with)

    def unload(self) -> None:
        """Free the component and the library."""
        self.end()
        self.component.unload()

    def visit(self, buffers: Buffers, wanted: str, then: tuple[Call, ...] = ()) -> None:
        """Set the states, time and inputs if changed, read the states and what is wanted; make further calls.

        ``wanted``: "" is nothing more, "everything" the derivatives, then further variables, "observed" constraints'.
        """
        visit = buffers.visits.get(wanted) or self._prepared(buffers, wanted)
        self.sink.forget()
        standing, states = (buffers.time.value, buffers.u.tobytes()), buffers.x.tobytes()
        calls = visit.again if standing == self._standing else visit.anew
        self._time, self._standing = standing[0], None
        self.component.run(calls + then)
        self._standing, self._states = (None, None) if then else (standing, states)  # further calls may move them

    def stands_at(self, buffers: Buffers) -> bool:
        """Return whether the last visit was to the point of the buffers, and nothing has moved the instance since."""
        return (buffers.time.value, buffers.u.tobytes()) == self._standing and buffers.x.tobytes() == self._states

    def forget_point(self) -> None:
        """Set time and inputs at the next visit even when they are the same: something else may have moved them."""
        self._standing = None

    def _prepared(self, buffers: Buffers, wanted: str) -> Visit:
        """Bind the calls of a visit to its buffers."""
        bound, n = self.component.bound, ctypes.c_size_t(buffers.n)
        x, rates = pointer_to(buffers.x), pointer_to(buffers.rates)
        time = bound("SetTime", buffers.time)
        moves = (bound("SetContinuousStates", x, n),) if buffers.n else ()
        inputs = (call for group in buffers.inputs for call in self._writing(group))
        readings, further = [*self._state_reading(buffers)], self.calls(reading=self._wanted(buffers, wanted))
        if buffers.n and wanted == "everything":
            # OpenModelica computes outputs with the rates if asked for first; others alternate when read twice.
            readings += (*further,) if self.description.tool.startswith("OpenModelica") else ()
            readings.append(bound(self.rates_function, rates, n))
        readings += further
        visit = Visit((time, *moves, *inputs, *readings), (*moves, *readings))
        buffers.visits[wanted] = visit
        return visit

    @staticmethod
    def _wanted(buffers: Buffers, wanted: str) -> tuple[Group, ...]:
        return {"everything": buffers.readings, "observed": buffers.observed_readings}.get(wanted, ())

    def read_states(self, buffers: Buffers) -> None:
        """Read the states that the instance holds."""
        self.component.run(self._state_reading(buffers))

    def read_back(self, buffers: Buffers) -> None:
        """Read the states and the inputs that the instance holds."""
        self.component.run(self.reading_back(buffers))

    def reading_back(self, buffers: Buffers) -> tuple[Call, ...]:
        """Return the calls that read the states and the inputs that the instance holds."""
        visit = buffers.visits.get("look")
        if visit is None:
            calls = (*self._state_reading(buffers), *(call for g in buffers.inputs for call in self._reading(g)))
            visit = buffers.visits["look"] = Visit(calls, calls)
        return visit.again

    def _state_reading(self, buffers: Buffers) -> tuple[Call, ...]:
        n = ctypes.c_size_t(buffers.n)
        return (self.component.bound("GetContinuousStates", pointer_to(buffers.x), n),) if buffers.n else ()

    def nominals(self, count: int) -> FloatArray:
        """Read the nominal values of the states, shape (count,)."""
        return self._numbers(self.nominals_function, count, np.full(count + _GUARD, np.nan))

    def event_indicators(self) -> FloatArray:
        """Read the event indicators at the point that is held, shape (ne,)."""
        count = self._number_of_event_indicators() if self.description.event_indicators else 0
        return self._numbers("GetEventIndicators", count, np.zeros(count))

    def _numbers(self, function: str, count: int, room: FloatArray) -> FloatArray:
        if count:
            self.component.run((self.component.bound(function, pointer_to(room), ctypes.c_size_t(count)),))
        return room[:count]

    def pass_event(self, inputs: Sequence[Group] = ()) -> bool:
        """Carry out an event, ``inputs`` set in it, at the point that is held; return whether the FMU asks to end."""
        self._standing = None
        self.component.call("EnterEventMode")
        for group in inputs:
            self.write(group)
        terminates = self._iterated(f"at t = {self._time:g} s")
        self.component.call("EnterContinuousTimeMode")
        return terminates

    def tune(self, settings: Sequence[Assignment]) -> None:
        """Give tunable parameters other values, at an event."""
        self._standing = None
        self.component.call("EnterEventMode")
        for setting in settings:
            self._apply(setting)
        if self._iterated(f"at t = {self._time:g} s, after parameters were set"):
            raise self._terminates_at_its_start()
        self.component.call("EnterContinuousTimeMode")

    def completed_step(self) -> tuple[bool, bool]:
        """Say that a step was accepted; return whether the FMU asks for an event, and to end the simulation."""
        self._states = None  # the step may have changed them
        answers = self.truth(), self.truth()
        self.component.call("CompletedIntegratorStep", self.truth(1), *map(ctypes.byref, answers))
        return bool(answers[0].value), bool(answers[1].value)

    def _component(self, library: Path) -> LoadedCode:
        return LoadedCode(library, self.prefix, self.sink)

    def _not_instantiated(self) -> ModelError:
        tool = self.description.tool or "its tool"
        needs_tool = is_true(self.description.capabilities, "needsExecutionTool")
        hint = f" It needs {tool} to be installed." if needs_tool else ""
        return ModelError(
            f"'{self.description.source}' could not be instantiated. {self.sink.last_words()}{hint} Usual reasons are "
            f"a missing licence, a missing file in its resources, or an identifier that differs from the library's."
            f"{cage.advice()}"
        )

    def _tolerance(self) -> tuple[Any, ctypes.c_double]:
        """Return whether the solver inside is asked for a tolerance, and for which."""
        return self.truth(self.tolerance is not None), ctypes.c_double(self.tolerance or 0.0)

    def _exit_initialization(self) -> None:
        self.component.call("ExitInitializationMode")

    def _terminate(self) -> None:
        self.component.call("Terminate")

    def _start(self) -> None:
        """Go from the end of initialization to continuous-time mode."""
        self._settle()
        self.component.call("EnterContinuousTimeMode")
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

    def _refused_number(self) -> int | None:
        """Return the number of states that the code has, where it is not the declared one, by asking for them."""
        # Code that checks the number refuses a wrong one; other code writes beyond it, into room kept free for that.
        declared = self._number_of_states
        buffer = np.full(declared + _GUARD, np.nan)

        def refused(number: int) -> tuple[int, str] | None:
            ask = self.component.bound("GetContinuousStates", pointer_to(buffer), ctypes.c_size_t(number))
            return self.component.first_bad((ask,))

        refusal = refused(declared)
        if refusal is None:
            beyond = int(np.count_nonzero(~np.isnan(buffer[declared:])))
            return declared + beyond if beyond else None
        failure = self.component.failure("GetContinuousStates", refusal[0])
        # The component is lost anyway: find the number that it wants, for the message.
        for number in range(declared + 65):
            if number != declared and refused(number) is None:
                return number
        if declared:
            raise failure
        return None  # a model without states that refuses to be asked for them: nothing is missing

    def _quieten(self) -> None:
        """Keep only warnings and errors: a message per visit would cost more than the visit."""
        if logger.isEnabledFor(10):
            return
        categories = [c.encode() for c in self.description.log_categories if c in _STATUS_CATEGORIES]
        try:
            self._set_logging([], on=False)
            if categories:
                self._set_logging(categories, on=True)
        except ModelError as error:  # a talkative FMU is no failure
            if self.component.is_lost:
                raise
            self.component.health = 0
            logger.debug("%s: %s", self.description.source, error)

    def _set_logging(self, categories: Sequence[bytes], *, on: bool) -> None:
        count = len(categories)
        names = (ctypes.c_char_p * count)(*categories)
        self.component.call("SetDebugLogging", self.truth(on), ctypes.c_size_t(count), names)
