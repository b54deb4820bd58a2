"""A host with one FMU of tests/fmus, spoken to by instructions alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.client.arena import Arena, Repeated
from fmilin.fmi.client.host_programs import Instruction, Operation, ValueType
from fmilin.fmi.client.process import Failure, HostProcess
from fmilin.signals import FloatArray
from tests.shared import shared

HERE = Path(__file__).parent


def compile_types3(compiler: Sequence[str] = ("cc",), name: str = f"types3{library_suffix()}") -> Path:
    """Return the library of types3.c."""
    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"
    source = HERE / "types3.c"

    def compile_to(path: Path) -> None:
        command = [*compiler, "-shared", "-fPIC", "-w", f"-I{headers}", str(source), "-o", str(path)]
        subprocess.run(command, check=True)

    return shared(name, compile_to)


class HostedFmu:
    """An FMU in a host; use it in a with statement."""

    def __init__(
        self,
        library: Path,
        version: int,
        *,
        stepped: bool = False,
        prefix: str = "",
        seconds: float | None = 60.0,
        options: Sequence[str] = (),
    ) -> None:
        self.version, self.stepped = version, stepped
        self.messages: list[tuple[int, str, str]] = []
        self.arena = Arena(1 << 24)
        self.seconds, self.options = seconds, options
        self.start_host(library)
        self.problem = self.host.open_library(library, version, stepped=stepped, prefix=prefix)

    def start_host(self, library: Path) -> None:
        self.host = HostProcess(
            self.arena,
            library.name,
            lambda *record: self.messages.append(record),
            options=["--read", str(library.parent), *self.options],
            seconds=self.seconds,
        )

    def __enter__(self) -> HostedFmu:
        return self

    def __exit__(self, *_: object) -> None:
        self.host.kill()

    def call(
        self,
        operation: Operation,
        *operands: NDArray[np.generic] | Repeated,
        kind: ValueType = ValueType.FLOAT64,
        immediate: int = 0,
    ) -> Instruction:
        return Instruction(self.arena, operation, *operands, kind=kind, immediate=immediate)

    def do(
        self,
        operation: Operation,
        *operands: NDArray[np.generic] | Repeated,
        kind: ValueType = ValueType.FLOAT64,
        immediate: int = 0,
    ) -> Failure | None:
        return self.host.execute([self.call(operation, *operands, kind=kind, immediate=immediate)])

    def instantiate(self, token: str, flags: int = 2) -> Failure | None:
        texts = [self.arena.copy_bytes(text.encode()) for text in ("it", token, f"{os.sep}nowhere{os.sep}")]
        return self.do(Operation.INSTANTIATE, *texts, immediate=flags)

    def begin(self, token: str, time: float = 0.0) -> None:
        """Go from nothing to continuous-time mode, or to step mode."""
        assert self.instantiate(token) is None
        events, numbers = self.arena.zeros(6), self.arena.zeros(3)
        numbers[1] = time
        if self.version == 1 and not self.stepped:
            start = self.arena.zeros(1)
            start[0] = time
            assert self.do(Operation.SET_TIME, start) is None
        if self.version == 2:
            assert self.do(Operation.SETUP_EXPERIMENT, numbers) is None
        assert self.do(Operation.ENTER_INITIALIZATION, numbers, events) is None
        if self.version > 1:
            assert self.do(Operation.EXIT_INITIALIZATION) is None
        if not self.stepped and self.version > 1:
            assert self.do(Operation.UPDATE_DISCRETE_STATES, events) is None
            assert self.do(Operation.ENTER_CONTINUOUS_TIME_MODE) is None

    def references(self, values: Sequence[int]) -> NDArray[np.generic]:
        return self.arena.copy(np.array(values, dtype=np.uint32))

    def get_numbers(self, references: Sequence[int]) -> FloatArray:
        numbers = self.arena.zeros(len(references))
        assert self.do(Operation.GET_VALUES, self.references(references), numbers) is None
        return numbers.copy()

    def set_numbers(self, references: Sequence[int], values: Sequence[float]) -> None:
        numbers = self.arena.copy(np.array(values, dtype=float))
        assert self.do(Operation.SET_VALUES, self.references(references), numbers) is None

    def derivatives(self, states: Sequence[float]) -> FloatArray:
        x, rates = self.arena.copy(np.array(states, dtype=float)), self.arena.zeros(len(states))
        calls = [self.call(Operation.SET_CONTINUOUS_STATES, x), self.call(Operation.GET_DERIVATIVES, rates)]
        assert self.host.execute(calls) is None
        return rates.copy()
