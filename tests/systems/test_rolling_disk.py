"""The rolling disk against Newton and Euler in minimal coordinates, and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fmilin import UsageError
from fmilin.models import KaneModel
from fmilin.signals import FloatArray
from fmilin.systems import rolling_disk
from fmilin.systems.disk import steady_yaw_rates
from tests.exact import products_of
from tests.systems.oracle import reduced, relative_error

Y = ("q1", "q2", "q3", "q4", "q5", "u1", "u2", "u3")
M, R, G = 1.3, 0.4, 9.81
UPRIGHT = [0.0, 0.3, 1 / np.sqrt(3), 1.0, 4.0, -2.0]
TURNS = [(2.0, 0.3), (4.0, -0.8), (1.5, 0.05)]

Complex = NDArray[np.complex128]


def newton_euler(y: Complex, torques: Complex, m: float, r: float, g: float) -> Complex:
    """y' of the disk in Y: force and moment balance in the lean frame B with the contact force as an unknown.

    omega = (u1, u2, u3), Omega = (u1, u3 tan q2, u3) the rate of B, v = -omega x r b_z; m v' = f + m g n_z and
    I omega' + Omega x I omega = r b_z x f + torque.
    """
    q1, q2, _, _, _, u1, u2, u3 = y
    omega, Omega = y[5:], np.array([u1, u3 * np.tan(q2), u3])
    inertia = m * r**2 * np.array([0.25, 0.5, 0.25])
    v = r * np.array([-u2, u1, 0.0])
    v_by_u = r * np.array([[0, -1, 0], [1, 0, 0], [0, 0, 0]])
    arm = np.array([[0, -r, 0], [r, 0, 0], [0, 0, 0]])  # r b_z x f
    unknowns = np.block([[m * v_by_u, -np.eye(3)], [np.diag(inertia), -arm]]).astype(complex)
    weight = m * g * np.array([0.0, np.sin(q2), np.cos(q2)])
    right = np.concatenate(
        (weight - m * np.cross(Omega, v), np.array([torques[0], 0, torques[1]]) - np.cross(Omega, inertia * omega))
    )
    ud = np.linalg.solve(unknowns, right)[:3]
    forward, sideways = v[0], v[1] * np.cos(q2)  # along a_x and a_y, turned by q1 into the ground frame
    return np.array(
        [
            u3 / np.cos(q2),
            u1,
            u2 - u3 * np.tan(q2),
            forward * np.cos(q1) - sideways * np.sin(q1),
            forward * np.sin(q1) + sideways * np.cos(q1),
            *ud,
        ]
    )


def slopes(y: FloatArray, m: float, r: float, g: float) -> tuple[FloatArray, FloatArray]:
    """A and B of :func:`newton_euler` by complex steps: exact to rounding."""
    h = 1e-40
    steps = 1j * h * np.eye(10)
    both = [newton_euler(y + s[:8], s[8:], m, r, g).imag / h for s in steps]
    full = np.array(both).T
    return full[:, :8], full[:, 8:]


def independent(model: KaneModel) -> FloatArray:
    return model.start.states[[model.states.names.index(name) for name in Y]]


def consistent(y: FloatArray) -> FloatArray:
    """All 12 states of a disk of radius R from those in Y."""
    q2, q3, u1, u2 = y[[1, 2, 5, 6]]
    return np.array([*y[:5], -R * np.cos(q2), *y[5:], -R * u2 * np.cos(q3), R * u1, -R * u2 * np.sin(q3)])


def squares(A: NDArray[np.float64]) -> Complex:
    return np.sort_complex(np.linalg.eigvals(A).astype(complex) ** 2)


def steady(speed: float, lean: float, slow: int = 0) -> KaneModel:
    rate = steady_yaw_rates(speed, lean, radius=R, gravity=G)[slow]
    return rolling_disk(speed, lean=lean, yaw_rate=rate, mass=M, radius=R, gravity=G)


@pytest.mark.parametrize("speed", UPRIGHT)
def test_upright_against_newton_and_euler(speed: float) -> None:
    model = rolling_disk(speed)
    A, B, _, _ = reduced(model, Y)
    expected_A, expected_B = slopes(independent(model), 1.0, 1.0, 1.0)
    assert relative_error(A, expected_A) < 1e-14
    assert relative_error(B, expected_B) < 1e-14


@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize(("speed", "lean"), TURNS)
def test_leaning_turns_against_newton_and_euler(speed: float, lean: float, slow: int) -> None:
    model = steady(speed, lean, slow)
    A, B, _, _ = reduced(model, Y)
    expected_A, expected_B = slopes(independent(model), M, R, G)
    assert relative_error(A, expected_A) < 1e-13
    assert relative_error(B, expected_B) < 1e-13


def test_any_consistent_point_against_newton_and_euler() -> None:
    y = np.array([0.7, -0.4, 1.9, 0.3, -2.0, 0.5, -1.1, 0.8])
    states = consistent(y)
    model = rolling_disk(mass=M, radius=R, gravity=G)
    at = model.evaluate(0.0, states, np.array([0.2, -0.1]))
    np.testing.assert_allclose(at.residuals, 0.0, atol=1e-15)
    rows = [model.states.names.index(name) for name in Y]
    expected = newton_euler(y.astype(complex), np.array([0.2, -0.1], dtype=complex), M, R, G).real
    np.testing.assert_allclose(at.derivatives[rows], expected, rtol=1e-13)
    A, B, _, _ = reduced(model, Y, states)
    expected_A, expected_B = slopes(y, M, R, G)
    assert relative_error(A, expected_A) < 1e-13
    assert relative_error(B, expected_B) < 1e-13


@pytest.mark.parametrize("speed", UPRIGHT)
def test_upright_eigenvalues(speed: float) -> None:
    """lambda^2 = 4/5 (1 - 3 v^2), critical at 1/sqrt(3); six zeros."""
    A, *_ = reduced(rolling_disk(speed), Y)
    characteristic = [1.0, 0.0, -0.8 * (1 - 3 * speed**2), *[0.0] * 6]
    np.testing.assert_allclose(np.poly(A), characteristic, atol=1e-10)


@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize(("speed", "lean"), TURNS)
def test_the_pair_of_a_leaning_turn(speed: float, lean: float, slow: int) -> None:
    model = steady(speed, lean, slow)
    at = model.evaluate(0.0, model.start.states, np.zeros(2))
    spin, yaw = -speed / R, at.outputs[1]
    assert at.derivatives[2] == pytest.approx(spin)
    square = 0.8 * G / R * np.cos(lean) - yaw**2 - 2.8 * np.sin(lean) * yaw * spin - 2.4 * spin**2
    A, *_ = reduced(model, Y)
    np.testing.assert_allclose(np.trace(A @ A) / 2, square, rtol=1e-12)


@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize(("speed", "lean"), TURNS)
def test_a_steady_turn_is_steady(speed: float, lean: float, slow: int) -> None:
    model = steady(speed, lean, slow)
    at = model.evaluate(0.0, model.start.states, np.zeros(2))
    np.testing.assert_allclose(at.residuals, 0.0, atol=1e-15)
    changing = at.derivatives[[model.states.names.index(name) for name in ("q2", "q6", "u1", "u2", "u3")]]
    np.testing.assert_allclose(changing, 0.0, atol=1e-12)


@pytest.mark.parametrize("speed", [0.3, 1.0, 4.0])
def test_the_naive_jacobian_has_a_spurious_pair(speed: float) -> None:
    """Twelve eigenvalues: the true pair, lambda^2 = -2/3 v^2 that is none, and eight zeros instead of six."""
    model = rolling_disk(speed)
    naive = products_of(model, 0.0, model.start.states, np.zeros(2), np.eye(12), np.zeros((2, 12))).derivatives
    expected = sorted([0.8 * (1 - 3 * speed**2)] * 2 + [-2 / 3 * speed**2] * 2 + [0.0] * 8)
    np.testing.assert_allclose(squares(naive), expected, atol=1e-13)


def test_in_a_leaning_turn_the_naive_jacobian_is_even_unstable() -> None:
    model = rolling_disk(2.0, lean=0.3)
    naive = products_of(model, 0.0, model.start.states, np.zeros(2), np.eye(12), np.zeros((2, 12))).derivatives
    assert np.linalg.eigvals(naive).real.max() > 0.2
    A, *_ = reduced(model, Y)
    assert np.linalg.eigvals(A).real.max() < 1e-6


def test_power_of_the_torques_is_the_rate_of_the_energy() -> None:
    model = rolling_disk(mass=M, radius=R, gravity=G)
    states = consistent(np.array([0.7, -0.4, 1.9, 0.3, -2.0, 0.5, -1.1, 0.8]))
    f = model.evaluate(0.0, states, np.array([0.2, -0.1])).derivatives
    inertia = M * R**2 * np.array([0.25, 0.5, 0.25])
    kinetic = inertia * states[6:9] @ f[6:9] + M * states[9:] @ f[9:]
    np.testing.assert_allclose(kinetic - M * G * f[5], 0.2 * states[6] - 0.1 * states[8], rtol=1e-12)


def test_the_lateral_position_of_the_contact_moves_as_rolling_says() -> None:
    """The contact moves along the heading: y' = v sin(q1) with v = -r q3'."""
    model = rolling_disk(1.5, lean=0.3)
    states = model.start.states.copy()
    states[0] = 0.8
    f = model.evaluate(0.0, states, np.zeros(2)).derivatives
    moved = products_of(model, 0.0, states, np.zeros(2), f[:, None], np.zeros((2, 1))).outputs
    np.testing.assert_allclose(moved[2, 0], 1.5 * np.sin(0.8), rtol=1e-13)


def test_a_yaw_rate_that_is_not_steady_is_still_consistent() -> None:
    model = rolling_disk(1.0, lean=0.2, yaw_rate=0.7)
    at = model.evaluate(0.0, model.start.states, np.zeros(2))
    np.testing.assert_allclose(at.residuals, 0.0, atol=1e-15)
    assert at.outputs[1] == pytest.approx(0.7)
    assert abs(at.derivatives[6]) > 0.01


def test_the_slower_turn_is_the_one_that_upright_rolling_leads_to() -> None:
    slow, fast = steady_yaw_rates(2.0, 1e-6)
    assert slow == pytest.approx(2e-6 / 3 / 2, rel=1e-6)  # g sin(q2) = 3/2 q1' v
    assert abs(fast) > 1e6


@pytest.mark.parametrize(
    ("speed", "lean", "message"),
    [(0.1, 0.5, r"steady turns from 0\.762906 m/s upwards, not at 0\.1 m/s"), (1.0, np.pi / 2, "flat on the ground")],
)
def test_impossible_turns_are_refused(speed: float, lean: float, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rolling_disk(speed, lean=lean)


@pytest.mark.parametrize("options", [{"mass": -1.0}, {"mass": 0.0}, {"radius": 0.0}, {"mass": float("nan")}])
def test_disks_that_do_not_exist_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="positive mass and radius"):
        rolling_disk(**options)


def test_an_upright_disk_has_no_steady_turn() -> None:
    with pytest.raises(UsageError, match="needs a lean"):
        steady_yaw_rates(1.0, 0.0)
