"""FMI 2.0 co-simulation."""

from __future__ import annotations

import ctypes

from fmilin.fmi.read.cosimulation.instance import SteppedInstance
from fmilin.fmi.read.instance2 import Instance2

__all__ = ["SteppedInstance2"]


class SteppedInstance2(SteppedInstance, Instance2):
    """One instance of an FMI 2.0 FMU for co-simulation."""

    save_function, restore_function, free_function = "GetFMUstate", "SetFMUstate", "FreeFMUstate"
    save_flag = "canGetAndSetFMUstate"
    interface = 1
    """fmi2CoSimulation."""

    def _do_step(self, time: float, step: float) -> None:
        # ``noSetFMUStatePriorToCurrentPoint``: no step is taken back. Told otherwise, some FMUs save and go back at
        # every step. That a run starts anew from a saved state is no rollback.
        forgets = self.truth(1)
        self.component.run((self.component.bound("DoStep", ctypes.c_double(time), ctypes.c_double(step), forgets),))
