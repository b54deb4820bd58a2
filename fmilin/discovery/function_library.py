"""Functions of the states among which invariants are searched for: monomials, times a sine or cosine of angles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, combinations_with_replacement, islice, product
from math import pi
from typing import Literal

import numpy as np

from fmilin.constraints.expressions import name_in_expression
from fmilin.discovery.states import StateKinds
from fmilin.signals import FloatArray

MAX_TERMS = 2_200  # A library with more of them is not tried: its singular values would take minutes
LONGEST_FRACTION = 720  # denominator of a factor that is written as a fraction
MAX_ANGLES = 5  # of sums of more angles than these there are too many
Harmonic = tuple[Literal["", "cos", "sin"], tuple[tuple[int, float], ...]]
"""The function, and (state, its factor: +1 or -1, 1/2 of half an angle, ...) of each angle in its argument."""

ONE: Harmonic = ("", ())


@dataclass(frozen=True, slots=True)
class Term:
    """x_i^p x_j^q ... times 1, cos(k x) or sin(k x)."""

    powers: tuple[tuple[int, int], ...]  # states and their exponents, in the order of the states
    harmonic: Harmonic = ONE

    @property
    def states(self) -> set[int]:
        """The states in it."""
        return {i for i, _ in (*self.powers, *self.harmonic[1])}

    def degree(self, among: Iterable[int] | None = None) -> int:
        """Return the sum of the exponents, of all states or of some."""
        chosen = None if among is None else set(among)
        return sum(p for i, p in self.powers if chosen is None or i in chosen)

    @property
    def complexity(self) -> tuple[int, int, int]:
        """A measure of how hard a term is to read: its factors, then its angles."""
        return self.degree() + len(self.harmonic[1]), len(self.harmonic[1]), self.degree()

    def text(self, names: Sequence[str]) -> str:
        """Return the term in the grammar of expressions; empty for the constant 1."""
        factors = [f"{name_in_expression(names[i])}{'' if p == 1 else f'^{p}'}" for i, p in self.powers]
        function, angles = self.harmonic
        if function:
            parts = [("-" if k < 0 else "+", _factor_text(abs(k)) + name_in_expression(names[i])) for i, k in angles]
            argument = "".join(f" {sign} {part}" for sign, part in parts)
            factors.append(f"{function}({argument.removeprefix(' + ').strip()})")
        return "*".join(factors)


def _factor_text(factor: float) -> str:
    """Return a positive factor with its sign of multiplication, in the grammar of expressions; empty for 1."""
    if factor == 1:
        return ""
    for unit, name in ((1.0, ""), (pi / 180, "pi/180*"), (180 / pi, "180/pi*")):
        count = Fraction(factor / unit).limit_denominator(LONGEST_FRACTION)
        if abs(float(count) * unit - factor) <= 1e-15 * factor:
            number = f"{count.numerator}*" if count.denominator == 1 else f"{count.numerator}/{count.denominator}*"
            return name if name and count == 1 else number + name
    return f"{factor!r}*"


class Library:
    """K terms, evaluated at many points at once."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self.terms = tuple(dict.fromkeys(terms))

    def __len__(self) -> int:
        return len(self.terms)

    def __getitem__(self, columns: Sequence[int]) -> Library:
        return Library(self.terms[i] for i in columns)

    def without(self, states: Iterable[int]) -> Library:
        """Return the terms in which none of these states stands."""
        excluded = set(states)
        return Library(t for t in self.terms if not t.states & excluded)

    def values(self, x: FloatArray) -> FloatArray:
        """Return phi at points x (m, N), shape (m, K)."""
        return np.column_stack([_value(t, x) for t in self.terms]) if self.terms else np.empty((len(x), 0))

    def rates(self, x: FloatArray, f: FloatArray) -> FloatArray:
        """Return Dphi f at points x (m, N) for rates f (m, N), shape (m, K)."""
        rates = np.zeros((len(x), len(self)))
        for column, term in enumerate(self.terms):
            for state, derivative in _partial_derivatives(term, x):
                rates[:, column] += derivative * f[:, state]
        return rates

    def gradients(self, x: FloatArray) -> FloatArray:
        """Return Dphi at points x (m, N), shape (m, K, N)."""
        gradients = np.zeros((len(x), len(self), x.shape[1]))
        for column, term in enumerate(self.terms):
            for state, derivative in _partial_derivatives(term, x):
                gradients[:, column, state] += derivative
        return gradients


def _monomial(powers: Iterable[tuple[int, int]], x: FloatArray) -> FloatArray:
    value = np.ones(len(x))
    for i, p in powers:
        value = value * x[:, i] ** p
    return value


