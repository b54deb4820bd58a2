"""``fmilin trim``."""

from __future__ import annotations

import json
import re
import tomllib
from math import pi, sqrt
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run, shell

UPPER = 2.234331019017586
FOUR_BAR = "fmilin.systems:four_bar"
PENDULUM = "fmilin.systems:cartesian_pendulum"


def test_the_equilibrium_of_an_fmu(run: Run) -> None:
    done = run("trim", "four_bar.fmu", "--guess", "phi=2.0", "--no-isolation")
    assert done.status == 0, done.err
    assert done.err == ""
    for text in ("Found        an equilibrium", "2.234331", "torque = 0 N.m", "No warnings."):
        assert text in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_equilibrium_of_an_fmu_as_a_person_asks_for_it(fmus: Path, tmp_path: Path) -> None:
    done = shell(["trim", fmus / "four_bar.fmu", "--fix", "phi=2", "--free", "torque", "--json"], tmp_path)
    assert done.status == 0, done.err
    point = json.loads(done.out)
    assert point["states"]["phi"] == 2.0
    torque = 19.62 * np.cos(2.0) - 25 * (2 * np.cos(1.0) - sqrt(2)) * np.sin(1.0)
    assert point["inputs"]["torque"] == pytest.approx(torque, rel=1e-9)
    assert max(map(abs, point["rates"].values())) < 1e-9


def test_parameters_of_an_fmu_are_set_when_it_is_loaded(run: Run) -> None:
    rod = ["--constraint", "x^2 + y^2 - L^2", "--no-isolation"]
    done = run("trim", "pendulum.fmu", "--fix", "L=3", "--guess", "y=2.5", "--json", *rod)
    assert done.status == 0, done.err
    assert json.loads(done.out)["states"]["y"] == pytest.approx(3.0, rel=1e-12)
    assert json.loads(done.out)["parameters"] == {"L": 3.0}
    refused = run("trim", "pendulum.fmu", "--free", "L", *rod)
    assert refused.status == 2
    assert "its parameters cannot be changed after loading" in refused.err


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_the_point_is_saved_with_all_digits(run: Run, suffix: str) -> None:
    done = run("trim", FOUR_BAR, "--guess", "phi=2", "-o", f"point.{suffix}")
    assert (done.status, done.out) == (0, "")
    assert done.err == f"point.{suffix}: an equilibrium\n"
    text = Path(f"point.{suffix}").read_text(encoding="utf-8")
    point = json.loads(text) if suffix == "json" else tomllib.loads(text)
    assert point["states"]["phi"] == pytest.approx(UPPER, abs=1e-14)
    assert point["model"]["name"] == "four_bar"
    assert set(point["rates"]) == set(point["states"])


def test_several_guesses_list_each_equilibrium_once(run: Run) -> None:
    guesses = ["--guess", "y=0.9", "--guess", "y=0.8,x=0.1", "--guess", "x=0.2"]
    done = run("trim", PENDULUM, *guesses, "--json")
    assert [p["states"]["y"] for p in json.loads(done.out)] == [1.0, -1.0]
    table = run("trim", PENDULUM, *guesses).out
    assert "1 of 2" in table
    assert "2 of 2" in table
    refused = run("trim", PENDULUM, *guesses, "-o", "point.toml")
    assert refused.status == 2
    assert "-o saves one point" in refused.err


def test_a_steady_turn(run: Run) -> None:
    disk = "fmilin.systems:rolling_disk(speed=2.0)"
    turn = ["--steady", "q1,q3,q4,q5", "--fix", "q2=0.2", "--fix", "u2=-1.98", "--guess", "u3=0.1"]
    done = run("trim", disk, *turn)
    assert done.status == 0, done.err
    for text in ("a steady motion of q1, q3, q4, q5, u4, u6", "q3 by 1, and with it u6 by 1.98", "one of a family"):
        assert text in done.out
    lines = {line.split()[0]: line for line in done.out.splitlines() if line.startswith(("q", "u"))}
    assert lines["q1"].endswith("constant rate")
    assert lines["q4"].endswith("varying rate")
    assert lines["u6"].endswith("varying rate, follows")
    assert lines["u1"].endswith("rad/s2")


def test_set_holds_inputs_and_says_where_states_start(run: Run) -> None:
    done = run("trim", PENDULUM, "--set", "x=-1.2", "--set", "y=1.6", "--set", "F=9.81", "--set", "L=2", "--json")
    point = json.loads(done.out)
    assert point["states"]["x"] == pytest.approx(-sqrt(2.0), rel=1e-12)  # leaning against the force, upright
    assert point["inputs"] == {"F": 9.81}
    assert point["parameters"] == {"L": 2.0}
    free = json.loads(run("trim", PENDULUM, "--set", "F=1", "--free", "F", "--fix", "x=0.6", "--json").out)
    assert free["inputs"]["F"] == pytest.approx(9.81 * 0.75, rel=1e-12)


