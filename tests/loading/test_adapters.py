"""Adapters as they are really found: a distribution on the path, its entry point, its file."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters import installed_adapters
from fmilin.errors import ModelError, UsageError
from fmilin.testing import check_model
from tests.command_line import main

README = (Path(__file__).parents[2] / "adapters" / "README.md").read_text(encoding="utf-8")


def install(folder: Path, name: str, code: str, *, entry: str = "Adapter", suffixes: tuple[str, ...] = ()) -> None:
    """Lay a distribution down as an installer does."""
    (folder / f"{name}_adapter.py").write_text(code)
    info = folder / f"fmilin_{name}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fmilin-{name}\nVersion: 0.1\n")
    registered = "".join(f"{name}{suffix} = {name}_adapter:{entry}\n" for suffix in suffixes)
    text = f"[fmilin.adapters]\n{name} = {name}_adapter:{entry}\n[fmilin.suffixes]\n{registered}"
    (info / "entry_points.txt").write_text(text)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in [n for n in sys.modules if n.endswith("_adapter")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


@pytest.fixture
def swing(site: Path) -> Path:
    """The adapter of the README, installed."""
    code = next(c for c in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "class SwingAdapter" in c)
    assert len([line for line in code.splitlines() if line.strip()]) <= 50
    install(site, "swing", code, entry="SwingAdapter")
    (site / "playground.swing").write_text(json.dumps({"length": 2.0, "mass": 40.0}))
    return site


def test_the_adapter_of_the_readme_swings_as_a_pendulum_does(swing: Path) -> None:
    with fl.load("playground.swing") as model:
        lin = fl.linearize(model)
        check_model(model)
    assert lin.eigenvalues() == pytest.approx([-1j * np.sqrt(9.81 / 2), 1j * np.sqrt(9.81 / 2)], rel=1e-9)
    assert lin.point.outputs["tension"] == pytest.approx(40 * 9.81 / 2)


def test_commands_take_the_file_and_the_name_before_it(swing: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["linearize", "swing:playground.swing", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["model"]["tool"] == "a swing engine 1.0"
    assert main(["linearize", "playground.swing", "--set", "x=0.3", "--trim", "-o", "swing.mat"]) == 0
    assert main(["adapters"]) == 0
    out = capfd.readouterr().out
    assert "fmilin-swing 0.1" in out
    assert ".swing" in out
    assert main(["adapters", "--json"]) == 0
    assert "swing" in {row["name"] for row in json.loads(capfd.readouterr().out)["adapters"]}


def test_what_an_adapter_refuses_is_one_paragraph(swing: Path) -> None:
    Path("broken.swing").write_text("{")
    with pytest.raises(ModelError, match=r"'broken\.swing' is no swing: .* Write it as"):
        fl.load("broken.swing")
    with pytest.raises(ModelError, match=r"There is no file 'gone\.swing'"):
        fl.load("swing:gone.swing")
    Path("a.xml").write_text("")
    with pytest.raises(UsageError, match=r"The adapter 'swing' reads '\.swing', not '\.xml'"):
        fl.load("swing:a.xml")


def test_constraints_may_be_replaced(swing: Path) -> None:
    with fl.load("playground.swing", constraints=["x^2 + y^2 - 4"]) as model:
        assert len(fl.linearize(model).states) == 2


TAKES = """
import fmilin as fl
from fmilin.adapters import Adapter as Base
class Adapter(Base):
    suffixes = ('.takes',)
    options = ('keyframe',)
    def load(self, path):
        return fl.load('fmilin.systems:cartesian_pendulum')
    def load_as(self, path, options):
        return fl.load(f"fmilin.systems:cartesian_pendulum(length={options.get('keyframe', 1.0)})")
"""


def test_an_adapter_is_asked_for_the_options_that_it_knows(site: Path) -> None:
    install(site, "some", TAKES)
    Path("a.takes").write_text("")
    assert fl.load("some:a.takes", options={"keyframe": 2.0}).start.states[1] == -2.0
    with pytest.raises(
        UsageError, match=r"The adapter 'some' does not have the option 'floating_base' \('a\.takes'\)\. It knows"
    ):
        fl.load("some:a.takes", options={"floating_base": True})


def test_an_adapter_with_registered_suffixes_is_imported_for_its_files_only(site: Path) -> None:
    install(site, "some", TAKES, suffixes=(".takes",))
    Path("other.swing").write_text("{}")
    with pytest.raises(UsageError, match="is not a model that fmilin can read"):
        fl.load("other.swing")
    assert "some_adapter" not in sys.modules
    Path("a.takes").write_text("")
    assert fl.load("a.takes").start.states[1] == -1.0
    assert "some_adapter" in sys.modules


def test_registered_suffixes_are_those_of_the_adapter() -> None:
    for installed in installed_adapters():
        if installed.registered_suffixes:
            assert set(installed.registered_suffixes) == set(installed.adapter().suffixes), installed.name


def test_a_file_that_an_adapter_would_read_is_missing(site: Path) -> None:
    install(site, "some", TAKES)
    with pytest.raises(ModelError, match=r"There is no file 'b\.takes'"):
        fl.load("b.takes")


NAMES = """
import fmilin as fl
from fmilin.adapters import Adapter as Base
class Adapter(Base):
    suffixes = ('.mo',)
    def load(self, path):
        return fl.load('fmilin.systems:cartesian_pendulum')
    def load_member(self, path, member, options):
        return fl.load(f"fmilin.systems:cartesian_pendulum(length={len(member)})")
    def load_named(self, name, options):
        return fl.load(f"fmilin.systems:cartesian_pendulum(length={len(str(name))})")
