"""What the states must satisfy: declared constraints, and the same bound to a model's variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fmilin.constraints.compiled import CompiledExpressions
from fmilin.constraints.expressions import Expression, ExpressionError, parse
from fmilin.errors import ConstraintError, UnknownNameError
from fmilin.signals import FloatArray, Signals

__all__ = ["Constraint", "Constraints", "Level", "Partials", "Row"]

Level = Literal["position", "velocity"]


@dataclass(frozen=True)
class Constraint:
    """One scalar equation ``expression = 0`` that the model's motion keeps.

    Parameters
    ----------
    expression : Expression
        Over states, parameters, ``time`` and other known variables of the model.
    name : str
        For messages; the expression's text when empty.
    level : {"position", "velocity"}
        ``"position"``: fmilin adds the hidden constraint, the time derivative. ``"velocity"``: complete as
        it is, as nonholonomic constraints are.
    rate : Expression or None
        The time derivative of a position-level constraint where the model provides it; fmilin then need
        not derive it.
    """

    expression: Expression
    name: str = ""
    level: Level = "position"
    rate: Expression | None = None

    @property
    def label(self) -> str:
        """The name for messages."""
        return self.name or self.expression.text

    @classmethod
    def from_text(cls, text: str, *, name: str = "", level: Level = "position", rate: str | None = None) -> Constraint:
        """Parse ``text``, an expression or the name of a variable.

        Raises
        ------
        ConstraintError
            When the text is no expression of the grammar.
        """
        try:
            return cls(parse(text), name, level, None if rate is None else parse(rate))
        except ExpressionError as error:
            raise ConstraintError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Row:
    """One scalar residual: a declared constraint, or the rate that was declared with it."""

    name: str
    expression: Expression
    level: Level
    needs_rate: bool


@dataclass(frozen=True, slots=True)
class Partials:
    """Partial derivatives of the residuals g(t, x, u, z), one row each."""

    time: FloatArray
    """Shape (m,)."""
    states: FloatArray
    """Shape (m, N)."""
    inputs: FloatArray
    """Shape (m, nu)."""
    observed: FloatArray
    """Shape (m, nz)."""


class Constraints:
    """Declared constraints, bound to a model: residuals g(t, x, u, z) and their exact partial derivatives.

    z are the values of ``observed``: variables of the model that are neither states, inputs, parameters
    nor time (a loop gap computed inside the model, say).

    Parameters
    ----------
    declared : iterable of Constraint
    states, inputs : Signals
    parameters : mapping of str to float
        Values of every parameter and constant that may appear.
    other : callable
        Takes a name; returns the model's canonical name of that variable, or None when there is none.
    known : iterable of str
        All names, for suggestions.

    Attributes
    ----------
    parameters : mapping of str to float
        Values that expressions may use.
    rows : tuple of Row
        m of them: the declared constraints, then the rates declared with them.
    observed : tuple of str
        Names of z.
    analytic : array of bool, shape (m,)
        Whether a row depends on states, inputs, parameters and time alone.
    structure : array of bool, shape (m, N)
        Which states a row contains.
    input_structure : array of bool, shape (m, nu)
        Which inputs a row contains: they prescribe a motion.
    time_dependent : bool

    Raises
    ------
    ConstraintError
        When a constraint names a variable that the model does not have, or no variable at all: exit status 4.
    """

    def __init__(
        self,
        declared: Iterable[Constraint],
        states: Signals,
        inputs: Signals,
        *,
        parameters: Mapping[str, float] | None = None,
        other: Callable[[str], str | None] = lambda _: None,
        known: Iterable[str] = (),
    ) -> None:
        self.declared = tuple(declared)
        self.rows = _rows(self.declared)
        parameters = parameters or {}
        observed: dict[str, int] = {}
        used: dict[str, float] = {}
        place: dict[str, int] = {}
        n, k = len(states), len(inputs)
        for name in dict.fromkeys(n for row in self.rows for n in row.expression.names):
            if states.has(name):
                place[name] = 1 + states.positions[name]
            elif inputs.has(name):
                place[name] = 1 + n + inputs.positions[name]
            elif name in parameters:
                used[name] = parameters[name]
            elif (canonical := other(name)) is not None:
                place[name] = 1 + n + k + observed.setdefault(canonical, len(observed))
            elif name == "time":
                place[name] = 0
            else:
                raise _unknown(name, self.rows, [*states.positions, *inputs.positions, *parameters, *known])
        for constraint in self.declared:
            if not any(name in place for name in constraint.expression.names):
                raise ConstraintError(
                    f"The constraint '{constraint.expression.text}' contains no variable that moves, only numbers and "
                    "parameters: it says nothing about the motion. Write it with the states of the model, as in "
                    '"x^2 + y^2 - L^2".'
                )
        self.parameters = parameters  # maybe read from a running model when asked for: not copied
        self.observed = tuple(observed)
        self._sizes = (1, n, k, len(observed))
        self._place, self._used = place, used
        self._simple = {
            i: place[row.expression.names[0]]
            for i, row in enumerate(self.rows)
            if row.expression.is_variable and row.expression.names[0] in place
        }
        self._general = [i for i in range(len(self.rows)) if i not in self._simple]
        names = [*place, *used]
        self._compiled = CompiledExpressions([self.rows[i].expression for i in self._general], names)
        self._columns = np.array([place[name] for name in place], dtype=np.intp)
        self._distinct = len(np.unique(self._columns)) == len(self._columns)
        self._cells = np.ix_(np.array(self._general, dtype=np.intp), self._columns)
        first_observed = 1 + n + k
        self.analytic = np.array(
            [all(place.get(name, 0) < first_observed for name in row.expression.names) for row in self.rows], dtype=bool
        )
        self.time_dependent = any(p == 0 for p in place.values())
        contains = np.zeros((len(self.rows), first_observed), dtype=bool)
        for i, row in enumerate(self.rows):
            places = [place[name] for name in row.expression.names if name in place]
            contains[i, [p for p in places if p < first_observed]] = True
        self.structure, self.input_structure = contains[:, 1 : 1 + n], contains[:, 1 + n :]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """One name per residual."""
        return tuple(row.name for row in self.rows)

    def residuals(self, t: float, x: FloatArray, u: FloatArray, z: FloatArray) -> FloatArray:
        """Return g, shape (m,)."""
        s = np.concatenate(([t], x, u, z))
        g = np.empty(len(self.rows))
        for i, place in self._simple.items():
            g[i] = s[place]
        if self._general:
            g[self._general] = self._compiled.values(self._arguments(s))
        return g

    def partials(self, t: float, x: FloatArray, u: FloatArray, z: FloatArray) -> Partials:
        """Return the exact partial derivatives of g."""
        s = np.concatenate(([t], x, u, z))
        full = np.zeros((len(self.rows), s.size))
        for i, place in self._simple.items():
            full[i, place] = 1.0
        if self._general:
            self._add(full, self._compiled.jacobian(self._arguments(s)))
        return self._split(full)

    def curvature(
        self, t: float, x: FloatArray, u: FloatArray, w: FloatArray, u_dot: FloatArray | None = None
    ) -> Partials:
        """Return the partial derivatives of the rate g_x w + g_u u_dot + g_t, w and u_dot held.

        With w = f this is the part of the hidden constraint's gradient that comes from the curvature of g.

        Parameters
        ----------
        t, x, u
            The point.
        w : array, shape (N,)
        u_dot : array, shape (nu,), optional
            Zero by default.

        Returns
        -------
        Partials
            NaN rows where g is not analytic.
        """
        s = np.concatenate(([t], x, u, np.zeros(self._sizes[3])))
        full = np.zeros((len(self.rows), s.size))
        if self._general:
            rates = np.zeros(self._sizes[2]) if u_dot is None else u_dot
            along = np.concatenate(([1.0], w, rates, np.zeros(self._sizes[3])))
            contracted = np.concatenate((along[self._columns], np.zeros(len(self._used))))
            self._add(full, self._compiled.curvature(self._arguments(s), contracted))
        full[~self.analytic] = np.nan
        return self._split(full)

    def _arguments(self, s: FloatArray) -> list[float]:
        return [*s[self._columns].tolist(), *self._used.values()]

    def _add(self, full: FloatArray, jacobian: FloatArray) -> None:
        if self._distinct:
            full[self._cells] += jacobian[:, : len(self._columns)]
            return
        for column, place in enumerate(self._columns):
            full[self._general, place] += jacobian[:, column]  # two names may be aliases of one variable

    def _split(self, full: FloatArray) -> Partials:
        _, n, k, _ = self._sizes
        return Partials(full[:, 0], full[:, 1 : 1 + n], full[:, 1 + n : 1 + n + k], full[:, 1 + n + k :])


def _rows(declared: Sequence[Constraint]) -> tuple[Row, ...]:
    rows = [Row(c.label, c.expression, c.level, c.level == "position" and c.rate is None) for c in declared]
    rates = [Row(f"rate of {c.label}", c.rate, "velocity", needs_rate=False) for c in declared if c.rate is not None]
    return tuple(rows + rates)


def _unknown(name: str, rows: Sequence[Row], known: Iterable[str]) -> ConstraintError:
    where = next(row.name for row in rows if name in row.expression.names)
    error = UnknownNameError.among(name, dict.fromkeys(known), "a variable of the model")
    return ConstraintError(f"In the constraint '{where}': {error}")
