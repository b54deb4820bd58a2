"""The picture of true and false eigenvalues."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.image import imread

from fmilin.output.report.figures import rendered
from fmilin.output.report.linear_pictures import comparison_figure, without

TRUE = np.array([-2j, 2j])
NAIVE = np.array([-2j + 1e-9, 2j, 0, 1e-8, -1e-8 + 2e-8j, -1e-8 - 2e-8j])


def test_the_false_ones_are_those_that_no_true_one_matches() -> None:
    assert sorted(without(NAIVE, TRUE), key=abs) == pytest.approx(sorted(NAIVE[2:], key=abs))
    assert without(TRUE, TRUE).size == 0
    assert without(np.empty(0, dtype=np.complex128), TRUE).size == 0


@pytest.mark.parametrize("naive", [NAIVE, TRUE, NAIVE * 1e6, np.zeros(2)])
def test_a_png_with_both_colours(naive: np.ndarray) -> None:
    picture = imread(
        io.BytesIO(rendered(comparison_figure(TRUE, naive, title="A title", subtitle="words"))), format="png"
    )
    assert picture.shape[:2] == (728, 1300)
    rgb = picture[..., :3]
    for colour in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)):
        assert np.isclose(rgb, np.array(colour) / 255, atol=0.01).all(axis=-1).sum() > 50


def test_the_same_data_give_the_same_bytes() -> None:
    first, second = (rendered(comparison_figure(TRUE, NAIVE, title="A title")) for _ in range(2))
    assert first == second
