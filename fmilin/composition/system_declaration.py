"""The wiring by name (``member.variable``), checked once before any number; units of two ends are converted."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from fmilin.errors import FmilinError, UnknownNameError, UsageError, join_first
from fmilin.fmi.write.description_writer import base_unit
from fmilin.model.interface import Model
from fmilin.signals import Signal

_RATE = re.compile(r"der\((.*)\)", re.DOTALL)


def qualify(member: str, name: str) -> str:
    """Return the name that a member's variable has in the system."""
    rate = _RATE.fullmatch(name)
    return f"der({member}.{rate[1]})" if rate else f"{member}.{name}"


def split(name: str, members: Collection[str], what: str = "a variable of the system") -> tuple[str, str]:
    """Return the member and its own name of a variable: of several members that fit, the one with the longest name."""
    if (rate := _RATE.fullmatch(name)) is not None:
        member, variable = split(rate[1], members, what)
        return member, f"der({variable})"
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        member = ".".join(parts[:count])
        if member in members:
            return member, ".".join(parts[count:])
    names = list(members)
    raise UnknownNameError(
        f"'{name}' is not {what}: write a member, a dot and a name, as in "
        f"'{names[0] if names else 'plant'}.{parts[-1]}'. The members are {join_first(names, 8) or 'none'}.",
        name=name,
    )


def of_member(member: str, signal: Signal, name: str = "") -> Signal:
    """Return a member's signal under its name in the system, or another one."""
    aliases = tuple(
        f"-{qualify(member, alias[1:])}" if alias.startswith("-") else qualify(member, alias)
        for alias in signal.aliases
    )
    full = qualify(member, signal.name)
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
            member, variable = split(name, self._parts)
        except UnknownNameError:
            return None
        return (self._parts[member], variable) if variable in self._parts[member] else None

    def __getitem__(self, name: str) -> float:
        entry = self._entry(name)
        if entry is None:
            raise KeyError(name)
        return entry[0][entry[1]]

    def __contains__(self, name: object) -> bool:
        return self._entry(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (qualify(member, name) for member, values in self._parts.items() for name in values)

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))


@contextmanager
def in_member(name: str) -> Iterator[None]:
    """Let what goes wrong inside say in which member; a crash, too."""
    try:
        yield
    except FmilinError as error:
        prefix = f"In the member '{name}': "
        if not str(error).startswith(prefix):
            error.args = (prefix + str(error), *error.args[1:])
        raise


def parameters_by_member(values: Mapping[str, float], members: Mapping[str, Model]) -> dict[str, dict[str, float]]:
    """Return values by member and own name."""
    by_member: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        member, variable = split(name, members, "a parameter of the system")
        by_member.setdefault(member, {})[variable] = value
    return by_member


Value = float | int | bool | str  # of a parameter, or what a wire carries


class Affine(NamedTuple):
    """``value = factor * other + offset``."""

    factor: float = 1.0
    offset: float = 0.0

    def of(self, value: Value) -> Value:
        """Return what this makes of a number; other values as they are."""
        return value if isinstance(value, (bool, str)) or self == (1.0, 0.0) else self.factor * value + self.offset

    def after(self, first: Affine) -> Affine:
        """Return what ``first`` and then this one make of a value."""
        return Affine(self.factor * first.factor, self.factor * first.offset + self.offset)


NO_CHANGE = Affine()


class AbsoluteUnit(NamedTuple):
    """``factor * value + offset`` in base units of these exponents, in the order kg, m, s, A, K, mol, cd, rad."""

    exponents: tuple[int, ...]
    factor: float = 1.0
    offset: float = 0.0


_MEND = "give the connection a factor and no conversion (convert_units=False, suppressUnitConversion in SSP files)"
_KELVIN = (0, 0, 0, 0, 1, 0, 0, 0)
_WITH_OFFSET = {"degC": AbsoluteUnit(_KELVIN, 1.0, 273.15), "degF": AbsoluteUnit(_KELVIN, 5 / 9, 273.15 - 32 * 5 / 9)}


def conversion(source: str, target: str, where: str, declared: Mapping[str, AbsoluteUnit] | None = None) -> Affine:
    """Return how numbers in unit ``source`` become those in ``target``; ``declared`` units, a file's, go first."""
    if not source or not target or source == target:
        return Affine()
    a, b = _find_unit(source, declared or {}), _find_unit(target, declared or {})
    if a is None or b is None:
        unknown = source if a is None else target
        raise UsageError(
            f"{where}: '{source}' becomes '{target}', and the factor of the unknown unit '{unknown}' is not defined: "
            f"{_MEND}."
        )
    if a.exponents != b.exponents:
        raise UsageError(
            f"{where}: the units do not fit, '{source}' and '{target}' measure different things. Connect others, or "
            f"{_MEND}."
        )
    return Affine(a.factor / b.factor, (a.offset - b.offset) / b.factor)


def _find_unit(unit: str, declared: Mapping[str, AbsoluteUnit]) -> AbsoluteUnit | None:
    if (absolute := declared.get(unit) or _WITH_OFFSET.get(unit)) is not None:
        return absolute
    base = base_unit(unit)
    return None if base is None else AbsoluteUnit(base.exponents, base.factor)


