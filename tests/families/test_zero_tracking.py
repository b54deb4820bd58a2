"""Zeros followed along sweeps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fmilin as fl
from fmilin.models import OdeModel


@pytest.fixture(scope="module")
def pendulum() -> OdeModel:
    """A pendulum on a cart; from F to x + a phi z^2 = 10/(1 - a), with zeros that cross infinity at a = 1."""
    rates = {"x": "v", "phi": "w", "v": "F - phi", "w": "11*phi - F"}
    return OdeModel("cart", rates, inputs=["F"], outputs={"place": "x + a*phi"}, parameters={"a": 0.0})


def test_each_column_is_one_zero(pendulum: OdeModel) -> None:
    a = np.linspace(0.0, 0.9, 10)
    family = fl.sweep(pendulum, {"a": a})
    assert_allclose(family.zeros, np.sqrt(10 / (1 - a))[:, None] * [-1.0, 1.0], rtol=1e-12)
    assert (family.zero_errors < 1e-10).all()


def test_zeros_that_pass_through_infinity_keep_their_columns(pendulum: OdeModel) -> None:
    a = np.linspace(0.0, 2.0, 21)
    family = fl.sweep(pendulum, {"a": a})
    at_infinity = np.abs(a - 1.0) < 1e-9
    assert family.zeros.shape == (21, 2)
    assert np.isnan(family.zeros[at_infinity]).all()
    before, after = family.zeros[a < 0.95], family.zeros[a > 1.05]
    assert_allclose(before.imag, 0.0, atol=1e-12)
    assert_allclose(after.real, 0.0, atol=1e-12)  # a pair on the imaginary axis
    assert (np.sign(after.imag) == np.sign(after.imag[0])).all()


def test_a_family_of_two_axes_has_them_in_the_shape_of_its_grid(pendulum: OdeModel) -> None:
    family = fl.sweep(pendulum, {"a": [0.0, 0.5], "x": [0.0, 1.0, 2.0]})
    assert family.zeros.shape == (2, 3, 2)
    assert_allclose(family.zeros[1, :, 1], np.sqrt(20.0))


@pytest.mark.parametrize("suffix", [".nc", ".json", ".mat", ".npz"])
def test_files_of_families_with_zeros_are_read_back(pendulum: OdeModel, suffix: str, tmp_path: Path) -> None:
    family = fl.sweep(pendulum, {"a": [0.0, 0.5]})
    family.save(tmp_path / f"family{suffix}")
    assert_allclose(fl.LinearFamily.load(tmp_path / f"family{suffix}").zeros, family.zeros)
    if suffix == ".json":
        points = json.loads((tmp_path / "family.json").read_text("utf-8"))["points"]
        assert_allclose(points[0]["zeros"], [[-np.sqrt(10), 0.0], [np.sqrt(10), 0.0]], atol=1e-12)


def test_the_picture_shows_how_zeros_move(pendulum: OdeModel) -> None:
    figure = fl.sweep(pendulum, {"a": np.linspace(0.0, 0.8, 5)}).plot.zeros()
    assert len(figure.axes[0].lines) >= 2


def test_a_family_without_zeros_has_no_picture_of_them() -> None:
    model = OdeModel("lag", {"x": "-k*x + u"}, inputs=["u"], outputs={"y": "x"}, parameters={"k": 1.0})
    family = fl.sweep(model, {"k": [1.0, 2.0]})
    assert family.zeros.shape == (2, 0)
    with pytest.raises(fl.UsageError, match="None of the linear models has a transmission zero"):
        family.plot.zeros()
