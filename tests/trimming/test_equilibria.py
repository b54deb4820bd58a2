"""Equilibria against closed forms."""

from __future__ import annotations

from dataclasses import replace
from math import atan2, cos, pi, sin, sqrt, tan
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

import fmilin as fl
from fmilin import trim, trim_each
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar
from tests.by_hand import FunctionModel, Parts, pendulum
from tests.random_systems import Family, Recipe, hidden_system

G = 9.81
UPPER = 2.234331019017586  # González et al.: see the four-bar linkage with its springs


def four_bar_torque(phi: float, loops: int = 1, stiffness: float = 25.0) -> float:
    """What holds the linkage at phi: J phi'' = torque - g (3N + 1)/2 cos(phi) + N k (s - l0) sin(phi/2) = 0."""
    spring = loops * stiffness * (2 * cos(phi / 2) - sqrt(2.0)) * sin(phi / 2)
    return G * (3 * loops + 1) / 2 * cos(phi) - spring


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("guess", "height"), [({"y": -1.0}, -1.3), ({"y": 0.9}, 1.3), ({"x": 0.1}, -1.3)])
def test_the_pendulum_hangs_or_stands(exact: bool, guess: dict[str, float], height: float) -> None:
    model = pendulum(angle=0.4, rate=0.3, exact=exact)
    point = trim(model, guess=guess)
    np.testing.assert_allclose(point.states, [0.0, height, 0.0, 0.0], atol=1e-12)
    assert point.report.residual <= 1e-10
    assert point.report.exact
    assert point.report.is_equilibrium
    assert point.report.free_directions == ()
    assert [remark.kind for remark in point.report.remarks] == ["unstable"] * (height > 0)
    rate = np.sqrt(G / 1.3) * (1j if height < 0 else 1.0)
    np.testing.assert_allclose(np.sort(fl.linearize(model, point).eigenvalues()), [-rate, rate], atol=1e-8)


@pytest.mark.parametrize("angle", [pi / 2, -pi / 2, 1.5, 3.1])
def test_a_guess_far_from_rest_still_leads_to_an_equilibrium(angle: float) -> None:
    """Held out horizontally the rates are largest: the first step of least squares has nowhere to go."""
    x, y, vx, vy = trim(pendulum(angle=angle)).states
    np.testing.assert_allclose([x, abs(y), vx, vy], [0.0, 1.3, 0.0, 0.0], atol=1e-14)
    if angle == 3.1:
        assert y == 1.3  # the nearest one


@pytest.mark.parametrize("angle", [0.3, -1.1, 2.5])
def test_a_free_force_balances_gravity(angle: float) -> None:
    model = cartesian_pendulum(length=2.0, mass=3.0)
    point = trim(model, fixed={"x": 2 * sin(angle)}, guess={"y": -cos(angle)}, free=["F"])
    np.testing.assert_allclose(point.states, [2 * sin(angle), -2 * cos(angle), 0, 0], atol=1e-14)
    np.testing.assert_allclose(point.inputs, [3.0 * G * tan(angle)], rtol=1e-13)


@pytest.mark.parametrize("loops", [1, 2, 4])
def test_the_four_bar_linkage_hangs_and_stands(loops: int) -> None:
    model = four_bar(loops)  # phi enters as x_N - N = cos(phi): a hanging guess must say that y is below
    upper, hanging = trim_each(model, [{"phi": 2.4}, {"phi": -1.2} | {f"y{i}": -0.9 for i in range(loops + 1)}])
    phi = model.states.index_of("phi")
    assert abs(four_bar_torque(float(upper.states[phi]), loops)) < 1e-12
    assert hanging.states[phi] == pytest.approx(-pi / 2, abs=1e-14)
    if loops == 1:
        assert upper.states[phi] == pytest.approx(UPPER, abs=2e-15)
        assert fl.linearize(model, upper).eigenvalues()[1].imag == pytest.approx(2.147676638502278, abs=1e-12)
        assert fl.linearize(model, hanging).eigenvalues()[1].imag == pytest.approx(4.38998861046359, abs=1e-12)
    for point in (upper, hanging):
        assert point.report.residual <= 1e-10


