"""Filters that change coordinates on the way: a unit quaternion against a filter in rotation vectors, a pendulum."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
import pytest
from scipy import stats

import fmilin as fl
from fmilin import design
from fmilin.design.estimation.charts import choose_chart
from fmilin.models import OdeModel, SymbolicConstraint
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum

H = 0.05
RATE_NOISE = 1e-4  # spectral density of each gyroscope, rad^2/s
R = 4e-4 * np.eye(3)
RATES = {
    "q0": "0.5*(-q1*p - q2*q - q3*r)",
    "q1": "0.5*(q0*p + q2*r - q3*q)",
    "q2": "0.5*(q0*q + q3*p - q1*r)",
    "q3": "0.5*(q0*r + q1*q - q2*p)",
}
OUTPUTS = {"gx": "2*(q1*q3 - q0*q2)", "gy": "2*(q2*q3 + q0*q1)", "head": "2*(q1*q2 + q0*q3)"}


def attitude_filter(kind: str, level: Literal["position", "velocity"] = "position") -> design.Estimator:
    unit = "q0^2 + q1^2 + q2^2 + q3^2 - 1"
    constraint = unit if level == "position" else SymbolicConstraint(unit, level=level)
    model = OdeModel(
        "attitude", RATES, inputs=["p", "q", "r"], outputs=OUTPUTS, start={"q0": 1.0}, constraints=[constraint]
    )
    return design.estimator(
        model,
        kind=kind,
        process_noise=dict.fromkeys("pqr", RATE_NOISE),
        measurement_noise=dict.fromkeys(OUTPUTS, R[0, 0]),
        sample_time=H,
        initial_covariance={"q1": 1e-4, "q2": 1e-4, "q3": 1e-4},
    )


def product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the product of quaternions."""
    scalar = a[0] * b[0] - a[1:] @ b[1:]
    return np.concatenate(([scalar], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])))


def turn(vector: FloatArray) -> FloatArray:
    """Return the quaternion of a rotation vector."""
    angle = float(np.linalg.norm(vector))
    return np.concatenate(([np.cos(angle / 2)], np.sinc(angle / 2 / np.pi) / 2 * vector))


def seen(q: FloatArray) -> FloatArray:
    a, b, c, d = q
    return np.array([2 * (b * d - a * c), 2 * (c * d + a * b), 2 * (b * c + a * d)])


def error_vector(estimate: FloatArray, true: FloatArray) -> FloatArray:
    """Return the rotation vector from an estimate to the truth, in the body's axes."""
    e = product(estimate * np.array([1.0, -1.0, -1.0, -1.0]), true)
    return np.asarray(2 * np.sign(e[0]) * e[1:])


