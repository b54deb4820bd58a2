"""Measured angles that wrap: which outputs do, by which turn, and their innovations modulo that turn.

An innovation m - m_predicted of an output that wraps is taken into (-turn/2, turn/2], the same in Python, C and FMUs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.manifold.wrapping_angles import TURNS_OF_UNITS
from fmilin.signals import FloatArray, Signal, Signals, as_numbers, wrap_differences

Wrapped = Sequence[str] | Mapping[str, float] | None

# Part of a turn by which the change of an innovation may miss a turn and still is a wrap, and that the innovation
# before it may have. Looser: a jump of a quantity that does not wrap is taken for one.
NEAR_TURN_FRACTION = 0.25
MAX_BATCH_SAMPLES = 512  # samples of a record


def choose_turns(outputs: Signals, wrapped: Wrapped) -> Signals:
    """Return the outputs with the turns that a user names; with those that the model shows where nothing is named.

    Raises UsageError or UnknownNameError when a name is unknown, a turn is not positive, or an output has no unit of an
    angle that would tell its turn.
    """
    if wrapped is None:
        return outputs
    if isinstance(wrapped, str) or not isinstance(wrapped, Sequence | Mapping):
        raise UsageError(
            f"'wrapped_outputs' must be a list of outputs, or a mapping to their turns, not {wrapped!r}: write "
            "['theta']."
        )
    turns: list[float | None] = [None] * len(outputs)
    for name in wrapped:
        i = outputs.index_of(name, "a measured output")
        turn = wrapped[name] if isinstance(wrapped, Mapping) else _choose_turn(outputs, i)
        number = as_numbers(turn, f"The turn of '{name}'")
        if isinstance(turn, bool) or number.shape != () or not (np.isfinite(number) and number > 0):
            raise UsageError(f"The turn of '{name}' is {turn}: it must be finite and positive, such as 2 pi or 360.")
        turns[i] = float(number)
    return outputs.with_turns(turns)


def _choose_turn(outputs: Signals, i: int) -> float:
    signal = outputs[i]
    if signal.turn is not None:
        return signal.turn
    turns = TURNS_OF_UNITS.get(signal.unit)
    if turns is None:
        unit = f"the unit '{signal.unit}'" if signal.unit else "no unit"
        raise UsageError(
            f"The output '{signal.name}' has {unit}, from which its turn does not follow. Give the turn: "
            f"wrapped_outputs={{'{signal.name}': 360.0}} for an angle in degrees, 2 pi for one in radians."
        )
    return turns[0]


def _find_possible_turn(signal: Signal) -> float:
    """Return the turn of an output in a unit of angles that nothing tells to wrap; 0 for the others."""
    turns = TURNS_OF_UNITS.get(signal.unit)
    return 0.0 if turns is None or signal.turn is not None else turns[0]


def _find_wraps(innovations: FloatArray, before: FloatArray, turns: FloatArray) -> NDArray[np.bool_]:
    """Return where an innovation has changed by whole turns since the one before it; nowhere for a turn of 0."""
    sizes = np.where(turns > 0, turns, 1.0)
    change = (innovations - before) / sizes
    whole_turns = np.round(change)
    is_turn = (turns > 0) & (whole_turns != 0) & (np.abs(change - whole_turns) < NEAR_TURN_FRACTION)
    return np.asarray(is_turn & (np.abs(before) < NEAR_TURN_FRACTION * sizes))


class TurnObserver:
    """The turns of measured outputs during a run, those that are seen to wrap included.

    Only an output in a unit of angles that nothing tells to wrap is observed: a black box has not been searched for
    wraps. It wraps when its innovation changes by a turn, to NEAR_TURN_FRACTION, from one measurement to the next, and
    for good when the next one shows the turn again: a single outlier is taken modulo a turn alone.
    """

    def __init__(self, outputs: Signals, *, observes: bool) -> None:
        self._names = outputs.names
        self._declared = outputs.turns
        units = [_find_possible_turn(s) if observes else 0.0 for s in outputs]
        self._possible = np.array(units, dtype=np.float64)
        self.restart()

    def restart(self) -> None:
        """Forget what was observed."""
        self.turns = self._declared.copy()  # for good
        self.latest = self.turns.copy()  # at the last measurement of each
        self._last = np.full(len(self.turns), np.nan)
        self._jumped = np.zeros(len(self.turns), dtype=np.bool_)  # at the last measurement of each
        self._ever = self._jumped.copy()

    def observe(self, rows: Sequence[int], innovations: FloatArray) -> FloatArray:
        """Return the turns of the rows, given the innovations of a measurement (m,); 0 for outputs that do not wrap."""
        rows = list(rows)
        possible = self._possible[rows]
        if not possible.any():
            return np.asarray(self.turns[rows])
        is_wrap = _find_wraps(innovations, self._last[rows], possible)
        self.turns[rows] = np.where(is_wrap & self._jumped[rows], possible, self.turns[rows])
        self._jumped[rows] = is_wrap
        self._ever[rows] |= is_wrap
        turns = np.where(is_wrap, possible, self.turns[rows])
        self.latest[rows] = turns
        self._last[rows] = wrap_differences(innovations, turns)
        return turns

    @property
    def longest_record(self) -> int:
        """How many samples may be filtered before their innovations are observed: what a jump makes worthless."""
        return MAX_BATCH_SAMPLES if self._possible.any() else sys.maxsize

    def count_without_jump(self, innovations: FloatArray) -> int:
        """Return up to which row of ``innovations`` (K, m), NaN where nothing was measured, no output is seen to wrap.

        The innovations are those with :attr:`turns`.
        """
        first = len(innovations)
        for i in np.flatnonzero(self._possible).tolist():
            rows = np.flatnonzero(np.isfinite(innovations[:, i]))
            column, turn = innovations[rows, i], self._possible[i]
            before = np.concatenate((self._last[i : i + 1], column[:-1]))
            is_wrap = _find_wraps(column, before, np.broadcast_to(turn, column.shape))
            if is_wrap.any():
                first = min(first, int(rows[np.argmax(is_wrap)]))
        return first

    def record_unwrapped(self, innovations: FloatArray) -> None:
        """Take innovations (K, m) as observed in which no output is seen to wrap."""
        for i in np.flatnonzero(self._possible).tolist():
            column = innovations[np.isfinite(innovations[:, i]), i]
            if len(column):
                self._last[i], self._jumped[i], self.latest[i] = column[-1], False, self.turns[i]

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Which outputs were seen to wrap."""
        names = [name for name, has_jumped in zip(self._names, self._ever, strict=True) if has_jumped]
        if not names:
            return ()
        text = (
            f"The innovation of {', '.join(names)} changed by a whole turn between two measurements, and is taken "
            "modulo a turn there. Name such outputs when the filter is made (wrapped_outputs=), or none "
            "(wrapped_outputs=[])."
        )
        return (Remark("wrapped", text),)
