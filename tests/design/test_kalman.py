"""Sensors, noise and sampled Kalman filters: against closed forms, and against noisy data of the same plant."""

from __future__ import annotations

import control
import numpy as np
import pytest
from scipy import integrate
from scipy.linalg import expm

import fmilin as fl
from fmilin import design
from fmilin.models import Labels, OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum
from tests.composition.plants import oscillator


def pendulum() -> fl.LinearModel:
    return fl.linearize(cartesian_pendulum(angle=0.0), independent=["x", "vx"])


def test_a_sensor_of_dependent_states_and_of_an_expression() -> None:
    """On the circle y = -sqrt(1 - x^2): dy/dx = x/sqrt(1 - x^2) = tan(angle)."""
    model = cartesian_pendulum(angle=0.5)
    lin = fl.linearize(model, independent=["x", "vx"])
    seen = design.measurement(lin, {"height": "y", "product": "x*y", "both": "2*x + vx"})
    slope = -lin.point.states["x"] / lin.point.states["y"]
    rows = np.array([[slope, 0], [lin.point.states["y"] + lin.point.states["x"] * slope, 0], [2, 1]])
    np.testing.assert_allclose(seen.C, rows, atol=1e-12)
    assert seen.outputs.names == ("height", "product", "both")
    assert seen.outputs[0].unit == lin.full_states[lin.full_states.index_of("y")].unit
    assert seen.point.outputs["product"] == pytest.approx(lin.point.states["x"] * lin.point.states["y"])
    assert (seen.errors.C[0] >= lin.errors.T[lin.full_states.index_of("y")]).all()


def test_an_accelerometer_at_rest() -> None:
    lin = pendulum()
    seen = design.measurement(lin, ["der(vx)"])
    np.testing.assert_allclose(seen.C[0], lin.A[lin.states.index_of("vx")], atol=1e-12)
    moving = fl.linearize(cartesian_pendulum(angle=0.5), independent=["x", "vx"])
    with pytest.raises(fl.NumericalError, match="point in motion"):
        design.measurement(moving, ["der(vx)"])


@pytest.mark.parametrize(
    ("sensors", "error", "words"),
    [
        (["height"], fl.UnknownNameError, "'height' is not a state, input or output"),
        ({"a": "log(x)"}, fl.NumericalError, "no finite value or derivative"),
        ("y", fl.UsageError, "is the text 'y', and should be a list"),
        ([], fl.UsageError, "with at least one"),
        (["x +"], fl.UsageError, "x \\+"),
    ],
)
def test_sensors_that_are_none(sensors: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        design.measurement(pendulum(), sensors)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [1.0, 3e3])
def test_the_noise_integral(scale: float) -> None:
    """Against its quadrature; a stiff plant too, whose exp(-A h) would be 1e1300."""
    A = np.array([[0.0, 1.0], [-2.0, -0.6]])
    A = np.block([[A, np.zeros((2, 1))], [np.ones((1, 2)), -np.ones((1, 1)) * scale]])
    G, W, h = np.array([[0.0], [1.0], [0.3]]), np.array([[0.7]]), 0.4

    def integrand(s: float) -> FloatArray:
        E = expm(A * s) @ G
        found: FloatArray = (E @ W @ E.T).ravel()
        return found

    expected = integrate.quad_vec(integrand, 0.0, h, epsabs=1e-14, epsrel=1e-12, points=(1e-4, 1e-3, 1e-2))[0]
    found = design.sampled_noise(A, G, W, h)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-8, atol=1e-14)


def test_the_filter_is_that_of_python_control() -> None:
    """Its gain is dlqe's; the covariance after a measurement solves the filter's equations."""
    lin = fl.linearize(oscillator(damper=0.3), outputs=["px"])
    kf = design.kalman_filter(lin, 0.05, process={"F": 0.2}, measured={"px": 1e-3})
    d = kf.sampled
    _, P, _ = control.dlqe(d.A, np.eye(2), d.C, kf.Q, kf.R)
    np.testing.assert_allclose(kf.predicted, P, rtol=1e-9)
    again = d.A @ kf.covariance @ d.A.T + kf.Q
    np.testing.assert_allclose(again, kf.predicted, rtol=1e-9)
    np.testing.assert_allclose(kf.gain, kf.covariance @ d.C.T / 1e-3, rtol=1e-9)  # P C' R^-1


