"""Audits of trajectories that are right: smooth inputs, samples that are far apart, no states, regulators."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel

FAR_APART = "steps of the states between distant samples"


def test_a_smooth_input_is_a_curve_between_samples() -> None:
    model = OdeModel("lag", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    audit = fl.audit(fl.simulate(model, stop_time=10.0, inputs={"u": lambda t: np.sin(5 * t)}), model=model)
    assert audit.ok
    assert any("step of x" in row.quantity for row in audit.rows)


@pytest.mark.parametrize(
    ("rates", "step"), [({"x": "-1000*(x - cos(time))"}, 0.05), ({"x": "v", "v": "-100*x"}, 1.0)], ids=["stiff", "fast"]
)
def test_steps_between_samples_that_are_far_apart_are_not_compared(rates: dict[str, str], step: float) -> None:
    model = OdeModel("m", rates, start={"x": 1.0})
    audit = fl.audit(fl.simulate(model, stop_time=10.0, step=step), model=model)
    assert audit.ok
    assert audit.unchecked[0].startswith(FAR_APART)


def test_a_model_without_states_has_outputs_only() -> None:
    model = OdeModel("gain", {}, inputs=["u"], outputs={"y": "2*u"})
    ran = fl.simulate(model, stop_time=1.0, inputs={"u": 1.0})
    audit = fl.audit(ran, model=model)
    assert audit.ok
    assert [row.quantity.split(":")[0] for row in audit.rows] == ["outputs"]


def test_a_run_with_events_is_not_compared_in_the_mode_at_its_end() -> None:
    plant = OdeModel("plant", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"}, start={"x": 1.0})
    law = control.ss([], [], [], [[-1.0]], 0.1, inputs="e", outputs="c")
    system = fl.connect({"p": plant, "reg": law}, [("p.y", "reg.e"), ("reg.c", "p.u")], outputs=["reg.c"])
    audit = fl.audit(fl.simulate(system, stop_time=1.0), model=system)
    assert audit.ok
    assert "events changed the mode" in audit.unchecked[0]
