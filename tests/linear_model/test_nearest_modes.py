"""Some modes of a linear model: those nearest to a number, of the same as all of them."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import UsageError
from fmilin.linear_model import nearest_modes
from fmilin.models import FunctionModel


@pytest.fixture(scope="module")
def damped() -> fl.LinearModel:
    """A linear model of 24 states with real and complex eigenvalues."""
    random = np.random.default_rng(24)
    A = random.uniform(-1.0, 1.0, (24, 24)) - 2 * np.eye(24)
    states = {f"x{i}": 0.0 for i in range(24)}
    return fl.linearize(FunctionModel("damped", states, lambda t, x, u: A @ np.array(x)), checks="none")


@pytest.mark.parametrize("near", [0.0, -2.0, 1j, -3.0 - 2j])
def test_they_are_the_nearest_of_all(damped: fl.LinearModel, near: complex, monkeypatch: pytest.MonkeyPatch) -> None:
    by_definition = damped.modes(5, near=near)
    monkeypatch.setattr(nearest_modes, "MAX_DENSE_STATES", 0)
    modes = damped.modes(5, near=near)
    every = damped.eigenvalues()
    nearest = every[np.argsort(np.abs(every - near))[:5]]
    for mode in modes:
        distances = np.abs(np.concatenate((nearest, nearest.conj())) - mode.eigenvalue)
        assert distances.min() <= mode.error
        assert mode.error < 1e-9
        residual = damped.A @ mode.shape - mode.eigenvalue * mode.shape
        assert np.abs(residual).max() < 1e-9
    computed = {round(mode.frequency, 6) for mode in modes}
    assert computed <= {round(abs(value), 6) for value in every}
    assert len(by_definition) >= 3


def test_a_shift_that_is_an_eigenvalue_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_modes, "MAX_DENSE_STATES", 0)
    rates = -np.arange(12.0)
    states = {f"x{i}": 0.0 for i in range(12)}
    linear = fl.linearize(FunctionModel("lags", states, lambda t, x, u: rates * np.array(x)), checks="none")
    assert sorted(mode.eigenvalue.real for mode in linear.modes(3)) == pytest.approx([-2.0, -1.0, 0.0], abs=1e-9)


def test_a_count_below_one_is_rejected(damped: fl.LinearModel) -> None:
    with pytest.raises(UsageError, match="is not a number of eigenvalues"):
        damped.modes(0)
