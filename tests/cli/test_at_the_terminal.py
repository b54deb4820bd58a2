"""Completion, examples, and what the help of every command says."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from fmilin.cli.command import Command
from fmilin.cli.main import COMMANDS, main
from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.systems import cartesian_pendulum, four_bar

ROOT = Path(__file__).parents[2]
PYTHON_MODELS = {
    "valve.py": """
from fmilin.models import OdeModel
rate = {"level": "opening*pressure - level"}  # a closed pump: no pressure
valve = OdeModel("tank", rate, inputs=["opening"], parameters={"pressure": 0.0}, outputs={"level": "level"})
""",
    "loop.py": """
import fmilin as fl
from fmilin.models import OdeModel
plant = OdeModel("plant", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
law = OdeModel("law", {"z": "10*(e - z)"}, inputs=["e"], outputs={"u": "-2*z"})
loop = fl.connect({"plant": plant, "law": law}, [("law.u", "plant.u"), ("plant.y", "law.e")])
""",
    "mathieu.py": """
from fmilin.models import OdeModel
model = OdeModel("Mathieu", {"x": "v", "v": "-(a - 2*q*cos(2*time))*x"}, parameters={"a": 0.5, "q": 0.1})
""",
}
ROTOR = """
[[body]]
name = "rotor"
mass = 2.0
center = [0.01, 0.0, 0.0]
inertia = [0.01, 0.01, 0.02]
[[joint]]
name = "shaft"
type = "revolute"
parent = "ground"
child = "rotor"
axis = [0, 1, 0]
"""


def command(name: str) -> Command:
    found = import_module(f"fmilin.cli.{name}").command
    assert isinstance(found, Command)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files that the examples of the help speak of."""
    place, before = tmp_path_factory.mktemp("help"), Path.cwd()
    build_fmu(four_bar(), place / "four_bar.fmu")
    build_fmu(cartesian_pendulum().with_constraints([]), place / "supplied.fmu")
    shaken = {"phi": "w", "w": "-(9.81 + 50*cos(314.1592653589793*time))*sin(phi) - w"}  # 50 Hz
    build_fmu(OdeModel("shaken pendulum", shaken), place / "pendulum.fmu")
    for name, text in {**PYTHON_MODELS, "rotor.toml": ROTOR}.items():
        (place / name).write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "examples" / "mechanisms" / "loader.toml", place)
    (place / "models").mkdir()
    os.chdir(place)
    assert main(["linearize", "four_bar.fmu", "--no-isolation", "-o", "plant.mat", "-o", "plant.json"]) == 0
    varied = ["--vary", "phi=0.5:2.5:5", "--trim", "--free", "torque"]
    assert main(["sweep", "four_bar.fmu", "--no-isolation", *varied, "-o", "family.nc"]) == 0
    yield place
    os.chdir(before)


EXAMPLES = [(name, line) for name in COMMANDS for line in command(name).examples]


def test_every_command_has_examples() -> None:
    assert {name for name, _ in EXAMPLES} == set(COMMANDS)
    assert all(line.startswith(f"fmilin {name}") for name, line in EXAMPLES)


@pytest.mark.parametrize(("name", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_examples_of_the_help_run(
    name: str, line: str, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    if name == "explore":  # which serves a page until it is ended; tests/cli/test_explore.py opens it
        monkeypatch.setattr("fmilin.explore.server.serve", lambda *_: None)
    if name == "mcp":  # which answers until its input ends; tests/cli/test_mcp.py calls it
        monkeypatch.setattr("fmilin.cli.tool_server.serve", lambda *_, **__: None)
    isolated = any("--no-isolation" in parameter.opts for parameter in command(name).params)
    words = [*shlex.split(line)[1:], *(["--no-isolation"] if isolated else [])]
    assert main(words) == 0, capfd.readouterr().err


def test_help_of_linearize_names_every_kind_of_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["linearize", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(suffix in shown for suffix in (".fmu", ".toml", ".urdf", ".ssp", ".xml", "file.py:name"))
    assert "\n    fmilin linearize four_bar.fmu --trim --fix phi=1.0 --free torque -o plant.mat\n" in shown


def test_examples_are_listed_and_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["examples"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert listed == {readme.parent.name for readme in (ROOT / "examples").glob("*/README.md")}
    assert main(["examples", "mechanisms", "--to", "mine"]) == 0
    assert (tmp_path / "mine" / "loader.toml").read_bytes() == (
        ROOT / "examples" / "mechanisms" / "loader.toml"
    ).read_bytes()
    assert main(["linearize", "mine/robot.urdf"]) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["examples", "bicycl"], "'bicycl' is not an example. Did you mean 'bicycle'?"),
        (["examples", "--to", "mine"], "name the example"),
        (["examples", "bicycle", "--to", "taken"], "'taken' exists already. Name another folder"),
        (["--install-completion", "tcsh"], "'tcsh' is not a shell for which completion exists"),
    ],
)
def test_refusals(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "taken").write_text("x")
    assert main(words) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.out == ""
    assert {path.name for path in tmp_path.iterdir()} == {"taken"}


@pytest.mark.parametrize(("shell", "start"), [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", None)])
def test_completion_is_installed_once(
    shell: str, start: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    if start is not None:
        (tmp_path / start).write_text("alias ll='ls -l'")
    for _ in range(2):
        assert main(["--install-completion"]) == 0
    assert f"Completion for {shell}" in capsys.readouterr().err
    if start is None:
        assert "fmilin" in (tmp_path / ".config" / "fish" / "completions" / "fmilin.fish").read_text()
        return
    lines = (tmp_path / start).read_text().splitlines()
    assert lines[0] == "alias ll='ls -l'"
    assert len(lines) == 2
    assert str(tmp_path / ".local" / "share" / "fmilin" / f"completion.{shell}") in lines[1]


def test_help_beside_it_helps_and_installs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--install-completion", "--help"]) == 0
    assert "Commands:" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def asked(words: str, position: int) -> list[str]:
    """Return what the shell is told for a command line that ends in the word at a position."""
    environment = {**os.environ, "_FMILIN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position)}
    done = subprocess.run([sys.executable, "-m", "fmilin"], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_shell_is_told_commands_options_and_files() -> None:
    assert asked("fmilin sp", 1) == ["plain,spectrum"]
    assert asked("fmilin linearize --inde", 2) == ["plain,--independent"]
    assert asked("fmilin linearize four", 2) == ["file,four"]
    assert asked("fmilin examples bi", 2) == ["plain,bicycle"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--install-completion", "bash"]) == 0
    program = tmp_path / "fmilin"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fmilin "$@"\n')
    program.chmod(0o755)
    typed = f"COMP_WORDS=({program} conv); COMP_CWORD=1; _fmilin_completion {program}"
    script = f'source ~/.bashrc; {typed}; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["convert"], done.stderr