def test_estimates_are_as_good_as_the_filter_says() -> None:
    """NEES of 4,000 samples: P = 2 on average, within four standard deviations of its mean.

    Errors of one sample to the next are correlated over 1/(1 - |z|) samples of the filter, which widens the bound.
    """
    h, K, random = 0.05, 4000, np.random.default_rng(7)
    lin = fl.linearize(oscillator(damper=0.3), outputs=["px"])
    kf = design.kalman_filter(lin, h, process={"F": 0.4}, measured={"px": 1e-3}, hold_noise=True)
    d, y = kf.sampled, np.array([0.0, 0.0])
    true, u, m = np.empty((K, 2)), np.zeros((K, 1)), np.empty((K, 1))
    y0 = d.y0
    for k in range(K):
        true[k] = y
        m[k] = kf.linear.point.outputs["px"] + d.C @ (y - y0) + np.sqrt(1e-3) * random.standard_normal(1)
        y = y0 + d.f0 + d.A @ (y - y0) + d.B @ (np.sqrt(0.4) * random.standard_normal(1))
    found = kf.run(u, m, start=np.zeros(2))
    nees = kf.nees(found, true)
    z = np.max(np.abs(np.linalg.eigvals(d.A - d.A @ kf.gain @ d.C)))
    effective = K * (1 - z)
    assert abs(nees[200:].mean() - 2.0) < 4 * np.sqrt(2 * 2 / effective)
    S = kf.innovation_covariance[0, 0]
    assert abs(found.innovations[200:].var() / S - 1) < 4 * np.sqrt(2 / K)
    wrong = design.kalman_filter(lin, h, process={"F": 0.004}, measured={"px": 1e-3}, hold_noise=True)
    assert wrong.nees(wrong.run(u, m, start=np.zeros(2)), true)[200:].mean() > 4.0
    with pytest.raises(fl.UsageError, match="A simulation also has its start"):
        wrong.nees(found, true[1:])


def test_what_no_filter_can_do() -> None:
    lin = fl.linearize(oscillator(damper=0.3), outputs=["px", "pv"])
    with pytest.raises(fl.UsageError, match="No variance is given for pv"):
        design.kalman_filter(lin, 0.1, process={"F": 1.0}, measured={"px": 1.0})
    with pytest.raises(fl.UsageError, match="finite and positive"):
        design.kalman_filter(lin, 0.1, process={"F": 1.0}, measured={"px": 0.0, "pv": 1.0})
    with pytest.raises(fl.UsageError, match="0 or more"):
        design.kalman_filter(lin, 0.1, process={"F": -1.0}, measured={"px": 1.0, "pv": 1.0})
    with pytest.raises(fl.UsageError, match="process noise is not positive definite: its smallest eigenvalue is -1"):
        design.kalman_filter(lin, 0.1, process=-np.eye(2), measured={"px": 1.0, "pv": 1.0})
    with pytest.raises(fl.UnknownNameError):
        design.kalman_filter(lin, 0.1, process={"G": 1.0}, measured={"px": 1.0, "pv": 1.0})
    unseen = OdeModel("u", {"a": "0.5*a + w", "b": "-b + w"}, inputs=["w"], outputs={"y": "b"})
    with pytest.raises(fl.NumericalError, match=r"no (stable )?steady Kalman filter"):
        design.kalman_filter(fl.linearize(unseen), 0.1, process={"w": 1.0}, measured={"y": 1.0})


@pytest.mark.parametrize("wrapped", [None, ["angle"], []])
def test_a_record_is_filtered_as_its_samples_are(wrapped: list[str] | None) -> None:
    """With a sensor in rad that starts again after each turn, which is seen, named, or not believed."""
    model = OdeModel(
        "rotor",
        {"theta": "w", "w": "-0.1*w + u"},
        inputs=["u"],
        outputs={"angle": "theta", "rate": "w + 0.2*u"},
        start={"w": 2.0},
        labels=Labels(units={"angle": "rad", "u": "N"}),
    )
    kf = design.kalman_filter(
        fl.linearize(model), 0.1, process={"u": 1e-2}, measured={"angle": 1e-4, "rate": 1e-2}, hold_noise=True,
        wrapped_outputs=wrapped,
    )  # fmt: skip
    t, random = 0.1 * np.arange(90), np.random.default_rng(3)
    u = random.standard_normal((90, 1))
    angle = np.angle(np.exp(1j * (2.0 * t + 0.01 * random.standard_normal(90))))
    y = np.column_stack((angle, 2.0 + 0.1 * random.standard_normal(90)))
    answers = kf.run(u, y)
    observer, before, x = kf.observe_turns(), kf.linear.u0, kf.sampled.y0
    for k in range(90):
        x, innovation = kf.correct_during(observer, x, before, y[k])
        np.testing.assert_allclose(answers.states[k], x, rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(answers.innovations[k], innovation, rtol=1e-9, atol=1e-11)
        x, before = kf.predict(x, u[k]), u[k]
    assert answers.remarks == observer.remarks
    assert bool(answers.remarks) is (wrapped is None)