@pytest.mark.parametrize("angle", [1.9, 2.4])
def test_a_chain_of_many_linkages_stands_within_the_bounds_of_its_certificate(angle: float) -> None:
    """Its equations are solved in sparse matrices; the torque of one angle has its zero by bisection."""
    loops = 150
    point = trim(four_bar(loops), guess={"phi": angle})
    phi = point.states[point.report.states.positions["phi"]]
    truth = float(brentq(lambda q: four_bar_torque(q, loops), 1.7, 3.0, xtol=1e-15))
    certificate = point.report.certificate
    assert np.isnan(certificate.regularity)  # dense equations have one
    assert abs(phi - truth) <= certificate.distance["phi"] + 4 * np.finfo(float).eps * truth
    assert certificate.distance["phi"] < 1e-8
    assert abs(certificate.step["phi"]) <= certificate.distance["phi"]


def test_several_guesses_give_each_equilibrium_once_and_pass_over_those_that_lead_nowhere() -> None:
    model = cartesian_pendulum()
    found = trim_each(model, [{"y": 0.8}, {"x": 0.1}, {"y": 0.95}, {"x": -0.2}])
    assert [p.states[1] for p in found] == [1.0, -1.0]


@pytest.mark.parametrize("phi", [1.0, 2.0, -1.2])
def test_a_torque_holds_the_linkage_anywhere(phi: float) -> None:
    point = trim(four_bar(branch="upper" if phi > 0 else "hanging"), fixed={"phi": phi}, free=["torque"])
    assert point.states[4] == phi
    np.testing.assert_allclose(point.inputs, [four_bar_torque(phi)], rtol=1e-12)
    np.testing.assert_allclose(point.states[:4], [cos(phi), sin(phi), 1 + cos(phi), sin(phi)], atol=1e-14)


def test_a_parameter_is_solved_for() -> None:
    """The stiffness that holds the linkage at 1.9 rad is proportional to the weight's moment."""
    point = trim(four_bar(), fixed={"phi": 1.9}, free=["k"])
    stiffness = 2 * G * cos(1.9) / ((2 * cos(0.95) - sqrt(2)) * sin(0.95))
    assert point.parameters["k"] == pytest.approx(stiffness, rel=1e-13)
    assert trim(four_bar(), fixed={"phi": 1.9}, free=["k"], guess={"k": 40.0}).parameters["k"] == pytest.approx(
        stiffness, rel=1e-13
    )


def test_a_fixed_parameter_changes_the_manifold() -> None:
    point = trim(cartesian_pendulum(), fixed={"L": 2.0, "x": 0.6}, free=["F"])
    np.testing.assert_allclose(point.states[1], -sqrt(4 - 0.36), rtol=1e-15)
    assert point.parameters == {"L": 2.0}


def test_bounds_choose_among_equilibria_and_hold_the_unknowns_inside() -> None:
    model = cartesian_pendulum()
    assert trim(model, guess={"y": 0.4}, bounds={"y": (0.0, 2.0)}).states[1] == 1.0
    assert trim(model, guess={"y": 0.4}, bounds={"y": (-2.0, 0.45)}).states[1] == -1.0
    point = trim(model, fixed={"x": 0.5}, free=["F"], bounds={"F": (-1.0, 10.0)})
    assert point.inputs[0] == pytest.approx(G * 0.5 / sqrt(0.75), rel=1e-12)
    assert point.report.at_bounds == ()


def test_a_held_input_shifts_the_equilibrium() -> None:
    point = trim(cartesian_pendulum(), fixed={"F": 3.0})
    assert atan2(point.states[0], -point.states[1]) == pytest.approx(atan2(3.0, G), rel=1e-13)
    assert point.inputs[0] == 3.0