def _trigonometric(harmonic: Harmonic, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the function of the angles, and its slope along their sum."""
    function, angles = harmonic
    if not function:
        return np.ones(len(x)), np.zeros(len(x))
    argument = sum((k * x[:, i] for i, k in angles), np.zeros(len(x)))
    sine, cosine = np.sin(argument), np.cos(argument)
    return (cosine, -sine) if function == "cos" else (sine, cosine)


def _value(term: Term, x: FloatArray) -> FloatArray:
    return _monomial(term.powers, x) * _trigonometric(term.harmonic, x)[0]


def _partial_derivatives(term: Term, x: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    value, angle_derivative = _trigonometric(term.harmonic, x)
    for i, p in term.powers:
        remaining_powers = [(j, q) for j, q in term.powers if j != i]
        yield i, p * x[:, i] ** (p - 1) * _monomial(remaining_powers, x) * value
    monomial = _monomial(term.powers, x)
    for i, k in term.harmonic[1]:
        yield i, k * monomial * angle_derivative


def _monomials(states: Sequence[int], degree: int) -> list[tuple[tuple[int, int], ...]]:
    combinations_of_states = chain.from_iterable(combinations_with_replacement(states, d) for d in range(degree + 1))
    return [
        tuple((i, combination.count(i)) for i in dict.fromkeys(combination)) for combination in combinations_of_states
    ]


def _products(
    states: Sequence[int], angles: Sequence[int], degree: int, *, harmonics: int | None = None
) -> Iterator[Term]:
    """Yield all products of up to ``degree`` factors; an angle itself stands alone, or with speeds only."""
    plain = [i for i in states if i not in angles]
    order = degree if harmonics is None else harmonics
    # Cos and sin of the angles, and of sums and differences of up to ``order`` different ones.
    harmonic_terms: list[Harmonic] = [ONE]
    for size in range(1, min(order, len(angles)) + 1):
        for angle_subset in combinations(angles, size):
            for signs in product((1, -1), repeat=size - 1):
                argument = tuple(zip(angle_subset, (1, *signs), strict=True))
                harmonic_terms += [("cos", argument), ("sin", argument)]
    for powers in _monomials(plain, degree):
        used = sum(p for _, p in powers)
        for harmonic in harmonic_terms:
            if harmonics is not None or used + len(harmonic[1]) <= degree:
                yield Term(powers, harmonic)
    for i in angles:
        yield Term(((i, 1),))


def linear_library(states: Iterable[int]) -> Library:
    """Return the states themselves: what gears and ropes tie together need not hang together otherwise."""
    return Library(Term(((i, 1),)) for i in sorted(states))


def squares_library(states: Iterable[int]) -> Library:
    """Return the squares of the states: the lengths of unit vectors."""
    return Library(Term(((i, 2),)) for i in sorted(states))


def first_library(group: Sequence[int], kinds: StateKinds) -> Library:
    """Return all products of up to two factors: lengths of rods, norms of quaternions, energies of plain form."""
    return _limit_size(_products(group, [i for i in group if i in kinds.angles], 2))


def further_libraries(group: Sequence[int], kinds: StateKinds) -> Iterator[Library]:
    """Yield larger libraries of positions, and of positions times one speed: no constraint is curved in the speeds."""
    angles = [i for i in group if i in kinds.angles]
    speeds = [i for i in group if i in kinds.speeds]
    positions = [i for i in group if i not in kinds.speeds]
    products = list(islice(_products(positions, angles, 2), MAX_TERMS + 1))
    cubic = _with_speeds(_products(positions, angles, 3), products, speeds)
    yield cubic if len(cubic) else _with_speeds(products, products, speeds)
    order = 1
    for degree in (1, 0):
        for larger in range(min(MAX_ANGLES, len(angles)), order, -1):
            at_rest = list(islice(_products(positions, angles, degree, harmonics=larger), MAX_TERMS + 1))
            library = _with_speeds(at_rest, at_rest, speeds)
            if len(library):
                order = larger
                yield library
                break


def _with_speeds(at_rest: Iterable[Term], factors: Iterable[Term], speeds: Sequence[int]) -> Library:
    moving = (Term(tuple(sorted((*t.powers, (v, 1)))), t.harmonic) for t in factors for v in speeds)
    return _limit_size(chain(at_rest, moving))


def _limit_size(terms: Iterable[Term]) -> Library:
    """Return the library without the constant; an empty one where there are too many terms."""
    moving = list(islice((term for term in terms if term.states), MAX_TERMS + 1))
    return Library(moving if len(moving) <= MAX_TERMS else ())
