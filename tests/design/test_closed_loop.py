"""The nonlinear plant under a sampled regulator: against python-control where it is linear, with limits and delay."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin import design
from fmilin.models import OdeModel
from fmilin.systems import cartesian_pendulum
from tests.composition.plants import oscillator

H = 0.1


def at_samples(ran: fl.Trajectory, name: str, count: int, *, shift: float = 0.0) -> np.ndarray:
    """Return values at the samples, after the events there."""
    return np.array([ran[name][np.flatnonzero(np.abs(ran.times - k * H - shift) < 1e-7)[-1]] for k in range(count)])


def test_a_linear_plant_follows_the_discrete_loop() -> None:
    model = oscillator(damper=0.3)
    origin = fl.operating_point(model, {"x": 0.0})
    lin = fl.linearize(model, origin)
    sampled = control.c2d(control.ss(lin.A, lin.B, np.eye(2), 0), H)
    K, _, _ = control.dlqr(sampled, np.eye(2), np.eye(1))
    regulator = design.state_feedback(lin, K, H)
    start = fl.operating_point(model, {"x": 1.0, "v": -0.5})
    ran = fl.closed_loop(model, regulator, origin, stop_time=2.0, start=start)
    x, rows = np.array([1.0, -0.5]), []
    loop = sampled.A - sampled.B @ K
    for _ in range(20):
        rows.append(x)
        x = loop @ x
    found = np.column_stack([at_samples(ran, n, 20) for n in ("x", "v")])
    np.testing.assert_allclose(found, rows, atol=1e-6)
    assert ran.state_signals.names == ("x", "v")
    assert ran.input_signals.names == ("F",)


def test_limits_delay_and_where_they_show() -> None:
    """x' = u from x = 1 under u = -2 x, limited to 0.5 and half a sample late: straight pieces by hand."""
    model = OdeModel("i", {"x": "u"}, inputs=["u"], start={"x": 1.0})
    origin = fl.operating_point(model, {"x": 0.0})
    K = np.array([[2.0]])
    regulator = design.FunctionRegulator(lambda _, y: -K @ y, ["x"], ["u"], H)
    ran = fl.closed_loop(
        model, regulator, origin, start=fl.operating_point(model), stop_time=1.0, limits={"u": (-0.5, 0.5)}, delay=H / 2
    )
    x, u, rows = 1.0, 0.0, []
    for _ in range(10):
        rows.append(x)
        asked = float(np.clip(-2 * x, -0.5, 0.5))
        x = x + u * H / 2 + asked * H / 2
        u = asked
    np.testing.assert_allclose(at_samples(ran, "x", 10), rows, atol=1e-6)
    assert ran["u"].min() == -0.5


def test_a_constrained_plant_stays_on_its_manifold_and_comes_to_rest() -> None:
    model = cartesian_pendulum(angle=0.0)
    lin = fl.linearize(model, independent=["x", "vx"])
    d = control.c2d(control.ss(lin.A, lin.B, np.eye(2), 0), H / 2)
    K, _, _ = control.dlqr(d, np.eye(2), 0.1 * np.eye(lin.B.shape[1]))
    start = fl.operating_point(cartesian_pendulum(angle=0.3))
    start = fl.OperatingPoint(start.time, start.states, start.inputs, {})
    ran = fl.closed_loop(model, design.state_feedback(lin, K, H / 2), stop_time=6.0, start=start)
    assert ran.largest_drift < 1e-9
    assert abs(ran["x"][-1]) < 1e-3 * abs(ran["x"][0])
    free = fl.simulate(model, start, stop_time=6.0, step=H)
    assert np.abs(free["x"][-30:]).max() > 0.9 * abs(free["x"][0])


def test_a_kalman_filter_with_state_feedback_knows_the_limits() -> None:
    """LQG with a noisy position sensor; with a limit the prediction takes what was applied."""
    model = oscillator(damper=0.3)
    lin = fl.linearize(model, fl.operating_point(model, {"x": 0.0}), outputs=["px"])
    kf = design.kalman_filter(lin, H, process={"F": 0.01}, measured={"px": 1e-6})
    K, _, _ = control.dlqr(kf.sampled.A, kf.sampled.B, 10 * np.eye(2), np.eye(1))
    lqg = design.KalmanRegulator(kf, K)
    point = fl.operating_point(model, {"x": 0.0})
    start = fl.operating_point(model, {"x": 1.0})
    limits = {"F": (-0.4, 0.4)}
    ran = fl.closed_loop(model, lqg, point, stop_time=10.0, start=start, limits=limits, noise={"px": 1e-3}, seed=3)
    assert np.abs(ran["x"][-20:]).max() < 0.02
    assert np.abs(ran["F"]).max() == 0.4
    again = fl.closed_loop(model, lqg, point, stop_time=10.0, start=start, limits=limits, noise={"px": 1e-3}, seed=3)
    np.testing.assert_array_equal(again.states, ran.states)
    # without noise and with a perfect start the filter's estimate is the plant, limits or not
    lqg.restart()
    fl.closed_loop(model, lqg, point, stop_time=3.05, limits=limits, start=start)
    quiet = fl.closed_loop(model, lqg, point, stop_time=3.05, limits=limits, start=start)
    assert lqg._estimate == pytest.approx([at_samples(quiet, "x", 31)[-1], at_samples(quiet, "v", 31)[-1]], abs=0.02)


