"""FMUs for the command line, and two ways to run it: in this process, and as a person does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import Model
from fmilin.fmi.write import build_fmu
from fmilin.systems import cartesian_pendulum, four_bar
from tests.command_line import main
from tests.families.plants import oscillator
from tests.shared import shared


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    def is_one_paragraph(self) -> bool:
        """Nothing but one line on standard error that begins with the program's name."""
        return self.out == "" and self.err.startswith("fmilin: ") and self.err.count("\n") == 1


Run = Callable[..., Outcome]


def _exported(make: Callable[[], Model], path: Path) -> None:
    build_fmu(make(), path)


@pytest.fixture(scope="session")
def fmus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four_bar.fmu, and pendulum.fmu, which says nothing about its constraint."""
    folder = tmp_path_factory.mktemp("fmus")
    makers: dict[str, Callable[[], Model]] = {
        "four_bar": four_bar,
        "pendulum": lambda: cartesian_pendulum(length=2.0).with_constraints([]),
    }
    for name, make in makers.items():
        built = shared(f"native-{name}.fmu", partial(_exported, make))
        shutil.copyfile(built, folder / f"{name}.fmu")
    return folder


@pytest.fixture(scope="session")
def result_files() -> Path:
    """A folder with files of a linear model (plant.mat), of a family (line.nc) and of one on a grid (grid.json)."""
    makers: dict[str, Callable[[Path], None]] = {
        "plant.mat": lambda path: fl.linearize(cartesian_pendulum()).save(path),
        "line.nc": lambda path: fl.sweep(oscillator(), {"k": np.linspace(1, 9, 5)}).save(path),
        "grid.json": lambda path: fl.sweep(oscillator(), {"k": [1.0, 2.0, 3.0], "d": [0.1, 0.2]}).save(path),
    }
    for name, make in makers.items():
        shared(name, make)
    return shared("plant.mat", makers["plant.mat"]).parent


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], fmus: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in this process, in an empty working directory; ``four_bar.fmu`` and ``pendulum.fmu`` are known."""
    monkeypatch.chdir(tmp_path)

    def run_here(*arguments: object) -> Outcome:
        given = [str(fmus / a) if a in ("four_bar.fmu", "pendulum.fmu") else str(a) for a in arguments]
        if given[0] == "linearize":
            given.append("--no-isolation")
        capfd.readouterr()
        status = main(given)
        out, err = capfd.readouterr()
        return Outcome(status, out, err)

    return run_here


def shell(arguments: Sequence[object], folder: Path, **environment: str) -> Outcome:
    """Run a command as a person does: in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "fmilin", *map(str, arguments)],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))
