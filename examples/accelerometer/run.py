"""A press with an encoder and an accelerometer that feels the noisy forces at once.

``python run.py`` writes estimates.png and filter.c into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy import linalg, stats

import fmilin as fl
from fmilin.simulation import InputTable

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)

SAMPLE = 0.01  # s
SAMPLES, RUNS = 150, 12
FORCES = {"torque": 1.0**2, "work": 40.0**2}  # variances of noise that is held over a sample, (N m)^2 and N^2
SENSORS = {"crank": 0.02**2, "acceleration": 0.2**2}  # variances of a sample, rad^2 and (m/s2)^2
START = {"crank_pin.q": 0.05**2, "crank_pin.v": 0.5**2}  # variances of the first guess

HERE = Path(__file__).parent
press = fl.load(HERE / "press.toml")
print(", ".join(press.states.names), "from", ", ".join(press.outputs.names))

# ---------------------------------------------------------------------- at rest: what the correlation is worth

# D is not zero: the force that moves the slide is what the accelerometer shows. The noise of a measurement is
# R + D W D', and its covariance with what the sample adds to the states is B W D'.
linear = fl.linearize(press, fl.trim(press))
print("D =", linear.D.round(4).tolist())
right = fl.design.kalman_filter(linear, SAMPLE, process=FORCES, measured=SENSORS, hold_noise=True)

# The same filter with as much noise, taken for independent: its own covariance, and that of its errors in truth.
s, W, R = right.sampled, np.diag(list(FORCES.values())), np.diag(list(SENSORS.values()))
independent = fl.design.kalman_filter(linear, SAMPLE, process=s.B @ W @ s.B.T, measured=R + s.D @ W @ s.D.T)
L = independent.gain
F = (np.eye(2) - L @ s.C) @ s.A
N = s.B - L @ (s.C @ s.B + s.D)
true = linalg.solve_discrete_lyapunov(F, N @ W @ N.T + L @ R @ L.T)
print("standard deviation of the crank's speed at rest [rad/s]")
print(f"  with the correlation                  {np.sqrt(right.covariance[1, 1]):.4f}")
print(f"  without it, as that filter states it  {np.sqrt(independent.covariance[1, 1]):.4f}")
print(f"  without it, in truth                  {np.sqrt(true[1, 1]):.4f}")

# ---------------------------------------------------------------------- turning: filters on the nonlinear model


def make_filter(sensors: list[str]) -> fl.design.Estimator:
    """Return a filter that reads some sensors."""
    return fl.design.estimator(
        press,
        outputs=sensors,
        process_noise=FORCES,
        measurement_noise={name: SENSORS[name] for name in sensors},
        sample_time=SAMPLE,
        initial_covariance=START,
        hold_noise=True,
    )


def record(seed: int) -> tuple[Any, Any, Any]:
    """Return known forces (K, 2), measurements (K, 2) and true states (K, N); the forces are noisy."""
    rng = np.random.default_rng(seed)
    first = {name: press.start[name] + np.sqrt(START[name]) * rng.standard_normal() for name in START}
    t = SAMPLE * np.arange(SAMPLES)
    known = np.column_stack((4.0 * np.ones(SAMPLES), np.where((t > 0.8) & (t < 1.0), -200.0, 0.0)))
    applied = known + rng.standard_normal(known.shape) * np.sqrt(list(FORCES.values()))
    # Inputs jump at each sample. The accelerometer reads just before the jump at the end of its sample.
    times = np.repeat(np.arange(SAMPLES + 1) * SAMPLE, 2)[1:-1]
    held = InputTable(times, press.inputs.names, np.repeat(applied, 2, axis=0))
    motion = fl.simulate(press, fl.operating_point(press, first), stop_time=times[-1], step=SAMPLE, inputs=held)
    last = [int(np.searchsorted(motion.times, k * SAMPLE + 1e-9)) - 1 for k in range(1, SAMPLES + 1)]
    states = motion.states[last]
    view = press.with_interface(None, list(SENSORS))
    exact = [view.evaluate(k * SAMPLE, x, u).outputs for k, (x, u) in enumerate(zip(states, applied, strict=True))]
    return known, np.array(exact) + rng.standard_normal(known.shape) * np.sqrt(list(SENSORS.values())), states


both, encoder = make_filter(list(SENSORS)), make_filter(["crank"])
nees = np.zeros((RUNS, SAMPLES))
nis = np.zeros((RUNS, SAMPLES))
records = [record(run) for run in range(RUNS)]
for run, (known, measured, states) in enumerate(records):
    both.reset()
    for k in range(SAMPLES):
        both.step(known[k], measured[k])
        nees[run, k], nis[run, k] = fl.design.nees(both, states[k]), both.nis
both.save(output / "filter.c")
known, measured, states = records[-1]
felt = fl.design.filtered(both, known, measured)
alone = fl.design.filtered(encoder, known, measured[:, :1])

low, high = (float(stats.chi2.ppf(p, 2 * RUNS)) / RUNS for p in (0.025, 0.975))
inside = {name: float(((v >= low) & (v <= high)).mean()) for name, v in (("NEES", nees.mean(0)), ("NIS", nis.mean(0)))}
total = [float(stats.chi2.ppf(p, 2 * RUNS * SAMPLES)) / (RUNS * SAMPLES) for p in (0.025, 0.975)]
speed = press.states.index_of("crank_pin.v")
print(f"the crank turns by {np.ptp(states[:, press.states.index_of('crank_pin.q')]):.1f} rad")
print(f"mean NIS of all samples {nis.mean():.3f}, its band of 95 % is {total[0]:.3f} to {total[1]:.3f}")
print(f"in their bands of 95 %: NEES at {inside['NEES']:.0%} of the samples, NIS at {inside['NIS']:.0%}")
print(f"error of the speed, root mean square: {np.std(felt.states[:, speed] - states[:, speed]):.3f} rad/s")
print(f"from the encoder alone:               {np.std(alone.states[:, speed] - states[:, speed]):.3f} rad/s")
if not (total[0] < nis.mean() < total[1] and min(inside.values()) > 0.9):
    raise SystemExit("The filter is wrong about how large its errors are.")

# ---------------------------------------------------------------------- the picture

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#8a8f94"  # distinguishable for colour-blind people, and in print

t = SAMPLE * np.arange(1, SAMPLES + 1)
figure = Figure(figsize=(7.0, 6.4), layout="constrained")
FigureCanvasAgg(figure)
motion_axes, error_axes, band_axes = figure.subplots(3, 1, sharex=True, height_ratios=[1, 1.3, 1.2])
motion_axes.plot(t, measured[:, 1], color=GREY, linewidth=0.8)
motion_axes.set_ylabel("accelerometer [m/s\N{SUPERSCRIPT TWO}]")
for filtered, color, label in ((alone, ORANGE, "encoder alone"), (felt, BLUE, "encoder and accelerometer")):
    deviation = filtered.deviations[:, speed]
    error_axes.fill_between(t, -2 * deviation, 2 * deviation, color=color, alpha=0.15, linewidth=0)
    error_axes.plot(t, filtered.states[:, speed] - states[:, speed], color=color, linewidth=1.1, label=label)
error_axes.set_ylabel("error of the speed [rad/s]")
error_axes.set_ylim(-1.6, 1.6)
error_axes.legend(loc="upper right", ncols=2, frameon=False)
band_axes.axhspan(low, high, color=GREY, alpha=0.25, linewidth=0, label="band of 95 %")
band_axes.plot(t, nees.mean(axis=0), color=BLUE, linewidth=1.0, label="NEES")
band_axes.plot(t, nis.mean(axis=0), color=ORANGE, linewidth=1.0, label="NIS")
band_axes.set_ylabel(f"mean of {RUNS} runs")
band_axes.set_xlabel("time [s]")
band_axes.set_xlim(0, t[-1])
band_axes.set_ylim(0, 2.2 * high)
band_axes.legend(loc="upper right", ncols=3, frameon=False)
for axes in (motion_axes, error_axes, band_axes):
    axes.grid(visible=True, color="#dcdfe2")
figure.suptitle("A press: an encoder, and an accelerometer on the slide", x=0.02, ha="left")
figure.savefig(output / "estimates.png", dpi=110)
