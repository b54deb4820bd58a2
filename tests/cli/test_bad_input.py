"""Whatever is wrong: the exit status of its kind, one paragraph, no traceback, an old file unharmed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.fmus.make import description_of, pack
from tests.shared import unmeasured

FOUR_BAR = ("linearize", "four_bar.fmu", "-o", "old.mat")
PENDULUM = ("linearize", "pendulum.fmu", "-o", "old.mat")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A result of yesterday, which no failure may touch."""
    path = tmp_path / "old.mat"
    path.write_bytes(b"yesterday")
    return path


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        # The command line, 2
        ((*FOUR_BAR, "--nonsense"), 2, "No such option"),
        ((*FOUR_BAR, "--coordinates", "polar"), 2, "'polar' is not one of"),
        ((*FOUR_BAR, "--time", "noon"), 2, "--time"),
        ((*FOUR_BAR, "--time", "nan"), 2, "must be finite"),
        ((*FOUR_BAR, "--inputs", "torqe"), 2, "Did you mean 'torque'?"),
        ((*FOUR_BAR, "--outputs", "coupler.x"), 2, "Did you mean 'coupler.y'"),
        ((*FOUR_BAR, "--outputs", "phi,,w"), 2, "a name is missing"),
        ((*FOUR_BAR, "--independent", "phy"), 2, "Did you mean 'phi'"),
        ((*FOUR_BAR, "--independent", "phi,x0,y0"), 2, "the model has 2"),
        ((*FOUR_BAR, "--set", "fi"), 2, "not of the form NAME=VALUE"),
        ((*FOUR_BAR, "--set", "phi=two"), 2, "'two' is not a number"),
        ((*FOUR_BAR, "--set", "phy=2"), 2, "Did you mean 'phi'"),
        ((*FOUR_BAR, "--no-constraints", "--constraint", "x0"), 2, "exclude each other"),
        ((*FOUR_BAR, "-o", "new.slx"), 2, "Known are .mat"),
        ((*FOUR_BAR, "-o", "absent/new.mat"), 2, "there is no folder"),
        ((*FOUR_BAR, "-o", "./old.mat"), 2, "same file twice"),
        (("linearize", "model.slx", "-o", "old.mat"), 2, "Supported are 'model.fmu'"),
        (("linearize", "fmilin.systems:four_bar(loops=1", "-o", "old.mat"), 2, "fmilin: "),
        (("linearize", "fmilin.systems:five_bars", "-o", "old.mat"), 2, "fmilin: "),
        (("linearize", "fmilin.systems:four_bar", "--set", "phy=1", "-o", "old.mat"), 2, "Did you mean 'phi'?"),
        (("linearize", "fmilin.systems:four_bar(loop=3)", "-o", "old.mat"), 2, "'loop' is not a keyword of"),
        ((*FOUR_BAR, "--reduce", "9"), 2, "--reduce 9: the linear model has order 2"),
        ((*FOUR_BAR, "--input", "u.csv"), 2, "--input requires --snapshots"),
        (("linearize", "-o", "old.mat"), 2, "Missing argument 'MODEL'"),
        (("convert", "old.mat"), 2, "Missing option"),
        (("build", "four_bar.fmu", "-o", "new.fmu"), 2, "an FMU already"),
        (("build", "fmilin.systems:four_bar", "-o", "new.zip"), 2, "has to end in .fmu"),
        (("build", "fmilin.systems:four_bar", "-o", "new.fmu", "--fmi", "1.0"), 2, "'1.0'"),
        (("simulate_all",), 2, "No such command 'simulate_all'"),
        # The model, 3
        (("linearize", "absent.fmu", "-o", "old.mat"), 3, "There is no file 'absent.fmu'"),
        (("linearize", "absent.py:crane", "-o", "old.mat"), 3, "absent.py"),
        (("info", "absent.fmu"), 3, "There is no file 'absent.fmu'"),
        (("convert", "absent.mat", "-o", "new.json"), 3, "absent.mat"),
        (("convert", "old.mat", "-o", "new.json"), 3, "is not a linear model that fmilin reads (MATLAB 5 to 7"),
        # The constraints, 4
        ((*PENDULUM, "--constraint", "x^2 + z^2 - L^2"), 4, "'z' is not a variable of the model"),
        ((*PENDULUM, "--constraint", "x^2 + y^2 - 2.1^2"), 4, "-0.41 instead of 0"),
        ((*PENDULUM, "--constraint", "x +* y"), 4, "not a complete arithmetic expression"),
        ((*PENDULUM, "--constraint", "__import__('os')"), 4, "is not part of arithmetic"),
        ((*PENDULUM, "--constraint", "x"), 4, "fmilin: "),
        ((*PENDULUM, "--constraint", "L - 2"), 4, "contains only numbers and parameters"),
        ((*PENDULUM, "--constraint", "0"), 4, "contains only numbers and parameters"),
        ((*PENDULUM, "--constraints", "absent.toml"), 4, "absent.toml"),
        # The numbers, 5
        ((*FOUR_BAR, "--independent", "vx0,vy0"), 5, "(condition number"),
        (("linearize", "fmilin.systems:four_bar(singular=True)", "-o", "old.mat"), 5, "fmilin: "),
    ],
    ids=lambda value: " ".join(map(str, value[1:])) if isinstance(value, tuple) else None,
)
def test_one_paragraph(run: Run, old: Path, tmp_path: Path, arguments: tuple[str, ...], status: int, said: str) -> None:
    done = run(*arguments)
    assert done.status == status, done.err
    assert done.is_one_paragraph(), done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert old.read_bytes() == b"yesterday"
    assert list(tmp_path.iterdir()) == [old]


