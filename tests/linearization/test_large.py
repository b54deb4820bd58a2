"""Large models of Lagrange's equations: the sparse way gives the numbers of the general one."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from math import cos, sin
from typing import Any

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin.models import Labels, LagrangeModel
from fmilin.systems import four_bar

LOOPS = 65
"""131 coordinates and more than 250 unknowns: the smallest that goes the sparse way, nearly."""

UNIT = Labels(nominals=dict.fromkeys("xyvw", 1.0))


@pytest.fixture(scope="module")
def linkage() -> LagrangeModel:
    return four_bar(loops=LOOPS, damping=0.3)


def eigenvalue(loops: int, phi: float) -> float:
    """Return omega^2 of J phi'' = -g (3N + 1)/2 cos(phi) + N k (2 cos(phi/2) - l0) sin(phi/2), differentiated."""
    J, k, l0 = (4 * loops + 1) / 3, 25.0, 2**0.5
    slope = k * loops * (cos(phi) - l0 / 2 * cos(phi / 2))  # 2 cos(phi/2) sin(phi/2) = sin(phi)
    return -(9.81 * (3 * loops + 1) / 2 * sin(phi) + slope) / J


def test_large_models_have_sparse_equations_and_small_ones_none(linkage: LagrangeModel) -> None:
    assert linkage.sparse_equations() is not None
    assert four_bar(loops=2).sparse_equations() is None


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it lets every model count as large."""

    def lower() -> None:
        monkeypatch.setattr("fmilin.numerics.factors.MAX_DENSE_ROWS", 0)
        monkeypatch.setattr("fmilin.constraints.expression_functions.MAX_DENSE_SIZE", 0)

    return lower


@pytest.mark.parametrize("loops", [30, 60])
@pytest.mark.parametrize("motion", [{}, {"phi": 2.0, "w": 0.4}])
def test_numbers_are_those_of_the_general_procedure(
    loops: int, motion: dict[str, float], lowered: Callable[[], None]
) -> None:
    model = four_bar(loops=loops, damping=0.3).with_interface(None, ["phi", "coupler.y", "der(w)", "lambda[3]"])
    assert model.sparse_equations() is None
    point = fl.operating_point(model, motion)
    general, there = fl.linearize(model, point), model.evaluate(0.0, point.states, point.inputs)
    moves = np.random.default_rng(3).normal(size=(len(point.states), 3)), np.ones((1, 3))
    slopes = model.products(0.0, point.states, point.inputs, *moves)
    lowered()
    large = four_bar(loops=loops, damping=0.3).with_interface(None, model.outputs.names)
    sparse, here = fl.linearize(large, point), large.evaluate(0.0, point.states, point.inputs)
    assert large.sparse_equations() is not None
    assert sparse.states.names == general.states.names == ("phi", "w")
    # A is not compared along the motion of a large model.
    assert [w.kind for w in sparse.warnings] == [w.kind for w in general.warnings if w.kind != "periodic"]
    assert sparse.accuracy.A < 1e-13
    close = 10 * sparse.accuracy.C  # eps times the condition number of the equations of motion
    assert close < 1e-10
    np.testing.assert_allclose(sparse.A, general.A, rtol=1e-13)
    for name in ("A", "B", "C", "D", "T", "f0", "y0"):
        one, other = getattr(sparse, name), getattr(general, name)
        assert np.allclose(one, other, rtol=close, atol=close * max(1.0, np.abs(other).max())), name
    along = large.products(0.0, point.states, point.inputs, *moves)
    assert along is not None
    assert slopes is not None
    for found, expected in ((here, there), (along, slopes)):
        for name in ("derivatives", "outputs", "residuals"):
            one, other = getattr(found, name), getattr(expected, name)
            assert np.allclose(one, other, rtol=close, atol=close * max(1.0, np.abs(other).max())), name


