"""What was linearized before makes a linearization quicker, never different."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.models.mechanism import Mechanism
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk, slider_crank

DISK = Path(__file__).with_name("rolling_disk.toml")

PLANTS: list[tuple[Callable[[], fl.Model], dict[str, float], dict[str, float]]] = [
    (lambda: Mechanism.from_toml(DISK), {}, {"f.wx": 0.1257, "f.wy": -0.1321, "f.wz": 0.6404}),
    (cartesian_pendulum, {}, {"x": 0.5, "vx": 0.3}),
    (four_bar, {}, {"phi": 0.7, "w": 1.3}),
    (rolling_disk, {}, {"u1": 0.2, "u3": 2.0}),
    (slider_crank, {}, {"phi": 0.6, "w": 2.0}),
]


@pytest.mark.parametrize(("make", "first", "second"), PLANTS)
def test_two_points_in_either_order_have_the_same_bits(
    make: Callable[[], fl.Model], first: dict[str, float], second: dict[str, float]
) -> None:
    found = []
    for order in ((0, 1), (1, 0)):
        model = make()
        points = [fl.operating_point(model, first), fl.operating_point(model, second)]
        linear = {k: fl.linearize(model, points[k]) for k in order}
        found.append([linear[0], linear[1]])
    for one, other in zip(*found, strict=True):
        for name in ("A", "B", "C", "D", "T", "f0"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        for name in "ABCDT":
            assert np.array_equal(getattr(one.errors, name), getattr(other.errors, name))
        assert one.warnings == other.warnings
