"""Large models that declare their structure and have no derivatives: differences along groups, in sparse matrices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import KinkError
from fmilin.linear_model.sparse import is_sparse
from fmilin.linearization import sparse_states
from fmilin.signals import FloatArray
from tests.by_hand import FunctionModel, lags

N = 120
MATRICES = ("A", "B", "C", "D")


@pytest.fixture(autouse=True)
def in_sparse_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a model counts as large: the general algorithm, which is compared, takes less time."""
    monkeypatch.setattr(sparse_states, "MIN_STATES", N)


@pytest.fixture
def in_arrays(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it leaves all models to the general algorithm."""
    return lambda: monkeypatch.setattr(sparse_states, "MIN_STATES", 10**9)


def changed(model: FunctionModel, change: Callable[[FloatArray], FloatArray]) -> FunctionModel:
    """Return a model with ``change`` of the states added to its rates, and the same declared structure."""
    plain = model.parts.rates
    other = FunctionModel(dataclasses.replace(model.parts, rates=lambda t, s, u: plain(t, s, u) + change(s)))
    other.structure = model.structure
    return other


def test_matrices_errors_and_remarks_are_those_of_the_general_algorithm(in_arrays: Callable[[], None]) -> None:
    model = lags(N)
    points = [model.start, dataclasses.replace(model.start, states=np.zeros(N))]
    found = [fl.linearize(model, point) for point in points]
    in_arrays()
    for point, linear in zip(points, found, strict=True):
        expected = fl.linearize(model, point)
        assert is_sparse(linear)
        assert not is_sparse(expected)
        for name in MATRICES:
            np.testing.assert_array_equal(getattr(linear, name), getattr(expected, name))
            np.testing.assert_allclose(getattr(linear.errors, name), getattr(expected.errors, name), rtol=1e-9)
        assert [remark.kind for remark in linear.warnings] == [remark.kind for remark in expected.warnings]
        assert linear.method.derivatives == expected.method.derivatives == "differences"
        assert linear.is_equilibrium == expected.is_equilibrium


def test_the_slopes_are_those_of_the_closed_form_within_their_errors() -> None:
    model = lags(N)
    linear = fl.linearize(model)
    x = model.start.states
    pulls = np.cos(np.diff(x))
    expected = np.diag(pulls, 1) + np.diag(pulls, -1)
    expected += np.diag(-1 - 9 * x**2 - expected.sum(axis=1))
    assert (np.abs(linear.A - expected) <= 10 * linear.errors.A).all()
    assert linear.accuracy.A < 1e-9
    assert linear.method.evaluations <= 60


def test_an_undeclared_dependence_is_found_out() -> None:
    model = changed(lags(N), lambda s: 1e-3 * np.eye(N)[:, 7] * s[100])
    linear = fl.linearize(model)
    assert not is_sparse(linear)
    assert linear.A[7, 100] == pytest.approx(1e-3, abs=1e-8)


def test_kinks_are_named_as_ever() -> None:
    single = changed(lags(N), lambda s: np.eye(N)[:, 7] * abs(s[8] - 0.1))
    with pytest.raises(KinkError, match=r"kink at the point: d der\(x7\) / d x8"):
        fl.linearize(single)
    joint = changed(lags(N), lambda s: np.eye(N)[:, 7] * max(0.0, min(s[7], s[8] - 0.1)))
    with pytest.raises(KinkError, match="several variables together"):
        fl.linearize(joint)


def test_a_slope_that_holds_near_the_point_only_is_left_to_the_general_algorithm() -> None:
    model = changed(lags(N), lambda s: np.eye(N)[:, 7] * 1e-5 * np.tanh((s[8] - 0.1) / 1e-5))
    linear = fl.linearize(model)
    assert "narrow" in [remark.kind for remark in linear.warnings]
    assert linear.A[7, 8] == pytest.approx(1.0 + np.cos(0.1), abs=1e-6)


def test_a_row_of_all_states_leaves_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    model = lags(N)
    assert model.structure is not None
    model.structure = model.structure.copy()
    model.structure[N] = True
    monkeypatch.setattr(sparse_states, "difference_sparsely", None)  # it would fail
    assert not is_sparse(fl.linearize(model))


def test_exact_derivatives_are_not_replaced_by_differences() -> None:
    with pytest.raises(fl.UsageError, match="provides no exact directional derivatives"):
        fl.linearize(lags(N), derivatives="exact")
