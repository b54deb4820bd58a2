"""The .mat file as MATLAB sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat, savemat

from fmilin import LinearModel
from tests.hand_made import LONG, differences, pendulum, sized


def test_matrices_are_doubles_and_names_cell_arrays_of_char(tmp_path: Path) -> None:
    pendulum().save(tmp_path / "plant.mat")
    content = loadmat(tmp_path / "plant.mat")
    for name in ("A", "B", "C", "D", "T", "f0"):
        assert content[name].dtype == np.float64
        assert content[name].ndim == 2
    assert content["f0"].shape == (2, 1)
    for name, expected in {"states": ["pin.x", "pin.vx"], "inputs": ["F"]}.items():
        assert content[name].dtype == object
        assert content[name].shape == (len(expected), 1)
        assert [str(cell[0]) for cell in content[name][:, 0]] == expected
    assert str(content["outputs"][2, 0][0]) == LONG


def test_the_operating_point_has_the_names_of_matlab(tmp_path: Path) -> None:
    """As findop and ss have them: y0 are outputs; in the struct ``fmilin`` y0 stays that of the states."""
    linear = pendulum()
    linear.save(tmp_path / "plant.mat")
    content = loadmat(tmp_path / "plant.mat", simplify_cells=True)
    assert np.atleast_1d(content["x0"]).tolist() == linear.y0.tolist()
    assert np.atleast_1d(content["dx0"]).tolist() == linear.f0.tolist()
    assert np.atleast_1d(content["u0"]).tolist() == [linear.point.inputs[n] for n in linear.inputs.names]
    assert np.atleast_1d(content["y0"]).tolist() == [linear.point.outputs[n] for n in linear.outputs.names]
    assert np.atleast_1d(content["fmilin"]["y0"]).tolist() == linear.y0.tolist()
    again = LinearModel.load(tmp_path / "plant.mat")
    assert again.y0.tolist() == linear.y0.tolist()
    assert not again.warnings or again.warnings == linear.warnings


def test_the_rest_is_the_struct_fmilin(tmp_path: Path) -> None:
    pendulum().save(tmp_path / "plant.mat")
    rest = loadmat(tmp_path / "plant.mat", simplify_cells=True)["fmilin"]
    assert rest["format"] == "fmilin-linear/1"
    assert rest["sample_time"] == 0.0
    assert rest["model"]["guid"] == "{8c4e810f-3df3}"
    assert rest["accuracy"]["conditioning"] == 1.25
    assert list(rest["point"]["states"]["names"]) == ["pin.x", "pin.y", "pin.vx", "pin.vy"]
    assert rest["point"]["states"]["values"].tolist() == [0.0, -1.0, 0.1 + 0.2, 0.0]
    assert np.allclose(sorted(rest["eigenvalues"].imag), [-np.sqrt(9.81), np.sqrt(9.81)])
    assert all(len(field) <= 31 for field in _field_names(rest))


def test_a_file_that_was_loaded_and_saved_again_still_reads(tmp_path: Path) -> None:
    for number, linear in enumerate([pendulum(), sized(3, 2, 0, 0), sized(0, 0, 2, 2)]):
        first, second = tmp_path / f"{number}.mat", tmp_path / f"{number}_again.mat"
        linear.save(first)
        content = {k: v for k, v in loadmat(first).items() if not k.startswith("__")}
        savemat(second, content, do_compression=True)
        assert differences(linear, LinearModel.load(second)) == []


def _field_names(struct: dict[str, Any]) -> list[str]:
    inner = [name for value in struct.values() if isinstance(value, dict) for name in _field_names(value)]
    return [*struct, *inner]
