"""The whole procedure finds the linear system that was hidden: every matrix, at rest and moving, in all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import fmilin as fl
from fmilin.manifold.verified_frame import build_frame
from tests.random_systems import Recipe, hidden_system
from tests.theorems.strategies import MATRICES, coordinates_of, measured_recipes, recipes, run, scaled_errors


def check(recipe: Recipe, derivatives: str, limit: float) -> None:
    """Linearize and compare all matrices with the known answer, f0 too."""
    system, model = hidden_system(recipe)
    lin = fl.linearize(model, derivatives=derivatives)
    R = coordinates_of(lin)
    known = system.reference(R)
    errors = scaled_errors(system, lin, R)
    assert {k: e for k, e in errors.items() if not e <= limit * known.condition} == {}
    assert lin.A.shape == (system.order, system.order)
    np.testing.assert_allclose(lin.f0 / known.sizes, known.f0 / known.sizes, atol=1e-13 * system.rate)


@run(80)
@given(recipes())
def test_constraints_as_expressions(recipe: Recipe) -> None:
    check(recipe, "exact", 1e-13)
    check(recipe, "differences", 1e-9)


@run(30)
@given(measured_recipes())
def test_constraints_that_the_model_computes_with_products(recipe: Recipe) -> None:
    """The rate of a measured constraint is differenced where it moves, and so is its curvature."""
    check(recipe, "exact", 1e-10)


@run(12)
@given(measured_recipes(exact=False, p=1, m=1) | measured_recipes(exact=False, p=2, m=1))
def test_constraints_that_the_model_computes_without_products(recipe: Recipe) -> None:
    """Small ones: every step of a sweep takes rates that are differences themselves, of constraints."""
    check(recipe, "differences", 1e-8)


LARGE = [
    Recipe("first order", 20, 20, geometry=1, decades=3, measured=True, level="velocity"),
    Recipe("first order", 37, 3, geometry=2, decades=6, at_rest=False),
    Recipe("second order", 17, 3, geometry=3, decades=6, at_rest=False, repeated=1),
    Recipe("speeds", 16, 4, geometry=4, decades=3),
]


@pytest.mark.parametrize("recipe", LARGE, ids=lambda r: f"{r.family}, {r.p} + {r.m}")
def test_forty_states(recipe: Recipe) -> None:
    assert recipe.size == 40
    check(recipe, "exact", 1e-13)
    check(recipe, "differences", 1e-9)


@run(15)
@given(recipes())
def test_tangent_coordinates(recipe: Recipe) -> None:
    system, model = hidden_system(recipe)
    R = build_frame(model, fl.operating_point(model), kind="tangent").coordinates.R
    errors = scaled_errors(system, fl.linearize(model, coordinates="tangent", derivatives="exact"), R)
    condition = system.reference(R).condition
    assert {k: e for k, e in errors.items() if not e <= 1e-13 * condition} == {}


@run(15)
@given(recipes())
def test_nonlinear_coordinates(recipe: Recipe) -> None:
    """Their curvature enters A away from equilibrium; where they are hardly one-to-one they are left out."""
    system, model = hidden_system(recipe)
    chosen = system.bent(np.random.default_rng(recipe.seed))
    known = system.reference(chosen)
    texts = chosen.texts(model.states.names)
    for derivatives, limit in (("exact", 1e-12), ("differences", 1e-9)):
        errors = scaled_errors(system, fl.linearize(model, independent=texts, derivatives=derivatives), chosen)
        assert {k: errors[k] for k in MATRICES if not errors[k] <= limit * known.condition**2} == {}
