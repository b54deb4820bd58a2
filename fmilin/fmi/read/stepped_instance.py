"""One instance of an FMU for co-simulation: communication steps, and its whole state saved and restored."""

import ctypes
from typing import NamedTuple

import numpy as np

from fmilin.errors import ModelError, NumericalError
from fmilin.fmi.read.buffers import Buffers
from fmilin.fmi.read.component import Call
from fmilin.fmi.read.description import is_true
from fmilin.fmi.read.instance import Instance
from fmilin.signals import FloatArray


class SavedState(NamedTuple):
    """The whole state of an instance, as the FMU keeps it, at the communication point ``time``, in seconds."""

    handle: ctypes.c_void_p
    time: float


class SteppedInstance(Instance):
    """What FMI 2.0 and 3.0 have in common for co-simulation; functions that a version names differently are below."""

    save_function: str
    restore_function: str
    free_function: str
    save_flag: str  # the attribute of the interface that promises them

    def _do_step(self, time: float, step: float) -> None:
        forgets = self.truth(1)  # no step is taken back: told otherwise, some FMUs save and go back at every step
        self.component.run((self.component.bound("DoStep", ctypes.c_double(time), ctypes.c_double(step), forgets),))

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
        handle = ctypes.c_void_p()
        self.component.run((self.component.bound(self.save_function, ctypes.byref(handle)),))
        return SavedState(handle, self._time)

    def restore(self, saved: SavedState) -> None:
        """Return to a saved state."""
        if not self.can_save:
            raise ModelError(f"'{self.description.source}' cannot restore a state.")
        self.component.run((self.component.bound(self.restore_function, saved.handle),))
        self._time = saved.time

    def free(self, saved: SavedState) -> None:
        """Forget a saved state."""
        if self.component.is_usable and saved.handle.value:
            self.component.run((self.component.bound(self.free_function, ctypes.byref(saved.handle)),))

    def visit(self, buffers: Buffers, wanted: str, then: tuple[Call, ...] = ()) -> None:
        """Set inputs, states only where changed (some FMUs refuse), read them back, and what is wanted; go on."""
        self.sink.forget()
        if buffers.time.value != self._time:
            raise ModelError(
                f"'{self.description.source}' is a co-simulation FMU, which stands at t = {self._time:g} s: it cannot "
                f"be evaluated at t = {buffers.time.value:g} s. Let it run there first: "
                f"fl.snapshots(model, times=[{buffers.time.value:g}])."
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
        if wanted == "everything":
            for group in (*self._wanted(buffers, wanted), *buffers.derivatives):
                self.read(group)
        for group in self._wanted(buffers, wanted):
            self.read(group)
        self.component.run(then)

    def _state_reading(self, buffers: Buffers) -> tuple[Call, ...]:
        return tuple(call for group in buffers.states for call in self._reading(group))

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
            f"'{self.description.source}' asks to end the simulation at t = {self._time:g} s. {self.sink.last_words()} "
            f"Choose another operating point, or smaller steps."
        )

    def _refused_number(self) -> int | None:
        return None