def test_linearize_takes_the_same_wishes(run: Run) -> None:
    """One command in place of trim, a file and --point."""
    wishes = ("--fix", "x=0.6", "--set", "F=1", "--free", "F")
    run("trim", PENDULUM, *wishes, "-o", "point.json")
    there = json.loads(run("linearize", PENDULUM, "--point", "point.json", "--json").out)
    found = json.loads(run("linearize", PENDULUM, "--trim", *wishes, "--json").out)
    assert found["point"]["inputs"]["F"] == pytest.approx(9.81 * 0.75, rel=1e-12)
    np.testing.assert_allclose(found["A"], there["A"], rtol=1e-12, atol=1e-12)
    upright = run("linearize", PENDULUM, "--trim", "--guess", "y=1,x=0.01", "--outputs", "ax", "--json")
    guessed = json.loads(upright.out)
    assert guessed["point"]["states"]["y"] == pytest.approx(1.0)
    for more, words in ((["--free", "F"], "add --trim"), (["--trim", "--guess", "x=1", "--guess", "x=-1"], "once")):
        refused = run("linearize", PENDULUM, *more)
        assert (refused.status, refused.is_one_paragraph()) == (2, True)
        assert words in refused.err


def test_bounds(run: Run) -> None:
    point = json.loads(run("trim", PENDULUM, "--set", "y=0.4", "--bound", "y=:0.45", "--json").out)
    assert point["states"]["y"] == pytest.approx(-1.0)
    stuck = run("trim", PENDULUM, "--fix", "x=0.5", "--free", "F", "--bound", "F=-1:1")
    assert stuck.status == 5
    assert "F = 1 at a bound" in stuck.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--fix", "x=0.5"], 5, "no equilibrium was found. Tried: "),
        (["--fix", "xx=0.5"], 2, "'xx'"),
        (["--free", "force"], 2, "'force' is not a state, an input or a parameter"),
        (["--steady", "z"], 2, "'z' is not a state of the model"),
        (["--fix", "x"], 2, "--fix 'x' is not of the form NAME=VALUE"),
        (["--bound", "x=1"], 2, "--bound 'x=1' is not of the form NAME=LO:HI"),
        (["--bound", "x=0:1", "--bound", "x=0:2"], 2, "'x' has bounds twice"),
        (["--bound", "x=2:1"], 2, "the first must be the smaller one"),
        (["--fix", "x=0.1", "--set", "x=0.2"], 2, "both in --set and in --fix"),
        (["--guess", "F=1"], 2, "'F' is fixed at its value"),
        (["--no-constraints", "--constraint", "x"], 2, "exclude each other"),
        (["--constraint", "x^2 + z"], 4, "'z' is not a variable of the model"),
        (["--constraint", "x - 0.1"], 4, "start values do not satisfy the constraints"),
        (["-o", "point.mat"], 2, "must end with .toml or .json"),
        (["-o", "nowhere/point.toml"], 2, "there is no folder"),
        (["--time", "nan"], 2, "the value must be finite"),
    ],
)
def test_mistakes_are_one_paragraph_each(run: Run, arguments: list[str], status: int, message: str) -> None:
    done = run("trim", PENDULUM, *arguments)
    assert done.status == status
    assert done.is_one_paragraph(), done
    assert message in done.err


def test_an_old_file_survives_a_failed_search(run: Run) -> None:
    Path("point.toml").write_text("precious", encoding="utf-8")
    assert run("trim", PENDULUM, "--fix", "x=0.5", "-o", "point.toml").status == 5
    assert Path("point.toml").read_text(encoding="utf-8") == "precious"
    assert [p.name for p in Path().iterdir()] == ["point.toml"]


def test_the_hanging_linkage_needs_to_be_told_where_its_joints_are(run: Run) -> None:
    done = run("trim", FOUR_BAR, "--guess", "phi=-1.2,y0=-0.9,y1=-0.9", "--json")
    assert json.loads(done.out)["states"]["phi"] == pytest.approx(-pi / 2, abs=1e-12)


@pytest.mark.parametrize("arguments", [("trim",), ("trim", "-o", "point.toml"), ("linearize", "--trim")])
def test_what_is_said_of_an_equilibrium_that_is_one_of_many_is_a_note(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(arguments[0], "fmilin.systems:rolling_disk", *arguments[1:])
    assert done.status == 0
    said = " ".join((done.out + done.err).split())
    assert re.search(r"Note:? The solution is one of a family: q1, q3, q4, q5", said)
    assert not re.search(r"Warning:? The solution is one of a family", said)


RUNAWAYS = """
from fmilin.models import OdeModel
def decay(): return OdeModel("decay", {"x": "exp(-x)"})
def soil(): return OdeModel("soil", {"T": "(283-T)/1e7"}, start={"T": 283.2})
def standing(): return OdeModel("standing", {"q": "w", "w": "sin(q) - 0.1*w"})
def double(): return OdeModel("double", {"x": "x^2 - 2*x + 1"}, start={"x": 2.0})
"""


def test_how_far_the_solution_may_be_and_what_there_is_none_of(run: Run) -> None:
    Path("models.py").write_text(RUNAWAYS)
    refused = run("trim", "models.py:decay")
    assert refused.status == 5
    assert "'x' diverges" in refused.err
    assert "The last step of 'x' was 1, at" in refused.err
    soil = json.loads(run("trim", "models.py:soil", "--json").out)
    assert soil["states"]["T"] == pytest.approx(283.0, abs=1e-9)
    assert 0.0 < soil["distance"]["T"] < 1e-9
    double = run("trim", "models.py:double")
    assert re.search(r"Known to +x \+- 1e-06", double.out)
    standing = run("trim", "models.py:standing")
    assert "The equilibrium is unstable: 1 of 2 eigenvalues has a positive real" in standing.out
    linearized = run("linearize", "models.py:decay", "--trim")
    assert linearized.status == 5