"""


def test_a_file_may_hold_several_models_and_an_engine_may_know_names(site: Path) -> None:
    install(site, "some", NAMES)
    Path("crane.mo").write_text("end crane;")
    assert fl.load("some:crane.mo:P.AB").start.states[1] == -4.0
    assert fl.load("some:Library.Crane").start.states[1] == -13.0
    with pytest.raises(ModelError, match=r"There is no file 'b\.mo'"):
        fl.load("some:b.mo:Model")


def test_libraries_and_members_are_refused_where_there_are_none(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "some", NAMES.replace("load_member", "other").replace("load_named", "another"))
    Path("crane.mo").write_text("end crane;")
    with pytest.raises(UsageError, match=r"contains a single model: leave out ':P'"):
        fl.load("some:crane.mo:P")
    with pytest.raises(ModelError, match=r"There is no file 'Library\.Crane'"):
        fl.load("some:Library.Crane")
    with pytest.raises(UsageError, match="not a Modelica file: it needs no libraries"):
        fl.load("fmilin.systems:cartesian_pendulum", options={"library": ["msl"]})
    monkeypatch.setattr("fmilin.adapters.registry.installed_adapters", list)
    with pytest.raises(UsageError, match=r"may belong to Modelica: pip install fmilin-modelica"):
        fl.load("crane.mo:Crane")


BROKEN = "raise ImportError('no engine here')"
FAILS = """
from fmilin.adapters import Adapter as Base
class Adapter(Base):
    suffixes = ('.fails',)
    def load(self, path):
        return {}[path.name]
"""
RETURNS = FAILS.replace("{}[path.name]", "path")
NONE = "class Adapter: pass"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (BROKEN, r"The adapter 'some' \(fmilin-some 0\.1\) cannot be loaded: ImportError: no engine here\."),
        (NONE, r"is a Adapter, not a fmilin\.adapters\.Adapter"),
        (FAILS, r"The adapter 'some' failed on 'a\.fails': KeyError: 'a\.fails'\. .* a bug of fmilin-some 0\.1"),
        (RETURNS, r"returned a PosixPath for 'a\.fails', not a Model"),
    ],
)
def test_a_bad_adapter_is_named(site: Path, code: str, message: str) -> None:
    install(site, "some", code)
    Path("a.fails").write_text("")
    with pytest.raises(ModelError, match=message):
        fl.load("some:a.fails")


def test_a_broken_adapter_is_listed_with_its_problem(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    install(site, "some", BROKEN)
    assert main(["adapters"]) == 0
    assert "no engine here" in capfd.readouterr().out


def test_without_any_adapter_those_that_exist_are_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fmilin.adapters.registry.installed_adapters", lambda: [])
    assert main(["adapters"]) == 0
    out = capfd.readouterr().out
    assert "For MuJoCo (.xml, .mjcf): pip install fmilin-mujoco" in out
    assert "For Pinocchio (.urdf): pip install fmilin-pinocchio" in out


def test_two_adapters_for_one_file_ask_for_a_choice(site: Path) -> None:
    install(site, "one", FAILS)
    install(site, "two", FAILS)
    Path("a.fails").write_text("")
    with pytest.raises(
        UsageError, match=r"'one' and 'two' both read 'a\.fails': name one of them, as in 'one:a\.fails'"
    ):
        fl.load("a.fails")


def test_an_adapter_that_is_missing_is_suggested(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmilin.adapters.registry.installed_adapters", list)
    Path("scene.xml").write_text("<mujoco model='scene'/>")
    with pytest.raises(UsageError, match=r"'scene\.xml' may belong to MuJoCo: pip install fmilin-mujoco"):
        fl.load("scene.xml")
    with pytest.raises(UsageError, match=r"The adapter 'mujoco' is not installed: pip install fmilin-mujoco"):
        fl.load("mujoco:scene.xml")
    Path("other.xml").write_text("<other/>")
    with pytest.raises(UsageError, match=r"not a model that fmilin can read"):
        fl.load("other.xml")


def test_no_adapter_is_imported_before_a_file_asks_for_it(site: Path) -> None:
    install(site, "some", BROKEN)
    assert "some" in {adapter.name for adapter in installed_adapters()}
    assert fl.linearize(fl.load("fmilin.systems:cartesian_pendulum")).A.shape == (2, 2)
    assert "some_adapter" not in sys.modules


def test_an_unknown_adapter_before_a_file_that_exists(tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").write_text("<robot/>")
    with pytest.raises(
        UsageError, match=r"There is no adapter 'drake' for '.*robot\.urdf'\. .*installed_adapters\(\) lists"
    ):
        fl.load(f"drake:{tmp_path / 'robot.urdf'}")


def test_an_engine_that_is_missing_is_named(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    install(site, "some", FAILS.replace("suffixes =", "package = 'no-such-engine'\n    suffixes ="))
    assert main(["adapters"]) == 0
    assert (
        "The required package 'no-such-engine' is not installed: pip install no-such-engine" in capfd.readouterr().out
    )
