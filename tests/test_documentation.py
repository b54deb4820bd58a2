"""What the documentation says is run: the README's code, and the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
import shutil
from pathlib import Path

import control
import pytest

import fmilin
from fmilin.cli.main import main
from fmilin.fmi.write import build_fmu
from fmilin.systems import cartesian_pendulum, four_bar
from tests.fmus.stepped.make import Kind
from tests.fmus.stepped.make import build as build_stepped

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODULES = sorted(m.name for m in pkgutil.walk_packages(fmilin.__path__, "fmilin.") if m.name != "fmilin.__main__")


@pytest.fixture
def readers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the README speaks of."""
    build_fmu(four_bar(), tmp_path / "four_bar.fmu")
    build_fmu(cartesian_pendulum().with_constraints([]), tmp_path / "pendulum.fmu")
    shutil.copy(tmp_path / "pendulum.fmu", tmp_path / "supplied.fmu")
    (tmp_path / "my_model.py").write_text("from fmilin.systems import cartesian_pendulum as crane\n")
    shutil.copy(ROOT / "examples" / "mechanisms" / "loader.toml", tmp_path)
    for name, plant, kind in (("plant_cs", "motor", Kind(hidden=True)), ("controller", "controller", Kind())):
        shutil.copy(build_stepped(plant, tmp_path / plant, kind), tmp_path / f"{name}.fmu")
    gain = control.ss([], [], [], [[-2.0]], inputs=["angle"], outputs=["torque"])
    wires = [("plant.phi", "gain.angle"), ("gain.torque", "plant.torque")]
    fmilin.export.ssp(tmp_path / "system.ssp", {"plant": tmp_path / "four_bar.fmu", "gain": gain}, wires)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_in_the_readme(readers_folder: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert (readers_folder / "plant.mat").exists()


def test_commands_in_the_readme(readers_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```\n(.*?)```", README, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("fmilin ")]
    assert len(lines) >= 8
    for line in lines:
        command = shlex.split(line, comments=True)[1:]
        if command[0] == "linearize":
            command.append("--no-isolation")
        assert main(command) == 0, (line, capfd.readouterr().err)
    assert (readers_folder / "plant.npz").exists()
    assert (readers_folder / "crane.fmu").exists()


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
