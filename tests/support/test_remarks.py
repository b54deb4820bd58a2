"""What a result says about itself: kinds that programs ask for, and sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fmilin.adapters import Remark
from fmilin.diagnostics import KINDS, ROWS, discrete_states_remarks, off_equilibrium


@pytest.mark.parametrize("kind", ["held", "method", "other-method", "fit", "order", "sampling", "repetition"])
def test_how_a_result_was_made_is_information(kind: str) -> None:
    assert Remark(kind, "So it was made.").is_information


@pytest.mark.parametrize("kind", ["way", "detour"])
def test_files_of_older_versions_are_read_alike(kind: str) -> None:
    assert Remark(kind, "So it was made.").is_information


@pytest.mark.parametrize("kind", ["off-equilibrium", "conditioning", "rank", "poor-fit", "sampled"])
def test_everything_else_is_a_warning(kind: str) -> None:
    assert not Remark(kind, "Beware.").is_information


@pytest.mark.parametrize(
    ("kind", "of_the_model"), [("model", True), ("held", True), ("rank", False), ("accuracy", False)]
)
def test_what_is_true_of_the_model_is_true_of_every_point(kind: str, of_the_model: bool) -> None:
    assert Remark(kind, "It is so.").speaks_of_the_model is of_the_model


def test_a_kind_is_one_of_the_table() -> None:
    with pytest.raises(ValueError, match="'anything else' is not a kind of diagnostic"):
        Remark("anything else", "Beware.")


def test_a_file_may_hold_a_kind_of_a_later_version() -> None:
    remark = Remark("of tomorrow", "Beware.", is_read=True)
    assert (remark.kind, remark.is_information, remark.speaks_of_the_model) == ("of tomorrow", False, False)
    assert replace(Remark("rank", "It is doubtful."), message="So.") == Remark("rank", "So.", is_read=True)


def test_every_row_of_the_table_says_what_it_means_and_what_to_do() -> None:
    assert len({kind.name for kind in ROWS}) == len(ROWS) == len(KINDS)
    for name, kind in KINDS.items():
        assert name == kind.name
        assert kind.meaning.endswith(".")
        assert kind.advice.endswith(".")


def test_as_text_it_is_its_message() -> None:
    assert str(Remark("rank", "It is doubtful.")) == "It is doubtful."


def test_discrete_states_are_listed_up_to_a_dozen() -> None:
    assert discrete_states_remarks({}) == []
    (few,) = discrete_states_remarks({"gear": "3", "on": "true"})
    assert (few.kind, few.is_information) == ("held", True)
    assert str(few).endswith(": gear = 3, on = true.")
    (many,) = discrete_states_remarks({f"d{i}": str(i) for i in range(15)})
    assert "d11 = 11 and 3 more." in str(many)
    assert "d12" not in str(many)


def test_a_point_that_is_no_equilibrium() -> None:
    remark = off_equilibrium("'w' changes at 2 per second")
    assert remark.kind == "off-equilibrium"
    assert str(remark).startswith("The point is not an equilibrium: 'w' changes at 2 per second. f0 keeps the motion;")
    assert str(off_equilibrium("it was moved", "")) == "The point is not an equilibrium: it was moved."
