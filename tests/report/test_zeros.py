"""Zeros in tables, files, reports and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.reduction import discretize


@pytest.fixture(scope="module")
def pendulum() -> fl.LinearModel:
    """A pendulum on a cart, upright: from the force to the position the zeros are +- sqrt(10)."""
    rates = {"x": "v", "phi": "w", "v": "F - phi", "w": "11*phi - F"}
    return fl.linearize(OdeModel("cart", rates, inputs=["F"], outputs={"position": "x"}))


def test_the_table_of_a_linear_model_has_its_zeros(pendulum: fl.LinearModel) -> None:
    table = " ".join(repr(pendulum).split())
    assert "Zeros -3.1622777, 3.1622777 (right half-plane)" in table


def test_the_table_of_a_sampled_model_has_them_in_z(pendulum: fl.LinearModel) -> None:
    sampled = discretize(pendulum, 0.1)
    largest = np.abs(sampled.zeros()).max()
    assert f"z = {largest:.8g} (outside the unit circle)" in " ".join(repr(sampled).split())


def test_json_has_the_zeros_and_their_errors(pendulum: fl.LinearModel, tmp_path: Path) -> None:
    pendulum.save(tmp_path / "plant.json")
    content = json.loads((tmp_path / "plant.json").read_text("utf-8"))
    assert_allclose(content["zeros"], [[-np.sqrt(10), 0.0], [np.sqrt(10), 0.0]], rtol=1e-14, atol=1e-14)
    assert len(content["zero_errors"]) == 2
    loaded = fl.LinearModel.load(tmp_path / "plant.json")
    assert_allclose(loaded.zeros(), pendulum.zeros())


def test_a_report_lists_the_zeros_of_each_channel(pendulum: fl.LinearModel, tmp_path: Path) -> None:
    pendulum.save_report(tmp_path / "plant.html")
    page = (tmp_path / "plant.html").read_text("utf-8")
    assert "Zeros from one input to one output" in page
    assert "3.1622777 (right half-plane)" in page


def test_the_pole_zero_map_draws_a_mark_for_each_zero_and_pole(pendulum: fl.LinearModel) -> None:
    for linear in (pendulum, discretize(pendulum, 0.1)):
        (axes,) = linear.plot.zeros().axes
        lines = {line.get_label(): line for line in axes.lines}
        zeros = lines[f"{len(linear.zeros())} transmission zeros"]
        assert_allclose(np.asarray(zeros.get_xdata(), dtype=np.float64), linear.zeros().real)
        assert "4 eigenvalues" in lines