def test_redundant_constraints_do_no_harm() -> None:
    parts = pendulum(angle=0.5).parts
    redundant = FunctionModel(Parts(**{**vars(parts), "constraints": ["x^2 + y^2 - L^2", "sqrt(x^2 + y^2) - L"]}))
    np.testing.assert_allclose(trim(redundant).states, [0.0, -1.3, 0.0, 0.0], atol=1e-14)


def test_a_family_of_equilibria_is_reported_instead_of_refused() -> None:
    """A bead on a level rod rests anywhere; a wheel with 2 rad per metre turns along."""
    model = OdeModel(
        "bead",
        {"s": "v", "turn": "2*v", "v": "-v*c + z", "z": "-3*z"},
        parameters={"c": 0.4},
        constraints=["turn - 2*s"],
        start={"s": 0.7, "turn": 1.4, "v": 0.1, "z": 0.2},
    )
    point = trim(model, guess={"s": 0.7})
    (direction,) = point.report.free_directions
    assert direction.name in ("s", "turn")
    other, slope = next(iter(direction.along.items()))
    assert slope == pytest.approx(2.0 if other == "turn" else 0.5)
    assert point.states[0] == pytest.approx(0.7, abs=0.2)
    np.testing.assert_allclose(point.states[[1, 2, 3]], [2 * point.states[0], 0.0, 0.0], atol=1e-12)
    assert [r.kind for r in point.report.remarks] == ["family"]
    assert trim(model, fixed={"s": 0.3}).report.free_directions == ()


def test_wrong_directional_derivatives_neither_mislead_the_search_nor_invent_a_family() -> None:
    """A model that answers zero for every product, as some exports do."""
    parts = pendulum(angle=0.4).parts
    silent = FunctionModel(Parts(**{**vars(parts), "jacobians": lambda *_: (np.zeros((5, 4)), np.zeros((5, 1)))}))
    point = trim(silent)
    np.testing.assert_allclose(point.states, [0.0, -1.3, 0.0, 0.0], atol=1e-12)
    assert point.report.free_directions == ()


