"""Floquet's theory against systems whose exponents are known in closed form, or by an independent integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from scipy.integrate import solve_ivp

import fmilin as fl
from fmilin import Floquet
from fmilin.errors import NumericalError
from fmilin.models import OdeModel
from fmilin.periodic.floquet import Periodic, floquet
from fmilin.periodic.fourier import Interpolant, derivative
from fmilin.periodic.transition import NODES, WEIGHTS, factors
from fmilin.report.periodic import floquet_mode_figure
from fmilin.signals import FloatArray, Signals


def of(A: FloatArray, period: float, **more: FloatArray) -> Floquet:
    order = A.shape[-1]
    return floquet(Periodic(A, period, more.get("jump", np.eye(order)), np.zeros_like(A)), Signals(["y"] * 0))


def mathieu(a: float, q: float, points: int = 64) -> FloatArray:
    """x'' + (a - 2 q cos 2t) x = 0 over the period pi."""
    t = np.pi * np.arange(points) / points
    A = np.zeros((points, 2, 2))
    A[:, 0, 1], A[:, 1, 0] = 1.0, -(a - 2 * q * np.cos(2 * t))
    return A


def test_the_collocation_nodes_are_those_of_radau() -> None:
    assert NODES[-1] == 1.0
    for power in range(7):  # order 7: weights integrate polynomials of degree 6
        assert WEIGHTS[-1] @ NODES**power == pytest.approx(1 / (power + 1), abs=1e-14)


def test_samples_are_interpolated_and_differentiated_exactly_where_harmonics_are_few() -> None:
    t = np.arange(16) / 16
    samples = 1 + np.sin(2 * np.pi * t) - 0.3 * np.cos(6 * np.pi * t)
    at = np.array([0.123, 0.77])
    assert Interpolant(samples)(at) == pytest.approx(
        1 + np.sin(2 * np.pi * at) - 0.3 * np.cos(6 * np.pi * at), abs=1e-14
    )
    rate = np.pi * np.cos(2 * np.pi * t) + 0.9 * np.pi * np.sin(6 * np.pi * t)
    assert derivative(samples, 2.0) == pytest.approx(rate, abs=1e-12)


def test_a_rotating_frame_has_the_exponents_of_the_system_at_rest() -> None:
    """y = Q(t) z with z' = A0 z: A = Q A0 Q' + Q' has the exponents of A0, whatever Q does."""
    A0 = np.array([[-0.1, 2.0, 0.0], [-3.0, -0.2, 0.0], [0.0, 0.0, -0.7]])
    samples = []
    for phase in np.arange(64) / 64:
        c, s, w = np.cos(2 * np.pi * phase), np.sin(2 * np.pi * phase), 2 * np.pi / 5.0
        Q = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
        rate = w * np.array([[-s, 0, -c], [0, 0, 0], [c, 0, -s]])
        samples.append(Q @ A0 @ Q.T + rate @ Q.T)
    result = of(np.array(samples), 5.0)
    exact = np.exp(5.0 * np.linalg.eigvals(A0))
    assert np.sort_complex(result.multipliers) == pytest.approx(np.sort_complex(exact), abs=1e-12)


@pytest.mark.parametrize(("a", "q"), [(0.5, 0.1), (2.3, 0.4), (5.0, 2.0), (-0.05, 0.5)])
def test_multipliers_of_mathieus_equation_are_those_of_an_integration(a: float, q: float) -> None:
    def rates(t: float, y: FloatArray) -> FloatArray:
        return np.array([y[1], -(a - 2 * q * np.cos(2 * t)) * y[0], y[3], -(a - 2 * q * np.cos(2 * t)) * y[2]])

    motion = solve_ivp(rates, (0, np.pi), [1, 0, 0, 1], method="DOP853", rtol=1e-13, atol=1e-14)
    M = motion.y[:, -1].reshape(2, 2).T
    result = of(mathieu(a, q), np.pi)
    assert result.multipliers.sum() == pytest.approx(np.trace(M), abs=1e-10)
    assert np.prod(result.multipliers) == pytest.approx(1.0, abs=1e-12)


