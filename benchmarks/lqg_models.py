"""LQG designs on nonlinear models: ``python -m benchmarks.lqg_models``.

Each regulator of one call runs on its nonlinear model, disturbed from the operating point. Gain margins are confirmed
by brute force: with the gain of the wire at its margin, a closed-loop pole must lie on the unit circle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fmilin as fl
from fmilin import systems
from fmilin.design.lqg import LqgDesign
from fmilin.models import OdeModel

MAX_GAIN = 1e3


def inverted_pendulum() -> OdeModel:
    return OdeModel("inverted", {"p": "w", "w": "9.81*sin(p) + T"}, inputs=["T"], outputs={"y": "p"})


def cart_and_pendulum(sign: int) -> OdeModel:
    """Upright for a ``sign`` of 1, hanging (a crane) for -1."""
    rates = {
        "x": "v",
        "p": "w",
        "v": f"(F + 0.2*sin(p)*(w^2 - {sign}*9.81*cos(p)))/(1 + 0.2*sin(p)^2)",
        "w": f"(-F*cos(p) - 0.2*w^2*sin(p)*cos(p) + {sign}*1.2*9.81*sin(p))/(1 + 0.2*sin(p)^2)",
    }
    name = "cart and pole" if sign > 0 else "crane"
    return OdeModel(name, rates, inputs=["F"], outputs={"x": "x", "p": "p"})


def two_tanks() -> OdeModel:
    rates = {"h1": "q - 0.5*sqrt(h1)", "h2": "0.5*sqrt(h1) - 0.4*sqrt(h2)"}
    start = {"h1": 1.0, "h2": 1.5625, "q": 0.5}
    return OdeModel("tanks", rates, inputs=["q"], outputs={"h2": "h2"}, start=start)


def ball_and_beam() -> OdeModel:
    rates = {
        "r": "v",
        "v": "(5/7)*(r*w^2 - 9.81*sin(a))",
        "a": "w",
        "w": "(T - 9.81*r*cos(a) - 2*r*v*w)/(1 + r^2)",
    }
    return OdeModel("ball and beam", rates, inputs=["T"], outputs={"r": "r", "a": "a"})


@dataclass(frozen=True)
class Case:
    """A model with weights; without any, each coordinate, input and every second measured coordinate weigh the same."""

    make: Callable[[], fl.Model]
    weights: dict[str, Any] = field(default_factory=dict)


SMALL = 1e-6
CASES = (
    Case(inverted_pendulum, {"states": {"p": 10, "w": 1}, "inputs": {"T": 1}, "process": {"T": 0.1},
                             "measured": {"y": SMALL}, "sample_time": 0.01}),
    Case(lambda: cart_and_pendulum(1), {"states": {"x": 1, "p": 10}, "inputs": {"F": 1}, "process": {"F": 0.1},
                                        "measured": {"x": SMALL, "p": SMALL}, "sample_time": 0.01}),
    Case(lambda: cart_and_pendulum(-1), {"states": {"x": 1, "p": 10}, "inputs": {"F": 1}, "process": {"F": 0.1},
                                         "measured": {"x": SMALL, "p": SMALL}, "sample_time": 0.02}),
    Case(two_tanks, {"states": {"h2": 1}, "inputs": {"q": 1}, "process": {"q": 1e-3}, "measured": {"h2": SMALL},
                     "sample_time": 0.1, "track": ["h2"]}),
    Case(ball_and_beam, {"states": {"r": 10, "a": 1}, "inputs": {"T": 0.1}, "process": {"T": 0.1},
                         "measured": {"r": SMALL, "a": SMALL}, "sample_time": 0.01}),
    Case(systems.four_bar, {"states": {"phi": 100, "w": 1}, "inputs": {"torque": 1}, "process": {"torque": 0.1},
                            "measured": {"phi": SMALL}, "sample_time": 0.01}),
    Case(systems.furuta_pendulum, {"states": {"arm.q": 1, "pendulum.q": 10}, "inputs": {"torque": 10},
                                   "process": {"torque": 1e-4}, "measured": {"arm.q": SMALL, "pendulum.q": SMALL},
                                   "sample_time": 0.01}),
    Case(systems.slider_crank),
    Case(systems.five_bar),
    Case(systems.double_wishbone),
    Case(systems.stewart_platform),
)  # fmt: skip


def design_case(case: Case) -> tuple[fl.Model, LqgDesign]:
    """Return the model and its regulator."""
    model = case.make()
    linear = fl.linearize(model, fl.trim(model))
    if case.weights:
        return model, fl.design.lqg(linear, **case.weights)
    count = max(1, len(linear.states) // 2)
    measured = [name for name in model.states.names if linear.states.has(name)][:count]
    model = model.with_interface(None, measured)
    linear = fl.linearize(model, fl.trim(model))
    sizes = dict(zip(linear.inputs.names, linear.inputs.scales().tolist(), strict=True))
    design = fl.design.lqg(
        linear,
        states=dict.fromkeys(linear.states.names, 1.0),
        inputs={name: 1 / size**2 for name, size in sizes.items()},
        process={name: 1e-2 * size**2 for name, size in sizes.items()},
        measured=dict.fromkeys(measured, 1e-8),
        sample_time=0.01,
    )
    return model, design


def check_gain_margins(design: LqgDesign) -> tuple[int, float]:
    """Return how many finite gain margins there are, and how far from the unit circle their poles are at most."""
    distances = [0.0]
    for item in design.loops.wires.values():
        L = item.loop
        for gain in item.margins.gain:
            if 0 < gain < MAX_GAIN:
                closed = L.A + gain * L.B @ np.linalg.inv(np.eye(L.B.shape[1]) - gain * L.D) @ L.C
                distances.append(abs(float(np.abs(np.linalg.eigvals(closed)).max()) - 1))
    return len(distances) - 1, max(distances)


def main() -> None:
    """Print a row for each model."""
    print("model                  order  stable  decay    gain margins  poles off the unit circle")
    for case in CASES:
        model, design = design_case(case)
        verification = design.verify(model)
        count, distance = check_gain_margins(design)
        name, order = model.info.name[:22], len(design.linear.states)
        print(f"{name:22} {order:5}  {verification.stable!s:6}  {verification.decay:.1e}  {count:12}  {distance:.1e}")


if __name__ == "__main__":
    main()
