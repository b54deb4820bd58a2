"""Operating points as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters import ModelInfo
from fmilin.model.model_files import SavedPoint, check_point_file, dump_point, load_point
from fmilin.systems import cartesian_pendulum

NASTY = SavedPoint(
    0.1,
    {'body."quoted"\\x': 1 / 3, "größe 🙂": 5e-324, "tab\t\x7f\n": -0.0},
    {"`F = 1`": 1e300},
    {"L": 2.0},
    {'body."quoted"\\x': -1.0},
    ModelInfo("Pendel 🙂", "{8c4e}"),
)


@pytest.mark.parametrize("suffix", [".toml", ".json", ".TOML"])
def test_nothing_gets_lost(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"point{suffix}"
    path.write_bytes(dump_point(NASTY, path))
    result = load_point(path)
    assert result == NASTY
    assert [v.hex() for v in result.states.values()] == [v.hex() for v in NASTY.states.values()]


def test_a_point_of_a_model_comes_back_as_that_point(tmp_path: Path) -> None:
    model = cartesian_pendulum(angle=0.3)
    point = fl.operating_point(model, {"F": 2.0})
    path = tmp_path / "point.toml"
    path.write_bytes(dump_point(SavedPoint.of(model, point, np.zeros(4)), path))
    again = load_point(path).on(model)
    np.testing.assert_array_equal(again.states, point.states)
    np.testing.assert_array_equal(again.inputs, point.inputs)


def test_a_point_of_another_model_is_refused() -> None:
    with pytest.raises(fl.UnknownNameError, match="'phi' is not a state of the model, as the saved point says"):
        SavedPoint(0.0, {"phi": 1.0}, {}).on(cartesian_pendulum())
    with pytest.raises(fl.UnknownNameError, match="'torque' is not an input of the model"):
        SavedPoint(0.0, {}, {"torque": 1.0}).on(cartesian_pendulum())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.toml", "x = [", "is not a TOML file"),
        ("a.json", "{", "is not a JSON file"),
        ("a.json", "[1]", "not an operating point that fmilin reads"),
        ("a.toml", "time = 1.0", "lacks the line format"),
        ("a.toml", 'format = "fmilin-point/1"', "damaged: 'time'"),
        ("a.json", '{"format": "fmilin-point/1", "time": 0, "states": {"x": "1"}}', "'1' should be a finite number"),
        ("a.json", '{"format": "fmilin-point/1", "time": 0, "states": {"x": NaN}}', "nan should be a"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(fl.ModelError, match=message):
        load_point(path)


def test_missing_files_and_unknown_suffixes(tmp_path: Path) -> None:
    with pytest.raises(fl.ModelError, match="Cannot read the point"):
        load_point(tmp_path / "none.toml")
    with pytest.raises(fl.UsageError, match=r"must end with \.toml or \.json"):
        load_point(tmp_path / "point.mat")
    with pytest.raises(fl.UsageError, match=r"must end with \.toml or \.json"):
        check_point_file(tmp_path / "point.csv")
    check_point_file(tmp_path / "point.toml")
