"""All numbers of one visit to an FMU in one array, at addresses that C code writes to, and the calls that do so."""

import ctypes
from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.fmi.read.component import Call, LoadedCode
from fmilin.fmi.read.description import Variable
from fmilin.fmi.read.layout import ScalarLayout, ScalarVariable
from fmilin.fmi.read.settings import Assignment
from fmilin.signals import FloatArray

Scalars = Sequence[ScalarVariable]


class Group:
    """Variables of one type, read or written in one call; ``values`` (size,) is a contiguous part of the buffers."""

    def __init__(self, variables: Sequence[Variable], values: FloatArray) -> None:
        self.type = variables[0].type
        self.values = values
        self.references: NDArray[np.uint32] = np.array([v.reference for v in variables], dtype=np.uint32)
        # Float32 needs a buffer of its own; everything else is read in place.
        self.buffer: NDArray[np.float32] | None = None
        if self.type == "Float32":
            self.buffer = np.zeros(values.size, dtype=np.float32)
        self.doubles_pointer = pointer_to(values)  # seeds and sensitivities are doubles, whatever the type
        self.pointer = self.doubles_pointer if self.buffer is None else pointer_to(self.buffer)
        self.references_pointer = pointer_to(self.references)
        self.count = ctypes.c_size_t(self.references.size)
        self.size = ctypes.c_size_t(values.size)
        self.reading: tuple[Call, ...] = ()
        self.writing: tuple[Call, ...] = ()


def pointer_to(values: NDArray[np.generic]) -> ctypes.c_void_p:
    """Return the address of an array's first number, as a C function takes it; it keeps the array alive."""
    return values.ctypes.data_as(ctypes.c_void_p)


class Visit(NamedTuple):
    """The calls of one visit: where time or inputs have changed, and where they stand as before."""

    anew: tuple[Call, ...]
    again: tuple[Call, ...]


def groups_of(variables: Iterable[Variable], layout: ScalarLayout, values: FloatArray) -> tuple[Group, ...]:
    """Return groups for ``variables``, whose numbers are ``values``, in order; neighbours of a type share a call."""
    groups: list[Group] = []
    members: list[Variable] = []
    begin = end = 0
    for v in variables:
        if members and members[0].type != v.type:
            groups.append(Group(members, values[begin:end]))
            members, begin = [], end
        members.append(v)
        end += layout.size(v)
    if members:
        groups.append(Group(members, values[begin:end]))
    return tuple(groups)


class Buffers:
    """``values``: t, x, u, x', z of one point (1 + N + nu + N + nz,), z the further variables that a view needs.

    ``others`` make up z; those of them ``observed`` by constraints can be read alone. In u, ``tuned`` parameters stand
    behind the FMU's own inputs. ``inputs`` may be set at any time, discrete-time ``sampled_inputs`` in event mode.
    """

    def __init__(self, layout: ScalarLayout, others: Scalars = (), observed: Scalars = (), tuned: Scalars = ()) -> None:
        n, own = len(layout.states), len(layout.inputs)
        k = own + len(tuned)
        in_constraints = {s.variable.reference: s.variable for s in observed}
        distinct = in_constraints | {s.variable.reference: s.variable for s in others}
        # What constraints contain comes first, so that it can be read alone; neighbours of one type share a call.
        self.further = tuple(sorted(distinct.values(), key=lambda v: (v.reference not in in_constraints, v.type)))
        sizes = [layout.size(v) for v in self.further]
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(int) + 1 + 2 * n + k
        self._layout = layout
        self._tuned = {s.key: 1 + n + own + i for i, s in enumerate(tuned)}
        references = (v.reference for v in self.further)
        self._further: dict[int, int] = dict(zip(references, starts[:-1].tolist(), strict=True))
        self.values = np.zeros(1 + 2 * n + k + sum(sizes))
        self.time = ctypes.c_double.from_buffer(self.values.data)
        self.x = self.values[1 : 1 + n]
        self.u = self.values[1 + n : 1 + n + k]
        self.rates = self.values[1 + n + k : 1 + 2 * n + k]
        self.n, self.k = n, k
        self.inputs, self.sampled_inputs = _by_moment(layout, self.u[:own])
        if layout.description.interface == "CoSimulation":  # a parameter is set as an input is
            self.inputs += groups_of((s.variable for s in tuned), layout, self.u[own:])
        z = self.values[1 + 2 * n + k :]
        self.readings = groups_of(self.further, layout, z)
        self.observed_readings = groups_of(self.further[: len(in_constraints)], layout, z)
        self.visits: dict[str, Visit] = {}

    @cached_property
    def states(self) -> tuple[Group, ...]:
        """The states as variables, where they are read and written as such (co-simulation)."""
        return groups_of(dict.fromkeys(s.variable for s in self._layout.states), self._layout, self.x)

    @cached_property
    def derivatives(self) -> tuple[Group, ...]:
        """The derivatives of the states as variables."""
        return groups_of(dict.fromkeys(s.variable for s in self._layout.derivatives), self._layout, self.rates)

    def position(self, scalar: ScalarVariable) -> int:
        """Return where ``scalar`` stands in ``values``; it must be a state, an input, a rate, time or one of z."""
        if scalar.key in self._tuned and scalar.variable.is_float:
            return self._tuned[scalar.key]
        role = self._layout.role(scalar)
        if role is not None:
            first = {"state": 1, "input": 1 + self.n, "derivative": 1 + self.n + self.k}[role.kind]
            return first + role.position
        if scalar.variable.causality == "independent":
            return 0
        return self._further[scalar.variable.reference] + scalar.offset


