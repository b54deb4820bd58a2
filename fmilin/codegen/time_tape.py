"""Where a model's graph has jumps, kinks or pulses at times that do not depend on its states.

An integrator examines the rates at a few times of each step, and a pulse between two of them changes nothing that it
sees. The part of the graph that depends on time alone is evaluated by itself, on many times at once: arguments of abs,
min, max and comparisons are zero where the model switches, and smooth pulses stand where their arguments do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from fmilin.signals import FloatArray

SX = Any  # casadi.SX: casadi ships no types

SAMPLES = 8193  # times at first
ROUNDS = 4  # in which times found so far lead to others: a kink inside a pulse shows its two ends
BISECTION_COUNT = 80
MAX_BREAKS = 20_000
SAME_TIME = 1e-13  # relative: times that are one
PULSE_WIDTH_FRACTION = 0.01  # of the duration: a change within so little of it may be a pulse
JUMP_WIDTH_FRACTION = 1e-4  # of the duration: the same for a quantity that differs from its median for long
CHANGE_SIZE_FRACTION = 0.1  # of its range: by what a quantity changes there
RARE_TIME_FRACTION = 0.25  # of the time that a pulsed quantity differs from its median
PULSE_DISTANCE_FRACTIONS = 10.0 ** np.arange(
    -9, -1
)  # of the duration: distances from a candidate at which a pulse is examined

_UNARY: dict[int, Callable[[FloatArray], Any]] = {
    ca.OP_ASSIGN: lambda a: a, ca.OP_LIFT: lambda a: a, ca.OP_NEG: np.negative, ca.OP_EXP: np.exp, ca.OP_LOG: np.log,
    ca.OP_SQRT: np.sqrt, ca.OP_SQ: np.square, ca.OP_TWICE: lambda a: 2 * a, ca.OP_INV: lambda a: 1 / a,
    ca.OP_SIN: np.sin, ca.OP_COS: np.cos, ca.OP_TAN: np.tan, ca.OP_ASIN: np.arcsin, ca.OP_ACOS: np.arccos,
    ca.OP_ATAN: np.arctan, ca.OP_SINH: np.sinh, ca.OP_COSH: np.cosh, ca.OP_TANH: np.tanh, ca.OP_FABS: np.abs,
    ca.OP_SIGN: np.sign, ca.OP_FLOOR: np.floor, ca.OP_CEIL: np.ceil, ca.OP_NOT: lambda a: 1.0 * (a == 0),
    ca.OP_LOG1P: np.log1p, ca.OP_EXPM1: np.expm1, ca.OP_ASINH: np.arcsinh, ca.OP_ACOSH: np.arccosh,
    ca.OP_ATANH: np.arctanh,
}  # fmt: skip
_BINARY: dict[int, Callable[[FloatArray, FloatArray], Any]] = {
    ca.OP_ADD: np.add, ca.OP_SUB: np.subtract, ca.OP_MUL: np.multiply, ca.OP_DIV: np.divide, ca.OP_POW: np.power,
    ca.OP_CONSTPOW: np.power, ca.OP_FMIN: np.minimum, ca.OP_FMAX: np.maximum, ca.OP_ATAN2: np.arctan2,
    ca.OP_FMOD: np.fmod, ca.OP_COPYSIGN: np.copysign, ca.OP_HYPOT: np.hypot,
    ca.OP_LT: lambda a, b: 1.0 * (a < b), ca.OP_LE: lambda a, b: 1.0 * (a <= b), ca.OP_EQ: lambda a, b: 1.0 * (a == b),
    ca.OP_NE: lambda a, b: 1.0 * (a != b), ca.OP_AND: lambda a, b: 1.0 * ((a != 0) & (b != 0)),
    ca.OP_OR: lambda a, b: 1.0 * ((a != 0) | (b != 0)), ca.OP_IF_ELSE_ZERO: lambda a, b: np.where(a != 0, b, 0.0),
}  # fmt: skip
_DIFFERENCES = {ca.OP_FMIN, ca.OP_FMAX, ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_COPYSIGN}
_ZEROS = {ca.OP_FABS, ca.OP_SIGN, ca.OP_NOT, ca.OP_IF_ELSE_ZERO}
_ROUNDING = {ca.OP_FLOOR, ca.OP_CEIL}
_PULSING = {ca.OP_EXP, ca.OP_TANH, ca.OP_ATAN, ca.OP_INV, ca.OP_DIV, ca.OP_COSH, ca.OP_SQ, ca.OP_POW, ca.OP_CONSTPOW}


@dataclass(frozen=True)
class _TapeInstruction:
    operation: int
    inputs: tuple[int, ...]
    output: int
    constant: float
    argument: tuple[int, int]  # of an input: which argument, which entry


class TimeTape:
    """The part of a graph that depends on time alone."""

    def __init__(
        self, time: SX, other_symbols: list[SX], parameters: SX, values: FloatArray, results: list[SX]
    ) -> None:
        stacked = ca.vertcat(*[ca.vec(ca.densify(r)) for r in results])
        function = ca.Function("f", [time, parameters, *other_symbols], [stacked])
        self._instructions = [_read(function, k) for k in range(function.n_instructions())]
        self._size, self._parameters = function.sz_w(), values
        self.depends_on_time = bool(ca.depends_on(stacked, time))

    def at(self, times: FloatArray) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray]]:
        """Return, at times (K,): what is zero where the model switches, what pulses stand on, what is made of time."""
        work: list[FloatArray | None] = [None] * max(self._size, 1)
        of_time = [False] * max(self._size, 1)
        switches: list[FloatArray] = []
        arguments: list[FloatArray] = []
        quantities: list[FloatArray] = []
        with np.errstate(all="ignore"):
            for step in self._instructions:
                inputs = [work[i] for i in step.inputs]
                timed = [of_time[i] for i in step.inputs]
                value = self._value(step, inputs, times)
                if step.operation != ca.OP_OUTPUT and step.inputs and value is None:
                    # It leaves what depends on time alone: this is what the rest of the model sees of it.
                    quantities += [v for v, t in zip(inputs, timed, strict=True) if v is not None and t]
                if step.operation == ca.OP_OUTPUT:
                    quantities += [v for v, t in zip(inputs, timed, strict=True) if v is not None and t]
                    continue
                if value is not None and any(timed):
                    _note(step.operation, inputs, switches, arguments)
                work[step.output] = value
                is_time = step.operation == ca.OP_INPUT and step.argument[0] == 0
                of_time[step.output] = value is not None and (is_time or any(timed))
        return switches, arguments, quantities

    def _value(self, step: _TapeInstruction, inputs: list[FloatArray | None], times: FloatArray) -> FloatArray | None:
        if step.operation == ca.OP_CONST:
            return np.full(len(times), step.constant)
        if step.operation == ca.OP_INPUT:
            argument, entry = step.argument
            if argument == 0:
                return times
            return np.full(len(times), self._parameters[entry]) if argument == 1 else None
        operands = [value for value in inputs if value is not None]
        if len(operands) < len(inputs):
            return None
        if step.operation in _UNARY and len(operands) == 1:
            return np.asarray(_UNARY[step.operation](operands[0]), dtype=np.float64)
        if step.operation in _BINARY and len(operands) == 2:
            return np.asarray(_BINARY[step.operation](*operands), dtype=np.float64)
        return None

    def breaks(self, start: float, end: float) -> FloatArray:
        """Return the times inside where the model switches or pulses, in order; the first floats after a switch."""
        if not (self.depends_on_time and end > start):
            return np.empty(0)
        duration = end - start
        times = np.linspace(start, end, SAMPLES)
        break_times, pulses = np.empty(0), np.empty(0)
        first = True
        for _ in range(ROUNDS):
            switches, arguments, _ = self.at(times)
            roots = self._roots(times, switches, 0)
            turns = self._turns(times, arguments, 1)
            grazing = self._turns(times, switches, 0) if first else np.empty(0)
            first = False
            pulses = np.union1d(pulses, np.concatenate((turns, self._roots(times, arguments, 1))))
            new = np.setdiff1d(roots, break_times)
            break_times = np.union1d(break_times, roots)
            if not (new.size or grazing.size) or len(break_times) > MAX_BREAKS:
                break
            around = (
                new[:, None] + duration * np.concatenate((-PULSE_DISTANCE_FRACTIONS, [0.0], PULSE_DISTANCE_FRACTIONS))
            ).ravel()
            times = np.union1d(times, np.concatenate((around, np.nextafter(new, -np.inf), pulses, grazing)))
            times = times[(times >= start) & (times <= end)]
        break_times = merge_close_times(np.union1d(break_times, self._sharp(pulses, start, end)), start, end)
        return break_times[:MAX_BREAKS]

    def _roots(self, times: FloatArray, values: list[FloatArray], which: int) -> FloatArray:
        """Return where values change their signs: the first floats on the other side."""
        rows, columns = [], []
        for row, value in enumerate(values):
            sign = np.sign(value)
            changes = np.flatnonzero((sign[1:] != sign[:-1]) & np.isfinite(value[1:]) & np.isfinite(value[:-1]))
            if len(changes) <= MAX_BREAKS:
                rows += [row] * len(changes)
                columns += changes.tolist()
        if not rows:
            return np.empty(0)
        low, high = times[columns].copy(), times[np.array(columns) + 1].copy()
        at_low = np.sign(np.array([values[r][c] for r, c in zip(rows, columns, strict=True)]))
        picked = np.array(rows)
        for _ in range(BISECTION_COUNT):
            middle = 0.5 * (low + high)
            if not ((middle > low) & (middle < high)).any():
                break
            middle_values = np.array(self.at(middle)[which])[picked, np.arange(len(picked))]
            same = np.sign(middle_values) == at_low
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return np.unique(high)

    def _turns(self, times: FloatArray, values: list[FloatArray], which: int) -> FloatArray:
        """Return where values have a smallest or largest value, about."""
        break_times = []
        for row, value in enumerate(values):
            rises = np.sign(np.diff(value))
            turning = np.flatnonzero(rises[1:] * rises[:-1] < 0) + 1
            if not 0 < len(turning) <= MAX_BREAKS:
                continue
            low, high = times[turning - 1].copy(), times[turning + 1].copy()
            sense = rises[turning]  # +1 at a minimum
            for _ in range(BISECTION_COUNT):
                a, b = low + (high - low) / 3, high - (high - low) / 3
                left_values, right = self.at(a)[which][row], self.at(b)[which][row]
                lower = (left_values - right) * sense < 0
                low, high = np.where(lower, low, a), np.where(lower, b, high)
            break_times.append(0.5 * (low + high))
        return np.concatenate(break_times) if break_times else np.empty(0)

    def _sharp(self, candidates: FloatArray, start: float, end: float) -> FloatArray:
        """Return those around which a quantity that rests most of the time changes within a moment."""
        inside = candidates[(candidates > start) & (candidates < end)][:MAX_BREAKS]
        if not inside.size:
            return inside
        duration = end - start
        even = self.at(np.linspace(start, end, SAMPLES))[2]
        offsets = duration * np.concatenate(
            (
                -PULSE_DISTANCE_FRACTIONS[PULSE_DISTANCE_FRACTIONS <= PULSE_WIDTH_FRACTION],
                [0.0],
                PULSE_DISTANCE_FRACTIONS[PULSE_DISTANCE_FRACTIONS <= PULSE_WIDTH_FRACTION],
            )
        )
        near = self.at((inside[:, None] + offsets).ravel())[2]
        sharp = np.zeros(len(inside), dtype=bool)
        for everywhere, around in zip(even, near, strict=True):
            values = around.reshape(len(inside), -1)
            rest = float(np.median(everywhere))
            low, high = (pick(np.concatenate((everywhere, around))) for pick in (np.nanmin, np.nanmax))
            size = CHANGE_SIZE_FRACTION * float(high - low)
            if not size > 0:
                continue
            # Changes during most of the time are seen by any step, except those that are a step themselves.
            is_rare = np.mean(np.abs(everywhere - rest) > size) <= RARE_TIME_FRACTION
            near_enough = np.abs(offsets) <= duration * (PULSE_WIDTH_FRACTION if is_rare else JUMP_WIDTH_FRACTION)
            sharp |= np.ptp(values[:, near_enough], axis=1) > size
        return np.asarray(inside[sharp])


def merge_close_times(times: FloatArray, start: float, end: float) -> FloatArray:
    """Return rising times strictly inside, the last one of those that rounding separates."""
    close = SAME_TIME * max(abs(start), abs(end), end - start)
    inside = times[(times > start + close) & (times < end - close)]
    if not inside.size:
        return inside
    return np.asarray(inside[np.append(np.diff(inside) > close, True)])


def _read(function: Any, k: int) -> _TapeInstruction:
    operation, inputs = int(function.instruction_id(k)), list(function.instruction_input(k))
    outputs = list(function.instruction_output(k))
    constant = float(function.instruction_constant(k)) if operation == ca.OP_CONST else 0.0
    if operation == ca.OP_INPUT:
        return _TapeInstruction(operation, (), outputs[0], constant, (inputs[0], inputs[1]))
    output = 0 if operation == ca.OP_OUTPUT else outputs[0]
    read = inputs[:1] if operation == ca.OP_OUTPUT else inputs
    return _TapeInstruction(operation, tuple(read), output, constant, (0, 0))


def _note(
    operation: int, inputs: list[FloatArray | None], switches: list[FloatArray], arguments: list[FloatArray]
) -> None:
    """Add what an operation switches at, and what a pulse of it would stand on."""
    operands = [value for value in inputs if value is not None]
    if operation in _DIFFERENCES:
        switches.append(operands[0] - operands[1])
    elif operation in _ZEROS:
        switches.append(operands[0])
    elif operation in _ROUNDING:
        switches.append(np.sin(np.pi * operands[0]))
    elif operation == ca.OP_FMOD:
        switches.append(np.sin(np.pi * operands[0] / operands[1]))
    elif operation in _PULSING:
        arguments.extend(operands)
