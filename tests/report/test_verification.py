"""A verification as a table and as a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

import fmilin as fl
from fmilin.systems import cartesian_pendulum


@pytest.fixture(scope="module")
def right() -> fl.Verification:
    model = cartesian_pendulum()
    return fl.linearize(model).verify(model, horizon=2.0)


@pytest.fixture(scope="module")
def wrong() -> fl.Verification:
    return fl.linearize(cartesian_pendulum(gravity=9.0)).verify(cartesian_pendulum(), horizon=1.0)


def test_the_table_says_the_verdict_in_eighty_columns(right: fl.Verification, wrong: fl.Verification) -> None:
    good, bad = right.table(), wrong.table()
    assert "right to first order in all 7 channels" in good
    assert "WRONG in 7 of 7 channels" in bad
    assert "and 1 more" in bad
    assert max(map(len, [*good.splitlines(), *bad.splitlines()])) <= 80


def test_the_picture_draws_the_right_and_the_wrong(
    right: fl.Verification, wrong: fl.Verification, tmp_path: Path
) -> None:
    for found in (right, wrong):
        found.save_picture(tmp_path / "found.png")
        picture = (tmp_path / "found.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 20_000