def _lines(q: float) -> list[float]:
    """The values of a at which Mathieu's equation changes its stability, in rising order."""
    even = [float(special.mathieu_a(n, q)) for n in range(4)]
    odd = [float(special.mathieu_b(n, q)) for n in range(1, 5)]
    return sorted([*even, *odd])


@pytest.mark.parametrize("q", [0.5, 1.0, 2.0, 3.0, 5.0])
def test_stability_is_told_rightly_beside_every_line_of_mathieus_chart(q: float) -> None:
    """Bounded between a_n and b_(n+1), unbounded elsewhere (McLachlan, section 3.20): 8 points for each q."""
    for number, line in enumerate(_lines(q)[:4]):
        for side in (-1e-3, 1e-3):
            bounded = (number % 2 == 0) == (side > 0)
            assert of(mathieu(line + side, q), np.pi).stable == bounded, (q, number, side)


def test_exponents_span_more_orders_than_a_product_of_factors_holds() -> None:
    """Multipliers from e^0.6 to e^-251: y = V(t) z, z' = D z."""
    D, t = np.diag([0.1, -1.0, -10.0, -40.0]), 2 * np.pi * np.arange(64) / 64
    K = 0.3 * np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]])
    samples = np.array(
        [((np.eye(4) + K * np.sin(s)) @ D + K * np.cos(s)) @ np.linalg.inv(np.eye(4) + K * np.sin(s)) for s in t]
    )
    result = of(samples, 2 * np.pi)
    assert result.exponents.real == pytest.approx([0.1, -1.0, -10.0, -40.0], abs=1e-9)
    assert np.abs(result.exponents.imag).max() < 1e-12


def test_modes_are_periodic_solutions_once_their_growth_is_taken_out() -> None:
    A = mathieu(2.3, 0.4)
    result = of(A, np.pi)
    for k, exponent in enumerate(result.exponents):
        p = result.modes[:, :, k]
        rate = derivative(p.real, np.pi) + 1j * derivative(p.imag, np.pi)
        assert rate == pytest.approx((A @ p[..., None])[..., 0] - exponent * p, abs=1e-9)
    assert result.participation.sum(axis=0) == pytest.approx(1.0)


def test_a_reflection_at_the_end_of_the_period_is_part_of_the_map() -> None:
    """y' = a(t) y with y(T+) = -y(T-): the multiplier is -exp of the integral of a."""
    t = np.arange(32) / 32
    A = (-0.2 + np.cos(2 * np.pi * t))[:, None, None]
    result = of(A, 1.0, jump=-np.eye(1))
    assert result.multipliers == pytest.approx([-np.exp(-0.2)], abs=1e-13)
    assert result.exponents == pytest.approx([-0.2 + np.pi * 1j], abs=1e-12)


def test_motions_that_no_number_of_steps_resolves_are_refused() -> None:
    """x' = -1e6 x over one second: eight thousand steps would have made -2.8e4 of the exponent."""
    assert len(factors(lambda at: np.full((*at.shape, 1, 1), -1e2), 1.0, 64)) >= 64
    with pytest.raises(NumericalError, match="steps do not resolve the motion over 1 s"):
        factors(lambda at: np.full((*at.shape, 1, 1), -1e6), 1.0, 64)


def test_accuracy_tells_too_few_points() -> None:
    t = np.arange(16) / 16
    sharp = (1 / (1.05 + np.cos(2 * np.pi * t)))[:, None, None]
    exact = 1 / np.sqrt(1.05**2 - 1)
    result = of(sharp, 1.0)
    error = abs(result.exponents[0] - exact)
    assert 1e-3 < error < 10 * result.accuracy["exponents"]


def test_a_picture_of_modes_names_the_states_that_it_leaves_out() -> None:
    """Of a vibration at 100 rad/s the position is a hundredth of the velocity."""
    model = OdeModel("fast", {"x": "v", "v": "-(1e4 + 10*cos(100*time))*x - v"})
    orbit = fl.periodic_orbit(model, period=2 * np.pi / 100)
    axes = floquet_mode_figure(fl.linearize_periodic(model, orbit).floquet()).axes[0]
    assert axes.get_title(loc="left") == "smaller, and not drawn: x"
    assert [line.get_label() for line in axes.lines] == ["v"]
