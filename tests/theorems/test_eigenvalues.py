"""Theorems 4.1.1 and 4.1.2: what does not depend on the coordinates, and what the Jacobian of all states adds."""

from __future__ import annotations

import numpy as np
from hypothesis import given

import fmilin as fl
from fmilin.manifold.frame import Frame
from fmilin.manifold.verified_frame import build_frame
from fmilin.signals import FloatArray
from tests.random_systems import HiddenModel, Recipe, hidden_system
from tests.theorems.strategies import distance_between_spectra, measured_recipes, recipes, run


@run(24)
@given(recipes(at_rest=True))
def test_eigenvalues_at_an_equilibrium_do_not_depend_on_the_coordinates(recipe: Recipe) -> None:
    """Theorem 4.1.1 for six choices: partition, tangent, two random subsets of the states, two nonlinear ones."""
    system, model = hidden_system(recipe)
    random = np.random.default_rng(recipe.seed)
    names = model.states.names
    choices: list[list[str] | None] = [None]
    choices += [[names[i] for i in system.regular_subset(random)] for _ in range(2)]
    choices += [system.bent(random).texts(names) for _ in range(2)]
    found = [fl.linearize(model, independent=c, derivatives="exact").eigenvalues() for c in choices]
    found.append(fl.linearize(model, coordinates="tangent", derivatives="exact").eigenvalues())
    assert max(distance_between_spectra(spectrum, system.eigenvalues) for spectrum in found) <= 1e-10


@run(15)
@given(recipes(at_rest=True))
def test_differences_find_the_same_eigenvalues(recipe: Recipe) -> None:
    system, model = hidden_system(recipe)
    for kind in ("partition", "tangent"):
        lin = fl.linearize(model, coordinates=kind, derivatives="differences")
        assert distance_between_spectra(lin.eigenvalues(), system.eigenvalues) <= 1e-8


def test_away_from_an_equilibrium_they_do_depend() -> None:
    """So that the theorem's condition is known to matter here."""
    system, model = hidden_system(Recipe(p=2, m=2, geometry=5, seed=5, at_rest=False))
    random = np.random.default_rng(1)
    subsets = [[model.states.names[i] for i in system.regular_subset(random)] for _ in range(6)]
    spectra = [fl.linearize(model, independent=s, derivatives="exact").eigenvalues() for s in subsets]
    assert max(distance_between_spectra(s, spectra[0]) for s in spectra) > 1e-2


def scaled_jacobian(model: HiddenModel) -> FloatArray:
    """Return f_x of all states at the point, states in their sizes: what means nothing beside the manifold."""
    point, scales = model.start, model.system.scales
    columns = model.products(point.time, point.states, point.inputs, np.diag(scales), np.zeros((2, len(scales))))
    assert columns is not None
    return columns.derivatives / scales[:, None]


def projections(model: HiddenModel, frame: Frame) -> list[FloatArray]:
    """Return three projections onto the tangent space: orthogonal, along a partition, along random directions."""
    scales = model.system.scales
    psi = frame.parametrization
    H = psi.gradient.H[psi.rows] * scales
    H = H / np.linalg.norm(H, axis=1, keepdims=True)
    T = psi.derivative / scales[:, None]
    random = np.random.default_rng(model.system.recipe.seed)
    V = np.linalg.svd(H)[2][len(H) :] if len(H) else np.eye(len(scales))
    W = V + 0.3 * random.uniform(-1.0, 1.0, V.shape)  # W V' is near the identity: a regular choice
    orthogonal = np.eye(len(scales)) - np.linalg.pinv(H) @ H
    return [orthogonal, T @ (frame.coordinates.R * scales), V.T @ np.linalg.solve(W @ V.T, W)]


@run(30)
@given(recipes(at_rest=True))
def test_the_spectrum_of_the_full_matrix_is_the_reduced_one_and_zeros(recipe: Recipe) -> None:
    """Theorem 4.1.2, and eq. (4.4): A = Df P for three projections P onto the tangent space."""
    system, model = hidden_system(recipe)
    frame = build_frame(model, model.start)
    f_x = scaled_jacobian(model)
    N, P = recipe.size, system.order
    expected = np.concatenate((system.eigenvalues, np.zeros(N - P, np.complex128)))
    for projection in projections(model, frame):
        size = float(np.linalg.norm(projection))
        np.testing.assert_allclose(projection @ projection, projection, atol=1e-12 * size**2)
        assert np.linalg.matrix_rank(projection, tol=1e-8) == P
        spectrum = np.linalg.eigvals(f_x @ projection).astype(np.complex128)
        assert distance_between_spectra(spectrum, expected) <= 1e-9


@run(30)
@given(recipes())
def test_every_projection_gives_the_same_reduced_matrix(recipe: Recipe) -> None:
    """R Df P T = A at any point, moving ones too: only tangent directions of f are ever used."""
    system, model = hidden_system(recipe)
    frame = build_frame(model, model.start)
    lin = fl.linearize(model, model.start, derivatives="exact")
    scales, y = system.scales, frame.y_scales
    T, R = lin.T * y / scales[:, None], frame.coordinates.R * scales / y[:, None]
    A = lin.A * y / y[:, None]
    f_x = scaled_jacobian(model)
    for projection in projections(model, frame):
        allowed = 1e-12 * float(np.linalg.norm(f_x) * np.linalg.norm(projection) * np.linalg.norm(T))
        np.testing.assert_allclose(R @ f_x @ projection @ T, A, atol=allowed)


@run(10)
@given(measured_recipes(at_rest=True, moving=False))
def test_the_naive_jacobian_has_false_eigenvalues(recipe: Recipe) -> None:
    """The Jacobian of all N states has M eigenvalues that no motion has, unless the model is tame off its manifold."""
    system, model = hidden_system(recipe)
    naive = np.linalg.eigvals(scaled_jacobian(model)).astype(np.complex128)
    expected = np.concatenate((system.eigenvalues, np.zeros(recipe.size - system.order, np.complex128)))
    assert distance_between_spectra(naive, expected) > 1e-3
