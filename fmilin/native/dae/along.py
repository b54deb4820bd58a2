"""The total derivative along the motion: x' = f, and symbols for the derivatives of unknowns and inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from fmilin.ground.signals import Signal, Signals, rate_unit
from fmilin.native.dae.elimination import SemiExplicit

SX = Any


@dataclass(frozen=True)
class Row:
    """A residual, differentiated ``order`` times; i is negative for an unknown that is held at its start value."""

    name: str
    i: int
    order: int
    value: SX  # over (t, x, u, p) and the unknowns
    is_true: bool = True  # whether the derivatives of unknowns in it are those of the motion


class Motion:
    """Derivatives of expressions over (t, x, w, u, p), then over derivatives of w and of u, made when first met."""

    def __init__(self, form: SemiExplicit) -> None:
        graph = form.graph
        self._rates: dict[int, SX] = {graph.time.__hash__(): ca.SX(1)}
        self._rates |= {x.__hash__(): f for x, f in zip(graph.x.elements(), form.f.elements(), strict=True)}
        self._jets: dict[tuple[int, int], SX] = {(j, 0): w for j, w in enumerate(form.w.elements())}
        self._positions: dict[int, tuple[int, int]] = {w.__hash__(): key for key, w in self._jets.items()}
        self._names, self._signals = list(form.names), list(graph.inputs)
        self._guesses, self._sizes = form.guess.tolist(), form.sizes.tolist()
        self._inputs: list[SX] = graph.u.elements()
        self._input_positions = {u.__hash__(): i for i, u in enumerate(self._inputs)}

    def jet(self, j: int, order: int) -> SX:
        """Return the symbol of the derivative of w_j of this order."""
        if (j, order) not in self._jets:
            symbol = ca.SX.sym(self.name(j, order))
            self._jets[j, order], self._positions[symbol.__hash__()] = symbol, (j, order)
        return self._jets[j, order]

    def substitute_for(self, j: int, order: int) -> tuple[int, int]:
        """Return a new unknown that stands for a derivative in some equations."""
        self._names.append(self.name(j, order))
        self._guesses.append(0.0)
        self._sizes.append(self._sizes[j])
        return len(self._names) - 1, 0

    def guess(self, j: int, order: int) -> float:
        """Return a first value."""
        return 0.0 if order else float(self._guesses[j])

    def size(self, j: int) -> float:
        """Return a typical size."""
        return float(self._sizes[j])

    def name(self, j: int, order: int) -> str:
        """Return how it is called."""
        return derivative_name(self._names[j], order)

    def along(self, column: SX) -> SX:
        """Return the derivative of a column."""
        column = ca.cse(column)
        moving = [(s, rate) for s in ca.symvar(column) if (rate := self._rate(s)) is not None]
        if not moving:
            return ca.SX.zeros(column.numel())
        symbols, rates = (ca.vertcat(*part) for part in zip(*moving, strict=True))
        return ca.jtimes(column, symbols, rates)

    def jets_in(self, column: SX) -> list[tuple[int, int]]:
        """Return the unknowns (j, order) in a column."""
        return sorted(self._positions[s.__hash__()] for s in ca.symvar(column) if s.__hash__() in self._positions)

    def inputs(self) -> tuple[SX, Signals]:
        """Return the inputs, and behind them derivatives that nobody declared and that were needed."""
        return ca.vertcat(ca.SX(0, 1), *self._inputs), Signals(self._signals)

    def drop(self, idle: Sequence[int]) -> None:
        """Forget some of the inputs that were made."""
        self._inputs = [u for i, u in enumerate(self._inputs) if i not in idle]
        self._signals = [s for i, s in enumerate(self._signals) if i not in idle]

    def _rate(self, symbol: SX) -> SX | None:
        key = symbol.__hash__()
        if key in self._positions:
            j, order = self._positions[key]
            return self.jet(j, order + 1)
        if key in self._input_positions:
            return self._inputs[self._input_rate(self._input_positions[key])]
        return self._rates.get(key)

    def _input_rate(self, i: int) -> int:
        """Return which input is the derivative of another."""
        name = derivative_name(self._signals[i].name, 1)
        for k, signal in enumerate(self._signals):
            if signal.name == name:
                return k
        symbol = ca.SX.sym(name)
        self._signals.append(Signal(name, rate_unit(self._signals[i].unit)))
        self._inputs.append(symbol)
        self._input_positions[symbol.__hash__()] = len(self._inputs) - 1
        return len(self._inputs) - 1


def derivative_name(name: str, order: int) -> str:
    """Return ``der(der(x))`` and the like."""
    return "der(" * order + name + ")" * order


def column_of(nodes: Sequence[SX]) -> SX:
    """Return a dense column."""
    return ca.densify(ca.vertcat(ca.SX(0, 1), *nodes))
