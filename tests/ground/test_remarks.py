"""What a result says about itself: kinds that programs ask for, and sentences."""

from __future__ import annotations

import pytest

from fmilin.ground.remarks import Remark, discrete_states_remarks, off_equilibrium


@pytest.mark.parametrize("kind", ["held", "method", "other-method", "fit", "order", "sampling", "repetition"])
def test_how_a_result_was_made_is_information(kind: str) -> None:
    assert Remark(kind, "So it was made.").is_information


@pytest.mark.parametrize("kind", ["way", "detour"])
def test_files_of_older_versions_are_read_alike(kind: str) -> None:
    assert Remark(kind, "So it was made.").is_information


@pytest.mark.parametrize("kind", ["off-equilibrium", "conditioning", "rank", "poor-fit", "sampled", "anything else"])
def test_everything_else_is_a_warning(kind: str) -> None:
    assert not Remark(kind, "Beware.").is_information


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
    said = off_equilibrium("'w' changes at 2 per second")
    assert said.kind == "off-equilibrium"
    assert str(said).startswith("The point is no equilibrium: 'w' changes at 2 per second. f0 keeps the motion;")
    assert str(off_equilibrium("it was moved", "")) == "The point is no equilibrium: it was moved."
