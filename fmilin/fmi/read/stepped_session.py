"""A running co-simulation FMU and its anchor: the point in time that every run starts from, restored bit by bit.

Restoring restarts the solver of some tools: every run, the baseline too, starts from a restore. Where the FMU cannot
restore, or restores wrongly, runs start from copies of its process, and where that cannot be copied, a fresh instance
is led to the anchor along the same steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import numpy as np

from fmilin.errors import ModelError, UsageError
from fmilin.fmi.client.host_programs import Instruction
from fmilin.fmi.read.archive import FmuFile
from fmilin.fmi.read.buffers import Buffers, Visit
from fmilin.fmi.read.description import Variable
from fmilin.fmi.read.instance import Instance
from fmilin.fmi.read.layout import ScalarVariable
from fmilin.fmi.read.session import Session
from fmilin.fmi.read.settings import Assignment, Value
from fmilin.fmi.read.stepped_instance import CommunicationSteps, SavedState, SteppedInstance
from fmilin.signals import FloatArray

T = TypeVar("T")


class StatesRefusedError(ModelError):
    """The FMU takes states neither between two steps nor as start values."""


class RunStart(Enum):
    """The kinds of starting points for runs."""

    STATE = "a state that the FMU restores"
    COPY = "a copy of its process"
    FRESH = "a fresh instance"


@dataclass(frozen=True, slots=True)
class _Leg:
    """A way from one anchor to the next: the values of states and inputs at its beginning, and its steps."""

    values: FloatArray
    steps: tuple[float, ...]


class SteppedSession(Session):
    """A :class:`~fmilin.fmi.read.session.Session` of a co-simulation FMU, at its first communication point."""

    interface = "CoSimulation"
    most_points = 1
    only_tunable = True

    def __init__(
        self, fmu: FmuFile, parameters: Mapping[str, Value], time: float | None, settings: Mapping[str, float]
    ) -> None:
        self._legs: list[_Leg] = []
        self._saved: SavedState | None = None
        self._away = False
        self._plain_steps: CommunicationSteps | None = None
        self._run_start: RunStart | None = None  # None: what the FMU offers
        self._refused_saving: ModelError | None = None
        self.restores_twice = False  # after one step, before a run: some FMUs restore everything but inputs
        self.sets_by_start = False  # states as start values of a fresh instance: it rejects them later
        self.refuses_points = False  # steps of several points in one message have failed
        self.repetition = ""  # what it took to make equal runs give equal answers
        self.steps = 0
        self.anchor_time = 0.0  # where every run starts, in seconds
        super().__init__(fmu, parameters, time, settings)
        self._anchor()

    def tune(self, parameters: Sequence[ScalarVariable], values: FloatArray) -> None:
        """Go back to the anchor, where parameters are as at the start; tunable ones are set as inputs are."""
        if self.tuning.change(self.stepped.values, self.layout, parameters, values):
            self._away = True

    @property
    def run_start(self) -> RunStart:
        """The kind of starting point for runs."""
        if self._run_start is not None:
            return self._run_start
        return RunStart.STATE if self.stepped.can_save else RunStart.COPY

    def set_run_start(self, run_start: RunStart | None) -> None:
        """Start runs from this from now on, None for what the FMU offers; else from fresh instances."""
        self._run_start = run_start
        self._forget_saved()
        if run_start is RunStart.COPY:
            self.stepped.allow_copies()
        self._away = True
        self.come_back()

    @contextmanager
    def _override_attribute(self, owner: object, name: str, value: object) -> Iterator[None]:
        """Let runs start from fresh instances, with another value of an attribute; afterwards all is as before."""
        before, run_start = getattr(owner, name), self._run_start
        setattr(owner, name, value)
        try:
            self.set_run_start(RunStart.FRESH)
            yield
        finally:
            setattr(owner, name, before)
            self.set_run_start(run_start)

    def override_tolerance(self, tolerance: float) -> AbstractContextManager[None]:
        """Let fresh instances be asked for another tolerance; afterwards all is as before."""
        return self._override_attribute(self.stepped, "tolerance", tolerance)

    def scale_start_values(self, factor: float) -> AbstractContextManager[None]:
        """Let fresh instances begin with start values times ``factor``; afterwards all is as before."""
        values_by_variable = {s.variable: s.values for s in self.settings}
        moved = {
            v: tuple(factor * float(value) for value in values_by_variable.get(v) or v.start.split())
            for v in self.layout.description.scan_variables()
            if v.is_float and v.causality in ("output", "local") and v.start and v.is_settable and not v.is_parameter
        }
        if not any(value for values in moved.values() for value in values):
            raise UsageError("No start value can be changed.")
        unchanged = (s for s in self.settings if s.variable not in moved)
        settings = (*unchanged, *(Assignment(v, values) for v, values in moved.items()))
        return self._override_attribute(self, "settings", settings)

    def come_back(self) -> SteppedInstance:
        """Return the instance at the anchor, as if it had never taken a step beyond."""
        instance = self.stepped
        if not self._away:
            return instance
        if self._saved is None or not instance.restore(self._saved):
            instance.begin_again(self.start_time, self.settings)
            self.note_process_of_each()
            self._follow(instance)
        self._away = False
        return instance

    def begin_points(self) -> tuple[object, ...] | None:
        """Return what tells apart the calls by which steps of several points begin; see :meth:`list_beginning`.

        None where they cannot begin in one message: then the instance stands at the anchor.
        """
        instance = self.stepped
        needs_more = self.restores_twice or self.refuses_points or self.tuning.changed or not instance.steps_together
        if needs_more:
            return None
        if self.sets_by_start:
            self._forget_saved()
            self._away = True
            return ("reset", self.generation)
        self.come_back()
        if self._saved is None or self._saved.is_copy:
            return None
        self._away = True
        return ("restored", self._saved.number)

    def list_beginning(self, requested: Buffers) -> list[Instruction]:
        """Return the calls that lead to the anchor with states of the buffers."""
        if self._saved is not None:
            return self.stepped.list_restoring(self._saved, requested)
        states = {scalar.variable for scalar in self.layout.states}
        settings = [s for s in self.settings if s.variable not in states]
        return self.stepped.list_reset(self.start_time, settings, requested)

    def begin_run(self, buffers: Buffers, step: float) -> SteppedInstance:
        """Return the instance at the anchor, with states and inputs of the buffers, ready to take steps of ``step``."""
        return self._with_states_set(buffers, lambda: self._run_begun(buffers, step))

    def _run_begun(self, buffers: Buffers, step: float) -> SteppedInstance:
        self._away = True
        instance = self.come_back()
        self._restart_at_states(buffers)
        self._away = True
        instance.visit(buffers, "")
        if self.restores_twice and self._saved is not None:
            instance.step(step)
            self.steps += 1
            instance.restore(self._saved)
            instance.visit(buffers, "")
        return instance

    def drop_anchor(self, buffers: Buffers, steps: tuple[float, ...]) -> None:
        """Go on from the anchor with states and inputs of the buffers, and let the anchor be where the steps lead."""
        leg = _Leg(buffers.values[: 1 + buffers.n + len(self.layout.inputs)].copy(), steps)
        self.begin_run(buffers, steps[0] if steps else 0.0)
        self._step_leg(leg)
        self._legs.append(leg)
        self._anchor()

    def set_states_by_start(self) -> bool:
        """Set states as start values of fresh instances from now on; False where that is impossible."""
        description = self.layout.description
        self.sets_by_start = not self._legs and all(v.is_settable for v in description.states)
        if self.sets_by_start:
            # A state that was rejected between two steps may be accepted as a start value: try again.
            self._refusals.clear()
        return self.sets_by_start

    def stop_setting_by_start(self) -> None:
        """Set states between two steps again, beginning at the model's own start values."""
        self.sets_by_start = False
        self._refusals.clear()
        # The instance began with the states of the last attempt: the next evaluation needs a fresh one.
        self._forget_saved()
        self._away = True

    def visit(self, buffers: Buffers, extent: str = "everything", prepared: Visit | None = None) -> None:
        """Evaluate at the anchor, with states and inputs of the buffers."""
        self._with_states_set(buffers, lambda: self._visit(buffers, extent, prepared))

    def _visit(self, buffers: Buffers, extent: str, prepared: Visit | None) -> None:
        self.come_back()
        self._restart_at_states(buffers)
        super().visit(buffers, extent, prepared)

    def _with_states_set(self, buffers: Buffers, attempt: Callable[[], T]) -> T:
        """Try something at the states of the buffers; where the FMU fails them, with states as start values.

        A note says so then: the FMU's own message about a value that it does not take would alarm without a reason.
        """
        with self.stepped.sink.hold_messages():
            return self._try_both_ways(buffers, attempt)

    def _try_both_ways(self, buffers: Buffers, attempt: Callable[[], T]) -> T:
        point = buffers.values[: 1 + buffers.n + buffers.k].copy()
        try:
            return attempt()
        except ModelError as error:
            as_at_start = not self._legs and np.array_equal(point[1 : 1 + buffers.n], self.start_states)
            if self.sets_by_start or as_at_start:  # it is not the states
                raise
            buffers.values[: point.size] = point
            if not self.set_states_by_start():
                raise self._states_refused(error) from None
            try:
                result = attempt()
            except ModelError:
                self.stop_setting_by_start()
                raise self._states_refused(error) from None
            self.stepped.sink.excuse()
            return result

    def _states_refused(self, error: ModelError) -> StatesRefusedError:
        return StatesRefusedError(
            f"The states of '{self.layout.description.source}' cannot be set between two steps, nor as start values "
            f"of a fresh instance; at other states it cannot be evaluated. {error} Simulate to another point "
            "(fl.snapshots(model, times=[T])), or use model exchange (interface='me')."
        )

    @property
    def instance(self) -> Instance:
        """The instance; after an error a fresh one, led to the anchor."""
        before = self.generation
        instance = super().instance
        if self.generation != before and isinstance(instance, SteppedInstance):
            self._saved = None  # it belonged to the component that is gone
            self._follow(instance)
        return instance

    @property
    def stepped(self) -> SteppedInstance:
        """The instance, as what it is."""
        instance = self.instance
        assert isinstance(instance, SteppedInstance)  # noqa: S101 - made so by class_of_instances
        return instance

    def close(self) -> None:
        """Give everything back. Idempotent."""
        self._forget_saved()
        super().close()

    def _anchor(self) -> None:
        """Save the present state as the one that runs start from."""
        instance = self.stepped
        self._forget_saved()
        self._away = False
        self.anchor_time = instance.time
        run_start = self.run_start
        if run_start is RunStart.STATE:
            try:
                self._saved = instance.save()
            except ModelError as error:
                self._run_start, self._refused_saving = RunStart.COPY, error
                instance.allow_copies()  # the next run begins with another process
                self._away = True
        if run_start is RunStart.COPY:
            self._saved = instance.save_by_copy()
            if self._saved is None:
                self._run_start = RunStart.FRESH
            if self._refused_saving is not None:
                self._note_refused_saving(self._refused_saving)

    def _note_refused_saving(self, error: ModelError) -> None:
        instead = "it is started again for each run"
        if self._saved is not None:
            instead = "each run starts from a copy of its process"
        self.note(f"The model declares that it can save its state but does not, so {instead}. {error}")
        self._refused_saving = None

    def _forget_saved(self) -> None:
        saved, self._saved = self._saved, None
        instance = self._instance
        if saved is not None and isinstance(instance, SteppedInstance):
            instance.free(saved)

    def _follow(self, instance: SteppedInstance) -> None:
        """Lead an instance that has just begun to the anchor."""
        buffers = Buffers(self.layout, self.arena)
        for leg in self._legs:
            buffers.values[: leg.values.size] = leg.values
            buffers.time = instance.time
            if leg is self._legs[0]:
                self._restart_at_states(buffers)
            instance.visit(buffers, "")
            self._step_leg(leg)
        self._anchor()

    def _restart_at_states(self, buffers: Buffers) -> None:
        """Begin anew with the states of the buffers as start values, where the FMU takes them in no other way."""
        if not self.sets_by_start:
            return
        instance = self._instance
        assert isinstance(instance, SteppedInstance)  # noqa: S101
        target = buffers.x.copy()
        instance.read_states(buffers)
        if np.array_equal(buffers.x, target):
            return
        if instance.time != self.start_time:
            buffers.x[:] = target
            return  # the evaluation reports that they cannot be set
        states: dict[Variable, list[float]] = {}
        for scalar, value in zip(self.layout.states, target.tolist(), strict=True):
            states.setdefault(scalar.variable, []).append(value)
        other_settings = [s for s in self.settings if s.variable not in states]
        self._forget_saved()
        instance.begin_again(self.start_time, (*other_settings, *(Assignment(v, tuple(x)) for v, x in states.items())))
        self.note_process_of_each()
        self.generation += 1
        instance.read_states(buffers)
        if not self._legs:
            self._anchor()

    def _step_leg(self, leg: _Leg) -> None:
        instance = self._instance
        assert isinstance(instance, SteppedInstance)  # noqa: S101
        if instance.steps_together and len(leg.steps) > 1:
            if self._plain_steps is None:
                self._plain_steps = CommunicationSteps(instance)
            for begin in range(0, len(leg.steps), self._plain_steps.most):
                part = leg.steps[begin : begin + self._plain_steps.most]
                instance.take_steps(self._plain_steps, np.array(part))
        else:
            for step in leg.steps:
                instance.step(step)
        self.steps += len(leg.steps)
        self._away = True
