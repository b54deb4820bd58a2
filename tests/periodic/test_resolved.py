"""Motions that equally spaced samples do not tell, and periods that are not the model's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import fmilin as fl
from fmilin.models import LagrangeModel, OdeModel
from fmilin.periodic.verdict import judge_multipliers
from tests.by_hand import FunctionModel, Parts


@pytest.mark.parametrize("points", [64, 128])
@pytest.mark.parametrize("harmonic", [63, 128, 254])
def test_harmonics_that_samples_mistake_are_found_between_them(harmonic: int, points: int) -> None:
    stiffness = f"(1.2 + 0.3*cos(2*time) + 0.9*cos({2 * harmonic}*time))"
    model = OdeModel("fast", {"x": "v", "v": f"-{stiffness}*x - 0.1*v"})
    floquet = fl.linearize_periodic(model, fl.periodic_orbit(model, period=np.pi), points=points).floquet()

    def rates(t: float, z: np.ndarray) -> np.ndarray:
        k = 1.2 + 0.3 * np.cos(2 * t) + 0.9 * np.cos(2 * harmonic * t)
        return np.asarray(np.array([[0.0, 1.0], [-k, -0.1]]) @ z.reshape(2, 2)).ravel()

    monodromy = solve_ivp(rates, (0, np.pi), np.eye(2).ravel(), "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    exact = np.linalg.eigvals(monodromy.reshape(2, 2))
    assert np.sort_complex(floquet.multipliers) == pytest.approx(np.sort_complex(exact), abs=1e-9)


@pytest.mark.parametrize("ends", ["by an error", "in no number"])
def test_a_model_that_is_defined_beside_its_motion_only_is_no_other_one(ends: str) -> None:
    def rates(t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        if abs(x[0] - 1) > 0.05:
            if ends == "by an error":
                raise fl.ModelError("not defined there")
            return np.array([np.nan])
        return np.array([1 - x[0] + 0.01 * np.cos(t)])

    model = FunctionModel(Parts(["x"], [1.0], rates))
    orbit = fl.periodic_orbit(model, period=2 * np.pi)
    assert fl.linearize_periodic(model, orbit).floquet().exponents == pytest.approx([-1.0], abs=1e-8)


def test_a_relaxation_oscillation_is_stable_by_its_mean_divergence() -> None:
    """The exponent is the mean of mu (1 - x^2), here by an integration of its own."""
    mu = 6.0
    model = OdeModel("van der Pol", {"x": "v", "v": f"{mu}*(1 - x**2)*v - x"}, start={"x": 2.0})
    orbit = fl.periodic_orbit(model)
    periodic = fl.linearize_periodic(model, orbit)
    floquet = periodic.floquet()

    def rates(_: float, z: np.ndarray) -> list[float]:
        return [z[1], mu * (1 - z[0] ** 2) * z[1] - z[0], mu * (1 - z[0] ** 2)]

    end = solve_ivp(rates, (0, orbit.period), [*orbit.start.states, 0.0], "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    assert floquet.exponents.real == pytest.approx([0.0, end[2] / orbit.period], abs=1e-7)
    assert (floquet.stable, list(floquet.unit)) == (True, ["the motion itself"])
    unsure = judge_multipliers(np.eye(1), np.full((1, 1), 0.4), [], np.zeros(1, dtype=np.complex128))
    assert unsure.stable is None
    assert unsure.text.startswith("cannot be determined: the multiplier")
    with pytest.raises(fl.UsageError, match=r"changes too fast for 64 phases"):
        periodic.harmonic(3)


def test_steps_are_halved_where_stiffness_jumps() -> None:
    """Meissner's equation with damping, written with |cos t|: the product of two exponentials."""
    model = OdeModel("Meissner", {"x": "v", "v": "-(2 + 0.9*cos(time)/abs(cos(time)))*x - 0.2*v"})
    floquet = fl.linearize_periodic(model, fl.periodic_orbit(model, period=2 * np.pi)).floquet()
    stiff, soft = (expm(np.array([[0.0, 1.0], [-k, -0.2]]) * np.pi) for k in (2.9, 1.1))
    exact = np.linalg.eigvals(soft @ stiff)
    assert np.sort_complex(floquet.multipliers) == pytest.approx(np.sort_complex(exact), abs=1e-9)


