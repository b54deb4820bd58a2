"""The same code computes with any numbers: a recorder of operations turns a mechanism into straight-line code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fmilin.native.mechanism.recursions import coordinate_rates
from fmilin.native.mechanism.system import System
from tests.native.mechanism.builders import Floats, everything, five_bar_chain
from tests.native.mechanism.recursion import newton_euler


class Tape:
    """Statements ``a[i] = a[j] op a[k]``, in their order."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, tuple[int | float, ...]]] = []

    def add(self, operation: str, *operands: int | float) -> Number:
        self.statements.append((operation, operands))
        return Number(self, len(self.statements) - 1)

    def run(self, values: Floats) -> list[float]:
        """Execute the statements; the first ones read the arguments."""
        a: list[float] = []
        for operation, operands in self.statements:
            if operation == "argument":
                a.append(float(values[int(operands[0])]))
                continue
            x = [a[o] if isinstance(o, int) else o for o in operands]
            match operation:
                case "+":
                    a.append(x[0] + x[1])
                case "-":
                    a.append(x[0] - x[1])
                case "*":
                    a.append(x[0] * x[1])
                case "/":
                    a.append(x[0] / x[1])
                case _:
                    a.append(getattr(math, operation)(x[0]))
        return a


class Number:
    """A value on a tape; zeros and ones leave no statement."""

    def __init__(self, tape: Tape, place: int) -> None:
        self.tape, self.place = tape, place

    def _with(self, operation: str, other: Any, *, swapped: bool = False) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        there = other.place if isinstance(other, Number) else float(other)
        pair = (there, self.place) if swapped else (self.place, there)
        return self.tape.add(operation, *pair)

    def __add__(self, other: Any) -> Any:
        return self if not isinstance(other, Number | np.ndarray) and other == 0 else self._with("+", other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Number | np.ndarray) and other in (0, 1):
            return self if other == 1 else 0.0
        return self._with("*", other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        return self if not isinstance(other, Number | np.ndarray) and other == 0 else self._with("-", other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("-", other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return self._with("/", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with("/", other, swapped=True)

    def __neg__(self) -> Any:
        return self._with("-", 0.0, swapped=True)

    def __pow__(self, power: int) -> Any:
        assert power in (2, 3)
        return self * self if power == 2 else self * self * self

    def sin(self) -> Number:
        return self.tape.add("sin", self.place)

    def cos(self) -> Number:
        return self.tape.add("cos", self.place)

    def sqrt(self) -> Number:
        return self.tape.add("sqrt", self.place)


def recorded(sizes: tuple[int, ...]) -> tuple[Tape, list[Any]]:
    """Return a tape and arrays of its arguments."""
    tape = Tape()
    everything_in = np.array([tape.add("argument", i) for i in range(sum(sizes))], dtype=object)
    return tape, np.split(everything_in, np.cumsum(sizes)[:-1])


def replayed(tape: Tape, array: Any, values: Floats) -> Floats:
    a = tape.run(values)
    flat = [a[x.place] if isinstance(x, Number) else float(x) for x in np.asarray(array).ravel()]
    return np.array(flat).reshape(np.shape(array))


@pytest.mark.parametrize("make", [five_bar_chain, everything])
def test_the_equations_become_straight_line_code(make: Any) -> None:
    system = System(make())
    n_q, n, nu = system.tree.n_q, system.tree.n, len(system.description.inputs)
    tape, (q, v, u) = recorded((n_q, n, nu))
    symbolic = system.state(q, v, u)
    rates, gaps = coordinate_rates(system.tree, q, v), system.gaps(symbolic)
    values = np.random.default_rng(1).normal(size=n_q + n + nu)
    state = system.state(values[:n_q], values[n_q : n_q + n], values[n_q + n :])
    for name in ("M", "G", "F", "c"):
        expected = getattr(state, name)
        assert np.abs(replayed(tape, getattr(symbolic, name), values) - expected).max() < 1e-11 * np.abs(expected).max()
    assert np.abs(replayed(tape, gaps, values) - system.gaps(state)).max() < 1e-12
    assert (
        np.abs(replayed(tape, rates, values)[system.tree.screw_coordinates] - state.v[system.tree.screw_speeds]).max()
        == 0
    )


def test_newton_euler_from_link_to_link_becomes_straight_line_code() -> None:
    system = System(everything(closed=False))
    n_q, n = system.tree.n_q, system.tree.n
    tape, (q, v, a) = recorded((n_q, n, n))
    tau = newton_euler(system.tree, q, v, a, system.gravity)
    values = np.random.default_rng(1).normal(size=n_q + 2 * n)
    parts = np.split(values, [n_q, n_q + n])
    expected = newton_euler(system.tree, parts[0], parts[1], parts[2], system.gravity)
    assert np.abs(replayed(tape, tau, values) - expected).max() < 1e-11 * np.abs(expected).max()
