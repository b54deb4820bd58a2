"""FMI 3.0 co-simulation, without event mode: the FMU handles its own events."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from fmilin.fmi.read.cosimulation.instance import SteppedInstance
from fmilin.fmi.read.instance3 import Instance3

__all__ = ["SteppedInstance3"]

_pointer = ctypes.c_void_p


class SteppedInstance3(SteppedInstance, Instance3):
    """One instance of an FMI 3.0 FMU for co-simulation."""

    save_function, restore_function, free_function = "GetFMUState", "SetFMUState", "FreeFMUState"
    save_flag = "canGetAndSetFMUState"

    def _load(self, folder: Path) -> Any:
        from fmpy.fmi3 import FMU3Slave

        return self._loaded(FMU3Slave, folder)

    def _bind_interface(self) -> None:
        super()._bind_interface()
        # What the FMU answers: event handling needed, terminate simulation, early return; last successful time.
        self._answers = (ctypes.c_bool * 3)()
        self._reached = ctypes.c_double()
        arguments = (_pointer, ctypes.c_double, ctypes.c_double, ctypes.c_bool, *([_pointer] * 4))
        self._step = self._checked("DoStep", arguments)

    def _do_step(self, time: float, step: float) -> None:
        answers = ctypes.addressof(self._answers)
        forgets = False  # ``noSetFMUStatePriorToCurrentPoint``: a state may be restored later
        self._step(
            self._component, time, step, forgets, answers, answers + 1, answers + 2, ctypes.addressof(self._reached)
        )
        if self._answers[1]:
            self.health = 3  # nothing but freeing is allowed now
            raise self._ended()
