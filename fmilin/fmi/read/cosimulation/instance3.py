"""FMI 3.0 co-simulation, without event mode: the FMU handles its own events."""

from __future__ import annotations

import ctypes

from fmilin.fmi.read.cosimulation.instance import SteppedInstance
from fmilin.fmi.read.instance3 import Instance3

__all__ = ["SteppedInstance3"]


class SteppedInstance3(SteppedInstance, Instance3):
    """One instance of an FMI 3.0 FMU for co-simulation."""

    save_function, restore_function, free_function = "GetFMUState", "SetFMUState", "FreeFMUState"
    save_flag = "canGetAndSetFMUState"

    def _instantiate(self) -> bool:
        return self.component.create(
            "InstantiateCoSimulation",
            *self._identity(),
            self.truth(0),  # no event mode
            self.truth(0),  # no early return
            ctypes.c_void_p(),  # no intermediate variables
            ctypes.c_size_t(0),
            *self._environment(),
            ctypes.c_void_p(),  # no intermediate updates
        )

    def _do_step(self, time: float, step: float) -> None:
        forgets = self.truth(0)  # ``noSetFMUStatePriorToCurrentPoint``: a state may be restored later
        needs_event, terminates, returns_early = (self.truth() for _ in range(3))
        answers = (needs_event, terminates, returns_early, ctypes.c_double())
        arguments = (ctypes.c_double(time), ctypes.c_double(step), forgets, *(ctypes.byref(a) for a in answers))
        self.component.run((self.component.bound("DoStep", *arguments),))
        if terminates.value:
            self.component.health = 3  # nothing but freeing is allowed now
            raise self._ended()
