"""One instance of an FMU's code: what the FMI versions have in common."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from fmilin.errors import ModelCrashError, ModelError
from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.function_names import FmiStandard
from fmilin.fmi.client.host_programs import Instruction, Operation, Program
from fmilin.fmi.client.process import Failure
from fmilin.fmi.platforms import Machine, find_library
from fmilin.fmi.read.buffers import Buffers, Group, VariableAccess, Visit
from fmilin.fmi.read.component import LoadedCode, LogSink, logger
from fmilin.fmi.read.description import ModelDescription, is_true
from fmilin.fmi.read.settings import Assignment
from fmilin.signals import FloatArray

_MAX_ITERATIONS = 100
_GUARD_SIZE = 1024  # numbers kept free behind a buffer, in case the FMU does not respect its size
_STATUS_CATEGORIES = ("logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal")


class Event(NamedTuple):
    """The result of one round of the event iteration."""

    again: bool
    terminate: bool
    next_time: float | None

    @classmethod
    def of(cls, answers: FloatArray) -> "Event":
        """Return the event that six numbers of the host describe."""
        again, terminates, _, _, scheduled, time = answers.tolist()
        return cls(bool(again), bool(terminates), time if scheduled else None)


class InstanceRefusedError(ModelError):
    """The FMU makes no instance, or no other one in its process."""


class Instance(VariableAccess):
    """One instance of an FMU's code, from instantiation to continuous-time mode and back."""

    version: ClassVar[int]  # of FMI: 1, 2 or 3
    stepped: ClassVar[bool] = False  # for co-simulation
    tells_states: ClassVar[bool] = False  # whether the code alone knows which variables are states

    def __init__(
        self,
        folder: Path,
        description: ModelDescription,
        number_of_states: int,
        sink: LogSink,
        arena: Arena,
        machine: Machine,
    ) -> None:
        self.description = description
        self.sink = sink
        self.next_event: float | None = None
        self.tolerance: float | None = None  # what the FMU's own solver is asked for, relative; None: nothing
        library = find_library(folder, description.model_identifier, machine, self.version)
        symbols = f"{description.model_identifier}_" if self.version == 1 else ""
        self.arena = arena
        standard = FmiStandard(self.version, self.stepped, symbols)
        self.component = LoadedCode(library, standard, sink, arena, folder, machine)
        self.lives_alone = is_true(description.capabilities, "canBeInstantiatedOnlyOncePerProcess")
        """Whether each instance needs a process of its own."""
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

    def directional(self, unknowns: Group, knowns: Group, target: FloatArray) -> Instruction:
        """Return the call that writes the unknowns' derivatives along the seed in ``knowns`` to ``target``."""
        arguments = unknowns.references, knowns.references, knowns.values, target
        return self.component.bound(Operation.DIRECTIONAL, *arguments)

    @property
    def adjoint(self) -> Callable[[Group, Group, FloatArray], Instruction] | None:
        """(seeded unknowns, knowns, target) -> the call for the sum's derivatives; None where the FMU has none."""
        return None

    def _number_of_event_indicators(self) -> int:
        return self.description.event_indicators

    def begin(self, time: float, settings: Sequence[Assignment]) -> None:
        """Go from nothing to continuous-time mode (of co-simulation: to step mode) at the start time."""
        self.sink.forget()
        self._time, self._standing = time, None
        if not self.component.is_running or (self.lives_alone and self.component.instances):
            self.component.start()
        another = self.component.instances > 0
        try:
            self._begin_here(time, settings)
        except (InstanceRefusedError, ModelCrashError):
            if not another:
                raise
            self.lives_alone = True
            self.component.start()
            self._begin_here(time, settings)

    def _begin_here(self, time: float, settings: Sequence[Assignment]) -> None:
        """Make an instance in the process that runs, and lead it to its start."""
        if not self._instantiate():
            raise self._not_instantiated()
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
        self.end()
        self.begin(time, settings)

    def described(self) -> ModelDescription:
        """Return the description, together with what only the code knows."""
        return self.description

    def end(self) -> None:
        """Terminate and free; after an error only free, after a fatal one neither. Failures are logged. Idempotent."""
        if not self.component.has_instance:
            return
        try:
            if self.component.is_usable:
                self._terminate()
        except (ModelError, ModelCrashError) as error:  # the way out must not stop here
            logger.warning("%s: %s", self.description.source, error)
        try:
            self.component.free()
        except ModelCrashError as error:
            logger.warning("%s: %s", self.description.source, error)

    def unload(self) -> None:
        """Free the instance and the library, and end the process. Failures are logged."""
        self.end()
        try:
            self.component.unload()
        except ModelCrashError as error:
            logger.warning("%s: %s", self.description.source, error)

    def visit(self, buffers: Buffers, extent: str, prepared: Visit | None = None) -> None:
        """Set the states, time and inputs if changed, read the states and what is wanted.

        ``extent``: "" is nothing more, "everything" the derivatives, then further variables, "observed" constraints'.
        A evaluation that was prepared by :meth:`prepare` makes further calls.
        """
        visit = prepared or buffers.visits.get(extent) or self._bind_visit(buffers, extent)
        self.sink.forget()
        standing, states = (buffers.time, buffers.u.tobytes()), buffers.x.tobytes()
        program = visit.again if standing == self._standing else visit.anew
        self._time, self._standing = standing[0], None
        self.component.run(program)
        # Further calls may move them.
        self._standing, self._states = (standing, states) if prepared is None else (None, None)

    def visit_points(
        self, buffers: Buffers, count: int, extent: str = "everything", prepared: Program | None = None
    ) -> Failure | None:
        """Evaluate the requested quantities at the points of the first rows; return where that failed.

        A program that is prepared makes the calls of an evaluation, and further ones.
        """
        visit = buffers.visits.get(extent) or self._bind_visit(buffers, extent)
        self.sink.forget()
        rows = buffers.rows[:count, : 1 + buffers.n + buffers.k]
        inputs = rows[:, 1 + buffers.n :]
        last = float(rows[-1, 0]), inputs[-1].tobytes(), rows[-1, 1 : 1 + buffers.n].tobytes()
        same = count == 1 or ((rows[:, 0] == rows[0, 0]).all() and (inputs == inputs[0]).all())
        at_once = bool(same) and (last[0], last[1]) == self._standing
        self._time, self._standing = last[0], None
        program = prepared or (visit.again if at_once else visit.anew)
        failure = self.component.first_bad(program, count)
        if failure is None and prepared is None:
            self._standing, self._states = (last[0], last[1]), last[2]
        return failure

    def is_current(self, buffers: Buffers) -> bool:
        """Return whether the last evaluation was at the point of the buffers, and the instance has not moved since."""
        return (buffers.time, buffers.u.tobytes()) == self._standing and buffers.x.tobytes() == self._states

    def forget_point(self) -> None:
        """Set time and inputs at the next evaluation even if they are the same: something else may have moved them."""
        self._standing = None

    def prepare(self, buffers: Buffers, then: Sequence[Instruction]) -> Visit:
        """Return an evaluation for everything that makes further calls."""
        visit = buffers.visits.get("everything") or self._bind_visit(buffers, "everything")
        return Visit(*(Program((*program.instructions, *then)) for program in visit))

    def _bind_visit(self, buffers: Buffers, extent: str) -> Visit:
        """Bind the calls of an evaluation to its buffers."""
        bound, part, n = self.component.bound, buffers.point_rows.part, buffers.n
        time = bound(Operation.SET_TIME, part(0, 1))
        moves = (bound(Operation.SET_CONTINUOUS_STATES, part(1, 1 + n)),) if n else ()
        inputs = (self.writing(group) for group in buffers.inputs)
        readings, further = [*self._state_reading(buffers)], self.calls(reading=self._choose_readings(buffers, extent))
        if n and extent == "everything":
            # OpenModelica computes outputs with the rates if asked for first; others alternate when read twice.
            readings += (*further,) if self.description.tool.startswith("OpenModelica") else ()
            first = 1 + n + buffers.k
            readings.append(bound(Operation.GET_DERIVATIVES, part(first, first + n)))
        readings += further
        visit = Visit(Program((time, *moves, *inputs, *readings)), Program((*moves, *readings)))
        buffers.visits[extent] = visit
        return visit

    @staticmethod
    def _choose_readings(buffers: Buffers, extent: str) -> tuple[Group, ...]:
        return {"everything": buffers.readings, "observed": buffers.observed_readings}.get(extent, ())

    def read_states(self, buffers: Buffers) -> None:
        """Read the states that the instance holds."""
        self.component.run(self._state_reading(buffers))

    def read_back(self, buffers: Buffers) -> None:
        """Read the states and the inputs that the instance holds."""
        self.component.run(self.reading_back(buffers))

    def reading_back(self, buffers: Buffers) -> Program:
        """Return the calls that read the states and the inputs that the instance holds."""
        if buffers.looking is None:
            buffers.looking = Program((*self._state_reading(buffers), *self.calls(reading=buffers.inputs)))
        return buffers.looking

    def _state_reading(self, buffers: Buffers) -> tuple[Instruction, ...]:
        if not buffers.n:
            return ()
        return (self.component.bound(Operation.GET_CONTINUOUS_STATES, buffers.point_rows.part(1, 1 + buffers.n)),)

    def nominals(self, count: int) -> FloatArray:
        """Read the nominal values of the states, shape (count,)."""
        room = self.arena.copy(np.full(count + _GUARD_SIZE, np.nan))
        if count:
            self.component.run((self.component.bound(Operation.GET_NOMINALS, room[:count]),))
        return room[:count].copy()

    def event_indicators(self) -> FloatArray:
        """Read the event indicators at the point that is held, shape (ne,)."""
        count = self._number_of_event_indicators() if self.description.event_indicators else 0
        indicators = self.arena.zeros(count)
        if count:
            self.component.run((self.component.bound(Operation.GET_EVENT_INDICATORS, indicators),))
        return indicators.copy()

    def pass_event(self, inputs: Sequence[Group] = ()) -> bool:
        """Carry out an event, ``inputs`` set in it, at the point that is held; return whether the FMU asks to end."""
        self._standing = None
        self.component.call(Operation.ENTER_EVENT_MODE)
        for group in inputs:
            self.write(group)
        terminates = self._iterated(f"at t = {self._time:g} s")
        self.component.call(Operation.ENTER_CONTINUOUS_TIME_MODE)
        return terminates

    def tune(self, settings: Sequence[Assignment]) -> None:
        """Give tunable parameters other values, at an event."""
        self._standing = None
        self.component.call(Operation.ENTER_EVENT_MODE)
        for setting in settings:
            self._apply(setting)
        if self._iterated(f"at t = {self._time:g} s, after parameters were set"):
            raise self._terminates_at_its_start()
        self.component.call(Operation.ENTER_CONTINUOUS_TIME_MODE)

    def complete_step(self) -> tuple[bool, bool]:
        """Say that a step was accepted; return whether the FMU asks for an event, and to end the simulation."""
        self._states = None  # the step may have changed them
        answers = self.arena.zeros(2)
        no_step_is_taken_back = 1
        self.component.call(Operation.COMPLETED_STEP, answers, immediate=no_step_is_taken_back)
        return bool(answers[0]), bool(answers[1])

    def _not_instantiated(self) -> "InstanceRefusedError":
        tool = self.description.tool or "its tool"
        needs_tool = is_true(self.description.capabilities, "needsExecutionTool")
        hint = f" It needs {tool} to be installed." if needs_tool else ""
        return InstanceRefusedError(
            f"'{self.description.source}' could not be instantiated. {self.sink.last_words()}{hint} Usual reasons are "
            f"a missing licence, a missing file in its resources, or an identifier that differs from the library's."
            f"{self.component.advice()}"
        )

    def _create(self, resources: str, flags: int = 0) -> bool:
        """Instantiate, invisible and talkative."""
        is_talkative = 2
        identity = self.description.model_name, self.description.token, resources
        return self.component.create(*identity, flags=flags | is_talkative)

    def _experiment(self, time: float) -> tuple[FloatArray, int]:
        """Return tolerance, start and stop, and the flags of those that are set."""
        numbers = self.arena.copy(np.array([self.tolerance or 0.0, time, 0.0]))
        return numbers, int(self.tolerance is not None)

    def _initialize(self, time: float) -> FloatArray:
        """Enter initialization mode; return what FMI 1.0 says of events."""
        numbers, flags = self._experiment(time)
        events = self.arena.zeros(6)
        self.component.call(Operation.ENTER_INITIALIZATION, numbers, events, immediate=flags)
        return events

    def _iterate(self) -> Event:
        """Do one round of the event iteration."""
        answers = self.arena.zeros(6)
        self.component.call(Operation.UPDATE_DISCRETE_STATES, answers)
        return Event.of(answers)

    def _exit_initialization(self) -> None:
        self.component.call(Operation.EXIT_INITIALIZATION)

    def _terminate(self) -> None:
        self.component.call(Operation.TERMINATE)

    def _start(self) -> None:
        """Go from the end of initialization to continuous-time mode."""
        self._settle()
        self.component.call(Operation.ENTER_CONTINUOUS_TIME_MODE)
        self._check_number_of_states()

    def _settle(self) -> None:
        """Iterate events until the first continuous-time instant."""
        if self._iterated("at its start"):
            raise self._terminates_at_its_start()

    def _terminates_at_its_start(self) -> ModelError:
        return ModelError(
            f"'{self.description.source}' requests the end of the simulation at its start. {self.sink.last_words()} "
            "Check the start values and the parameters."
        )

    def _iterated(self, when: str) -> bool:
        """Iterate events until nothing changes any more; return whether the FMU asks to end the simulation."""
        for _ in range(_MAX_ITERATIONS):
            event = self._iterate()
            if event.terminate:
                return True
            if not event.again:
                self.next_event = event.next_time
                return False
        raise ModelError(
            f"The events of '{self.description.source}' do not settle {when}: {_MAX_ITERATIONS} event iterations did "
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
                f"state(s), its code has {number}. {self.sink.last_words()} Derivatives need all states: export the "
                "FMU again."
            )

    def _refused_number(self) -> int | None:
        """Return the number of states that the code has, where it is not the declared one, by asking for them."""
        # Code that checks the number rejects a wrong one; other code writes beyond it, into memory kept free for that.
        declared = self._number_of_states
        buffer = self.arena.copy(np.full(declared + _GUARD_SIZE, np.nan))

        def refused(number: int) -> Failure | None:
            return self.component.first_bad((self.component.bound(Operation.GET_CONTINUOUS_STATES, buffer[:number]),))

        refusal = refused(declared)
        if refusal is None:
            beyond = int(np.count_nonzero(~np.isnan(buffer[declared:])))
            return declared + beyond if beyond else None
        failure = self.component.failure(refusal)
        # The component is lost anyway: find the number that it wants, for the message.
        for number in range(declared + 65):
            if number != declared and refused(number) is None:
                return number
        if declared:
            raise failure
        return None  # a model without states that rejects the query for them: nothing is missing

    def _quieten(self) -> None:
        """Keep only warnings and errors: a message per evaluation would cost more than the evaluation."""
        if logger.isEnabledFor(10):
            return
        categories = [c for c in self.description.log_categories if c in _STATUS_CATEGORIES]
        try:
            self._set_logging([], on=False)
            if categories:
                self._set_logging(categories, on=True)
        except ModelError as error:  # a talkative FMU is not a failure
            if self.component.is_lost:
                raise
            self.component.health = 0
            logger.debug("%s: %s", self.description.source, error)

    def _set_logging(self, categories: Sequence[str], *, on: bool) -> None:
        names = self.arena.copy_bytes(b"".join(c.encode() + b"\0" for c in categories))
        self.component.call(Operation.SET_DEBUG_LOGGING, names, immediate=int(on))
