"""The systems of :mod:`fmilin.systems`: as they start, moved, and trimmed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import fmilin as fl
from fmilin import systems
from tests.systems import linkages
from tests.systems.skate_model import skate
from tests.systems.torus import rolling_torus

__all__ = ["CASES"]


def moved(model: fl.Model, **values: float) -> fl.LinearModel:
    """Return the linear model where these states and inputs are held."""
    return fl.linearize(model, fl.operating_point(model, {name.replace("__", "."): v for name, v in values.items()}))


CASES: Mapping[str, Callable[[], fl.LinearModel]] = {
    "cartesian_pendulum": lambda: fl.linearize(systems.cartesian_pendulum()),
    "cartesian_pendulum in motion": lambda: fl.linearize(systems.cartesian_pendulum(angle=0.6, rate=1.2)),
    "four_bar": lambda: fl.linearize(systems.four_bar()),
    "four_bar in motion": lambda: moved(systems.four_bar(damping=0.1), phi=0.7, w=1.3),
    "four_bar of 5 loops": lambda: fl.linearize(systems.four_bar(loops=5)),
    "four_bar of 5 loops in motion": lambda: moved(systems.four_bar(loops=5, damping=0.1), phi=2.0, w=0.4),
    "four_bar hanging": lambda: fl.linearize(systems.four_bar(branch="hanging")),
    "four_bar_mechanism": lambda: fl.linearize(linkages.four_bar_mechanism()),
    "four_bar_mechanism in motion": lambda: moved(linkages.four_bar_mechanism(damping=0.1), phi=0.7, w=1.3),
    "four_bar_mechanism of 3 loops": lambda: fl.linearize(linkages.four_bar_mechanism(loops=3)),
    "rolling_disk": lambda: fl.linearize(systems.rolling_disk(speed=1.0)),
    "rolling_disk fast": lambda: fl.linearize(systems.rolling_disk(speed=4.0)),
    "rolling_disk leaning": lambda: moved(systems.rolling_disk(speed=2.0), q2=0.3),
    "rolling_torus": lambda: fl.linearize(rolling_torus()),
    "skate": lambda: fl.linearize(skate()),
    "bicycle": lambda: fl.linearize(systems.bicycle(speed=4.6)),
    "bicycle slow": lambda: fl.linearize(systems.bicycle(speed=2.0)),
    "bicycle leaning": lambda: moved(systems.bicycle(speed=4.6), lean=0.2, steer=0.1),
    "five_bar": lambda: fl.linearize(systems.five_bar()),
    "five_bar trimmed": lambda: _trimmed(systems.five_bar()),
    "five_bar_mechanism": lambda: fl.linearize(linkages.five_bar_mechanism()),
    "flexible_double_pendulum": lambda: fl.linearize(systems.flexible_double_pendulum()),
    "flexible_double_pendulum stiffening": lambda: fl.linearize(
        systems.flexible_double_pendulum(elements=3, geometric_stiffening=True)
    ),
    "double_wishbone": lambda: fl.linearize(systems.double_wishbone()),
    "furuta_pendulum": lambda: fl.linearize(systems.furuta_pendulum()),
    "furuta_pendulum hanging": lambda: fl.linearize(systems.furuta_pendulum(hanging=True)),
    "loader": lambda: fl.linearize(systems.loader()),
    "loader at rest": lambda: fl.linearize(systems.loader(at_rest=True)),
    "parallel_robot": lambda: fl.linearize(linkages.parallel_robot()),
    "parallel_robot moved": lambda: fl.linearize(linkages.parallel_robot(crank=3.2, arm=1.0)),
    "slider_crank": lambda: fl.linearize(systems.slider_crank()),
    "slider_crank turned": lambda: fl.linearize(systems.slider_crank(angle=-1.0)),
    "slider_crank trimmed": lambda: _trimmed(systems.slider_crank(angle=-1.2)),
    "stewart_platform": lambda: fl.linearize(systems.stewart_platform()),
}


def _trimmed(model: fl.Model) -> fl.LinearModel:
    return fl.linearize(model, fl.trim(model))