def test_a_period_with_which_nothing_acts_is_refused_even_where_the_motion_is_back() -> None:
    parametric = OdeModel("Mathieu", {"x": "v", "v": "-(1.2 + 0.3*sin(2*time))*x"})
    for period in (3.0, np.pi / 2):  # sin(2 t) is zero again after half of its period
        with pytest.raises(fl.NumericalError, match=r"its excitation does not: the rate of 'v'.*period of"):
            fl.periodic_orbit(parametric, period=period)
    pushed = OdeModel("pushed", {"x": "v", "v": "x - x**3 - 0.3*v + u"}, inputs=["u"], start={"x": 1.0})
    course = {"u": lambda t: 0.5 * np.cos(1.2 * t)}
    with pytest.raises(fl.NumericalError, match=r"returns after 5\.3 s, but its excitation does not"):
        fl.periodic_orbit(pushed, period=5.3, inputs=course)
    orbit = fl.periodic_orbit(pushed, period=2 * np.pi / 1.2, inputs=course)
    with pytest.raises(fl.UsageError, match=r"needs 4 points at least, not 3"):
        fl.linearize_periodic(pushed, orbit, points=3)


def test_carried_coordinates_say_that_they_do_not_know() -> None:
    """The ripple of the fortieth harmonic is not seen in 64 samples; a basis that turns along is not halved."""
    forces = ["-0.2*vx + 3*cos(40*time)", "-9.81 - 0.2*vy"]
    rod = LagrangeModel(
        "rod", {"x": "vx", "y": "vy"}, [[1, 0], [0, 1]], forces, constraints=["x^2 + y^2 - 1"], start={"y": -1.0}
    )
    orbit = fl.periodic_orbit(rod, period=2 * np.pi)
    kept, carried, fine = (
        fl.linearize_periodic(rod, orbit, coordinates=how, points=points).floquet()
        for how, points in (("partition", 64), ("tangent", 64), ("tangent", 256))
    )
    assert np.sort_complex(kept.multipliers) == pytest.approx(np.sort_complex(fine.multipliers), abs=1e-10)
    off = np.abs(np.sort_complex(carried.multipliers) - np.sort_complex(fine.multipliers)).max()
    assert 1e-4 < off < carried.accuracy["multipliers"] < np.inf


@pytest.mark.parametrize(
    ("pulse", "area"),
    [("1e6*max(0, 0.0015 - abs(time - 3))", 2.25), ("1000*exp(-((time - 3)/0.001)^2)", np.sqrt(np.pi))],
)
def test_the_multiplier_of_a_gain_that_is_pulsed(pulse: str, area: float) -> None:
    """x' = (h(t) - 1) x has the multiplier exp(area - 6) over 6 s; the pulse takes 3 ms."""
    model = OdeModel("pulsed", {"x": f"-x + ({pulse})*x + 1"})
    orbit = fl.periodic_orbit(model, period=6.0, segments=1)
    floquet = fl.linearize_periodic(model, orbit).floquet()
    assert floquet.multipliers.real == pytest.approx([np.exp(area - 6.0)], rel=1e-7)
    assert abs(floquet.multipliers[0] - np.exp(area - 6.0)) <= 3 * floquet.accuracy["multipliers"]


def test_the_phase_of_a_stable_path_drifts_where_its_neighbours_have_other_periods() -> None:
    """The deviations (phase, amplitude) of a pendulum without damping: the multiplier 1, twice, in one Jordan block."""
    phase = np.array([1.0, 0.0])
    M, logarithms = np.array([[1.0, -0.3], [0.0, 1.0]]), np.zeros(2, dtype=np.complex128)
    drifting = judge_multipliers(M, np.zeros((2, 2)), [phase], logarithms)
    assert (drifting.stable, drifting.orbitally_stable) == (False, True)
    assert "the path itself is neutral, neighbouring motions have other periods" in drifting.text
    isochronous = judge_multipliers(np.eye(2), np.zeros((2, 2)), [phase], logarithms)
    assert isochronous.stable is True
