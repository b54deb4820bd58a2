"""A four-bar linkage, known as an FMU of ten states, estimated from the encoder at its crank alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from systems import Array, noisy_motion

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar

SAMPLE = 0.01  # s
COUNT = 2 * np.pi / 1000  # rad, of the encoder
TREMBLE = COUNT  # rad, of the shaft in addition to its motion, at the bearing of the encoder
PROCESS, MEASURED = {"torque": 0.05}, {"phi": COUNT**2 / 12 + TREMBLE**2}
START = {"phi": 1e-2, "w": 0.25}  # variances of the first guess, in rad^2 and (rad/s)^2


def make_filter(source: fl.Model, kind: str = "ekf") -> fl.design.Estimator:
    """Return the filter on an FMU or on the equations."""
    return fl.design.estimator(
        source,
        outputs=["phi"],
        process_noise=PROCESS,
        measurement_noise=MEASURED,
        sample_time=SAMPLE,
        kind=kind,
        initial_covariance=START,
    )


def record(samples: int, seed: int) -> tuple[Array, Array, Array]:
    """Return torques (K, 1), counts of the encoder in rad (K, 1), and true states (K, 10)."""
    model, rng = four_bar(), np.random.default_rng(seed)
    first = fl.operating_point(model)
    phi = first.states[model.states.index_of("phi")]
    start = fl.operating_point(model, {"phi": phi + 0.1 * rng.standard_normal(), "w": 0.5 * rng.standard_normal()})
    commands = 2.0 * np.sin(3 * SAMPLE * np.arange(samples))[:, None]
    y, states = noisy_motion(model, start, commands, SAMPLE, (PROCESS, {"phi": TREMBLE**2}), seed + 1)
    return commands, COUNT * np.round(y / COUNT), states


def main(output: Path) -> dict[str, Any]:
    """Estimate three seconds from the FMU, and draw them."""
    u, y, truth = record(300, seed=4)
    path = build_fmu(four_bar(), output / "four_bar.fmu")
    with fl.load(str(path)) as fmu:
        kf = make_filter(fmu)
        result = fl.design.filtered(kf, u, y)
        by_hand = fl.design.filtered(make_filter(four_bar()), u, y)
        result.plot(truth).savefig(output / "four_bar.png", dpi=80)
        h = [np.abs(kf.motion.evaluator.surface(0.0, x, np.zeros(1))[0]).max() for x in result.states[::10]]
    return {
        "states, coordinates": (len(kf.x), len(kf.states)),
        "largest error of a state in the last second": float(np.abs(result.states - truth)[-100:].max()),
        "the FMU's estimates less those of the equations": float(np.abs(result.states - by_hand.states).max()),
        "largest distance from the manifold": float(max(h)),
        "NIS for one output, and its band": result.mean_nis,
    }
