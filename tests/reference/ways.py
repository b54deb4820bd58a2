"""What can be asked of the procedure: coordinates, derivatives, formulations, singular configurations, large models."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import fmilin as fl
from fmilin import systems
from tests.general_way import hide_procedure

__all__ = ["CASES"]

Results = Mapping[str, fl.LinearModel]


def _coordinates_and_derivatives(make: Callable[[], fl.Model]) -> Results:
    return {
        f"{coordinates}, {derivatives}": fl.linearize(make(), coordinates=coordinates, derivatives=derivatives)
        for coordinates, derivatives in [
            ("partition", "exact"),
            ("partition", "differences"),
            ("tangent", "auto"),
            ("tangent", "differences"),
        ]
    }


def _at_singularity(model: fl.Model) -> fl.LinearModel:
    at_start = fl.OperatingPoint(0.0, model.start.states, model.start.inputs)
    return fl.linearize(model, at_start, at_singularity=True)


def _formulations(make: Callable[[], fl.Model]) -> Results:
    return {f: fl.linearize(make(), formulation=f, descriptor=f != "ucs") for f in ("mcs", "rcs", "ucs")}


def _by_differences_to_one_side(model: fl.Model) -> Results:
    point = fl.operating_point(model, {"x": 0.4, "vx": 0.3})
    return {side: fl.linearize(model, point, one_sided=side) for side in ("left", "right")}


def _named(model: fl.Model) -> fl.LinearModel:
    point = fl.operating_point(model, {"x0": 0.3, "w": 0.8})
    return fl.linearize(model, point, independent=["x0"], outputs=["phi", "der(w)", "lambda[1]"], inputs=["torque"])


def _angle(model: fl.Model) -> fl.LinearModel:
    return fl.linearize(model, fl.operating_point(model, {"x": 0.4}), independent=["theta=atan2(x,-y)"])


def _large(loops: int) -> Results:
    model = systems.four_bar(loops=loops, damping=0.3)
    moving = fl.operating_point(model, {"phi": 2.0, "w": 0.4})
    return {
        "at rest": fl.linearize(systems.four_bar(loops=loops)),
        "in motion": fl.linearize(model, moving, outputs=["phi", "coupler.y", "der(w)", "lambda[3]"]),
    }


CASES: Mapping[str, Callable[[], fl.LinearModel | Results]] = {
    "ways of the pendulum": lambda: _coordinates_and_derivatives(
        lambda: systems.cartesian_pendulum(angle=0.6, rate=1.2)
    ),
    "ways of the four-bar": lambda: _coordinates_and_derivatives(lambda: systems.four_bar(damping=0.1)),
    "ways of the disk": lambda: _coordinates_and_derivatives(lambda: systems.rolling_disk(speed=2.0)),
    "ways of the slider-crank": lambda: _coordinates_and_derivatives(systems.slider_crank),
    "one side": lambda: _by_differences_to_one_side(systems.cartesian_pendulum()),
    "named coordinates and outputs": lambda: _named(systems.four_bar(damping=0.1)),
    "an angle of one's own": lambda: _angle(systems.cartesian_pendulum()),
    "at a singularity": lambda: _at_singularity(systems.four_bar(singular=True)),
    "at a singularity of 3 loops": lambda: _at_singularity(systems.four_bar(loops=3, singular=True)),
    "compared with differences": lambda: {
        "four-bar": fl.linearize(hide_procedure(systems.four_bar(damping=0.1))),
        "slider-crank": fl.linearize(hide_procedure(systems.slider_crank(angle=-1.0))),
        "disk": fl.linearize(hide_procedure(systems.rolling_disk(speed=2.0))),
    },
    "formulations of the four-bar": lambda: _formulations(systems.four_bar),
    "formulations of the five-bar": lambda: _formulations(systems.five_bar),
    "descriptor": lambda: fl.linearize(systems.four_bar(damping=0.1), descriptor=True),
    "large four-bar": lambda: _large(70),
}
