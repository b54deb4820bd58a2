"""Spectra of numeric equations at rest against what the projection on the null space says, by other means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import linalg, sparse

from fmilin import NumericalError, UsageError
from fmilin.formulations import MCS, RCS, UCS, ConstrainedForm, spectrum_of_form
from fmilin.systems import flexible_double_pendulum, four_bar_form
from fmilin.systems.four_bar_linkage import equilibrium_angle
from tests.formulations.hand_made import closed_pair, random_form


def expected(form: ConstrainedForm) -> np.ndarray:
    """Eigenvalues over scipy's null space, in first-order form with an inverted mass matrix."""
    R = linalg.null_space(form.Phi_q)
    Mr = R.T @ form.M @ R
    lower = -np.linalg.inv(Mr) @ np.hstack((R.T @ form.K @ R, R.T @ form.C @ R))
    p = R.shape[1]
    values = np.linalg.eigvals(np.vstack((np.hstack((np.zeros((p, p)), np.eye(p))), lower)))
    return np.asarray(values[np.lexsort((values.imag, np.abs(values).round(9)))])


METHODS = ("coordinates", "zero-eigenvalue", "svd", "qr", "gram-schmidt")


def test_every_basis_is_tried_here() -> None:
    with pytest.raises(UsageError, match=f"Choose one of: {', '.join(METHODS)}."):
        spectrum_of_form(four_bar_form(1), MCS("none"))