@dataclass(frozen=True, slots=True)
class Connection:
    """``target = factor * source + offset``, after the source was converted to the unit of the target."""

    source: str  #: ``member.output``, any variable that the member shows; the name of an array means all its elements
    target: str  #: ``member.input``
    factor: float = 1.0  #: without a unit of its own where units are converted
    offset: float = 0.0  #: in the unit of the target
    convert_units: bool = True  #: whether units are compared and converted; else the factor stands in for that

    @property
    def label(self) -> str:
        """The connection in words."""
        return f"The connection '{self.source}' -> '{self.target}'"


@dataclass(frozen=True, slots=True)
class WireLink:
    """An input of a member, and the output of a member that feeds it."""

    source: tuple[str, str]
    target: tuple[str, str]
    change: Affine


@dataclass(frozen=True, slots=True)
class Feed:
    """An input of the system, and the inputs of members that it feeds."""

    signal: Signal
    targets: tuple[tuple[tuple[str, str], Affine], ...]


@dataclass(frozen=True, slots=True)
class SystemOutput:
    """An output of the system: a variable of a member, in another unit maybe."""

    name: str
    source: tuple[str, str]
    change: Affine = NO_CHANGE
    unit: str | None = None


def with_parameter_feeds(
    feeds: Sequence[Feed], members: Mapping[str, Model], names: Sequence[str]
) -> tuple[list[Feed], dict[str, Model]]:
    """Return feeds and members with those of ``names`` as inputs that are parameters which a member takes as such."""
    feeds, members = list(feeds), dict(members)
    input_names = {name for feed in feeds for name in (feed.signal.name, *feed.signal.aliases)}
    for name in names:
        member, variable = next((split(name, [m]) for m in members if name.startswith(f"{m}.")), ("", ""))
        model = members.get(member)
        if name in input_names or model is None or not model.moves_parameters or model.inputs.has(variable):
            continue
        with in_member(member):
            model = members[member] = model.with_interface([*model.inputs.names, variable])
        signal = replace(model.inputs[-1], name=name, aliases=(), start=float(model.start.inputs[-1]))
        feeds.append(Feed(signal, (((member, variable), NO_CHANGE),)))
    return feeds, members


def resolve_links(members: Mapping[str, Model], connections: Iterable[Connection | Sequence[object]]) -> list[WireLink]:
    """Return every scalar connection, checked."""
    links: list[WireLink] = []
    for entry in connections:
        connection = entry if isinstance(entry, Connection) else _from_tuple(entry)
        source, target = _ends(members, connection)
        sources = _scalars(members, source, outputs=True)
        targets = _scalars(members, target, outputs=False)
        if len(sources) != len(targets):
            raise UsageError(
                f"{connection.label} joins {len(sources)} elements to {len(targets)}: connected arrays must have the "
                "same size."
            )
        links += [_link(members, connection, a, b) for a, b in zip(sources, targets, strict=True)]
    _reject_second_feeds([(link.target, qualify(*link.source)) for link in links])
    return links


def _from_tuple(entry: object) -> Connection:
    if not isinstance(entry, Sequence) or isinstance(entry, str) or not 2 <= len(entry) <= 4:
        raise UsageError(
            "A connection must be a pair ('plant.y', 'controller.u'), optionally with a factor and an offset, not "
            f"{entry!r}."
        )
    source, target, *numbers = entry
    if not (isinstance(source, str) and isinstance(target, str) and all(isinstance(n, (int, float)) for n in numbers)):
        raise UsageError(f"A connection must be two names, a factor and an offset, not {tuple(entry)!r}.")
    return Connection(source, target, *numbers)


def _ends(members: Mapping[str, Model], connection: Connection) -> tuple[tuple[str, str], tuple[str, str]]:
    try:
        return split(connection.source, members), split(connection.target, members)
    except UnknownNameError as error:
        error.args = (f"{connection.label}: {error}",)
        raise


def _scalars(members: Mapping[str, Model], end: tuple[str, str], *, outputs: bool) -> list[tuple[str, str]]:
    """Return the elements of an array, or the variable itself, by the model's own names."""
    member, name = end
    model = members[member]
    if not outputs:
        names = elements(name, model.inputs.positions)
        with in_member(member):
            return [(member, model.inputs[model.inputs.index_of(n, "an input")].name) for n in names]
    names = [*model.outputs.positions, *(n for n in model.states.positions if not model.outputs.has(n))]
    return [(member, n) for n in elements(name, names)]


def _link(members: Mapping[str, Model], connection: Connection, a: tuple[str, str], b: tuple[str, str]) -> WireLink:
    change = Affine(float(connection.factor), float(connection.offset))
    if connection.convert_units:
        unit = members[b[0]].inputs[members[b[0]].inputs.index_of(b[1])].unit
        change = change.after(conversion(get_signal(members[a[0]], a).unit, unit, connection.label))
    else:
        get_signal(members[a[0]], a)
    return WireLink(a, b, change)


