"""Multipliers of delayed systems with periodic coefficients: closed forms, certificates by integration, milling."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import lambertw, mathieu_a

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.numerics.delayed_monodromy import (
    DelayCoefficients,
    PeriodicDelaySystem,
    collocate_period,
    semi_discretize_period,
    sort_multipliers,
)

TURN = 2 * np.pi
NONE = np.zeros((1, 1))


def mathieu(stiffness: float, excitation: float, gain: float) -> PeriodicDelaySystem:
    """x'' + (stiffness + excitation cos t) x = gain x(t - 2 pi)."""

    def coefficients(t: float) -> DelayCoefficients:
        A = np.array([[0.0, 1.0], [-(stiffness + excitation * np.cos(t)), 0.0]])
        return DelayCoefficients(A, np.array([[0.0], [gain]]), np.array([[1.0, 0.0]]), NONE)

    return PeriodicDelaySystem(coefficients, np.array([TURN]), TURN)


@pytest.mark.parametrize("gain", [-0.3, 0.2])
@pytest.mark.parametrize(("order", "multiplier"), [(0, 1.0), (2, 1.0), (1, -1.0)])
def test_boundaries_of_the_delayed_mathieu_equation(order: int, multiplier: float, gain: float) -> None:
    """Insperger and Stepan (2002): lines of slope +-1 through the boundaries of Mathieu's equation.

    A solution with x(t - 2 pi) = mu x(t), mu = +-1, is one of Mathieu's equation with the stiffness less mu gain.
    """
    excitation = 0.5
    stiffness = float(mathieu_a(order, 2 * excitation)) / 4 + multiplier * gain
    system = mathieu(stiffness, excitation, gain)
    values = sort_multipliers(collocate_period(system, system.make_mesh(8), 10), 12)
    assert np.abs(values - multiplier).min() < 1e-12


@pytest.mark.parametrize("delay", [0.7, 1.9])
def test_constant_coefficients_have_the_eigenvalues_of_hayes_equation(delay: float) -> None:
    """x' = -x - 2 x(t - delay), over a period that has nothing to do with the delay."""

    def coefficients(_: float) -> DelayCoefficients:
        return DelayCoefficients(np.array([[-1.0]]), np.array([[-2.0]]), np.array([[1.0]]), NONE)

    system = PeriodicDelaySystem(coefficients, np.array([delay]), 1.3)
    s = -1 + lambertw(-2 * delay * np.exp(delay)) / delay
    values = sort_multipliers(collocate_period(system, system.make_mesh(4), 10), 2)
    assert np.abs(values - np.exp(1.3 * s)).min() < 1e-12
    off = [abs(np.abs(sort_multipliers(semi_discretize_period(system, n), 2)).max() - abs(np.exp(1.3 * s)))
           for n in (100, 200)]  # fmt: skip
    assert off[1] < 1e-5
    assert off[1] < off[0] / 2


def milling(depth: float, speed: float, *, teeth: int) -> OdeModel:
    """One degree of freedom, immersion over half a turn: 922 Hz, damping 1.1 %, 39.93 g (Insperger and Stepan 2004)."""
    force = "(600*sin(p)*cos(p) + 200*sin(p)^2)"
    if teeth == 1:
        force = "max(sin(p), 0)*(600*cos(p) + 200*sin(p))"
    force = force.replace("p)", "speed*time)")
    rates = {"x": "v", "v": f"-2*0.011*5793*v - 5793^2*x - depth*1e6/0.03993*{force}*(x - delay(x, {teeth}*T))"}
    T = TURN / speed / teeth
    rates["v"] = rates["v"].replace(f"{teeth}*T", "T")
    return OdeModel("milling", rates, parameters={"depth": depth, "speed": speed, "T": T})


def compute_growth(depth: float, speed: float, mu: complex) -> NDArray[np.complex128]:
    """Return the multipliers of x' = (A(t) + B(t) C / mu) x: mu is one of them if it is one of the delayed system."""
    T = TURN / speed / 2

    def rates(t: float, y: NDArray[np.complex128]) -> NDArray[np.complex128]:
        x, v = y.reshape(2, 2)
        p = speed * t
        force = depth * 1e6 / 0.03993 * (600 * np.sin(p) * np.cos(p) + 200 * np.sin(p) ** 2)
        return np.concatenate((v, -2 * 0.011 * 5793 * v - 5793.0**2 * x - force * (1 - 1 / mu) * x))

    start = np.array([1, 0, 0, 1], dtype=complex)
    run = solve_ivp(rates, (0.0, T), start, rtol=1e-11, atol=1e-13, method="DOP853")
    return np.asarray(np.linalg.eigvals(run.y[:, -1].reshape(2, 2)))


def test_multipliers_of_milling_are_confirmed_by_integration() -> None:
    """The delay is the period: a multiplier mu makes x(t - T) = x(t) / mu, an equation without a delay."""
    depth, speed = 1e-3, TURN * 150.0
    result = fl.delayed_floquet(milling(depth, speed, teeth=2), period=TURN / speed / 2)
    assert result.remarks == ()
    for mu in result.multipliers[:3]:
        found = compute_growth(depth, speed, complex(mu))
        assert np.abs(found - mu).min() < 1e-7 * abs(mu)
    assert abs(abs(result.semi_discretized) - abs(result.multipliers[0])) < 10 * result.semi_error


@pytest.mark.parametrize(("depth", "published"), [(2e-4, 0.8192), (5e-4, 1.0726), (1e-3, 1.4040)])
def test_multipliers_of_milling_are_those_published_for_5000_turns_a_minute(depth: float, published: float) -> None:
    """Ding, Zhu, Zhang and Ding (2010): semi-discretization with 200 intervals, up to 0.2 % below the limit of many."""
    speed = TURN * 5000 / 60
    result = fl.delayed_floquet(milling(depth, speed, teeth=2), period=TURN / speed / 2)
    ratio = abs(result.multipliers[0]) / published
    assert 1.0 < ratio < 1.002


def test_a_deeper_cut_is_unstable_and_a_tooth_that_enters_is_a_break() -> None:
    speed = TURN * 150.0
    period = TURN / speed
    shallow, deep = (
        fl.delayed_floquet(milling(depth, speed, teeth=1), period=period, breaks=[period / 2]) for depth in (1e-5, 3e-3)
    )
    assert (shallow.stable, deep.stable) == (True, False)
    assert deep.errors.max() < 1e-8 * abs(deep.multipliers[0])
    assert "unstable: a multiplier is outside the unit circle" in repr(deep)


def test_what_has_no_multipliers_is_an_error() -> None:
    plain = OdeModel("plain", {"x": "-x"})
    with pytest.raises(fl.UsageError, match=r"has no delays: use fl\.periodic_orbit"):
        fl.delayed_floquet(plain, period=1.0)
    moving = OdeModel("moving", {"x": "cos(time) - delay(x, 1)"})
    with pytest.raises(fl.UsageError, match="must be an equilibrium at all times"):
        fl.delayed_floquet(moving, period=TURN)
    other = OdeModel("other", {"x": "-(1 + 0.5*cos(time))*delay(x, 1)"})
    with pytest.raises(fl.UsageError, match="are not the same after a period of 3 s"):
        fl.delayed_floquet(other, period=3.0)
    with pytest.raises(fl.UsageError, match="Breaks are times"):
        fl.delayed_floquet(other, period=TURN, breaks=[7.0])
