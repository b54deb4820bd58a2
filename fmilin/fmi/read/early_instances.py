"""Instances of FMI 1.0 and FMI 2.0, for model exchange and for co-simulation.

Functions of FMI 1.0 bear the name of the model (``pendulum_fmiGetReal``), there is no initialization mode, and states
are known to the code alone; in co-simulation none is visible, and none can be saved.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from fmilin.fmi.client.host_programs import Instruction, Operation
from fmilin.fmi.read.buffers import EARLY_TYPES, Group
from fmilin.fmi.read.description import ModelDescription
from fmilin.fmi.read.instance import Event, Instance
from fmilin.fmi.read.model_structure import with_states
from fmilin.fmi.read.settings import Assignment
from fmilin.fmi.read.stepped_instance import SteppedInstance
from fmilin.signals import FloatArray

_UNDEFINED_VALUE_REFERENCE = 2**32 - 1  # fmiUndefinedValueReference: a state that is not a variable


class Version1(Instance):
    """The common parts of all instances of an FMI 1.0 FMU."""

    version = 1
    types: ClassVar = EARLY_TYPES

    def directional(self, unknowns: Group, knowns: Group, target: FloatArray) -> Instruction:
        """Reject: FMI 1.0 has no directional derivatives."""
        raise NotImplementedError

    def _exit_initialization(self) -> None:
        """Do nothing: there is no such mode."""


class Instance1(Version1):
    """One instance of an FMI 1.0 FMU for model exchange."""

    tells_states = True

    def _instantiate(self) -> bool:
        return self._create("")

    def described(self) -> ModelDescription:
        """Return the description with the states that the code has."""
        numbers = self.arena.copy(np.full(self._number_of_states, _UNDEFINED_VALUE_REFERENCE, dtype=np.uint32))
        if numbers.size:
            ask = self.component.bound(Operation.GET_STATE_REFERENCES, numbers)
            if self.component.first_bad((ask,)) is not None:  # it only serves names
                numbers[:] = _UNDEFINED_VALUE_REFERENCE
        return with_states(self.description, numbers.tolist())

    def pass_event(self, inputs: Sequence[Group] = ()) -> bool:
        """Carry out an event at the point that is held; return whether the FMU asks to end the simulation."""
        self._standing = None
        for group in inputs:
            self.write(group)
        return self._iterated(f"at t = {self._time:g} s")

    def complete_step(self) -> tuple[bool, bool]:
        """Say that a step was accepted; return whether the FMU asks for an event, and to end the simulation."""
        wants_event, _ = super().complete_step()
        return wants_event, False

    def _enter_initialization(self, time: float, settings: Sequence[Assignment]) -> None:
        self.component.call(Operation.SET_TIME, self.arena.copy(np.array([time])))
        for setting in settings:
            self._apply(setting)
        self._first = Event.of(self._initialize(time))

    def _start(self) -> None:
        """Iterate events until the first continuous-time instant, if the initialization left any."""
        if self._first.terminate:
            raise self._terminates_at_its_start()
        self.next_event = self._first.next_time
        if self._first.again:
            self._settle()
        self._check_number_of_states()


class SteppedInstance1(SteppedInstance, Version1):
    """One instance of an FMI 1.0 FMU for co-simulation."""

    save_flag = ""

    def _instantiate(self) -> bool:
        return self._create(self.component.uri(self._folder))

    def _enter_initialization(self, time: float, settings: Sequence[Assignment]) -> None:
        for setting in settings:
            self._apply(setting)
        self._initialize(time)

    def _iterate(self) -> Event:
        """Answer that nothing happens: events are the FMU's own affair."""
        return Event(again=False, terminate=False, next_time=None)


class Instance2(Instance):
    """One instance of an FMI 2.0 FMU."""

    version = 2
    types: ClassVar = EARLY_TYPES
    truth = int

    def _instantiate(self) -> bool:
        return self._create(self.component.uri(self._folder / "resources"))

    def _enter_initialization(self, time: float, settings: Sequence[Assignment]) -> None:
        numbers, flags = self._experiment(time)
        self.component.call(Operation.SETUP_EXPERIMENT, numbers, immediate=flags)
        for setting in settings:
            self._apply(setting)
        self._initialize(time)


class SteppedInstance2(SteppedInstance, Instance2):
    """One instance of an FMI 2.0 FMU for co-simulation."""

    save_flag = "canGetAndSetFMUstate"
