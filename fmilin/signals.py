"""Names, units and scales of the quantities that vectors and matrices are made of."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import UnknownNameError, UsageError
from fmilin.support.dataclass import dataclass
from fmilin.support.deprecation import DeprecatedAlias
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

FloatArray = NDArray[np.float64]
RealArray = NDArray[np.floating[Any] | np.integer[Any]]
"""An array of real numbers of any precision, as users make them: FloatArray is what fmilin returns."""
RealArrayLike = float | Sequence[float] | Sequence[Sequence[float]] | Sequence[RealArray] | RealArray
"""Numbers of which numpy.asarray makes an array of doubles; unlike numpy's ArrayLike no text and no complex numbers."""
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Signal:
    """One scalar quantity of a model."""

    name: str  #: as written in the model, ``pin.x``, ``q[1]``, ``der(v)``
    unit: str = ""  #: as written in the model (``"rad/s"``); empty when unknown
    nominal: float | None = None  #: typical size in its unit, positive; None where the model does not say, or says 0
    start: float = 0.0  #: initial value, in ``unit``
    description: str = ""  #: the model's own words
    aliases: tuple[str, ...] = ()  #: other names for the same quantity; ``-b`` says that ``b`` is its negative
    #: by how much an angle jumps where it wraps, in ``unit``: 2 pi or 360; None where it is not known to wrap
    turn: float | None = None

    def with_start(self, value: float) -> Signal:
        """Return the same signal with another start ``value``, in its unit."""
        if value == self.start:
            return self
        return Signal(self.name, self.unit, self.nominal, value, self.description, self.aliases, self.turn)

    starting_at = DeprecatedAlias("with_start")


