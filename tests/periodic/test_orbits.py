"""Orbits against published numbers, closed forms, and the same motion in other coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import fmilin as fl
from fmilin.models import LagrangeModel, OdeModel
from fmilin.systems import cartesian_pendulum, rolling_disk


def van_der_pol(**start: float) -> OdeModel:
    return OdeModel("van der Pol", {"x": "v", "v": "(1 - x**2)*v - x"}, start=start or {"x": 2.0})


def mathieu(delta: float = 1.2, eps: float = 0.3) -> OdeModel:
    rate = {"x": "v", "v": "-(delta + eps*cos(time))*x"}
    return OdeModel("Mathieu", rate, parameters={"delta": delta, "eps": eps})


def test_van_der_pols_limit_cycle_to_ten_digits() -> None:
    """The period 6.6632868593231 is known to far more digits (Andersen and Geer 1982); its multiplier is
    exp of the integral of the divergence, 1 - x^2, over the orbit."""
    model = van_der_pol()
    orbit = fl.periodic_orbit(model)
    assert orbit.period == pytest.approx(6.6632868593231, rel=1e-11)
    floquet = fl.linearize_periodic(model, orbit, points=128).floquet()
    x = orbit.states()[:-1, 0]
    assert floquet.multipliers[0] == 1.0
    assert list(floquet.unit) == ["the motion itself"]
    # The integrator's tolerance is 1e-12; the exponent of so small a multiplier has a thousand times its error.
    assert floquet.multipliers[1].real == pytest.approx(np.exp(orbit.period * np.mean(1 - x**2)), abs=2e-12)
    assert floquet.stable


def test_a_start_far_from_a_limit_cycle_settles_first() -> None:
    assert fl.periodic_orbit(van_der_pol(x=0.05)).period == pytest.approx(6.6632868593231, rel=1e-10)


def test_rest_is_no_orbit_whose_period_could_be_found() -> None:
    with pytest.raises(fl.NumericalError, match=r"begins at an equilibrium and stays there.*start=\{'NAME': VALUE\}"):
        fl.periodic_orbit(van_der_pol(x=0.0))


def test_a_period_that_does_not_fit_is_refused_with_what_would_help() -> None:
    with pytest.raises(fl.NumericalError, match=r"after 5 s is an equilibrium without excitation.*leave period= out"):
        fl.periodic_orbit(van_der_pol(x=0.3), period=5.0)


def test_a_given_period_may_be_a_first_guess() -> None:
    orbit = fl.periodic_orbit(van_der_pol(), period=6.5, free=["period"])
    assert orbit.period == pytest.approx(6.6632868593231, rel=1e-10)


def test_a_multiple_of_the_period_is_told() -> None:
    orbit = fl.periodic_orbit(van_der_pol(), period=20.0, free=["period"])
    (remark,) = orbit.remarks
    assert remark.kind == "multiple-period"
    assert "3 times within 19.98" in remark.message
    assert "multiple of 6.66328686 s" in remark.message


def test_a_forced_oscillator_answers_as_its_transfer_function_says() -> None:
    model = OdeModel("forced", {"x": "v", "v": "-4*x - 0.2*v + cos(3*time)"})
    orbit = fl.periodic_orbit(model, period=2 * np.pi / 3)
    assert orbit.start.states[0] == pytest.approx((1 / (4 - 9 + 0.6j)).real, abs=1e-11)
    floquet = fl.linearize_periodic(model, orbit).floquet()
    poles = np.roots([1, 0.2, 4])
    assert np.sort_complex(floquet.multipliers) == pytest.approx(
        np.sort_complex(np.exp(poles * orbit.period)), abs=1e-12
    )


def test_the_constant_force_that_keeps_a_mean_is_solved_for() -> None:
    model = OdeModel("forced", {"x": "v", "v": "-4*x - 0.2*v + cos(3*time) + f"}, inputs=["f"])
    orbit = fl.periodic_orbit(model, period=2 * np.pi / 3, fixed={"x": 1.0}, free=["f"])
    assert orbit.free["f"] == pytest.approx(4 * (1.0 - (1 / (4 - 9 + 0.6j)).real), abs=1e-9)


@pytest.mark.parametrize("amplitude", [0.3, 2.5])
def test_a_pendulum_in_cartesian_coordinates_swings_as_the_elliptic_integral_says(amplitude: float) -> None:
    model = cartesian_pendulum(length=1.0, gravity=9.0, angle=amplitude)
    orbit = fl.periodic_orbit(model)
    assert orbit.period == pytest.approx(4 / 3 * special.ellipk(np.sin(amplitude / 2) ** 2), rel=1e-10)
    floquet = fl.linearize_periodic(model, orbit).floquet()
    assert floquet.multipliers == pytest.approx([1.0, 1.0], abs=1e-8)


def test_a_pendulum_that_goes_round_and_round_has_no_states_that_are_good_everywhere() -> None:
    """A basis of the tangent space is carried once around; both multipliers are 1: the motion itself, its energy."""
    model = cartesian_pendulum(length=1.0, gravity=9.0)
    start = fl.operating_point(model, {"x": 0.0, "y": -1.0, "vx": 8.0, "vy": 0.0})
    orbit = fl.periodic_orbit(model, start)
    k = 4 * 9.0 / 64.0  # theta'^2 = 64 (1 - k sin(theta/2)^2)
    assert orbit.period == pytest.approx(4 / 8 * special.ellipk(k), rel=1e-10)
    periodic = fl.linearize_periodic(model, orbit)
    assert periodic.states.names == ("tangent[x]", "tangent[vx]")
    assert periodic.floquet().multipliers == pytest.approx([1.0, 1.0], abs=1e-8)


def test_an_unstable_upright_pendulum_is_held_by_its_pivot() -> None:
    """Kapitza's: theta'' = (g - a W^2 cos Wt)/l sin theta stands where (a W)^2 > 2 g l, in both descriptions."""
    omega, g = 2 * np.pi * 12, 9.81
    for amplitude, stands in ((0.05, False), (0.08, True)):
        rate = {"q": "w", "w": "(9.81 - a*W**2*cos(W*time))*sin(q)"}
        model = OdeModel("Kapitza", rate, parameters={"a": amplitude, "W": omega})
        assert ((amplitude * omega) ** 2 > 2 * g) == stands
        orbit = fl.periodic_orbit(model, period=2 * np.pi / omega)
        assert fl.linearize_periodic(model, orbit).floquet().stable == stands