def test_the_descriptor_system_is_carried_where_it_is_small(
    lowered: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fl.linearize(four_bar(loops=3), descriptor=True).descriptor
    lowered()
    found = fl.linearize(four_bar(loops=3), descriptor=True).descriptor
    assert expected is not None
    assert found is not None
    np.testing.assert_allclose(found.A, expected.A, rtol=1e-10, atol=1e-10)
    monkeypatch.setattr("fmilin.linearization.sparse_equations.MAX_DESCRIPTOR_STATES", 17)
    assert fl.linearize(four_bar(loops=3), descriptor=True).descriptor is None


def test_inputs_may_be_left_out_and_parameters_changed(lowered: Callable[[], None]) -> None:
    stiffer = fl.linearize(four_bar(loops=3).with_parameters({"k": 30.0}), outputs=["w"])
    lowered()
    model = four_bar(loops=3).with_parameters({"k": 30.0}).with_interface([], ["w"])
    lin = fl.linearize(model)
    assert lin.B.shape == (2, 0)
    np.testing.assert_allclose(lin.A, stiffer.A, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("size", "is_seen"), [(3e-3, True), (1e-5, False)])
@pytest.mark.parametrize("kink", [lambda v: 1e-7 * sympy.tanh(1e7 * v), lambda v: sympy.Max(0, v), sympy.Abs])
def test_a_kink_is_seen_where_it_matters(
    kink: Callable[[Any], Any], size: float, is_seen: bool, lowered: Callable[[], None]
) -> None:
    """Two masses on springs; one has a friction that only the slope shows, both, or only the bend."""
    lowered()
    x, y, v, w = sympy.symbols("x y v w")
    model = LagrangeModel("masses", {x: v, y: w}, sympy.eye(2), [-x, -y - size * kink(w)], labels=UNIT)
    if is_seen:
        with pytest.raises(fl.NumericalError, match="kink"):
            fl.linearize(model)
    else:
        assert fl.linearize(model).A.shape == (4, 4)


def test_the_point_is_that_of_the_general_assembly(linkage: LagrangeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = fl.operating_point(linkage, {"phi": 2.2, "w": -0.2})
    monkeypatch.setattr(LagrangeModel, "sparse_equations", lambda _: None)
    general = fl.operating_point(linkage, {"phi": 2.2, "w": -0.2})
    assert np.abs(sparse.states - general.states).max() < 1e-9


def test_the_equilibrium_is_found_from_elsewhere() -> None:
    model = four_bar(loops=LOOPS)
    point = fl.trim(model, guess={"phi": 2.3})
    assert point.states[2 * LOOPS + 2] == pytest.approx(model.start.states[2 * LOOPS + 2], abs=1e-12)
    assert point.report.is_equilibrium
    assert point.report.exact
    omega = eigenvalue(LOOPS, float(point.states[2 * LOOPS + 2])) ** 0.5
    assert np.allclose(fl.linearize(model, point).eigenvalues(), [-1j * omega, 1j * omega], rtol=1e-9, atol=1e-9)


def test_an_equilibrium_of_a_large_model_takes_no_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sparse matrices are all that is asked for: dense slopes of a large model would cost its cube."""

    def asked(*_: object) -> None:
        pytest.fail("The model was visited.")

    model, guess = four_bar(loops=100), {"phi": 2.3}  # stability is stated up to 400 states, by a linearization
    with monkeypatch.context() as without:
        without.setattr(LagrangeModel, "sparse_equations", lambda _: None)
        general = fl.trim(model, guess=guess)
    for name in ("evaluate", "products", "exact_slopes"):
        monkeypatch.setattr(LagrangeModel, name, asked)
    np.testing.assert_allclose(fl.trim(model, guess=guess).states, general.states, atol=1e-12)


def test_no_matrix_of_all_states_is_full() -> None:
    """What is held at any time takes less room than one full matrix of N x N, by how much the less the larger N."""
    model = four_bar(loops=200)
    fl.linearize(four_bar(loops=2))  # imports
    tracemalloc.start()
    try:
        linear = fl.linearize(model, fl.trim(model))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 0.7 * 8 * len(model.states) ** 2
    assert linear.method.evaluations + linear.method.products <= 6


def test_the_condition_of_the_coordinates_has_no_units(lowered: Callable[[], None]) -> None:
    """y = 1000 x in millimetres and metres: either coordinate tells the other one as well, |(1, 1)| = sqrt(2)."""
    lowered()
    x, y, v, w = sympy.symbols("x y v w")
    labels = Labels(nominals={"x": 1.0, "y": 1e3, "v": 1.0, "w": 1e3})
    tied = LagrangeModel(
        "tied", {x: v, y: w}, {(0, 0): 1, (1, 1): 1}, [-x, -y], constraints=[y - 1000 * x], labels=labels
    )
    for kept in ("x", "y"):
        assert fl.linearize(tied, independent=[kept]).accuracy.conditioning == pytest.approx(2**0.5, rel=1e-12)


def train(*forces: sympy.Expr) -> LagrangeModel:
    """Two cars of 1 kg."""
    x, y, v, w = sympy.symbols("x y v w")
    return LagrangeModel("train", {x: v, y: w}, {(0, 0): 1, (1, 1): 1}, forces, labels=UNIT)


def test_what_the_sparse_search_does_not_find_is_left_to_the_general_one(lowered: Callable[[], None]) -> None:
    """Cars that slow each other down rest anywhere; with a force of 2 they cruise at v = 2, and never rest."""
    lowered()
    x, y, v, w = sympy.symbols("x y v w")
    resting = train(w - 2 * v, v - w)
    assert resting.sparse_equations() is not None
    point = fl.trim(resting, guess={"x": 0.5, "v": 0.3})
    np.testing.assert_allclose(point.states, [0.5, 0.0, 0.0, 0.0], atol=1e-12)
    assert {d.name for d in point.report.free_directions} == {"x", "y"}
    driven = train(2 - v, v - w)
    np.testing.assert_allclose(fl.trim(driven, steady=["x", "y"]).states[2:], [2.0, 2.0], rtol=1e-12)
    for nowhere in (driven, train(-1 - x**2 - v, -y - w)):
        with pytest.raises(fl.NumericalError, match="no equilibrium was found"):
            fl.trim(nowhere, guess={"x": 0.7})


def test_inputs_of_a_large_model_may_be_free(lowered: Callable[[], None]) -> None:
    """A spring that F pulls: x = F, and neither is zero near x = 1."""
    lowered()
    x, y, v, w, F = sympy.symbols("x y v w F")
    masses = LagrangeModel("masses", {x: v, y: w}, {(0, 0): 1, (1, 1): 1}, [F - x, -y], inputs=["F"], labels=UNIT)
    point = fl.trim(masses, free=["F"], guess={"x": 1.0})
    assert point.states[0] == pytest.approx(point.inputs[0], rel=1e-12)
    assert point.states[0] > 0.1


def test_other_coordinates_may_be_named_or_left_to_the_elimination(linkage: LagrangeModel) -> None:
    point = fl.operating_point(linkage)
    expected = fl.linearize(linkage, point).eigenvalues()
    other = fl.linearize(linkage, point, independent=["y7", "vy7"])
    assert other.states.names == ("y7", "vy7")
    assert np.allclose(other.eigenvalues(), expected, rtol=1e-8)
    half = fl.linearize(linkage, point, independent=["half=phi/2"])
    assert half.states.names == ("half", "der(half)")
    assert np.allclose(half.eigenvalues(), expected, rtol=1e-8)
    with pytest.raises(fl.NumericalError, match=r"do not determine the others.* phi, w would do"):
        fl.linearize(linkage, point, independent=["x7", "y7"])


def test_a_point_off_the_manifold_is_refused(linkage: LagrangeModel) -> None:
    point = fl.operating_point(linkage)
    states = point.states.copy()
    states[4] += 1e-4
    with pytest.raises(fl.ConstraintError, match="not on the manifold: 'rod ") as caught:
        fl.linearize(linkage, fl.OperatingPoint(0.0, states, point.inputs))
    assert max(caught.value.residuals.values()) > 0.5e-4


def test_a_singular_configuration_is_said_to_be_one() -> None:
    model = four_bar(loops=LOOPS, singular=True)
    with pytest.raises(fl.NumericalError, match="singular"):
        fl.linearize(model, model.start)


def test_start_values_off_the_manifold_are_refused_and_projected() -> None:
    """A chain of pendulums, its start value of one joint 0.1 too far."""
    n = 140
    x, y, vx, vy = (sympy.symbols(f"{name}1:{n + 1}") for name in ("x", "y", "vx", "vy"))
    links = [(a - b) ** 2 + (c - d) ** 2 - 1 for a, b, c, d in zip(x, (0, *x), y, (0, *y), strict=False)]
    model = LagrangeModel(
        "chain",
        dict(zip((*x, *y), (*vx, *vy), strict=True)),
        {(i, i): 1 for i in range(2 * n)},
        [0] * n + [-9.81] * n,
        constraints=links,
        start={s: -float(i + 1) for i, s in enumerate(y)} | {y[5]: -6.1},
    )
    with pytest.raises(fl.ConstraintError, match="do not satisfy the constraints"):
        fl.operating_point(model)
    point = fl.operating_point(model, project=True)
    steps = np.diff(
        np.concatenate(([[0.0, 0.0]], np.column_stack((point.states[:n], point.states[n : 2 * n])))), axis=0
    )
    assert np.abs(np.hypot(*steps.T) - 1).max() < 1e-9
    hanging = fl.trim(model, guess={"y6": -6.0})
    assert len(fl.linearize(model, hanging).states) == 2 * n


def test_entries_outside_the_mass_matrix_are_refused() -> None:
    with pytest.raises(fl.UsageError, match=r"entry \[1, 0\] and should be 1 by 1"):
        LagrangeModel("point", {"x": "v"}, {(0, 0): 1, (1, 0): 2}, [0])


def test_the_sparse_search_knows_how_far_the_solution_is(lowered: Callable[[], None]) -> None:
    """Weak springs and flat ones rest where the closed form says; what is only pushed off runs away."""
    lowered()
    x, y, v, w = sympy.symbols("x y v w")
    soft = fl.trim(train((3 - x) / 10**8, -((y - 1) ** 3) - w), guess={"x": 3.001, "y": 1.5})
    for name, value, true in zip(("x", "y"), soft.states, (3.0, 1.0), strict=False):
        assert abs(value - true) <= soft.report.distance[name] < 1e-3
    pushed = train(sympy.exp(-x) - v / 10, -y)
    with pytest.raises(fl.NumericalError, match="'x' diverges"):
        fl.trim(pushed, guess={"x": 1.0})
