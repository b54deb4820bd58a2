"""Measured angles that wrap: the same estimates as with the angle itself, through all kinds of filters and loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import control
import numpy as np
import pytest
from scipy import stats

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.systems import cartesian_pendulum
from tests.design.wrapping import (
    DEGREES,
    PLAIN,
    WRAPPED,
    WRAPPED_DEGREES,
    estimator,
    linear_rotor,
    measured,
    measured_degrees,
    pendulum,
    rotor_filter,
)


@pytest.mark.parametrize(
    ("output", "turn"),
    [
        (WRAPPED, 2 * np.pi),
        ("-atan2(sin(theta), cos(theta))/(2*pi) + 0.25", 1.0),
        ("scale*atan2(sin(theta), cos(theta)) + 3*w", 360.0),
        ("atan2(sin(theta), cos(theta)) - 2*atan2(w, u + 3)", 2 * np.pi),
        ("atan2(sin(theta), cos(theta)) + atan2(w, u + 3)*sqrt(2)", None),
        ("sin(atan2(sin(theta), cos(theta)))", None),
        ("theta*180/pi", None),
        ("atan2(1, 2)", None),
        ("theta", None),
    ],
)
def test_equations_tell_by_how_much_an_output_jumps(output: str, turn: float | None) -> None:
    model = OdeModel(
        "m", {"theta": "w", "w": "u"}, inputs=["u"], outputs={"a": output}, parameters={"scale": np.degrees(1.0)}
    )
    assert model.wrapped_outputs.turns[0] == pytest.approx(turn or 0.0, rel=1e-12)
    assert (model.output_turns[0] is None) == (turn is None)
    assert fl.linearize(model).outputs[0].turn == model.output_turns[0]


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".json", ".fmu"])
def test_files_of_linear_models_keep_the_turn(suffix: str, tmp_path: Path) -> None:
    linear_rotor(WRAPPED_DEGREES).save(tmp_path / f"rotor{suffix}")
    assert fl.LinearModel.load(tmp_path / f"rotor{suffix}").outputs.turns.tolist() == [360.0]


@pytest.mark.parametrize(("kind", "samples"), [("ekf", 150), ("iekf", 150), ("ukf", 150), ("mhe", 40)])
def test_estimates_are_those_with_the_angle_itself(kind: str, samples: int) -> None:
    y, wrapped = measured(samples)
    assert (np.abs(np.diff(wrapped)) > np.pi).any()
    of_angle, of_wrapped = estimator(pendulum(PLAIN), kind), estimator(pendulum(WRAPPED), kind)
    for k in range(samples):
        expected = of_angle.step([0.0], [y[k]])
        np.testing.assert_allclose(of_wrapped.step([0.0], [wrapped[k]]), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(of_wrapped.innovations, of_angle.innovations, atol=1e-12)
    assert of_wrapped.log_likelihood == pytest.approx(of_angle.log_likelihood, rel=1e-12)
    assert of_wrapped.wrapped_outputs == {"a": 2 * np.pi}
    assert of_angle.wrapped_outputs == {}


def test_a_measurement_on_the_other_side_of_half_a_turn_moves_nothing_far() -> None:
    kf = estimator(pendulum(WRAPPED, np.pi, 0.0))
    theta, w = kf.step([0.0], [-3.13])
    expected = estimator(pendulum(PLAIN, np.pi, 0.0)).step([0.0], [2 * np.pi - 3.13])
    np.testing.assert_allclose([theta, w], expected, atol=1e-12)


def test_nothing_is_taken_modulo_a_turn_where_the_user_says_so() -> None:
    kf = estimator(pendulum(WRAPPED, np.pi, 0.0), wrapped_outputs=[])
    kf.step([0.0], [-3.13])
    assert kf.innovations[0, 0] == pytest.approx(-3.13 - np.pi)
    assert kf.wrapped_outputs == {}


def test_a_user_names_what_wraps_where_nothing_tells_it() -> None:
    kf = estimator(pendulum(DEGREES, np.pi, 0.0), wrapped_outputs={"a": 360.0}, measurement_noise={"a": 9.0})
    kf.step([0.0], [-179.0])
    assert kf.innovations[0, 0] == pytest.approx(1.0)
    with pytest.raises(fl.UsageError, match=r"wrapped_outputs=\{'a': 360.0\}"):
        estimator(pendulum(DEGREES), wrapped_outputs=["a"])
    with pytest.raises(fl.UsageError, match="must be finite and positive"):
        estimator(pendulum(DEGREES), wrapped_outputs={"a": 0.0})


def test_nis_and_nees_stay_in_their_bands_at_half_a_turn() -> None:
    """Upright, where half of all measurements are on the other side: sums of chi-squared variables."""
    linear, plain = (fl.linearize(pendulum(output, np.pi, 0.0)) for output in (WRAPPED, PLAIN))
    assert linear.outputs.turns.tolist() == [2 * np.pi]
    choices: dict[str, Any] = {"process": {"u": 1e-2}, "measured": {"a": 2.5e-3}}
    kf = fl.design.kalman_filter(linear, 0.01, **choices)
    rng, K, P = np.random.default_rng(3), 400, 2
    deviation = np.linalg.cholesky(kf.predicted) @ rng.standard_normal(P)
    Phi, noise = kf.sampled.A - 0.0, np.linalg.cholesky(kf.Q)
    gain = control.dlqr(kf.sampled.A, kf.sampled.B, np.eye(2), np.eye(1))[0]  # the true motion stays upright
    states, inputs, y = np.empty((K, P)), np.zeros((K, 1)), np.empty((K, 1))
    for k in range(K):
        states[k] = deviation
        y[k] = np.pi + deviation[0] + 0.05 * rng.standard_normal()
        inputs[k] = -gain @ deviation
        deviation = Phi @ deviation + kf.sampled.B @ inputs[k] + noise @ rng.standard_normal(P)
    wrapped = np.angle(np.exp(1j * y))
    assert (wrapped < 0).sum() > K / 4
    estimates = kf.run(inputs, wrapped)
    same = fl.design.kalman_filter(plain, 0.01, **choices).run(inputs, y)
    np.testing.assert_allclose(estimates.states, same.states, atol=1e-12)
    nis = (estimates.innovations**2).sum() / kf.innovation_covariance[0, 0]
    nees = kf.nees(estimates, np.array([np.pi, 0.0]) + states)
    assert stats.chi2.ppf(0.025, K) < nis < stats.chi2.ppf(0.975, K)
    # Errors of one sample remain in the next ones: one sample of every 50 is nearly independent.
    sparse = nees[25::50]
    assert stats.chi2.ppf(0.025, P * len(sparse)) < sparse.sum() < stats.chi2.ppf(0.975, P * len(sparse))


def test_a_linear_filter_of_degrees_follows_several_turns() -> None:
    y, wrapped = measured_degrees(400)
    inputs = np.zeros((400, 1))
    expected = rotor_filter(DEGREES).run(inputs, y[:, None])
    estimates = rotor_filter(WRAPPED_DEGREES).run(inputs, wrapped[:, None])
    np.testing.assert_allclose(estimates.states, expected.states, atol=1e-12)
    assert estimates.remarks == ()


def upright_loop(output: str, law: str) -> fl.Trajectory:
    """A pendulum that is kept upright from a start on the other side of half a turn."""
    model = pendulum(output, np.pi, 0.0)
    linear = fl.linearize(model)
    kf = fl.design.kalman_filter(linear, 0.01, process={"u": 1e-2}, measured={"a": 1e-6})
    gain = control.dlqr(kf.sampled.A, kf.sampled.B, np.eye(2), np.eye(1))[0]
    regulator: Any = fl.design.KalmanRegulator(kf, gain)
    if law == "linear model":
        regulator = regulator.linear_model()
    elif law == "python-control":
        regulator = regulator.linear_model().to_control()
    elif law == "estimator":
        states = fl.design.state_feedback(linear, gain, 0.01)
        regulator = fl.design.EstimatorRegulator(
            estimator(model, measurement_noise={"a": 1e-6}, initial_covariance={"theta": 1e-2, "w": 1e-2}), states
        )
    start = pendulum(output, np.pi + 0.02, 0.0).start
    return fl.closed_loop(model, regulator, model.start, stop_time=0.8, start=start, noise={"a": 1e-3}, seed=2)


@pytest.mark.parametrize("law", ["LQG", "linear model", "python-control", "estimator"])
def test_a_loop_at_half_a_turn_is_that_with_the_angle_itself(law: str) -> None:
    loop, expected = upright_loop(WRAPPED, law), upright_loop(PLAIN, law)
    assert loop["a"].min() < -3
    assert np.abs(loop["theta"] - np.pi).max() < 0.1
    np.testing.assert_allclose(loop.states, expected.states, atol=1e-9)


def test_state_feedback_reads_an_angle_that_wraps() -> None:
    model = cartesian_pendulum(angle=np.pi)
    linear = fl.linearize(model, independent=["angle=atan2(x, -y)"])
    assert linear.states[0].turn == pytest.approx(2 * np.pi)
    gain = np.array([[-40.0, -10.0]])
    law = fl.design.state_feedback(fl.linearize(pendulum(WRAPPED, np.pi, 0.0)), gain, 0.01)
    assert law.answer(0.0, np.array([np.pi + 0.1, 0.0]))[0] == pytest.approx(4.0)
    wrapped = fl.design.state_feedback(linear, gain, 0.01)
    assert wrapped.answer(0.0, np.array([-np.pi + 0.1, 0.0]))[0] == pytest.approx(4.0)


def run_once(parameters: dict[str, float], number: int) -> fl.Trajectory:
    """One run of the pendulum, turning."""
    model = pendulum(WRAPPED, np.pi + parameters["offset"], 8.0)
    return fl.simulate(model, stop_time=0.5, step=0.01)


def test_courses_of_runs_go_on_beyond_half_a_turn() -> None:
    study = fl.design.monte_carlo(run_once, {"offset": (-0.1, 0.1)}, runs=6, signals=["a", "theta"])
    off = study.courses["a"] - study.courses["theta"]
    np.testing.assert_allclose(off, off[0, 0], atol=1e-9)


@pytest.mark.parametrize(
    ("expression", "turn"),
    [
        ("atan2(y, x)", 2 * np.pi),
        ("2*atan2(y, x)", 4 * np.pi),
        ("180/pi*atan2(y, x)", 360.0),
        ("atan2(y, x)/(2*3.141592653589793)", 1.0),
        ("10*x + 0.05*atan2(v, width)", None),  # friction: the second argument is positive
        ("x + atan2(v, 1 + x^2)", None),
        ("10*x + 0.05*atan2(v, x)", None),  # no turn of an angle
        ("atan2(y, x) + width*atan2(x, y)", None),  # two jumps, of which one is no multiple of the other
        ("atan2(y, x) + x*atan2(x, y)", None),
        ("1e-100*atan2(y, x)", None),
    ],
)
def test_only_what_jumps_by_turns_of_an_angle_wraps(expression: str, turn: float | None) -> None:
    rates = {"x": "v", "v": "-x - v + u", "y": "x"}
    start = {"x": 0.3, "y": 0.2}
    model = fl.models.OdeModel(
        "m", rates, inputs=["u"], outputs={"o": expression}, parameters={"width": 0.3}, start=start
    )
    assert fl.linearize(model).outputs[0].turn == (None if turn is None else pytest.approx(turn, rel=1e-12))


def test_an_outlier_does_not_make_an_output_wrap() -> None:
    """One measurement is off by 6 rad; later the shaft is turned to 4 rad, which is no angle of -2.28 rad."""
    signals = fl.models.Labels(units={"position": "rad"})
    model = fl.models.OdeModel(
        "shaft", {"x": "v", "v": "-v + u"}, inputs=["u"], outputs={"position": "x"}, labels=signals
    )
    kf = fl.design.estimator(model, process_noise={"u": 5.0}, measurement_noise={"position": 1e-4}, sample_time=0.1)
    for k in range(80):
        kf.step([0.0], [6.0 if k == 5 else 4.0 if k >= 30 else 0.0])
    assert kf.x[0] == pytest.approx(4.0, abs=0.05)
    assert kf.wrapped_outputs == {}


@pytest.mark.parametrize("wrapped", [5, "theta", {"a": [360]}, {"a": True}, {"a": 0.0}, {"a": np.inf}])
def test_wrong_turns_are_refused_in_words(wrapped: Any) -> None:
    with pytest.raises(fl.UsageError, match=r"wrapped_outputs|The turn of 'a'|^'a' is \[360\]: a number is needed"):
        estimator(pendulum(WRAPPED), wrapped_outputs=wrapped)
