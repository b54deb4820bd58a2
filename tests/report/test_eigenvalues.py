"""The picture of true and false eigenvalues."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.image import imread

import fmilin as fl
from fmilin.report.figures import render_figure
from fmilin.report.linear_pictures import eigenvalue_figure, without
from fmilin.systems import four_bar

TRUE = np.array([-2j, 2j])
NAIVE = np.array([-2j + 1e-9, 2j, 0, 1e-8, -1e-8 + 2e-8j, -1e-8 - 2e-8j])


def test_the_false_ones_are_those_that_no_true_one_matches() -> None:
    assert sorted(without(NAIVE, TRUE), key=abs) == pytest.approx(sorted(NAIVE[2:], key=abs))
    assert without(TRUE, TRUE).size == 0
    assert without(np.empty(0, dtype=np.complex128), TRUE).size == 0


def test_false_ones_are_counted_and_seen_close_up() -> None:
    model = four_bar()
    true, naive = fl.linearize(model), fl.linearize(model.with_constraints([]))
    figure = eigenvalue_figure(true, naive)
    whole, close = figure.axes
    assert [t.get_text() for t in whole.texts if "×" in t.get_text()] == ["× 8"]
    assert close.get_xlim()[1] < 1e-3 < whole.get_xlim()[1]
    assert {t.get_text() for t in figure.legends[0].get_texts()} >= {
        "2 eigenvalues",
        "8 false ones: constraints counted as motions",
    }
    rgb = imread(io.BytesIO(render_figure(figure)), format="png")[..., :3]
    for colour in ((0x00, 0x72, 0xB2), (0xDA, 0xDC, 0xE0)):
        assert np.isclose(rgb, np.array(colour) / 255, atol=0.01).all(axis=-1).sum() > 50
    assert render_figure(eigenvalue_figure(true, naive)) == render_figure(eigenvalue_figure(true, naive))
