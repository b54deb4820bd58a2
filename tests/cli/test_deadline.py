"""``--deadline``: the whole command ends with status 6, whatever it is doing, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from fmilin.cli.duration import describe_stack, read_deadline
from tests.cli.conftest import Outcome, shell

MODELS = """
    import pathlib, signal, time
    from fmilin.models import FunctionModel, OdeModel

    def quick():
        return OdeModel("quick", {"x": "-2*x"}, start={"x": 0.0})

    def slow():
        pathlib.Path("begun").touch()
        time.sleep(60)

    def deaf():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        time.sleep(60)

    def rates(t, x, u):
        time.sleep(0.05)
        return [-u[0] * x[0]]

    def later():
        return FunctionModel("later", {"x": 1.0}, rates, inputs=["p"])
"""


def ended(command: Sequence[object], seconds: int, words: str, folder: Path, **environment: str) -> Outcome:
    """Run a command with a deadline; with a longer one where the machine is so busy that it did not come that far."""
    for deadline in (seconds, 5 * seconds, 15 * seconds):
        done = shell([*command, "--deadline", deadline], folder, **environment)
        if words in done.err:
            break
        shutil.rmtree(folder / "family.json.sweep", ignore_errors=True)
    return done


@pytest.fixture
def models(tmp_path: Path) -> Path:
    (tmp_path / "models.py").write_text(textwrap.dedent(MODELS), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("deadline", [["--deadline", "60"], ["--deadline=60"]])
def test_a_command_that_is_in_time_says_what_it_says_without(models: Path, deadline: list[str]) -> None:
    command = ["linearize", "models.py:quick", "--json"]
    assert shell([*command, *deadline], models) == shell(command, models)


@pytest.mark.parametrize("name", ["slow", "deaf"])
def test_a_command_that_is_not_ends(models: Path, name: str) -> None:
    done = shell(["linearize", f"models.py:{name}", "-o", "m.json", "--deadline", "5"], models)
    assert (done.status, done.out) == (6, "")
    assert "fmilin: the deadline of 5 s passed while " in done.err
    assert done.err.endswith("Give more time with --deadline, or reduce the request.\n")
    assert not (models / "m.json").exists()
    assert not _of(models)


def test_what_was_going_on_is_told_by_the_innermost_module_that_does_something() -> None:
    command = SimpleNamespace(f_globals={"__name__": "fmilin.cli.linearize"}, f_back=None)
    loading = SimpleNamespace(f_globals={"__name__": "fmilin.loading.load"}, f_back=command)
    library = SimpleNamespace(f_globals={"__name__": "tomllib"}, f_back=loading)
    assert describe_stack(library) == "reading the model"  # type: ignore[arg-type]
    assert describe_stack(command) == "the command was being read"  # type: ignore[arg-type]


def test_an_fmu_that_hangs_ends_with_it(zoo: Callable[[str], Path], tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = "passed while using the FMU."
    done = ended(["linearize", zoo("hangs")], 3, words, tmp_path, TMPDIR=str(scratch))
    assert done.status == 6
    assert words in done.err
    assert not list(scratch.iterdir())
    assert not _of(tmp_path)


def test_what_a_sweep_has_reached_is_kept(models: Path) -> None:
    sweep = ["sweep", "models.py:later", "--vary", "p=1:2:1000", "-o", "family.json"]
    words = "points of 'family.json' are stored: continue with --resume."
    done = ended(sweep, 6, words, models)
    assert done.status == 6
    assert words in done.err
    assert " s passed while" in done.err


def test_an_interrupt_reaches_the_command(models: Path) -> None:
    command = [sys.executable, "-m", "fmilin", "linearize", "models.py:slow", "--deadline", "50"]
    with subprocess.Popen(command, cwd=models, stderr=subprocess.PIPE, text=True) as process:
        while not (models / "begun").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "fmilin: interrupted.\n")


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan", "soon"])
def test_what_is_no_deadline_is_refused(models: Path, seconds: str) -> None:
    done = shell(["linearize", "models.py:quick", "--deadline", seconds], models)
    assert done.status == 2
    assert "--deadline" in done.err
    assert read_deadline(["--deadline", seconds]) is None


def _of(folder: Path) -> Mapping[int, str]:
    """Return the processes that still work in a folder."""
    here = {}
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and Path(process.cwd()) == folder:
                here[process.pid] = " ".join(process.cmdline())
        except (psutil.Error, OSError):
            continue
    return here


def test_a_deadline_beyond_the_range_of_timers_is_the_longest_one() -> None:
    for text in ("9" * 30, "1e300"):
        seconds = read_deadline(["trim", "model.fmu", "--deadline", text])
        assert seconds is not None
        assert 1e7 < seconds < 1e9
