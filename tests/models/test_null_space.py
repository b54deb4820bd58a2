"""The null space formulation: the same model off singularities, and a model at all where the other one is none."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin.models import LagrangeModel, MultiplierModel, NullSpaceModel, OdeModel, SymbolicModel
from fmilin.models.multiplier_models import ConstraintRank
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, five_bar, four_bar
from tests.exact import products_of

CASES = [
    (NullSpaceModel, cartesian_pendulum),
    (NullSpaceModel, five_bar),
    (NullSpaceModel, four_bar),  # its mass matrix is singular
    (MultiplierModel, cartesian_pendulum),
    (MultiplierModel, five_bar),
]


def beside_start(model: SymbolicModel, seed: int) -> FloatArray:
    return model.start.states + 0.2 * np.random.default_rng(seed).standard_normal(len(model.states))


def doubled(angle: float = 0.6) -> LagrangeModel:
    """The Cartesian pendulum of 1 m and 2 kg with its constraint there twice, in two ways."""
    x, y, vx, vy, F = sympy.symbols("x y vx vy F", real=True)
    return LagrangeModel(
        "doubled",
        {x: vx, y: vy},
        sympy.diag(2, 2),
        [F, -2 * 9.81],
        inputs=[F],
        constraints=[(x**2 + y**2 - 1) / 2, sympy.sqrt(x**2 + y**2) - 1],
        start={x: np.sin(angle), y: -np.cos(angle)},
    )


@pytest.mark.parametrize(("kind", "make"), CASES)
def test_the_same_accelerations_and_derivatives_off_singularities(kind: type, make: object) -> None:
    model: LagrangeModel = make()  # type: ignore[operator]
    other = kind(model)
    n, k = len(model.states), len(model.inputs)
    u = np.full(k, 0.3)
    for seed in range(3):
        x = beside_start(model, seed)
        one, two = model.evaluate(0.0, x, u), other.evaluate(0.0, x, u)
        np.testing.assert_allclose(two.derivatives, one.derivatives, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(two.outputs, one.outputs, rtol=1e-10, atol=1e-10)
        J = products_of(model, 0.0, x, u, np.eye(n), np.zeros((k, n)))
        L = products_of(other, 0.0, x, u, np.eye(n), np.zeros((k, n)))
        np.testing.assert_allclose(L.derivatives, J.derivatives, atol=1e-10 * np.abs(J.derivatives).max())
        np.testing.assert_allclose(L.residuals, J.residuals, atol=1e-12)


def test_equation_3_5_term_by_term() -> None:
    """v' = V2 (V2' M V2)^-1 V2' (F + M G^+ Gdot v) - G^+ Gdot v."""
    model = NullSpaceModel(five_bar())
    x, u = beside_start(model, 4), np.array([1.0, -2.0])
    W, r = model._selection.numeric.equations(0.0, x, u, model.engine.p)
    M, G, F, Gdot_v = W[:4, :4], W[4:, :4], r[:4], -r[4:]
    V2 = np.linalg.svd(G)[2][2:].T
    K = V2 @ np.linalg.solve(V2.T @ M @ V2, V2.T)
    pinv = np.linalg.pinv(G)
    expected = K @ (F + M @ pinv @ Gdot_v) - pinv @ Gdot_v
    np.testing.assert_allclose(model.evaluate(0.0, x, u).derivatives[4:], expected, rtol=1e-12)


def test_multipliers_of_equation_2_4() -> None:
    model = MultiplierModel(five_bar()).with_interface(outputs=["lambda[1]", "lambda[2]"])
    assert isinstance(model, MultiplierModel)
    x, u = beside_start(model, 4), np.zeros(2)
    W, r = model._selection.numeric.equations(0.0, x, u, model.engine.p)
    M, G = W[:4, :4], W[4:, :4]
    Minv = np.linalg.inv(M)
    expected = np.linalg.solve(G @ Minv @ G.T, G @ Minv @ r[:4] - r[4:])
    np.testing.assert_allclose(model.evaluate(0.0, x, u).outputs, expected, rtol=1e-11)
    null_space = NullSpaceModel(five_bar()).with_interface(outputs=["lambda[1]", "lambda[2]"])
    np.testing.assert_allclose(null_space.evaluate(0.0, x, u).outputs, expected, rtol=1e-11)


