"""Values of points by the names of the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar


def test_every_point_of_a_model_has_its_names(tmp_path: Path) -> None:
    native = four_bar()
    with fl.load(build_fmu(native, tmp_path / "four_bar.fmu")) as fmu:
        for model in (native, fmu, fl.connect({"bar": native})):
            prefix = "" if model.states.has("phi") else "bar."
            phi, torque = f"{prefix}phi", f"{prefix}torque"
            trimmed = fl.trim(model, fixed={phi: 2.0}, free=[torque])
            points = (model.start, trimmed, *fl.operating_points(model, {phi: [2.0, 2.1]}))
            for point in points:
                assert point[phi] == point.states[model.states.index_of(phi)]
                assert point[torque] == point.inputs[0]
            linear = fl.linearize(model, trimmed)
            assert linear.point[phi] == pytest.approx(2.0)
            assert linear.point[torque] == pytest.approx(trimmed[torque])
            assert linear.point[f"{prefix}coupler.y"] == linear.point.outputs[f"{prefix}coupler.y"]


def test_a_name_that_a_point_does_not_have() -> None:
    point = fl.operating_point(four_bar())
    with pytest.raises(fl.UnknownNameError, match="'psi' is not a state or an input of this point"):
        point["psi"]
    with pytest.raises(fl.UnknownNameError, match="'psi' is not a state, an input or an output of this point"):
        fl.linearize(four_bar()).point["psi"]
    with pytest.raises(fl.UnknownNameError, match="There is none"):
        fl.OperatingPoint(0.0, np.zeros(1), np.zeros(0))["phi"]
