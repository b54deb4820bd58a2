"""Labelled spectra as text: what is long is cut and counted, what is infinite is said.

Sparsity pictures: the structure of the factors against numeric ones, and the paper's observation about it.
"""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy import linalg, sparse

from fmilin import UsageError
from fmilin.formulations import RCS, UCS, Spectrum, spectra, spectrum, spectrum_of_form
from fmilin.formulations.sparse import sparse_form_of
from fmilin.report.figures import render_figure
from fmilin.report.formulations import factor_structure, mass_matrices, show_comparison, show_spectrum, sparsity_figure
from fmilin.report.terminal import print_to_stream
from fmilin.systems import flexible_double_pendulum, four_bar_form
from tests.formulations.hand_made import random_form, springs_in_line


def text_of(found: Spectrum) -> str:
    stream = io.StringIO()
    print_to_stream(stream, show_spectrum, found)
    return stream.getvalue()


def comparison(found: tuple[Spectrum, ...]) -> str:
    stream = io.StringIO()
    print_to_stream(stream, show_comparison, found)
    return stream.getvalue()


def test_infinite_and_zero_spurious_eigenvalues_are_said_to_be() -> None:
    form = four_bar_form(2)
    assert "2 true, 18 spurious (infinite)" in text_of(spectrum_of_form(form, RCS()))
    assert "2 true, 18 spurious (zero)" in text_of(spectrum_of_form(form, RCS("zero")))
    assert "2 true, no spurious ones" in text_of(spectrum_of_form(form))


def test_many_spurious_eigenvalues_are_cut_and_counted() -> None:
    found = spectrum_of_form(random_form(2, n=60, m=50), UCS(1e5))
    text = text_of(found)
    shown = int(np.sum(found.spurious.imag >= 0))
    assert shown > 40
    assert f"and {shown - 40} more" in text
    assert max(map(len, text.splitlines())) <= 80


def test_many_true_eigenvalues_and_coordinates_are_cut_and_counted() -> None:
    text = comparison(spectra(flexible_double_pendulum(8)))
    assert "and 10 more" in text
    assert "at most" in text
    assert "and 92 more" in text  # coordinates
    assert max(map(len, text.splitlines())) <= 80


def test_dependent_constraints_are_counted() -> None:
    text = comparison(spectra(springs_in_line(redundant=True)))
    assert "m = 2 constraints, 1 of them independent" in text


def test_warnings_that_all_share_stand_there_once() -> None:
    model = springs_in_line()
    text = comparison(spectra(model, None, ("mcs", "rcs")))
    assert text.count("The point is not an equilibrium") == 1


def test_nothing_to_warn_of() -> None:
    model = flexible_double_pendulum(1)
    assert "No warnings." in comparison((spectrum(model), spectrum(model, None, RCS())))


@pytest.mark.parametrize("seed", range(5))
def test_the_structure_of_a_factor_is_that_of_the_numbers(seed: int) -> None:
    random = np.random.default_rng(seed)
    A = random.standard_normal((14, 14)) * (random.random((14, 14)) < 0.12)
    M = A @ A.T + 10 * np.eye(14)
    L = linalg.cholesky(M, lower=True)
    found = np.zeros((14, 14), dtype=bool)
    found[factor_structure(sparse.csc_array(M))] = True
    assert np.array_equal(np.abs(L) > 1e-14, found)


def test_minimal_coordinates_couple_what_the_others_keep_apart() -> None:
    form = sparse_form_of(flexible_double_pendulum(5))
    Mr, M, Mp = mass_matrices(form).values()
    half = form.n // 2
    for matrix, coupled in ((M, 0), (Mp, 16)):  # the penalty couples the ends of the links, where the joint is
        assert matrix.shape == (42, 42)
        assert abs(matrix[:half, half:]).nnz * 2 == coupled
    assert Mr.shape == (32, 32)
    filled = [len(factor_structure(matrix)[0]) / (len(matrix.diagonal()) ** 2 / 2) for matrix in (Mr, M, Mp)]
    assert filled[0] > 0.8
    assert max(filled[1:]) < 0.6


def test_a_picture_and_its_limit() -> None:
    assert render_figure(sparsity_figure(four_bar_form(20), title="four-bar")).startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="be a black square"):
        sparsity_figure(four_bar_form(2000), title="four-bar")
