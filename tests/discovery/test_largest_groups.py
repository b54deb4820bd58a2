"""How many coupled states discovery looks at: the numbers that its message names are those of its functions."""

from __future__ import annotations

import pytest

from fmilin.discovery.function_library import first_library
from fmilin.discovery.states import StateKinds


@pytest.mark.parametrize(("count", "are_angles"), [(64, False), (32, True)])
def test_the_limit_in_the_message_is_the_largest_group_with_products(count: int, are_angles: bool) -> None:
    def count_terms(states: int) -> int:
        none: frozenset[int] = frozenset()
        angles = frozenset(range(states)) if are_angles else none
        kinds = StateKinds(none, none, angles, none, none, none, none, {}, {}, (tuple(range(states)),))
        return len(first_library(range(states), kinds))

    assert count_terms(count) > 2_000
    assert count_terms(count + 1) == 0
