"""Eigenvalues with errors: of linear models, in files, in tables and in pictures."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from numpy.testing import assert_allclose

import fmilin as fl
from fmilin.linear_model.model import EntryErrors
from fmilin.models import OdeModel


@pytest.fixture(scope="module")
def spacecraft() -> fl.LinearModel:
    """Two free masses and a spring: 0 twice, and a pair with w^2 = k (1/m + 1/M) = 6."""
    rates = {"x": "v", "X": "V", "v": "k*(X - x)/m + u/m", "V": "k*(x - X)/M"}
    model = OdeModel("spacecraft", rates, inputs=["u"], outputs={"y": "x"}, parameters={"k": 4.0, "m": 1.0, "M": 2.0})
    return fl.linearize(model)


def test_eigenvalues_are_within_their_errors_of_the_closed_form(spacecraft: fl.LinearModel) -> None:
    right = [-1j * np.sqrt(6), 0, 0, 1j * np.sqrt(6)]
    values, errors = spacecraft.eigenvalues(), spacecraft.eigenvalue_errors()
    assert errors.shape == (4,)
    off = [np.abs(values - value).min() for value in right]
    assert max(off[0], off[3]) <= errors[np.abs(values.imag).argmax()] < 1e-12
    assert max(off[1], off[2]) <= errors[np.abs(values).argmin()] < 1e-6


def test_the_double_zero_is_one_line_of_the_table(spacecraft: fl.LinearModel) -> None:
    table = repr(spacecraft)
    assert "0 (2 times, +- " in table
    assert "±2.4494897 i" in table


def test_files_have_the_errors(spacecraft: fl.LinearModel, tmp_path: Path) -> None:
    errors = spacecraft.eigenvalue_errors()
    for suffix in ("json", "mat", "npz"):
        spacecraft.save(tmp_path / f"a.{suffix}")
        assert_allclose(fl.LinearModel.load(tmp_path / f"a.{suffix}").eigenvalue_errors(), errors)
    document = json.loads((tmp_path / "a.json").read_text())
    assert_allclose(document["eigenvalue_errors"], errors)
    assert len(document["eigenvalues"]) == len(document["eigenvalue_errors"])
    matlab = scipy.io.loadmat(tmp_path / "a.mat", simplify_cells=True)
    assert_allclose(matlab["fmilin"]["eigenvalue_errors"], errors)
    assert_allclose(np.load(tmp_path / "a.npz")["eigenvalue_errors"], errors)


def test_what_cannot_be_told_from_zero_is_drawn_at_zero(spacecraft: fl.LinearModel) -> None:
    axes = spacecraft.plot.eigenvalues().axes[0]
    marks = next(line for line in axes.lines if line.get_label() == "4 eigenvalues")
    assert not np.any(marks.get_xdata())
    assert np.count_nonzero(marks.get_ydata()) == 2


def test_errors_of_entries_that_were_measured_are_shown_with_the_digits_that_they_leave() -> None:
    model = OdeModel("measured", {"x": "v", "v": "-2*x - 0.3*v"})
    linear = fl.linearize(model)
    matrices = (linear.A, linear.B, linear.C, linear.D, linear.T)
    errors = EntryErrors(*(np.full(matrix.shape, 1e-4) for matrix in matrices))
    table = repr(replace(linear, errors=errors))
    assert "-0.15 ± 1.40624 i (+- 2e-4)" in table