def test_noise_is_told_from_a_residual() -> None:
    """Rates with noise of 1e-8, as an inner solver leaves: an equilibrium, with a remark on how exact it is."""
    parts = pendulum(angle=0.3).parts

    def noisy(t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        noise = 1e-8 * float(np.sin(1e9 * np.sum(x)))
        rates: np.ndarray = parts.rates(t, x, u) + np.array([0.0, 0.0, noise, -noise])
        return rates

    point = trim(FunctionModel(Parts(**{**vars(parts), "rates": noisy})))
    np.testing.assert_allclose(point.states, [0.0, -1.3, 0.0, 0.0], atol=1e-7)
    assert "rounding" in [r.kind for r in point.report.remarks] or point.report.residual <= 1e-10


def test_stiff_and_soft_rates_together() -> None:
    """Rates that differ by 1e9 in size: the soft equation is solved as exactly as the stiff one."""
    model = OdeModel(
        "stiff",
        {"a": "1e9*(b - a^3)", "b": "1 - b + 0.1*sin(c)", "c": "1e-3*(2 - c - b)"},
        start={"a": 0.2, "b": 0.1, "c": 0.0},
    )
    a, b, c = trim(model).states
    assert a**3 == pytest.approx(b, rel=1e-12)
    assert b == pytest.approx(1 + 0.1 * sin(c), rel=1e-12)
    assert c == pytest.approx(2 - b, rel=1e-9)


def test_a_model_without_states_and_one_without_freedom() -> None:
    nothing = FunctionModel(Parts([], [], lambda *_: np.empty(0), inputs=["F"]))
    assert trim(nothing).states.shape == (0,)
    assert trim(nothing).inputs.tolist() == [0.0]
    held = trim(cartesian_pendulum(), fixed={"x": 0.0, "y": -1.0, "vx": 0.0, "vy": 0.0})
    assert held.states.tolist() == [0.0, -1.0, 0.0, 0.0]


def test_an_equilibrium_of_one_instant_is_called_that() -> None:
    model = OdeModel("driven", {"x": "v", "v": "-x + sin(time) - v"}, start={"x": 0.3})
    point = trim(model, time=0.5)
    assert point.states[0] == pytest.approx(sin(0.5), rel=1e-13)
    assert point.time == 0.5
    assert [r.kind for r in point.report.remarks] == ["time"]


def test_start_values_far_from_the_manifold_are_refused_unless_a_state_is_named() -> None:
    model = pendulum()
    model.start = model.start.with_states(np.array([0.5, -2.0, 0.0, 0.0]))
    with pytest.raises(fl.ConstraintError, match="start values do not satisfy"):
        trim(model)
    np.testing.assert_allclose(trim(model, guess={"y": -2.0}).states, [0.0, -1.3, 0.0, 0.0], atol=1e-11)


def test_states_of_very_different_sizes() -> None:
    """The same pendulum in micrometres and in millions of metres."""
    for length in (1e-6, 1e6):
        point = trim(cartesian_pendulum(length=length, angle=0.7), guess={"y": length})
        np.testing.assert_allclose(point.states / length, [0.0, 1.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_equilibrium_of_a_random_hidden_system_is_found_again(seed: int) -> None:
    """From a guess off the manifold, 5 % of the sizes away; states of very different sizes, redundant constraints."""
    family: Family = ("first order", "second order", "speeds")[seed % 3]
    recipe = Recipe(
        family,
        p=2,
        m=1 + seed % 3,
        geometry=seed,
        seed=seed,
        exact=seed < 3,
        decades=2.0 * (seed % 2),
        repeated=seed % 2,
    )
    _, model = hidden_system(recipe)
    sizes = model.states.scales(model.start.states)
    start = model.start.states + 0.05 * sizes * np.random.default_rng(seed).standard_normal(len(sizes))
    point = trim(model, guess=dict(zip(model.states.names, start.tolist(), strict=True)))
    np.testing.assert_allclose(point.states / sizes, model.start.states / sizes, atol=1e-12)
    assert point.report.free_directions == ()


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_two_searches_that_end_a_millionth_apart_have_found_the_same(size: float) -> None:
    point = trim(OdeModel("spring", {"x": "v", "v": "F - x - v"}, inputs=["F"]), fixed={"F": size})
    for gap, same in ((1e-7, True), (1e-5, False)):
        assert point.same_place(replace(point, states=point.states + np.array([gap * size, 0.0]))) is same
        assert point.same_place(replace(point, inputs=point.inputs - gap * size)) is same


@pytest.mark.parametrize("start", [0.0, 1e-9, 1e9])
def test_a_free_parameter_starts_anywhere(start: float) -> None:
    model = OdeModel("spring", {"x": "v", "v": "p - 2*x - v"}, parameters={"p": start})
    point = trim(model, fixed={"x": 1.5}, free=["p"])
    assert point.parameters["p"] == pytest.approx(3.0, rel=1e-12)


@pytest.mark.parametrize("slow", [1.0, 1e-6])
def test_products_with_the_wrong_sign_are_noticed_however_slow_the_rates_are(slow: float) -> None:
    """x' = 2 - x - x^3 rests at 1; its directional derivative is told to be that of -x'."""

    def jacobians(t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([[slow * (1 + 3 * x[0] ** 2)]]), np.zeros((1, 0))

    model = FunctionModel(
        Parts(["x"], [-2.0], lambda t, x, u: slow * np.array([2 - x[0] - x[0] ** 3]), jacobians=jacobians)
    )
    point = trim(model)
    assert point.states[0] == pytest.approx(1.0, abs=1e-4 if slow < 1 else 1e-9)


def test_three_arms_that_stand_are_said_to_be_unstable() -> None:
    """Each spins freely about its own axis, which is a family; the chain stands instead of hanging."""
    model = fl.load(Path(__file__).parent / "arms.toml")
    point = fl.trim(model)
    said = {remark.kind: str(remark) for remark in point.report.remarks}
    assert "of 12 eigenvalues have positive real parts" in said["unstable"]
    assert max(point.report.distance.values()) < 1e-3
    linear = fl.linearize(model, point)
    assert np.max(linear.eigenvalues().real) > 1.0
