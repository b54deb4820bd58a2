"""Targets of outputs that are angles and wrap: beyond half a turn the answer names the angle to ask for."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import Labels, OdeModel

MODEL = OdeModel(
    "pendulum",
    {"x": "v", "v": "-9.81*sin(x) - 0.2*v + u"},
    inputs=["u"],
    outputs={"th": "180/pi*atan2(sin(x), cos(x))"},
    start={"x": np.pi},
    labels=Labels(units={"th": "deg"}),
)


def test_beyond_half_a_turn_the_same_angle_is_named() -> None:
    with pytest.raises(fl.NumericalError, match="an angle that wraps, use -160 deg"):
        fl.trim(MODEL, fixed={"th": 200.0}, free=["u"])


@pytest.mark.parametrize("target", [-160.0, 170.0, 180.0])
def test_within_half_a_turn_the_target_is_met(target: float) -> None:
    point = fl.trim(MODEL, fixed={"th": target}, free=["u"])
    assert np.cos(point["x"] - np.deg2rad(target)) == pytest.approx(1.0, abs=1e-12)
    assert point["u"] == pytest.approx(9.81 * np.sin(np.deg2rad(target)), abs=1e-7)