def test_redundant_constraints_are_welcome() -> None:
    plain, model = cartesian_pendulum(mass=2.0, angle=0.6), NullSpaceModel(doubled())
    x, u = model.start.states, np.array([0.7])
    with pytest.raises(fl.NumericalError, match="no unique solution"):
        doubled().evaluate(0.0, x, u)
    with pytest.raises(fl.NumericalError, match="no unique solution"):
        MultiplierModel(doubled()).evaluate(0.0, x, u)
    np.testing.assert_allclose(model.evaluate(0.0, x, u).derivatives, plain.evaluate(0.0, x, u).derivatives, atol=1e-14)
    rank = model.singularity(0.0, x).constraints
    assert rank.rank == 1
    assert rank.gap > 1e12
    lin = fl.linearize(model, fl.operating_point(model, {"x": 0.0}))
    np.testing.assert_allclose(lin.eigenvalues().imag, [-np.sqrt(9.81), np.sqrt(9.81)], rtol=1e-12)
    motion = fl.simulate(model, stop_time=2.0, step=0.2)
    np.testing.assert_allclose(motion["x"], fl.simulate(plain, stop_time=2.0, step=0.2)["x"], atol=1e-8)


def test_a_linear_model_of_the_null_space_formulation() -> None:
    lin, other = fl.linearize(NullSpaceModel(four_bar())), fl.linearize(four_bar())
    np.testing.assert_allclose(lin.A, other.A, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(lin.B, other.B, rtol=1e-11)
    assert lin.states.names == other.states.names


def test_at_the_singular_posture_of_the_four_bar() -> None:
    """Both published pairs, 3.4310 i and 4.4294 i: w^2 = 6g/5 and 2g over the enlarged set of velocities."""
    model = NullSpaceModel(four_bar(singular=True))
    at = model.evaluate(0.0, model.start.states, model.start.inputs)
    np.testing.assert_allclose(at.derivatives, 0.0, atol=1e-12)
    lin = fl.linearize(model, at_singularity=True)
    np.testing.assert_allclose(
        sorted({round(abs(s) ** 2, 8) for s in lin.eigenvalues()}), [1.2 * 9.81, 2 * 9.81], rtol=1e-9
    )
    report = model.singularity(0.0, model.start.states)
    assert report.constraints.condition_number > 1e15
    assert report.constraints.smallest < 1e-15
    assert report.lock_up == 0.0


def test_condition_number_and_lock_up_near_the_singularity() -> None:
    """Moving along the symmetric branch u_m' Gdot v falls with sigma_m; across it, it does not (section 3.1.1)."""
    model = NullSpaceModel(five_bar(singular=True))
    complying, across = [], []
    for size in (1e-2, 1e-4):
        # theta_1 = pi + a, theta_2 = -b with a^2 = 3/2 b^2, and the mirror image of it
        a, b = size * np.sqrt(1.5), size
        q = model.start.states[:4] + np.array([a, -a - b, 2 * b, -a - b])
        rank = model.singularity(0.0, np.concatenate((q, np.zeros(4)))).constraints
        np.testing.assert_allclose(rank.condition_number * size, 0.816, rtol=0.05)
        along = np.array([a, -a - b, 2 * b, -a - b]) / size
        complying.append(model.singularity(0.0, np.concatenate((q, along))).lock_up)
        across.append(model.singularity(0.0, np.concatenate((q, [1.0, 0.0, 0.0, 0.0]))).lock_up)
    assert complying[1] < 2e-2 * complying[0]
    assert across[1] > 0.5 * across[0] > 0.1


def test_choices_stay_in_the_formulation() -> None:
    model = NullSpaceModel(doubled(), threshold=1e-6)
    for changed in (
        model.with_interface(outputs=["lambda[1]", "der(vx)"]),
        model.with_constraints([fl.Constraint.from_text("x^2 + y^2 - 1")]),
        model.with_parameters({}),
        model.with_stabilization(3.0, 4.0).with_interface(inputs=[]),
    ):
        assert isinstance(changed, NullSpaceModel)
        assert changed.threshold == 1e-6
        assert np.isfinite(changed.evaluate(0.0, changed.start.states, changed.start.inputs).derivatives).all()


def test_stabilizing_twice_is_stabilizing_once() -> None:
    model = NullSpaceModel(cartesian_pendulum())
    x, u = beside_start(model, 1), np.zeros(1)
    once = model.with_stabilization(5.0, 6.0).evaluate(0.0, x, u).derivatives
    twice = model.with_stabilization(50.0, 60.0).with_stabilization(5.0, 6.0).evaluate(0.0, x, u).derivatives
    np.testing.assert_allclose(twice, once, rtol=1e-13)
    assert np.abs(once - model.evaluate(0.0, x, u).derivatives).max() > 0.1


def test_velocity_constraints_are_stabilized_at_first_order() -> None:
    """A skate: 0 = a = -vx sin(p) + vy cos(p); stabilized a' = -2 alpha a."""
    x, y, p, vx, vy, w = sympy.symbols("x y p vx vy w", real=True)
    skate = LagrangeModel(
        "skate",
        {x: vx, y: vy, p: w},
        sympy.diag(1, 1, sympy.Rational(1, 3)),
        [1, 0, 0],
        constraints=[fl.models.SymbolicConstraint(-vx * sympy.sin(p) + vy * sympy.cos(p), "blade", "velocity")],
        start={vx: 1, w: 2},
    )
    model = NullSpaceModel(skate).with_stabilization(4.0, 9.0)
    s = model.start.states + np.array([0, 0, 0.3, 0, 0.2, 0])
    f = model.evaluate(0.0, s, np.empty(0)).derivatives
    gradient = model.constraints.partials(0.0, s, np.empty(0), np.empty(0)).states
    a = model.constraints.residuals(0.0, s, np.empty(0), np.empty(0))
    np.testing.assert_allclose(gradient @ f, -8.0 * a, rtol=1e-12)


def test_a_velocity_without_mass_is_refused_by_name() -> None:
    x, y, vx, vy = sympy.symbols("x y vx vy", real=True)
    model = LagrangeModel("massless", {x: vx, y: vy}, sympy.diag(1, 0), [0, 0], constraints=[x])
    for kind in (NullSpaceModel, MultiplierModel):
        with pytest.raises(fl.NumericalError, match=r"leaves der\(vy\) undetermined") as caught:
            kind(model).evaluate(0.0, model.start.states, np.empty(0))
        assert caught.value.variable == "der(vy)"


def test_without_constraints_it_is_newtons_law() -> None:
    x, v = sympy.symbols("x v", real=True)
    model = NullSpaceModel(LagrangeModel("mass", {x: v}, [[2]], [-8 * x], start={x: 1}))
    np.testing.assert_allclose(model.evaluate(0.0, model.start.states, np.empty(0)).derivatives, [0.0, -4.0])
    assert model.singularity(0.0, model.start.states).constraints.condition_number == 1.0


def test_nan_goes_through() -> None:
    x, v = sympy.symbols("x v", real=True)
    model = NullSpaceModel(LagrangeModel("root", {x: v}, [[sympy.sqrt(x)]], [1], start={x: -1}))
    assert np.isnan(model.evaluate(0.0, model.start.states, np.empty(0)).derivatives[1])


def test_what_is_not_made_of_lagranges_equations() -> None:
    with pytest.raises(fl.UsageError, match="'tank' is not made of Lagrange's equations"):
        NullSpaceModel(OdeModel("tank", {"h": "-h"}))
    replaced = five_bar().with_constraints([])
    with pytest.raises(fl.UsageError, match="were replaced and no longer belong to its 2 multipliers"):
        MultiplierModel(replaced)
    with pytest.raises(fl.UsageError, match=r"fraction of the largest singular value, not 1\.5"):
        NullSpaceModel(five_bar(), threshold=1.5)
    with pytest.raises(fl.UsageError, match="rates, 0 or more, not -1 and 1"):
        NullSpaceModel(five_bar()).with_stabilization(-1.0, 1.0)


def test_gap_and_rank_in_numbers() -> None:
    rank = ConstraintRank(np.array([2.0, 0.5, 1e-12]), 2)
    assert (rank.smallest, rank.condition_number) == (1e-12, 2e12)
    np.testing.assert_allclose(rank.gap, 5e11)
    assert ConstraintRank(np.array([2.0, 0.0]), 1).gap == np.inf
    assert ConstraintRank(np.array([2.0, 1.0]), 2).gap == np.inf
