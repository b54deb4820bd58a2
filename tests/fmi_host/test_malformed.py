"""Messages that the client never sends: the host answers with an error or ends, and touches nothing outside its arena.

The host is compiled with the sanitizers for addresses and undefined behaviour; the FMU touches every byte that it is
given. The environment variable FMILIN_FUZZED_HOST names another build.
"""

from __future__ import annotations

import os
import select
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.host_programs import INSTRUCTION, MESSAGE, Operation
from fmilin.fmi.host import recipe
from tests.shared import shared

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="descriptors are passed as on Linux")

HERE = Path(__file__).parent
SIZE = 1 << 16
OPEN, DEFINE, RUN, EXECUTE, QUIT, COPY_HOST = 1, 2, 3, 4, 5, 6
ANSWER = struct.Struct("=IiIIQII")
NUMBERS = [0, 1, 2, 3, 8, 24, SIZE - 8, SIZE, SIZE + 8, 2**31, 2**32 - 1, 2**32, 2**61, 2**63, 2**64 - 8, 2**64 - 1]


def _library(path: Path) -> None:
    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"
    command = ["cc", "-shared", "-fPIC", "-O1", "-w", f"-I{headers}", str(HERE / "fuzzed.c"), "-o", str(path)]
    subprocess.run(command, check=True)


def _compile_sanitized(compiler: str, path: Path) -> None:
    sources = [str(source) for source in recipe.source_files() if source.suffix == ".c"]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    command = [compiler, "-std=c11", "-g", "-O1", *sanitizers, *sources, "-o", str(path), "-ldl", "-lpthread", "-lm"]
    subprocess.run(command, check=True)


def _has_sanitizers(compiler: str) -> bool:
    program = b"int main(void) { return 0; }"
    command = [compiler, "-fsanitize=address,undefined", "-x", "c", "-", "-o", os.devnull]
    return subprocess.run(command, input=program, capture_output=True, check=False).returncode == 0


@cache
def _sanitized_host(compiler: str) -> Path:
    if named := os.environ.get("FMILIN_FUZZED_HOST"):
        return Path(named)
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if not _has_sanitizers(compiler):
        pytest.skip(f"the run-time library of {compiler}'s sanitizers is not installed: libasan, libclang-rt-dev")
    return shared(f"fmilin-host-sanitized-{compiler}", lambda path: _compile_sanitized(compiler, path))


class RawHost:
    """A host and its pipes."""

    def __init__(self, compiler: str) -> None:
        program = _sanitized_host(compiler)
        self.arena = Arena(SIZE)
        pairs = [os.pipe() for _ in range(3)]
        (self._theirs, self.requests), (self.answers, answers), (alive, self.alive) = pairs
        keeps = [str(number) for d in (self._theirs, answers) for number in ("--keep-descriptor", d)]
        self.process = subprocess.Popen(
            [
                program,
                *map(str, (self._theirs, answers, self.arena.descriptor, SIZE)),
                *keeps,
                "--no-restrictions",
                "--copies",
                "1",
            ],
            pass_fds=(self._theirs, answers, self.arena.descriptor),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=512"},
        )
        for descriptor in (self._theirs, answers, alive):
            os.close(descriptor)
        assert self.receive() is not None
        library = shared(f"fuzzed{library_suffix()}", _library)
        assert self.ask(OPEN, os.fsencode(library) + b"\0\0", 2) == 0

    def receive(self) -> int | None:
        """Return the status of the next answer; None at the end of the process."""
        data = b""
        while len(data) < ANSWER.size:
            readable, _, _ = select.select([self.answers], [], [], 60)
            assert readable, "no answer"
            part = os.read(self.answers, ANSWER.size - len(data))
            if not part:
                return None
            data += part
        _, status, _, size, *_ = ANSWER.unpack(data)
        while size:
            part = os.read(self.answers, size)
            assert part
            size -= len(part)
        return int(status)

    def ask(self, kind: int, content: bytes = b"", a: int = 0, b: int = 0, c: int = 0) -> int | None:
        """Send a message and return the status of the answer."""
        try:
            os.write(self.requests, MESSAGE.pack(kind, len(content), a, b, c) + content)
        except BrokenPipeError:
            return None
        return self.receive()

    def end(self) -> str:
        """End it and return what it has printed."""
        for descriptor in (self.requests, self.alive):
            os.close(descriptor)
        output, _ = self.process.communicate(timeout=60)
        os.close(self.answers)
        return output.decode("utf-8", "replace")


@contextmanager
def raw_host(compiler: str = "gcc") -> Iterator[RawHost]:
    host = RawHost(compiler)
    try:
        yield host
    finally:
        printed = host.end()
    assert "ERROR" not in printed, printed
    assert "runtime error" not in printed, printed
    assert host.process.returncode in (0, 1), (host.process.returncode, printed)


def _random_bytes(random: np.random.Generator) -> bytes:
    return random.bytes(int(random.integers(0, 400)))


