"""Explanations of a failed trim may be left out when they take long; the answer is the same."""

import pytest

from fmilin.trimming.equilibrium_equations import OutOfTimeError, limit_time, require_time


def test_a_limit_ends_what_is_inside_and_nothing_after_it() -> None:
    with limit_time(1e6):
        require_time()
        with limit_time(-1.0), pytest.raises(OutOfTimeError):
            require_time()
        require_time()
    require_time()
