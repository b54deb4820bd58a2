"""How far a loop is from instability: gain, phase and delay margins, and the disk margin, which counts both at once.

The disk margin alpha = 1 / max |S - 1/2| (Seiler, Packard and Gahinet: An introduction to disk margins, IEEE Control
Systems 40(5), 2020, with skew 0): the loop stays stable for every factor (2 + d)/(2 - d) with a complex |d| < alpha.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from fmilin.families.family import LinearFamily
from fmilin.ground.errors import UsageError
from fmilin.linear_model.model import LinearModel

ON_THE_BOUNDARY = 1e-10  # distance of a pole, relative to the largest one
UNBOUNDED = 1e-9  # a factor nearer to zero, or its inverse, is rounding of a loop that fades away
GRID = 2000  # frequencies among which the peak is looked for, then refined
WIDER = 1e3  # they reach this much below the slowest and above the fastest pole


@dataclass(frozen=True, slots=True)
class Margins:
    """Margins of a loop that is stable when closed; NaN where there are none, and where it is not."""

    stable: bool  # whether the closed loop is
    gain: tuple[float, float] = (math.nan, math.nan)  # factors that it bears, down and up; 0 and inf without bounds
    gain_frequency: float = math.nan  # of the nearer one, in rad/s
    phase: float = math.nan  # the smallest, in degrees; inf without any
    phase_frequency: float = math.nan  # in rad/s
    delay: float = math.nan  # how much more dead time it bears, in seconds
    disk: float = math.nan  # alpha; of several loops at once, for changes that differ between them: a lower bound
    disk_frequency: float = math.nan  # in rad/s

    @property
    def disk_gain(self) -> tuple[float, float]:
        """Factors that the loop bears along with :attr:`disk_phase`."""
        half = self.disk / 2
        return (1 - half) / (1 + half), (1 + half) / (1 - half) if half < 1 else math.inf

    @property
    def disk_phase(self) -> float:
        """Degrees that the loop bears along with :attr:`disk_gain`."""
        return math.degrees(2 * math.atan(self.disk / 2))

    def __str__(self) -> str:
        if not self.stable:
            return "The closed loop is unstable: it has no margins."
        low, high = self.disk_gain
        single = (
            f"gain {self.gain[0]:.4g} to {self.gain[1]:.4g}{_at(self.gain_frequency)}, phase {self.phase:.4g} deg"
            f"{_at(self.phase_frequency)}, delay {self.delay:.4g} s; "
        )
        return (
            f"Margins of the closed loop, which is stable: {'' if math.isnan(self.phase) else single}disk margin "
            f"{self.disk:.4g}{_at(self.disk_frequency)}: gains {low:.4g} to {high:.4g} and phases within "
            f"{self.disk_phase:.4g} deg at once."
        )


def margins(loop: LinearModel) -> Margins:
    """Return the margins of L from :func:`fmilin.loop_transfer`, whose sign is as wired: the critical point is +1.

    Parameters
    ----------
    loop : LinearModel
        Of one wire; of several, only the disk margin against all changes at once is told, the others are NaN: cut one
        wire after another for those.

    Raises
    ------
    UsageError
        When inputs and outputs are not as many: this is no loop.
    """
    import control

    if len(loop.inputs) != len(loop.outputs) or not len(loop.inputs):
        raise UsageError(
            f"'{loop.model.name}' has {len(loop.inputs)} inputs and {len(loop.outputs)} outputs: margins are those of "
            "a loop, as fl.loop_transfer returns it."
        )
    L = -loop.to_control()  # python-control closes loops with a minus sign
    one = control.ss([], [], [], np.eye(len(loop.inputs)), loop.sample_time)
    closed = control.feedback(one, L)
    if not _is_stable(closed):
        return Margins(stable=False)
    peak, at = _peak(closed - 0.5 * one)
    told = Margins(stable=True) if len(loop.inputs) > 1 else _single(L)
    return replace(told, disk=1.0 / peak, disk_frequency=at)


def family_margins(family: LinearFamily) -> NDArray[Any]:
    """Return the margins of every loop of a family."""
    every = np.full(len(family), None, dtype=object)
    for number, linear in family.good():
        every[number] = margins(linear)
    return every.reshape(family.shape)


def _single(L: Any) -> Margins:
    import control

    with warnings.catch_warnings():  # of loops without crossings
        warnings.simplefilter("ignore")
        gains, phases, _, at, crossings, _ = control.stability_margins(L, returnall=True)
    bounds = (gains > UNBOUNDED) & (gains < 1 / UNBOUNDED)
    gains, at = gains[bounds], at[bounds]
    down, up = max((g for g in gains if g < 1), default=0.0), min((g for g in gains if g > 1), default=math.inf)
    nearest = min(zip(np.abs(np.log(gains)), at, strict=True), default=(0.0, math.nan))[1]
    phase, where = min(zip(np.abs(phases), crossings, strict=True), default=(math.inf, math.nan))
    delays = [math.radians(p % 360.0) / w for p, w in zip(phases, crossings, strict=True) if w > 0]
    delay = min(delays, default=math.inf)
    numbers = {"gain_frequency": nearest, "phase": phase, "phase_frequency": where, "delay": delay}
    return Margins(stable=True, gain=(float(down), float(up)), **{name: float(v) for name, v in numbers.items()})


def _is_stable(closed: Any) -> bool:
    """Whether all poles lie inside; one on the boundary, but for rounding, does not."""
    poles = closed.poles()
    if closed.dt:
        return bool((np.abs(poles) < 1 - ON_THE_BOUNDARY).all())
    return bool((poles.real < -ON_THE_BOUNDARY * np.abs(poles).max(initial=0.0)).all())


def _peak(system: Any) -> tuple[float, float]:
    """Return the largest singular value over all frequencies, and where it is."""
    poles, dt = system.poles(), system.dt
    rates = np.abs(np.log(poles[poles != 0]) / dt if dt else poles)
    rates = rates[rates > 0] if (rates > 0).any() else np.ones(1)
    top = np.pi / dt if dt else WIDER * rates.max()
    grid = np.unique(np.concatenate(([0.0, top], np.minimum(rates, top), np.geomspace(rates.min() / WIDER, top, GRID))))

    def size(w: Any) -> Any:
        values = system(np.exp(1j * np.atleast_1d(w) * dt) if dt else 1j * np.atleast_1d(w), squeeze=False)
        return np.linalg.svd(np.moveaxis(values, -1, 0), compute_uv=False)[:, 0]

    sizes = size(grid)
    best = int(np.argmax(sizes))
    between = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)])
    refined = minimize_scalar(lambda w: -float(size(w)[0]), bounds=between, method="bounded", options={"xatol": 1e-9})
    at = max((float(refined.x), float(grid[best])), key=lambda w: float(size(w)[0]))
    far = 0.0 if dt else float(np.linalg.norm(system.D, 2))
    return (far, math.inf) if far > float(size(at)[0]) else (float(size(at)[0]), at)


def _at(frequency: float) -> str:
    return "" if math.isnan(frequency) else f" (at {frequency:.4g} rad/s)"
