"""Multipliers over what varies: Mathieu's chart, Hammond's helicopter on the ground with one damper out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import fmilin as fl
from fmilin.models import OdeModel
from tests.periodic.rotors import helicopter


def test_growth_between_the_lines_of_mathieus_chart() -> None:
    rate = {"x": "v", "v": "-(a - 2*q*cos(2*time))*x"}
    model = OdeModel("Mathieu", rate, parameters={"a": 1.0, "q": 0.1})
    lines = float(special.mathieu_b(1, 0.6)), float(special.mathieu_a(1, 0.6))
    values = [lines[0] - 1e-3, lines[0] + 1e-3, lines[1] - 1e-3, lines[1] + 1e-3]
    chart = fl.floquet_chart(model, {"a": values, "q": [0.6]}, period=np.pi)
    assert chart.stable[:, 0].tolist() == [True, False, False, True]
    assert chart.ok.all()
    assert chart.period == pytest.approx(np.pi)


def test_points_without_a_periodic_motion_say_why() -> None:
    model = OdeModel("pushed", {"x": "k*x + 1 + cos(time)"}, parameters={"k": -1.0})
    chart = fl.floquet_chart(model, {"k": [-1.0, 0.0]}, period=2 * np.pi)
    assert chart.ok.tolist() == [True, False]
    assert chart.multipliers[0] == pytest.approx([np.exp(-2 * np.pi)])
    assert "does not close" in chart.reasons[1]
    with pytest.raises(fl.NumericalError, match="does not close"):
        fl.floquet_chart(model, {"k": [0.0]}, period=2 * np.pi)


def test_a_campbell_diagram_is_over_one_axis() -> None:
    rate = {"x": "v", "v": "-(a - 2*q*cos(2*time))*x"}
    model = OdeModel("Mathieu", rate, parameters={"a": 1.0, "q": 0.1})
    chart = fl.floquet_chart(model, {"a": [1.0, 2.0, 3.0]}, period=np.pi)
    assert chart.campbell().axes[0].get_ylabel() == "seen at [rad/s]"
    with pytest.raises(fl.UsageError, match="drawn over two axes, and 1 vary"):
        chart.stability()


def test_a_helicopter_on_the_ground_with_one_lag_damper_out_is_unstable_around_250_rpm() -> None:
    """Hammond (J. American Helicopter Society 19, 1974): stable with all dampers, not with one inoperative."""
    speeds = np.array([150.0, 250.0, 350.0]) * 2 * np.pi / 60
    damper = 4067.5
    whole = fl.floquet_chart(helicopter((damper,) * 4), {"v_psi": speeds}, turn="psi", points=32)
    broken = fl.floquet_chart(helicopter((0.0, damper, damper, damper)), {"v_psi": speeds}, turn="psi", points=32)
    assert whole.stable.tolist() == [True, True, True]
    assert broken.stable.tolist() == [True, False, True]
    assert 0.2 < broken.margin[1] < 0.5
