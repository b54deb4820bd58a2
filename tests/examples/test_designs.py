"""The designs of examples/designs, each run whole: what they reach on the nonlinear model, on its manifold."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

DESIGNS = Path(__file__).parents[2] / "examples" / "designs"


def results(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a design, and return its figures."""
    monkeypatch.syspath_prepend(str(DESIGNS))
    try:
        found: dict[str, Any] = runpy.run_path(str(DESIGNS / f"{name}.py"))["main"](folder)
    finally:
        sys.modules.pop("pictures", None)
    picture = folder / f"{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    return found


def test_four_bar_lqr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crank comes back; without the regulator it falls; eight of ten naive states are out of reach."""
    found = results("four_bar_lqr", tmp_path, monkeypatch)
    assert abs(found["error at the end [rad]"]) < 2e-3
    assert found["error at the end without it [rad]"] > 0.5
    assert found["states of the naive model out of reach"] == 8
    assert found["largest departure from the manifold"] < 1e-9


def test_bicycle_kalman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NEES of 5 states over 20 runs: within the bounds of chi-squared where it should be, and 5 on average."""
    found = results("bicycle_kalman", tmp_path, monkeypatch)
    assert found["states, independent, in the filter"] == (15, 11, 5)
    assert found["NEES, mean"] == pytest.approx(5.0, rel=0.15)
    assert found["share of samples inside 95 %"] > 0.85


def test_furuta_lqg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = results("furuta_lqg", tmp_path, monkeypatch)
    assert found["largest pole of the loop, |z|"] < 1.0
    assert abs(found["pendulum at the end [deg]"]) < 0.2
    assert found["caught from [deg]"] >= 16.0


def test_excavator_schedule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule arrives, a fixed gain stays beside; Octave designs the same gains from the file."""
    found = results("excavator_schedule", tmp_path, monkeypatch)
    assert found["configurations, of them trimmed"] == (56, 56)
    assert found["error at the end, scheduled [deg]"] < 0.05
    assert found["error at the end, fixed [deg]"] > 20 * found["error at the end, scheduled [deg]"]
    if shutil.which("octave-cli"):
        assert found["gains of Octave, largest relative difference"] < 1e-6


def test_suspension_hinf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The norm is under gamma and well under the passive one, and the nonlinear body is quieter over the bump."""
    found = results("suspension_hinf", tmp_path, monkeypatch)
    assert found["H-infinity norm with the regulator"] < found["gamma"]
    assert found["H-infinity norm with the regulator"] < 0.6 * found["H-infinity norm without"]
    assert found["body.a, rms, active [m/s2]"] < 0.8 * found["body.a, rms, passive [m/s2]"]


def test_crane_anti_sway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = results("crane_anti_sway", tmp_path, monkeypatch)
    assert found["eigenvalue of the sway [rad/s]"] == pytest.approx(found["in closed form [rad/s]"], rel=1e-12)
    assert found["sway left, LQR [deg]"] < 0.05 < 2.0 < found["sway left, trolley alone [deg]"]
    assert found["load from where it belongs [m]"] < 5e-3


def test_controller_fmu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two FMUs stepped by FMPy are the loop that fmilin simulates."""
    found = results("controller_fmu", tmp_path, monkeypatch)
    assert abs(found["error at the end [rad]"]) < 2e-3
    assert found["largest difference of the runs [rad]"] < 1e-8
    assert found["and of the torques [N m]"] < 1e-6
