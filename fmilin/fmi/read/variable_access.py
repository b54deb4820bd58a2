"""Variables of an FMU's component, read and written by value reference."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from fmilin.fmi.read.buffers import Group
from fmilin.fmi.read.component import Call, Component
from fmilin.fmi.read.description import Variable
from fmilin.fmi.read.settings import Setting

__all__ = ["VariableAccess"]


class VariableAccess(ABC):
    """What reads and writes variables, in groups of floating-point numbers or one by one."""

    component: Component
    types: ClassVar[Mapping[str, tuple[str, Any]]]
    """By type of variable: what the functions that get and set it are called, and its type in C."""
    truth: ClassVar[Any]
    """The C type of a Boolean."""

    @abstractmethod
    def _get_or_set(self, verb: str, group: Group) -> Call:
        """Return the call that reads or writes a group."""

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
        found = (c_type * size)()
        self.component.call(f"Get{kind}", *self._located(variable, found))
        return list(found)

    def _apply(self, setting: Setting) -> None:
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
            group.reading = (call,) if group.buffer is None else (call, (group.after_reading, call[1]))
        return group.reading

    def _writing(self, group: Group) -> tuple[Call, ...]:
        if not group.writing:
            call = self._get_or_set("Set", group)
            group.writing = (call,) if group.buffer is None else ((group.before_writing, call[1]), call)
        return group.writing
