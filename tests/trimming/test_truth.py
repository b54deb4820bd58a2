"""Every trim of the table with known answers: none is false, and few are refused in vain."""

from __future__ import annotations

import warnings
from functools import cache

import pytest

from tests.trims import TrimVerdict, judged_trim, trims

IN_VAIN = 3


@cache
def verdicts(group: str) -> tuple[TrimVerdict, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equations at places far away
        return tuple(judged_trim(case) for case in trims() if case.group == group)


GROUPS = sorted({case.group for case in trims()})


def test_there_are_enough_of_them() -> None:
    assert len(trims()) >= 150


@pytest.mark.parametrize("group", GROUPS)
def test_no_answer_is_further_from_the_truth_than_it_says(group: str) -> None:
    assert [f"{v.case.name}: {v.values} +- {v.distance}" for v in verdicts(group) if v.false] == []


def test_few_are_refused_in_vain() -> None:
    refused = [v.case.name for group in GROUPS for v in verdicts(group) if v.in_vain]
    assert len(refused) <= IN_VAIN, refused


def test_what_runs_away_is_named() -> None:
    """Where steps grow or stay, the refusal says so, names the unknown and its last step."""
    by_name = {v.case.name: v.refusal for v in verdicts("none")}
    assert "'x' diverges" in by_name["exp"]
    assert "The last step of 'x' was 1, at" in by_name["exp"]
    assert "'r' diverges" in by_name["repulsion 1/r^2"]
    assert "last step of 'r'" in by_name["repulsion 1/r^2"]


def test_roots_at_which_others_meet_say_so() -> None:
    kinds = {v.case.name: v.kinds for v in verdicts("multiple") if not v.refusal}
    assert "multiple" in kinds["(x-1)^2"]
    assert "multiple" in kinds["x^2-2x+1, rounded"]
    assert "multiple" not in kinds["x^2 - 1e-10 from 1"]
    assert not any("family" in found for found in kinds.values())