def _by_moment(layout: ScalarLayout, u: FloatArray) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """Return groups of the inputs that may be set at any time, and of those that are set in event mode."""
    stepped = layout.description.interface == "CoSimulation"
    anytime: list[Group] = []
    at_events: list[Group] = []
    begin = 0
    variables = dict.fromkeys(s.variable for s in layout.inputs)
    for free, members in groupby(variables, key=lambda v: stepped or v.is_continuous):
        block = list(members)
        end = begin + sum(layout.size(v) for v in block)
        (anytime if free else at_events).extend(groups_of(block, layout, u[begin:end]))
        begin = end
    return tuple(anytime), tuple(at_events)


SCALARS = {
    "Real": ("Real", ctypes.c_double),
    "Integer": ("Integer", ctypes.c_int),
    "Enumeration": ("Integer", ctypes.c_int),
    "String": ("String", ctypes.c_char_p),
}
"""The types that FMI 1.0 and 2.0 have in common, as :attr:`VariableAccess.types`; a Boolean is of another in each."""


class VariableAccess(ABC):
    """What reads and writes variables, in groups of floating-point numbers or one by one."""

    component: LoadedCode
    types: ClassVar[Mapping[str, tuple[str, Any]]]  # by type of variable: what gets and sets it, and its type in C
    truth: ClassVar[Any]  # the C type of a Boolean

    def _get_or_set(self, verb: str, group: Group) -> Call:
        """Return the call that reads or writes a group, as FMI 1.0 and 2.0 have it."""
        return self.component.bound(f"{verb}Real", group.references_pointer, group.count, group.pointer)

    def read(self, group: Group) -> None:
        """Read a group of variables into its buffer."""
        self.component.run(self._reading(group))

    def write(self, group: Group) -> None:
        """Set a group of variables from its buffer."""
        self.component.run(self._writing(group))

    def calls(self, *, writing: Iterable[Group] = (), reading: Iterable[Group] = ()) -> tuple[Call, ...]:
        """Return the calls that write some groups, then read some, to be made as often as wanted."""
        writes = (call for group in writing for call in self._writing(group))
        return (*writes, *(call for group in reading for call in self._reading(group)))

    def values(self, variable: Variable, size: int) -> list[Any]:
        """Read a variable of any type: all its elements, as Python has them."""
        kind, c_type = self.types[variable.type]
        numbers = (c_type * size)()
        self.component.call(f"Get{kind}", *self._located(variable, numbers))
        return list(numbers)

    def _apply(self, setting: Assignment) -> None:
        """Set one variable of any type."""
        kind, c_type = self.types[setting.variable.type]
        values = (str(v).encode() for v in setting.values) if kind == "String" else setting.values
        self.component.call(f"Set{kind}", *self._located(setting.variable, (c_type * len(setting.values))(*values)))

    def _located(self, variable: Variable, numbers: Any) -> tuple[Any, ...]:
        """Return what a function is told that gets or sets one variable."""
        return (ctypes.c_uint32 * 1)(variable.reference), ctypes.c_size_t(1), numbers

    def _reading(self, group: Group) -> tuple[Call, ...]:
        if not group.reading:
            call = self._get_or_set("Get", group)
            buffer, values = group.buffer, group.values
            group.reading = (call,) if buffer is None else (call, (partial(np.copyto, values, buffer), call[1]))
        return group.reading

    def _writing(self, group: Group) -> tuple[Call, ...]:
        if not group.writing:
            call = self._get_or_set("Set", group)
            buffer, values = group.buffer, group.values
            group.writing = (call,) if buffer is None else ((partial(np.copyto, buffer, values), call[1]), call)
        return group.writing
