"""The three plants, and their noisy motions: a force or rate held over each sample, measurements with noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

import fmilin as fl
from fmilin.models import Labels, LagrangeModel, OdeModel, SymbolicConstraint
from fmilin.simulation import InputTable

Array = np.ndarray[Any, np.dtype[np.float64]]


def attitude() -> OdeModel:
    """A body that turns: the quaternion from its axes to the world's, moved by what gyros read less their biases."""
    q = sympy.symbols("q0:4", real=True)
    gyros, biases = sympy.symbols("gx gy gz", real=True), sympy.symbols("bx by bz", real=True)
    w = [g - b for g, b in zip(gyros, biases, strict=True)]
    rates = [
        (-q[1] * w[0] - q[2] * w[1] - q[3] * w[2]) / 2,
        (q[0] * w[0] + q[2] * w[2] - q[3] * w[1]) / 2,
        (q[0] * w[1] + q[3] * w[0] - q[1] * w[2]) / 2,
        (q[0] * w[2] + q[1] * w[1] - q[2] * w[0]) / 2,
    ]
    down = [2 * (q[1] * q[3] - q[0] * q[2]), 2 * (q[2] * q[3] + q[0] * q[1]), 1 - 2 * (q[1] ** 2 + q[2] ** 2)]
    north = [1 - 2 * (q[2] ** 2 + q[3] ** 2), 2 * (q[1] * q[2] - q[0] * q[3]), 2 * (q[1] * q[3] + q[0] * q[2])]
    return OdeModel(
        "attitude",
        dict(zip(q, rates, strict=True)),
        inputs=list(gyros),
        parameters=dict.fromkeys(biases, 0.0),
        outputs={f"down.{a}": e for a, e in zip("xyz", down, strict=True)}
        | {f"north.{a}": e for a, e in zip("xyz", north, strict=True)},
        constraints=[SymbolicConstraint(sum(e**2 for e in q) - 1, name="unit quaternion", level="velocity")],
        start={q[0]: 1.0},
        labels=Labels(units=dict.fromkeys([*gyros, *biases], "rad/s")),
    )


def crane(load: float = 500.0) -> LagrangeModel:
    """A trolley of 200 kg, and a load on a rope of 6 m, in Cartesian coordinates: 6 states, 4 independent."""
    s, x, y, vs, vx, vy, F, wind, m = sympy.symbols("s x y vs vx vy F wind m_load", real=True)
    return LagrangeModel(
        "crane",
        {s: vs, x: vx, y: vy},
        sympy.diag(200.0, m, m),
        [F - 80.0 * vs, wind, -m * 9.81],
        constraints=[SymbolicConstraint(((x - s) ** 2 + y**2 - 36.0) / 2, name="rope length")],
        inputs=[F, wind],
        parameters={m: load},
        start={s: 0.0, x: 0.0, y: -6.0},
        labels=Labels(units={s: "m", x: "m", y: "m", F: "N", wind: "N", m: "kg"}),
    )


def noisy_motion(
    model: fl.Model,
    point: fl.OperatingPoint,
    commands: Array,
    sample_time: float,
    noise: tuple[Mapping[str, float], Mapping[str, float]],
    seed: int,
) -> tuple[Array, Array]:
    """Return measurements (K, m) and true states (K, N) after K samples each; commands (K, nu) are noisy."""
    rng, samples, (process, measured) = np.random.default_rng(seed), len(commands), noise
    added = np.zeros_like(commands)
    for name, density in process.items():
        added[:, model.inputs.index_of(name)] = rng.standard_normal(samples) * np.sqrt(density / sample_time)
    times = np.repeat(np.arange(samples + 1) * sample_time, 2)[1:-1]
    held = InputTable(times, model.inputs.names, np.repeat(commands + added, 2, axis=0))
    view = model.with_interface(None, list(measured))
    truth = fl.simulate(view, point, stop_time=times[-1], step=sample_time, inputs=held, method="RK45")
    last = [int(np.searchsorted(truth.times, k * sample_time + 1e-9)) - 1 for k in range(1, samples + 1)]
    y = truth.outputs[last] + rng.standard_normal((samples, len(measured))) * np.sqrt(list(measured.values()))
    return y, truth.states[last]