def test_what_turns_must_be_an_angle() -> None:
    with pytest.raises(
        fl.UsageError, match=r"'x' is not an angle that turns: after a turn of 6.28319 rad the rate of 'v'"
    ):
        fl.periodic_orbit(van_der_pol(), turn="x")


def test_a_state_that_drifts_is_named_as_cyclic() -> None:
    model = OdeModel("rolls away", {"s": "v", "v": "0.1*cos(time)"}, start={"v": 1.0})
    with pytest.raises(fl.NumericalError, match=r"'s' is cyclic: nothing depends on it.*steady=\['s'\]"):
        fl.periodic_orbit(model, period=2 * np.pi, fixed={"v": 1.0})
    orbit = fl.periodic_orbit(model, period=2 * np.pi, fixed={"v": 1.0}, steady=["s"])
    assert orbit.shift == pytest.approx([2 * np.pi, 0.0])
    floquet = fl.linearize_periodic(model, orbit).floquet()
    assert floquet.multipliers == pytest.approx([1.0, 1.0])


def test_the_family_over_the_phase_has_the_matrices() -> None:
    model = mathieu()
    periodic = fl.linearize_periodic(model, fl.periodic_orbit(model, period=2 * np.pi), points=16)
    family = periodic.family()
    assert family.axes["phase"] == pytest.approx(np.arange(16) / 16)
    assert family.A[:, 1, 0] == pytest.approx(-(1.2 + 0.3 * np.cos(2 * np.pi * family.axes["phase"])))


def test_phases_are_linearized_as_the_points_of_a_path_are() -> None:
    model = mathieu()
    orbit = fl.periodic_orbit(model, period=2 * np.pi)
    periodic = fl.linearize_periodic(model, orbit, points=16)
    family = fl.linearize_along(model, periodic.points)
    assert np.array_equal(periodic.A, family.A)
    assert np.array_equal(periodic.error, family.array("error_A"))


