"""FMI 1.0 co-simulation: no state can be saved, and none is visible."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fmilin.errors import ModelError
from fmilin.fmi.read.cosimulation.instance import SteppedInstance
from fmilin.fmi.read.instance import Event
from fmilin.fmi.read.instance1 import Version1
from fmilin.fmi.read.log import logger
from fmilin.fmi.read.settings import Setting

__all__ = ["SteppedInstance1"]

_pointer = ctypes.c_void_p
_NEW_STEP = b"\1"
_WITHOUT_LIMIT = 0.0  # milliseconds that the FMU may wait for its tool


class SteppedInstance1(SteppedInstance, Version1):
    """One instance of an FMI 1.0 FMU for co-simulation."""

    save_function = restore_function = free_function = ""
    save_flag = ""

    def _load(self, folder: Path) -> Any:
        from fmpy.fmi1 import FMU1Slave

        self._folder = folder
        return self._library(FMU1Slave, folder)

    def _bind_interface(self) -> None:
        super()._bind_interface()
        self._step = self._checked("DoStep", (_pointer, ctypes.c_double, ctypes.c_double, ctypes.c_char))
        self._initialize = self._checked("InitializeSlave", (_pointer, ctypes.c_double, ctypes.c_char, ctypes.c_double))
        self._terminate = self._checked("TerminateSlave", (_pointer,))

    def begin(self, time: float, settings: Sequence[Setting]) -> None:
        """Go from nothing to the first communication point; see :meth:`Instance.begin`."""
        self._time = time
        self.sink.forget()
        self.health = 0
        self._instantiate()
        self._component = self._fmu.component
        try:
            self._enter_initialization(time, settings)
            for setting in settings:
                if setting.variable.causality == "input":
                    self._apply(setting)
            self._quieten()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Terminate and free the component; see :meth:`Instance.end`."""
        if self._component is None:
            return
        try:
            if self.is_usable:
                self._terminate(self._component)
        except ModelError as error:  # the way out must not stop here
            logger.warning("%s: %s", self.description.source, error)
        finally:
            if not self.is_lost:
                self._free("FreeSlaveInstance")
            self._component = self._fmu.component = None

    # ------------------------------------------------------------------ details

    def _instantiate(self) -> None:
        from fmpy.fmi1 import fmi1CallbackFunctions

        d = self.description
        texts = (d.model_name, d.token, self._folder.as_uri(), "application/x-fmu-sharedlibrary")
        self._made(
            "InstantiateSlave",
            (
                *((ctypes.c_char_p, text.encode()) for text in texts),
                (ctypes.c_double, _WITHOUT_LIMIT),
                (ctypes.c_char, b"\0"),
                (ctypes.c_char, b"\0"),
                (fmi1CallbackFunctions, self._callbacks()),
                (ctypes.c_char, b"\1"),
            ),
        )

    def _enter_initialization(self, time: float, settings: Sequence[Setting]) -> None:
        for setting in settings:
            self._apply(setting)
        self._initialize(self._component, time, b"\0", 0.0)

    def _do_step(self, time: float, step: float) -> None:
        self._step(self._component, time, step, _NEW_STEP)

    def _iterate(self) -> Event:
        """Answer that nothing happens: events are the FMU's own affair."""
        return Event(again=False, terminate=False, next_time=None)
