"""Whether the point is an equilibrium is said where that was tested: yes, no, or not tested, in every format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import io

import fmilin as fl
from fmilin import LinearModel
from fmilin.adapters import Remark
from fmilin.models import OdeModel
from fmilin.reduction import discretize
from tests.identification.toys import Toy, oscillators


def falling_body(v: float = 0.0) -> OdeModel:
    return OdeModel("body", {"h": "v", "v": "u - 9.81"}, inputs=["u"], outputs={"y": "h"}, start={"h": 1.0, "v": v})


def resting_body() -> LinearModel:
    return fl.linearize(OdeModel("body", {"h": "v", "v": "u - h"}, inputs=["u"], outputs={"y": "h"}))


STATED = {True: "yes", False: "no", None: "not tested"}


def cases() -> dict[str, tuple[LinearModel, bool | None]]:
    """Linear models from several sources, and what is true of their points."""
    moving = Toy(oscillators((1.0,)), offset=np.array([0.0, 0.3]))
    untested = replace(resting_body(), warnings=(Remark("equilibrium-not-tested", "The file does not say."),))
    without_remark = replace(fl.linearize(falling_body()), warnings=())
    return {
        "derivatives, in motion": (fl.linearize(falling_body()), False),
        "derivatives, at rest": (resting_body(), True),
        "responses, in motion": (fl.linearize(moving), False),
        "responses, at rest": (fl.linearize(Toy(oscillators((1.0,)))), True),
        "lifted, in motion": (fl.linearize(moving, stepping=fl.Stepping(lifted=True, step=0.1)), False),
        "a remark that was lost": (without_remark, False),
        "not tested": (untested, None),
    }


def test_every_source_states_what_was_tested(tmp_path: Path) -> None:
    for name, (linear, true) in cases().items():
        assert linear.is_equilibrium is true, name
        assert f"Equilibrium {STATED[true]}" in " ".join(repr(linear).split()), name
        for suffix in ("json", "npz", "mat"):
            linear.save(tmp_path / f"file.{suffix}")
            assert LinearModel.load(tmp_path / f"file.{suffix}").is_equilibrium is true, (name, suffix)
        assert json.loads((tmp_path / "file.json").read_text())["equilibrium"] is true, name
        number = io.loadmat(tmp_path / "file.mat", simplify_cells=True)["fmilin"]["equilibrium"]
        assert number == true if true is not None else np.isnan(number), name


def test_a_file_without_a_point_does_not_state_an_equilibrium(tmp_path: Path) -> None:
    resting_body().save(tmp_path / "dslin.mat")
    read = LinearModel.load(tmp_path / "dslin.mat")
    assert read.is_equilibrium is None
    assert "Equilibrium not tested" in " ".join(repr(read).split())


def test_points_of_a_family_and_between_them_say_whether_they_move(tmp_path: Path) -> None:
    model = OdeModel("lag", {"x": "a - x"}, parameters={"a": 0.0}, outputs={"y": "x"})
    family = fl.sweep(model, {"a": np.array([0.0, 1.0])})
    assert [linear.is_equilibrium for _, linear in family.good()] == [True, False]
    assert family.interpolate({"a": 0.5}).is_equilibrium is False
    family.save(tmp_path / "family.json")
    points = json.loads((tmp_path / "family.json").read_text())["points"]
    assert [point["equilibrium"] for point in points] == [True, False]


@pytest.mark.parametrize("moves", [False, True], ids=["at rest", "in motion"])
def test_a_sampled_model_rests_where_its_next_states_are_its_states(*, moves: bool) -> None:
    sampled = discretize(fl.linearize(falling_body()) if moves else resting_body(), 0.1)
    assert sampled.is_equilibrium is not moves
    assert replace(sampled, warnings=()).is_equilibrium is not moves
