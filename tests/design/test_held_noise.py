"""Estimators with noise that is held over each sample and that a sensor sees at once: accelerometers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import fmilin as fl
from fmilin import design
from fmilin.models import OdeModel, SymbolicConstraint
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum
from tests.design.test_feedthrough import held_filter, held_run, random_system


def equations(linear: fl.LinearModel) -> OdeModel:
    """Return the linear model as a model of equations."""

    def row(coefficients: FloatArray, name: str) -> str:
        return " + ".join(f"({value:.17g})*{name}{j}" for j, value in enumerate(coefficients))

    rates = {f"x{i}": f"{row(a, 'x')} + {row(b, 'u')}" for i, (a, b) in enumerate(zip(linear.A, linear.B, strict=True))}
    outputs = {
        f"y{i}": f"{row(c, 'x')} + {row(d, 'u')}" for i, (c, d) in enumerate(zip(linear.C, linear.D, strict=True))
    }
    return OdeModel("linear", rates, inputs=linear.inputs.names, outputs=outputs)


@pytest.mark.parametrize("seed", range(10))
def test_on_linear_systems_every_kind_is_the_kalman_filter(seed: int) -> None:
    """Estimates, covariance and NIS of ten systems with feedthrough, after 8 samples from the steady covariance.

    The linear filter's NEES and NIS are in their bands (test_feedthrough); Runge and Kutta's steps leave 1e-6.
    """
    linear, h, W, R = random_system(100 + seed)
    steady = held_filter(linear, h, W, R)
    model = equations(linear)
    noise = (
        dict(zip(linear.inputs.names, W.tolist(), strict=True)),
        dict(zip(linear.outputs.names, R.tolist(), strict=True)),
    )
    inputs, measured, _ = held_run(steady, W, 9, seed)
    S = np.sqrt(np.diag(steady.covariance))
    for kind in ("ekf", "iekf", "ukf", *(["mhe"] if seed < 4 else [])):
        kf = design.estimator(
            model,
            kind=kind,
            process_noise=noise[0],
            measurement_noise=noise[1],
            sample_time=h,
            hold_noise=True,
            horizon=3,
        )
        np.testing.assert_allclose(kf.covariance / np.outer(S, S), steady.covariance / np.outer(S, S), atol=1e-9)
        x = np.zeros(len(linear.A))
        for u, y in zip(inputs[:-1], measured[1:], strict=True):
            x, innovation = steady.correct(steady.predict(x, u), u, y)
            kf.step(u, y)
        np.testing.assert_allclose(kf.x / S, x / S, atol=2e-5)
        np.testing.assert_allclose(kf.covariance / np.outer(S, S), steady.covariance / np.outer(S, S), atol=2e-5)
        nis = innovation @ np.linalg.solve(steady.innovation_covariance, innovation)
        assert kf.nis == pytest.approx(nis, rel=1e-4)
        assert kf.states.names == model.states.names


@pytest.mark.parametrize("kind", ["ekf", "iekf", "ukf"])
def test_a_pendulum_with_an_accelerometer_knows_how_large_its_errors_are(kind: str) -> None:
    """NEES and NIS of 30 runs of 1 s, the force known up to noise that is held, in bands of 99.9 %."""
    model, h, variance, runs = cartesian_pendulum(angle=0.7), 0.05, 0.3, 30
    R = {"x": 1e-4, "der(vx)": 1e-3}
    nees, nis = 0.0, 0.0
    kf = design.estimator(
        model, kind=kind, outputs=list(R), process_noise={"F": variance}, measurement_noise=R, sample_time=h,
        initial_covariance={"x": 1e-6, "vx": 1e-4}, hold_noise=True, substeps=2,
    )  # fmt: skip
    for run in range(runs):
        kf.reset()
        random = np.random.default_rng(run)
        x = kf.x + kf.motion.tangent(0.0, np.append(kf.x, 0.0), np.zeros(1))[:4, :2] @ (
            np.linalg.cholesky(kf.covariance) @ random.standard_normal(2)
        )
        x = kf.motion.on_manifold(0.0, np.append(x, 0.0), np.zeros(1))[:4]
        for k in range(20):
            known = np.array([np.sin(0.3 * k)])
            applied = known + np.sqrt(variance) * random.standard_normal(1)
            x = kf.motion.later(k * h, np.append(x, 0.0), applied, h)[:4]
            y = kf.model.evaluate((k + 1) * h, x, applied).outputs
            kf.step(known, y + np.sqrt(list(R.values())) * random.standard_normal(2))
        nees += design.nees(kf, x)
        nis += kf.nis
    for total in (nees, nis):
        low, high = (float(stats.chi2.ppf(p, 2 * runs)) for p in (0.0005, 0.9995))
        assert low < total < high


def test_white_noise_through_a_sensor_is_refused_also_where_it_shows_beside_the_point_only() -> None:
    """At x = 0 the sensor x * der(v) does not see the force; beside it it does."""
    model = OdeModel("cart", {"x": "v", "v": "F - x"}, inputs=["F"], outputs={"product": "x*(F - x)", "pos": "x"})
    arguments = {"process_noise": {"F": 1.0}, "sample_time": 0.1, "initial_covariance": {"x": 1.0, "v": 1.0}}
    with pytest.raises(fl.UsageError, match=r"White process noise through 'F' reaches the output 'product' at once"):
        design.estimator(model, measurement_noise={"product": 1.0, "pos": 1.0}, **arguments)  # type: ignore[arg-type]
    for more in ({"outputs": ["pos"]}, {"outputs": ["product"], "hold_noise": True}):
        measured = dict.fromkeys(more["outputs"], 1.0)  # type: ignore[call-overload]
        kf = design.estimator(model, measurement_noise=measured, **arguments, **more)  # type: ignore[arg-type]
        assert np.isfinite(kf.step([0.1], [0.2])).all()


@pytest.mark.parametrize("h", [np.pi, 2 * np.pi])
def test_no_steady_covariance_exists_where_a_mode_is_observed_by_rounding_only(h: float) -> None:
    model = OdeModel("oscillator", {"x": "v", "v": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    with pytest.raises(fl.NumericalError, match=r"not observable from y beyond rounding.*moves v.*initial_covariance="):
        design.estimator(model, process_noise={"u": 1.0}, measurement_noise={"y": 1.0}, sample_time=h)


def test_a_second_measurement_at_the_same_instant_sees_the_same_noise() -> None:
    """Two readings of one accelerometer, together or one after the other, say the same."""
    model = OdeModel("cart", {"x": "v", "v": "F - x"}, inputs=["F"], outputs={"a": "F - x", "b": "F - x"})
    both, apart = (
        design.estimator(
            model, process_noise={"F": 0.5}, measurement_noise={"a": 1e-2, "b": 2e-2}, sample_time=0.1,
            initial_covariance={"x": 1.0, "v": 1.0}, hold_noise=True,
        )
        for _ in range(2)
    )  # fmt: skip
    both.step([0.0], [0.3, 0.1])
    apart.step([0.0], [0.3, None])
    apart.correct([None, 0.1])
    np.testing.assert_allclose(apart.x, both.x, rtol=1e-9)
    np.testing.assert_allclose(apart.covariance, both.covariance, rtol=1e-9)


def test_a_bias_is_estimated_beside_held_noise() -> None:
    """An accelerometer with a bias, a position: the bias is found, its walk is a random walk all the same."""
    model = OdeModel("cart", {"x": "v", "v": "F - x - v"}, inputs=["F"], outputs={"acc": "F - x - v", "pos": "x"})
    kf = design.estimator(
        model, process_noise={"F": 0.1, "acc.bias": 1e-6}, measurement_noise={"acc": 1e-4, "pos": 1e-4},
        sample_time=0.05, initial_covariance={"x": 1e-2, "v": 1e-2, "acc.bias": 1.0}, augment=["acc.bias"],
        hold_noise=True,
    )  # fmt: skip
    random, x = np.random.default_rng(8), np.zeros(3)
    for _ in range(400):
        applied = np.sqrt(0.1) * random.standard_normal(1)
        x = kf.motion.later(0.0, np.append(x, 0.0), applied, 0.05)[:3]
        y = np.array([applied[0] - x[0] - x[1] + 0.7, x[0]]) + 1e-2 * random.standard_normal(2)
        kf.step([0.0], y)
    assert kf.states.names == ("x", "v", "acc.bias")
    assert kf.x[2] == pytest.approx(0.7, abs=4 * kf.deviations[2])
    assert kf.deviations[2] < 0.1


def test_constraints_and_held_noise_go_together() -> None:
    """A unit quaternion whose rates are noisy over each sample: the noise states stay coordinates at each change."""
    rates = {"c": "-s*w", "s": "c*w"}
    model = OdeModel(
        "turn", rates, inputs=["w"], outputs={"c_out": "c", "s_out": "s"}, start={"c": 1.0},
        constraints=[SymbolicConstraint("c^2 + s^2 - 1", level="velocity")],
    )  # fmt: skip
    kf = design.estimator(
        model, process_noise={"w": 1e-2}, measurement_noise={"c_out": 1e-3, "s_out": 1e-3}, sample_time=0.1,
        initial_covariance={"s": 1e-3}, hold_noise=True,
    )  # fmt: skip
    angle, variance, random = 0.0, 1e-3, np.random.default_rng(2)
    for _ in range(100):
        angle += 0.1 * (1.0 + 0.1 * random.standard_normal())
        y = np.array([np.cos(angle), np.sin(angle)]) + np.sqrt(1e-3) * random.standard_normal(2)
        kf.step([1.0], y)
        variance = 1 / (1 / (variance + 1e-2 * 0.01) + 1 / 1e-3)
        T = kf.motion.tangent(0.0, np.append(kf.x, 0.0), np.ones(1))[:2, :1]
        assert float((T.T @ T)[0, 0] * kf.covariance[0, 0]) == pytest.approx(variance, rel=0.1)
    assert kf.motion.switches >= 3
