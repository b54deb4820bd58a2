"""FMI 1.0 co-simulation: no state can be saved, and none is visible."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from fmilin.fmi.read.cosimulation.instance import SteppedInstance
from fmilin.fmi.read.instance import Event
from fmilin.fmi.read.instance1 import Version1
from fmilin.fmi.read.settings import Setting

__all__ = ["SteppedInstance1"]

_WITHOUT_LIMIT = 0.0  # milliseconds that the FMU may wait for its tool


class SteppedInstance1(SteppedInstance, Version1):
    """One instance of an FMI 1.0 FMU for co-simulation."""

    save_function = restore_function = free_function = save_flag = ""
    frees_with = "FreeSlaveInstance"

    # ------------------------------------------------------------------ details

    def _instantiate(self) -> bool:
        d = self.description
        texts = (d.model_name, d.token, self._folder.as_uri(), "application/x-fmu-sharedlibrary")
        not_visible_or_interactive = self.truth(0), self.truth(0)
        limit = ctypes.c_double(_WITHOUT_LIMIT)
        return self._made("InstantiateSlave", *(t.encode() for t in texts), limit, *not_visible_or_interactive)

    def _enter_initialization(self, time: float, settings: Sequence[Setting]) -> None:
        for setting in settings:
            self._apply(setting)
        self.component.call("InitializeSlave", ctypes.c_double(time), self.truth(0), ctypes.c_double(0.0))

    def _terminate(self) -> None:
        self.component.call("TerminateSlave")

    def _do_step(self, time: float, step: float) -> None:
        new_step = self.truth(1)
        self.component.run((self.component.bound("DoStep", ctypes.c_double(time), ctypes.c_double(step), new_step),))

    def _iterate(self) -> Event:
        """Answer that nothing happens: events are the FMU's own affair."""
        return Event(again=False, terminate=False, next_time=None)