@cache
def flight(seed: int, samples: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return measured rates, measurements and true quaternions of a body that turns over again and again."""
    random, q = np.random.default_rng(seed), np.array([1.0, 0.0, 0.0, 0.0])
    rates, measured, true = [], [], []
    q = product(q, turn(1e-2 * 2 * random.standard_normal(3)))  # the initial covariance: 1e-4 of each q_i
    for k in range(samples):
        t = (k + 0.5) * H
        w = np.array([0.7 * np.sin(t), 0.5 * np.cos(0.7 * t), 1.0])
        q = product(q, turn(H * w))
        rates.append(w + np.sqrt(RATE_NOISE / H) * random.standard_normal(3))
        measured.append(seen(q) + np.sqrt(R[0, 0]) * random.standard_normal(3))
        true.append(q)
    return np.array(rates), np.array(measured), np.array(true)


def rotation_vector_filter(rates: FloatArray, measured: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the estimates and covariances of an extended filter whose error is a rotation vector (3 coordinates)."""
    q, P = np.array([1.0, 0.0, 0.0, 0.0]), 4e-4 * np.eye(3)
    estimates, covariances = [], []
    for w, y in zip(rates, measured, strict=True):
        step = turn(H * w)
        columns = [error_vector(step, product(turn(1e-6 * e), step)) / 1e-6 for e in np.eye(3)]
        Phi = np.array(columns).T
        q = product(q, step)
        P = Phi @ P @ Phi.T + RATE_NOISE * H * np.eye(3)
        C = np.array(
            [(seen(product(q, turn(1e-6 * e))) - seen(product(q, turn(-1e-6 * e)))) / 2e-6 for e in np.eye(3)]
        ).T
        K = np.linalg.solve(C @ P @ C.T + R, C @ P).T
        q = product(q, turn(K @ (y - seen(q))))
        P = (np.eye(3) - K @ C) @ P @ (np.eye(3) - K @ C).T + K @ R @ K.T
        estimates.append(q)
        covariances.append(P)
    return np.array(estimates), np.array(covariances)


def in_rotation_vectors(kf: design.Estimator) -> FloatArray:
    """Return the covariance of the filter's error as a rotation vector."""
    T = kf.motion.tangent(kf.time, kf.x, np.zeros(3))
    q = kf.x
    E = 2 * np.array([[-q[1], q[0], q[3], -q[2]], [-q[2], -q[3], q[0], q[1]], [-q[3], q[2], -q[1], q[0]]])
    return np.asarray(E @ T @ kf.covariance @ T.T @ E.T)


@pytest.mark.parametrize("kind", ["ekf", "ukf", "iekf"])
def test_a_quaternion_filter_is_that_of_rotation_vectors(kind: str) -> None:
    """Estimates within a tenth of a deviation, covariances within 10 %, over 15 s with several changes.

    The iterated filter linearizes measurements elsewhere, which the oracle does not: a third of a deviation.
    """
    rates, measured, _ = flight(1, 300)
    near = 0.33 if kind == "iekf" else 0.1
    estimates, covariances = rotation_vector_filter(rates, measured)
    kf = attitude_filter(kind)
    for w, y, q, P in zip(rates, measured, estimates, covariances, strict=True):
        kf.step(w, y)
        found = in_rotation_vectors(kf)
        assert np.linalg.norm(error_vector(kf.x / np.linalg.norm(kf.x), q)) < near * np.sqrt(np.trace(P))
        assert np.abs(found - P).max() < 0.1 * np.abs(P).max()
    assert kf.motion.switches >= 3
    assert abs(np.linalg.norm(kf.x) - 1) < 1e-9


@pytest.mark.parametrize("kind", ["ekf", "ukf", "iekf", "mhe"])
def test_the_level_of_the_constraint_does_not_matter(kind: str) -> None:
    """At position level the hidden row is rounding everywhere, and must not become a constraint."""
    samples = 25 if kind == "mhe" else 120
    rates, measured, _ = flight(2, samples)
    filters = [attitude_filter(kind, "position"), attitude_filter(kind, "velocity")]
    for w, y in zip(rates, measured, strict=True):
        one, two = (kf.step(w, y) for kf in filters)
        np.testing.assert_allclose(one, two, atol=1e-9)
    np.testing.assert_allclose(filters[0].deviations, filters[1].deviations, rtol=1e-6)
    assert filters[0].motion.chart.coordinates == filters[1].motion.chart.coordinates


def test_the_quaternion_filter_knows_how_large_its_errors_are() -> None:
    """NEES of 40 flights of 6 s, at their ends, in the band of 99.9 %."""
    runs, total, kf = 40, 0.0, attitude_filter("ekf")
    for seed in range(runs):
        rates, measured, true = flight(100 + seed, 120)
        kf.reset()
        kf.run(rates, measured)
        sign = np.sign(kf.x @ true[-1])
        total += design.nees(kf, sign * true[-1])
    low, high = (float(stats.chi2.ppf(p, 3 * runs)) for p in (0.0005, 0.9995))
    assert low < total < high


def test_a_row_that_is_rounding_is_not_a_pivot() -> None:
    H_ = np.array([[0.0, 2.0, 0.1, 0.0], [1e-17, 0.0, 0.0, 2e-17]])
    chart = choose_chart(H_, np.ones(4), 1, np.array([2.1, 1.0]))
    assert (chart.rows, chart.dependent) == ([0], [1])
    with pytest.raises(fl.NumericalError, match="singular configuration"):
        choose_chart(H_, np.ones(4), 2, np.array([2.1, 1.0]))


@pytest.mark.parametrize("kind", ["ekf", "ukf", "iekf", "mhe"])
def test_a_pendulum_that_turns_over_changes_its_coordinates(kind: str) -> None:
    """x, y, vx, vy: x is a coordinate below and above, y on the left and right; the angle is known exactly."""
    model = cartesian_pendulum(angle=3.0)
    kf = design.estimator(
        model, kind=kind, outputs=["x", "y"], process_noise={"F": 1e-3}, measurement_noise={"x": 1e-4, "y": 1e-4},
        sample_time=H,
        initial_covariance={"x": 1e-4, "vx": 1e-4, "y": 1.0, "vy": 1.0},
    )  # fmt: skip
    point = fl.operating_point(model)
    random = np.random.default_rng(3)
    truth = fl.simulate(model, point, stop_time=0.8 if kind == "mhe" else 4.0, step=H)
    errors = []
    for row in range(1, len(truth.times)):
        x = truth.states[row]
        kf.step([0.0], x[:2] + 1e-2 * random.standard_normal(2))
        errors.append(design.nees(kf, x))
        assert abs(kf.x[0] ** 2 + kf.x[1] ** 2 - 1) < 1e-9
    assert kf.motion.switches >= (0 if kind == "mhe" else 2)
    assert np.mean(errors) < 4.0
