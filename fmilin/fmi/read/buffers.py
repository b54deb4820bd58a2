"""All numbers of evaluations to an FMU in arrays that its host process reads and writes, and the calls that do so."""

from __future__ import annotations

import struct
from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.fmi.client.arena import Arena, Repeated
from fmilin.fmi.client.host_programs import Instruction, Operation, Program, ValueType
from fmilin.fmi.client.process import TOO_LONG
from fmilin.fmi.read.component import LoadedCode
from fmilin.fmi.read.description import Variable
from fmilin.fmi.read.layout import ScalarLayout, ScalarVariable
from fmilin.fmi.read.settings import Assignment
from fmilin.signals import FloatArray

Scalars = Sequence[ScalarVariable]

_MAX_BYTES = 1 << 20  # of the rows of a view
_ROOM_FOR_TEXTS = 1 << 12  # bytes, at first


class Group:
    """Variables of one type, read or written in one call; ``values`` (size,) is a contiguous part of an arena.

    ``operand`` is what a program works on: the values, or a row of them for each repetition, of which they are the
    first.
    """

    def __init__(
        self, arena: Arena, variables: Sequence[Variable], values: FloatArray, operand: Repeated | None = None
    ) -> None:
        self.type = variables[0].type
        self.values = values
        self.operand = values if operand is None else operand
        self.references = copy_references(arena, [v.reference for v in variables])
        self.reading: Instruction | None = None
        self.writing: Instruction | None = None


def copy_references(arena: Arena, references: Sequence[int]) -> NDArray[np.generic]:
    """Return value references as an array of the arena."""
    return arena.copy(np.array(references, dtype=np.uint32))


class Visit(NamedTuple):
    """The calls of one evaluation: where time or inputs have changed, and where they stand as before."""

    anew: Program
    again: Program


