"""Times of jumps, kinks and pulses of what acts on a model, for all its states: no step goes past one.

A graph tells them exactly (:mod:`fmilin.codegen.time_tape`). Functions of inputs that declare no knots, and
models that are black boxes, are evaluated at many times: shorter pulses than their distance are not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import REFUSALS
from fmilin.model.capabilities import has_graph, read_graph
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Hybrid
from fmilin.signals import FloatArray
from fmilin.simulation.inputs import InputCourse

if TYPE_CHECKING:
    from fmilin.codegen.time_tape import TimeTape

SAMPLE_COUNT = 2400  # of a black box over the duration of a run
MAX_STATES = 400  # of a model the graph of which is examined
BISECTION_COUNT = 60  # bisections of a jump
JUMP_SIZE_FRACTION = 0.2  # of the range of a quantity: a change between two checks
JUMP_CHANGE_RATIO = 5.0  # so many times larger than the changes before and after it
SPAN_FACTOR = 1.25  # so much longer than asked for is the span that is examined: shooting asks for many that are alike
LATERAL_DISPLACEMENT_SIZE = 0.1  # of the sizes of the states
ROUNDING_OF_VALUES = 1e-12  # relative: differences that are none

_tapes: WeakKeyDictionary[Model, TimeTape | None] = WeakKeyDictionary()
_looks: WeakKeyDictionary[Model, _Looks] = WeakKeyDictionary()


@dataclass(frozen=True)
class TimeBreaks:
    """Where steps end, and what is unknown of others."""

    times: FloatArray  # (K,), rising; the first times at which a jump is over
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class _Looks:
    start: float
    end: float
    times: FloatArray  # (K,), of sudden changes
    depends_on_time: bool


def find_time_breaks(
    model: Model, start: OperatingPoint, course: InputCourse, end: float, stop: Callable[[], bool] = lambda: False
) -> TimeBreaks:
    """Return the times between the start and ``end`` at which no step should go past what acts on the model.

    ``stop`` is asked before each evaluation of a black box; once it says yes, what was found so far is returned.
    """
    begin = start.time
    if not end > begin:
        return TimeBreaks(np.empty(0))
    times, remarks = [course.breaks(begin, end)], []
    if course.is_opaque:
        times.append(_sudden_changes(course.piece(begin, end), begin, end, stop))
        remarks.append(_remark("A function of an input", "Declare them (function.knots = [...]), or give", begin, end))
    tapes = _collect_tapes(model)
    if tapes is not None:
        times += [tape.breaks(begin, end) for tape in tapes]
    else:  # those that announce events, too: what their equations do between two of them they do not announce
        looks = _look_for_changes(model, start, end, stop)
        times.append(looks.times)
        if looks.depends_on_time:
            who = f"'{model.info.name}', a black box,"
            remarks.append(_remark(who, "Limit the step (Method(longest_step=)), or give", begin, end))
    change_times = np.unique(np.concatenate(times))
    return TimeBreaks(change_times[(change_times > begin) & (change_times < end)], tuple(remarks))


def _remark(who: str, remedy: str, begin: float, end: float) -> Remark:
    shortest = (end - begin) / SAMPLE_COUNT
    return Remark(
        "pulses",
        f"{who} changes with time, and the integrator may skip pulses shorter than {shortest:.2g} s. {remedy} inputs "
        "as a table.",
    )


def _collect_tapes(model: Model) -> list[TimeTape] | None:
    """Return what of the graphs of a model, or of its members, depends on time alone; None where one has no graph."""
    tape = _get_tape(model)
    if tape is not None:
        return [tape]
    members: Mapping[str, Model] | None = getattr(model, "members", None)
    if not members:
        return None
    tapes: list[TimeTape] = []
    for member in members.values():
        if _only_samples(member):
            continue
        member_tapes = _collect_tapes(member)
        if member_tapes is None:
            return None
        tapes += member_tapes
    return tapes


def _only_samples(model: Model) -> bool:
    """Whether a model has no states that move, and says when it samples: a regulator, a sampled filter."""
    return isinstance(model, Hybrid) and not len(model.states) and model.next_event_time() is not None


def _get_tape(model: Model) -> TimeTape | None:
    """Return what of the graph of a model depends on time alone; None where it has no graph."""
    if model in _tapes:
        return _tapes[model]
    tape = None
    if has_graph(model) and len(model.states) <= MAX_STATES:
        from fmilin.codegen.time_tape import TimeTape

        system = read_graph(model)
        if system is not None:
            results = [system.derivatives, system.matrix, system.right_hand_side]
            variables = [system.states, system.inputs, system.unknowns]
            tape = TimeTape(system.time, variables, system.parameters, system.parameter_values, results)
    _tapes[model] = tape
    return tape


def _look_for_changes(model: Model, start: OperatingPoint, end: float, stop: Callable[[], bool]) -> _Looks:
    """Return where the rates of a black box change suddenly with time, its states held.

    They are held at the start and near it: the factor of a pulse may be zero at the start.
    """
    earlier_look = _looks.get(model)
    if earlier_look is not None and earlier_look.start == start.time and end <= earlier_look.end:
        return earlier_look
    last = start.time + SPAN_FACTOR * (end - start.time)
    aside = LATERAL_DISPLACEMENT_SIZE * model.states.scales(start.states) * np.cos(np.arange(len(start.states)) + 1.0)
    change_times: list[FloatArray] = []
    depends_on_time = False
    for states in (start.states, start.states + aside):

        def rates(t: float, states: FloatArray = states) -> FloatArray:
            try:
                return model.evaluate(t, states, start.inputs).derivatives
            except REFUSALS:
                return np.full(len(states), np.nan)

        values = [rates(t) for t in np.linspace(start.time, last, 8)]
        depends_on_time = depends_on_time or _vary(np.array(values))
        change_times.append(_sudden_changes(rates, start.time, last, stop))
    times = np.unique(np.concatenate(change_times))
    looks = _Looks(start.time, last, times, depends_on_time or bool(times.size))
    if not stop():  # what was interrupted is incomplete, and is not used again
        _looks[model] = looks
    return looks


def _vary(values: FloatArray) -> bool:
    size = np.nanmax(np.abs(values), initial=0.0)
    return bool((np.ptp(np.nan_to_num(values), axis=0) > ROUNDING_OF_VALUES * max(size, 1e-300)).any())


def _sudden_changes(
    function: Callable[[float], FloatArray], begin: float, end: float, stop: Callable[[], bool]
) -> FloatArray:
    """Return the times at which a function jumps, and the ends of what it does within a moment; none once stopped."""
    times = np.linspace(begin, end, SAMPLE_COUNT + 1)
    evaluated: list[FloatArray] = []
    for t in times.tolist():
        if stop():
            return np.empty(0)
        evaluated.append(function(t))
    values = np.array(evaluated).reshape(len(times), -1)
    change_times: list[float] = []
    for column in np.flatnonzero(np.ptp(values, axis=0) > 0):
        value = values[:, column]
        changes = np.abs(np.diff(value))
        before, after = np.append(0.0, changes[:-1]), np.append(changes[1:], 0.0)
        sudden = (changes > JUMP_SIZE_FRACTION * np.ptp(value)) & (
            changes > JUMP_CHANGE_RATIO * np.minimum(before, after)
        )
        change_times += [
            _bisect(function, int(column), float(times[k]), float(times[k + 1]), (value[k], value[k + 1]))
            for k in np.flatnonzero(sudden)[: SAMPLE_COUNT // 4]
        ]
    return np.unique(change_times)


def _bisect(
    function: Callable[[float], FloatArray], column: int, low: float, high: float, ends: tuple[float, float]
) -> float:
    """Return the first time at which the larger part of a change is over."""
    middle_value = 0.5 * (ends[0] + ends[1])
    is_above = ends[0] > middle_value
    for _ in range(BISECTION_COUNT):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if (function(middle)[column] > middle_value) == is_above:
            low = middle
        else:
            high = middle
    return high
