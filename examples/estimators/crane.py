"""A crane weighs its load while it moves: state and mass from the trolley's place and the rope's angle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from systems import Array, crane, noisy_motion

import fmilin as fl

SAMPLE = 0.05  # s
PROCESS = {"F": 50.0, "wind": 20.0}  # N^2 s
MEASURED = {"s": 1e-4, "x": 4e-4}  # m^2
START = {"s": 1e-2, "x": 1e-2, "vs": 1e-2, "vx": 1e-2, "m_load": 100.0**2}


def make_filter(kind: str = "ekf", guess: float = 650.0) -> fl.design.Estimator:
    """Return the filter, which takes the load for 650 kg."""
    return fl.design.estimator(
        crane(guess),
        outputs=list(MEASURED),
        augment=["m_load"],
        process_noise=PROCESS,
        measurement_noise=MEASURED,
        sample_time=SAMPLE,
        kind=kind,
        initial_covariance=START,
    )


def record(samples: int, seed: int, load: float = 500.0) -> tuple[Array, Array, Array]:
    """Return forces (K, 2), measurements (K, 2), and true states with the load (K, 7)."""
    model, rng = crane(load), np.random.default_rng(seed)
    sizes = {name: np.sqrt(START[name]) for name in ("s", "x", "vs", "vx")}
    start = fl.operating_point(model, {name: size * rng.standard_normal() for name, size in sizes.items()})
    t = SAMPLE * np.arange(samples)
    force = np.where((t > 2) & (t < 4), 600.0, np.where((t > 10) & (t < 12), -600.0, 0.0))
    commands = np.column_stack((force, np.zeros(samples)))
    y, states = noisy_motion(model, start, commands, SAMPLE, (PROCESS, MEASURED), seed + 1)
    return commands, y, np.column_stack((states, np.full(samples, load)))


def main(output: Path) -> dict[str, Any]:
    """Weigh a load of 500 kg in twenty seconds, and draw them."""
    u, y, truth = record(400, seed=6)
    kf = make_filter()
    result = fl.design.filtered(kf, u, y)
    result.plot(truth).savefig(output / "crane.png", dpi=80)
    kf.save(output / "crane_filter.c")
    return {
        "what it said before the trolley moved": kf.remarks[0].message[:70] + "...",
        "load [kg] and its standard deviation": (float(result.states[-1, -1]), float(result.deviations[-1, -1])),
        "largest distance from the manifold [m2]": float(
            np.abs((result.states[:, 1] - result.states[:, 0]) ** 2 + result.states[:, 2] ** 2 - 36).max()
        ),
        "NIS for one output, and its band": result.mean_nis,
    }
