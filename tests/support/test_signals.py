"""Numbers as they are given."""

from __future__ import annotations

import pytest

from fmilin.errors import UsageError
from fmilin.signals import as_numbers


@pytest.mark.parametrize("given", ["0.1", None, [1.0, None], 1j, ["a"], {}])
def test_what_is_no_number_is_refused_by_name(given: object) -> None:
    with pytest.raises(UsageError, match=r"The delay is .*: a number is needed"):
        as_numbers(given, "The delay")
