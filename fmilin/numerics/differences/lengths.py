"""Variables of a size far beyond the length over which the model is smooth: a bond at 1e4 m, a diode at 800 V.

Steps are parts of a variable's size. Where values over such steps grow as no power of the step does (exponentials), or
there are none (the argument of a logarithm), what is measured over them says nothing of the point. The sweep of steps
shows from where on the growth is that of a power: that length is then the variable's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.numerics.differences.directional import Surroundings, direction_of
from fmilin.numerics.differences.noise import are_numbers, finite_values
from fmilin.numerics.differences.richardson import Column, Setting
from fmilin.numerics.differences.sweep import RATIO, StepSweep, step_sweep

SUSPECT = 4.0  # power of the step, growth beyond which asks for a sweep
STEEP = 8.0  # the same that no polynomial of use has
BEYOND_DOMAIN = 2.0**-10  # part of a size beyond which values are missing by chance, and below which by the size
FAR = 2.0**-3  # in the new sizes, as far as the point's surroundings were looked at in the old ones


def natural_lengths(setting: Setting, columns: Sequence[Column], around: Surroundings) -> FloatArray | None:
    """Return smaller sizes (k,) where some are too large for the model, from the sweeps; None where all will do."""
    if not _grows_beyond_powers(setting, columns, around):
        return None
    lengths = setting.scales.copy()
    with np.errstate(all="ignore"):
        for j, scale in enumerate(setting.scales.tolist()):
            sweep = step_sweep(partial(setting.line, j), setting.base, scale, float(around.values[j]))
            if sweep is not None:
                lengths[j] = min(scale, _length(sweep, setting.noise))
    return lengths if (lengths < setting.scales).any() else None


def within(around: Surroundings, lengths: FloatArray) -> Surroundings:
    """Return the surroundings at those sizes."""
    d, far = direction_of(lengths), {}
    for step in (FAR, -FAR):
        if (value := finite_values(around.function, step * d)) is not None:
            far[step] = value[0]
    return replace(around, far=far)


def _grows_beyond_powers(setting: Setting, columns: Sequence[Column], around: Surroundings) -> bool:
    parts = np.array([column.h for column in columns]) / setting.scales
    if parts.min() < BEYOND_DOMAIN * parts.max() or not all(are_numbers(values) for values in around.far.values()):
        return True
    near = np.array([np.abs(c.D - c.curvature) * c.h + np.abs(c.S1) / 2 for c in columns])
    twice = np.array([np.abs(c.D - 4 * c.curvature) * 2 * c.h + np.abs(c.S2) / 2 for c in columns])
    told = near > 100 * setting.noise
    if np.any(told & (twice > 2**SUSPECT * near)):
        return True
    limits = {s: (abs(s) / parts.max()) ** SUSPECT * near.sum(axis=0) for s in around.far}
    grown = [np.abs(values - setting.base) > limits[s] for s, values in around.far.items()]
    return bool(np.any(told.any(axis=0) & np.array(grown).any(axis=0)))


def _length(sweep: StepSweep, noise: FloatArray) -> float:
    """Return the largest step below which values grow as powers do; the largest with values where that is tiny."""
    moved = np.maximum(np.abs(sweep.ahead - sweep.base), np.abs(sweep.behind - sweep.base))
    steep = moved[:-1] > RATIO**STEEP * np.maximum(moved[1:], noise)
    # A jump or the end of a deadzone is steep once; farther away values go on growing, and past a pole they fall.
    goes_on = steep[:-1] | (moved[:-2] < moved[1:-1] / RATIO)
    if len(beyond := np.flatnonzero((steep[1:] & goes_on).any(axis=1))):
        return float(sweep.h[beyond[-1] + 2])
    return float(sweep.h[0]) if sweep.h[0] < BEYOND_DOMAIN * sweep.scale else np.inf
