"""Helper processes that are stopped (SIGSTOP) in the middle of their work: fmilin ends with an error or goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import design, wrapping
from fmilin.codegen import compiler
from fmilin.errors import ModelCrashError, ModelError
from fmilin.models import FunctionModel, OdeModel
from fmilin.support import stopped_processes
from tests.cli.test_explore import ENDS, address_of
from tests.cli.test_explore import explore as start_explore

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped on this system")

SOON = 40.0  # seconds within which all is over, on a machine with much load
LIMIT = 0.5  # seconds instead of the limits of fmilin


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Shorten the limits, and see to it that the test does not take long."""
    monkeypatch.setattr(stopped_processes, "PATIENCE_SECONDS", LIMIT)
    monkeypatch.setattr(stopped_processes, "INTERVAL", LIMIT / 5)
    monkeypatch.setattr(compiler, "VERSION_TIME", LIMIT)
    monkeypatch.setattr(compiler, "LEAST_COMPILING_TIME", LIMIT)
    monkeypatch.setattr(wrapping, "BUILDING_TIME", LIMIT)
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < SOON


def write_program(path: Path, *lines: str) -> str:
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
    return str(path)


STOPPED = "kill -STOP $$"
WITH_STOPPED_CHILD = """sh -c 'kill -STOP $$'"""  # waits for its child, which keeps the streams open


@pytest.mark.parametrize("line", [STOPPED, WITH_STOPPED_CHILD])
@pytest.mark.parametrize("asked", ["always", "not for its version"])
def test_a_stopped_compiler_is_an_error(line: str, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_version = [] if asked == "always" else ['[ "$1" = --version ] && exit 0']
    monkeypatch.setenv("CC", write_program(tmp_path / "cc", *at_version, line))
    with pytest.raises(ModelError, match=r"did not end within .* s and was stopped"):
        compiler.compile_library({"f.c": b"int f(void) { return 1; }"}, "f.c", compiler.Compiler(use_cache=False))


def test_a_model_goes_on_without_compiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", write_program(tmp_path / "cc", STOPPED))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = OdeModel("pendulum", {"q": "v", "v": "-sin(q) - 0.1*v"}, start={"q": 1.0})
    motion = fl.simulate(model, stop_time=200.0)  # more evaluations than pay for compiled code
    assert abs(motion["q"][-1]) < 1e-3


class StopsAt:
    """Rates of ``x' = u - x``, of which the process gets a signal at u = 3.3, unless it is this one."""

    def __init__(self, number: signal.Signals) -> None:
        self._here, self._number = os.getpid(), number

    def __call__(self, t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        if u[0] == 3.3 and os.getpid() != self._here:
            os.kill(os.getpid(), self._number)
        return np.array([u[0] - x[0]])


@pytest.mark.parametrize(("number", "why"), [(signal.SIGSTOP, r"was stopped \(SIGSTOP\)"), (signal.SIGKILL, "SIGKILL")])
def test_a_stopped_process_of_a_sweep_costs_its_point_as_a_killed_one_does(number: signal.Signals, why: str) -> None:
    model = FunctionModel("lag", {"x": 0.0}, StopsAt(number), inputs=["u"])
    family = fl.sweep(model, {"u": [0.0, 1.0, 2.0, 3.3, 4.0, 5.0, 6.0, 7.0]}, jobs=2)
    assert family.ok.tolist() == [k != 3 for k in range(8)]
    assert re.search(why, family.reasons[3])
    np.testing.assert_allclose(family.A[family.ok], -1.0, atol=1e-6)


def run_once(parameters: dict[str, float], number: int) -> Any:
    """Return a motion, or stop this process."""
    if number == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    return fl.simulate(OdeModel("lag", {"x": "-x"}, start={"x": parameters["x"]}), stop_time=0.1)


def test_a_stopped_process_of_a_monte_carlo_study_is_an_error() -> None:
    with pytest.raises(ModelCrashError, match=r"Monte Carlo study was stopped \(SIGSTOP\)"):
        design.monte_carlo(run_once, {"x": (1.0, 2.0)}, runs=4, signals=["x"], jobs=2)


def test_stopped_builders_of_wrapped_models_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pythonfmu")
    program = write_program(tmp_path / "python", STOPPED)
    monkeypatch.setattr(wrapping, "python_command", lambda *arguments: [program, *arguments])
    with pytest.raises(ModelError, match="pythonfmu did not end within"):
        wrapping.wrap_as_fmu("fmilin.systems:cartesian_pendulum", tmp_path / "wrapped.fmu")


def test_the_page_is_served_beside_a_browser_that_does_not_return(tmp_path: Path) -> None:
    pytest.importorskip("nicegui")
    import urllib.request

    number = tmp_path / "number"
    browser = write_program(tmp_path / "browser", f"echo $$ > {number}.new; mv {number}.new {number}", STOPPED)
    process = start_explore("fmilin.systems:four_bar", env={**os.environ, "BROWSER": f"{browser} %s"})
    try:
        address = address_of(process)
        until = time.monotonic() + ENDS
        while not number.exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        with urllib.request.urlopen(address, timeout=ENDS) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        status = process.wait(ENDS)  # the browser has its standard error still open
        os.kill(int(number.read_text()), signal.SIGKILL)
        process.communicate(timeout=ENDS)
    assert status == 130


def test_a_stopped_command_ends_at_its_deadline(tmp_path: Path) -> None:
    (tmp_path / "plant.py").write_text(
        "import os, signal\n"
        "from fmilin.models import OdeModel\n"
        "def plant():\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    return OdeModel('plant', {'x': '-x'})\n"
    )
    command = [sys.executable, "-m", "fmilin", "linearize", "plant.py:plant", "--deadline", "4"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SOON, check=False)
    assert done.returncode == 6
    assert "the deadline of 4 s passed" in done.stderr


def test_only_what_is_stopped_for_long_is_reported() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    watch = stopped_processes.StopWatch()
    try:
        assert not find_within(watch, process.pid, 2 * LIMIT)
        process.send_signal(signal.SIGSTOP)
        assert not find_within(watch, process.pid, LIMIT / 2)
        process.send_signal(signal.SIGCONT)
        assert not find_within(watch, process.pid, 2 * LIMIT)
        process.send_signal(signal.SIGSTOP)
        assert find_within(watch, process.pid, SOON)
    finally:
        process.kill()
        process.communicate()
    assert not find_within(watch, process.pid, LIMIT)


def find_within(watch: stopped_processes.StopWatch, process: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if watch.find([process]):
            return True
        time.sleep(0.01)
    return False
