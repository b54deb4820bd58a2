"""One instance of an FMU for co-simulation: communication steps, and its whole state saved and restored."""

import itertools
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from fmilin.errors import ModelError, NumericalError
from fmilin.fmi.client.arena import Repeated
from fmilin.fmi.client.host_programs import Instruction, Operation, Program
from fmilin.fmi.client.process import STOPPED
from fmilin.fmi.read.buffers import Buffers, Visit
from fmilin.fmi.read.description import is_true
from fmilin.fmi.read.instance import Instance
from fmilin.fmi.read.settings import Assignment
from fmilin.signals import FloatArray

_NO_STEP_IS_TAKEN_BACK = 1  # with the other value, some FMUs save and go back at every step
_COPY_NUMBER = -1
_SAVED_STATES = 64  # that a host keeps at a time
MAX_STEPS = 256  # in one message


class SavedState(NamedTuple):
    """The whole state of an instance at a communication point: one that it has saved, or a copy of its host."""

    number: int  # of the saved state; _COPY_NUMBER for a copy
    time: float  # in seconds
    next_event: float | None

    @property
    def is_copy(self) -> bool:
        """Whether it is a copy of the host."""
        return self.number == _COPY_NUMBER


class CommunicationSteps:
    """Communication steps that are taken in one message: inputs are set, and all is read, before and after each.

    ``before`` and ``after`` hold a row for each step, up to :attr:`most`; a program without buffers only steps.
    """

    def __init__(
        self, instance: "SteppedInstance", buffers: tuple[Buffers, Buffers] | None = None, *, with_rates: bool = False
    ) -> None:
        self.buffers = buffers
        self.most = MAX_STEPS if buffers is None else len(buffers[0].rows)
        self.numbers = instance.arena.zeros(self.most, 6)  # time, step, then what a step answers
        time, step, answers = (Repeated(self.numbers[:, a:b]) for a, b in ((0, 1), (1, 2), (2, 6)))
        calls = [instance.component.bound(Operation.DO_STEP, time, step, answers, immediate=_NO_STEP_IS_TAKEN_BACK)]
        if buffers is not None:
            before, after = ((*b.states, *(b.derivatives if with_rates else ()), *b.readings) for b in buffers)
            calls = [
                *instance.calls(writing=buffers[0].inputs, reading=before),
                *calls,
                *instance.calls(reading=after),
            ]
        self.program = Program(calls)


class PointSteps:
    """Steps from several states that are taken in one message: each begins with the calls that lead to the anchor.

    ``requested`` holds a row for each point, of which states and inputs are set; ``before`` and ``after`` are read
    before and after the step. With ``takes_step=False`` nothing but ``before`` is read.
    """

    def __init__(
        self,
        instance: "SteppedInstance",
        beginning: Sequence[Instruction],
        buffers: tuple[Buffers, Buffers, Buffers],
        *,
        with_rates: bool,
        takes_step: bool,
    ) -> None:
        requested, before, after = buffers
        self.numbers = instance.arena.zeros(len(requested.rows), 6)  # as of CommunicationSteps
        time, step, answers = (Repeated(self.numbers[:, a:b]) for a, b in ((0, 1), (1, 2), (2, 6)))
        reads = [(*b.states, *(b.derivatives if with_rates else ()), *b.readings) for b in (before, after)]
        calls = [
            *beginning,
            *instance.calls(writing=requested.inputs, reading=reads[0]),
        ]
        if takes_step:
            calls.append(
                instance.component.bound(Operation.DO_STEP, time, step, answers, immediate=_NO_STEP_IS_TAKEN_BACK)
            )
            calls += instance.calls(reading=reads[1])
        self.program = Program(calls)


