"""What a co-simulation FMU says about steps and sampling: a step that suits it, clocks, discrete-time numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fmilin.fmi.read.description import Description
from fmilin.fmi.read.elements import shortened
from fmilin.model.stepping import Cadence

__all__ = ["cadence_of"]

_PARTS = 500
"""Steps per default experiment, where the FMU suggests no step."""


def cadence_of(description: Description) -> Cadence:
    """Return what the description says; None where it says nothing.

    FMI 2.0.4 sections 2.2.6 and 4.3.1; FMI 3.0.1 sections 2.4.4, 2.4.6 and 4.2.
    """
    capabilities = description.capabilities
    internal = _positive(capabilities, "fixedInternalStepSize")
    suggested = _positive(description.experiment, "stepSize") or internal or _part(description.experiment)
    variables = list(description.looked_through())
    clocks = [v for v in variables if v.type == "Clock"]
    discrete = [v for v in variables if v.is_float and v.variability == "discrete" and not v.is_parameter]
    sampled = []
    if clocks:
        sampled.append(f"It has {len(clocks)} clock(s): {shortened(v.name for v in clocks)}.")
    waiting = [v.name for v in clocks if v.causality == "input" and not v.interval]
    if waiting:
        sampled.append(f"Nothing triggers {shortened(waiting)} here: what it samples stays as it is.")
    if discrete:
        sampled.append(f"It has discrete-time numbers: {shortened(v.name for v in discrete)}.")
    periods = sorted({v.interval for v in clocks if v.interval and v.interval > 0})
    return Cadence(suggested, base_period(periods), internal, tuple(sampled))


def base_period(periods: list[float]) -> float | None:
    """Return the least common multiple of periods, in seconds; None when there is none below 1000 of the largest.

    >>> base_period([0.02, 0.03])
    0.06
    """
    if not periods:
        return None
    for k in range(1, 1001):
        candidate = k * max(periods)
        if all(abs(candidate / p - round(candidate / p)) < 1e-9 * k for p in periods):
            return float(f"{candidate:.12g}")
    return None


def _positive(attributes: Mapping[str, str], name: str) -> float | None:
    try:
        value = float(attributes.get(name) or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _part(experiment: Mapping[str, str]) -> float | None:
    stop = _positive(experiment, "stopTime")
    start = _positive(experiment, "startTime") or 0.0
    return (stop - start) / _PARTS if stop is not None and stop > start else None
