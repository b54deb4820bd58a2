"""H-infinity loop shaping: closed forms, a published margin, guarantees, and the regulator as it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.design import LoopShapingDesign
from fmilin.design.loop_shaping import stabilize_coprime_factors
from fmilin.models import OdeModel
from fmilin.systems import furuta_pendulum
from tests.c_code import CCode


def make_design(rates: dict[str, str], sample_time: float, output: str = "x", **options: Any) -> LoopShapingDesign:
    linear = fl.linearize(OdeModel("plant", rates, inputs=["u"], outputs={"y": output}))
    arguments: dict[str, Any] = {"inputs": {"u": 1.0}, "measured": {"y": 1.0}, "crossover": 1.0} | options
    return fl.design.loop_shaping(linear, sample_time=sample_time, **arguments)


@pytest.mark.parametrize(
    ("rates", "margin"),
    [
        ({"x": "u"}, 1 / np.sqrt(2)),  # X = Z = 1
        ({"x": "v", "v": "u"}, 1 / np.sqrt(4 + 2 * np.sqrt(2))),
    ],
    ids=["integrator", "double integrator"],
)
def test_the_best_margin_is_the_closed_form_for_short_samples(rates: dict[str, str], margin: float) -> None:
    best = [make_design(rates, h).best_margin for h in (2e-3, 1e-3)]
    assert best[1] == pytest.approx(margin, rel=2e-3)
    assert 2 * best[1] - best[0] == pytest.approx(margin, rel=1e-6)  # the error is of first order in h


def test_the_least_gamma_is_the_published_one() -> None:
    """Skogestad and Postlethwaite, example 9.3: 200 (s + 2)/(s (10 s + 1) (0.05 s + 1)^2) has gamma = 2.34."""
    denominator = np.polymul([1, 0], np.polymul([10, 1], np.polymul([0.05, 1], [0.05, 1])))
    system = control.tf2ss(control.tf([200, 400], denominator))
    _, least, gamma, residual = stabilize_coprime_factors((system.A, system.B, system.C, system.D))
    assert least == pytest.approx(2.34, abs=0.005)
    assert gamma == pytest.approx(1.05 * least)
    assert residual < 1e-10


@pytest.mark.parametrize("options", [{}, {"track": ["y"]}], ids=["plain", "integral"])
def test_margins_are_those_that_the_robust_stability_margin_guarantees(options: dict[str, Any]) -> None:
    """Gain (1 + e)/(1 - e) and phase 2 arcsin e, Vinnicombe."""
    design = make_design({"x": "v", "v": "4*x - 0.2*v + u"}, 0.02, crossover=4.0, **options)
    e = design.stability_margin
    assert design.designed_margin * (1 - 1e-6) <= e <= design.best_margin * (1 + 1e-6)
    assert design.best_margin == pytest.approx(1.05 * design.designed_margin)
    down, up = design.margins["u"].gain
    assert up >= (1 + e) / (1 - e)
    assert down <= (1 - e) / (1 + e)
    assert design.margins["u"].phase >= np.rad2deg(2 * np.arcsin(e))
    loop = design.loops.wires["u"].loop
    gain = abs(loop.frequency_response(np.array([4.0]))[0, 0])
    assert 0.3 < gain[0] < 3.0  # the regulator changes the shaped loop little where it crosses


def test_outputs_that_answer_at_once_are_read_before_the_input_changes() -> None:
    design = make_design({"x": "v", "v": "-x - 0.1*v + u"}, 0.02, output="-x - 0.1*v + u", crossover=3.0)
    assert np.abs(design.poles).max() < 1
    assert design.stability_margin >= design.designed_margin * (1 - 1e-6)


def test_a_constrained_mechanism_is_held_and_saved(tmp_path: Path) -> None:
    model = furuta_pendulum()
    design = fl.design.loop_shaping(
        fl.linearize(model), inputs={"torque": 0.1}, measured={"arm.q": 0.1, "pendulum.q": 0.05}, crossover=15.0,
        sample_time=0.005, track=["arm.q"], limits={"torque": (-2.0, 2.0)},
    )  # fmt: skip
    ran = design.verify(model, stop_time=6.0, references={"arm.q": 0.1})
    assert abs(ran.tracking_errors["arm.q"]) < 1e-3
    assert design.regulator.references["arm.q"] == pytest.approx(design.linear.point.outputs["arm.q"])
    assert design.to_document()["stability_margin"] == design.stability_margin
    for name in ("shaped.c", "shaped_simulink.m", "shaped.json"):
        design.save(tmp_path / name)
    regulator, code = design.regulator, CCode(tmp_path / "shaped.c")
    rows = np.column_stack((np.random.default_rng(4).normal([0.0, np.pi], 0.5, (40, 2)), np.full(40, 0.1)))
    regulator.restart()
    regulator.follow({"arm.q": 0.1})
    expected = []
    for row in rows:
        u = regulator.answer(0.0, row[:2])
        regulator.update_states(u)
        expected.append(u)
    np.testing.assert_allclose(code.run(rows), np.array(expected), atol=1e-10)
    assert np.abs(expected).max() == 2.0
    law = fl.LinearModel.load(tmp_path / "shaped.json")
    assert law.inputs.names == ("arm.q", "pendulum.q", "reference.arm.q")
    assert "Robustness" in repr(design)


def test_saturated_actuators_do_not_wind_up() -> None:
    limits = {"u": (-0.3, 0.3)}
    design = make_design({"x": "v", "v": "-0.1*v + u"}, 0.02, crossover=2.0, track=["y"], limits=limits)
    model = OdeModel("plant", {"x": "v", "v": "-0.1*v + u"}, inputs=["u"], outputs={"y": "x"})
    ran = design.verify(model, size=0.0, stop_time=25.0, references={"y": 2.0})
    y = ran.motion["y"]
    assert np.abs(ran.motion["u"]).max() <= 0.3
    assert y[-1] == pytest.approx(2.0, abs=0.01)
    assert y.max() < 3.5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"crossover": 400.0}, "must be positive and below half the sampling frequency, 157.1 rad/s"),
        ({"measured": {"y": 0.0}}, "Each deviation must be a positive number"),
        ({"inputs": {}}, "The regulator drives no input"),
        ({"limits": {"w": (0.0, 1.0)}}, "'w' has limits, but the regulator does not drive it"),
    ],
)
def test_refusals(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(fl.UsageError, match=sentence):
        make_design({"x": "u"}, 0.02, **options)


def test_a_mode_that_is_not_seen_is_refused() -> None:
    with pytest.raises(fl.NumericalError, match="There is no stabilizing regulator"):
        make_design({"x": "-x + u", "z": "z"}, 0.02)