class SteppedInstance(Instance):
    """What FMI 2.0 and 3.0 have in common for co-simulation; functions that a version names differently are below."""

    stepped = True
    save_flag: ClassVar[str]  # the attribute of the interface that promises to save and restore states
    _numbers = itertools.count()

    def begin(self, time: float, settings: Sequence[Assignment]) -> None:
        """Go from nothing to step mode at the start time."""
        self.component.is_copied = self.component.is_copied or not self.can_save
        super().begin(time, settings)

    def _do_step(self, time: float, step: float) -> None:
        self._take_step(time, step)

    def _take_step(self, time: float, step: float) -> FloatArray:
        """Take one step; return whether there is an event, an end, an early return, and the time that is reached."""
        start, length, answers = self.arena.zeros(1), self.arena.zeros(1), self.arena.zeros(4)
        start[0], length[0] = time, step
        call = self.component.bound(Operation.DO_STEP, start, length, answers, immediate=_NO_STEP_IS_TAKEN_BACK)
        failure = self.component.first_bad((call,))
        if failure is not None and failure.status != STOPPED:
            raise self.component.error_at_point(failure)
        return answers

    @property
    def steps_together(self) -> bool:
        """Whether nothing has to be done between two steps but to set inputs and to read."""
        return True

    def take_steps(self, steps: CommunicationSteps, lengths: FloatArray) -> None:
        """Take up to ``steps.most`` steps in one message."""
        self.sink.forget()
        count = len(lengths)
        times = np.add.accumulate(np.concatenate(([self._time], lengths)))
        steps.numbers[:count, 0], steps.numbers[:count, 1], steps.numbers[:count, 2:] = times[:-1], lengths, 0.0
        failure = self.component.first_bad(steps.program, count)
        if failure is not None:
            done = min(failure.repetition, count - 1)
            self._time = float(times[done])
            if failure.status == STOPPED:
                self._require_whole_step(self._time, float(lengths[done]), steps.numbers[done, 2:])
            raise self.component.error_at_point(failure)
        self._time = float(times[-1])

    def list_restoring(self, saved: SavedState, requested: Buffers) -> list[Instruction]:
        """Return the calls that restore a state and set states of the model."""
        restore = self.component.bound(Operation.RESTORE_STATE, immediate=saved.number)
        return [restore, *self.calls(writing=requested.states)]

    def list_reset(self, time: float, settings: Sequence[Assignment], requested: Buffers) -> list[Instruction]:
        """Return the calls that reset the instance and begin anew with states of the model as start values."""
        with self.component.record() as calls:
            self._terminate()
            self.component.call(Operation.RESET)
            self._enter_initialization(time, settings)
            for setting in settings:
                if setting.variable.causality == "input":
                    self._apply(setting)
            self.component.run(self.calls(writing=requested.states))
            self._exit_initialization()
            self._start()
        return calls

    def take_point_steps(self, steps: PointSteps, time: float, count: int, step: float) -> bool:
        """Take steps from ``count`` states at a time in one message; return False where one of them fails."""
        self.sink.forget()
        steps.numbers[:count] = 0.0
        steps.numbers[:count, 0], steps.numbers[:count, 1] = time, step
        return self.component.first_bad(steps.program, count) is None

    def _require_whole_step(self, time: float, step: float, answers: FloatArray) -> None:
        """Raise the error for a step that ended early or ends the simulation."""

    @property
    def time(self) -> float:
        """The communication point, in seconds."""
        return self._time

    def step(self, step: float) -> None:
        """Advance by one communication step."""
        self.sink.forget()
        self._do_step(self._time, step)
        self._time += step

    @property
    def can_save(self) -> bool:
        """Whether the FMU promises to save and restore its whole state."""
        return is_true(self.description.capabilities, self.save_flag)

    def save(self) -> SavedState:
        """Save the whole state; :meth:`free` it before the instance ends."""
        number = next(self._numbers) % _SAVED_STATES
        self.component.run((self.component.bound(Operation.SAVE_STATE, immediate=number),))
        return SavedState(number, self._time, self.next_event)

    def save_by_copy(self) -> SavedState | None:
        """Save the whole state as a copy of the host, which has one at a time; None where that is impossible."""
        return SavedState(_COPY_NUMBER, self._time, self.next_event) if self.component.make_copy() else None

    def allow_copies(self) -> None:
        """Let copies be made of the process of the next instance."""
        if not self.component.is_copied:
            self.component.is_copied = True
            self.component.kill()

    def restore(self, saved: SavedState) -> bool:
        """Return to a saved state; return False where it was a copy that has ended."""
        if saved.is_copy:
            if not self.component.return_to_copy():
                return False
        else:
            self.component.run((self.component.bound(Operation.RESTORE_STATE, immediate=saved.number),))
        self._time, self.next_event = saved.time, saved.next_event
        return True

    def free(self, saved: SavedState) -> None:
        """Forget a saved state."""
        if saved.is_copy:
            self.component.drop_copy()
        elif self.component.is_usable:
            self.component.run((self.component.bound(Operation.FREE_STATE, immediate=saved.number),))

    def visit(self, buffers: Buffers, extent: str, prepared: Visit | None = None) -> None:
        """Set inputs, states only where changed (some FMUs reject), read them back, and what is wanted; go on."""
        self.sink.forget()
        if buffers.time != self._time:
            raise ModelError(
                f"'{self.description.source}' is a co-simulation FMU, which is at t = {self._time:g} s: it cannot be "
                f"evaluated at t = {buffers.time:g} s. Simulate to that time first: fl.snapshots(model, "
                f"times=[{buffers.time:g}])."
            )
        for group in buffers.inputs:
            self.write(group)
        states = buffers.x.copy()
        self.read_states(buffers)
        if not np.array_equal(buffers.x, states):
            buffers.x[:] = states
            for group in buffers.states:
                self.write(group)
            self.read_states(buffers)
        further = self._choose_readings(buffers, extent)
        if extent == "everything":
            further = (*further, *buffers.derivatives, *further)
        self.component.run(self.calls(reading=further))
        if prepared is not None:
            self.component.run(prepared.again)

    def prepare(self, buffers: Buffers, then: Sequence[Instruction]) -> Visit:
        """Return an evaluation for everything that makes further calls."""
        return Visit(Program(then), Program(then))

    def _state_reading(self, buffers: Buffers) -> tuple[Instruction, ...]:
        return self.calls(reading=buffers.states)

    def nominals(self, count: int) -> FloatArray:
        """Return 1 for each, which says nothing: the interface has no function for nominal values."""
        return np.ones(count)

    def event_indicators(self) -> FloatArray:
        """Return nothing: the FMU's own solver watches them."""
        return np.empty(0)

    def _start(self) -> None:
        """Do nothing: after initialization the FMU waits for its first step."""

    def _ended(self) -> NumericalError:
        return NumericalError(
            f"'{self.description.source}' requests the end of the simulation at t = {self._time:g} s. "
            f"{self.sink.last_words()} Choose another operating point, or smaller steps."
        )

    def _refused_number(self) -> int | None:
        return None