def test_a_periodic_model_that_was_not_checked_says_so_once() -> None:
    model = mathieu()
    orbit = fl.periodic_orbit(model, period=2 * np.pi)
    checked = fl.linearize_periodic(model, orbit, points=16)
    unchecked = fl.linearize_periodic(model, orbit, points=16, checks="none")
    assert np.array_equal(unchecked.A, checked.A)
    assert [remark.kind for remark in unchecked.remarks if remark not in checked.remarks] == ["unchecked"]


@pytest.mark.parametrize("suffix", [".json", ".npz", ".mat", ".nc"])
def test_files_give_back_what_went_in(suffix: str, tmp_path: object) -> None:
    model = van_der_pol()
    periodic = fl.linearize_periodic(model, fl.periodic_orbit(model))
    path = f"{tmp_path}/periodic{suffix}"
    periodic.save(path)
    again = fl.PeriodicModel.load(path)
    assert np.array_equal(again.A, periodic.A)
    assert again.states.names == periodic.states.names
    assert again.period == periodic.period
    assert again.floquet().multipliers == pytest.approx(periodic.floquet().multipliers)
    assert again.floquet().unit == periodic.floquet().unit


def test_a_file_that_holds_no_periodic_model_is_refused_by_its_name(tmp_path: object) -> None:
    with pytest.raises(fl.UsageError, match=r"as a periodic model: it has the suffix '\.csv'\. Known are \.nc"):
        fl.PeriodicModel.load(f"{tmp_path}/periodic.csv")


def test_an_unstable_orbit_is_held_by_pieces_and_refused_where_they_are_too_few() -> None:
    """x' = k x + cos t has the orbit (sin t - k cos t)/(1 + k^2), and the multiplier e^(2 pi k)."""

    def model(k: float) -> OdeModel:
        return OdeModel("leaves", {"x": f"{k}*x + cos(time)"})

    for k, segments in ((6.0, None), (12.0, 16)):
        orbit = fl.periodic_orbit(model(k), period=2 * np.pi, segments=segments)
        assert orbit.start.states == pytest.approx([-k / (1 + k**2)], abs=1e-11)
        assert fl.linearize_periodic(model(k), orbit).floquet().exponents == pytest.approx([k])
    with pytest.raises(fl.NumericalError, match=r"does not close.*'x' is off by .*use more segments \(segments=64"):
        fl.periodic_orbit(model(12.0), period=2 * np.pi, segments=2)


def test_a_wheel_that_rolls_away_says_where_it_goes() -> None:
    with pytest.raises(fl.NumericalError, match=r"'q4' is cyclic: nothing depends on it, and it goes on by 2 every"):
        fl.periodic_orbit(rolling_disk(), period=2.0)


def test_a_motion_through_a_singular_configuration_says_when() -> None:
    """A parallel crank folds at a right angle: the other branch begins there, and no Newton step accepts the orbit."""
    model = LagrangeModel(
        "parallel", {"a": "wa", "b": "wb"}, [["1", "0"], ["0", "1"]], ["0", "0"], constraints=["sin(a) - sin(b)"],
        start={"wa": 3.0, "wb": 3.0},
    )  # fmt: skip
    with pytest.raises(fl.NumericalError, match=r"passes a singular configuration at t = 0\.5235.*3 states are indep"):
        fl.periodic_orbit(model, turn="a")


@pytest.mark.parametrize("rate", [1e-7, 1e-6, 1e-3])
def test_a_slow_cycle_is_found_with_its_decay(rate: float) -> None:
    """Stuart and Landau's oscillator: the distance from r = 1 decays by exp(-2 rate T)."""
    equations = {"x": f"{rate}*x*(1 - x^2 - y^2) - y", "y": f"{rate}*y*(1 - x^2 - y^2) + x"}
    model = OdeModel("slow", equations, start={"x": 1.2, "y": 0.0})
    orbit = fl.periodic_orbit(model)
    floquet = fl.linearize_periodic(model, orbit, points=16).floquet()
    assert orbit.period == pytest.approx(2 * np.pi, rel=1e-9)
    decay = np.exp(-4 * np.pi * rate)
    error = min(abs(floquet.multipliers - decay))
    assert error <= 3 * floquet.accuracy["multipliers"]
    assert floquet.stable
