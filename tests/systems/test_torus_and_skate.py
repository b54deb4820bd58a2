"""The rolling torus and the skate against Newton and Euler, and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fmilin as fl
from fmilin import UsageError
from fmilin.signals import FloatArray
from fmilin.systems import rolling_disk
from tests.systems.skate_model import skate
from tests.systems.torus import rolling_torus

m, a, b, g = 2.0, 0.8, 0.25, 9.81
R = a + b
AXIAL, DIAMETRAL = m * (a**2 + 0.75 * b**2), m * (a**2 / 2 + 0.625 * b**2)


@pytest.mark.parametrize("speed", [0.3, 1.0, 2.5])
def test_upright_eigenvalues_of_the_torus(speed: float) -> None:
    lin = fl.linearize(rolling_torus(speed, mass=m, ring_radius=a, tube_radius=b, gravity=g))
    square = (m * g * a - (AXIAL + m * R**2) * AXIAL * speed**2 / (DIAMETRAL * R**2)) / (DIAMETRAL + m * R**2)
    characteristic = np.poly(lin.A)
    np.testing.assert_allclose(characteristic, [1, 0, -square, *[0.0] * 6], atol=1e-9)


def newton_euler(q: FloatArray, w: FloatArray) -> FloatArray:
    """u1', u2', u3' of the torus: the contact force from m a_C, its moment about C from the angular momentum.

    In the lean frame: v_C = -w x p with p = a b_z + b n_z; both are differentiated, n_z turns against the frame.
    """
    c, s = np.cos(q[1]), np.sin(q[1])
    frame = np.array([w[0], w[2] * s / c, w[2]])  # the lean frame's angular velocity: yaw rate w3/c, lean rate w1
    n = np.array([0.0, s, c])  # n_z in the lean frame
    p = a * np.array([0, 0, 1.0]) + b * n
    p_dot = b * np.array([0.0, c, -s]) * w[0]  # components in the lean frame
    inertia = np.diag([DIAMETRAL, AXIAL, DIAMETRAL])
    v = -np.cross(w, p)

    def balance(w_dot: FloatArray) -> FloatArray:
        acceleration = -np.cross(w_dot, p) - np.cross(w, p_dot) + np.cross(frame, v)
        force = m * acceleration - m * g * n
        return inertia @ w_dot + np.cross(frame, inertia @ w) - np.cross(p, force)

    constant = balance(np.zeros(3))
    matrix = np.column_stack([balance(e) - constant for e in np.eye(3)])
    return np.linalg.solve(matrix, -constant).astype(np.float64)


def test_the_torus_moves_as_newton_and_euler_say() -> None:
    model = rolling_torus(mass=m, ring_radius=a, tube_radius=b, gravity=g)
    values = {"q1": 0.4, "q2": -0.5, "q3": 1.0, "u1": 0.3, "u2": -1.4, "u3": 0.8}
    point = fl.operating_point(model, values)
    at = model.evaluate(0.0, point.states, np.zeros(1))
    np.testing.assert_allclose(at.residuals, 0.0, atol=1e-14)
    expected = newton_euler(point.states[:6], point.states[6:9])
    np.testing.assert_allclose(at.derivatives[6:9], expected, rtol=1e-12)
    own, general = fl.linearize(model, point), fl.linearize(model, point)
    np.testing.assert_allclose(own.A, general.A, atol=1e-12)


def test_without_a_tube_the_torus_is_a_hoop() -> None:
    """A disk's equations with the inertia of a hoop: compare critical speeds, v^2 = g r/4 against g r/3."""
    slow, fast = (
        rolling_torus(np.sqrt(factor * g * a), ring_radius=a, tube_radius=0.0, gravity=g) for factor in (0.249, 0.251)
    )
    assert np.max(fl.linearize(slow).eigenvalues().real) > 0.1
    assert np.max(np.abs(np.real(fl.linearize(fast).eigenvalues()))) < 1e-6
    disk = rolling_disk(np.sqrt(0.3 * g * a), radius=a, gravity=g)
    assert np.max(fl.linearize(disk).eigenvalues().real) > 0.1


@pytest.mark.parametrize(("ring", "tube"), [(1.0, 1.0), (1.0, -0.1), (0.5, 0.8)])
def test_other_tori_are_refused(ring: float, tube: float) -> None:
    with pytest.raises(UsageError, match="ring larger than its tube"):
        rolling_torus(ring_radius=ring, tube_radius=tube)
    with pytest.raises(UsageError, match="positive mass"):
        rolling_torus(mass=0.0)


@pytest.mark.parametrize("speed", [2.0, -3.0])
def test_a_sleigh_is_stable_with_its_mass_in_front_of_the_blade(speed: float) -> None:
    lin = fl.linearize(skate(speed, offset=0.3, mass=m, inertia=0.5))
    values = np.sort(lin.eigenvalues().real)
    rate = -m * 0.3 * speed / (0.5 + m * 0.3**2)
    np.testing.assert_allclose(values, sorted([rate, 0, 0, 0, 0]), atol=1e-14)


def test_a_skate_on_a_slope_stays_where_it_is_on_average() -> None:
    """A cycloid: v = (g sin(slope)/w) sin(w t), x = (g sin(slope)/(2 w^2)) sin(w t)^2."""
    w, pull = 1.7, 9.81 * np.sin(np.radians(25.0))
    model = skate(0.0, yaw_rate=w, slope=25.0)
    times = np.linspace(0.0, 2 * np.pi / w, 9)
    run = solve_ivp(
        lambda t, x: model.evaluate(t, x, np.zeros(2)).derivatives, (0, times[-1]), model.start.states, t_eval=times,
        rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    x, v, s = (run.y[model.states.names.index(n)] for n in ("x", "v", "s"))
    np.testing.assert_allclose(v, pull / w * np.sin(w * times), atol=1e-9)
    np.testing.assert_allclose(x, pull / (2 * w**2) * np.sin(w * times) ** 2, atol=1e-9)
    np.testing.assert_allclose(s, 0.0, atol=1e-15)


def test_slopes_of_the_skate_anywhere_on_its_way() -> None:
    """A in (x, y, psi, v, w) from x' = v cos(psi), y' = v sin(psi), v' = a w^2 + G cos(psi), w' = ..., by hand."""
    offset, J, pull = 0.3, 0.5, 9.81 * np.sin(np.radians(25.0))
    psi, v, w = 0.6, 1.2, -0.8
    model = skate(v, yaw_rate=w, offset=offset, mass=m, inertia=J, slope=25.0).with_start({"psi": psi})
    total = J + m * offset**2
    c, s = np.cos(psi), np.sin(psi)
    expected = np.zeros((5, 5))
    expected[0, 2:4] = -v * s, c
    expected[1, 2:4] = v * c, s
    expected[2, 4] = 1.0
    expected[3, 2], expected[3, 4] = -pull * s, 2 * offset * w
    expected[4, 2:] = -m * offset / total * np.array([pull * c, w, v])
    lin = fl.linearize(model)
    np.testing.assert_allclose(lin.A, expected, atol=1e-14)
    np.testing.assert_allclose(lin.B, np.array([[0, 0], [0, 0], [0, 0], [1 / m, 0], [0, 1 / total]]), atol=1e-15)
    np.testing.assert_allclose(lin.C[2], offset * expected[4] + np.array([0, 0, 0, w, v]), atol=1e-14)


@pytest.mark.parametrize("options", [{"mass": 0.0}, {"inertia": -1.0}, {"slope": 100.0}])
def test_other_skates_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="A skate needs"):
        skate(**options)
