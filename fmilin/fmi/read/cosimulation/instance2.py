"""FMI 2.0 co-simulation."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from fmilin.fmi.read.cosimulation.instance import SteppedInstance
from fmilin.fmi.read.instance2 import Instance2

__all__ = ["SteppedInstance2"]

_pointer = ctypes.c_void_p
_RESTORED = 0
"""``noSetFMUStatePriorToCurrentPoint`` = false: a state may be restored later, so that nothing is forgotten."""


class SteppedInstance2(SteppedInstance, Instance2):
    """One instance of an FMI 2.0 FMU for co-simulation."""

    save_function, restore_function, free_function = "GetFMUstate", "SetFMUstate", "FreeFMUstate"
    save_flag = "canGetAndSetFMUstate"

    def _load(self, folder: Path) -> Any:
        from fmpy import sharedLibraryExtension
        from fmpy.fmi2 import FMU2Slave

        name = self.description.model_identifier + sharedLibraryExtension
        found = [folder / "binaries" / b / name for b in self.binaries if (folder / "binaries" / b / name).is_file()]
        return self._loaded(FMU2Slave, folder, libraryPath=str(found[0]))

    def _bind_interface(self) -> None:
        super()._bind_interface()
        self._step = self._checked("DoStep", (_pointer, ctypes.c_double, ctypes.c_double, ctypes.c_int))

    def _do_step(self, time: float, step: float) -> None:
        self._step(self._component, time, step, _RESTORED)
