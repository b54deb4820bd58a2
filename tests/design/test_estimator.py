"""Filters on nonlinear models: against the Riccati equation, the manifold, and noisy motions of the same plant.

Longer than other files: every kind of filter goes through the same plants, which stand at the top.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import control
import numpy as np
import pytest
import sympy
from scipy import stats

import fmilin as fl
from fmilin import design
from fmilin.fmi.client.process import HostProcess
from fmilin.fmi.write import build_fmu
from fmilin.models import LagrangeModel, OdeModel
from fmilin.systems import bicycle, cartesian_pendulum, furuta_pendulum, slider_crank
from tests.composition.plants import oscillator
from tests.design.noisy import noisy_motion

KINDS = ("ekf", "iekf", "ukf")
SAMPLE = 0.02


def pendulum_filter(kind: str = "ekf") -> design.Estimator:
    return fl.design.estimator(
        cartesian_pendulum(angle=0.3),
        outputs=["x", "vy"],
        process_noise={"F": 1e-2},
        measurement_noise={"x": 1e-4, "vy": 1e-2},
        sample_time=SAMPLE,
        kind=kind,
        initial_covariance={"x": 2.5e-3, "vx": 0.09},
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_linear_model_gives_the_solution_of_the_riccati_equation(kind: str) -> None:
    model = oscillator()
    noise = {"process": {"F": 0.2}, "measured": {"px": 1e-3}}
    rest = fl.operating_point(model, {"x": 0.0})
    steady = fl.design.kalman_filter(
        fl.linearize(model, rest, outputs=["px"]), 0.05, process=noise["process"], measured=noise["measured"]
    )
    kf = fl.design.estimator(
        model,
        outputs=["px"],
        process_noise=noise["process"],
        measurement_noise=noise["measured"],
        sample_time=0.05,
        kind=kind,
        point=rest,
        initial_covariance=np.eye(2),
        substeps=4,
    )
    for _ in range(150):
        kf.step([0.0], [0.0])
    np.testing.assert_allclose(kf.covariance, steady.covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kf.x, 0.0, atol=1e-12)
    kf.step([0.0], [1.0])
    np.testing.assert_allclose(kf.x, steady.gain[:, 0], rtol=1e-9)
    assert kf.nis == pytest.approx(1.0 / steady.innovation_covariance[0, 0], rel=1e-9)


def test_noise_of_several_inputs_is_independent() -> None:
    """Of a falling point with noise through two forces: the covariance of a sample, by Van Loan."""
    model = OdeModel("point", {"x": "a", "a": "F - x", "y": "b", "b": "2*G - y"}, inputs=["F", "G"])
    kf = fl.design.estimator(
        model,
        outputs=["x", "y"],
        process_noise={"F": 0.3, "G": 0.1},
        measurement_noise={"x": 1.0, "y": 1.0},
        sample_time=0.1,
        initial_covariance=np.zeros((4, 4)) + 1e-300 * np.eye(4),
    )
    kf.predict([0.0, 0.0])
    lin = fl.linearize(model)
    expected = design.sampled_noise(lin.A, lin.B, np.diag([0.3, 0.1]), 0.1)
    np.testing.assert_allclose(kf.covariance, expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_estimates_of_a_pendulum_stay_on_the_circle_and_are_as_good_as_they_say(kind: str) -> None:
    """The error squared over its covariance is chi-squared with P degrees of freedom, on average over runs."""
    model, rng, runs, K = cartesian_pendulum(angle=0.3), np.random.default_rng(3), 12, 25
    kf, errors, innovations, off = pendulum_filter(kind), [], [], 0.0
    start = fl.operating_point(model)
    for _ in range(runs):
        x, vx = (start.states[0] + 0.05 * rng.standard_normal(), 0.3 * rng.standard_normal())
        point = fl.operating_point(model, {"x": x, "vx": vx})
        u, y, states = noisy_motion(model, point, K, SAMPLE, {"F": 1e-2}, {"x": 1e-4, "vy": 1e-2}, seed=rng)
        kf.reset()
        for k in range(K):
            kf.step(u[k], y[k])
            innovations.append(kf.nis)
            off = max(off, abs(kf.x[0] ** 2 + kf.x[1] ** 2 - 1), abs(kf.x[:2] @ kf.x[2:]))
            if k >= 5:
                errors.append(fl.design.nees(kf, states[k]))
    assert off < 1e-12
    assert (
        stats.chi2.ppf(0.005, 2 * len(innovations)) < np.sum(innovations) < stats.chi2.ppf(0.995, 2 * len(innovations))
    )
    assert 1.4 < np.mean(errors) < 2.7  # of P = 2; neighbours in time are correlated


def test_a_mass_a_length_in_a_constraint_and_a_bias_are_estimated_beside_the_state() -> None:
    model, rng = cartesian_pendulum(angle=0.5), np.random.default_rng(1)

    def force(t: float) -> float:
        return 5 * math.sin(2 * t)

    kf = fl.design.estimator(
        model,
        outputs=["x", "y"],
        augment=["m", "L", "x.bias"],
        process_noise={"F": 1e-3, "x.bias": 1e-7},
        measurement_noise={"x": 1e-4, "y": 1e-4},
        sample_time=SAMPLE,
        initial_covariance={"x": 1e-2, "vx": 1e-2, "m": 0.1, "L": 0.01, "x.bias": 0.01},
    )
    assert {"m", "L", "x.bias"} <= set(kf.states.names)
    other = cartesian_pendulum(angle=0.5, length=1.1).with_parameters({"m": 1.4})
    truth = fl.simulate(other, stop_time=8.0, step=SAMPLE, inputs={"F": force})
    for k in range(1, 401):
        kf.step([force((k - 0.5) * SAMPLE)], truth.states[k, :2] + [0.2, 0.0] + 1e-2 * rng.standard_normal(2))
    x, y, _, _, m, length, bias = kf.x
    assert abs(np.hypot(x, y) - length) < 1e-12
    true = np.array([*truth.states[-1], 1.4, 1.1, 0.2])
    assert (np.abs(kf.x - true) < 4 * kf.deviations).all()
    assert kf.deviations[4:].max() < 0.02
    assert fl.design.nees(kf, true) < stats.chi2.ppf(0.999, 5)
    assert (m, length, bias) == pytest.approx((1.4, 1.1, 0.2), abs=0.05)


def test_an_fmu_gives_what_its_equations_give(tmp_path: Path) -> None:
    model = cartesian_pendulum(angle=0.5)
    truth = fl.simulate(model, stop_time=0.4, step=SAMPLE)
    build_fmu(model, tmp_path / "pendulum.fmu")
    estimates = []
    with fl.load(str(tmp_path / "pendulum.fmu")) as fmu:
        for source in (model, fmu):
            kf = fl.design.estimator(
                source,
                outputs=["x"],
                augment=["m"],
                process_noise={"F": 1e-3},
                measurement_noise={"x": 1e-4},
                sample_time=SAMPLE,
                initial_covariance={"x": 1e-2, "vx": 1e-2, "m": 0.1},
            )
            for k in range(1, 11):
                kf.step([1.0], [truth.states[k, 0]])
            estimates.append(np.concatenate((kf.x, kf.deviations)))
    np.testing.assert_allclose(estimates[0], estimates[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("choices", "error", "words"),
    [
        ({"kind": "pf"}, fl.UsageError, "'pf' is not a kind of estimator: use ekf"),
        ({"sample_time": -0.1}, fl.UsageError, "A sample time of -0.1 s is not possible"),
        ({"lag": -1}, fl.UsageError, "lag=-1 samples"),
        ({"substeps": 0}, fl.UsageError, "substeps=0: give whole numbers"),
        ({"outputs": [], "measurement_noise": {}}, fl.UsageError, "name the measured outputs of 'cartesian_pendulum'"),
        ({"process_noise": {"F": "1e-3"}}, fl.UsageError, "'F' is '1e-3': a number is needed"),
        ({"sample_time": "0.1"}, fl.UsageError, "'sample_time' is '0.1': a number is needed"),
        ({"limits": {"x": 1.0}}, fl.UsageError, "'x' is of the type 'float', and should be of the type tuple"),
        ({"process_noise": {"F": -1.0}}, fl.UsageError, "process noise of 'F' is -1"),
        ({"process_noise": {"G": 1.0}}, fl.UnknownNameError, "'G' is not an input, or a parameter or bias"),
        (
            {"process_noise": np.array([[-1.0]])},
            fl.UsageError,
            "is not positive definite: its smallest eigenvalue is -1",
        ),
        ({"measurement_noise": {"x": 0.0}}, fl.UsageError, "variance of 'x' is 0"),
        ({"measurement_noise": {}}, fl.UsageError, "No variance is given for x"),
        ({"measurement_noise": np.zeros((1, 1))}, fl.UsageError, "singular: every output needs measurement noise"),
        ({"measurement_noise": np.eye(2)}, fl.UsageError, "has the shape"),
        ({"initial_covariance": {"x": 1.0}}, fl.UsageError, "do not determine every direction: give one for each of"),
        ({"initial_covariance": {"x": 1.0, "vx": 0.0}}, fl.UsageError, "initial variance of 'vx' is 0"),
        ({"augment": ["mass"]}, fl.UnknownNameError, "'mass' is not a parameter of 'cartesian_pendulum'"),
        ({"augment": ["vy.bias"]}, fl.UnknownNameError, "'vy' is not a measured output, which could have a bias"),
        ({"augment": ["m", "m"]}, fl.UsageError, "named twice"),
        ({"augment": ["m"], "initial_covariance": None}, fl.NumericalError, "No steady covariance exists"),
    ],
)
def test_what_makes_no_filter(choices: dict[str, object], error: type[Exception], words: str) -> None:
    given: dict[str, object] = {
        "outputs": ["x"],
        "process_noise": {"F": 1e-3},
        "measurement_noise": {"x": 1e-4},
        "sample_time": SAMPLE,
        "initial_covariance": {"x": 1e-2, "vx": 1e-2},
    }
    with pytest.raises(error, match=words):
        fl.design.estimator(cartesian_pendulum(angle=0.5), **(given | choices))  # type: ignore[arg-type]


def recorded(samples: int = 100) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    model = cartesian_pendulum(angle=0.3)
    return noisy_motion(model, fl.operating_point(model), samples, SAMPLE, {"F": 1e-2}, {"x": 1e-4, "vy": 1e-2})


def test_late_measurements_lead_to_the_same_estimate() -> None:
    _, y, _ = recorded(30)
    at_once, later = pendulum_filter(), pendulum_filter()
    later.settings = replace(later.settings, lag=5)
    later.reset()
    at_once.compile()  # both from the start, or neither where there is no compiler: equal to the last bit
    later.compile()
    for k in range(30):
        at_once.step([0.0], y[k])
        later.step([0.0], {"vy": y[k, 1]})
        if k >= 4:
            later.late(4, {"x": y[k - 4, 0]})
    for k in (3, 2, 1, 0):
        later.late(k, {"x": y[29 - k, 0]})
    np.testing.assert_array_equal(later.x, at_once.x)
    np.testing.assert_array_equal(later.covariance, at_once.covariance)
    with pytest.raises(fl.UsageError, match="comes 5 samples late, and only 4 are stored"):
        later.late(5, {"x": 0.0})


def test_missing_measurements_are_no_matter_and_those_that_are_none_are_told() -> None:
    kf = pendulum_filter()
    kf.settings = replace(kf.settings, ends=np.array([[-0.9, -np.inf], [0.9, np.inf]]))
    kf.step([0.0])
    kf.step([0.0], [None, 0.0])
    kf.step([0.0], {"x": None})
    assert not kf.remarks
    kf.step([0.0], [float("nan"), 0.0])
    kf.step([0.0], np.array([0.95, np.nan]))
    assert [r.kind for r in kf.remarks] == ["skipped"]
    assert "2 of x, 1 of vy" in kf.remarks[0].message
    assert np.isfinite(kf.x).all()
    with pytest.raises(fl.UsageError, match="2 numbers are needed, one for each of x, vy"):
        kf.step([0.0], [1.0])
    with pytest.raises(fl.UsageError, match="much was given, and 2 numbers"):
        kf.step([0.0], "much")  # type: ignore[arg-type]
    with pytest.raises(fl.UsageError, match="must be finite numbers"):
        kf.step([np.nan], [0.0, 0.0])


def test_a_filter_that_has_lost_the_state_says_so_until_it_is_reset() -> None:
    _, y, _ = recorded(60)
    kf = pendulum_filter()
    for row in y:
        kf.step([0.0], row)
    assert not kf.remarks
    for _ in range(10):
        kf.step([0.0], [-0.5, 2.0])
    assert [r.kind for r in kf.remarks] == ["diverging"]
    assert "diverges" in repr(kf)
    kf.reset(fl.operating_point(cartesian_pendulum(angle=0.3), {"x": -0.5, "vx": 0.1}))
    assert not kf.remarks
    assert kf.x[0] == -0.5


def test_modes_that_nothing_observes_are_named_and_refused_where_they_grow() -> None:
    (remark,) = fl.design.estimator(
        furuta_pendulum(),
        outputs=["arm.v"],
        process_noise={"torque": 1e-3},
        measurement_noise={"arm.v": 1e-4},
        sample_time=0.01,
        initial_covariance=np.eye(4),
    ).remarks
    assert remark.kind == "unobserved"
    assert "not observable from arm.v at the point: it moves arm.q (1)" in remark.message
    growing = OdeModel("two", {"a": "0.5*a", "b": "-b+u"}, inputs=["u"], outputs={"y": "b"})
    with pytest.raises(fl.NumericalError, match=r"s = 0\.5 is not observable from y .* moves a"):
        fl.design.estimator(
            growing,
            process_noise={"u": 1.0},
            measurement_noise={"y": 1.0},
            sample_time=0.1,
            initial_covariance=np.eye(2),
        )


def test_recorded_data_are_filtered_and_judged() -> None:
    u, y, states = recorded()
    result = fl.design.filtered(pendulum_filter(), u, y)
    assert result.states.shape == states.shape
    mean, low, high = result.mean_nis
    assert low < mean < high
    assert min(result.whiteness().values()) > 0.01
    assert np.mean(np.abs(result.states - states)[10:] < 2 * result.deviations[10:]) > 0.8
    assert "inside" in repr(result)
    assert len(result.plot(states).axes) == 6
    doubted = fl.design.filtered(pendulum_filter(), u, y + 0.05 * np.sin(np.arange(len(y)))[:, None])
    assert "outside" in repr(doubted)
    assert min(doubted.whiteness().values()) < 1e-6
    with pytest.raises(fl.UsageError, match="are needed"):
        fl.design.filtered(pendulum_filter(), u, y[:, :1])
    for wrong in (states[0, :2], np.full(4, np.nan)):
        with pytest.raises(fl.UsageError, match="true states have the shape"):
            fl.design.nees(pendulum_filter(), wrong)


def test_noise_is_estimated_from_data() -> None:
    u, y, _ = recorded(150)

    def make(noise: Mapping[str, float]) -> design.Estimator:
        kf = pendulum_filter()
        kf.settings = replace(kf.settings, R=np.diag([noise["x"], noise["vy"]]))
        kf.R = kf.settings.R
        return kf

    noise = fl.design.tuned_noise(make, {"x": 1e-2, "vy": 1e-3}, u, y, evaluations=40)
    assert noise["x"] == pytest.approx(1e-4, rel=0.5)
    assert noise["vy"] == pytest.approx(1e-2, rel=0.5)
    with pytest.raises(fl.UsageError, match="guess of 'x' is 0"):
        fl.design.tuned_noise(make, {"x": 0.0}, u, y)


def test_a_regulator_on_estimates_balances_the_nonlinear_plant() -> None:
    model, Ts = furuta_pendulum(), 0.01
    lin = fl.linearize(model)
    sampled = control.c2d(lin.to_control(), Ts)
    K, _, _ = control.dlqr(sampled.A, sampled.B, np.diag([1, 1, 0.1, 0.1]), [[10.0]])
    kf = fl.design.estimator(
        model,
        outputs=["arm.q", "pendulum.q"],
        process_noise={"torque": 1e-6},
        measurement_noise={"arm.q": 1e-6, "pendulum.q": 1e-6},
        sample_time=Ts,
    )
    regulator = fl.design.EstimatorRegulator(kf, fl.design.state_feedback(lin, K, Ts))
    start = fl.operating_point(model, {"pendulum.q": np.pi - 0.1})
    noise = {"arm.q": 1e-3, "pendulum.q": 1e-3}
    motion = fl.closed_loop(model, regulator, start=start, stop_time=3.0, noise=noise)
    assert abs(motion["pendulum.q"][-1] - np.pi) < 0.02
    with pytest.raises(fl.UsageError, match=r"law runs every 0\.02 s and the filter every 0\.01 s"):
        fl.design.EstimatorRegulator(kf, fl.design.state_feedback(lin, K, 0.02))


def test_a_moving_horizon_on_a_linear_model_is_the_kalman_filter_of_held_noise() -> None:
    model = oscillator()
    rest = fl.operating_point(model, {"x": 0.0})
    lin = fl.linearize(model, rest, outputs=["px"])
    steady = fl.design.kalman_filter(lin, 0.05, process={"F": 4.0}, measured={"px": 1e-3}, hold_noise=True)
    kf = fl.design.estimator(
        model,
        outputs=["px"],
        process_noise={"F": 4.0 * 0.05},
        measurement_noise={"px": 1e-3},
        sample_time=0.05,
        kind="mhe",
        point=rest,
        initial_covariance=steady.covariance,
        horizon=3,
        substeps=4,
    )
    y, x = 0.03 * np.random.default_rng(0).standard_normal(3), np.zeros(2)
    for value in y:
        x = steady.correct(steady.predict(x, np.zeros(1)), np.zeros(1), np.array([value]))[0]
        kf.step([0.0], [value])
    np.testing.assert_allclose(kf.x, x, rtol=1e-6, atol=1e-9)


def test_a_moving_horizon_keeps_constraints_and_bounds() -> None:
    model = cartesian_pendulum(angle=0.3)
    choices: dict[str, Any] = {
        "outputs": ["x", "vy"],
        "process_noise": {"F": 1e-2},
        "measurement_noise": {"x": 1e-4, "vy": 1e-2},
        "sample_time": SAMPLE,
        "initial_covariance": {"x": 2.5e-3, "vx": 0.09},
    }
    u, y, states = recorded(40)
    y[::5, 0] = np.nan
    free = fl.design.estimator(model, kind="mhe", horizon=5, **choices)
    bounded = fl.design.estimator(model, kind="mhe", horizon=5, bounds={"vx": (-0.5, 0.5)}, **choices)
    extended = fl.design.estimator(model, **choices)
    for k in range(40):
        came = [None if np.isnan(v) else v for v in y[k]]
        for kf in (free, bounded, extended):
            kf.step(u[k], came)
            assert abs(kf.x[0] ** 2 + kf.x[1] ** 2 - 1) < 1e-12
        assert abs(bounded.x[2]) < 0.5 + 1e-6
    assert np.abs(states[:, 2]).max() > 0.6
    np.testing.assert_allclose(free.x, extended.x, atol=0.02)
    assert fl.design.nees(free, states[-1]) < stats.chi2.ppf(0.999, 2)
    free.reset()
    assert free.x is free.start.x
    for wrong, words in (
        ({"kind": "mhe", "lag": 3}, "leave out lag="),
        ({"kind": "mhe", "horizon": 0}, "horizon must be at least 1 sample, not 0"),
        ({"kind": "mhe", "bounds": {"x": (1.0, -1.0)}}, "the first must be the smaller one"),
        ({"bounds": {"x": (-1.0, 1.0)}}, "require kind='mhe', not 'ekf'"),
    ):
        with pytest.raises(fl.UsageError, match=words):
            fl.design.estimator(model, **choices, **wrong)


@pytest.mark.parametrize("source", ["mechanism", "Kane", "connected"])
def test_other_sources_stay_on_their_manifolds(source: str) -> None:
    if source == "connected":
        members: dict[str, object] = {"a": oscillator(), "b": oscillator(mass=2.0)}
        model: fl.Model = fl.connect(members, [("a.px", "b.F")], inputs={"F": "a.F"}, outputs={"y": "b.px"})
    else:
        model = slider_crank() if source == "mechanism" else bicycle()
    output, augment = model.outputs.names[0], ["b.m"] if source == "connected" else []
    kf = fl.design.estimator(
        model,
        outputs=[output],
        augment=augment,
        process_noise={model.inputs.names[0]: 1e-3},
        measurement_noise={output: 1e-4},
        sample_time=0.01,
        initial_covariance=dict.fromkeys([*model.states.names, *augment], 1e-2),
    )
    truth = fl.simulate(kf.model, stop_time=0.1, step=0.01) if not augment else None
    for k in range(1, 11):
        kf.step(model.start.inputs, [1e-3 + (truth.outputs[k, 0] if truth is not None else 0.5)])
        h = kf.motion.evaluator.surface(kf.time, kf.x, model.start.inputs)[0]
        assert np.abs(h).max(initial=0.0) < 1e-9
    assert np.isfinite(kf.x).all()
    assert np.linalg.eigvalsh(kf.covariance)[0] > 0


def test_models_that_no_filter_follows_are_refused(tmp_path: Path) -> None:
    noise: dict[str, Any] = {"sample_time": 0.01, "process_noise": {}, "initial_covariance": np.eye(2)}
    build_fmu(oscillator(), tmp_path / "oscillator.fmu")
    with (
        fl.load(str(tmp_path / "oscillator.fmu"), interface="cs") as stepped,
        pytest.raises(fl.UsageError, match="brings its own solver, and its steps have no derivatives"),
    ):
        fl.design.estimator(stepped, outputs=["px"], measurement_noise={"px": 1.0}, **noise)
    x, v, s = sympy.symbols("x v s")
    driven = LagrangeModel("driven", {x: v}, [[1]], [0], constraints=[x - s], inputs=[s], outputs={"y": x})
    with pytest.raises(fl.UsageError, match=r"inputs s, der\(s\) prescribe motions"):
        fl.design.estimator(driven, measurement_noise={"y": 1.0}, **noise)


def test_events_are_not_carried_out_which_is_told(zoo: Callable[[str], Path]) -> None:
    with fl.load(zoo("bounces")) as ball:
        states = dict.fromkeys(ball.states.names, 1e-2)
        kf = fl.design.estimator(
            ball,
            outputs=[ball.states.names[0]],
            process_noise={},
            measurement_noise={ball.states.names[0]: 1e-4},
            sample_time=0.01,
            initial_covariance=states,
        )
    assert [r.kind for r in kf.remarks] == ["held"]


def step_on_an_fmu(tmp_path: Path, *, derivatives: bool = True, **choices: Any) -> tuple[list[design.Estimator], float]:
    """Return a filter on an FMU, and on its equations, after 11 steps, and the messages of a step of the first."""
    model = cartesian_pendulum(angle=0.5)
    build_fmu(model, tmp_path / "pendulum.fmu", directional_derivatives=derivatives)
    messages = []
    send = HostProcess._send

    def counted(self: HostProcess, message: bytes) -> None:
        messages.append(message)
        send(self, message)

    options: dict[str, Any] = {
        "outputs": ["x"],
        "process_noise": {"F": 1e-3},
        "initial_covariance": {"x": 1e-2, "vx": 1e-2},
        "sample_time": SAMPLE,
    }
    options |= choices
    noise = dict.fromkeys(options["outputs"], 1e-4)
    with fl.load(str(tmp_path / "pendulum.fmu")) as fmu:
        filters = [design.estimator(source, measurement_noise=noise, **options) for source in (fmu, model)]
        at = filters[1].model.evaluate(0.0, filters[1].x, filters[1].settings.inputs).outputs
        y = at + 1e-3 * np.sin(np.arange(12))[:, None]
        for kf in filters:
            kf.step([0.0], y[0])
        with patch.object(HostProcess, "_send", counted):
            for row in y[1:]:
                filters[0].step([0.0], row)
        for row in y[1:]:
            filters[1].step([0.0], row)
    return filters, len(messages) / 11


@pytest.mark.parametrize(
    ("kind", "derivatives", "most"),
    [("ekf", True, 10), ("iekf", True, 15), ("ukf", True, 20), ("ekf", False, 12), ("ukf", False, 21)],
)
def test_a_step_on_an_fmu_is_few_messages(kind: str, derivatives: bool, most: int, tmp_path: Path) -> None:
    """Values and derivatives at a point are one message, or its values and all differences; so are sigma points."""
    filters, messages = step_on_an_fmu(tmp_path, derivatives=derivatives, kind=kind)
    assert messages <= most
    exact = 1e-12 if derivatives else 1e-7  # errors of differences
    np.testing.assert_allclose(filters[0].x, filters[1].x, rtol=exact, atol=exact)
    np.testing.assert_allclose(filters[0].covariance, filters[1].covariance, rtol=10 * exact, atol=1e-14)


@pytest.mark.parametrize("kind", ["ekf", "ukf"])
@pytest.mark.parametrize("further", ["bias", "held noise"])
def test_a_bias_and_held_noise_add_no_messages_to_a_step_on_an_fmu(further: str, kind: str, tmp_path: Path) -> None:
    choices: dict[str, Any] = {
        "bias": {
            "outputs": ["x", "y"],
            "augment": ["y.bias"],
            "process_noise": {"F": 1e-3, "y.bias": 1e-6},
            "initial_covariance": {"x": 1e-2, "vx": 1e-2, "y.bias": 1e-2},
        },
        "held noise": {"outputs": ["x", "der(vx)"], "hold_noise": True},
    }
    filters, messages = step_on_an_fmu(tmp_path, kind=kind, **choices[further])
    assert messages <= (11 if kind == "ekf" else 21)
    np.testing.assert_allclose(filters[0].x, filters[1].x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(filters[0].covariance, filters[1].covariance, rtol=1e-11, atol=1e-14)
