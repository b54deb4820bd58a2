"""Files of linear models with delays: everything comes back, and damaged or neutral ones are told."""

from __future__ import annotations

import json
from pathlib import Path

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.cli.main import main
from fmilin.export.files import load


def late_four_bar() -> fl.DelayedLinearModel:
    linear = fl.linearize(fl.systems.four_bar(damping=0.3), delays={"torque": 0.1, "phi": 0.02})
    assert isinstance(linear, fl.DelayedLinearModel)
    return linear


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_model_with_delays_comes_back_bit_by_bit(suffix: str, tmp_path: Path) -> None:
    linear, path = late_four_bar(), tmp_path / f"late{suffix}"
    linear.save(path)
    again = load(path)
    assert isinstance(again, fl.DelayedLinearModel)
    assert again.delays == linear.delays
    assert (again.inputs.names, again.outputs.names) == (linear.inputs.names, linear.outputs.names)
    assert again.warnings == linear.warnings
    w = np.geomspace(0.1, 100, 20)
    np.testing.assert_array_equal(again.frequency_response(w), linear.frequency_response(w))


def test_json_has_the_rightmost_eigenvalues_and_the_delays(tmp_path: Path) -> None:
    """Of x' = -2 x(t - 0.3): s = W(-0.6)/0.3, by the principal branch of Lambert's function."""
    plant = fl.models.OdeModel("plant", {"x": "-2*delay(x, 0.3) + u"}, inputs=["u"], outputs={"y": "x"})
    fl.linearize(plant).save(tmp_path / "plant.json")
    content = json.loads((tmp_path / "plant.json").read_text("utf-8"))
    assert content["format"] == "fmilin-delayed/1"
    assert content["delays"] == {"x": 0.3}
    assert content["stable"] is True
    s = complex(*content["eigenvalues"][0])
    assert abs(s + 2 * np.exp(-0.3 * s)) < 1e-12


def test_a_neutral_model_is_written_without_eigenvalues(tmp_path: Path) -> None:
    law = control.ss([], [], [], [[0.5]], inputs="e", outputs="u")
    gain = control.ss([], [], [], [[1.0]], inputs="u", outputs="y")
    loop = fl.connect({"law": law, "gain": gain}, [("law.u", "gain.u"), ("gain.y", "law.e")], delays={"gain.u": 1.0})
    linear = fl.linearize(loop)
    linear.save(tmp_path / "neutral.json")
    assert json.loads((tmp_path / "neutral.json").read_text("utf-8"))["eigenvalues"] is None


def test_the_command_line_prints_and_draws_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = ["linearize", "fmilin.systems:four_bar", "--delay", "torque=0.1"]
    assert main([*options, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["delays"] == {"torque": 0.1}
    path = tmp_path / "late.json"
    assert main([*options, "-o", str(path)]) == 0
    assert main(["plot", str(path), "--kind", "bode", "-o", str(tmp_path / "late.png")]) == 0
    assert main(["convert", str(path), "-o", str(tmp_path / "late.mo")]) == 0
    assert "= delay(" in (tmp_path / "late.mo").read_text("utf-8")
