"""A multiple eigenvalue is shown with its error in reports and families, and its rounding is not called unstable."""

import re

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.report.family_pictures import compute_eigenvalue_rates, compute_quantity
from fmilin.report.locus_pictures import merge_clusters
from fmilin.report.periodic import _multiplier_text
from fmilin.report.web.of_family import family_report
from fmilin.report.web.of_linear import linear_report


@pytest.fixture(scope="module")
def family() -> fl.LinearFamily:
    """Three integrators in a row, written so that rounding splits their eigenvalue, beside a damped oscillator."""
    rates = {
        "x": "v",
        "v": "a + 0.1*(x - v)*0",
        "a": "F",
        "p": "-k*p + q",
        "q": "-0.1*p",
    }
    model = OdeModel("chain", rates, inputs=["F"], outputs={"y": "x"}, parameters={"k": 1.0})
    family = fl.sweep(model, {"k": np.linspace(0.5, 2.0, 3)})
    A = family.array("A")
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 5)))[0]
    A[:] = turn @ A @ turn.T
    errors = family.array("error_A")
    errors[:] = 1e-12
    return family


def without_tags(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_rounding_of_a_triple_zero_does_not_lie_in_the_unstable_half_plane(family: fl.LinearFamily) -> None:
    split = np.abs(family.eigenvalues) < 1e-2
    assert (split.sum(axis=-1) == 3).all()
    assert np.abs(family.eigenvalues[split]).max() > 1e-6
    assert (family.eigenvalue_errors[split] >= np.abs(family.eigenvalues[split])).all()
    assert (compute_eigenvalue_rates(family)[split].real == 0).all()
    assert (compute_quantity(family, "growth")[0] == 0).all()
    decaying = compute_eigenvalue_rates(family)[~split].real
    np.testing.assert_allclose(decaying, family.eigenvalues[~split].real)
    assert set(family.spectra.kinds[~split.reshape(3, 5)]) == {"decays"}


def test_reports_show_a_cluster_with_its_error(family: fl.LinearFamily) -> None:
    for page in (family_report(family), linear_report(family[0])):
        text = without_tags(page)
        assert re.search(r"0 \(3 times, \+- \d", text)
    assert re.search(r"0 \(3 times, \+- [^)]*\) grows in proportion to time", without_tags(linear_report(family[0])))


def test_a_multiplier_of_1_that_is_known_badly_is_called_1() -> None:
    assert _multiplier_text(1.0 + 0j, 1.0, pair=False) == "1 (+- 1)"
    assert _multiplier_text(0.25 + 0j, 1e-12, pair=False) == "0.25"
    assert _multiplier_text(0.25 + 1e-6j, 1e-3, pair=False) == "0.25 (+- 1e-3)"


def test_a_cluster_is_one_mark_of_a_root_locus_with_its_count(family: fl.LinearFamily) -> None:
    axes = family.plot.root_locus().axes[0]
    marks = np.concatenate(
        [np.asarray(drawn.get_offsets()).reshape(-1, 2) for drawn in axes.collections if drawn.get_array() is not None]
    )
    assert (np.isfinite(marks).all(axis=1)).sum() == 3 * 3  # of 3 * 5 eigenvalues: three at zero are one mark
    assert [text.get_text() for text in axes.texts if "×" in text.get_text()] == ["× 3"]


def test_a_cluster_is_one_mark_of_a_pole_zero_map(family: fl.LinearFamily) -> None:
    axes = family[0].plot.zeros().axes[0]
    (poles,) = [line for line in axes.lines if str(line.get_label()) == "5 eigenvalues"]
    assert len(np.asarray(poles.get_xdata())) == 3
    assert "× 3" in [text.get_text() for text in axes.texts]


def test_marks_merge_where_their_discs_overlap() -> None:
    values = np.array([[0.0, 0.1, 5.0, np.nan]], dtype=complex)
    merged = merge_clusters(values, np.array([[0.06, 0.06, 0.06, np.nan]]))
    np.testing.assert_allclose(merged.values[0, :3], [0.05, 0.05, 5.0])
    assert merged.counts.tolist() == [[2, 0, 1, 0]]
    np.testing.assert_allclose(merged.errors[0, :3], [0.06, 0.06, 0.06])
