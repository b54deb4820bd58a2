"""Which systems stand in the table, at which point."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import fmilin as fl
from fmilin import systems

__all__ = ["CASES", "CONDITION", "linear_model"]


def _away_from_rest(model: fl.Model, **states: float) -> fl.LinearModel:
    return fl.linearize(model, fl.operating_point(model, states))


CASES: Mapping[str, Callable[[], fl.LinearModel]] = {
    "cartesian_pendulum": lambda: fl.linearize(systems.cartesian_pendulum()),
    "four_bar": lambda: fl.linearize(systems.four_bar()),
    "four_bar in motion": lambda: _away_from_rest(systems.four_bar(damping=0.1), phi=0.7, w=1.3),
    "four_bar of 5 loops": lambda: fl.linearize(systems.four_bar(loops=5)),
    "four_bar hanging": lambda: fl.linearize(systems.four_bar(branch="hanging")),
    "four_bar_mechanism": lambda: fl.linearize(systems.four_bar_mechanism()),
    "rolling_disk": lambda: fl.linearize(systems.rolling_disk(speed=1.0)),
    "rolling_disk fast": lambda: fl.linearize(systems.rolling_disk(speed=4.0)),
    "rolling_torus": lambda: fl.linearize(systems.rolling_torus()),
    "skate": lambda: fl.linearize(systems.skate()),
    "bicycle": lambda: fl.linearize(systems.bicycle(speed=4.6)),
    "five_bar": lambda: fl.linearize(systems.five_bar()),
    "five_bar_mechanism": lambda: fl.linearize(systems.five_bar_mechanism()),
    "flexible_double_pendulum": lambda: fl.linearize(systems.flexible_double_pendulum()),
    "flexible_double_pendulum stiffening": lambda: fl.linearize(
        systems.flexible_double_pendulum(elements=3, geometric_stiffening=True)
    ),
    "double_wishbone": lambda: fl.linearize(systems.double_wishbone()),
    "furuta_pendulum": lambda: fl.linearize(systems.furuta_pendulum()),
    "loader": lambda: fl.linearize(systems.loader()),
    "parallel_robot": lambda: fl.linearize(systems.parallel_robot()),
    "slider_crank": lambda: fl.linearize(systems.slider_crank()),
    "stewart_platform": lambda: fl.linearize(systems.stewart_platform()),
}

CONDITION: Mapping[str, float] = {
    "flexible_double_pendulum": 1.2e5,
    "flexible_double_pendulum stiffening": 2.7e4,
}
"""Condition number of the mass matrix on the free velocities, scaled to a diagonal of ones, where it is above 4e3.

The inertias of a beam's long and short waves differ by so much, and rounding in the accelerations grows with it: with
another processor's linear algebra the first of these moves by 4e-12.
"""


def linear_model(name: str) -> fl.LinearModel:
    """Return the linear model of a case, by the general procedure."""
    return CASES[name]()
