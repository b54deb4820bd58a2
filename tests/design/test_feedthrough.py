"""Kalman filters with process noise that reaches a sensor at once, against an augmented Riccati equation.

The oracle keeps the noise of each sample as a state n_{k+1} = w_k, which the measurement at the end of the sample sees:
x_{k+1} = A x_k + B w_k, m_{k+1} = C x_{k+1} + D n_{k+1} + v_{k+1}. The filter in fmilin has no such state.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.linalg import solve_discrete_are

import fmilin as fl
from fmilin import design
from fmilin.models import OdeModel
from fmilin.signals import FloatArray


def linear_system(A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray) -> fl.LinearModel:
    """Return the linear model x' = A x + B u, y = C x + D u, through equations."""
    (n, k), m = B.shape, len(C)

    def row(coefficients: FloatArray, name: str) -> str:
        return " + ".join(f"({value:.17g})*{name}{j}" for j, value in enumerate(coefficients))

    equations = {f"x{i}": f"{row(A[i], 'x')} + {row(B[i], 'u')}" for i in range(n)}
    outputs = {f"y{i}": f"{row(C[i], 'x')} + {row(D[i], 'u')}" for i in range(m)}
    return fl.linearize(OdeModel("random", equations, inputs=[f"u{j}" for j in range(k)], outputs=outputs))


def random_system(seed: int) -> tuple[fl.LinearModel, float, FloatArray, FloatArray]:
    """Return a system with feedthrough, a sample time, and variances of process and measurement noise."""
    random = np.random.default_rng(seed)
    n, k, m = (int(v) for v in random.integers(1, (6, 3, 4)))
    A = random.normal(size=(n, n))
    A -= (np.linalg.eigvals(A).real.max() + random.uniform(-0.2, 1.0)) * np.eye(n)
    matrices = A, random.normal(size=(n, k)), random.normal(size=(m, n)), random.normal(size=(m, k))
    process, measured = 10 ** random.uniform(-2, 1, k), 10 ** random.uniform(-3, 0, m)
    return linear_system(*matrices), float(random.uniform(0.02, 0.5)), process, measured


