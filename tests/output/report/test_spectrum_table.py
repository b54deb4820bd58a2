"""Labelled spectra as text: what is long is cut and counted, what is infinite is said."""

from __future__ import annotations

import io

import numpy as np

from fmilin.native.formulations import RCS, UCS, Spectrum, spectra, spectrum, spectrum_of_form
from fmilin.native.systems import flexible_double_pendulum, four_bar_form
from fmilin.output.report.spectrum_table import print_comparison, print_spectrum
from tests.native.formulations.hand_made import random_form, springs_in_line


def text_of(found: Spectrum) -> str:
    stream = io.StringIO()
    print_spectrum(found, stream)
    return stream.getvalue()


def comparison(found: tuple[Spectrum, ...]) -> str:
    stream = io.StringIO()
    print_comparison(found, stream)
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
    assert text.count("The point is no equilibrium") == 1


def test_nothing_to_warn_of() -> None:
    model = flexible_double_pendulum(1)
    assert "No warnings." in comparison((spectrum(model), spectrum(model, None, RCS())))