def _random_instructions(random: np.random.Generator) -> bytes:
    """Return instructions of which much is right: what is wrong everywhere is found by the first check."""
    content = b""
    for _ in range(random.integers(1, 4)):
        operation = (
            int(random.choice([int(o) for o in Operation])) if random.random() < 0.97 else int(random.integers(99))
        )
        kind = int(random.choice([0, 6, 10, 11])) if random.random() < 0.9 else int(random.integers(0, 20))
        count = int(random.integers(0, 7))
        numbers = []
        for _ in range(4):
            offset = 8 * int(random.integers(0, SIZE // 8))
            operand = [
                offset,
                count if random.random() < 0.7 else int(random.integers(0, 400)),
                8 * int(random.integers(3)),
            ]
            for i in range(3):
                if random.random() < 0.06:
                    operand[i] = NUMBERS[int(random.integers(len(NUMBERS)))]
            numbers += operand
        immediate = NUMBERS[int(random.integers(len(NUMBERS)))]
        content += INSTRUCTION.pack(operation, kind, immediate, *numbers)
    return content if random.random() < 0.97 else content[:-1]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("make", [_random_bytes, _random_instructions], ids=["bytes", "instructions"])
def test_random_contents_are_answered(make: Callable[[np.random.Generator], bytes], compiler: str) -> None:
    random = np.random.default_rng(46)
    outcomes: dict[int | None, int] = {}
    with raw_host(compiler) as host:
        for _ in range(6000):
            memory = np.frombuffer(host.arena._memory, dtype=np.uint8)
            if random.random() < 0.02:
                memory[:] = np.frombuffer(random.bytes(SIZE), dtype=np.uint8)
            elif random.random() < 0.1:
                memory[:] = 0
            kind = int(random.choice([DEFINE, EXECUTE, EXECUTE, RUN])) if random.random() < 0.97 else COPY_HOST
            number = int(random.integers(0, 5)) if random.random() < 0.9 else int(random.choice(NUMBERS[:11]))
            content = b"" if kind == RUN else make(random)
            if kind == COPY_HOST:
                number = [0, 0, 1, 1, 1, 2, *NUMBERS][int(random.integers(6 + len(NUMBERS)))]
            first, count = (int(n) for n in random.integers(0, 40, 2))
            if random.random() < 0.05:
                first = NUMBERS[int(random.integers(len(NUMBERS)))]
            status = host.ask(kind, content, number, first, count)
            assert status is not None
            outcomes[status] = outcomes.get(status, 0) + 1
    assert outcomes.get(-1, 0) > 500
    if make is _random_instructions:
        assert outcomes.get(0, 0) > 500  # much gets through to the functions


def test_messages_of_no_kind_are_answered() -> None:
    with raw_host() as host:
        for kind in (0, 7, 8, 2**32 - 1):
            assert host.ask(kind, b"abc") == -1


def test_copies_that_are_not_there_are_a_status() -> None:
    with raw_host() as host:
        assert host.ask(COPY_HOST, b"", 1) == -8
        assert host.ask(COPY_HOST, b"", 2) == 0
        for request in (3, 2**32, 2**64 - 1):
            assert host.ask(COPY_HOST, b"", request) == -1
        for request in (0, 0, 1, 1, 2, 2):
            assert host.ask(COPY_HOST, b"further bytes", request) == 0
        assert host.ask(COPY_HOST, b"", 1) == -8


def test_a_second_library_is_rejected() -> None:
    with raw_host() as host:
        for content in (b"", b"\0", b"\0\0", b"x", b"/lib\0\0"):
            assert host.ask(OPEN, content, 2) == -1


def test_a_message_of_an_impossible_size_ends_the_host() -> None:
    with raw_host() as host:
        os.write(host.requests, MESSAGE.pack(EXECUTE, 2**32 - 1, 0, 0, 0))
        assert host.receive() is None


def test_half_a_message_ends_the_host() -> None:
    with raw_host() as host:
        os.write(host.requests, MESSAGE.pack(EXECUTE, 100, 0, 0, 0)[:20])


@pytest.mark.parametrize("value", [SIZE - 7, SIZE, 2**32, 2**63, 2**64 - 8, 2**64 - 1])
@pytest.mark.parametrize("field", [0, 1, 2])
def test_no_operand_leaves_the_arena(field: int, value: int) -> None:
    with raw_host() as host:
        texts = [64, 1, 0] * 3 + [0] * 3
        assert host.ask(EXECUTE, INSTRUCTION.pack(Operation.INSTANTIATE, 0, 0, *texts)) == 0
        operand = [SIZE - 16, 2, 8]
        operand[field] = value
        content = INSTRUCTION.pack(Operation.GET_DERIVATIVES, 0, 0, *operand, *[0] * 9)
        status = host.ask(DEFINE, content, 0)
        if field == 2 and value % 8 == 0:  # a stride is possible as long as there is one repetition
            assert status == 0
            assert host.ask(RUN, b"", 0, 0, 1) == 0
            assert host.ask(RUN, b"", 0, 0, 2) == -1
            assert host.ask(RUN, b"", 0, 1, 1) == -1
            assert host.ask(RUN, b"", 0, 2**64 - 1, 2) == -1
        else:
            assert status == -1
