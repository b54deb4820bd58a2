"""Explanations of a failed trim may be left out when they take long; the answer is the same."""

import pytest

from fmilin.points.effort import OutOfTimeError, limit_time, require_time


def test_no_time_left_ends_an_explanation_and_only_that() -> None:
    with pytest.raises(OutOfTimeError), limit_time(0.0):
        while True:
            require_time()
    require_time()


def test_a_limit_inside_another_one_ends_with_its_own_part() -> None:
    with limit_time(1e6):
        with pytest.raises(OutOfTimeError), limit_time(0.0):
            while True:
                require_time()
        require_time()
