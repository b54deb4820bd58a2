"""A wheel loader with any load in any configuration: the worst of many samples under one regulator, found and verified.

``python run.py`` writes worst_case.png into the current folder, or into ``--output FOLDER``. ``--samples 10000000``
takes about ten minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import control
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

import fmilin as fl
from fmilin.signals import FloatArray
from fmilin.systems import loader

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for the picture; here by default")
parser.add_argument("--samples", type=int, default=10_000, metavar="N", help="number of samples; 10000 by default")
arguments = parser.parse_args()
if arguments.samples < 1:
    parser.error("--samples must be a positive number of samples.")
arguments.output.mkdir(parents=True, exist_ok=True)

CYLINDERS = ["lift.q", "tilt.q", "lift.v", "tilt.v"]
ANGLES = ("boom.q", "bucket.q")
CONFIGURATIONS = np.meshgrid(np.linspace(-0.6, 0.5, 25), np.linspace(-0.6, 0.8, 25), indexing="ij")  # rad
# Uncertain values, lowest and highest: the bucket with its load, the oil's friction, the lag of the valves.
RANGES = {
    "bucket.mass": (1350.0, 4850.0),  # kg
    "lift.damping": (2e3, 2e4),  # N.s/m
    "tilt.damping": (2e3, 2e4),
    "lag": (0.01, 0.04),  # s
}
LOW, HIGH = np.array(list(RANGES.values())).T
PLANT = list(RANGES)[:3]  # parameters of the loader
BLOCK = 20_000  # samples with states in memory
ROUNDS, AROUND = 8, 500  # of samples around the worst one so far

model = loader()
linearize = fl.batch(model, fl.operating_point(model, {"boom.q": 0.0}), vary=PLANT, independent=CYLINDERS)
configurations = linearize.at({name: angles.ravel() for name, angles in zip(ANGLES, CONFIGURATIONS, strict=True)})


def find_plants(states: FloatArray, samples: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return A (k, 4, 4), B (k, 4, 2) and forces (k, 2) of loaders that are held in configurations (k, 16)."""
    parameters = dict(zip(PLANT, samples.T, strict=False))
    free = linearize(states, parameters=parameters)
    # Accelerations are linear in the forces.
    forces = np.asarray(np.linalg.solve(free.B[:, 2:], -free.f0[:, 2:, None])[..., 0], dtype=np.float64)
    held = linearize(states, forces, parameters=parameters)
    if not held.ok.all():
        raise RuntimeError(f"{(~held.ok).sum()} samples have no linear model: {held.reasons[~held.ok][0]}")
    return held.A, held.B, forces


def find_eigenvalues(A: FloatArray, B: FloatArray, K: FloatArray, lag: FloatArray) -> NDArray[np.complex128]:
    """Return the eigenvalues (k, 6) of loops in which valves follow -K y with a lag (k,)."""
    loop = np.zeros((len(A), 6, 6))
    loop[:, :4, :4], loop[:, :4, 4:] = A, B
    loop[:, 4:, :4] = -K / lag[:, None, None]
    loop[:, 4:, 4:] = -np.eye(2) / lag[:, None, None]
    return np.asarray(np.linalg.eigvals(loop), dtype=np.complex128)


def make_gain(rate: float) -> FloatArray:
    """Return the LQR of half the load in the middle, the faster the higher its rate in 1/s."""
    force = 7000.0 * rate**2  # N for a metre, about
    return np.asarray(control.lqr(*nominal, np.diag([1.0, 1.0, 0.0, 0.0]), np.eye(2) / force**2)[0])


def draw(count: int) -> tuple[NDArray[np.intp], FloatArray]:
    """Return numbers of configurations (k,) and samples (k, 4) of what is uncertain."""
    return generator.integers(len(configurations.x0), size=count), generator.uniform(LOW, HIGH, (count, len(LOW)))


