"""The five-bar mechanism against its mechanics by another way, against quadratures, and against the published runs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

import fmilin as fl
from fmilin.models import MultiplierModel, NullSpaceModel
from fmilin.signals import FloatArray
from fmilin.simulation import Baumgarte, Method, Projection
from fmilin.systems import five_bar
from tests.exact import products_of

LENGTH, MASS, INERTIA = np.array([1, 1.5, 1.5, 1]), np.array([2.0, 3, 3, 2]), np.array([1.0, 2, 2, 1])
G = 9.81
RETURN = 2.82536845859
"""s, along the symmetric branch from rest at the singular configuration and back."""


def angles(q: FloatArray) -> FloatArray:
    """Absolute angles of the links."""
    return np.cumsum(q) + np.pi * np.arange(4)


def centres(q: FloatArray) -> NDArray[np.complex128]:
    """Centres of mass, complex numbers for points, shape (4,)."""
    links = LENGTH * np.exp(1j * angles(q))
    points: NDArray[np.complex128] = np.cumsum(links) - links / 2
    return points


def kinetic_energy(q: FloatArray, v: FloatArray) -> float:
    """By differences of the positions of the centres of mass."""
    h = 1e-6
    speed = np.abs(centres(q + h * v) - centres(q - h * v)) / (2 * h)
    return float(0.5 * (MASS @ speed**2 + INERTIA @ np.cumsum(v) ** 2))


def test_states_and_start_of_the_contract() -> None:
    model = five_bar()
    assert model.states.names == ("q1", "q2", "q3", "q4", "v1", "v2", "v3", "v4")
    assert model.states.units == ("rad",) * 4 + ("rad/s",) * 4
    beta = np.pi / 3 + np.arccos(2 / 3)
    np.testing.assert_allclose(model.start.states, [2 * np.pi / 3, beta, 2 * np.arcsin(2 / 3), beta, 0, 0, 0, 0])
    np.testing.assert_allclose(five_bar(singular=True).start.states[:4], [np.pi, 0, np.pi, 0])
    for start in (five_bar(), five_bar(singular=True)):
        g = start.constraints.residuals(0.0, start.start.states, np.zeros(2), np.empty(0))
        np.testing.assert_allclose(g, 0.0, atol=1e-15)


def test_the_printed_singular_posture_does_not_close() -> None:
    model = five_bar()
    printed = np.array([np.pi, 0, 0, np.pi, 0, 0, 0, 0])
    g = model.constraints.residuals(0.0, printed, np.zeros(2), np.empty(0))
    assert np.abs(g).max() > 1


def test_energies_by_another_way() -> None:
    model = five_bar()
    random = np.random.default_rng(5)
    for _ in range(5):
        x = random.uniform(-3, 3, 8)
        at = dict(zip(model.outputs.names, model.evaluate(0.0, x, np.zeros(2)).outputs, strict=True))
        np.testing.assert_allclose(at["kinetic_energy"], kinetic_energy(x[:4], x[4:]), rtol=1e-8)
        np.testing.assert_allclose(at["potential_energy"], G * MASS @ centres(x[:4]).imag, rtol=1e-13)
        end_of_second = 2 * centres(x[:4])[1] - np.exp(1j * angles(x[:4])[0])
        np.testing.assert_allclose(at["middle.x"] + 1j * at["middle.y"], end_of_second, rtol=1e-13)


def test_power_of_the_torques_is_the_change_of_the_energy() -> None:
    """dE/dt = left_torque theta_1' + right_torque theta_4' for velocities that keep the loop closed."""
    model = five_bar()
    point = fl.operating_point(model, {"q1": 2.2, "q2": 1.7, "v1": 0.8, "v2": -1.3})
    x, u = point.states, np.array([3.0, -5.0])
    f = model.evaluate(0.0, x, u).derivatives
    slope = products_of(model.with_interface(outputs=["energy"]), 0.0, x, u, f[:, None], np.zeros((2, 1))).outputs[0, 0]
    np.testing.assert_allclose(slope, 3.0 * x[4] - 5.0 * x[4:].sum(), rtol=1e-11)


def test_equilibrium_where_it_hangs() -> None:
    """Mirrored about x = 1/2 with the middle at its lowest: at rest, swinging in two ways, and never falling."""

    def height(a: float) -> float:
        return float(MASS @ centres(hanging(a)).imag)

    lowest = minimize_scalar(height, bounds=(3.5, 6.0), method="bounded", options={"xatol": 1e-10}).x
    model = five_bar()
    point = fl.operating_point(model, dict(zip(("q1", "q2", "q3", "q4"), hanging(lowest), strict=True)))
    lin = fl.linearize(model, point, independent=["q1", "q4"])
    np.testing.assert_allclose(lin.f0, 0.0, atol=1e-5)
    np.testing.assert_allclose(lin.eigenvalues().real, 0.0, atol=1e-6)
    assert (np.abs(lin.eigenvalues().imag) > 0.5).all()


def hanging(a: float) -> FloatArray:
    """Joint angles with theta_1 = a, mirrored about x = 1/2, theta_2 in the lower half."""
    b = -np.arccos((0.5 - np.cos(a)) / 1.5)
    return np.array([a, b - np.pi - a, np.pi - 2 * b, b - np.pi - a])


# -- along the symmetric branch ----------------------------------------------------------------------


def symmetric(a: float) -> FloatArray:
    """Joint angles with theta_1 = a, mirrored about x = 1/2, the middle above (theta_2 in the upper half)."""
    b = np.arccos((0.5 - np.cos(a)) / 1.5)
    return np.array([a, b - np.pi - a, np.pi - 2 * b, b - np.pi - a])


def time_between(start: float, end: float) -> float:
    """Quadrature of the energy integral over theta_1 = a: dt = da sqrt(m(a) / (2 (V(start) - V(a))))."""

    def height(a: float) -> float:
        return float(G * MASS @ centres(symmetric(a)).imag)

    def integrand(s: float) -> float:
        a = start + (end - start) * s**2  # rest at the start: the root there is taken out
        h = 1e-6
        rate = (symmetric(a + h) - symmetric(a - h)) / (2 * h)
        mass = 2 * kinetic_energy(symmetric(a), rate)
        return float(np.sqrt(mass / (2 * (height(start) - height(a)))) * abs(end - start) * 2 * s)

    return float(quad(integrand, 0, 1, epsabs=1e-9, limit=200)[0])


def test_it_reaches_the_singular_configuration_when_the_energy_integral_says() -> None:
    """Released at the regular configuration it falls straight through the singular one, theta_1 = pi."""
    expected = time_between(2 * np.pi / 3, np.pi - 1e-7)
    motion = fl.simulate(NullSpaceModel(five_bar()), stop_time=0.64, step=0.002, energy="energy")
    np.testing.assert_allclose(motion["middle.x"], 0.5, atol=1e-9)
    np.testing.assert_allclose(motion.energy, motion.energy[0], rtol=1e-6)
    late = motion.times > 0.6
    course = np.polynomial.Polynomial.fit(motion.times[late], motion["q1"][late], 8)
    arrival = brentq(lambda t: course(t) - np.pi, 0.62, 0.68)
    np.testing.assert_allclose(arrival, expected, atol=2e-6)


def test_back_at_the_singular_configuration_after_2_82_s() -> None:
    """The first published run, nothing done about the drift: 2.82 s in the thesis, 2.82536845859 s by quadrature."""
    model = NullSpaceModel(five_bar(singular=True))
    motion = fl.simulate(
        model,
        stop_time=2.82,
        step=0.002,
        stabilization="none",
        method=Method(relative=1e-11, absolute=1e-13),
        energy="energy",
    )
    assert motion.largest_drift < 1e-9
    assert np.abs(motion.energy).max() < 1e-7
    t, v, q = motion.times[-25:], motion["v1"][-25:], motion["q1"][-25:]
    rest = float(brentq(np.polynomial.Polynomial.fit(t, v, 6), 2.81, 2.84))
    np.testing.assert_allclose(rest, RETURN, atol=1e-5)
    np.testing.assert_allclose(np.polynomial.Polynomial.fit(t, q, 6)(rest), np.pi, atol=1e-6)


def test_through_the_singularity_three_times_and_the_energy_of_both_formulations() -> None:
    """The second published run in its own settings: RK4 of 1 ms, projection converged at 1e-3, alpha = beta = 10."""
    rk4 = Method("RK4", longest_step=1e-3)
    null_space, multipliers = NullSpaceModel(five_bar()), MultiplierModel(five_bar())
    projected = fl.simulate(
        null_space,
        stop_time=4.2,
        step=5e-3,
        method=rk4,
        energy="energy",
        stabilization=Projection(keeps_energy=True, tolerance=1e-3),
    )
    held = fl.simulate(
        multipliers, stop_time=4.2, step=5e-3, method=rk4, energy="energy", stabilization=Baumgarte(10.0, 10.0)
    )
    for motion in (projected, held):
        kappa = np.array([null_space.singularity(0.0, x).constraints.condition_number for x in motion.states])
        peaks = (kappa[1:-1] > kappa[:-2]) & (kappa[1:-1] >= kappa[2:]) & (kappa[1:-1] > 50)
        np.testing.assert_allclose(motion.times[1:-1][peaks], [0.65, 1.855, 3.91], atol=0.011)
    wrong = [float(np.abs(m.energy - m.energy[0]).max()) for m in (projected, held)]
    assert wrong[0] < 0.1
    assert wrong[1] > 1.0


@pytest.mark.parametrize("stabilization", ["projection", "local", "none"])
def test_every_stabilization_falls_alike(stabilization: str) -> None:
    motion = fl.simulate(five_bar(), stop_time=0.6, step=0.1, stabilization=stabilization)
    reference = fl.simulate(
        NullSpaceModel(five_bar()), stop_time=0.6, step=0.1, method=Method(relative=1e-12, absolute=1e-13)
    )
    np.testing.assert_allclose(motion.states, reference.states, atol=1e-6)