def distance(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest distance of matched eigenvalues, relative to the largest eigenvalue."""
    assert found.shape == wanted.shape
    left = list(wanted)
    worst = 0.0
    for s in found:
        i = int(np.argmin([abs(s - w) for w in left]))
        worst = max(worst, abs(s - left.pop(i)))
    return float(worst / np.max(np.abs(wanted)))


@pytest.mark.parametrize("redundant", [0, 2])
@pytest.mark.parametrize("formulation", [*(MCS(b) for b in METHODS), RCS(), RCS("zero")])
def test_exact_formulations_of_any_equations(formulation: MCS | RCS, redundant: int) -> None:
    for seed in range(8):
        form = random_form(seed, redundant=redundant)
        found = spectrum_of_form(form, formulation)
        assert distance(found.true, expected(form)) < 1e-11
        assert len(found.spurious) == (0 if isinstance(formulation, MCS) else 9)  # 3m, redundant rows left out
        assert np.max(found.violations[found.is_true]) < 1e-10
        assert np.all(np.abs(found.true - found.nearest(found.true)) == 0)


@pytest.mark.parametrize("redundant", [0, 2])
def test_the_penalty_converges_to_the_constrained_system_like_its_inverse(redundant: int) -> None:
    form = random_form(3, redundant=redundant)
    errors = [distance(spectrum_of_form(form, UCS(alpha)).true, expected(form)) for alpha in (1e3, 1e4, 1e5)]
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 10, rtol=0.05)
    found = spectrum_of_form(form, UCS(1e6))
    assert len(found.true) == 8
    assert len(found.spurious) == 6


def test_infinite_and_zero_eigenvalues_are_told_apart_from_the_true_ones() -> None:
    form = random_form(4)
    infinite, zero = spectrum_of_form(form, RCS()), spectrum_of_form(form, RCS("zero"))
    assert np.min(np.abs(infinite.spurious)) > 1e4 * np.max(np.abs(infinite.true))
    assert np.max(np.abs(zero.spurious)) < 1e-4 * np.min(np.abs(zero.true))
    assert infinite.labels.count("spurious") == zero.labels.count("spurious") == 9


@pytest.mark.parametrize("loops", range(1, 41))
def test_the_pair_of_the_linkage_from_1_to_40_loops(loops: int) -> None:
    """Relative deviation below 1e-12 with MCS and RCS; below 3e-6 rad/s with the penalty of the paper."""
    form = four_bar_form(loops)
    A = closed_pair(loops, 0.0, equilibrium_angle(loops, "upper"))
    frequency = np.sqrt(-A[1, 0])
    for formulation in (MCS(), RCS()):
        found = spectrum_of_form(form, formulation, independent=["phi"])
        np.testing.assert_allclose(np.sort(found.true.imag), [-frequency, frequency], rtol=1e-12)
        np.testing.assert_allclose(found.true.real, 0, atol=1e-12)
    if loops in (1, 2, 3, 5, 10, 20, 40):  # it is the slowest by far
        found = spectrum_of_form(form, UCS(alpha=1e6, xi=1, omega=10), independent=["phi"])
        assert distance(found.true, np.array([-1j * frequency, 1j * frequency])) * frequency < 3e-6
        assert len(found.spurious) == 2 * (2 * loops + 2)


@pytest.mark.parametrize("loops", [1, 2, 5, 20])
@pytest.mark.parametrize("method", METHODS)
def test_the_damped_linkage_by_every_basis(loops: int, method: str) -> None:
    form = four_bar_form(loops, 1.0)
    wanted = np.linalg.eigvals(closed_pair(loops, 1.0, equilibrium_angle(loops, "upper")))
    found = spectrum_of_form(form, MCS(method))
    assert distance(found.true, wanted) < 1e-12
    if loops == 1:
        np.testing.assert_allclose(found.true[1], -0.2423858093105051 + 2.13395502834838j, rtol=1e-12)


def test_the_damped_linkage_with_multipliers_and_penalties() -> None:
    form = four_bar_form(2, 1.0)
    wanted = np.linalg.eigvals(closed_pair(2, 1.0, equilibrium_angle(2, "upper")))
    assert distance(spectrum_of_form(form, RCS()).true, wanted) < 1e-12
    assert distance(spectrum_of_form(form, RCS("zero")).true, wanted) < 1e-12
    assert distance(spectrum_of_form(form, UCS()).true, wanted) < 3e-6


def test_the_flexible_pendulum_by_three_ways() -> None:
    """The published model with one element: MCS to 1e-9, QZ within its stated loss."""
    from fmilin.formulations import form_of

    model = flexible_double_pendulum(1)
    form = form_of(model, model.start)
    wanted = np.array([1.33593155834248, 3.531082271144686, 9.705195842688476, 25.30224732821966])
    for formulation, most in ((MCS(), 1e-9), (RCS(), 1e-9), (RCS("zero"), 1e-9), (UCS(1e7), 3e-4)):
        found = spectrum_of_form(form, formulation)
        upper = np.sort(found.true.imag[found.true.imag > 0])[:4]
        assert np.max(np.abs(upper - wanted)) < most
        assert len(found.true) == 16
        assert not [r for r in found.remarks if r.kind == "labels"]
        if not isinstance(formulation, UCS):
            assert np.max(np.abs(upper - wanted)) < max(np.max(found.errors[found.is_true]), 1e-12)


def test_the_error_estimates_cover_the_rounding_of_qz() -> None:
    """Ten elements: sizes from 1 to 7000 rad/s; both pencils agree within what they say of themselves."""
    from fmilin.formulations import form_of

    model = flexible_double_pendulum(10)
    form = form_of(model, model.start)
    found = [spectrum_of_form(form, f) for f in (MCS(), RCS(), RCS("zero"))]
    upper = [np.sort(s.true.imag[s.true.imag > 0])[:4] for s in found]
    for one, values in zip(found[1:], upper[1:], strict=True):
        difference = np.max(np.abs(values - upper[0]))
        assert difference < 1e-9
        assert difference < np.max(one.errors[one.is_true]) + np.max(found[0].errors)


def test_sparse_matrices_are_the_same_equations() -> None:
    form = random_form(6)
    matrices: dict[str, Any] = {n: sparse.csr_array(getattr(form, n)) for n in ("M", "C", "K", "Phi_q", "B")}
    thin = replace(form, **matrices)
    assert thin.is_sparse
    assert not form.is_sparse
    assert np.array_equal(spectrum_of_form(thin, "rcs").eigenvalues, spectrum_of_form(form, "rcs").eigenvalues)


def test_nothing_left_to_move_and_nothing_constrained() -> None:
    locked, free = random_form(1, n=3, m=3), random_form(1, n=3, m=0)
    for formulation, spurious in (("mcs", 0), ("rcs", 9), ("ucs", 6)):
        found = spectrum_of_form(locked, formulation)
        assert (len(found.true), len(found.spurious)) == (0, spurious)
        found = spectrum_of_form(free, formulation)
        assert (len(found.true), len(found.spurious)) == (6, 0)
        assert distance(found.true, expected(free)) < 1e-12


def test_a_free_mass_has_two_zeros_with_a_sensible_error() -> None:
    """A double zero moves like the root of rounding, and no simple error bound knows that."""
    eye = np.eye(2)
    form = ConstrainedForm(eye, 0 * eye, np.diag([3.0, 0.0]), np.zeros((0, 2)), np.zeros((2, 0)), np.zeros(0))
    for formulation in ("mcs", "rcs", "ucs"):
        found = spectrum_of_form(form, formulation)
        np.testing.assert_allclose(np.abs(found.true), [0, 0, np.sqrt(3), np.sqrt(3)], atol=1e-7)
        assert np.max(found.errors) < 1e-6


def test_true_and_spurious_zeros_cannot_be_told_apart_and_that_is_said() -> None:
    """A mass that nothing holds beside one that is held: the pencil with zeros has five of them, two true."""
    rows, still = np.array([[0.0, 1.0]]), np.zeros((2, 2))
    form = ConstrainedForm(np.eye(2), still, still, rows, np.zeros((2, 1)), np.zeros(1))
    found = spectrum_of_form(form, RCS("zero"))
    kinds = [str(r) for r in found.remarks if r.kind == "labels"]
    assert any("not clearly separated" in text for text in kinds)
    assert any("no linear model without the spurious" in text and "infinite" in text for text in kinds)
    assert not [r for r in spectrum_of_form(form, RCS()).remarks if r.kind == "labels"]


# ---------------------------------------------------------------------- refusals and remarks


@pytest.mark.parametrize("formulation", ["mcs", "rcs", "ucs"])
@pytest.mark.parametrize(("mass", "inertia"), [(-1.0, "-1"), (0.0, "0")])
def test_a_mass_matrix_that_is_none_on_the_tangent_space(formulation: str, mass: float, inertia: str) -> None:
    form = replace(random_form(1, n=3, m=1), M=np.diag([1.0, mass, 1.0]), Phi_q=np.array([[1.0, 0.0, -1.0]]))
    with pytest.raises(NumericalError, match=rf"not positive definite .* motion of q2 has the inertia {inertia} "):
        spectrum_of_form(form, formulation)


def test_a_mass_matrix_may_be_singular_where_the_constraints_hold_it() -> None:
    form = replace(random_form(1, n=3, m=1), M=np.diag([1.0, 2.0, 0.0]), Phi_q=np.array([[1.0, 0.0, -1.0]]))
    for formulation, most in (("mcs", 1e-12), ("rcs", 1e-12), ("ucs", 1e-6)):
        assert distance(spectrum_of_form(form, formulation).true, expected(form)) < most


def test_an_asymmetric_mass_matrix_is_refused() -> None:
    form = random_form(1)
    M = form.M.copy()
    M[2, 0] += 0.1
    with pytest.raises(NumericalError, match=r"not symmetric: entries \[(0, 2|2, 0)\]"):
        spectrum_of_form(replace(form, M=M), "rcs")


@pytest.mark.parametrize("name", ["M", "K"])
def test_numbers_that_are_none_are_refused(name: str) -> None:
    form = random_form(1)
    bad = getattr(form, name).copy()
    bad[0, 0] = np.nan
    with pytest.raises(NumericalError, match="not numbers: choose another point"):
        spectrum_of_form(replace(form, **{name: bad}), "rcs")


def test_a_penalty_that_swamps_double_precision_is_remarked_on_with_the_loss() -> None:
    """At 1e12 rounding takes three digits of the pair; what is estimated covers what is lost."""
    form = four_bar_form()
    exact = spectrum_of_form(form).true
    for alpha, swamped in ((1e4, False), (1e6, False), (1e9, True), (1e12, True)):
        found = spectrum_of_form(form, UCS(alpha))
        kinds = [r.kind for r in found.remarks]
        assert ("penalty" in kinds) == swamped, alpha
        assert distance(found.true, exact) * 2.15 < np.max(found.errors[found.is_true]) + 3 / alpha
    (remark,) = [r for r in spectrum_of_form(form, UCS(1e9)).remarks if r.kind == "penalty"]
    assert "exceeds double precision" in str(remark)
    assert "Use a smaller alpha" in str(remark)


def test_a_penalty_too_weak_to_tell_eigenvalues_apart_is_remarked_on() -> None:
    found = spectrum_of_form(four_bar_form(3), UCS(alpha=0.1, omega=2.0))
    assert any(r.kind == "labels" and "not clearly separated" in str(r) for r in found.remarks)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"alpha": np.inf}, "alpha must be positive and finite"),
        ({"omega": -1.0}, "omega must be positive"),
        ({"xi": -0.1}, "xi must be a damping ratio, 0 or more"),
    ],
)
def test_penalties_that_are_none(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        UCS(**options)


def test_all_eigenvalues_of_too_many_coordinates_are_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"All eigenvalues of 4003 coordinates .*eigenvalues_near keeps everything"):
        spectrum_of_form(four_bar_form(2000))


def test_formulations_that_do_not_exist() -> None:
    with pytest.raises(UsageError, match=r"'abc' is not a formulation\. Choose one of: mcs, rcs, ucs"):
        spectrum_of_form(random_form(1), "abc")
    with pytest.raises(UsageError, match="'lu' is not a way to find the free velocities"):
        MCS("lu")
    with pytest.raises(UsageError, match="at 'infinite' or 'zero', not at 'one'"):
        RCS("one")  # type: ignore[arg-type]


def test_inertias_of_very_different_sizes_are_no_missing_mass() -> None:
    """A slender beam: 1e4 kg m2 for the whole, 1e-10 for the slope at its end."""
    form = random_form(3)
    sizes = np.array([1e-7, 1.0, 1e2, 1e-6, 1.0, 1e3, 1e-5])
    stretched = replace(form, M=sizes[:, None] * form.M * sizes, C=sizes[:, None] * form.C * sizes)
    stretched = replace(stretched, K=sizes[:, None] * form.K * sizes, Phi_q=form.Phi_q * sizes)
    assert distance(spectrum_of_form(stretched, MCS()).true, expected(form)) < 1e-9
    assert distance(spectrum_of_form(stretched, RCS()).true, expected(form)) < 1e-9