middle = (LOW + HIGH)[None] / 2
A, B, _ = find_plants(configurations.x0[[len(configurations.x0) // 2]], middle)
nominal = A[0], B[0]
generator = np.random.default_rng(53)

# How fast may the regulator be? A slow one lets heavy loads fall, a fast one does not bear the lag of the valves.
which, samples = draw(2000)
A, B, _ = find_plants(configurations.x0[which], samples)
rates = np.linspace(4.0, 30.0, 27)
growths = np.array([find_eigenvalues(A, B, make_gain(rate), samples[:, 3]).real.max(axis=1) for rate in rates])
best = int(growths.max(axis=1).argmin())
K = make_gain(rates[best])
for number in (0, best, -1):
    print(f"rate {rates[number]:.0f} 1/s: {(growths[number] > 0).sum()} of 2000 samples unstable")

# All samples under the best regulator.
worst_in_place = np.full(len(configurations.x0), -np.inf)
largest, worst = -np.inf, np.concatenate(([0.0, 0.0], middle[0]))  # angles, then what is uncertain
cloud = np.empty((0, 6), dtype=complex)
for first in range(0, arguments.samples, BLOCK):
    which, samples = draw(min(BLOCK, arguments.samples - first))
    A, B, _ = find_plants(configurations.x0[which], samples)
    eigenvalues = find_eigenvalues(A, B, K, samples[:, 3])
    growth = eigenvalues.real.max(axis=1)
    np.maximum.at(worst_in_place, which, growth)
    k = int(growth.argmax())
    if growth[k] > largest:
        angles = [configurations.x0[which[k], model.states.names.index(name)] for name in ANGLES]
        largest, worst = growth[k], np.concatenate((angles, samples[k]))
    cloud = cloud if len(cloud) else eigenvalues[:3000]
print(f"worst of {arguments.samples} samples: growth rate {largest:.3f} 1/s")

# Around the worst one: each round in half the box of the last.
low, high = (np.concatenate(([grid.flat[i] for grid in CONFIGURATIONS], end)) for i, end in ((0, LOW), (-1, HIGH)))
for round_number in range(ROUNDS):
    box = (high - low) / 2 ** (round_number + 2)
    near = np.clip(worst + generator.uniform(-box, box, (AROUND, len(box))), low, high)
    near[0] = worst
    states = linearize.at(dict(zip(ANGLES, near[:, :2].T, strict=True))).x0
    A, B, forces = find_plants(states, near[:, 2:])
    eigenvalues = find_eigenvalues(A, B, K, near[:, 5])
    k = int(eigenvalues.real.max(axis=1).argmax())
    worst, worst_eigenvalues, worst_forces, worst_matrix = near[k], eigenvalues[k], forces[k], A[k]
print(f"worst around it: {worst_eigenvalues.real.max():.3f} 1/s")
for name, value in zip((*ANGLES, *RANGES), worst, strict=True):
    print(f"    {name} = {value:.4g}")

# The worst one again: one model, linearized alone and verified on its nonlinear equations.
heavy = model.with_parameters(dict(zip(PLANT, worst[2:5].tolist(), strict=True)))
held = dict(zip((*ANGLES, *model.inputs.names), (*worst[:2].tolist(), *worst_forces.tolist()), strict=True))
linear = fl.linearize(heavy, fl.operating_point(heavy, held), independent=CYLINDERS)
print(f"alone: A differs by {np.abs(linear.A - worst_matrix).max() / np.abs(linear.A).max():.1e} of its largest entry")
print(fl.verify(heavy, linear))

figure = Figure(figsize=(13, 4), layout="constrained")
FigureCanvasAgg(figure)
speed, workspace, plane = figure.subplots(1, 3)
speed.plot(rates, growths.max(axis=1), "k-", label="worst of 2000 samples")
speed.plot(rates, np.median(growths, axis=1), "k:", label="median")
speed.axhline(0.0, color="0.6", linewidth=0.8)
speed.plot(rates[best], growths[best].max(), "o", color="C3", label="chosen")
speed.set(title="How fast the regulator may be", xlabel="rate of the regulator / (1/s)", ylabel="growth rate / (1/s)")
speed.legend()
shape = CONFIGURATIONS[0].shape
mesh = workspace.pcolormesh(*CONFIGURATIONS, worst_in_place.reshape(shape), cmap="viridis", shading="nearest")
workspace.plot(*worst[:2], "x", color="C3", markersize=10, markeredgewidth=2, label="worst case")
workspace.set(title="Worst growth rate in each configuration", xlabel="boom.q / rad", ylabel="bucket.q / rad")
workspace.legend(loc="upper left")
figure.colorbar(mesh, ax=workspace, label="growth rate / (1/s)")
plane.plot(cloud.real.ravel(), cloud.imag.ravel(), ".", color="0.6", markersize=1, label="samples")
plane.plot(worst_eigenvalues.real, worst_eigenvalues.imag, "x", color="C3", markeredgewidth=2, label="worst case")
plane.axvline(0.0, color="k", linewidth=0.8)
plane.set(
    title="Eigenvalues of the loop", xlabel="real part / (1/s)", ylabel="imaginary part / (rad/s)", xlim=(-60.0, 5.0)
)
plane.legend(loc="upper left")
figure.savefig(arguments.output / "worst_case.png", dpi=110)
