"""What hosts are asked for: the names of functions, and the number of messages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from fmilin.fmi.client.host_programs import Instruction, Program
from fmilin.fmi.client.process import Failure, HostProcess

LOADING, UNLOADING = "the loading of the library", "the unloading of the library"


class Recorded:
    """The names of the functions that FMUs are asked for, and how many messages ask for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.messages = 0
        run, execute = HostProcess.run, HostProcess.execute
        open_library, close = HostProcess.open_library, HostProcess.close

        def recording_run(host: HostProcess, program: Program, count: int = 1, first: int = 0) -> Failure | None:
            self._add([i.name for i in program.instructions])
            return run(host, program, count, first)

        def recording_execute(host: HostProcess, instructions: Iterable[Instruction]) -> Failure | None:
            calls = tuple(instructions)
            self._add([i.name for i in calls])
            return execute(host, calls)

        def recording_open(host: HostProcess, path: Path, version: int, *, stepped: bool, prefix: str = "") -> str:
            self._add([LOADING])
            return open_library(host, path, version, stepped=stepped, prefix=prefix)

        def recording_close(host: HostProcess) -> None:
            self._add([UNLOADING])
            close(host)

        monkeypatch.setattr(HostProcess, "run", recording_run)
        monkeypatch.setattr(HostProcess, "execute", recording_execute)
        monkeypatch.setattr(HostProcess, "open_library", recording_open)
        monkeypatch.setattr(HostProcess, "close", recording_close)

    def clear(self) -> None:
        """Forget what was recorded."""
        self.names.clear()
        self.messages = 0

    def _add(self, names: list[str]) -> None:
        self.names += names
        self.messages += 1