def get_signal(model: Model, variable: tuple[str, str]) -> Signal:
    """Return what a member says of one of its variables."""
    member, name = variable
    for signals in (model.outputs, model.states):
        if signals.has(name):
            return signals[signals.positions[name]]
    with in_member(member):
        return model.with_interface(None, [name]).outputs[0]


def resolve_delays(members: Mapping[str, Model], name: str) -> list[tuple[str, str]]:
    """Return the inputs of members that a name denotes: one, or all elements of an array."""
    return _scalars(members, split(name, members, "an input of a member"), outputs=False)


def _reject_second_feeds(fed: Iterable[tuple[tuple[str, str], str]]) -> None:
    sources: dict[tuple[str, str], str] = {}
    for target, source in fed:
        if target in sources:
            raise UsageError(
                f"The input '{qualify(*target)}' is fed twice, by '{sources[target]}' and by '{source}'. Keep one "
                "connection: to add signals, insert a member that sums them."
            )
        sources[target] = source


def resolve_inputs(
    members: Mapping[str, Model], links: Sequence[WireLink], requested: Sequence[str] | Mapping[str, object] | None
) -> list[Feed]:
    """Return the system's inputs, by default what nothing feeds; a mapping renames or joins members' inputs."""
    taken = {link.target: qualify(*link.source) for link in links}
    if requested is None:
        free = [(m, s.name) for m, model in members.items() for s in model.inputs if (m, s.name) not in taken]
        requested = {qualify(*target): qualify(*target) for target in free}
    elif not isinstance(requested, Mapping):
        requested = {name: name for name in _require_names("inputs", requested)}
    feeds = []
    for name, value in requested.items():
        texts = [value] if isinstance(value, str) else _require_names("inputs", value)
        ends = [_scalars(members, split(text, members, "an input of the system"), outputs=False) for text in texts]
        if len({len(end) for end in ends}) > 1:
            raise UsageError(f"The input '{name}' feeds arrays of different sizes. Give each an input of its own.")
        for scalars in zip(*ends, strict=True):
            suffix = scalars[0][1][len(split(texts[0], members)[1]) :] if len(ends[0]) > 1 else ""
            label = qualify(*scalars[0]) if name == texts[0] else f"{name}{suffix}"
            feeds.append(_feed(members, label, scalars))
    _reject_second_feeds([*taken.items(), *((t, feed.signal.name) for feed in feeds for t, _ in feed.targets)])
    return feeds


def _feed(members: Mapping[str, Model], name: str, targets: Sequence[tuple[str, str]]) -> Feed:
    signals = [members[m].inputs[members[m].inputs.index_of(variable)] for m, variable in targets]
    first = signals[0]
    aliases = () if name == qualify(*targets[0]) else (qualify(*targets[0]),)
    signal = Signal(name, first.unit, first.nominal, first.start, first.description, aliases)
    changes = [conversion(first.unit, s.unit, f"The input '{name}'") for s in signals]
    return Feed(signal, tuple(zip(targets, changes, strict=True)))


def _require_names(what: str, names: object) -> list[str]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise UsageError(f"'{what}' must be a sequence of names: write {what}=['...'] even for a single one.")
    listed = list(names)
    if not all(isinstance(n, str) for n in listed):
        raise UsageError(f"'{what}' must be a sequence of names, not {listed!r}.")
    return listed


def resolve_outputs(
    members: Mapping[str, Model], chosen: Sequence[str] | Mapping[str, str] | None
) -> list[SystemOutput]:
    """Return the outputs of the system; all outputs of its members where none are named."""
    if chosen is None:
        return [SystemOutput(qualify(m, s.name), (m, s.name)) for m, model in members.items() for s in model.outputs]
    pairs = (
        chosen.items() if isinstance(chosen, Mapping) else [(name, name) for name in _require_names("outputs", chosen)]
    )
    outputs = []
    for name, text in pairs:
        end = split(text, members, "an output of the system")
        scalars = _scalars(members, end, outputs=True)
        for scalar in scalars:
            index = scalar[1][len(end[1]) :] if len(scalars) > 1 else ""
            outputs.append(SystemOutput(qualify(*scalar) if name == text else name + index, scalar))
    return outputs


def require_rates_of_prescribed_motions(members: Mapping[str, Model], links: Sequence[WireLink]) -> None:
    """Raise a UsageError if a connection ends at an input that prescribes a motion, and none at its time derivative.

    The member's constraints contain that derivative. Left at its start value it would contradict the input, and the
    linear model would lack the effect of the input on states that follow it at once.
    """
    targets = {link.target for link in links}
    for name, model in members.items():
        inputs, rates = model.inputs, model.inputs.rates
        chain = list(model.constraints.prescribing)
        for j in chain:
            if (rate := rates.get(j)) is None:
                continue
            chain.append(rate)  # its own derivative is needed where that is an input, too
            first, second = (name, inputs.names[j]), (name, inputs.names[rate])
            if (first in targets) != (second in targets):
                raise UsageError(
                    f"'{qualify(*first)}' prescribes a motion, and its time derivative '{qualify(*second)}' is an "
                    "input of its own: connections must end at both or at neither. Connect the derivative too, or "
                    "write the member so that the variable that follows the input at once is algebraic."
                )
