"""A drone's attitude with the biases of its gyros, on the quaternion's sphere, through a flip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from systems import Array, attitude, noisy_motion

import fmilin as fl

SAMPLE, SLOW = 0.01, 10  # s; the compass answers at every tenth sample
DENSITY = 1e-5  # (rad/s)^2 s, of each gyro
BIASES = np.array([0.03, -0.02, 0.05])  # rad/s
MEASURED = {f"down.{a}": 4e-4 for a in "xyz"} | {f"north.{a}": 1e-3 for a in "xyz"}
AUGMENT = ["bx", "by", "bz"]


def turning(samples: int) -> Array:
    """Return the angular rates (K, 3): it sways, and flips over between 4 and 5 s."""
    t = SAMPLE * np.arange(samples)
    flip = np.where((t > 4) & (t < 5), 2 * np.pi * (1 - np.cos(2 * np.pi * (t - 4))), 0.0)
    return np.column_stack((0.8 * np.sin(1.3 * t) + flip, 0.6 * np.cos(0.9 * t), 0.5 * np.sin(0.4 * t)))


def make_filter(kind: str = "ekf") -> fl.design.Estimator:
    """Return the filter: it does not know where north is, and takes the gyros for unbiased."""
    model = attitude()
    return fl.design.estimator(
        model,
        outputs=list(MEASURED),
        augment=AUGMENT,
        process_noise=dict.fromkeys(model.inputs.names, DENSITY) | dict.fromkeys(AUGMENT, 1e-9),
        measurement_noise=MEASURED,
        sample_time=SAMPLE,
        kind=kind,
        initial_covariance={"q1": 0.0025, "q2": 0.0025, "q3": 0.0025} | dict.fromkeys(AUGMENT, 2.5e-3),
    )


def record(samples: int, seed: int, biases: Array = BIASES) -> tuple[Array, Array, Array]:
    """Return what the gyros read (K, 3), measurements (K, 6), and true states with biases (K, 7)."""
    model, rng = attitude(), np.random.default_rng(seed)
    turn = rng.standard_normal(3) * 0.05
    q = np.array([np.sqrt(1 - turn @ turn), *turn])
    start = fl.OperatingPoint(0.0, q, np.zeros(3))
    rates = turning(samples)
    y, states = noisy_motion(
        model, start, rates, SAMPLE, (dict.fromkeys(model.inputs.names, DENSITY), MEASURED), seed + 1
    )
    y[np.arange(samples) % SLOW != 0, 3:] = np.nan
    return rates + biases, y, np.column_stack((states, np.tile(biases, (samples, 1))))


def main(output: Path) -> dict[str, Any]:
    """Filter ten seconds of flight, and draw them."""
    u, y, truth = record(1000, seed=1)
    kf = make_filter()
    result = fl.design.filtered(kf, u, y)
    result.plot(truth).savefig(output / "attitude.png", dpi=80)
    turned = 2 * np.arccos(np.clip(np.abs((result.states[:, :4] * truth[:, :4]).sum(axis=1)), 0, 1))
    return {
        "coordinates of the covariance at the end": ", ".join(kf.states.names),
        "changes of coordinates": kf.motion.switches,
        "attitude error in the last second [deg]": float(np.rad2deg(turned[-100:].max())),
        "largest error of a bias at the end [rad/s]": float(np.abs(result.states[-1, 4:] - BIASES).max()),
        "largest distance from the sphere": float(np.abs((result.states[:, :4] ** 2).sum(axis=1) - 1).max()),
        "NIS for one output, and its band": result.mean_nis,
    }
