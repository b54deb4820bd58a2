"""Names of a connected system: ``member.variable``, ``der(member.state)``; and back."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from fmilin.ground.errors import FmilinError, UnknownNameError
from fmilin.ground.sandbox.watchdog import belong_to
from fmilin.ground.signals import Signal
from fmilin.model.interface import Model

_RATE = re.compile(r"der\((.*)\)", re.DOTALL)


def qualified(member: str, name: str) -> str:
    """Return the name that a member's variable has in the system.

    >>> qualified("plant", "pin.x"), qualified("plant", "der(v)")
    ('plant.pin.x', 'der(plant.v)')
    """
    rate = _RATE.fullmatch(name)
    return f"der({member}.{rate[1]})" if rate else f"{member}.{name}"


def split(name: str, members: Collection[str], what: str = "a variable of the system") -> tuple[str, str]:
    """Return the member and its own name of a variable: of several members that fit, the one with the longest name.

    >>> split("der(a.b.x)", ["a", "a.b"])
    ('a.b', 'der(x)')
    """
    if (rate := _RATE.fullmatch(name)) is not None:
        member, own = split(rate[1], members, what)
        return member, f"der({own})"
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        member = ".".join(parts[:count])
        if member in members:
            return member, ".".join(parts[count:])
    names = list(members)
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise UnknownNameError(
        f"'{name}' is not {what}: its name begins with a member and a dot, as in '{names[0] if names else 'plant'}."
        f"{parts[-1]}'. The members are {shown or 'none'}.",
        name=name,
    )


def of_member(member: str, signal: Signal, name: str = "") -> Signal:
    """Return a member's signal under its name in the system, or another one."""
    aliases = tuple(qualified(member, alias) for alias in signal.aliases)
    full = qualified(member, signal.name)
    if name and name != full:
        aliases = (full, *aliases)
    return replace(signal, name=name or full, aliases=aliases)


def elements(name: str, names: Iterable[str]) -> list[str]:
    """Return the scalars that a name stands for: itself, or ``name[1]``, ``name[2]``, ... in the model's order."""
    names = list(names)
    if name in names:
        return [name]
    return [k for k in names if k.startswith(f"{name}[") and k.endswith("]")] or [name]


class Prefixed(Mapping[str, float]):
    """The values of all members by their names in the system, read when they are asked for."""

    def __init__(self, parts: Mapping[str, Mapping[str, float]]) -> None:
        self._parts = parts

    def _entry(self, name: object) -> tuple[Mapping[str, float], str] | None:
        if not isinstance(name, str):
            return None
        try:
            member, own = split(name, self._parts)
        except UnknownNameError:
            return None
        return (self._parts[member], own) if own in self._parts[member] else None

    def __getitem__(self, name: str) -> float:
        entry = self._entry(name)
        if entry is None:
            raise KeyError(name)
        return entry[0][entry[1]]

    def __contains__(self, name: object) -> bool:
        return self._entry(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (qualified(member, name) for member, values in self._parts.items() for name in values)

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))


@contextmanager
def in_member(name: str) -> Iterator[None]:
    """Let what goes wrong inside say in which member; a crash, too."""
    belong_to(f"the member '{name}'")
    try:
        yield
    except FmilinError as error:
        prefix = f"In the member '{name}': "
        if not str(error).startswith(prefix):
            error.args = (prefix + str(error), *error.args[1:])
        raise
    finally:
        belong_to("")


def parameters_by_member(values: Mapping[str, float], members: Mapping[str, Model]) -> dict[str, dict[str, float]]:
    """Return values by member and own name."""
    by_member: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        member, own = split(name, members, "a parameter of the system")
        by_member.setdefault(member, {})[own] = value
    return by_member
