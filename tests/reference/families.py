"""Sweeps, paths and what is interpolated between their points.

The table holds some points of each family, and of each the kinds of remarks that are true of it: those of a
linearization, and where it is trimmed of a sweep, of that point alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import cos, sin
from typing import Any

import numpy as np

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.models import FunctionModel, OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import (
    bicycle,
    cartesian_pendulum,
    five_bar,
    four_bar,
    furuta_pendulum,
    loader,
    rolling_disk,
    slider_crank,
)
from tests.families.plants import buckling, oscillator
from tests.shared import shared
from tests.systems.linkages import parallel_robot

__all__ = ["CASES", "SWEEPS", "Sweep"]

Results = Mapping[str, fl.LinearModel]


@dataclass(frozen=True)
class Sweep:
    """A sweep and the numbers of those of its points that the table holds."""

    make: Callable[[], fl.Model]
    vary: Mapping[str, Sequence[float] | FloatArray]
    kept: tuple[int, ...]
    how: Mapping[str, Any] = field(default_factory=dict)

    def points(self) -> Results:
        """Return the linear models of the points by number."""
        family = fl.sweep(self.make(), self.vary, **self.how)
        return {str(k): family.linear_model(k) for k in self.kept}

    def alone(self, linear: fl.LinearModel) -> list[str]:
        """Return the kinds of remarks of a point where it is the only one."""
        model, point = self.make(), linear.point
        if trim := self.how.get("trim"):
            found = dict(point.states) | {name: point.inputs[name] for name in trim.free}
            only = {name: [found.pop(name, self._value(point, name))] for name in self.vary}
            family = fl.sweep(model, only, guess=found, **{k: v for k, v in self.how.items() if k != "zipped"})
            return sorted(w.kind for w in family.linear_model(0).warnings)
        states, inputs = (
            np.array([values[n] for n in signals.names])
            for values, signals in ((point.states, model.states), (point.inputs, model.inputs))
        )
        how = {k: v for k, v in self.how.items() if k in ("coordinates", "derivatives", "outputs")}
        if how.get("coordinates") != "tangent":
            how["independent"] = linear.states.names
        single = fl.linearize(model, fl.OperatingPoint(point.time, states, inputs, dict(point.parameters)), **how)
        return sorted(w.kind for w in single.warnings)

    @staticmethod
    def _value(point: Any, name: str) -> float:
        return float(next(values[name] for values in (point.states, point.inputs, point.parameters) if name in values))


RADIUS = 0.3
"""Of the rear wheel of the benchmark bicycle, in metres."""
ROLLING = ["x", "y", "rear_wheel", "front_wheel", "rear_rate"]
SOFTENING = OdeModel("softening", {"x": "-sin(3*x)*x - x + F"}, inputs=["F"])


def _two_wells() -> OdeModel:
    return OdeModel("two wells", {"x": "F - x^3 + x"}, inputs=["F"], start={"x": -1.2})


def _by_differences() -> FunctionModel:
    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([s[1], u[0] - sin(s[0]) - 0.1 * s[1]])

    return FunctionModel("swing", {"angle": 0.0, "rate": 0.0}, rates, inputs=["u"], analytic=False)


def _written() -> fl.Model:
    return fl.load(shared("reference_swept.fmu", lambda path: build_fmu(four_bar(damping=0.1), path)))


SWEEPS: Mapping[str, Sweep] = {
    "pendulum": Sweep(cartesian_pendulum, {"x": np.linspace(-0.6, 0.6, 9)}, (0, 1, 4, 8)),
    "pendulum, tangent": Sweep(cartesian_pendulum, {"x": np.linspace(0.0, 0.6, 5)}, (0, 4), {"coordinates": "tangent"}),
    "pendulum, its force": Sweep(
        cartesian_pendulum, {"F": np.linspace(0, 4, 5)}, (0, 2, 4), {"trim": fl.TrimRequest()}
    ),
    "pendulum, far out": Sweep(cartesian_pendulum, {"x": [0.0, 0.9, 0.999, 0.999999]}, (0, 1, 2, 3)),
    "four-bar": Sweep(lambda: four_bar(damping=0.1), {"phi": np.linspace(0.6, 2.2, 9)}, (0, 1, 4, 8)),
    "four-bar, moving and still": Sweep(four_bar, {"w": [0.0, 0.5, 1.0], "phi": [0.8, 1.4]}, (0, 1, 3, 5)),
    "four-bar, by differences": Sweep(four_bar, {"phi": [0.8, 1.2, 1.6]}, (0, 2), {"derivatives": "differences"}),
    "four-bar, other coordinates": Sweep(four_bar, {"phi": np.linspace(0.6, 1.2, 5)}, (0, 4), {"independent": ["x0"]}),
    "four-bar, held by its torque": Sweep(
        lambda: four_bar(damping=0.1),
        {"phi": np.linspace(0.6, 2.2, 9)},
        (0, 4, 8),
        {"trim": fl.TrimRequest(free=["torque"])},
    ),
    "four-bar FMU": Sweep(_written, {"phi": [0.6, 0.9, 1.2]}, (0, 1, 2)),
    "slider-crank": Sweep(slider_crank, {"phi": np.linspace(-1.5, -0.5, 9)}, (0, 1, 8)),
    "loader, held": Sweep(
        loader, {"boom.q": [0.2, 0.3, 0.4]}, (0, 2), {"trim": fl.TrimRequest(free=["lift_force", "tilt_force"])}
    ),
    "parallel robot, held": Sweep(
        parallel_robot, {"q1": [3.4, 3.5, 3.6]}, (0, 2), {"trim": fl.TrimRequest(free=["torque1", "torque2"])}
    ),
    "five-bar, its torque": Sweep(five_bar, {"left_torque": [0.0, 1.0, 2.0]}, (0, 2), {"trim": fl.TrimRequest()}),
    "Furuta's pendulum": Sweep(furuta_pendulum, {"pendulum.q": np.linspace(0.0, 0.4, 5)}, (0, 1, 4)),
    "bicycle, rolling": Sweep(
        bicycle, {"rear_rate": -np.linspace(2, 8, 7) / RADIUS}, (0, 1, 6), {"trim": fl.TrimRequest(steady=ROLLING)}
    ),
    "bicycle, leaning": Sweep(
        bicycle, {"lean": np.linspace(0.0, 0.4, 9)}, (0, 1, 8), {"settings": {"rear_rate": -5.0 / RADIUS}}
    ),
    "disk": Sweep(rolling_disk, {"u3": np.linspace(1.0, 4.0, 7)}, (0, 1, 6)),
    "oscillator": Sweep(oscillator, {"k": [1.0, 2.0, 4.0], "d": [0.1, 0.3, 0.5]}, (0, 4, 8)),
    "oscillator, in pairs": Sweep(oscillator, {"k": [1.0, 2.0, 4.0], "d": [0.1, 0.3, 0.5]}, (0, 2), {"zipped": True}),
    "truss": Sweep(buckling, {"F": np.linspace(0.0, 0.5, 6)}, (0, 3, 5), {"trim": fl.TrimRequest()}),
    "two wells": Sweep(_two_wells, {"F": np.linspace(-0.6, 0.3, 7)}, (0, 3, 6), {"trim": fl.TrimRequest()}),
    "swing": Sweep(_by_differences, {"angle": np.linspace(0.0, 1.0, 3)}, (0, 2), {"trim": fl.TrimRequest(free=["u"])}),
    "swing, not held": Sweep(_by_differences, {"angle": np.linspace(0.0, 1.0, 3)}, (0, 2)),
}


def _points(model: fl.Model, name: str, values: Sequence[float] | FloatArray, **held: float) -> list[fl.OperatingPoint]:
    return [fl.operating_point(model, {name: float(v), **held}) for v in values]


def _along(model: fl.Model, points: list[fl.OperatingPoint], kept: Sequence[int], **how: Any) -> Results:
    family = fl.linearize_along(model, points, **how)
    return {str(k): family.linear_model(k) for k in kept}


def _swung(**how: Any) -> Results:
    """Around from hanging: a partition must be switched on the way."""
    model = cartesian_pendulum()
    points = [
        fl.OperatingPoint(0.0, np.array([sin(a), -cos(a), 1.1 * cos(a), 1.1 * sin(a)]), np.zeros(1))
        for a in (0.0, 0.6, 1.2, 1.5, 1.57, 1.8, 2.4)
    ]
    return _along(model, points, (0, 4, 6), **how)


def _simulated() -> Results:
    model = four_bar(damping=0.1)
    start = fl.operating_point(model, {"phi": 0.9, "w": 0.5})
    return _along(model, list(fl.snapshots(model, start, times=[0.0, 0.05, 0.1])), (0,))


def _mechanism(model: fl.Model, name: str, span: tuple[float, float], **how: Any) -> Results:
    return _along(model, _points(model, name, np.linspace(*span, 5)), (0, 1, 4), **how)


def _between(
    make: Callable[[], fl.Model], vary: Mapping[str, Any], at: Mapping[str, float], **how: Any
) -> fl.LinearModel:
    family: fl.LinearFamily = fl.sweep(make(), vary, **how)
    return family.interpolate(at)


CASES: Mapping[str, Callable[[], fl.LinearModel | Results]] = {
    **{f"sweep of {name}": sweep.points for name, sweep in SWEEPS.items()},
    "along the pendulum's circle": _swung,
    "along the pendulum's circle, tangent": lambda: _swung(coordinates="tangent"),
    "along the pendulum's circle, its angle": lambda: _swung(independent=["theta=atan2(x,-y)"]),
    "along a simulation": _simulated,
    "along the slider-crank": lambda: _mechanism(slider_crank(), "phi", (-1.5, -0.5)),
    "along the four-bar, other coordinates": lambda: _mechanism(four_bar(), "phi", (0.6, 1.2), independent=["x0"]),
    "between, one axis": lambda: _between(
        lambda: SOFTENING, {"x": np.linspace(-1, 1, 9)}, {"x": -0.41}, trim=fl.TrimRequest(free=["F"])
    ),
    "between, two axes": lambda: _between(oscillator, {"k": [1.0, 2.0, 4.0], "d": [0.1, 0.5]}, {"k": 2.5, "d": 0.3}),
    "between points of the four-bar": lambda: _between(four_bar, {"phi": np.linspace(0.6, 1.2, 5)}, {"phi": 0.7}),
}
