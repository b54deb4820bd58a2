"""Ctrl-C while something takes long: what there is comes out whole, with status 130; a second one ends at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.verification.relaxation import excitations
from tests.shared import unmeasured

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows interrupts in another way")

LATER = "fmilin: ending with what there is; Ctrl-C again ends at once.\n"
MODEL = """
import os, signal
import numpy as np
from fmilin.models import FunctionModel

asked, interrupts = 0, os.environ.get("FMILIN_INTERRUPTS", "").split()

def rates(t, x, u):  # two points on circles of radius one, pushed sideways; the person at the terminal sits in here
    global asked
    asked += 1
    for _ in range(interrupts.count(str(asked))):
        os.kill(os.getpid(), signal.SIGINT)
    return np.concatenate([falling(*x[:4], u[0]), falling(*x[4:], 2*u[0])])

def falling(x, y, vx, vy, force):
    pull = (vx*vx + vy*vy - 9.81*y + force*x)/(x*x + y*y)
    return [vx, vy, force - pull*x, -9.81 - pull*y]

start = {"x": 0.0, "y": -1.0, "vx": 0.0, "vy": 0.0, "X": 0.0, "Y": -1.0, "VX": 0.0, "VY": 0.0}
model = FunctionModel("pendulums", start, rates, inputs=["F"])
"""
CONSTRAINTS = ["--constraint", "x^2 + y^2 - 1", "--constraint", "X^2 + Y^2 - 1"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "circle.py").write_text(MODEL, encoding="utf-8")
    return tmp_path


def fmilin(place: Path, *arguments: str, interrupted: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program; the model interrupts it at these visits."""
    return subprocess.run(
        [sys.executable, "-m", "fmilin", *arguments],
        cwd=place,
        env=unmeasured() | {"FMILIN_INTERRUPTS": interrupted},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_constraints_that_were_found_are_verified_and_written(place: Path) -> None:
    done = fmilin(place, "discover", "circle.py:model", "-o", "found.toml", interrupted="600")
    assert done.returncode == 130, done.stderr
    assert LATER in done.stderr
    assert done.stderr.endswith("and verified before; there may be more.\n")
    assert 'expression = "x^2 + y^2 - 1"' in (place / "found.toml").read_text()
    assert "X^2" not in (place / "found.toml").read_text()


def test_channels_that_were_compared_are_shown_also_in_a_report(place: Path) -> None:
    model = fl.load(f"{place / 'circle.py'}:model", constraints=CONSTRAINTS[1::2])
    linear = fl.linearize(model)
    linear.save(place / "linear.json")
    wanted = 1 + len(excitations(linear, 1.0))  # the values at the point are a channel, too
    against = ["circle.py:model", "linear.json", *CONSTRAINTS]
    done = fmilin(place, "verify", *against, "--json", interrupted="300")
    assert done.returncode == 130, done.stderr
    part = json.loads(done.stdout)
    assert 1 < len(part["channels"]) < wanted
    left = wanted - len(part["channels"])
    assert done.stderr.endswith(f"The comparison was interrupted before these channels: {left}.\n")
    asked = ["report", "linear.json", "--against", "circle.py:model", *CONSTRAINTS, "-o", "page.html"]
    assert fmilin(place, *asked, interrupted="300").returncode == 130
    assert f"The comparison was interrupted before these channels: {left}." in (place / "page.html").read_text()


def test_a_motion_ends_where_it_was(place: Path) -> None:
    asked = ["simulate", "circle.py:model", *CONSTRAINTS, "--set", "x=0.6", "--stop-time", "10", "-o", "motion.csv"]
    # The search for breaks in time comes first and takes about 4800 evaluations; with the integration there are 7800.
    done = fmilin(place, *asked, interrupted="6300")
    assert done.returncode == 130, done.stderr
    last = (place / "motion.csv").read_text().splitlines()[-1].split(",")[0]
    assert 0 < float(last) < 10
    assert done.stderr.endswith(f"The simulation was interrupted at t = {float(last):.9g} s.\n")


def test_a_second_interrupt_ends_at_once(place: Path) -> None:
    asked = ["simulate", "circle.py:model", *CONSTRAINTS, "--set", "x=0.6", "--stop-time", "10", "-o", "motion.csv"]
    done = fmilin(place, *asked, interrupted="300 300")
    assert (done.returncode, done.stderr) == (130, f"{LATER}fmilin: interrupted.\n")
    assert not (place / "motion.csv").exists()


@pytest.mark.parametrize(("interrupts", "out"), [(1, "half of it\n"), (2, "")])
def test_work_that_is_asked_once_delivers_what_there_is(interrupts: int, out: str, tmp_path: Path) -> None:
    mark = tmp_path / "begun"
    source = f"""
    import time
    from fmilin.cli.job_runner import StoppedEarlyError, work
    from fmilin.support.interrupts import stoppable

    def job(runner):
        with stoppable() as stop:
            open({str(mark)!r}, "w").write("1")
            while not stop():
                time.sleep(0.01)
        if {interrupts} == 2:
            open({str(mark)!r}, "w").write("2")
            time.sleep(50)
        runner.results.write("half of it\\n")
        raise StoppedEarlyError("half is missing.")

    raise SystemExit(work(job, debug=False))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - behind &
    )
    for number in range(1, interrupts + 1):
        while not (mark.exists() and mark.read_text() == str(number)):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=30)
    assert (process.returncode, printed) == (130, out)
    assert said == LATER + ("fmilin: half is missing.\n" if interrupts == 1 else "fmilin: interrupted.\n")
