"""Co-simulation FMUs with hidden states at points that move: right within the stated error, or an error."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import fmilin as fl
from tests.cosimulation_table import (
    COMMUNICATES,
    EULER,
    HOLDS,
    OSCILLATOR,
    RUNGE_KUTTA,
    VAN_DER_POL,
    Case,
    linearized,
    plant_at_start,
)
from tests.fmus.stepped.make import Kind, build

BOTH = ("y", "y2")
SEEN_WHOLE = [
    Case("shortened", VAN_DER_POL, (0.8,), (RUNGE_KUTTA, 0.02, COMMUNICATES), BOTH, starts=(0.6,), step=0.02),
    Case("Euler, shortened", VAN_DER_POL, (0.8,), (EULER, 0.02, COMMUNICATES), BOTH, starts=(0.6,), step=0.02),
    Case("fixed steps", VAN_DER_POL, (0.8,), (EULER, 0.005, HOLDS), BOTH, starts=(0.6,), step=0.005),
]  # fmt: skip


@pytest.mark.parametrize("case", SEEN_WHOLE, ids=lambda case: case.name)
def test_as_many_outputs_as_states_tell_the_model_at_the_point(case: Case, tmp_path: Path) -> None:
    linear = linearized(case, tmp_path)
    A = plant_at_start(case)[0]
    values, errors, true = linear.eigenvalues(), linear.eigenvalue_errors(), np.linalg.eigvals(A)
    distances = np.abs(values[:, None] - true)
    rows, columns = linear_sum_assignment(distances)
    assert (distances[rows, columns] <= 3 * errors[rows] + 1e-12).all()
    assert distances[rows, columns].max() < 0.02
    assert linear.is_equilibrium is False
    assert any("the coordinates 'y', 'y2'" in str(warning) for warning in linear.warnings)
    np.testing.assert_allclose(linear.C @ linear.f0, [0.0, -0.6], atol=1e-2)  # y' = x1, y2' = -x0


def test_one_output_of_a_moving_point_tells_no_model_of_two_states(tmp_path: Path) -> None:
    """New coordinates T(t) of hidden states add T' T^-1 to A, and leave inputs and outputs as they are."""
    case = Case("hidden", VAN_DER_POL, (0.8,), (RUNGE_KUTTA, 0.02, HOLDS), ("y",), starts=(0.6,), step=0.02)
    with pytest.raises(fl.NumericalError, match="they determine no linear model of hidden states"):
        linearized(case, tmp_path)


def test_a_linear_plant_that_moves_is_told_by_one_output(tmp_path: Path) -> None:
    case = Case("linear", OSCILLATOR, (2.0, 0.4), (RUNGE_KUTTA, 0.02, HOLDS), ("y",), starts=(1.0,), step=0.02)
    linear = linearized(case, tmp_path)
    np.testing.assert_allclose(linear.eigenvalues().real, -0.2, rtol=1e-6)
    assert linear.is_equilibrium is False


def test_a_ball_in_flight_is_linear_until_it_bounces(tmp_path: Path) -> None:
    """From rest at 1 m it bounces after 0.45 s, within the records from which a model would be made otherwise."""
    with warnings.catch_warnings(), fl.load(build("ball", tmp_path, Kind(hidden=True)), interface="cs") as model:
        warnings.simplefilter("ignore")
        linear = fl.linearize(model)
    assert (np.abs(linear.eigenvalues()) <= linear.eigenvalue_errors()).all()
    assert np.abs(linear.eigenvalues()).max() < 0.01
    assert linear.is_equilibrium is False
    assert any("an event follows" in str(warning) for warning in linear.warnings)
