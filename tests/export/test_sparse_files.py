"""Files of large linear models hold sparse matrices, which MATLAB, SciPy and any reader of JSON understand."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from scipy import sparse

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.export.mat5 import read, write
from fmilin.export.sparse_entries import SparseEntries
from fmilin.linear_model.sparse import SparseLinearModel, is_sparse
from fmilin.linear_model.sparse_matrices import MATRICES
from fmilin.systems import four_bar


@pytest.fixture(scope="module")
def linear() -> SparseLinearModel:
    """A small linear model in sparse form."""
    model = fl.linearize(four_bar(damping=0.3), outputs=["x0", "phi"])
    names = {f.name for f in fields(model)} - {*MATRICES, "errors"}
    return SparseLinearModel.of_matrices(model.sparse, {name: getattr(model, name) for name in names})


@pytest.mark.parametrize("suffix", [".mat", ".npz", ".json"])
def test_what_was_written_is_read(linear: SparseLinearModel, suffix: str, tmp_path: Path) -> None:
    linear.save(tmp_path / f"plant{suffix}")
    loaded = fl.LinearModel.load(tmp_path / f"plant{suffix}")
    assert is_sparse(loaded)
    for name in MATRICES:
        assert np.array_equal(getattr(loaded, name), getattr(linear, name)), name
    for name in "ABCDT":
        assert np.array_equal(getattr(loaded.errors, name), getattr(linear.errors, name)), name
    assert np.array_equal(loaded.f0, linear.f0)
    assert loaded.states.names == linear.states.names
    assert loaded.warnings == linear.warnings
    assert loaded.accuracy == linear.accuracy
    assert "A" not in {name for name in vars(fl.LinearModel.load(tmp_path / f"plant{suffix}")) if name in MATRICES}


def test_scipy_and_matlab_read_sparse_matrices(linear: SparseLinearModel, tmp_path: Path) -> None:
    linear.save(tmp_path / "plant.mat")
    variables = scipy.io.loadmat(tmp_path / "plant.mat")
    for name in ("A", "B", "C", "D"):
        assert sparse.issparse(variables[name])
        assert np.array_equal(variables[name].toarray(), getattr(linear, name))


def test_numpy_reads_arrays_as_of_smaller_models(linear: SparseLinearModel, tmp_path: Path) -> None:
    linear.save(tmp_path / "plant.npz")
    with np.load(tmp_path / "plant.npz") as arrays:
        assert all(np.array_equal(arrays[name], getattr(linear, name)) for name in MATRICES)


def test_larger_models_have_sparse_matrices_alone(
    linear: SparseLinearModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmilin.export.linear_record.MAX_STATES_WITH_ROWS", len(linear.states) - 1)
    linear.save(tmp_path / "plant.json")
    linear.save(tmp_path / "plant.npz")
    assert json.loads((tmp_path / "plant.json").read_text())["A"] is None
    with np.load(tmp_path / "plant.npz") as arrays:
        assert "A" not in arrays
    for name in ("plant.json", "plant.npz"):
        assert np.array_equal(fl.LinearModel.load(tmp_path / name).A, linear.A)


def test_what_another_program_saves_again_is_read(linear: SparseLinearModel, tmp_path: Path) -> None:
    linear.save(tmp_path / "plant.mat")
    variables = read((tmp_path / "plant.mat").read_bytes())
    other = tmp_path / "other.mat"
    scipy.io.savemat(other, {"S": sparse.csc_array(linear.A), "Z": sparse.csc_array((3, 2))})
    rewritten = read(other.read_bytes())
    assert np.array_equal(rewritten["S"].to_matrix().toarray(), linear.A)
    assert rewritten["Z"].to_matrix().shape == (3, 2)
    assert np.array_equal(variables["A"].to_matrix().toarray(), linear.A)


def test_json_has_rows_as_of_smaller_models_and_positions_with_values(
    linear: SparseLinearModel, tmp_path: Path
) -> None:
    linear.save(tmp_path / "plant.json")
    document = json.loads((tmp_path / "plant.json").read_text())
    assert all(
        np.array_equal(np.reshape(document[name], getattr(linear, name).shape), getattr(linear, name))
        for name in MATRICES
    )
    A = document["sparse"]["A"]
    matrix = np.zeros(A["shape"])
    matrix[A["rows"], A["columns"]] = A["values"]
    assert np.array_equal(matrix, linear.A)


@pytest.mark.parametrize(
    "change",
    [{"rows": [9]}, {"columns": [-1]}, {"shape": [3, 3]}, {"values": [1.0, 2.0]}, {"values": [float("nan")]}],
    ids=lambda change: next(iter(change)),
)
def test_entries_that_fit_no_matrix_are_rejected(
    linear: SparseLinearModel, change: dict[str, Any], tmp_path: Path
) -> None:
    linear.save(tmp_path / "plant.json")
    document = json.loads((tmp_path / "plant.json").read_text())
    del document["checksum"]
    document["sparse"]["D"] = {"shape": list(linear.D.shape), "rows": [0], "columns": [0], "values": [1.0], **change}
    (tmp_path / "plant.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match="is damaged"):
        fl.LinearModel.load(tmp_path / "plant.json")


def test_matrices_without_entries_or_rows_are_written() -> None:
    for shape in ((0, 0), (0, 3), (3, 0), (2, 3)):
        entries = SparseEntries.of_matrix(sparse.csr_array(shape))
        assert read(write({"M": entries}))["M"].to_matrix().shape == shape