class PointRows:
    """Numbers of many points in an arena (k, size); row 0 is that of a single point."""

    def __init__(self, arena: Arena, size: int, *, most: int = 1) -> None:
        capacity = max(1, min(most, _MAX_BYTES // max(1, 8 * size)))
        self.arena = arena
        self.all = arena.zeros(capacity, size)
        self.first: FloatArray = self.all[0]

    def groups(self, variables: Iterable[Variable], layout: ScalarLayout, begin: int) -> tuple[Group, ...]:
        """Return groups for ``variables``; their numbers stand in order from ``begin`` on; types share a call."""
        groups: list[Group] = []
        for _, members in groupby(variables, key=lambda v: v.type):
            block = list(members)
            end = begin + sum(layout.size(v) for v in block)
            groups.append(Group(self.arena, block, self.first[begin:end], self.part(begin, end)))
            begin = end
        return tuple(groups)

    def part(self, begin: int, end: int) -> Repeated:
        """Return the numbers from ``begin`` to ``end`` of each row."""
        return Repeated(self.all[:, begin:end])


class Buffers:
    """``values``: t, x, u, x', z of one point (1 + N + nu + N + nz,), z the further variables that a view needs.

    ``further_scalars`` make up z; those of them ``observed`` by constraints can be read alone. In u, ``tuned``
    parameters stand behind the FMU's own inputs. ``inputs`` may be set at any time, discrete-time ``sampled_inputs`` in
    event mode. ``rows`` are such values of up to ``most`` points, of which ``values`` are the first.
    """

    def __init__(
        self,
        layout: ScalarLayout,
        arena: Arena,
        further_scalars: Scalars = (),
        observed: Scalars = (),
        tuned: Scalars = (),
        *,
        most: int = 1,
    ) -> None:
        n, input_count = len(layout.states), len(layout.inputs)
        k = input_count + len(tuned)
        in_constraints = {s.variable.reference: s.variable for s in observed}
        distinct = in_constraints | {s.variable.reference: s.variable for s in further_scalars}
        # Variables of constraints come first, so that they can be read alone; neighbours of one type share a call.
        self.further = tuple(sorted(distinct.values(), key=lambda v: (v.reference not in in_constraints, v.type)))
        sizes = [layout.size(v) for v in self.further]
        z = 1 + 2 * n + k
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(int) + z
        self.layout = layout
        self._tuned = {s.key: 1 + n + input_count + i for i, s in enumerate(tuned)}
        references = (v.reference for v in self.further)
        self._further: dict[int, int] = dict(zip(references, starts[:-1].tolist(), strict=True))
        self.point_rows = PointRows(arena, z + sum(sizes), most=most)
        self.rows, self.values = self.point_rows.all, self.point_rows.first
        self.x = self.values[1 : 1 + n]
        self.u = self.values[1 + n : 1 + n + k]
        self.rates = self.values[1 + n + k : z]
        self.n, self.k = n, k
        self.inputs, self.sampled_inputs = self._by_moment(input_count)
        if layout.description.is_stepped:  # a parameter is set as an input is
            self.inputs += self.point_rows.groups((s.variable for s in tuned), layout, 1 + n + input_count)
        self.readings = self.point_rows.groups(self.further, layout, z)
        self.observed_readings = self.point_rows.groups(self.further[: len(in_constraints)], layout, z)
        self.visits: dict[str, Visit] = {}
        self.looking: Program | None = None  # reads states and inputs back

    @property
    def time(self) -> float:
        """The time of the point, in seconds."""
        return float(self.values[0])

    @time.setter
    def time(self, time: float) -> None:
        self.values[0] = time

    @cached_property
    def states(self) -> tuple[Group, ...]:
        """The states as variables, where they are read and written as such (co-simulation)."""
        return self.point_rows.groups(dict.fromkeys(s.variable for s in self.layout.states), self.layout, 1)

    @cached_property
    def derivatives(self) -> tuple[Group, ...]:
        """The derivatives of the states as variables."""
        variables = dict.fromkeys(s.variable for s in self.layout.derivatives)
        return self.point_rows.groups(variables, self.layout, 1 + self.n + self.k)

    def position(self, scalar: ScalarVariable) -> int:
        """Return where ``scalar`` stands in ``values``; it must be a state, an input, a rate, time or one of z."""
        if scalar.key in self._tuned and scalar.variable.is_float:
            return self._tuned[scalar.key]
        role = self.layout.role(scalar)
        if role is not None:
            first = {"state": 1, "input": 1 + self.n, "derivative": 1 + self.n + self.k}[role.kind]
            return first + role.position
        if scalar.variable.causality == "independent":
            return 0
        return self._further[scalar.variable.reference] + scalar.offset

    def _by_moment(self, input_count: int) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
        """Return groups of the inputs that may be set at any time, and of those that are set in event mode."""
        layout = self.layout
        stepped = layout.description.is_stepped
        anytime: list[Group] = []
        at_events: list[Group] = []
        begin = 1 + self.n
        variables = dict.fromkeys(s.variable for s in layout.inputs)
        for free, members in groupby(variables, key=lambda v: stepped or v.is_continuous):
            block = list(members)
            (anytime if free else at_events).extend(self.point_rows.groups(block, layout, begin))
            begin += sum(layout.size(v) for v in block)
        return tuple(anytime), tuple(at_events)


EARLY_TYPES = {
    "Real": ValueType.FLOAT64,
    "Integer": ValueType.INT32,
    "Enumeration": ValueType.INT32,
    "Boolean": ValueType.BOOLEAN,
    "String": ValueType.TEXT,
}
"""The types of FMI 1.0 and 2.0, as :attr:`VariableAccess.types`."""

_FLOATS = (ValueType.FLOAT64, ValueType.FLOAT32)


class ValueReading(NamedTuple):
    """The call that reads one variable of any type, and where its values then are."""

    call: Instruction
    content: NDArray[Any]
    kind: ValueType
    size: int
    truth: type

    def values(self) -> list[Any]:
        """Return the values that were read, as Python has them."""
        if self.kind is ValueType.TEXT:
            return _split_texts(self.content.tobytes(), self.size)
        values = self.content.tolist()
        return [self.truth(value) for value in values] if self.kind is ValueType.BOOLEAN else values


class ValuesReading:
    """The calls that read some variables, in one message."""

    def __init__(self, parts: list[ValueReading]) -> None:
        self.parts = parts
        self.program = Program(part.call for part in parts)


class VariableAccess(ABC):
    """An accessor that reads and writes variables, floating-point numbers in groups or one by one."""

    component: LoadedCode
    arena: Arena
    types: ClassVar[Mapping[str, ValueType]]  # by type of variable
    truth: ClassVar[type] = bool  # as which Booleans are read

    def read(self, group: Group) -> None:
        """Read a group of variables."""
        self.component.run((self.reading(group),))

    def write(self, group: Group) -> None:
        """Set a group of variables."""
        self.component.run((self.writing(group),))

    def calls(self, *, writing: Iterable[Group] = (), reading: Iterable[Group] = ()) -> tuple[Instruction, ...]:
        """Return the calls that write some groups, then read some, to be made as often as wanted."""
        writes = (self.writing(group) for group in writing)
        return (*writes, *(self.reading(group) for group in reading))

    def reading(self, group: Group) -> Instruction:
        """Return the call that reads a group."""
        if group.reading is None:
            kind = self.types[group.type]
            group.reading = self.component.bound(Operation.GET_VALUES, group.references, group.operand, kind=kind)
        return group.reading

    def writing(self, group: Group) -> Instruction:
        """Return the call that sets a group."""
        if group.writing is None:
            kind = self.types[group.type]
            group.writing = self.component.bound(Operation.SET_VALUES, group.references, group.operand, kind=kind)
        return group.writing

    def values(self, variable: Variable, size: int) -> list[Any]:
        """Read a variable of any type: all its elements, as Python has them."""
        room = max(_ROOM_FOR_TEXTS, 64 * size)
        while True:
            reading = self._value_reading(variable, size, room)
            failure = self.component.first_bad((reading.call,))
            if failure is None:
                return reading.values()
            if failure.status != TOO_LONG or room >= self.arena.size // 8:
                raise self.component.failure(failure)
            room *= 16

    def prepare_values(self, variables: Mapping[Variable, int]) -> ValuesReading:
        """Return what reads variables of any type and these sizes together."""
        rooms = {v: max(_ROOM_FOR_TEXTS, 64 * size) for v, size in variables.items()}
        return ValuesReading([self._value_reading(v, size, rooms[v]) for v, size in variables.items()])

    def read_prepared(self, reading: ValuesReading) -> list[list[Any]] | None:
        """Return the values of variables; None where the FMU fails one of them."""
        if self.component.first_bad(reading.program) is not None:
            return None
        return [part.values() for part in reading.parts]

    def _value_reading(self, variable: Variable, size: int, room: int) -> ValueReading:
        kind = self.types[variable.type]
        dtype, count = (np.dtype(np.uint8), room) if kind is ValueType.TEXT else (_dtype(kind), size)
        content: NDArray[Any] = self.arena.empty((count,), dtype)
        reference = copy_references(self.arena, [variable.reference])
        call = self.component.bound(Operation.GET_VALUES, reference, content, kind=kind, immediate=size)
        return ValueReading(call, content, kind, size, self.truth)

    def _apply(self, setting: Assignment) -> None:
        """Set one variable of any type."""
        kind = self.types[setting.variable.type]
        reference = copy_references(self.arena, [setting.variable.reference])
        count = len(setting.values)
        if kind is ValueType.TEXT:
            texts = [str(value).encode() for value in setting.values]
            content = b"".join(struct.pack("=I", len(text)) + text for text in texts)
            values: NDArray[np.generic] = self.arena.copy_bytes(content)
        else:
            values = self.arena.copy(np.array(setting.values, dtype=_dtype(kind)))
        self.component.call(Operation.SET_VALUES, reference, values, kind=kind, immediate=count)


def _dtype(kind: ValueType) -> np.dtype[Any]:
    """Return as what values of a type travel."""
    if kind in _FLOATS:
        return np.dtype(np.float64)
    return np.dtype(np.uint64 if kind is ValueType.UINT64 else np.int64)


def _split_texts(content: bytes, count: int) -> list[Any]:
    """Return the texts behind their lengths; what the FMU may have written instead ends at the content's end."""
    texts: list[Any] = []
    at = 0
    for _ in range(count):
        (length,) = struct.unpack_from("=I", content, at) if at + 4 <= len(content) else (0,)
        texts.append(content[at + 4 : at + 4 + length].decode("utf-8", "replace"))
        at += 4 + length
    return texts
