"""Variables that equations set equal, ``a = b`` and ``a = -b``: other names of a state or input, and its start value.

Of several start values in such a class one counts: ``fixed`` first, then those that are written, those in an enclosing
class before those inside a component, then those that are filled in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from fmilin_modelica.declarations import LIBRARY_RANK
from fmilin_modelica.entries import Entry

__all__ = ["Merged", "SignedClasses", "WrittenStart", "equal_pair", "merge_aliases"]


@dataclass(frozen=True)
class WrittenStart:
    """A start value that the model writes, of a state: what it becomes is to be compared with it."""

    name: str  # as the model writes it: of the state or of an alias
    value: float
    state: int
    sign: float  # of the state in the alias


@dataclass(frozen=True)
class Merged:
    """States and inputs with their aliases, and the start values that count."""

    states: list[Entry]
    inputs: list[Entry]
    settled: frozenset[str]  # fixed algebraic variables that are fixed as a state now
    written: list[WrittenStart]


def merge_aliases(
    residuals: Iterable[Any], states: Sequence[Entry], algebraic: Sequence[Entry], inputs: Sequence[Entry]
) -> Merged:
    """Return states and inputs with the names and start values of all variables that equations set equal to them."""
    classes = SignedClasses()
    for residual in residuals:
        pair = equal_pair(residual)
        if pair is not None:
            classes.join(*pair)
    members: dict[int, list[tuple[Entry, float]]] = {}
    for entry in algebraic:
        root, sign = classes.root_of(entry.symbol.__hash__())
        members.setdefault(root, []).append((entry, sign))
    groups: dict[int, list[tuple[Entry, float]]] = {}
    for entry in states:
        root, sign = classes.root_of(entry.symbol.__hash__())
        groups.setdefault(root, []).append((entry, sign))
    settled: set[str] = set()
    written: list[WrittenStart] = []
    merged_states, named = [], set()
    for k, entry in enumerate(states):
        root, sign = classes.root_of(entry.symbol.__hash__())
        others = members.get(root, [])
        best, its_sign = min([(entry, sign), *groups[root], *others], key=lambda pair: _preference(pair[0]))
        merged = entry
        if _preference(best) < _preference(entry):
            value = best.start * sign * its_sign
            merged = replace(entry, start=value, fixed=best.fixed, rank=best.rank)
            if best.fixed and best in [other for other, _ in others]:
                settled.add(best.name)
        written += _written_starts(k, entry, 1.0)
        if root not in named:  # of several states the first one has the names
            named.add(root)
            merged = replace(merged, aliases=_list_signed_names(others, sign))
            for other, its in others:
                written += _written_starts(k, other, sign * its)
        merged_states.append(merged)
    merged_inputs = []
    for entry in inputs:
        root, sign = classes.root_of(entry.symbol.__hash__())
        taken = root in named
        names = () if taken else _list_signed_names(members.get(root, []), sign)
        merged_inputs.append(replace(entry, aliases=names))
        named.add(root)
    return Merged(merged_states, merged_inputs, frozenset(settled), written)


def _list_signed_names(others: Sequence[tuple[Entry, float]], sign: float) -> tuple[str, ...]:
    """Return the names of the quantity, and those of its negative with a minus sign."""
    return tuple(other.name if its == sign else f"-{other.name}" for other, its in others)


def _preference(entry: Entry) -> tuple[bool, float]:
    """Return how much the start value of an entry counts, the smallest most."""
    return not entry.fixed, float("inf") if entry.rank is None else entry.rank


def _written_starts(state: int, entry: Entry, sign: float) -> list[WrittenStart]:
    """Return the start value of an entry, where the model itself writes it or it says more than 0."""
    if entry.rank is None or (entry.rank >= LIBRARY_RANK and entry.start == 0.0):
        return []
    return [WrittenStart(entry.name, entry.start, state, sign)]


def equal_pair(residual: Any) -> tuple[int, int, float] | None:
    """Return two symbols, and s = +-1, where a residual says a = s b."""
    expression = residual
    while expression.n_dep() == 1 and expression.is_op(ca.OP_NEG):
        expression = expression.dep(0)
    if expression.n_dep() != 2:
        return None
    is_sum, is_difference = expression.is_op(ca.OP_ADD), expression.is_op(ca.OP_SUB)
    if not (is_sum or is_difference):
        return None
    sign = 1.0 if is_difference else -1.0
    sides = []
    for k in range(2):
        side = expression.dep(k)
        while side.n_dep() == 1 and side.is_op(ca.OP_NEG):
            side, sign = side.dep(0), -sign
        if not side.is_symbolic():
            return None
        sides.append(side.__hash__())
    return sides[0], sides[1], sign


class SignedClasses:
    """Classes of symbols that are equal up to a sign."""

    def __init__(self) -> None:
        self._parent: dict[int, tuple[int, float]] = {}

    def root_of(self, symbol: int) -> tuple[int, float]:
        """Return the symbol that stands for the class, and the sign between both."""
        sign = 1.0
        while symbol in self._parent:
            symbol, its_sign = self._parent[symbol]
            sign *= its_sign
        return symbol, sign

    def join(self, one: int, other: int, sign: float) -> None:
        """Note that ``one`` is ``sign`` times ``other``."""
        (root, its_sign), (other_root, other_sign) = self.root_of(one), self.root_of(other)
        if root != other_root:
            self._parent[root] = (other_root, its_sign * sign * other_sign)