def augmented_solution(
    sampled: fl.LinearModel, W: FloatArray, R: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return gain, covariance after a measurement, and covariance of the innovation."""
    n, k = sampled.B.shape
    A = np.block([[sampled.A, np.zeros((n, k))], [np.zeros((k, n + k))]])
    B, C = np.vstack((sampled.B, np.eye(k))), np.hstack((sampled.C, sampled.D))
    Q = B @ np.diag(W) @ B.T
    P = solve_discrete_are(A.T, C.T, Q, np.diag(R))
    for _ in range(3):  # Newton's iteration, by a Lyapunov equation of its own
        S = C @ P @ C.T + np.diag(R)
        L = np.linalg.solve(S, C @ P).T
        F = A @ (np.eye(n + k) - L @ C)
        added = Q + A @ L @ np.diag(R) @ L.T @ A.T
        columns = np.linalg.solve(np.eye((n + k) ** 2) - np.kron(F, F), added.ravel())
        P = columns.reshape(n + k, n + k)
    S = C @ P @ C.T + np.diag(R)
    L = np.linalg.solve(S, C @ P).T
    covariance = P - L @ S @ L.T
    return np.asarray(L[:n]), np.asarray(covariance[:n, :n]), np.asarray(S)


def held_filter(linear: fl.LinearModel, h: float, W: FloatArray, R: FloatArray) -> design.KalmanFilter:
    process = dict(zip(linear.inputs.names, W.tolist(), strict=True))
    measured = dict(zip(linear.outputs.names, R.tolist(), strict=True))
    return design.kalman_filter(linear, h, process=process, measured=measured, hold_noise=True)


@pytest.mark.parametrize("seed", range(25))
def test_the_steady_filter_is_that_of_the_augmented_riccati_equation(seed: int) -> None:
    linear, h, W, R = random_system(seed)
    kf = held_filter(linear, h, W, R)
    gain, covariance, innovation = augmented_solution(kf.sampled, W, R)
    d, s = np.sqrt(np.diag(covariance)), np.sqrt(np.diag(innovation))
    np.testing.assert_allclose(kf.covariance / np.outer(d, d), covariance / np.outer(d, d), atol=1e-9)
    np.testing.assert_allclose(kf.gain * s / d[:, None], gain * s / d[:, None], atol=1e-9)
    np.testing.assert_allclose(kf.innovation_covariance / np.outer(s, s), innovation / np.outer(s, s), atol=1e-9)
    assert kf.relative_error < 1e-6


def test_an_accelerometer_on_a_cart() -> None:
    """The case of issue 43: standard deviations of position and velocity with the noise of each sample as a state."""
    cart = OdeModel("cart", {"x": "v", "v": "(u - 0.5*v - 2*x)/2"}, inputs=["u"], outputs={"acc": "der(v)"})
    kf = held_filter(fl.linearize(cart), 0.05, np.array([0.5]), np.array([1e-3]))
    np.testing.assert_allclose(np.sqrt(np.diag(kf.covariance)), [0.04898099, 0.01550932], rtol=1e-6)


def test_white_noise_through_a_sensor_is_refused_in_words() -> None:
    cart = OdeModel(
        "cart", {"x": "v", "v": "(u + w - 0.5*v - 2*x)/2"}, inputs=["u", "w"], outputs={"acc": "der(v)", "pos": "x"}
    )
    lin = fl.linearize(cart)
    measured = {"acc": 1e-3, "pos": 1e-3}
    with pytest.raises(
        fl.UsageError, match=r"through 'w' reaches the output 'acc' at once \(D = 0.5\).*hold_noise=True"
    ):
        design.kalman_filter(lin, 0.05, process={"w": 1.0}, measured=measured)
    position = fl.linearize(cart, outputs=["pos"])
    assert design.kalman_filter(position, 0.05, process={"w": 1.0}, measured={"pos": 1e-3}).covariance.shape == (2, 2)
    silent = design.kalman_filter(lin, 0.05, process={"u": 0.0, "w": 1.0}, measured=measured, hold_noise=True)
    assert silent.feedthrough.shape == (2, 2)


def held_run(kf: design.KalmanFilter, W: FloatArray, K: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return known inputs (K, nu), measurements (K, m) and true states (K, P) of the held process."""
    s, random = kf.sampled, np.random.default_rng(seed)
    (n, nu), m = s.B.shape, len(s.C)
    inputs, measured, true = random.normal(size=(K, nu)), np.empty((K, m)), np.empty((K, n))
    x, applied = np.zeros(n), np.zeros(nu)
    for k in range(K):
        true[k] = x
        measured[k] = s.C @ x + s.D @ applied + np.linalg.cholesky(kf.R) @ random.normal(size=m)
        applied = inputs[k] + np.sqrt(W) * random.normal(size=nu)
        x = s.A @ x + s.B @ applied
    return inputs, measured, true


@pytest.mark.parametrize("seed", range(10))
def test_errors_and_innovations_are_as_large_as_the_filter_says(seed: int) -> None:
    """NEES and NIS of 100 runs of the true held process with known inputs, each at its last sample, within 95 %.

    The probability that a right filter leaves one of 20 bands of 99.9 % is 2 %; the seeds are fixed.
    """
    linear, h, W, R = random_system(100 + seed)
    kf = held_filter(linear, h, W, R)
    rate = np.abs(np.linalg.eigvals(kf.sampled.A - kf.sampled.A @ kf.gain @ kf.sampled.C)).max()
    K = int(np.clip(np.ceil(np.log(1e-3) / np.log(rate)), 10, 150))
    runs, nees, nis = 100, 0.0, 0.0
    for run in range(runs):
        inputs, measured, true = held_run(kf, W, K, 1000 * seed + run)
        estimates = kf.run(inputs, measured, start=np.zeros(len(kf.gain)))
        nees += kf.nees(estimates, true)[-1]
        innovation = estimates.innovations[-1]
        nis += innovation @ np.linalg.solve(kf.innovation_covariance, innovation)
    for total, count in ((nees, len(kf.gain)), (nis, len(R))):
        low, high = (float(stats.chi2.ppf(p, count * runs)) for p in (0.0005, 0.9995))
        assert low < total < high


def test_the_filter_as_a_linear_model_gives_the_estimates_of_a_run() -> None:
    linear, h, W, R = random_system(7)
    kf = held_filter(linear, h, W, R)
    inputs, measured, _ = held_run(kf, W, 30, 1)
    estimates = kf.run(inputs, measured, start=np.zeros(len(kf.gain))).states
    law, x = kf.linear_model(), np.zeros(len(kf.gain))
    x = x + kf.gain @ (measured[0] - kf.sampled.C @ x)  # before the first sample the inputs are those of the point
    for k in range(1, 30):
        x = law.A @ x + law.B @ np.concatenate((inputs[k - 1], measured[k]))
        np.testing.assert_allclose(x, estimates[k], rtol=1e-9, atol=1e-9)


def test_the_gain_of_exact_sensors_that_see_the_same_noise_keeps_its_digits() -> None:
    """Three sensors read one noise much louder than their own: R + N N' has a condition number above 1e10.

    The gain belongs to the covariance as L = (S C' + G N') (C S C' + N N' + R)^-1, here in 40 digits.
    """
    A, B = np.array([[-0.3, 1.0], [-2.0, -0.5]]), np.array([[0.4], [1.3]])
    C, D = np.array([[0.7, -1.1], [0.2, 0.9], [-1.3, 0.4]]), np.array([[-5.7], [-13.7], [-5.7]])
    W, R = np.array([5.2]), np.array([0.5, 3e-8, 8e-8])
    kf = held_filter(linear_system(A, B, C, D), 0.26, W, R)
    s = kf.sampled
    with mpmath.workdps(40):
        P, F, M, G, H = (mpmath.matrix(m.tolist()) for m in (kf.covariance, s.A, s.C, kf.noise, kf.feedthrough))
        before, N = F * P * F.T, M * G + H
        S = M * before * M.T + N * N.T + mpmath.diag(R.tolist())
        exact = np.array(((before * M.T + G * N.T) * S**-1).tolist(), dtype=np.float64)
    assert np.linalg.cond(kf.innovation_covariance) > 1e10
    sizes = np.sqrt(np.outer(np.diag(kf.covariance), 1 / np.diag(kf.innovation_covariance)))
    np.testing.assert_allclose(kf.gain / sizes, exact / sizes, atol=1e-9)
    assert fl.audit(kf).ok
