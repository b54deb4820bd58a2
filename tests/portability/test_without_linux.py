"""FMUs without what Linux alone has: the host compiled as for macOS, no memfd_create, no /proc/meminfo."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from fmilin.fmi.host import recipe
from tests.fmi_host.probe import WARNINGS
from tests.fmus.make import build
from tests.shared import shared

PATIENCE = 30.0  # seconds
CODE = """
import io, os, pathlib, time
del os.memfd_create
actual_open = io.open
def open_without_memory_information(file, *arguments, **options):
    if str(file) == "/proc/meminfo":
        raise FileNotFoundError(file)
    return actual_open(file, *arguments, **options)
io.open = open_without_memory_information
import psutil
psutil.virtual_memory = lambda: type("memory", (), {"available": 2**33})
import fmilin as fl
from fmilin.fmi.host import termination
termination.HOST_DIES_WITH_PARENT = False
from fmilin.fmi.client.restrictions import _free_memory
assert _free_memory() == 0.9 * 2**33

def describe_error(name, **limits):
    try:
        with fl.load(name, limits=fl.Limits(**limits)) as model:
            fl.linearize(model)
    except fl.errors.ModelCrashError as error:
        return str(error)

with fl.load("pendulum.fmu") as model:
    print(fl.linearize(model).A.tolist())
print(describe_error("crashes.fmu"))
print(describe_error("exits.fmu"))
print(describe_error("hangs.fmu", seconds=1.0))
print(fl.sandbox_report().missing)
with fl.load("hangs_when_loaded.fmu", limits=fl.Limits(seconds=60.0)) as model:
    fl.linearize(model)
"""


def compile_host(path: Path) -> None:
    units = [str(unit) for unit in recipe.source_files() if unit.suffix == ".c"]
    command = ["gcc", "-U__linux__", "-U__linux", "-U__gnu_linux__", "-O1", *WARNINGS, "-o", str(path), *units]
    assert subprocess.run([*command, "-ldl", "-lm"], check=True, capture_output=True, text=True).stderr == ""


def count_processes(program: Path) -> int:
    """Count those of a program, here the one that was started and that in which the code runs."""
    return sum(process.info["exe"] == str(program) for process in psutil.process_iter(["exe"]))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="needs gcc on Linux")
def test_without_functions_of_linux_fmus_run_and_their_endings_are_told(tmp_path: Path) -> None:
    for name in ("pendulum", "crashes", "exits", "hangs", "hangs_when_loaded"):
        build(name, tmp_path)
    program = tmp_path / "host"
    shutil.copy(shared("host-without-linux", compile_host), program)
    environment = {**os.environ, "FMILIN_HOST": str(program), "PYTHONUNBUFFERED": "1"}
    client = subprocess.Popen(
        [sys.executable, "-c", CODE], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert client.stdout is not None
    assert client.stderr is not None
    lines = [client.stdout.readline() for _ in range(5)]
    wait_until(lambda: count_processes(program) == 2)  # while the library of the last FMU is being loaded
    client.kill()
    wait_until(lambda: count_processes(program) == 0)
    *_, warning = client.communicate(timeout=30)
    assert lines[0].startswith("[[0.0, 0.0, 1.0, 0.0]"), warning
    assert "crashed (SIGSEGV: segmentation fault) in fmi2GetDerivatives" in lines[1]
    assert "ended the whole process by itself (exit status 0)" in lines[2]
    assert "within 1 s and was stopped" in lines[3]
    assert "reading" in lines[4]
    assert "this system cannot prevent it from files" in warning
