"""Noisy motions of models, as filters expect them: forces held over samples, measurements with noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

import fmilin as fl
from fmilin.signals import FloatArray
from fmilin.simulation import InputTable


def noisy_motion(
    model: fl.Model,
    point: fl.OperatingPoint,
    samples: int,
    sample_time: float,
    process: Mapping[str, float],
    measured: Mapping[str, float],
    *,
    seed: int | np.random.Generator = 0,
    commands: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return inputs without their noise (K, nu), measurements (K, m) and true states (K, N) after each sample."""
    rng = np.random.default_rng(seed)
    u = np.tile(point.inputs, (samples, 1)) if commands is None else commands
    noise = np.zeros_like(u)
    for name, density in process.items():
        if model.inputs.has(name):
            noise[:, model.inputs.index_of(name)] = rng.standard_normal(samples) * np.sqrt(density / sample_time)
    times = point.time + np.repeat(np.arange(samples + 1) * sample_time, 2)[1:-1]
    table = InputTable(times, model.inputs.names, np.repeat(u + noise, 2, axis=0)) if u.shape[1] else None
    view = model.with_interface(None, list(measured))
    truth = fl.simulate(view, point, stop_time=times[-1], step=sample_time, inputs=table)
    grid = last_of_each(truth.times, point.time + np.arange(1, samples + 1) * sample_time)
    y = truth.outputs[grid] + rng.standard_normal((samples, len(measured))) * np.sqrt(list(measured.values()))
    return u, y, truth.states[grid]


def last_of_each(times: FloatArray, wanted: Iterable[float]) -> list[int]:
    """Return the last sample at each time: at a jump of an input there are two."""
    return [int(np.searchsorted(times, t + 1e-9) - 1) for t in wanted]
