"""LQG designs on nonlinear models: ``python -m benchmarks.lqg_models``.

Each regulator of one call runs on its nonlinear model, disturbed from the operating point. Its margins at every wire
are searched by brute force, from the closed loop's eigenvalues alone: gains and phases by a scan outward from the loop
as designed and bisection of the first that is unstable, delays by one sample after another in the wire.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import bisect

import fmilin as fl
from fmilin import systems
from fmilin.design.lqg import LqgDesign
from fmilin.linear_model.model import LinearModel
from fmilin.models import OdeModel
from fmilin.signals import FloatArray

MAX_GAIN = 1e3
MAX_SAMPLES = 60
SCAN_COUNT = 400
DEGREES = 180.0


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


def is_stable(L: LinearModel, factor: complex, samples: int = 0) -> bool:
    """Whether the loop closes stably with a factor and a delay of whole samples in its wire."""
    A, B, C, D = L.A, L.B, L.C, L.D
    if samples:
        states, inputs = B.shape
        size = inputs * samples
        shift = np.eye(size, k=-inputs)
        late = np.zeros((size, inputs))
        late[:inputs] = np.eye(inputs)
        last = np.eye(inputs, size, k=size - inputs)
        A = np.block([[A, B @ last], [np.zeros((size, states)), shift]])
        B = np.vstack([np.zeros((states, inputs)), late])
        C = np.hstack([C, D @ last])
        D = np.zeros_like(D)
    closed = A + factor * B @ np.linalg.inv(np.eye(B.shape[1]) - factor * D) @ C
    return bool(np.abs(np.linalg.eigvals(closed)).max() < 1)


def find_end(L: LinearModel, factor: Callable[[float], complex], values: FloatArray) -> float:
    """Return the first of ascending or descending ``values`` at which the loop is unstable, bisected; NaN for none."""
    for inside, outside in pairwise(values.tolist()):
        if not is_stable(L, factor(outside)):
            return bisect(lambda value: 1.0 if is_stable(L, factor(value)) else -1.0, inside, outside, xtol=1e-13)
    return math.nan


def search_margins(L: LinearModel) -> dict[str, float]:
    """Return both ends of the gain, the phase in degrees and the delay in samples, each by brute force."""
    up = np.geomspace(1.0, MAX_GAIN, SCAN_COUNT)
    turns = np.linspace(0.0, np.pi, SCAN_COUNT)
    samples = next((count for count in range(1, MAX_SAMPLES) if not is_stable(L, 1.0, count)), math.nan)
    phase = find_end(L, lambda turn: np.exp(1j * turn), turns)  # a real loop is unstable for both signs or for none
    return {
        "lowest gain": find_end(L, lambda gain: gain, 1 / up),
        "highest gain": find_end(L, lambda gain: gain, up),
        "phase": math.degrees(phase),
        "samples": samples,
    }


def compare_margins(design: LqgDesign) -> tuple[int, float, int]:
    """Return how many finite margins there are, their largest relative difference, and how many wires disagree."""
    count, difference, disagreements = 0, 0.0, 0
    for item in design.loops.wires.values():
        found = search_margins(item.loop)
        low, high = item.margins.gain
        stated = {
            "lowest gain": low if low > 1 / MAX_GAIN else math.nan,
            "highest gain": high if high < MAX_GAIN else math.nan,
            "phase": item.margins.phase if item.margins.phase < DEGREES else math.nan,
        }
        for name, value in stated.items():
            if math.isnan(value) != math.isnan(found[name]):
                disagreements += 1
            elif not math.isnan(value):
                count += 1
                difference = max(difference, abs(found[name] / value - 1))
        longest = item.margins.delay / item.loop.sample_time  # every shorter delay is stable
        first_unstable = math.floor(longest) + 1 if longest < MAX_SAMPLES - 1 else math.nan
        if not (first_unstable == found["samples"] or (math.isnan(first_unstable) and math.isnan(found["samples"]))):
            disagreements += 1
    return count, difference, disagreements


def main() -> None:
    """Print a row for each model."""
    print("model                  order  stable  decay    finite margins  largest difference  disagreements")
    for case in CASES:
        model, design = design_case(case)
        verification = design.verify(model)
        count, difference, disagreements = compare_margins(design)
        name, order = model.info.name[:22], len(design.linear.states)
        verdict = f"{verification.stable!s:6}  {verification.decay:.1e}"
        print(f"{name:22} {order:5}  {verdict}  {count:14}  {difference:18.1e}  {disagreements:13}", flush=True)


if __name__ == "__main__":
    main()
