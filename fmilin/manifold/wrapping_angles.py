"""Angles that wrap: ``atan2(x, -y)`` changes by one turn at the upright position, and has a derivative there."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import EPS

TURNS_OF_UNITS = {"rad": (2 * np.pi,), "deg": (360.0,), "°": (360.0,), "rev": (1.0,)}
DEGREES = 360.0
TURNS_WITHOUT_UNIT = (2 * np.pi, DEGREES)
# atan2(...)/(2 pi), in revolutions without a unit, wraps at half a turn. A switch between 0 and 1 changes by 1 as well:
# only what stands at half a turn, and still moves behind the wrap, is an angle.
FULL_TURN_VALUE = 1.0
HALF_TURN_TOLERANCE = 1e-9  # by which it may miss that
# 2 atan2(...) changes by two turns. Multiples of 2 pi are hardly met by chance, those of 360 are.
MAX_TURNS = {2 * np.pi: 64, 360.0: 2, 1.0: 2}
MIN_TURN_FRACTION = 0.75  # of the smallest turn, 1 revolution
NEAR_TURN_FRACTION = (
    0.25  # part of a turn by which a change may miss a turn and still ask for a look close to the point
)
# Displacement, in sizes of the variables, at which a wrapped angle still changes by one turn, and a smooth function by
# nothing that counts. Looser: steep functions count as angles.
NEAR_STEP_SIZE = 2.0**-40
EXACT_TURN_TOLERANCE = 1e-6  # part of a turn by which the change may miss it there
MAX_LOOKS = 4  # at one row: a function that changes by a turn by chance does so rarely


def list_turns(unit: str) -> tuple[float, ...]:
    """Return by how much an angle in this unit may jump without having moved; nothing for what is not an angle."""
    return TURNS_WITHOUT_UNIT if unit in ("", "1") else TURNS_OF_UNITS.get(unit, ())


class AngleUnwrapper:
    """Takes whole turns out of outputs that wrap exactly at the point."""

    def __init__(self, outputs: Signals, base: FloatArray) -> None:
        self._base = base  # (ny,), at the point
        self._turns = [
            _list_possible_turns(unit, value) for unit, value in zip(outputs.units, base.tolist(), strict=True)
        ]
        self._is_plain = [unit in ("", "1") for unit in outputs.units]
        self._wrapping: dict[int, float] = {}  # rows that wrap, and the turn of their unit
        self._jumps: dict[int, float] = {}  # by which they jump: 2 atan2(...) by two turns
        self._looks = np.zeros(len(base), dtype=np.intp)
        self._watches = any(self._turns)

    def copy(self) -> AngleUnwrapper:
        """Return the same, with what it has learned so far."""
        other = copy(self)
        other._wrapping, other._jumps, other._looks = dict(self._wrapping), dict(self._jumps), self._looks.copy()
        return other

    def find_doubtful(self) -> list[int]:
        """Return outputs that were taken for angles in degrees by their jump alone: a switch may jump by 360."""
        return [i for i, turn in sorted(self._wrapping.items()) if self._is_plain[i] and turn == DEGREES]

    def list_turns(self) -> dict[int, float]:
        """Return by how much the outputs jump that were seen to wrap, by row."""
        return {i: jump for i, jump in self._jumps.items() if i not in self.find_doubtful()}

    def unwrap(self, values: FloatArray, look_closer: Callable[[], FloatArray]) -> FloatArray:
        """Return outputs without the turns; ``look_closer`` gives them in the same direction near the point.

        Near is :data:`NEAR_STEP_SIZE`.
        """
        if not self._watches:
            return values
        change = values - self._base
        candidates = {
            i: turn
            for i in np.flatnonzero(np.abs(change) > MIN_TURN_FRACTION).tolist()
            for turn in self._turns[i]
            if _is_near_turns(float(change[i]), turn, NEAR_TURN_FRACTION)
        }
        unknown = [i for i in candidates if i not in self._wrapping and self._looks[i] < MAX_LOOKS]
        if unknown:
            close = look_closer() - self._base
            for i in unknown:
                self._looks[i] += 1
                for turn in self._turns[i]:
                    is_switch = (
                        self._is_plain[i] and turn == FULL_TURN_VALUE and not _moves_beyond_turns(float(close[i]))
                    )
                    if _is_near_turns(float(close[i]), turn, EXACT_TURN_TOLERANCE) and not is_switch:
                        self._wrapping[i] = turn
                        self._jumps[i] = turn * abs(round(float(close[i]) / turn))
        for i, turn in self._wrapping.items():
            if i in candidates:
                values[i] -= turn * round(float(change[i]) / turn)
        return values


def _list_possible_turns(unit: str, value: float) -> tuple[float, ...]:
    """Return the turns of a unit; without a unit also a revolution where the value is half of one."""
    turns = list_turns(unit)
    if unit in ("", "1") and abs(abs(value) - FULL_TURN_VALUE / 2) <= HALF_TURN_TOLERANCE:
        return (*turns, FULL_TURN_VALUE)
    return turns


def _moves_beyond_turns(change: float) -> bool:
    """Whether a change is more than whole revolutions and rounding: a switch jumps and stays."""
    return abs(change - round(change)) > 4 * EPS


def _is_near_turns(change: float, turn: float, tolerance: float) -> bool:
    count = round(change / turn) if np.isfinite(change) else 0
    return 0 < abs(count) <= MAX_TURNS[turn] and abs(change - count * turn) <= tolerance * turn
