"""One instance of an FMU for co-simulation: communication steps, and its whole state saved and restored.

Between two steps some tools let their continuous states be set and the derivatives be read, as variables; the
standard does not promise that, so nothing here relies on it.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from typing import Any

import numpy as np

from fmilin.errors import ModelError, NumericalError
from fmilin.fmi.read.buffers import Pool
from fmilin.fmi.read.instance import Instance
from fmilin.signals import FloatArray

__all__ = ["SavedState", "SteppedInstance"]

_pointer = ctypes.c_void_p


class SavedState:
    """The whole state of an instance, as the FMU keeps it.

    Parameters
    ----------
    handle : ctypes.c_void_p
    time : float
        The communication point, in seconds.
    """

    def __init__(self, handle: ctypes.c_void_p, time: float) -> None:
        self.handle = handle
        self.time = time


class SteppedInstance(Instance):
    """What FMI 2.0 and 3.0 have in common for co-simulation; the functions that a version names differently are below.

    Raises
    ------
    ModelError
        From every method, with the FMI function that failed and the FMU's own last words.
    """

    save_function: str
    restore_function: str
    free_function: str
    save_flag: str
    """The attribute of the interface that promises them."""

    # ------------------------------------------------------------------ particular to a version

    @abstractmethod
    def _do_step(self, time: float, step: float) -> None:
        """Call DoStep."""

    # ------------------------------------------------------------------ steps

    @property
    def time(self) -> float:
        """The communication point, in seconds."""
        return self._time

    def step(self, step: float) -> None:
        """Advance by one communication step.

        Raises
        ------
        NumericalError
            When the FMU discards the step, or asks to end the simulation.
        """
        self.sink.forget()
        self._do_step(self._time, step)
        self._time += step

    @property
    def can_save(self) -> bool:
        """Whether the FMU promises to save and restore its whole state."""
        return (self.description.capabilities.get(self.save_flag) or "").strip() in ("true", "1")

    def save(self) -> SavedState:
        """Save the whole state; :meth:`free` it before the instance ends."""
        handle = ctypes.c_void_p()
        self._checked(self.save_function, (_pointer, _pointer))(self._component, ctypes.addressof(handle))
        return SavedState(handle, self._time)

    def restore(self, saved: SavedState) -> None:
        """Return to a saved state."""
        self._restore(self._component, saved.handle)
        self._time = saved.time

    def free(self, saved: SavedState) -> None:
        """Forget a saved state."""
        if self.is_usable and saved.handle.value:
            self._checked(self.free_function, (_pointer, _pointer))(self._component, ctypes.addressof(saved.handle))

    # ------------------------------------------------------------------ between two steps

    def hold(self, pool: Pool) -> None:
        """Set states and inputs at the communication point, and read the states back.

        States that the instance holds already are not set: some FMUs refuse, and need not be asked then.

        Raises
        ------
        ModelError
            At another time than that of the communication point.
        """
        self.sink.forget()
        if float(pool.values[0]) != self._time:
            raise ModelError(
                f"'{self.description.source}' is a co-simulation FMU, which stands at t = {self._time:g} s: it cannot "
                f"be asked at t = {float(pool.values[0]):g} s. Lead it there with --simulate-to."
            )
        for group in pool.inputs:
            self.write(group)
        if not pool.n:
            return
        asked = pool.x.copy()
        self.read_states(pool)
        if not np.array_equal(pool.x, asked):
            pool.x[:] = asked
            for group in pool.states:
                self.write(group)
            self.read_states(pool)

    def read_states(self, pool: Pool) -> None:
        """Read the continuous states, which are variables here."""
        for group in pool.states:
            self.read(group)

    def rates(self, pool: Pool) -> None:
        """Read the derivatives of the states, which are variables here."""
        for group in pool.derivatives:
            self.read(group)

    def nominals(self, count: int) -> FloatArray:
        """Return 1 for each, which says nothing: the interface has no function for nominal values."""
        return np.ones(count)

    def event_indicators(self) -> FloatArray:
        """Return nothing: the FMU's own solver watches them."""
        return np.empty(0)

    # ------------------------------------------------------------------ details

    def begin(self, time: float, settings: Any) -> None:
        """Go from nothing to the first communication point."""
        self._time = time
        super().begin(time, settings)

    def _bind_interface(self) -> None:
        self._restore = self._checked(self.restore_function, (_pointer, _pointer)) if self.can_save else self._no_state

    def _no_state(self, *_: Any) -> None:
        raise ModelError(f"'{self.description.source}' cannot restore a state.")

    def _start(self) -> None:
        """Do nothing: after initialization the FMU waits for its first step."""

    def _ended(self) -> NumericalError:
        return NumericalError(
            f"'{self.description.source}' asks to end the simulation at t = {self._time:g} s. {self.sink.last_words()} "
            f"Choose another operating point, or smaller steps."
        )

    def _number_of_event_indicators(self) -> int:
        return 0

    def _refused_number(self) -> int | None:
        return None
