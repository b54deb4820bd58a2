"""``fmilin sweep --delay``: what the command prints, saves and draws is what Python returns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import fmilin as fl
from fmilin.models import OdeModel
from tests.cli.conftest import Run

TANK = 'OdeModel("tank", {"h": "-k*delay(h, T)"}, parameters={"T": 0.1, "k": 2.0})'


def test_the_command_prints_saves_and_draws_what_python_returns(run: Run) -> None:
    Path("models.py").write_text(f"from fmilin.models import OdeModel\ntank = {TANK}\n", encoding="utf-8")
    done = run("sweep", "models.py:tank", "--delay", "h=0.5:1:3", "--plot", "locus.png")
    assert done.status == 0, done.err
    assert "Stability changes at h = 0.785398 s: 0 to 2 growing, 2 rad/s" in done.out
    assert Path("locus.png").stat().st_size > 1000
    written = run("sweep", "models.py:tank", "--vary", "T=[0.5,1]", "-o", "family.json")
    assert written.status == 0, written.err
    record = json.loads(Path("family.json").read_text(encoding="utf-8"))
    tank = OdeModel("tank", {"h": "-k*delay(h, T)"}, parameters={"T": 0.1, "k": 2.0})
    family = fl.sweep(tank, {"T": [0.5, 1.0]}, delays={})
    assert record["format"] == "fmilin-delay-family/1"
    eigenvalues = np.array([point["eigenvalues"] for point in record["points"]]) @ [1, 1j]
    np.testing.assert_array_equal(eigenvalues, family.eigenvalues)
    wrong = run("sweep", "models.py:tank", "--delay", "h=0.5:1:3", "-o", "family.mat")
    assert wrong.status == 2
    assert "are written as .json" in wrong.err