def test_a_regulator_of_python_control_works_in_deviations() -> None:
    """x' = u - 3 at x0 = 2, u0 = 3: the regulator sees x - 2 and adds to 3."""
    model = OdeModel("o", {"x": "u - 3"}, inputs=["u"], outputs={"y": "x"}, start={"x": 2.0})
    point = fl.operating_point(model, {"u": 3.0})
    regulator = control.ss([], [], [], [[-1.0]], H, inputs=["y"], outputs=["u"])
    start = fl.operating_point(model, {"x": 3.0, "u": 3.0})
    ran = fl.closed_loop(model, regulator, point, stop_time=1.0, start=start)
    np.testing.assert_allclose(at_samples(ran, "x", 10), 2.0 + (1 - H) ** np.arange(10), atol=1e-8)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"delay": -1.0}, fl.UsageError, "0 or more"),
        ({"limits": {"F": (1.0, -1.0)}}, fl.UsageError, "the first must be the smaller"),
        ({"limits": {"G": (-1.0, 1.0)}}, fl.UnknownNameError, "'G' is not an input that the regulator drives"),
        ({"noise": {"px": -1.0}}, fl.UsageError, "standard deviation"),
        ({"noise": {"q": 1.0}}, fl.UnknownNameError, "the regulator reads"),
    ],
)
def test_wrong_hardware(change: dict[str, object], error: type[Exception], words: str) -> None:
    regulator = control.ss([], [], [], [[-1.0]], H, inputs=["px"], outputs=["F"])
    with pytest.raises(error, match=words):
        fl.closed_loop(oscillator(), regulator, stop_time=1.0, **change)  # type: ignore[arg-type]


def test_wrong_regulators() -> None:
    with pytest.raises(fl.UsageError, match="continuous: sample it first"):
        fl.closed_loop(oscillator(), control.ss([], [], [], [[1.0]], inputs=["px"], outputs=["F"]), stop_time=1.0)
    wrong = control.ss([], [], [], [[1.0]], H, inputs=["q"], outputs=["F"])
    with pytest.raises(fl.UnknownNameError, match="'q'"):
        fl.closed_loop(oscillator(), wrong, stop_time=1.0)
    with pytest.raises(fl.UsageError, match=r"needs \(1, 2\)"):
        design.state_feedback(fl.linearize(oscillator()), np.ones((1, 3)), H)


@pytest.mark.parametrize("seen", ["px", "a"])
def test_a_kalman_regulator_is_a_linear_model(seen: str) -> None:
    """Its loop is that of the regulator, also where the sensor feels the input at once (a = F - x - 0.3 v)."""
    model = OdeModel(
        "o", {"x": "v", "v": "F - x - 0.3*v"}, inputs=["F"], outputs={"px": "x", "a": "F - x - 0.3*v"}, start={"x": 1.0}
    )
    origin = fl.operating_point(model, {"x": 0.0})
    lin = fl.linearize(model, origin, outputs=[seen])
    kf = design.kalman_filter(
        lin, H, process={"F": 1e-3 if seen == "a" else 0.1}, measured={seen: 1e-4}, hold_noise=True
    )
    K, _, _ = control.dlqr(kf.sampled.A, kf.sampled.B, 10 * np.eye(2), np.eye(1))
    regulator = design.KalmanRegulator(kf, K)
    linear = regulator.linear_model()
    assert linear.states.names[:2] == ("predicted.x", "predicted.v")
    assert linear.states.names[2:] == (("before.F",) if seen == "a" else ())
    start = fl.operating_point(model, {"x": 1.0})
    stop = 3.0 if seen == "px" else 20.0  # an accelerometer that also sees the noise tells positions slowly
    one, two = (fl.closed_loop(model, r, origin, stop_time=stop, start=start) for r in (regulator, linear))
    np.testing.assert_allclose(two.states, one.states, atol=1e-9)
    if seen == "px":
        loop = control.feedback(kf.sampled.to_control(), linear.to_control(), sign=1)
        assert np.abs(loop.poles()).max() < 1.0
    assert np.abs(two["x"][-5:]).max() < 0.05
