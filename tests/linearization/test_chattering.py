"""Points at which events follow each other without end, and those from which the motion gets there later."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fmilin as fl
from fmilin import OperatingPoint
from tests.simulation.hybrids import Ball, Chatter


@pytest.mark.parametrize("time", [0.0, 1e4])
@pytest.mark.parametrize(("x", "chatters"), [(1.0, False), (0.3, False), (0.0, True)])
def test_chattering_at_the_point_and_not_some_time_later(x: float, chatters: bool, time: float) -> None:
    """x' = -1 above zero and 1 below: from x = 0.3 it chatters after 0.3 s, at the point it is smooth."""
    point = OperatingPoint(time, np.array([x]), np.empty(0))
    if not chatters:
        fl.linearize(Chatter(), point)
        return
    with pytest.raises(fl.NumericalError, match=rf"chatters at the point \(t = {re.escape(f'{time:g}')} s\)"):
        fl.linearize(Chatter(), point)


def test_a_ball_in_the_air_does_not_chatter() -> None:
    np.testing.assert_allclose(fl.linearize(Ball()).A, [[0.0, 1.0], [0.0, 0.0]], atol=1e-9)
