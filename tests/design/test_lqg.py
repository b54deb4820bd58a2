"""LQG in one call: gains of python-control, margins of brute force, the nonlinear model, C code, limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.design.lqg import LqgDesign, sample_cost
from fmilin.models import OdeModel
from fmilin.systems import four_bar
from tests.c_code import CCode

NOISE: Any = {"process": {"T": 0.01}, "measured": {"y": 1e-6}}


def pendulum() -> OdeModel:
    return OdeModel("inverted", {"p": "w", "w": "9.81*sin(p) + T"}, inputs=["T"], outputs={"y": "p"})


@pytest.fixture(scope="module")
def design() -> LqgDesign:
    linear = fl.linearize(pendulum())
    return fl.design.lqg(
        linear, states={"p": 100.0, "w": 1.0}, inputs={"T": 0.1}, sample_time=0.02, track=["y"],
        limits={"T": (-8.0, 8.0)}, **NOISE,
    )  # fmt: skip


def plain(sample_time: float) -> LqgDesign:
    weights = np.diag([100.0, 1.0])
    return fl.design.lqg(fl.linearize(pendulum()), states=weights, inputs=[[0.1]], sample_time=sample_time, **NOISE)


def test_the_feedback_is_that_of_python_control() -> None:
    """Sampled: of the cost of a sample. In the limit of short samples: of control.lqr, to first order."""
    linear, Q, R = fl.linearize(pendulum()), np.diag([100.0, 1.0]), np.array([[0.1]])
    K, S, _ = control.dlqr(*sample_cost(linear.A, linear.B, Q, R, 0.05)[:2], *_costs(linear, Q, R, 0.05))
    sampled = plain(0.05)
    np.testing.assert_allclose(sampled.gain, K, rtol=1e-9)
    np.testing.assert_allclose(sampled.cost, S, rtol=1e-9)
    assert sampled.residual < 1e-13
    continuous = control.lqr(linear.to_control(), Q, R)[0]
    off = [np.abs(plain(h).gain / continuous - 1).max() for h in (1e-2, 1e-3)]
    assert off[1] < 0.02
    assert off[0] / off[1] == pytest.approx(10.0, rel=0.2)


def _costs(linear: fl.LinearModel, Q: np.ndarray, R: np.ndarray, h: float) -> tuple[np.ndarray, ...]:
    _, _, Qd, N, Rd = sample_cost(linear.A, linear.B, Q, R, h)
    return Qd, Rd, N


def test_the_cost_of_a_sample_is_the_integral() -> None:
    linear = fl.linearize(pendulum())
    Q, R, h = np.diag([3.0, 0.5]), np.array([[0.2]]), 0.3
    Phi, Gamma, Qd, N, Rd = sample_cost(linear.A, linear.B, Q, R, h)
    y0, u = np.array([0.3, -0.2]), np.array([0.7])
    times = np.linspace(0.0, h, 2001)
    steps = control.forced_response(
        control.ss(linear.A, linear.B, np.eye(2), 0), times, np.full((1, 2001), u[0]), y0
    ).states
    values = np.einsum("ik,ij,jk->k", steps, Q, steps) + float(u @ R @ u)
    simpson = (values[0] + values[-1] + 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum()) * h / 6000
    assert y0 @ Qd @ y0 + 2 * y0 @ N @ u + u @ Rd @ u == pytest.approx(simpson, rel=1e-9)
    np.testing.assert_allclose(Phi @ y0 + Gamma @ u, steps[:, -1], rtol=1e-8)


def test_margins_are_those_of_brute_force(design: LqgDesign) -> None:
    """The closed loop of python-control with a factor at the input is stable inside of both ends, and not outside."""
    linear = design.linear
    plant = control.c2d(linear.to_control(), 0.02)
    law = design.regulator.linear_model()
    regulator = control.ss(law.A, law.B[:, :1], law.C, law.D[:, :1], 0.02)

    def largest(gain: float) -> float:
        return float(np.abs(control.feedback(plant * gain, regulator, sign=1).poles()).max())

    np.testing.assert_allclose(np.abs(design.poles).max(), largest(1.0), rtol=1e-7)
    for name in ("T", "y"):
        low, high = design.margins[name].gain
        assert largest(low * 1.001) < 1 < largest(low * 0.999)
        assert largest(high * 0.999) < 1 < largest(high * 1.001)
    w = np.geomspace(1e-3, np.pi / 0.02, 40001)
    L = control.frequency_response(plant * regulator, w).complex
    peaks = design.sensitivity_peaks["y"]
    assert peaks[0] == pytest.approx(np.abs(1 / (1 - L)).max(), rel=1e-4)
    assert peaks[1] == pytest.approx(np.abs(L / (1 - L)).max(), rel=1e-4)


def test_the_nonlinear_model_is_stable_and_follows_within_limits(design: LqgDesign) -> None:
    result = design.verify(pendulum(), size=0.01, stop_time=2.0, references={"y": 0.2})
    assert result.stable is True
    assert abs(result.tracking_errors["y"]) < 2e-3
    torque = result.motion["T"]
    assert -8.0 <= torque.min() < torque.max() <= 8.0
    assert torque[-1] == pytest.approx(-9.81 * np.sin(0.2), abs=0.02)  # the integral holds the weight
    assert result.motion["y"].max() < 0.3
    assert design.regulator.references == {"y": 0.0}


def test_integrals_do_not_wind_up() -> None:
    """A cart that must go far with little force overshoots no more than one without limits."""
    cart = OdeModel("cart", {"x": "v", "v": "F"}, inputs=["F"], outputs={"y": "x"})
    designed = fl.design.lqg(
        fl.linearize(cart), states={"x": 10.0}, inputs={"F": 1.0}, process={"F": 0.1}, measured={"y": 1e-6},
        sample_time=0.05, track={"y": 10.0}, limits={"F": (-1.0, 1.0)},
    )  # fmt: skip
    far = designed.verify(cart, size=0.0, stop_time=12.0, references={"y": 5.0}).motion
    assert np.isclose(np.abs(far["F"]).max(), 1.0)
    assert abs(far["y"][-1] - 5.0) < 0.05
    assert far["y"].max() < 7.0


def test_a_constrained_mechanism_is_regulated() -> None:
    model = four_bar()
    linear = fl.linearize(model, outputs=["phi"])
    made = fl.design.lqg(
        linear, states={"phi": 100.0}, inputs={"torque": 1.0}, process={"torque": 1.0}, measured={"phi": 1e-6},
        sample_time=0.05,
    )  # fmt: skip
    result = made.verify(model, stop_time=3.0)
    assert result.stable is True
    assert result.motion.largest_drift < 1e-6


def test_c_code_does_what_python_does(design: LqgDesign, tmp_path: Path) -> None:
    file = tmp_path / "controller.c"
    design.save(file)
    code = CCode(file)
    rng = np.random.default_rng(3)
    regulator = design.regulator
    regulator.restart()
    rows = np.column_stack((0.2 * rng.standard_normal(60), np.full(60, 0.3)))
    regulator.follow({"y": 0.3})
    expected = []
    for row in rows:
        u = regulator.answer(0.0, row[:1])
        regulator.update_states(u)
        expected.append(u)
    regulator.follow({"y": 0.0})
    np.testing.assert_allclose(code.run(rows), np.array(expected), atol=1e-11)


def test_loops_are_found_by_the_name_of_their_wire(design: LqgDesign) -> None:
    assert list(design.loops) == list(design.margins)
    assert all(design.loops[name].margins is design.margins[name] for name in design.loops)
    with pytest.raises(fl.UnknownNameError, match="a driven input or a measured output"):
        design.loops["nothing"]


def test_files_and_table(design: LqgDesign, tmp_path: Path) -> None:
    for name in ("controller.m", "controller.html"):
        design.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 500
    page = (tmp_path / "controller.html").read_text("utf-8")
    assert "Gain down" in page
    assert page.count("data:image") >= 3
    text = repr(design)
    assert "Tracks       y, with integral action" in text
    assert "T from -8 to 8" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": {"q": 1.0}}, "'q' is not a state"),
        ({"states": {"p": -1.0}}, "finite and 0 or more"),
        ({"inputs": {"T": 0.0}}, "must be positive"),
        ({"track": ["z"]}, "not an output that is measured"),
        ({"limits": {"F": (0.0, 1.0)}}, "does not drive it"),
    ],
)
def test_what_cannot_be_designed_is_refused(changes: dict[str, object], message: str) -> None:
    options: Any = {"states": {"p": 1.0}, "inputs": {"T": 1.0}, "sample_time": 0.02, **NOISE, **changes}
    with pytest.raises(fl.UsageError, match=message):
        fl.design.lqg(fl.linearize(pendulum()), **options)
