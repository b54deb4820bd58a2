"""Rightmost eigenvalues over delays as a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass


@dataclass(frozen=True)
class StabilityChange:
    """Delays at which an eigenvalue, or a conjugate pair, crosses the imaginary axis."""

    delays: Mapping[str, float]  #: all delays of the model in seconds, by name
    frequency: float  #: of the crossing eigenvalue, in rad/s
    unstable_before: int  #: the number of eigenvalues that grow at the point of the sweep before
    unstable_after: int  #: the same at the point after
    #: in a sweep over a grid: the quantities other than delays, by name
    at: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class DelaySweep:
    """Rightmost eigenvalues over delays, of ``lin.sweep_delays``."""

    delays: Mapping[str, FloatArray]  #: in seconds, each of shape (k,)
    #: shape (k, count), in 1/s, sorted by real part; NaN where a system without delay has fewer
    eigenvalues: NDArray[np.complex128]
    errors: FloatArray  #: shape (k, count): how far each eigenvalue may be off, in 1/s
    unstable: NDArray[np.int64]  #: shape (k,): how many eigenvalues grow
    changes: tuple[StabilityChange, ...]  #: where that number changes between two points of the sweep
