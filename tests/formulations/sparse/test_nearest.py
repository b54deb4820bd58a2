"""A few eigenvalues around a frequency against closed forms, the dense formulations and the general procedure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from scipy import sparse

import fmilin as fl
from fmilin import ConstraintError, NumericalError, UnknownNameError, UsageError
from fmilin.formulations import RCS, UCS, ConstrainedForm, spectrum_of_form
from fmilin.formulations.formulation import ComplexArray
from fmilin.formulations.sparse import Around, eigenvalues_near, sparse_form_of
from fmilin.systems import flexible_double_pendulum, four_bar, four_bar_form

PAPER = UCS(alpha=1e7, xi=1.0, omega=10.0)
WAYS = ["mcs", "rcs", PAPER]
SIZES = [1, 3, 25, 400]


def upper(found: ComplexArray) -> ComplexArray:
    """One of each pair, by frequency."""
    kept = found[found.imag > 0]
    return kept[np.argsort(kept.imag)]


def exact(N: int, c: float = 0.0) -> complex:
    """The eigenvalue of the four-bar linkage at its upper equilibrium, from its equation in phi alone."""
    linkage = four_bar_form(N)
    R = np.append(np.tile(linkage.Phi_q[[0]].toarray().ravel()[[1, 0]] * [-1, 1], N + 1), 1.0)
    J = (4 * N + 1) / 3
    stiffness = float(R @ (linkage.K @ R))
    damping = N * c * (1 + np.sqrt(1 - R[0] ** 2)) / 2  # sin^2(phi/2), phi beyond pi/2
    return complex(-damping / (2 * J), np.sqrt(stiffness / J - (damping / (2 * J)) ** 2))


@pytest.mark.parametrize("formulation", ["mcs", "rcs"])
@pytest.mark.parametrize("N", SIZES)
def test_the_linkage_to_the_last_digits(N: int, formulation: str) -> None:
    found = eigenvalues_near(four_bar_form(N), formulation, around=Around(count=1))
    np.testing.assert_allclose(upper(found.eigenvalues), [exact(N)], rtol=1e-12)
    assert len(found.eigenvalues) == 2
    assert found.is_true.all()
    assert (found.errors < 1e-14).all()


@pytest.mark.parametrize("formulation", ["mcs", "rcs"])
@pytest.mark.parametrize("frequency", [0.0, 1.2, 40.0])
def test_the_damped_linkage_from_any_frequency(formulation: str, frequency: float) -> None:
    found = eigenvalues_near(four_bar_form(60, 1.0), formulation, around=Around(frequency, 1))
    np.testing.assert_allclose(upper(found.eigenvalues), [exact(60, 1.0)], rtol=1e-11)


@pytest.mark.parametrize("c", [0.0, 1.0])
def test_the_penalty_stays_within_its_published_error(c: float) -> None:
    for N in (1, 10, 400):
        found = eigenvalues_near(four_bar_form(N, c), UCS(), around=Around(1.3, 1))
        assert found.is_true.all()
        assert abs(upper(found.eigenvalues)[0] - exact(N, c)) < 3e-6


def test_published_value_of_one_loop() -> None:
    found = eigenvalues_near(four_bar_form(1), "mcs", around=Around(count=1))
    np.testing.assert_allclose(upper(found.true), [2.147676638502278j], rtol=1e-14)


@pytest.mark.parametrize("formulation", WAYS)
@pytest.mark.parametrize("rate", [0.0, 2.0])
def test_the_pendulum_agrees_with_the_dense_formulation(formulation: Any, rate: float) -> None:
    model = flexible_double_pendulum(4, angle=0.25 * rate, rate=rate)
    form = sparse_form_of(model)
    kept = model.independent[: len(model.independent) // 2]
    assert form.is_equilibrium == (not rate)
    dense = upper(spectrum_of_form(form, formulation, independent=kept).true)
    found = eigenvalues_near(form, formulation, around=Around(9.0, 3), independent=kept)
    expected = dense[np.argsort(np.abs(dense - 9j))][:3]
    np.testing.assert_allclose(upper(found.true), upper(expected), atol=2e-7)


def test_the_pendulum_in_motion_agrees_with_the_general_procedure() -> None:
    model = flexible_double_pendulum(2, angle=0.5, rate=2.0)
    expected = upper(fl.linearize(model).eigenvalues())[:4]
    form = sparse_form_of(model)
    kept = model.independent[: len(model.independent) // 2]
    for formulation in ("mcs", "rcs"):
        found = eigenvalues_near(form, formulation, independent=kept)
        np.testing.assert_allclose(upper(found.eigenvalues), expected, atol=1e-9)


@pytest.mark.parametrize("formulation", ["mcs", "rcs"])
def test_the_published_frequencies_of_the_pendulum(formulation: str) -> None:
    found = eigenvalues_near(sparse_form_of(flexible_double_pendulum(1)), formulation)
    published = [1.33593155834248, 3.531082271144686, 9.705195842688476, 25.30224732821966]
    np.testing.assert_allclose(upper(found.eigenvalues).imag, published, rtol=1e-11)
    np.testing.assert_allclose(upper(found.eigenvalues).real, 0.0, atol=1e-12)


def test_errors_are_estimated_where_elements_are_too_many() -> None:
    converged = np.array([1.338727312976, 3.554338414641, 15.3525880538, 25.39771147261])
    for elements in (60, 300):
        model = flexible_double_pendulum(elements, geometric_stiffening=True)
        found = eigenvalues_near(sparse_form_of(model), "mcs")
        errors = found.errors[found.eigenvalues.imag > 0]
        assert (np.abs(upper(found.eigenvalues).imag - converged) < 5e-8 * converged + errors).all()
        assert errors[0] < (1e-8 if elements == 60 else 1e-4)


def test_eigenvectors_keep_the_constraints_and_the_penalty_breaks_them() -> None:
    form = sparse_form_of(flexible_double_pendulum(3))
    for formulation in ("mcs", "rcs"):
        assert np.max(eigenvalues_near(form, formulation).violations) < 1e-13
    found = eigenvalues_near(form, PAPER, around=Around(0.0, 6))
    assert found.labels.count("spurious") > 0
    np.testing.assert_allclose(np.abs(found.spurious), 10.0, rtol=0.05)  # xi = 1: all at -omega
    assert np.max(found.violations[found.is_true]) < 1e-3 * np.min(found.violations[~found.is_true])
    assert "spurious, the penalty's own, of modulus" in found.remarks[0].message


def test_growing_motions_are_real_pairs() -> None:
    upright = sparse_form_of(flexible_double_pendulum(2, geometric_stiffening=True))
    turned = replace(upright, K=-upright.K)
    found = eigenvalues_near(turned, "rcs", around=Around(count=2))
    hanging = upper(eigenvalues_near(upright, "rcs", around=Around(count=2)).eigenvalues).imag
    np.testing.assert_allclose(np.sort(np.abs(found.eigenvalues.real))[-1], hanging[0], rtol=0.9)
    assert (found.eigenvalues.imag == 0).all()


def free_mass(K: float) -> ConstrainedForm:
    """Two coordinates that move as one, mass 2, spring K."""
    one = sparse.csc_array(np.eye(2))
    return ConstrainedForm(one, 0 * one, K / 2 * one, sparse.csr_array([[1.0, -1.0]]), one, np.zeros(1), ("a", "b"))


@pytest.mark.parametrize("formulation", ["mcs", "rcs"])
def test_a_free_motion_has_zeros(formulation: str) -> None:
    found = eigenvalues_near(free_mass(0.0), formulation, around=Around(count=1))
    np.testing.assert_allclose(found.eigenvalues, 0.0, atol=1e-7)
    np.testing.assert_allclose(eigenvalues_near(free_mass(8.0), formulation, around=Around(2.0, 1)).true.imag, [-2, 2])


def test_a_frequency_that_is_an_eigenvalue_is_no_trouble() -> None:
    form = sparse_form_of(flexible_double_pendulum(20))
    first = upper(eigenvalues_near(form, "rcs").eigenvalues)
    again = eigenvalues_near(form, "rcs", around=Around(float(first[2].imag), 1))
    np.testing.assert_allclose(upper(again.eigenvalues), first[2:3], rtol=1e-9)


def test_dense_forms_are_taken_too() -> None:
    from fmilin.formulations.of_model import form_of

    model = four_bar(3)
    form = form_of(model, model.start)
    assert not form.is_sparse
    np.testing.assert_allclose(
        upper(eigenvalues_near(form, "rcs", around=Around(count=1)).true), [exact(3)], rtol=1e-12
    )


# ---------------------------------------------------------------------- refusals


def test_what_around_may_be() -> None:
    for frequency in (-1.0, float("nan")):
        with pytest.raises(UsageError, match="0 rad/s or more"):
            Around(frequency)
    with pytest.raises(UsageError, match="The number of eigenvalues must be 1 or more"):
        Around(count=0)


def test_spurious_zeros_would_hide_the_slow_ones() -> None:
    with pytest.raises(UsageError, match="slowest eigenvalues"):
        eigenvalues_near(four_bar_form(2), RCS(spurious="zero"))


@pytest.mark.parametrize(("names", "error"), [(["x9"], UnknownNameError), (["x0", "phi"], NumericalError)])
def test_wrong_coordinates(names: Sequence[str], error: type[Exception]) -> None:
    with pytest.raises(error, match="x9" if "x9" in names else "do not determine the others"):
        eigenvalues_near(four_bar_form(2), "mcs", independent=names)


@pytest.mark.parametrize("formulation", ["mcs", "rcs"])
def test_a_motion_without_inertia_is_said(formulation: Literal["mcs", "rcs"]) -> None:
    form = free_mass(2.0)
    with pytest.raises(NumericalError, match="not positive definite on the velocities"):
        eigenvalues_near(replace(form, M=0 * form.M), formulation)


def test_models_of_symbols_have_another_form() -> None:
    with pytest.raises(UsageError, match="not made of sparse matrices"):
        sparse_form_of(four_bar())


def test_a_point_off_the_constraints() -> None:
    model = flexible_double_pendulum(2)
    x = model.start.states.copy()
    x[0] = 0.1
    with pytest.raises(ConstraintError, match=r"'constraint 7' is 0\.1"):
        sparse_form_of(model, model.start.with_states(x))


@pytest.mark.parametrize(("alpha", "swamped"), [(1e6, False), (1e14, True), (1e25, True)])
def test_a_penalty_that_swamps_double_precision_is_said(alpha: float, swamped: bool) -> None:
    found = eigenvalues_near(four_bar_form(3), UCS(alpha=alpha), around=Around(count=1))
    assert [r.kind for r in found.remarks if "exceeds double precision" in str(r)] == ["penalty"] * swamped
