"""DPsi by eq. (2.29), by eq. (2.37), by differences of Psi, and as it is known."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from fmilin.manifold.frame import Frame
from fmilin.manifold.verified_frame import build_frame
from fmilin.signals import FloatArray
from tests.random_systems import Recipe, hidden_system, relative_error
from tests.theorems.strategies import recipes, run


def by_229(R: FloatArray, H: FloatArray, rows: FloatArray, scales: FloatArray) -> FloatArray:
    """DPsi = (R; H)^-1 (I; 0), an N x N system; ``rows`` are the sizes of y."""
    Hn = H * scales
    matrix = np.vstack((R * scales / rows[:, None], Hn / np.linalg.norm(Hn, axis=1, keepdims=True)))
    right = np.vstack((np.eye(len(R)), np.zeros((len(H), len(R)))))
    return np.linalg.solve(matrix, right) * scales[:, None] / rows


def by_237(Rbar: FloatArray, Sbar: FloatArray, H: FloatArray) -> FloatArray:
    """DPsi = Rbar - Sbar (H Sbar)^-1 H Rbar, an M x M system."""
    return Rbar - Sbar @ np.linalg.solve(H @ Sbar, H @ Rbar)


def complements(R: FloatArray, scales: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (Rbar, Sbar) with (R; S)^-1 = (Rbar, Sbar), S spanning the complement of R in sizes of the states."""
    U = R * scales
    U = U / np.linalg.norm(U, axis=1, keepdims=True)
    S = np.linalg.svd(U)[2][len(R) :] / scales
    inverse = np.linalg.inv(np.vstack((R, S)) * scales) * scales[:, None]
    return inverse[:, : len(R)], inverse[:, len(R) :]


def frames(recipe: Recipe) -> tuple[FloatArray, list[Frame], list[FloatArray]]:
    """Return the sizes of the states, frames of three kinds, and DPsi as it is known in each."""
    system, model = hidden_system(recipe)
    subset = [model.states.names[i] for i in system.regular_subset(np.random.default_rng(recipe.seed))]
    made = [build_frame(model, model.start, kind=kind) for kind in ("partition", "tangent")]
    made.append(build_frame(model, model.start, named=subset))
    return system.scales, made, [system.reference(frame.coordinates.R).T for frame in made]


@run(30)
@given(recipes())
def test_both_equations_give_the_known_derivative(recipe: Recipe) -> None:
    scales, made, known = frames(recipe)
    for frame, T in zip(made, known, strict=True):
        psi, R, y = frame.parametrization, frame.coordinates.R, frame.y_scales
        H = psi.gradient.H[psi.rows]
        limit = 1e-13 * frame.selection.condition_number
        for found in (psi.derivative, by_229(R, H, y, scales), by_237(*complements(R, scales), H)):
            assert relative_error(found, T, scales, y) <= limit


@run(15)
@given(recipes())
def test_psi_is_on_the_manifold_and_has_this_derivative(recipe: Recipe) -> None:
    """R Psi(y) = y, h(Psi(y)) = 0, and the slope of Psi is eq. (2.37), also beside the point."""
    scales, made, _ = frames(recipe)
    random = np.random.default_rng(recipe.seed)
    for frame in made[:2]:
        psi, R, y_scales = frame.parametrization, frame.coordinates.R, frame.y_scales
        y = psi.y0 + 0.02 * y_scales * random.uniform(-1.0, 1.0, len(psi.y0))
        x = psi.psi(y)
        np.testing.assert_allclose(R @ x / y_scales, y / y_scales, atol=1e-13)
        gradient = psi.invariants.gradient(psi.time, x)
        residual = psi.invariants.values(psi.time, x)[psi.rows] / np.linalg.norm(gradient.H[psi.rows] * scales, axis=1)
        np.testing.assert_allclose(residual, 0.0, atol=1e-13 * frame.selection.condition_number)
        direction = y_scales * random.uniform(-1.0, 1.0, len(y))
        h = 1e-5
        measured = (psi.psi(y + h * direction) - psi.psi(y - h * direction)) / (2 * h)
        np.testing.assert_allclose(psi.dpsi(x) @ direction / scales, measured / scales, atol=1e-7)