XML = description_of("nan_derivative")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (None, "the zip archive is missing or incomplete"),
        ({"readme.txt": "hello"}, "contains no modelDescription.xml"),
        ({"modelDescription.xml": XML[:300]}, "malformed"),
        ({"modelDescription.xml": XML.replace('fmiVersion="2.0"', 'fmiVersion="1.0"')}, "does not name its library"),
        ({"modelDescription.xml": XML.replace("ModelExchange", "CoSimulation")}, "no library for this platform"),
        ({"modelDescription.xml": XML, "binaries/darwin64/nan_derivative.dll": b"MZ"}, "inside are: darwin64"),
        ({"modelDescription.xml": XML, "binaries/linux64/nan_derivative.so": b"not ELF"}, "fmilin: "),
    ],
)
def test_a_file_that_is_no_usable_fmu(
    run: Run, old: Path, tmp_path: Path, members: dict[str, str | bytes] | None, said: str
) -> None:
    path = tmp_path / "model.fmu"
    if members is None:
        path.write_bytes(b"no archive")
    else:
        pack(path, members)
    done = run("linearize", path, "-o", "old.mat")
    assert done.status == 3
    assert done.is_one_paragraph(), done.err
    assert said in done.err
    assert old.read_bytes() == b"yesterday"


@pytest.mark.parametrize(
    ("name", "options", "status", "said"),
    [
        ("refuses_initialization", (), 3, "fmilin: "),
        ("nan_derivative", ("--set", "x=-1"), 5, "NaN for the derivative of the state 'v'"),
        ("discards", ("--set", "x=11"), 5, "x = 11 is out of range"),
        ("terminates", (), 3, "the tank is empty"),
    ],
)
def test_an_fmu_that_misbehaves(
    run: Run, old: Path, zoo: Callable[[str], Path], name: str, options: tuple[str, ...], status: int, said: str
) -> None:
    done = run("linearize", zoo(name), "-o", "old.mat", *options)
    assert done.status == status, done.err
    assert said in done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    assert old.read_bytes() == b"yesterday"


def test_debug_shows_the_traceback(run: Run) -> None:
    done = run("linearize", "absent.fmu", "--debug")
    assert done.status == 3
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("fmilin: There is no file")


def test_the_outputs_are_checked_before_the_model_is_touched(run: Run) -> None:
    done = run("linearize", "absent.fmu", "-o", "new.slx")
    assert done.status == 2


def test_a_truncated_fmu(run: Run, fmus: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.fmu").write_bytes((fmus / "four_bar.fmu").read_bytes()[:5000])
    assert not zipfile.is_zipfile(tmp_path / "cut.fmu")
    assert run("linearize", tmp_path / "cut.fmu").status == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of processes")
@pytest.mark.parametrize("blocks", [0, 1, 16])
def test_a_limit_on_the_size_of_files_while_building(blocks: int, tmp_path: Path) -> None:
    """No temporary folder that takes a file, no room for the sources, no room for the compiler."""
    import resource

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * blocks, 1024 * blocks))

    done = subprocess.run(
        [sys.executable, "-m", "fmilin", "build", "fmilin.systems:cartesian_pendulum", "-o", "new.fmu"],
        cwd=tmp_path,
        env={**unmeasured(), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        preexec_fn=limited,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode in (2, 3), done.stderr
    assert done.stderr.startswith("fmilin: ")
    assert done.stderr.count("\n") == 1
    assert "bug" not in done.stderr
    assert not (tmp_path / "new.fmu").exists()