class Signals(TableRepr, Sequence[Signal]):
    """The signals of one vector, in the model's order.

    >>> states = Signals([Signal("phi", "rad"), Signal("w", "rad/s")])
    >>> states.names
    ('phi', 'w')
    >>> states.index_of("w")
    1
    """

    _attributes = ".names, .units; signals[k] is one of them"

    __slots__ = ("__dict__", "_items")

    @implemented_in("fmilin.report.result_tables:show_signals")
    def _print_table(self, page: Sheet) -> None: ...

    def __init__(self, items: Iterable[Signal | str] = ()) -> None:
        if isinstance(items, str | bytes | type) or not isinstance(items, Iterable):
            raise UsageError(f"Signals must be a list of names, not of the type '{type(items).__name__}': write ['x'].")
        self._items = tuple(Signal(item) if isinstance(item, str) else item for item in items)
        if other := [item for item in self._items if not isinstance(item, Signal)]:
            raise UsageError(f"The name of a signal must be a text, not of the type '{type(other[0]).__name__}'.")
        if len(self.positions_of_own_names) != len(self._items):
            twice = sorted(name for name, count in Counter(s.name for s in self._items).items() if count > 1)
            raise UsageError(f"The same name denotes several signals: {', '.join(twice)}.")

    @cached_property
    def positions_of_own_names(self) -> dict[str, int]:
        """Position by name, aliases left out."""
        return {s.name: i for i, s in enumerate(self._items)}

    @cached_property
    def rates(self) -> dict[int, int]:
        """Position of a signal to that of its time derivative: of u to ``der(u)``; of a motion u to ``u.v``, ``u.a``.

        >>> Signals([Signal(name) for name in ("z.v", "u", "z", "der(u)", "z.a")]).rates
        {1: 3, 2: 0, 0: 4}
        """
        positions = self.positions_of_own_names
        rates = {j: positions[f"der({name})"] for name, j in positions.items() if f"der({name})" in positions}
        for name, j in positions.items():
            if (v := positions.get(f"{name}.v")) is not None and (a := positions.get(f"{name}.a")) is not None:
                rates |= {j: v, v: a}
        return rates

    @cached_property
    def positions(self) -> dict[str, int]:
        """Position by name or alias."""
        aliases = {alias: i for i, s in enumerate(self._items) for alias in s.aliases if not alias.startswith("-")}
        return aliases | self.positions_of_own_names

    @cached_property
    def positions_of_negatives(self) -> dict[str, int]:
        """Position by the name of the negative: ``b`` of a signal with the alias ``-b``."""
        negatives = {alias[1:]: i for i, s in enumerate(self._items) for alias in s.aliases if alias.startswith("-")}
        return {name: i for name, i in negatives.items() if name not in self.positions}

    def find_signed(self, name: str) -> tuple[int, float] | None:
        """Return the position of ``name`` and 1.0, or of the signal of which it is the negative and -1.0.

        >>> Signals([Signal("a", aliases=("-b",))]).find_signed("b")
        (0, -1.0)
        """
        if name in self.positions:
            return self.positions[name], 1.0
        return (self.positions_of_negatives[name], -1.0) if name in self.positions_of_negatives else None

    @overload
    def __getitem__(self, key: int) -> Signal: ...
    @overload
    def __getitem__(self, key: slice) -> Signals: ...
    def __getitem__(self, key: int | slice) -> Signal | Signals:
        return Signals(self._items[key]) if isinstance(key, slice) else self._items[key]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Signal]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signals) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def has(self, name: str) -> bool:
        """Whether ``name`` is one of these signals or an alias of one."""
        return name in self.positions

    def index_of(self, name: str, what: str = "a known signal") -> int:
        """Return the position of ``name``, which should be ``what``: words for the message.

        Raises
        ------
        UnknownNameError
            With the nearest names, when there is no such signal.
        UsageError
            When the name is not a text.
        """
        try:
            return self.positions[name]
        except KeyError:
            if name in self.positions_of_negatives:
                positive_name = self.names[self.positions_of_negatives[name]]
                text = (
                    f"'{name}' is the negative of '{positive_name}', and its name cannot be used here. "
                    f"Name '{positive_name}' instead."
                )
                raise UnknownNameError(text, name=name, suggestions=(positive_name,)) from None
            raise UnknownNameError.among(name, self.positions, what) from None
        except TypeError:  # a list or a mapping, which has no hash
            raise UsageError(f"A name must be a text, not of the type '{type(name).__name__}'.") from None

    def select(self, indices: Iterable[int]) -> Signals:
        """Return the signals at ``indices``, in that order."""
        return Signals(self._items[i] for i in indices)

    def with_start(self, values: Sequence[float]) -> Signals:
        """Return the same signals with other start ``values``, in their units; itself if nothing changes."""
        items = tuple(
            [s if s.start == value else s.with_start(value) for s, value in zip(self._items, values, strict=True)]
        )
        if all(map(operator.is_, items, self._items)):
            return self
        other = Signals.__new__(Signals)
        vars(other).update(vars(self))  # names, units and positions are the same
        vars(other).pop("_starts", None)
        other._items = items
        return other

    starting_at = DeprecatedAlias("with_start")

    def with_turns(self, turns: Sequence[float | None]) -> Signals:
        """Return the signals with ``turns`` in their order, None for what does not wrap; itself if nothing changes."""
        if all(s.turn == turn for s, turn in zip(self._items, turns, strict=True)):
            return self
        return Signals(replace(s, turn=turn) for s, turn in zip(self._items, turns, strict=True))

    @property
    def turns(self) -> FloatArray:
        """Turns of the signals that wrap, 0 for the others, shape (n,)."""
        return np.array([s.turn or 0.0 for s in self._items], dtype=np.float64)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(s.name for s in self._items)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """The units, in order; empty where unknown."""
        return tuple(s.unit for s in self._items)

    @property
    def starts(self) -> FloatArray:
        """Start values, shape (n,)."""
        return self._starts.copy()

    @cached_property
    def _starts(self) -> FloatArray:
        """Start values, not to be written to."""
        return np.array([s.start for s in self._items], dtype=np.float64)

    def scales(self, values: FloatArray | None = None) -> FloatArray:
        """Return a positive size for each signal, shape (n,): its nominal, else ``max(|v|, 1)`` of ``values``, (n,)."""
        if values is None:
            values = self._starts
        usable, declared, count = self._nominals
        if count == len(usable) and values.ndim == 1:
            return declared.copy()
        sizes = np.minimum(np.fmax(np.abs(values), 1.0), LARGEST)
        return np.where(usable, declared, sizes) if count else sizes

    @cached_property
    def _nominals(self) -> tuple[NDArray[np.bool_], FloatArray, int]:
        """Which nominal values are usable, all of them, each (n,), and how many are usable."""
        declared = np.array([s.nominal if s.nominal is not None else np.nan for s in self._items], dtype=np.float64)
        usable = np.isfinite(declared) & (declared > 0)
        return usable, declared, int(np.count_nonzero(usable))


