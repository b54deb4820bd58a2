"""Points displaced from a batch: back on the manifold with the gradient from nearby as with that of each point."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import fmilin as fl
from fmilin.manifold.manifold_equations import VectorizedEquations
from fmilin.manifold.parametrization import LocalParametrization, correct_chord
from fmilin.manifold.point_arrays import PointBatch
from fmilin.model.evaluator import PointEvaluator
from fmilin.signals import FloatArray
from fmilin.systems import slider_crank

MOVED = np.array([1e-4, 1e-2, 0.2, 0.5])
NUMBERS = np.arange(4)


@pytest.fixture
def crank() -> tuple[LocalParametrization, FloatArray]:
    """Return the parametrization at four equal points, and guesses with the coordinates moved."""
    model = slider_crank()
    kept = [model.states.positions[name] for name in fl.linearize(model).states.names]
    points = PointBatch(np.zeros(4), np.tile(model.start.states, (4, 1)), np.tile(model.start.inputs, (4, 1)))
    tangents = model.tangents(points.time, points.states, points.inputs, kept)
    assert tangents is not None
    guess = points.states + MOVED[:, None] * tangents.T.sum(axis=2)
    rows = list(range(len(model.states) - len(kept)))
    return LocalParametrization.of_batch(PointEvaluator(model), points, tangents, rows), guess


def test_the_gradient_from_nearby_leads_to_the_same_points(crank: tuple[LocalParametrization, FloatArray]) -> None:
    parametrization, guess = crank
    assert parametrization.inverse is not None
    near, as_good = parametrization.reach(guess, NUMBERS)
    vars(parametrization)["inverse"] = None
    alone, good = parametrization.reach(guess, NUMBERS)
    assert good.all()
    assert as_good.all()
    np.testing.assert_allclose(near.states, alone.states, rtol=0, atol=1e-11)
    assert (near.states[:, parametrization.independent] == guess[:, parametrization.independent]).all()


def test_it_is_not_computed_again_while_it_serves(crank: tuple[LocalParametrization, FloatArray]) -> None:
    parametrization, guess = crank
    computed = AssertionError("the gradient was computed")
    with patch.object(VectorizedEquations, "compute_gradient", side_effect=computed):
        near, good = parametrization.reach(guess[:1], NUMBERS[:1])
    assert good.all()
    assert np.abs(near.states - guess[:1]).max() > 0


def test_a_gradient_kept_from_elsewhere_is_corrected_to_the_secant() -> None:
    def distance(x: FloatArray) -> FloatArray:
        return np.asarray(x**2 - 0.73)

    start, back = np.array([[1.0], [1.2]]), 0.5
    step = back * distance(start)
    x = start - step
    slope = (distance(x) - distance(start)) / (x - start)
    corrected = correct_chord(back * distance(x), step, step)
    np.testing.assert_allclose(corrected, distance(x) / slope, rtol=1e-13)


def test_a_step_that_is_rounding_corrects_nothing() -> None:
    chord, before = np.array([[1e-16, -1e-16]]), np.array([[1e-16, 0.0]])
    np.testing.assert_array_equal(correct_chord(chord, np.zeros((1, 2)), np.zeros((1, 2))), chord)
    assert np.abs(correct_chord(chord, before, before)).max() < 1e-15
