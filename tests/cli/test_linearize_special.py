"""Points where a plain linear model does not exist, and coordinates of the user's own making, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import main

KINK = """
import numpy as np
from fmilin.models import FunctionModel

def model():
    return FunctionModel("two springs", {"x": 0.0, "v": 0.0},
                         lambda t, s, u: np.array([s[1], -(1.0 if s[0] < 0 else 3.0) * s[0]]))
"""


def run(*arguments: str) -> int:
    return main([*arguments])


def test_a_kink_ends_with_status_5_and_a_side_may_be_chosen(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "springs.py"
    source.write_text(KINK)
    assert run("linearize", f"{source}:model") == 5
    captured = capfd.readouterr()
    assert "kink at the point: d der(v) / d x is -1 on the left and -3 on the right" in captured.err
    assert captured.out == ""
    for side, stiffness in (("left", -1.0), ("right", -3.0)):
        assert run("linearize", f"{source}:model", "--one-sided", side, "--json") == 0
        assert json.loads(capfd.readouterr().out)["A"][1][0] == pytest.approx(stiffness, abs=1e-9)


def test_a_singular_configuration_ends_with_status_5_and_may_be_linearized(capfd: pytest.CaptureFixture[str]) -> None:
    folded = "fmilin.systems:four_bar(singular=True)"
    assert run("linearize", folded) == 5
    assert "--at-singularity" in capfd.readouterr().err
    assert run("linearize", folded, "--at-singularity", "--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert sorted({round(abs(im), 4) for _, im in found["eigenvalues"]}) == [3.4310, 4.4294]
    assert found["warnings"][0]["kind"] == "singular"


def test_coordinates_given_as_expressions(capfd: pytest.CaptureFixture[str]) -> None:
    swinging = "fmilin.systems:cartesian_pendulum(angle=0.5, rate=1.0)"
    assert run("linearize", swinging, "--independent", "theta=atan2(x,-y),w=(x*vy-y*vx)/(x^2+y^2)", "--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert found["states"] == ["theta", "w"]
    assert found["A"][1][0] == pytest.approx(-9.81 * 0.8775825618903728, rel=1e-10)
    assert run("linearize", "fmilin.systems:cartesian_pendulum()", "--independent", "height=y^2,v=vx") == 5
    assert "not one-to-one" in capfd.readouterr().err
