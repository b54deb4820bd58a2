"""Sampled models against their linear models, sample by sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import DiscreteModel, OdeModel
from tests.fmi.read.test_sampled_maps import AUTO
from tests.fmus.sampled.make import build_map


def logistic() -> DiscreteModel:
    return DiscreteModel(
        "logistic", {"x": "r*x*(1 - x) + u"}, sample_time=0.5, inputs=["u"], parameters={"r": 2.8}, start={"x": 0.6},
        outputs={"y": "x^2"},
    )  # fmt: skip


def test_a_map_is_right_to_first_order_and_its_range_is_that_of_its_closed_form() -> None:
    """From x0 + d the next sample is A d - r d^2 off: 5 % of d, the largest response, at d = 0.05/r."""
    model = logistic()
    linear = fl.linearize(model, fl.trim(model))
    verification = fl.verify(model, linear, horizon=0.5)
    offset = verification.channels[1]
    assert verification.passed
    assert offset.label == "offset of x"
    assert offset.order == pytest.approx(2.0, abs=1e-3)
    assert offset.validity is not None
    assert offset.validity.limit == pytest.approx(0.05 / 2.8, rel=0.11)


@pytest.mark.parametrize("letter", ["A", "B", "C", "D", "f0"])
def test_a_wrong_matrix_of_a_map_fails(letter: str) -> None:
    model = logistic()
    linear = fl.linearize(model, fl.trim(model))
    wrong = replace(linear, **{letter: getattr(linear, letter) + 0.01})
    assert not fl.verify(model, wrong).passed


def test_a_map_with_a_constraint_and_one_that_is_not_at_rest_are_verified() -> None:
    length = "sqrt(x^2 + 0.25*y^2)"
    circle = DiscreteModel(
        "circle", {"x": f"x/{length}", "y": f"y/2/{length}"}, sample_time=1.0, start={"x": 0.8, "y": 0.6},
        constraints=["x^2 + y^2 - 1"],
    )  # fmt: skip
    assert fl.linearize(circle, fl.trim(circle, guess={"x": 0.95})).verify(circle).passed
    swing = DiscreteModel("swing", {"q": "q + v/10", "v": "v - sin(q)/10"}, sample_time=0.1, start={"q": 0.4, "v": 1.0})
    moving = fl.linearize(swing)
    assert np.abs(moving.f0).min() > 0.01
    verification = fl.verify(swing, moving)
    assert verification.passed
    assert [channel.kind for channel in verification.channels] == ["point", "offset", "offset"]


def test_an_fmu_with_discrete_states_is_verified(tmp_path: Path) -> None:
    with fl.load(build_map(tmp_path), discrete_states=AUTO) as model:
        linear = fl.linearize(model, fl.trim(model, fixed={"u": 0.2}))
        verification = fl.verify(model, linear, horizon=0.3)
        assert verification.passed
        assert verification.horizon == pytest.approx(0.3)


def test_other_sample_times_and_connected_systems_are_rejected() -> None:
    model = logistic()
    linear = fl.linearize(model, fl.trim(model))
    with pytest.raises(fl.UsageError, match=r"every 1 s and the linear model every 0\.5 s"):
        fl.verify(model.iterate(2), linear)
    plant = OdeModel("plant", {"h": "u - h"}, inputs=["u"], outputs={"y": "h"})
    law = DiscreteModel("law", {"s": "s - y/4"}, sample_time=0.5, inputs=["y"], outputs={"u": "s"})
    loop = fl.connect({"plant": plant, "law": law}, [("plant.y", "law.y"), ("law.u", "plant.u")])
    with pytest.raises(fl.UsageError, match="a connected system with sampled members"):
        fl.verify(loop, fl.linearize(loop))
