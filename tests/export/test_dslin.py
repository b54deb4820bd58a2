"""Dymola's dslin.mat, both ways."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from fmilin import LinearModel
from fmilin.errors import ModelError, UsageError
from fmilin.signals import Signals
from tests.hand_made import bits, pendulum, sized

FILE = "dslin.mat"
SIZES = [(3, 2, 1), (0, 2, 3), (3, 0, 0), (1, 0, 2), (2, 1, 0), (11, 4, 3)]


def test_the_layout_is_the_one_of_dymola(tmp_path: Path) -> None:
    path = tmp_path / "dslin.mat"
    linear = sized(2, 1, 1, 1)
    linear.save(path)
    assert path.read_bytes()[:4] == b"\0\0\0\0"  # MAT-file 4, little-endian doubles
    content = loadmat(path)
    assert content["ABCD"].tolist() == np.block([[linear.A, linear.B], [linear.C, linear.D]]).tolist()
    assert content["nx"] == 2
    assert [str(row).rstrip() for row in content["xuyName"]] == ["x[1]", "x[2]", "u[1]", "out[1]"]


@pytest.mark.parametrize(("order", "inputs", "outputs"), SIZES)
@pytest.mark.parametrize("name", ["dslin.mat", "plant.dslin.mat", "PLANT_DSLIN.MAT"])
def test_matrices_and_names_come_back(order: int, inputs: int, outputs: int, name: str, tmp_path: Path) -> None:
    linear = sized(order, 1, inputs, outputs)
    linear.save(tmp_path / name)
    again = LinearModel.load(tmp_path / name)
    for letter in "ABCD":
        assert getattr(again, letter).shape == getattr(linear, letter).shape
        assert bits(getattr(again, letter)) == bits(getattr(linear, letter))
    for group in ("states", "inputs", "outputs"):
        assert getattr(again, group).names == getattr(linear, group).names
    assert again.full_states == again.states
    assert again.T.tolist() == np.eye(order).tolist()
    assert np.isnan(again.accuracy.A)
    assert again.warnings[0].kind == "point"


def read_back(linear: LinearModel, folder: Path) -> LinearModel:
    linear.save(folder / FILE)
    return LinearModel.load(folder / FILE)


def test_any_alphabet_and_long_names_come_back(tmp_path: Path) -> None:
    again = read_back(pendulum(), tmp_path)
    assert again.outputs.names == pendulum().outputs.names
    odd = replace(pendulum(), inputs=Signals(["中 🙂 '\"\n"]))
    assert read_back(odd, tmp_path).inputs.names == ("中 🙂 '\"\n",)


def test_a_file_of_dymola_is_known_by_its_content(tmp_path: Path) -> None:
    # As Dymola writes it: names of one length in one-byte characters, in another order than ours.
    buffer = io.BytesIO()
    names = np.array(["body.phi", "body.w  ", "torque  ", "phi     "])
    savemat(buffer, {"nx": 2.0, "xuyName": names, "ABCD": np.arange(9.0).reshape(3, 3)}, format="4")  # type: ignore[arg-type]
    path = tmp_path / "result.mat"
    path.write_bytes(buffer.getvalue())
    linear = LinearModel.load(path)
    assert linear.states.names == ("body.phi", "body.w")
    assert linear.B.tolist() == [[2.0], [5.0]]
    assert linear.C.tolist() == [[6.0, 7.0]]
    assert linear.model.name == "result"


def test_a_sampled_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dslin.mat"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match=r"sampled every 0\.5 s, and dslin\.mat cannot store the sample time"):
        replace(pendulum(), sample_time=0.5).save(path)
    assert path.read_bytes() == b"old"


def test_nan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="matrix B contains NaN"):
        replace(pendulum(), B=np.full((2, 1), np.nan)).save(tmp_path / FILE)
    assert not (tmp_path / FILE).exists()


def test_damaged_files_are_model_errors(tmp_path: Path) -> None:
    path = tmp_path / FILE
    sized(3, 0, 2, 1).save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError, match=r"'.*dslin\.mat' is not a dslin\.mat"):
            LinearModel.load(path)
    buffer = io.BytesIO()
    variables = {"nx": 5.0, "xuyName": np.array(["a1", "b1"]), "ABCD": np.eye(2)}
    savemat(buffer, variables, format="4")  # type: ignore[arg-type]  # the stubs forgot open files
    path.write_bytes(buffer.getvalue())
    with pytest.raises(ModelError, match="a matrix of 2 x 2, 5 states and 2 names do not fit"):
        LinearModel.load(path)


def test_one_letter_is_enough_for_a_name(tmp_path: Path) -> None:
    linear = replace(sized(2, 0, 1, 1), states=Signals(["x", "y"]), inputs=Signals(["u"]), outputs=Signals(["o"]))
    assert read_back(linear, tmp_path).states.names == ("x", "y")