def wrap_differences(differences: FloatArray, turns: FloatArray) -> FloatArray:
    """Return differences of angles taken into (-turn/2, turn/2]; where ``turns`` is 0 they stay as they are.

    >>> wrap_differences(np.array([6.0, 6.0]), np.array([2 * np.pi, 0.0])).round(6)
    array([-0.283185,  6.      ])
    """
    wraps = turns > 0
    if not wraps.any():
        return differences
    sizes = np.where(wraps, turns, 1.0)
    whole_turns = np.ceil(differences / sizes - 0.5)
    return np.asarray(np.where(wraps, differences - sizes * whole_turns, differences))


def as_numbers(value: object, what: str) -> FloatArray:
    """Return numbers as an array; reject text and other objects, as the value of ``what``."""
    try:
        array = np.asarray(value)
        other = array.dtype.kind in "USc"  # "0.1" would be converted, and so would None
        if not other and not (array.dtype.kind == "O" and None in array.ravel().tolist()):
            return array.astype(np.float64)
    except OverflowError:
        raise UsageError(f"{what} is too large for a floating-point number.") from None
    except (TypeError, ValueError):
        pass
    raise UsageError(f"{what} is {value!r}: a number is needed. Give a finite one instead.")


def limits_by_name(limits: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
    """Return limits as pairs of numbers, the smaller one first."""
    pairs = {name: as_numbers(pair, f"One of the limits of '{name}'").ravel() for name, pair in limits.items()}
    for name, pair in pairs.items():
        if not (len(pair) == 2 and pair[0] < pair[1]):
            raise UsageError(
                f"The limits of '{name}' are {' and '.join(f'{end:g}' for end in pair)}: the first must be the "
                "smaller one."
            )
    return {name: (float(pair[0]), float(pair[1])) for name, pair in pairs.items()}


def rate_unit(unit: str) -> str:
    """Return the unit of a time derivative: ``m/s`` for ``m``, ``m/s2`` for ``m/s``; empty for none."""
    if not unit:
        return ""
    match = re.fullmatch(r"(?P<start>.*/s)(?P<power>\d*)", unit)
    return f"{match['start']}{int(match['power'] or 1) + 1}" if match else f"{unit}/s"


# '/' and '%' are marks of the code itself; ':' makes a range of a name; what is below ' ' would break a printout.
_UNSAFE = re.compile(r"^-|[./%:\x00-\x1f]")
_MARKED = re.compile(r"/|%([0-9A-F]{2})")


def legal_name(name: str) -> str:
    """Return ``name`` as python-control accepts it, which rejects '.' and reads a leading '-' as a change of sign."""
    return _UNSAFE.sub(lambda m: "/" if m.group() == "." else f"%{ord(m.group()):02X}", name)


def original_name(name: str) -> str:
    """Return the model's own name of a signal, state or system that ``legal_name`` made legal."""
    return _MARKED.sub(lambda m: "." if m.group() == "/" else chr(int(m.group(1), 16)), name)
