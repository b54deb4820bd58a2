"""What is printed beside a word keeps its distance, however long the word is."""

from __future__ import annotations

import pytest

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.report.terminal import format_fact
from fmilin.support.tables import LabelledFact


def test_a_kalman_filter_is_printed_in_words_apart() -> None:
    linear = fl.linearize(OdeModel("m", {"x": "v", "v": "-x + u"}, inputs=["u"], outputs={"y": "x"}))
    kalman = fl.design.kalman_filter(linear, 0.1, process={"u": 1.0}, measured={"y": 1.0})
    assert repr(kalman).splitlines()[0] == "Kalman filter every 0.1 s, of m"


@pytest.mark.parametrize("word", ["Order", "Twelve chars", "Kalman filter", "A word beyond the column"])
def test_a_word_of_any_length_is_followed_by_a_space(word: str) -> None:
    lines = format_fact(LabelledFact(word, ("one", "two", "three")), 40).plain.splitlines()
    assert lines[0].startswith(f"{word} ")
    assert " one," in lines[0]
    assert max(map(len, lines)) <= max(40, len(word) + 8)
