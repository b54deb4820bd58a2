"""A function of the states that stays what it is, and how a person would write it down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.expressions import name_in_expression
from fmilin.discovery.function_library import Library, Term
from fmilin.signals import FloatArray

SIMPLE_NUMBER_TOLERANCE = 1e-9  # relative difference at which a number is the simple one
MAX_DIGITS = 7  # of a chosen decimal; numbers with more are written with all digits
MAX_PARAMETERS = 60  # of more than these, products are not searched for: one of them fits by chance


class Numbers:
    """Writes numbers; a parameter is not guessed if another parameter, an integer or a half has its value, too."""

    def __init__(self, parameters: Mapping[str, float], accuracy: float = SIMPLE_NUMBER_TOLERANCE) -> None:
        self._accuracy = max(accuracy, SIMPLE_NUMBER_TOLERANCE)
        usable = {n: abs(v) for n, v in parameters.items() if v and isfinite(v) and not self._simple(abs(v), 2)[0]}
        self._values_by_text: dict[str, float] = {}
        for name, value in usable.items():
            signed = name_in_expression(name)
            self._values_by_text[signed if parameters[name] > 0 else f"(-{signed})"] = value
        single = self._single = dict(self._values_by_text)
        for name, value in single.items():
            self._values_by_text[f"{name}^2"] = value * value
        if len(single) <= MAX_PARAMETERS:
            pairs = [(a, b) for a in single for b in single if a != b]
            self._values_by_text |= {f"{a}/{b}": single[a] / single[b] for a, b in pairs}
            self._values_by_text |= {f"{a}*{b}": single[a] * single[b] for a, b in pairs if a < b}

    def cost(self, value: float) -> float:
        """Return how hard a number is to read: 0 for 1, more for others, most for a row of digits."""
        text = self.magnitude(abs(value))[0] if value else "1"
        if text == "1":
            return 0.0
        if text.isdigit():
            return 1.0 + 0.1 * len(text)
        if text in self._single:
            return 0.5
        if any(c.isalpha() for c in text):
            return 2.0 + 0.1 * len(text)
        return 2.5 + 0.1 * len(text) if "/" in text else 0.5 + 0.5 * len(text)

    def value(self, value: float) -> float:
        """Return what the text of a number stands for."""
        return 0.0 if not value else self.magnitude(abs(value))[1] * (1 if value > 0 else -1)

    def product(self, value: float, term: str) -> str:
        """Return a number times a term, the term empty for 1."""
        text = self.magnitude(abs(value))[0]
        sign = "-" if value < 0 else ""
        if not term:
            return sign + text
        return f"{sign}{term}" if text == "1" else f"{sign}{text}*{term}"

    def magnitude(self, value: float) -> tuple[str, float]:
        """Return a positive number as text, and what that stands for."""
        simple = self._simple(value, 2)
        if simple[0]:
            return simple
        for factor, before in ((1, ""), (2, "2*"), (0.5, "0.5*"), (4, "4*"), (0.25, "0.25*")):
            fitting = [n for n, parameter in self._values_by_text.items() if self._agree(factor * parameter, value)]
            alone = [n for n in fitting if not set("*/^") & set(n)] or fitting
            if len(alone) == 1:
                return f"{before}{alone[0]}", factor * self._values_by_text[alone[0]]
        for simplest in (self._simple(value, 12), self._root(value)):
            if simplest[0]:
                return simplest
        # The shortest decimal that agrees.
        for digits in range(1, 16):
            text = f"{value:.{digits}g}"
            if (digits <= MAX_DIGITS or self._accuracy > SIMPLE_NUMBER_TOLERANCE) and self._agree(float(text), value):
                return text, float(text)
        text = repr(float(f"{value:.15g}"))
        return text, float(text)

    def _agree(self, a: float, b: float) -> bool:
        return abs(a - b) <= self._accuracy * b

    def _simple(self, value: float, denominators: int) -> tuple[str, float]:
        """Return an integer or a short fraction; no text for others."""
        if not 1e-6 < value < 1e9:
            return "", value
        fraction = Fraction(value).limit_denominator(denominators if value < 100 else 1)
        if not self._agree(float(fraction), value) or (fraction.numerator > 1000 and fraction.denominator > 1):
            return "", value
        exact = fraction.denominator in (2, 4, 5, 8, 10)
        number = float(fraction)
        return str(fraction) if fraction.denominator == 1 or not exact else f"{number:g}", number

    def _root(self, value: float) -> tuple[str, float]:
        for under in (2, 3, 5, 6, 7):
            text, number = self._simple(value / sqrt(under), 4)
            if text:
                return f"sqrt({under})" if text == "1" else f"{text}*sqrt({under})", number * sqrt(under)
        return "", value


MIN_SIZE = 1e-300
LEVEL = 0.3  # how much the level's number counts relative to those of the terms when the simplest ones are chosen


@dataclass(frozen=True, eq=False)
class Invariant:
    """h(x) = c . phi(x) - level."""

    library: Library  # the terms in it, K of them
    coefficients: FloatArray  # shape (K,)
    level: float = 0.0  # what c . phi is at the point

    @cached_property
    def states(self) -> frozenset[int]:
        """The states in it."""
        return frozenset().union(*(t.states for t in self.library.terms))

    def at(self, x0: FloatArray, tolerance: float = 1e-9) -> Invariant:
        """Return the invariant with its level at the point x0 (N,); a sum that is zero but for rounding is zero."""
        level = float(self.values(x0[None])[0] + self.level)
        return replace(self, level=0.0 if abs(level) <= tolerance * self.size(x0[None])[0] else level)

    def values(self, x: FloatArray) -> FloatArray:
        """Return h at points x (m, N), shape (m,)."""
        return np.asarray(self.library.values(x) @ self.coefficients - self.level)

    def size(self, x: FloatArray) -> FloatArray:
        """Return the size of the terms of h at points x (m, N), shape (m,)."""
        return np.asarray(np.abs(self.library.values(x)) @ np.abs(self.coefficients) + abs(self.level))

    def gradients(self, x: FloatArray) -> FloatArray:
        """Return Dh at points x (m, N), shape (m, N)."""
        return np.asarray(np.einsum("mkn,k->mn", self.library.gradients(x), self.coefficients))

    def gradient_sizes(self, x: FloatArray) -> FloatArray:
        """Return the sizes of the terms of Dh at points x (m, N), shape (m, N)."""
        return np.asarray(np.einsum("mkn,k->mn", np.abs(self.library.gradients(x)), np.abs(self.coefficients)))

    def rates(self, x: FloatArray, f: FloatArray, noise: FloatArray | float = 0.0) -> FloatArray:
        """Return Dh f over the size of terms, (m,), at x (m, N) for rates f (m, N), less what ``noise`` explains."""
        slopes = self.gradients(x)
        terms = np.abs(slopes) * np.maximum(np.abs(f), 1e-3 * np.abs(f).max(axis=1, initial=0.0, keepdims=True))
        more = np.maximum(np.abs((slopes * f).sum(axis=1)) - (np.abs(slopes) * noise).sum(axis=1), 0.0)
        return np.asarray(more / np.maximum(terms.sum(axis=1), MIN_SIZE))

    def rate(self, rate_of: Mapping[int, int]) -> Invariant:
        """Return the rate of a polynomial of states that have states as rates."""
        coefficients: dict[Term, float] = {}
        for c, term in zip(self.coefficients.tolist(), self.library.terms, strict=True):
            for i, p in term.powers:
                powers = {**dict(term.powers), i: p - 1, rate_of[i]: 1}
                key = Term(tuple(sorted((j, q) for j, q in powers.items() if q)))
                coefficients[key] = coefficients.get(key, 0.0) + c * p
        return Invariant(Library(coefficients), np.array(list(coefficients.values())))

    def degree(self, among: Sequence[int] | frozenset[int]) -> int:
        """Return the largest degree in some of the states."""
        return max(t.degree(among) for t in self.library.terms)

    @property
    def is_linear(self) -> bool:
        """Whether it is a sum of states with constant factors."""
        return all(not t.harmonic[0] and t.degree() == 1 for t in self.library.terms)

    def simplify_numbers(self, numbers: Numbers) -> Invariant:
        """Return the invariant with the factor that makes its numbers the simplest, and these as they are written."""
        numbers_to_simplify = [c for c in (*self.coefficients, self.level) if c]

        def cost(factor: float) -> float:
            return sum(numbers.cost(c * factor) for c in self.coefficients) + LEVEL * numbers.cost(self.level * factor)

        factor = min((1 / c for c in numbers_to_simplify), key=cost)
        if self.coefficients[0] * factor < 0:
            factor = -factor
        exact = np.array([numbers.value(c * factor) for c in self.coefficients])
        return replace(self, coefficients=exact, level=numbers.value(self.level * factor))

    def text(self, names: Sequence[str], numbers: Numbers) -> str:
        """Return the invariant, as :meth:`written`, in the grammar of expressions."""
        terms = zip(self.coefficients, self.library.terms, strict=True)
        parts = [numbers.product(c, t.text(names)) for c, t in terms]
        if self.level:
            parts.append(numbers.product(-self.level, ""))
        return parts[0] + "".join(f" - {p[1:]}" if p.startswith("-") else f" + {p}" for p in parts[1:])


STEPS = 40
SAMPLE_PROJECTION_TOLERANCE = 1e-13
MAX_PROJECTION_DISTANCE = 10.0  # how far a projection may go, in sizes of the states

INDEPENDENCE_TOLERANCE = (
    1e-6  # what a gradient adds to the span of others, relative to itself, that makes it one of its own
)


def project_points(x: FloatArray, invariants: Sequence[Invariant], sizes: FloatArray) -> FloatArray:
    """Return points near x (m, N) where all invariants are zero, of those that get there, shape (<= m, N)."""
    if not invariants or not len(x):
        return x
    s, x0 = x.copy(), x
    arrived: NDArray[np.bool_] = np.zeros(len(x), dtype=np.bool_)
    for _ in range(STEPS):
        size = np.maximum(np.column_stack([i.size(s) for i in invariants]), MIN_SIZE)
        h = np.column_stack([i.values(s) for i in invariants]) / size
        fine = np.isfinite(h).all(axis=1)
        s, x0, arrived, h, size = s[fine], x0[fine], arrived[fine], h[fine], size[fine]
        arrived = np.asarray((np.abs(h) <= SAMPLE_PROJECTION_TOLERANCE).all(axis=1))
        if arrived.all():
            break
        H = np.stack([i.gradients(s) for i in invariants], axis=1) * sizes / size[:, :, None]
        step = (np.linalg.pinv(H, rcond=1e-10) @ h[:, :, None])[:, :, 0]
        s = np.where(arrived[:, None], s, s - sizes * step)
    near = (np.abs(s - x0) <= MAX_PROJECTION_DISTANCE * sizes).all(axis=1)  # far away everything is relatively small
    return np.asarray(s[arrived & near])


def is_independent(
    candidate: Invariant,
    references: Sequence[Invariant],
    x: FloatArray,
    sizes: FloatArray,
    tolerance: float = INDEPENDENCE_TOLERANCE,
) -> bool:
    """Whether the gradient, if its terms do not cancel, leaves the span of others' at most of the points x (m, N)."""
    gradient_rows = candidate.gradients(x) * sizes
    least = INDEPENDENCE_TOLERANCE * np.linalg.norm(candidate.gradient_sizes(x) * sizes, axis=1)
    theirs = np.stack([i.gradients(x) * sizes for i in references] or [np.zeros_like(gradient_rows)], axis=1)
    leaves = 0
    for row, gradients, cancelled in zip(gradient_rows, theirs, least, strict=True):
        rows = gradients / np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), MIN_SIZE)
        _, s, vt = np.linalg.svd(rows, full_matrices=False)
        span = vt[s > INDEPENDENCE_TOLERANCE * s[0]] if s[0] > 0 else vt[:0]
        remainder = np.linalg.norm(row - span.T @ (span @ row))
        leaves += bool(remainder > max(tolerance * np.linalg.norm(row), cancelled))
    return leaves > len(x) // 2


def independent_ones(invariants: Sequence[Invariant], x: FloatArray, sizes: FloatArray) -> list[Invariant]:
    """Return as many of the invariants, short ones first, as are independent where they are zero, near x (m, N)."""
    chosen: list[Invariant] = []
    for candidate in sorted(invariants, key=lambda h: len(h.coefficients)):
        near = project_points(x, chosen, sizes)
        if not len(near) or is_independent(candidate, chosen, near, sizes):
            chosen.append(candidate)
    return chosen
