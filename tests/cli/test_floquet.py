"""``fmilin floquet``: what is printed, saved and drawn, and what is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import main

MODELS = """
from fmilin.models import OdeModel

def cycle():
    return OdeModel("van der Pol", {"x": "v", "v": "(1 - x**2)*v - x"}, start={"x": 2.0})

def mathieu():
    rate = {"x": "v", "v": "-(a - 2*q*cos(2*time))*x"}
    return OdeModel("Mathieu", rate, parameters={"a": 0.5, "q": 0.1})
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    return str(tmp_path / "models.py")


def test_json_has_what_the_contract_says(models: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["floquet", f"{models}:cycle", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "fmilin-floquet/1"
    assert document["period"] == pytest.approx(6.6632868593231, rel=1e-10)
    assert (document["order"], document["states"], document["stable"]) == (2, ["x", "v"], True)
    assert np.array(document["multipliers"]) == pytest.approx(np.array([[1, 0], [8.5969506e-4, 0]]), abs=1e-10)
    assert document["exponents"][1] == pytest.approx([-1.0593769947, 0], abs=1e-8)
    assert document["accuracy"]["exponents"] < 1e-8
    assert document["unit"] == {"the motion itself": 0}


def test_a_person_gets_a_table(models: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["floquet", f"{models}:mathieu", "--period", "3.141592653589793", "--set", "a=1.0"]) == 0
    text = capsys.readouterr().out
    assert "unstable: a deviation grows by the factor 1.1" in text
    assert "Seen at" in text


def test_what_is_saved_can_be_drawn(models: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["floquet", f"{models}:cycle", "-o", "cycle.nc", "-o", "cycle.json", "--plot", "circle.svg"]) == 0
    for kind in ("multipliers", "floquet-modes", "eigenvalues"):
        assert main(["plot", "cycle.nc", "--kind", kind, "-o", f"{kind}.png"]) == 0
        assert (tmp_path / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "circle.svg").read_text(encoding="utf-8").startswith("<?xml")
    capsys.readouterr()
    assert main(["plot", "cycle.json", "--kind", "bode", "-o", "bode.png"]) == 2
    assert "as --kind bode. Choose one of multipliers, floquet-modes" in capsys.readouterr().err
    assert main(["plot", f"{models}:cycle", "--kind", "multipliers", "-o", "x.png"]) == 2
    assert "'fmilin floquet" in capsys.readouterr().err


def test_a_chart_over_two_parameters_is_one_command(
    models: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vary = ["--vary", "a=[0.5,1.0]", "--vary", "q=[0.1,0.3]"]
    period = ["--period", "3.141592653589793"]
    assert main(["floquet", f"{models}:mathieu", *period, *vary, "--plot", "chart.png", "-o", "chart.json"]) == 0
    chart = json.loads((tmp_path / "chart.json").read_text(encoding="utf-8"))
    assert chart["axes"] == {"a": [0.5, 1.0], "q": [0.1, 0.3]}
    assert [point["stable"] for point in chart["points"]] == [True, True, False, False]
    assert main(["plot", "chart.json", "--kind", "stability", "-o", "again.png"]) == 0
    assert main(["plot", "chart.json", "--kind", "campbell", "-o", "again.png"]) == 2
    assert "drawn over one axis, and 2 vary here" in capsys.readouterr().err
    assert main(["floquet", f"{models}:mathieu", *period, "--vary", "a=[0.5,1.0]"]) == 0
    assert "unstable" in capsys.readouterr().out
    assert main(["floquet", f"{models}:mathieu", *period, *vary, "-o", "chart.nc"]) == 2


def test_a_report_has_multipliers_and_pictures(models: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["floquet", f"{models}:cycle", "-o", "cycle.nc"]) == 0
    assert main(["report", "cycle.nc", "-o", "cycle.html"]) == 0
    page = (tmp_path / "cycle.html").read_text(encoding="utf-8")
    assert "Stable: deviations die out by the factor 0.000859695 a period" in page
    assert "the motion itself" in page
    assert page.count("data:image/svg+xml;base64,") == 2
    period = ["--period", "3.141592653589793"]
    assert main(["floquet", f"{models}:mathieu", *period, "--vary", "a=[0.5,1.0]", "-o", "chart.json"]) == 0
    assert main(["report", "chart.json", "-o", "chart.html"]) == 0
    assert "1 of 2 points are stable" in (tmp_path / "chart.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["report", "cycle.nc", "--verify", "-o", "x.html"]) == 2
    assert "leave out --verify and --against" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["cycle", "--set", "x=0"], 5, "begins at an equilibrium and stays there"),
        (["cycle", "--period", "-1"], 2, "it is positive and finite"),
        (["cycle", "--turn", "x"], 2, "'x' is not an angle that turns"),
        (["cycle", "--turn", "z"], 2, "'z' is not a state of the model"),
        (["cycle", "--period", "5"], 5, "leave --period out"),
        (["mathieu", "--period", "3", "--free", "a", "--fix", "a=1"], 2, "'a' is both fixed and free"),
        (["mathieu", "--period", "3", "--free", "x"], 2, "states are free unless they are fixed"),
    ],
)
def test_mistakes_are_told_in_a_paragraph(
    arguments: list[str], status: int, said: str, models: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = arguments
    assert main(["floquet", f"{models}:{name}", *options]) == status
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1
    assert "Traceback" not in message
